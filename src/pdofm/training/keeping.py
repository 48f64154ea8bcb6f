"""Which features a training hands back: the trained ones, the same rescaled, or those that it was given.

What matters is the least-squares solution, at points that are not fitted, not the loss that was trained.
"""

from dataclasses import dataclass

from pdofm._types import Key
from pdofm.errors import PdofmError, unknown_name
from pdofm.features import Features
from pdofm.problem.problem import Problem
from pdofm.solving.fit import fit

KEPT = ("best", "last")

FACTORS = (0.5**0.5, 2.0**0.5)
"""Scales that are tried for trained features: training changes the frequencies that they resolve best."""

BETTER = 0.8
"""Features replace others if their residual and their estimated error are smaller by this factor: smaller gains
come and go with the points."""


@dataclass(frozen=True)
class Quality:
    """The least-squares solution in some features: its residual at held-out points and its estimated error."""

    residual: float
    error: float

    def pays(self, before: "Quality") -> bool:
        """Whether these features are clearly better than others."""
        return self.error <= BETTER * before.error and self.residual <= BETTER * before.residual


def check_keep(keep: str) -> None:
    """Raise unless `keep` is known."""
    if keep not in KEPT:
        raise unknown_name("keep", keep, KEPT)


def quality(problem: Problem, features: Features, key: Key) -> Quality | None:
    """What least squares makes of features; None if it cannot be solved in them."""
    try:
        found = fit(problem, features, key=key)
    except PdofmError:
        return None
    return Quality(found.stats.held_out_residual, found.error_estimate)


def best_of(problem: Problem, given: Features, trained: Features, key: Key) -> tuple[Features, float, str]:
    """The best of given and trained features, how many times smaller their estimated error is than that of the given
    ones, and what they are called."""
    before = quality(problem, given, key)
    if before is None:
        return trained, 1.0, "trained"
    best, found, name = given, before, "given"
    candidates = [("trained", trained)]
    if trained.has_scale:
        candidates += [(f"trained, rescaled by {factor:.2f}", trained.rescaled(factor)) for factor in FACTORS]
    for called, candidate in candidates:
        its = quality(problem, candidate, key)
        if its is not None and its.pays(found):
            best, found, name = candidate, its, called
    return best, before.error / found.error if found.error > 0 else 1.0, name
