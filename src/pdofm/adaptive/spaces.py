"""The spaces of polynomials and singular functions that a search tries."""

from functools import lru_cache

import numpy as np

from pdofm.adaptive.singular import EXPONENTS, singular_functions
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Term
from pdofm.discrete.defaults import shared
from pdofm.domain import Domain, Regions, corners, round_holes
from pdofm.domain.holes import RoundHole
from pdofm.features import (
    Chebyshev,
    Concatenate,
    CornerFunctions,
    Features,
    HarmonicPolynomials,
    HoleFunctions,
    RegionFeatures,
    polynomial_degree,
)
from pdofm.problem.problem import Problem

HOLE_SHARE = 0.75
"""The degree of the functions around holes, as a part of the degree that all features would have as polynomials."""

PLAIN, AROUND = 3, 2
"""Beside harmonic polynomials of degree k there are all polynomials up to the degree `PLAIN`, for a source that is
constant; multipoles around holes, and harmonic polynomials in regions that fill a hole, have the degree
k / `AROUND`."""

FILLS = 1e-6
"""A region fills a round hole if its box is that of the hole, up to this fraction of the radius."""

APART = 1e-6
"""A corner of a region is none of its neighbours if it is farther from them than this, in sizes of the domain."""


def harmonic_space(problem: Problem, size: int) -> Features:
    """For k Δu = f with numbers k and f in each region: harmonic functions, about `size` together, and the few
    polynomials that a constant source takes. What is left to satisfy are the conditions."""
    regions = problem.regions
    assert regions is not None
    holes = [hole for region in regions.by_name.values() for hole in round_holes(region)]

    def make(k: int) -> RegionFeatures:
        found = dict[str, Features]()
        for name, region in regions.by_name.items():
            degree = k // AROUND if any(_fills(region, hole) for hole in holes) else k
            found[name] = _harmonic(region, max(degree, PLAIN + 1), k // AROUND, _owns_its_corners(regions, name))
        return RegionFeatures(regions, **found)

    degree = PLAIN + 1
    while make(degree + 1).size <= size:
        degree += 1
    return make(degree)


def has_harmonic_space(problem: Problem) -> bool:
    """Whether a problem has several regions with the equations k Δu = f."""
    return problem.regions is not None and all(_is_laplacian(problem, term) for term in problem.equations)


def singular_space(problem: Problem, size: int) -> Features:
    """Polynomials and singular functions, about `size` together, in each region."""
    regions = problem.regions
    if regions is None:
        return _with_singular_functions(problem.domain, size, is_whole=True)
    sizes = shared(regions, size)
    found = {n: _with_singular_functions(regions[n], sizes[n], _owns_its_corners(regions, n)) for n in regions.names}
    return RegionFeatures(regions, **found)


def has_singular_space(problem: Problem) -> bool:
    """Whether `singular_space` has more than polynomials for a problem with several regions."""
    assert problem.regions is not None
    regions = problem.regions
    return any(singular_functions(regions[n], 1, _owns_its_corners(regions, n)) for n in regions.names)


def _with_singular_functions(domain: Domain, size: int, is_whole: bool) -> Features:
    """Polynomials, joined with the singular functions of a domain if there are any."""
    degree = round(HOLE_SHARE * polynomial_degree(size, domain.dim))
    singular = singular_functions(domain, degree, is_whole)
    if not singular:
        return Chebyshev(domain, size)
    taken = sum(features.size for features in singular)  # too many for a small budget, which grow() leaves out
    return Concatenate(Chebyshev(domain, max(size - taken, size // 2)), *singular)


def _harmonic(domain: Domain, degree: int, around: int, is_whole: bool) -> Features:
    """Harmonic polynomials, multipoles around holes, harmonic functions of corners, and a few other polynomials."""
    parts: list[Features] = [Chebyshev(domain, degree=PLAIN), HarmonicPolynomials(domain, degree, PLAIN + 1)]
    if round_holes(domain):
        parts.append(HoleFunctions(domain, max(around, 1), raised=False))
    if is_whole and corners(domain):
        highest = float(np.clip(degree / 3, *EXPONENTS))
        parts.append(CornerFunctions(domain, convex=True, degree=0, highest=highest))
    return Concatenate(*parts)


def _fills(region: Domain, hole: RoundHole) -> bool:
    """Whether a region has the box of a hole."""
    gaps = np.abs([region.lower - hole.center + hole.radius, region.upper - hole.center - hole.radius])
    return bool(np.max(gaps) <= FILLS * hole.radius)


def _owns_its_corners(regions: Regions, name: str) -> bool:
    """Whether no other region touches a corner of a region."""
    apexes = [corner.apex for corner in corners(regions[name])]
    others = [region for other, region in regions.by_name.items() if other != name]
    near = -APART * regions.size
    return not apexes or all(np.all(region.level(np.array(apexes)) < near) for region in others)


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
