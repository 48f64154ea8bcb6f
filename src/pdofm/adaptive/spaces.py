"""The spaces of polynomials and singular functions that a search tries."""

from functools import lru_cache

import numpy as np

from pdofm.adaptive.singular import singular_functions
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Average, Difference, Term
from pdofm.discrete.defaults import shared
from pdofm.domain import Domain, Regions, corners
from pdofm.features import (
    Chebyshev,
    Concatenate,
    Features,
    HarmonicPolynomials,
    RegionFeatures,
    polynomial_degree,
)
from pdofm.problem.problem import Problem

HOLE_SHARE = 0.75
"""The degree of the functions around holes, as a part of the degree that all features would have as polynomials."""

PLAIN, AROUND = 3, 2
"""Where harmonic polynomials have the degree k, other polynomials have k / `PLAIN`, which is for a source that is
constant, and multipoles around holes k / `AROUND`."""

APART = 1e-6
"""A corner of a region is none of its neighbours if it is farther from them than this, in sizes of the domain."""

MOST_DIMENSIONS = 3
"""The largest dimension in which problems are solved in boxes."""

FEWEST_PLAIN = 3
"""The lowest degree of these other polynomials."""


def fits_boxes(problem: Problem) -> bool:
    """Whether a problem can be solved in boxes: in at most three dimensions, with local terms only; with several
    regions also without periods and means."""
    dim, space_dim = problem.domain.dim, problem.domain.dim - problem.layout.has_time
    terms = [term for term in problem.terms if not isinstance(term.lhs, Difference)]
    if problem.regions is not None and (
        len(terms) < len(problem.terms) or any(isinstance(t.on, Average) for t in terms)
    ):
        return False
    each = (symbol_of(t.lhs, problem.layout_of(t), dim, space_dim) for t in terms)
    return dim <= MOST_DIMENSIONS and all(symbol.is_computable for symbol in each)


def singular_space(problem: Problem, size: int) -> Features:
    """Polynomials and singular functions, about `size` together, in each region."""
    regions = problem.regions
    if regions is None:
        return _with_singular_functions(problem.domain, size, is_whole=True)
    sizes, found = shared(regions, size), dict[str, Features]()
    for name, term in zip(regions.names, problem.equations, strict=True):
        make = _harmonic if _is_laplacian(problem, term) else _with_singular_functions
        found[name] = make(regions[name], sizes[name], _owns_its_corners(regions, name))
    return RegionFeatures(regions, **found)


def has_singular_space(problem: Problem) -> bool:
    """Whether `singular_space` has more than polynomials for a problem with several regions."""
    assert problem.regions is not None
    harmonic = any(_is_laplacian(problem, term) for term in problem.equations)
    regions = problem.regions
    return harmonic or any(singular_functions(regions[n], 1, _owns_its_corners(regions, n)) for n in regions.names)


def _with_singular_functions(domain: Domain, size: int, is_whole: bool) -> Features:
    """Polynomials, joined with the singular functions of a domain if there are any."""
    degree = round(HOLE_SHARE * polynomial_degree(size, domain.dim))
    singular = singular_functions(domain, degree, is_whole)
    if not singular:
        return Chebyshev(domain, size)
    taken = sum(features.size for features in singular)  # too many for a small budget, which grow() leaves out
    return Concatenate(Chebyshev(domain, max(size - taken, size // 2)), *singular)


def _harmonic(domain: Domain, size: int, is_whole: bool) -> Features:
    """Harmonic polynomials, the singular functions of a domain, and a few other polynomials."""
    degree = FEWEST_PLAIN + 1

    def make(k: int) -> Features:
        plain = max(FEWEST_PLAIN, k // PLAIN)
        parts = [Chebyshev(domain, degree=plain), HarmonicPolynomials(domain, k, plain + 1)]
        return Concatenate(*parts, *singular_functions(domain, max(k // AROUND, 1), is_whole))

    while make(degree + 1).size <= size:
        degree += 1
    return make(degree)


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
