"""Where several regions, or an interface and the boundary, meet in a point: how singular a solution is there.

Around such a point the regions are sectors. With a flux k ∂u/∂n in each of them, a solution behaves like r^α w(θ) with

    -(k w')' = α² k w,

w and k w' continuous from sector to sector, and w = 0 or w' = 0 at the ends of the sectors that lie on the boundary.
The smallest α > 0 follows from the eigenvalues of a small matrix.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.polynomial import chebyshev
from scipy.linalg import eigh

from pdofm._types import Points, Vector
from pdofm.calculus.jets import unit
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Term
from pdofm.domain import Part, Piece, Regions
from pdofm.numerics.nodes import gauss
from pdofm.problem.conditions import Value
from pdofm.problem.interface import FluxJump
from pdofm.problem.problem import Problem

COINCIDENT = 1e-9
"""Points nearer than this, relative to the domain, are one."""

RADIUS = 1e-6
"""Radius of the circle, relative to the domain, on which sectors are looked for: curves are straight within it."""

DIRECTIONS = 720
"""Directions in which the regions around a point are looked at first."""

STRAIGHT = 1e-3
"""An interface that turns by less than this, in radians, is smooth at a point."""

DEGREE, WIDEST = 10, math.pi / 4
"""Degree of the polynomials for w, and the widest part of a sector that one of them is used in."""

ZERO = 1e-8
"""Eigenvalues below this belong to constants."""

IN_SYSTEMS = 0.5
"""Exponent that is assumed for systems."""


@dataclass(frozen=True)
class Sector:
    """A sector around a point: the number of its region, and the angles that it lies between."""

    region: int
    start: float
    end: float

    @property
    def angle(self) -> float:
        return self.end - self.start


def exponent(sectors: Sequence[tuple[float, float]], ends: tuple[bool, bool] | None = None) -> float:
    """The smallest positive exponent α of solutions r^α w(θ) in sectors, given by their angles and coefficients k in
    their order. `ends` says whether w is given (else k w') at the two ends; None closes the circle."""
    parts = [(a / n, k) for a, k in sectors for n in [math.ceil(a / WIDEST)] for _ in range(n)]
    size = len(parts) * DEGREE + 1
    nodes = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2
    at, weights = np.polynomial.legendre.leggauss(DEGREE + 2)
    at, weights = (at + 1) / 2, weights / 2
    powers = np.linalg.inv(chebyshev.chebvander(2 * nodes - 1, DEGREE))
    values = chebyshev.chebvander(2 * at - 1, DEGREE) @ powers
    slopes = np.stack([chebyshev.chebval(2 * at - 1, 2 * chebyshev.chebder(c)) for c in powers.T])
    stiff, mass = np.zeros((size, size)), np.zeros((size, size))
    for i, (angle, k) in enumerate(parts):
        here = slice(i * DEGREE, (i + 1) * DEGREE + 1)
        stiff[here, here] += k / angle * (slopes * weights) @ slopes.T
        mass[here, here] += k * angle * (values.T * weights) @ values
    if ends is None:  # the last node is the first one
        fold = np.eye(size, size - 1)
        fold[-1, 0] = 1.0
        stiff, mass = fold.T @ stiff @ fold, fold.T @ mass @ fold
    else:
        kept = slice(1 if ends[0] else 0, size - 1 if ends[1] else size)
        stiff, mass = stiff[kept, kept], mass[kept, kept]
    scale = 1 / np.sqrt(np.diagonal(mass))
    found = eigh(scale[:, None] * stiff * scale, scale[:, None] * mass * scale, eigvals_only=True)
    return math.sqrt(float(np.min(found[found > ZERO])))


def sectors_at(regions: Regions, point: Vector, radius: float) -> list[list[Sector]]:
    """The sectors around a point in their order: a list for each group of them that the outside separates, or one that
    closes the circle."""

    def which(angles: Vector) -> np.ndarray:
        level = regions.levels(point + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1))
        return np.where(level.max(axis=0) > 0, np.argmax(level, axis=0), -1)

    angles = 2 * math.pi * (np.arange(DIRECTIONS + 1) + 0.123) / DIRECTIONS
    found = which(angles)
    changes = np.flatnonzero(found[1:] != found[:-1])
    low, high = angles[changes], angles[changes + 1]
    for _ in range(50):
        middle = (low + high) / 2
        same = which(middle) == found[changes]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    cuts = (low + high) / 2
    if len(cuts) == 0:
        return [[Sector(int(found[0]), 0.0, 2 * math.pi)]] if found[0] >= 0 else []
    numbers = found[changes + 1].tolist()
    following = [*cuts[1:], cuts[0] + 2 * math.pi]
    every = [Sector(n, float(a), float(b)) for n, a, b in zip(numbers, cuts, following, strict=True)]
    if all(sector.region >= 0 for sector in every):
        return [every]
    first = next(i for i, sector in enumerate(every) if sector.region < 0)
    groups: list[list[Sector]] = [[]]
    for sector in (*every[first:], *every[:first]):
        if sector.region < 0:
            groups.append([])
        else:
            groups[-1].append(sector)
    return [group for group in groups if group]


