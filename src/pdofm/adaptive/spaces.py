"""The spaces of polynomials and singular functions that a search tries."""

import numpy as np

from pdofm.adaptive.singular import singular_functions
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Average, Difference
from pdofm.discrete.defaults import shared
from pdofm.domain import Domain, Regions, corners
from pdofm.features import (
    Chebyshev,
    Concatenate,
    Features,
    RegionFeatures,
    polynomial_degree,
)
from pdofm.problem.problem import Problem

HOLE_SHARE = 0.75
"""The degree of the functions around holes, as a part of the degree that all features would have as polynomials."""

APART = 1e-6
"""A corner of a region is none of its neighbours if it is farther from them than this, in sizes of the domain."""

MOST_DIMENSIONS = 3
"""The largest dimension in which problems are solved in boxes."""


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
    sizes = shared(regions, size)
    found = {n: _with_singular_functions(regions[n], sizes[n], owns_its_corners(regions, n)) for n in regions.names}
    return RegionFeatures(regions, **found)


def has_singular_space(problem: Problem) -> bool:
    """Whether `singular_space` has more than polynomials for a problem with several regions."""
    assert problem.regions is not None
    regions = problem.regions
    return any(singular_functions(regions[n], 1, owns_its_corners(regions, n)) for n in regions.names)


def _with_singular_functions(domain: Domain, size: int, is_whole: bool) -> Features:
    """Polynomials, joined with the singular functions of a domain if there are any."""
    degree = round(HOLE_SHARE * polynomial_degree(size, domain.dim))
    singular = singular_functions(domain, degree, is_whole)
    if not singular:
        return Chebyshev(domain, size)
    taken = sum(features.size for features in singular)  # too many for a small budget, which grow() leaves out
    return Concatenate(Chebyshev(domain, max(size - taken, size // 2)), *singular)


def owns_its_corners(regions: Regions, name: str) -> bool:
    """Whether no other region touches a corner of a region."""
    apexes = [corner.apex for corner in corners(regions[name])]
    others = [region for other, region in regions.by_name.items() if other != name]
    near = -APART * regions.size
    return not apexes or all(np.all(region.level(np.array(apexes)) < near) for region in others)
