"""The scale of features, chosen for a problem."""

from collections.abc import Sequence
from typing import Any

from pdofm._types import Key
from pdofm.features import Features
from pdofm.problem.problem import Problem
from pdofm.solving.fit import fit


def tune_scale(
    problem: Problem, features: Features, *, factors: Sequence[float] | None = None, key: Key = 0, **options: Any
) -> Features:
    """The features with the scale that solves `problem` best, chosen without an exact solution.

    Solves with all frequencies multiplied by each of `factors` (by default powers of √2 from 1/16 to 16, walking from 1
    in the direction that improves). The residual at points that were not fitted decides; among scales within a factor
    3 of the smallest one, where rounding matters more than resolution, the error estimate does. `options` are `method`,
    `points`, `boundary_points` and `sampling` of `solve`.
    """

    def quality(factor: float) -> tuple[float, float]:
        solution = fit(problem, features.rescaled(factor), key=key, **options)
        return solution.stats.held_out_residual, solution.error_estimate

    seen = {factor: quality(factor) for factor in ((1.0,) if factors is None else factors)}
    for step in (0.5**0.5, 2.0**0.5) if factors is None else ():
        at = step
        while 0.06 < at < 17:
            seen[at] = quality(at)
            if seen[at][0] > 4 * min(seen.values())[0]:  # residuals jump from scale to scale: look a little further
                break
            at *= step
    enough = 3 * min(seen.values())[0]
    return features.rescaled(min((f for f in seen if seen[f][0] <= enough), key=lambda factor: seen[factor][1]))
