"""The same problem with untrained and with learned features."""

import time
from typing import Any

from pdofm.discrete.evaluate import evaluate
from pdofm.errors import PdofmError
from pdofm.features import Features, NetworkFeatures
from pdofm.numerics.distance import distance
from pdofm.problem.problem import Problem
from pdofm.solving.fit import fit
from pdofm.solving.solution import Solution
from pdofm.studio.view import finite
from pdofm.training.pretraining import pretrain

POINTS = 2000
"""Points at which solutions are compared."""


def compared(problem: Problem, reference: Solution, size: int, steps: int) -> list[dict[str, Any]]:
    """A row for untrained features and one for the same features trained for this problem.

    `difference` is the relative distance to the solution that a search has found, whose error is far smaller if it has
    converged.
    """
    start = time.perf_counter()
    untrained = NetworkFeatures(problem.domain, size)
    rows = [_row("untrained", problem, untrained, reference, start)]
    start = time.perf_counter()
    try:
        trained = pretrain(problem, untrained, steps=steps, progress=False).features
    except PdofmError as error:
        return [*rows, {"features": "trained for this problem", "error": str(error)}]
    return [*rows, _row(f"trained for this problem, {steps} steps", problem, trained, reference, start)]


def _row(name: str, problem: Problem, features: Features, reference: Solution, start: float) -> dict[str, Any]:
    found = fit(problem, features)
    points = problem.domain.sample(POINTS)
    mine, best = (evaluate(each.features, each.coefficients, points) for each in (found, reference))
    return {
        "features": f"{name}, {features.size}",
        "estimate": finite(found.error_estimate),
        "difference": finite(distance(mine, best)),
        "seconds": round(time.perf_counter() - start, 2),
    }
