"""Spaces of harmonic functions, for Laplace's equation in each of several regions.

Harmonic polynomials, multipoles around round holes and singular functions of corners satisfy the equation, so that only
the conditions are left to satisfy. There are few of them, and high degrees can be afforded. How high they must be in
which region shows in the solution: they are raised where conditions are missed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pdofm.adaptive.search import Search
from pdofm.adaptive.singular import EXPONENTS
from pdofm.adaptive.spaces import owns_its_corners
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Average, Difference, Term
from pdofm.discrete.stiffness import amplifications
from pdofm.domain import Domain, Part, corners, round_holes
from pdofm.features import (
    Concatenate,
    CornerFunctions,
    Features,
    HarmonicPolynomials,
    HoleFunctions,
    Mirrored,
    RegionFeatures,
)
from pdofm.features.byregion import regions_of
from pdofm.problem.conditions import Value
from pdofm.problem.interface import FluxJump
from pdofm.problem.problem import Problem
from pdofm.solving.solution import Solution

FIRST = {2: (8, 4), 3: (6, 4)}
"""The first degrees of harmonic polynomials and of multipoles, by dimension."""

RAISED = 1.5
"""A degree that is too low is multiplied by this, and raised by one."""

INSIDE, AROUND = 1, 6
"""Points inside and on boundaries, per function: nearly all functions satisfy the equation, so that the boundaries
determine them."""

MATTERS = 0.1
"""A degree is raised if the conditions that it serves are missed by this fraction of what the worst is missed by."""

FALLS = 3.0
"""Higher degrees pay as long as one of two consecutive steps divides the smallest estimate by this: steps are small and
some raise only what hardly mattered."""

PROBES, ON_HOLE, ON_FACE = 16, 1e-9, 1e-12
"""Points that tell where a condition holds, and how near they lie to a round hole or to a face of the box of a region,
in sizes of the region."""


@dataclass(frozen=True)
class Degrees:
    """The degrees of harmonic polynomials and of multipoles in a region."""

    polynomials: int
    multipoles: int


def has_harmonic_regions(problem: Problem) -> bool:
    """Whether a problem has several regions, with equations k Δu = f with numbers k and f."""
    return problem.regions is not None and all(_is_laplacian(problem, term) for term in problem.equations)


def grow_harmonic_functions(search: Search, why: str) -> None:
    """Try spaces of harmonic functions of higher and higher degrees, as long as that pays."""
    regions = search.problem.regions
    assert regions is not None
    degrees = dict.fromkeys(regions.names, Degrees(*FIRST[regions.dim]))
    estimates: list[float] = []
    while not search.over:
        features = harmonic_space(search.problem, degrees)
        if features.size > search.max_features:
            return
        counts = INSIDE * features.size, AROUND * features.size
        found = search.attempt("harmonic functions", why, features, "clustered", counts)
        if found is None:
            return
        estimates.append(found.error_estimate)
        if len(estimates) > 3 and min(estimates[-2:]) > min(estimates[:-2]) / FALLS:
            return
        degrees = _raised(search.problem, degrees, found)


def harmonic_space(problem: Problem, degrees: Mapping[str, Degrees]) -> RegionFeatures:
    """Harmonic functions of given degrees in each region."""
    regions = problem.regions
    assert regions is not None
    return RegionFeatures(regions, **{name: _of_region(problem, name, degrees[name]) for name in regions.names})


def _of_region(problem: Problem, name: str, degrees: Degrees) -> Features:
    regions = problem.regions
    assert regions is not None
    domain = regions[name]
    parts: list[Features] = [HarmonicPolynomials(domain, degrees.polynomials, raised=True)]
    if round_holes(domain):
        multipoles = HoleFunctions(domain, degrees.multipoles, powers=0)
        below, above = _mirrors(problem, name)
        parts.append(multipoles)
        if any((*below, *above)):
            parts.append(Mirrored(multipoles, below, above))
    if corners(domain) and owns_its_corners(regions, name):
        steepest = float(np.clip(degrees.polynomials / 3, *EXPONENTS))
        parts.append(CornerFunctions(domain, convex=True, degree=0, highest=steepest))
    return Concatenate(*parts)


@lru_cache(maxsize=128)
def _mirrors(problem: Problem, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The signs of mirror images in the lower and the upper faces of the box of a region: -1 for a face on which values
    are given, 1 for one with other conditions, 0 for one without conditions, or with both kinds."""
    domain = problem.domain if problem.regions is None else problem.regions[name]
    near, sides = ON_FACE * domain.size, (domain.lower, domain.upper)
    kinds: list[list[set[int]]] = [[set() for _ in range(domain.dim)] for _ in sides]
    for term in problem.terms:
        if term.region == name and isinstance(term.on, Part):
            points, _ = term.on.sample(PROBES * domain.dim)
            for side, at in zip(kinds, sides, strict=True):
                for axis in np.flatnonzero(np.any(np.abs(points - at) < near, axis=0)).tolist():
                    side[axis].add(-1 if isinstance(term.lhs, Value) else 1)
    below, above = (tuple(each.copy().pop() if len(each) == 1 else 0 for each in side) for side in kinds)
    return below, above


