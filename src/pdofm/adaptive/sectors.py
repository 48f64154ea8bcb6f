"""Where several regions, or an interface and the boundary, meet in a point: how singular a solution is there.

Around such a point the regions are sectors. With a flux k ∂u/∂n in each of them, a solution behaves like r^α w(θ) with

    -(k w')' = α² k w,

w and k w' continuous from sector to sector, and w = 0 or w' = 0 at the ends of the sectors that lie on the boundary.
The exponents α > 0 follow from the eigenvalues of a small matrix. Boxes at such a point have r^α cos(αθ) and
r^α sin(αθ) beside their polynomials.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pdofm._types import Points, Vector
from pdofm.adaptive.exponents import HIGHEST, exponents
from pdofm.calculus.jets import Index, unit
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Term
from pdofm.domain import Part, Piece, Regions
from pdofm.features import SectorFunctions
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

UNKNOWN = 0.5
"""Exponent that is assumed for systems, and where fluxes are no numbers times gradients."""

FACTORS = 2
"""Degree of the polynomials that singular functions are multiplied by where coefficients vary or the equation has terms
of lower order."""

ISOTROPIC = 1e-6
"""Derivatives along an interface in its flux, and differences of second derivatives, are none below this fraction."""

ALONG = 0.01
"""Two directions are the same if they differ by less than this, in radians."""


@dataclass(frozen=True)
class Sector:
    """A sector around a point: the number of its region, and the angles that it lies between."""

    region: int
    start: float
    end: float

    @property
    def angle(self) -> float:
        return self.end - self.start


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


@dataclass(frozen=True, eq=False)
class _End:
    """The end of a curve on which a term holds: the point, the direction of the curve there, and a point of the curve
    nearby with its normal."""

    point: Vector
    direction: float
    near: Points
    normal: Points
    term: Term


def material_points(problem: Problem) -> list[tuple[Vector, float, dict[str, list[SectorFunctions]]]]:
    """The points of a plane domain with several regions where its solution may be singular, with their exponents, and
    the singular functions of each region as far as they are known."""
    regions = problem.regions
    if regions is None or problem.domain.dim != 2 or problem.domain.has_time:
        return []
    ends = _ends(problem)
    near, found = COINCIDENT * problem.domain.size, []
    for point in _distinct(np.array([each.point for each in ends]).reshape(-1, 2), near):
        here = [each for each in ends if math.dist(each.point, point) <= near]
        groups = sectors_at(regions, point, RADIUS * problem.domain.size)
        known = [each for group in groups for each in _wedges_of(problem, group, here)]
        if not known:
            continue
        smallest, functions = min(float(alphas[0]) for _, alphas in known), dict[str, list[SectorFunctions]]()
        for sectors, alphas in known if smallest < 1 - 1e-6 else ():
            for sector in sectors:
                name = regions.names[sector.region]
                degree = _factors(problem, name, point)
                if degree is not None and len(alphas) > 1:
                    middle = (sector.start + sector.end) / 2
                    direction = np.array([math.cos(middle), math.sin(middle)])
                    used = alphas[alphas <= HIGHEST - degree].tolist()
                    made = SectorFunctions(problem.domain, point, direction, used, degree)
                    functions.setdefault(name, []).append(made)
        found.append((point, smallest, functions))
    return found


def _ends(problem: Problem) -> list[_End]:
    """The ends of all curves on which conditions hold."""
    return [
        end
        for term in problem.terms
        for piece in (term.on.pieces if isinstance(term.on, Part) else ())
        if piece.dim == 1 and piece.ends[0]
        for end in _ends_of(piece, term)
    ]


def _ends_of(piece: Piece, term: Term) -> list[_End]:
    points, normals = piece.chart(np.array([[0.0], [1e-6], [1 - 1e-6], [1.0]]))
    found = []
    for end, near in ((0, 1), (3, 2)):
        along = points[near] - points[end]
        found.append(_End(points[end], math.atan2(along[1], along[0]), points[[near]], normals[[near]], term))
    return found


def _distinct(points: Points, near: float) -> list[Vector]:
    found: list[Vector] = []
    for point in points:
        if all(math.dist(point, other) > near for other in found):
            found.append(point)
    return found


def _wedges_of(
    problem: Problem, group: Sequence[Sector], here: Sequence[_End]
) -> list[tuple[Sequence[Sector], Vector]]:
    """The sectors of a group that are joined, with their exponents: only one where no more is known; none if nothing is
    singular there."""
    closed = abs(sum(sector.angle for sector in group) - 2 * math.pi) < 1e-9
    if closed and (len(group) == 1 or all(abs(s.angle - math.pi) < STRAIGHT for s in group)):
        return []
    ends = None if closed else (_is_value(here, group[0].start), _is_value(here, group[-1].end))
    alike = ends is not None and ends[0] == ends[1]
    if alike and len(group) == 1 and abs(group[0].angle - math.pi) < STRAIGHT:
        return []
    if problem.layout.components > 1:
        return [(group, np.array([_in_system(group, closed)]))]
    parts = _coupled(problem, group, here, closed)
    if any(math.isnan(part.k) for part in parts):
        return [(group, np.array([UNKNOWN]))]
    found = []
    for wedge, limits in _wedges(parts, ends):
        found.append(([part.sector for part in wedge], exponents([(p.sector.angle, p.k) for p in wedge], limits)))
    return found


@lru_cache(maxsize=128)
def _symbol_at(problem: Problem, region: str, point: tuple[float, ...]) -> tuple[dict[Index, float], bool] | None:
    """The coefficients of a linear equation of second order at a point of a region, and whether they are constant."""
    number, dim = problem.region_names.index(region), problem.domain.dim
    symbol = symbol_of(problem.equations[number].lhs, problem.layout, dim, dim)
    if not (symbol.is_computable and symbol.is_affine):
        return None
    found = symbol.coefficients(np.array([point]))
    sizes = {index: float(found.coefficients[0, 0, i, 0]) for i, index in enumerate(found.indices)}
    return sizes, symbol.has_constant_coefficients


def _factors(problem: Problem, region: str, point: Vector) -> int | None:
    """The degree of the polynomials that the singular functions of a region are multiplied by; None if its equation is
    not k Δu at the point, apart from terms of lower order."""
    known = _symbol_at(problem, region, tuple(point.tolist()))
    if known is None:
        return None
    sizes, is_constant = dict(known[0]), known[1]
    first, second = sizes.pop((2, 0), 0.0), sizes.pop((0, 2), 0.0)
    mixed = max(abs(each) for index, each in {(1, 1): 0.0, **sizes}.items() if sum(index) >= 2)
    if first == 0 or not math.isfinite(first) or max(abs(first - second), mixed) > ISOTROPIC * abs(first):
        return None
    return 0 if is_constant and not any(sizes.values()) else FACTORS


def _in_system(group: Sequence[Sector], closed: bool) -> float:
    """A guess for displacements and velocities: convex corners of one region are not strongly singular."""
    total = sum(sector.angle for sector in group)
    return math.pi / total if len(group) == 1 and not closed and total < math.pi else UNKNOWN


def _is_value(here: Sequence[_End], angle: float) -> bool:
    """Whether values are given on the part of the boundary that leaves a point in a direction."""
    kinds = [isinstance(e.term.lhs, Value) for e in here if e.term.pair is None and _turn(e.direction, angle) < ALONG]
    return any(kinds) if kinds else True


def _turn(a: float, b: float) -> float:
    return abs((a - b + math.pi) % (2 * math.pi) - math.pi)


@dataclass(frozen=True)
class _Part:
    """A sector with its coefficient, NaN if it is not known, and whether it is joined to the following one."""

    sector: Sector
    k: float
    joined: bool


def _coupled(problem: Problem, group: Sequence[Sector], here: Sequence[_End], closed: bool) -> list[_Part]:
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
        found.append(_Part(sector, k, joined[i] if i < len(joined) else False))
        k *= factors[i] if i < len(factors) else 1.0
    return found


def _ratio(problem: Problem, pair: tuple[str, str], angle: float, here: Sequence[_End]) -> float | None:
    """By how much the coefficient of the flux in the second region of a pair exceeds that in the first one, on the
    interface that leaves a point in a direction; NaN if the fluxes are no numbers times gradients."""
    for end in here:
        term = end.term
        if term.pair in (pair, pair[::-1]) and isinstance(term.lhs, FluxJump) and _turn(end.direction, angle) < ALONG:
            first, second = _coefficients(problem, end)
            if math.isnan(first * second):
                return math.nan
            return (second / first if term.pair == pair else first / second) if first * second > 0 else None
    return None


def _coefficients(problem: Problem, end: _End) -> tuple[float, float]:
    """The factors of ∂u/∂n in the fluxes on both sides of an interface, near its end; NaN where the flux is not one
    along the normal."""
    term = end.term
    found = symbol_of(term.lhs, problem.layout_of(term), 2, 2).linearise(end.near, end.normal)
    if found is None:
        return 0.0, 0.0
    gradient = np.zeros((2, found.coefficients.shape[3]))
    for axis in range(2):
        if unit(2, axis) in found.indices:
            gradient[axis] = found.coefficients[0, 0, found.indices.index(unit(2, axis))]
    along = end.normal[0] @ gradient
    beside = np.array([-end.normal[0, 1], end.normal[0, 0]]) @ gradient
    first, second = np.where(np.abs(beside) <= ISOTROPIC * np.abs(along), np.abs(along), np.nan).tolist()
    return first, second


def _wedges(
    parts: Sequence[_Part], ends: tuple[bool, bool] | None
) -> list[tuple[Sequence[_Part], tuple[bool, bool] | None]]:
    """Groups of sectors that are joined, with their ends: an interface that does not join is an end with no flux."""
    if ends is None and all(part.joined for part in parts):
        return [(parts, None)]
    if ends is None:  # begin behind an interface that does not join
        first = next(i for i, part in enumerate(parts) if not part.joined) + 1
        parts, ends = [*parts[first:], *parts[:first]], (False, False)
    found, current, start = [], [], ends[0]
    for i, part in enumerate(parts):
        current.append(part)
        last = i == len(parts) - 1
        if last or not part.joined:
            found.append((current, (start, ends[1] if last else False)))
            current, start = [], False
    return found
