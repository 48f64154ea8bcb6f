"""This package, with a space that suits each problem, as a user would choose it.

On a box with zero boundary values these are polynomials that satisfy them, on other domains random features. The system
is solved with polynomials, in a coarse space first, the singularity with corner functions, and holes with multipoles.
Where a solution is local, boxes are chosen as the meshes of others are: before the time is taken, by a search.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from jaxtyping import Float
from numpy import ndarray

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.bench.contenders import Evaluate, Level, Sources
from pdofm.bench.contenders.local import stated

PACKAGES = ("pdofm", "jax")
ENVIRONMENT: dict[str, str] = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def levels(problem: str) -> list[Level]:
    """Sizes of the space, from cheap to accurate."""
    if problem in ("poisson-square", "poisson-cube"):
        degrees = (6, 9, 12, 15, 16, 17, 18, 20) if problem == "poisson-square" else (3, 5, 7, 9, 12, 14)
        return [_level(_hard_polynomials, problem, degree=degree) for degree in degrees]
    if problem in ("poisson-lshape", "poisson-annulus"):
        return [_level(_random, problem, features=features) for features in (60, 90, 120, 140, 150, 160, 180, 220)]
    if problem == "kovasznay":
        # The flow varies more slowly along the stream than across it.
        return [_level(_from_coarse, problem, along=along, across=2 * along) for along in (6, 8, 10, 12, 13, 14, 15)]
    if problem == "poisson-corner":
        return [_level(_with_corner, problem, degree=degree) for degree in (2, 4, 8)]
    if problem == "four-holes":
        return [_level(_with_holes, problem, degree=degree) for degree in (6, 9, 12, 14, 16, 18)]
    if problem == "round-inclusion":
        return [_level(_with_multipoles, problem, degree=degree) for degree in (8, 16, 24, 32)]
    return [_level(_in_boxes, problem, digits=digits) for digits in (2, 4, 6, 7, 8, 9)]


def sources() -> Sources:
    """Solve for many sources on the square; everything that does not depend on them is prepared."""
    problem = pf.zoo.get("poisson-square")
    features = pf.HardDirichlet(pf.Chebyshev(problem.domain, degree=15), problem.domain)
    solver = pf.factor(problem, features, points=11 * features.size // 10, sampling="clustered")
    points = solver.points["equation"]
    (x, y), (p, q) = points.T, 1 - points.T**2
    factors = np.stack([2 * p + 2 * q, 4 * x * q, 4 * y * p, -p * q], axis=1)

    def solve(frequencies: Float[ndarray, "k 2"]) -> Evaluate:
        a, b = frequencies.T
        values = factors @ np.stack([np.ones_like(a), a, b, a**2 + b**2])
        values *= np.exp(points @ frequencies.T)
        solutions = solver.solve(values)
        return lambda at: solutions(at)[:, -1]

    return solve


def _level(solve: Callable[..., Evaluate], problem: str, **parameters: int) -> Level:
    name = ", ".join(f"{name} {value}" for name, value in parameters.items())
    return Level(name, partial(solve, stated(problem), **parameters), repeats=9)


def _hard_polynomials(problem: pf.Problem, degree: int) -> Evaluate:
    features = pf.HardDirichlet(pf.Chebyshev(problem.domain, degree=degree), problem.domain)
    return pf.solve(problem, features, points=6 * features.size // 5, sampling="clustered", tol=np.inf)


def _random(problem: pf.Problem, features: int) -> Evaluate:
    space = pf.RandomFeatures(problem.domain, features, activation="sin", initialisation="uniform", scale=4.0)
    return pf.solve(problem, space, points=6 * features // 5, boundary_points=features // 2, tol=np.inf)


def _from_coarse(problem: pf.Problem, along: int, across: int) -> Evaluate:
    """Newton's iteration in coarse spaces, whose polynomials come first in the fine ones. It needs more points per
    feature at the beginning than at the end."""
    coefficients, solution = np.zeros((0, 3)), None
    stages = ((2 * along // 7, 0.8, 1.2, 3), (4 * along // 7, 0.03, 1.2, 3), (along, 1e-5, 1.1, 2))
    for k, tol, points, around in stages:
        features = pf.Chebyshev(problem.domain, degree=(k, k * across // along))
        start = np.zeros((features.size, 3))
        start[: len(coefficients)] = coefficients
        solution = pf.solve(
            *(problem, features),
            method=pf.Newton(initial=start, tol=tol),
            points=int(points * features.size),
            boundary_points=around * (k * across // along + 1),
            sampling="clustered",
            tol=np.inf,
        )
        coefficients = solution.coefficients
    assert solution is not None
    return solution


def _with_corner(problem: pf.Problem, degree: int) -> Evaluate:
    domain = problem.domain
    features = pf.Concatenate(pf.Chebyshev(domain, degree=degree), pf.CornerFunctions(domain, highest=2.0, degree=0))
    return pf.solve(problem, features, points=2 * features.size, boundary_points=16 * (degree + 1), tol=np.inf)


def _with_holes(problem: pf.Problem, degree: int) -> Evaluate:
    domain = problem.domain
    features = pf.Concatenate(pf.Chebyshev(domain, degree=degree), pf.HoleFunctions(domain, degree))
    return pf.solve(problem, features, points=2 * features.size, boundary_points=features.size, tol=np.inf)


def _with_multipoles(problem: pf.Problem, degree: int) -> Evaluate:
    regions = problem.regions
    assert regions is not None
    plate, inclusion = regions["plate"], regions["inclusion"]
    around = pf.Concatenate(pf.HarmonicPolynomials(plate, degree), pf.HoleFunctions(plate, degree))
    features = {"plate": around, "inclusion": pf.HarmonicPolynomials(inclusion, degree)}
    return pf.solve(problem, features, points=8 * degree, boundary_points=8 * degree, tol=np.inf)


@cache
def _boxes(problem: pf.Problem, digits: int) -> pf.Features:
    return solve_in_boxes(problem, 10.0**-digits).features


def _in_boxes(problem: pf.Problem, digits: int) -> Evaluate:
    return pf.solve(problem, _boxes(problem, digits), tol=np.inf)