def _raised(problem: Problem, degrees: Mapping[str, Degrees], found: Solution) -> dict[str, Degrees]:
    """Higher degrees where a solution misses its conditions: of multipoles at the holes of a region, of polynomials at
    the rest of its boundary."""
    regions = problem.regions
    assert regions is not None
    missed: dict[tuple[str, bool], float] = {}
    for term in problem.terms:
        if term.on is not None and not isinstance(term.on, Average) and term.name in found.stats.residuals:
            error = found.stats.residuals[term.name].held_out / _size(problem, term)
            for name in regions_of(term):
                here = name, _lies_on_holes(regions[name], term)
                missed[here] = max(missed.get(here, 0.0), error)
    least = MATTERS * max(missed.values(), default=0.0)

    def higher(name: str, at_holes: bool, degree: int) -> int:
        return int(RAISED * degree) + 1 if missed.get((name, at_holes), 0.0) >= least else degree

    return {
        name: Degrees(higher(name, False, each.polynomials), higher(name, True, each.multipoles))
        for name, each in degrees.items()
    }


def _size(problem: Problem, term: Term) -> float:
    """How large the left side of a condition is per unknown or derivative; fluxes that are amplified count more."""
    if isinstance(term.lhs, Difference):
        return 1.0
    at, normals = term.on.sample(PROBES) if isinstance(term.on, Part) else (np.asarray(term.on)[:PROBES], None)
    normals = np.zeros_like(at) if normals is None else normals
    found = symbol_of(term.lhs, problem.layout_of(term), at.shape[1], at.shape[1]).linearise(at, normals)
    largest = 0.0 if found is None else float(np.max(np.abs(found.coefficients), initial=0.0))
    factors = dict(zip(problem.region_names, amplifications(problem).tolist(), strict=True))
    gain = max(factors[name] for name in regions_of(term)) if isinstance(term.lhs, FluxJump) else 1.0
    return largest / gain if largest > 0 else 1.0


def _lies_on_holes(region: Domain, term: Term) -> bool:
    """Whether a condition holds on round holes of a region."""
    if not isinstance(term.on, Part):
        return False
    points, near = term.on.sample(PROBES)[0], ON_HOLE * region.size
    gaps = [np.abs(np.linalg.norm(points - hole.center, axis=1) - hole.radius) for hole in round_holes(region)]
    return bool(gaps) and bool(np.all(np.min(gaps, axis=0) < near))


@lru_cache(maxsize=128)
def _is_laplacian(problem: Problem, term: Term) -> bool:
    """Whether an equation is k Δu = f with numbers k and f."""
    dim, layout = problem.domain.dim, problem.layout
    symbol = symbol_of(term.lhs, layout, dim, dim - layout.has_time)
    is_plain = layout.components == 1 and not layout.has_time and dim in (2, 3)
    if not (is_plain and symbol.is_computable and symbol.is_affine and symbol.has_constant_coefficients):
        return False
    if problem.right_side(term).numbers is None:
        return False
    found = symbol.coefficients(problem.domain_of(term).sample(1))
    sizes = {index: float(found.coefficients[0, 0, i, 0]) for i, index in enumerate(found.indices)}
    pure = [sizes.pop(tuple(2 * int(axis == i) for i in range(dim)), 0.0) for axis in range(dim)]
    rest = max((abs(each) for each in sizes.values()), default=0.0)
    return pure[0] != 0 and bool(np.allclose(pure, pure[0], rtol=1e-12)) and rest <= 1e-12 * abs(pure[0])
