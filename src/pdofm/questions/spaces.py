"""The spaces in which eigenvalues are looked for, one family after the other: the same as in a search for a solution.

Polynomials come first, but for the Laplacian in domains with corners whose angle does not divide π. There
eigenfunctions are series of Bessel functions J_α(kr) sin(αθ), so polynomials are joined with r^α times powers of r².
Around round holes they are series of Y_m(kr) cos(mθ), so polynomials are joined with multipoles times powers of r².
For other operators functions r^α times polynomials follow at re-entrant corners. Polynomials in boxes are last; those
boxes are taken that resolve the solution of a source problem, (operator - σ mass) u = mass f, with f as wavy as the
eigenfunctions.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from pdofm.adaptive.boxes import spaces_in_boxes
from pdofm.adaptive.schedule import sizes
from pdofm.adaptive.singular import COINCIDENT, changes_of_kind
from pdofm.adaptive.spaces import fits_boxes
from pdofm.domain import Domain, corners, round_holes
from pdofm.features import Chebyshev, Concatenate, CornerFunctions, Features, Fourier, HoleFunctions
from pdofm.problem.conditions import Periodic
from pdofm.problem.problem import Problem

CORNER_SPACES = ((250, 4.0, 5), (400, 6.0, 6), (600, 6.0, 6), (900, 8.0, 7))
"""Polynomials, the highest exponent of corner functions, and the degree of the polynomials that these are multiplied
by, in one space after the other."""

RADIAL_SPACES = (
    *((200, 6.0, 6), (350, 10.0, 8), (450, 12.0, 10), (550, 14.0, 10)),
    *((680, 16.0, 12), (800, 18.0, 12), (1100, 22.0, 14)),
)
"""Polynomials, the highest exponent of radial corner functions, and the highest power of r that these are multiplied
by, in one space after the other."""

HOLE_SPACES = ((100, 6, 3), (160, 9, 5), (250, 12, 7), (400, 16, 9), (600, 20, 11))
"""Polynomials, the degree of the functions of holes, and the highest power of r² that these are multiplied by, in one
space after the other."""

GROWTH = {1: 1.4, 2: 1.4, 3: 1.8}
"""Ratio of the sizes of consecutive spaces of polynomials, by dimension: two degrees at least. The last one confirms
the one before, so small steps pay."""

BOX_TOLERANCES, FINEST = ((10.0, 0.1), (0.01, 0.001), (1e-6,)), 1e-13
"""Tolerances for the source problem that chooses boxes, relative to that of the eigenvalues, in one run after another,
and the smallest. The last run is for a first space that does so much better than it must that no other follows."""

WAVES = 3
"""Plane waves in the source of that problem."""

BOX_SECONDS = 60.0
"""Seconds of work on the choice of boxes after which it begins no new round."""


@dataclass(frozen=True)
class Space:
    """A space with the name of its family, and how its points are placed."""

    name: str
    features: Features
    sampling: str = "clustered"


Family = Callable[[], Iterator[Space]]


@dataclass(frozen=True, eq=False)
class Wanted:
    """What spaces are made for.

    Attributes:
        problem: the problem.
        largest: features of a space with one dense matrix, at most.
        fewest: polynomials below which none of the wanted eigenfunctions can be resolved.
        is_isotropic: whether the equation is Δu = c u with a number c.
        tol: the relative error of eigenvalues that is required.
        shifted: the source problem (operator - σ mass) u = mass f for a function f of the point.
        waves: the wave number of the eigenfunctions, as far as it is known.
    """

    problem: Problem
    largest: int
    fewest: int
    is_isotropic: bool
    tol: float
    shifted: Callable[[Any], Problem]
    waves: Callable[[], float]


def families(wanted: Wanted) -> list[Family]:
    """The families of spaces for a problem."""
    problem, largest = wanted.problem, wanted.largest
    found: list[Family] = []
    if _is_periodic(problem):
        found.append(lambda: _fourier(problem, largest))
    if wanted.is_isotropic and next(_with_radial_functions(problem, largest), None) is not None:
        found.append(lambda: _with_radial_functions(problem, largest))
    if problem.domain.dim in (2, 3) and round_holes(problem.domain):
        found.append(lambda: _with_holes(problem, largest))
    found.append(lambda: _polynomials(problem, largest, wanted.fewest))
    if any(corner.angle > math.pi + 1e-9 for corner in _corners(problem)):
        found.append(lambda: _with_corners(problem, largest))
    if fits_boxes(problem):
        found.append(lambda: _boxes(wanted))
    return found


def _corners(problem: Problem) -> list[Any]:
    return list(corners(problem.domain)) if problem.domain.dim == 2 and not problem.layout.has_time else []


def _is_periodic(problem: Problem) -> bool:
    axes = {condition.axis for condition in problem.stated if isinstance(condition, Periodic)}
    return axes == set(range(problem.domain.dim))


def _fourier(problem: Problem, largest: int) -> Iterator[Space]:
    for size in sizes(problem.domain.dim, largest, GROWTH[min(problem.domain.dim, 3)]):
        yield Space("Fourier", Fourier(problem.domain, size, kind="tensor"), "sobol")


def _polynomials(problem: Problem, largest: int, fewest: int) -> Iterator[Space]:
    for size in sizes(problem.domain.dim, largest, GROWTH[min(problem.domain.dim, 3)]):
        if size >= min(fewest, largest):
            yield Space("polynomials", Chebyshev(problem.domain, size))


def _with_radial_functions(problem: Problem, largest: int) -> Iterator[Space]:
    """Polynomials and radial corner functions; none where all exponents are integers."""
    found = _corners(problem)
    mixed = bool(found) and bool(changes_of_kind(problem, COINCIDENT * problem.domain.size))
    exponents = [math.pi / corner.angle / (2 if mixed else 1) for corner in found]
    if all(abs(each - round(each)) < 1e-9 for each in exponents):
        return
    for count, highest, degree in RADIAL_SPACES:
        options = {"highest": highest, "degree": degree, "convex": True, "mixed": mixed, "radial": True}
        singular = CornerFunctions(problem.domain, **options)
        if count + singular.size <= largest:
            yield Space("polynomials and radial functions", Concatenate(Chebyshev(problem.domain, count), singular))


def _with_holes(problem: Problem, largest: int) -> Iterator[Space]:
    """Polynomials and functions that are singular in round holes."""
    for count, degree, powers in HOLE_SPACES:
        around = HoleFunctions(problem.domain, degree, powers)
        if count + around.size <= largest:
            yield Space("polynomials and hole functions", Concatenate(Chebyshev(problem.domain, count), around))


def _with_corners(problem: Problem, largest: int) -> Iterator[Space]:
    for count, highest, degree in CORNER_SPACES:
        singular = CornerFunctions(problem.domain, highest=highest, degree=degree)
        if count + singular.size <= largest:
            yield Space("polynomials and corner functions", Concatenate(Chebyshev(problem.domain, count), singular))


def _boxes(wanted: Wanted) -> Iterator[Space]:
    of_waves = wanted.shifted(_waves(wanted.problem.domain, wanted.waves()))
    known: set[bytes] = set()  # equal spaces would confirm each other
    for factors in BOX_TOLERANCES:
        if factors == BOX_TOLERANCES[-1] and len(known) > 1:
            return
        tols = [max(factor * wanted.tol, FINEST) for factor in factors]
        for features in spaces_in_boxes(of_waves, tols, max_seconds=BOX_SECONDS):
            patches = features.patches
            key = np.hstack([patches.lower, patches.upper, features.degrees]).tobytes()
            if key not in known:
                known.add(key)
                yield Space("polynomials in boxes", features)


def _waves(domain: Domain, wave_number: float) -> Callable[[Any], Any]:
    """A function of the point: plane waves in several directions."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((WAVES, domain.dim))
    k = jnp.asarray(wave_number * directions / np.linalg.norm(directions, axis=1, keepdims=True))
    phases = jnp.asarray(rng.uniform(0, 2 * np.pi, WAVES))
    return lambda z: jnp.sum(jnp.cos(k @ z + phases))
