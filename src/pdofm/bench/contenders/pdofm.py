"""This package, with the spaces that suit these problems: polynomials, and corner functions for the singularity."""

from collections.abc import Sequence

import numpy as np

import pdofm as pf
from pdofm.bench.contenders import Evaluate, Level

PACKAGES = ("pdofm", "jax")
ENVIRONMENT: dict[str, str] = {}

DEGREES: dict[str, Sequence[int]] = {
    "poisson-square": (8, 12, 16, 18, 20, 24),
    "poisson-lshape": (8, 12, 16, 18, 20, 24),
    "poisson-annulus": (8, 10, 12, 14, 17, 20),
    "poisson-cube": (7, 9, 11, 13, 15, 16, 17),
    "kovasznay": (10, 14, 18, 20, 22),
    "poisson-corner": (2, 4, 8),
}
"""Total degrees, from cheap to accurate."""

PER_FUNCTION, PER_TRACE = 2, 1
"""Points inside per polynomial, and on each side of the box per polynomial of that degree on it: for polynomials at
clustered points half of what a space that is not known needs."""


def levels(problem: str) -> list[Level]:
    """One level per degree."""
    return [_level(pf.zoo.get(problem), degree) for degree in DEGREES[problem]]


def _level(problem: pf.Problem, degree: int) -> Level:
    domain = problem.domain
    smooth = pf.Chebyshev(domain, degree=degree)
    singular = problem.name == "poisson-corner"
    features = pf.Concatenate(smooth, pf.CornerFunctions(domain, highest=2, degree=0)) if singular else smooth
    on_a_side = pf.Chebyshev(pf.Box([0.0] * (domain.dim - 1), [1.0] * (domain.dim - 1)), degree=degree).size
    points, boundary = PER_FUNCTION * features.size, 2 * domain.dim * PER_TRACE * on_a_side
    boundary *= 2 if singular else 1

    def solve() -> Evaluate:
        return pf.solve(problem, features, points=points, boundary_points=boundary, sampling="clustered", tol=np.inf)

    kind = "polynomials and corner functions" if singular else "polynomials"
    return Level(f"{features.size} {kind}", solve)