def material_points(problem: Problem) -> list[tuple[Vector, float]]:
    """The points of a plane domain with several regions where its solution may be singular, with their exponents."""
    regions = problem.regions
    if regions is None or problem.domain.dim != 2 or problem.domain.has_time:
        return []
    ends = _ends(problem)
    near, found = COINCIDENT * problem.domain.size, []
    for point in _distinct(np.array([each for each, _, _ in ends]).reshape(-1, 2), near):
        here = [(direction, term) for each, direction, term in ends if math.dist(each, point) <= near]
        groups = sectors_at(regions, point, RADIUS * problem.domain.size)
        exponents = [_exponent_of(problem, group, here) for group in groups]
        known = [each for each in exponents if each is not None]
        if known:
            found.append((point, min(known)))
    return found


def _ends(problem: Problem) -> list[tuple[Vector, float, Term]]:
    """The ends of all curves on which conditions hold, each with the direction of the curve there."""
    found = []
    for term in problem.terms:
        for piece in term.on.pieces if isinstance(term.on, Part) else ():
            if piece.dim == 1 and piece.ends[0]:
                found += [(*each, term) for each in _ends_of(piece)]
    return found


def _ends_of(piece: Piece) -> list[tuple[Vector, float]]:
    points, _ = piece.chart(np.array([[0.0], [1e-6], [1 - 1e-6], [1.0]]))
    along = points[1] - points[0], points[2] - points[3]
    return [(p, math.atan2(d[1], d[0])) for p, d in zip((points[0], points[3]), along, strict=True)]


def _distinct(points: Points, near: float) -> list[Vector]:
    found: list[Vector] = []
    for point in points:
        if all(math.dist(point, other) > near for other in found):
            found.append(point)
    return found


def _exponent_of(problem: Problem, group: Sequence[Sector], here: Sequence[tuple[float, Term]]) -> float | None:
    """The exponent of a group of sectors; None if nothing is singular there."""
    closed = abs(sum(sector.angle for sector in group) - 2 * math.pi) < 1e-9
    if closed and (len(group) == 1 or all(abs(s.angle - math.pi) < STRAIGHT for s in group)):
        return None
    ends = None if closed else (_is_value(here, group[0].start), _is_value(here, group[-1].end))
    alike = ends is not None and ends[0] == ends[1]
    if alike and len(group) == 1 and abs(group[0].angle - math.pi) < STRAIGHT:
        return None
    if problem.layout.components > 1:
        return _in_system(group, closed)
    parts = _coupled(problem, group, here, closed)
    return min(exponent(angles, kinds) for angles, kinds in _wedges(parts, ends))


