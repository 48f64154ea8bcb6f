"""Which problems can be solved in boxes."""

from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Average, Difference
from pdofm.problem.problem import Problem

MOST_DIMENSIONS = 3
"""Dimensions of the boxes, time included, at most."""


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
