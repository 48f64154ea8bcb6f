"""What has no eigenvalues is refused, with the reason."""

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Difference
from pdofm.discrete.assemble import left_values
from pdofm.discrete.checks import check_problem
from pdofm.discrete.collocate import collocate
from pdofm.discrete.leftsides import entries
from pdofm.discrete.right import right_values
from pdofm.errors import NonlinearError, ProblemError, SolveError
from pdofm.features import Chebyshev
from pdofm.problem.conditions import Initial
from pdofm.problem.problem import Problem
from pdofm.solving.boxes import nonlinear_names
from pdofm.solving.verdict import ROUNDING

MOST_EIGENVALUES = 1000
"""The most eigenvalues that are looked for at once."""

LOOKED_AT = 4000
"""Points at which the data are looked at, inside the domain and on its boundary: a source may be narrow."""

NOTHING = 1e-14
"""Data below this fraction of the left side of a polynomial are zero up to rounding."""


def checked(problem: Any, k: Any, near: Any, tol: Any, mass: Any) -> Callable[..., Any]:
    """The mass of an eigenvalue problem; raise if a problem or an argument of `eigs` makes no sense."""
    check_problem("eigs", problem)
    if problem.regions is not None:
        raise ProblemError(
            f"eigs() cannot solve problems with several regions; {problem.name!r} has {list(problem.regions.names)}. "
            "Use one domain, with coefficients that depend on the point where they are smooth."
        )
    if not isinstance(k, int | np.integer) or k < 1:
        raise SolveError(f"k is the number of eigenvalues and must be an integer of at least 1; got {k!r}.")
    if k > MOST_EIGENVALUES:
        raise SolveError(f"k is the number of eigenvalues and must be at most {MOST_EIGENVALUES}; got {k!r}.")
    if not isinstance(tol, int | float) or not ROUNDING <= tol < 1:
        raise SolveError(f"tol is a relative error and must lie between {ROUNDING:g} and 1; got {tol!r}.")
    if not isinstance(near, int | float | complex | np.number) or not np.isfinite(near):
        raise SolveError(f"near must be a finite number, real or complex; got {near!r}.")
    if any(isinstance(condition, Initial) for condition in problem.stated):
        raise ProblemError(
            f"eigs() needs a problem in space, but {problem.name!r} has initial values. For solutions exp(λ t) u(x) of "
            "an evolution state the problem for u alone, on the domain without the time."
        )
    nonlinear = nonlinear_names(problem)
    if nonlinear:
        raise NonlinearError(
            f"eigs() needs a linear problem, but {' and '.join(map(repr, nonlinear))} of {problem.name!r} is not "
            "linear in the unknown."
        )
    _check_homogeneous(problem)
    if mass is not None and not callable(mass):
        raise ProblemError(f"mass must be a function such as lambda u, x: u(x); got {type(mass).__name__}.")
    return _identity if mass is None else mass


def _identity(u: Any, *args: Any) -> Any:
    """The mass that eigenvalues have if no other is given; one function, so that it is compiled once."""
    return u(*args)


def _check_homogeneous(problem: Problem) -> None:
    """Raise if u = 0 does not satisfy the equation and the conditions: with a source, with values of conditions, or
    with terms without u in the operator or in a residual."""
    layout, dim = problem.layout, problem.domain.dim
    terms = [term for term in problem.terms if not isinstance(term.lhs, Difference)]
    order = max(symbol_of(term.lhs, problem.layout_of(term), dim, dim - layout.has_time).order for term in terms)
    few = Chebyshev(problem.domain, comb(max(order, 1) + dim, dim))  # no derivative in the equation vanishes
    zero = np.zeros((few.size, layout.components))
    for block in collocate(problem, LOOKED_AT, LOOKED_AT):
        left = left_values(layout, few, block, zero)
        size = np.max(np.abs(left_values(layout, few, block, zero + 1.0) - left))
        right = block.averaged(right_values(layout, block, entries(layout, block)))
        name = f"condition {block.term.name!r}"
        data, own = ("source", "operator") if block.term.on is None else (f"value of {name}", f"residual of {name}")
        for found, what in ((right, data), (left, f"{own} at u = 0")):
            if np.max(np.abs(found)) > NOTHING * size:
                raise ProblemError(
                    f"eigs() needs a homogeneous problem, but the {what} of {problem.name!r} is not zero. "
                    "Eigenvalues belong to operator(u, x) = λ u with homogeneous conditions: leave the source, the "
                    "exact solution and all terms without u out, and set all values to 0.0."
                )