def _in_system(group: Sequence[Sector], closed: bool) -> float:
    """A guess for displacements and velocities: convex corners of one region are not strongly singular."""
    total = sum(sector.angle for sector in group)
    return math.pi / total if len(group) == 1 and not closed and total < math.pi else IN_SYSTEMS


def _is_value(here: Sequence[tuple[float, Term]], angle: float) -> bool:
    """Whether values are given on the part of the boundary that leaves a point in a direction."""
    kinds = [isinstance(term.lhs, Value) for along, term in here if term.pair is None and _turn(along, angle) < 0.01]
    return any(kinds) if kinds else True


def _turn(a: float, b: float) -> float:
    return abs((a - b + math.pi) % (2 * math.pi) - math.pi)


@dataclass(frozen=True)
class _Part:
    """A sector with its coefficient, and whether it is joined to the following one."""

    angle: float
    k: float
    joined: bool


def _coupled(
    problem: Problem, group: Sequence[Sector], here: Sequence[tuple[float, Term]], closed: bool
) -> list[_Part]:
    """The coefficients of the fluxes of each sector relative to its neighbours; sectors that exchange no flux by
    continuity of values are not joined."""
    assert problem.regions is not None
    names, factors, k = problem.regions.names, [], 1.0
    following = [*group[1:], group[0]] if closed else list(group[1:])
    joined = []
    for one, other in zip(group, following, strict=False):
        ratio = _ratio(problem, (names[one.region], names[other.region]), one.end, here)
        joined.append(ratio is not None)
        factors.append(1.0 if ratio is None else ratio)
    found = []
    for i, sector in enumerate(group):
        found.append(_Part(sector.angle, k, joined[i] if i < len(joined) else False))
        k *= factors[i] if i < len(factors) else 1.0
    return found


def _ratio(problem: Problem, pair: tuple[str, str], angle: float, here: Sequence[tuple[float, Term]]) -> float | None:
    """By how much the coefficient of the flux in the second region of a pair exceeds that in the first one, on the
    interface that leaves a point in a direction."""
    for along, term in here:
        if term.pair in (pair, pair[::-1]) and isinstance(term.lhs, FluxJump) and _turn(along, angle) < 0.01:
            assert isinstance(term.on, Part)
            first, second = _coefficients(problem, term)
            return (second / first if term.pair == pair else first / second) if first * second > 0 else None
    return None


def _coefficients(problem: Problem, term: Term) -> Float[np.ndarray, " 2"]:
    """The factors of ∂u/∂n in the fluxes on both sides of an interface."""
    assert isinstance(term.on, Part)
    points, normals = term.on.pieces[0].chart(gauss(4)[:, None])
    found = symbol_of(term.lhs, problem.layout_of(term), 2, 2).linearise(points, normals)
    if found is None:
        return np.zeros(2)
    total = np.zeros(2)
    for axis in range(2):
        if unit(2, axis) in found.indices:
            at = found.coefficients[:, 0, found.indices.index(unit(2, axis))]
            total += np.mean(np.abs(at * normals[:, [axis]]), axis=0)
    return total


def _wedges(
    parts: Sequence[_Part], ends: tuple[bool, bool] | None
) -> list[tuple[list[tuple[float, float]], tuple[bool, bool] | None]]:
    """Groups of sectors that are joined, with their ends: an interface that does not join is an end with no flux."""
    if ends is None and all(part.joined for part in parts):
        return [([(part.angle, part.k) for part in parts], None)]
    if ends is None:  # begin behind an interface that does not join
        first = next(i for i, part in enumerate(parts) if not part.joined) + 1
        parts, ends = [*parts[first:], *parts[:first]], (False, False)
    found, current, start = [], [], ends[0]
    for i, part in enumerate(parts):
        current.append((part.angle, part.k))
        last = i == len(parts) - 1
        if last or not part.joined:
            found.append((current, (start, ends[1] if last else False)))
            current, start = [], False
    return found
