"""What has no eigenvalues is refused, with the reason."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pdofm.discrete.checks import check_problem
from pdofm.errors import NonlinearError, ProblemError, SolveError
from pdofm.solving.boxes import nonlinear_names
from pdofm.solving.verdict import ROUNDING

MOST_EIGENVALUES = 1000
"""The most eigenvalues that are looked for at once."""


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
    for term in problem.terms:
        numbers = problem.right_side(term).numbers
        if numbers is None or any(numbers):
            what = "source" if term.on is None else f"value of condition {term.name!r}"
            raise ProblemError(
                f"eigs() needs a homogeneous problem, but the {what} of {problem.name!r} is not zero. Eigenvalues "
                "belong to operator(u, x) = λ u with homogeneous conditions: leave the source and the exact solution "
                "out, and set all values to 0.0."
            )
    nonlinear = nonlinear_names(problem)
    if nonlinear:
        raise NonlinearError(
            f"eigs() needs a linear problem, but {' and '.join(map(repr, nonlinear))} of {problem.name!r} is not "
            "linear in the unknown."
        )
    if mass is not None and not callable(mass):
        raise ProblemError(f"mass must be a function such as lambda u, x: u(x); got {type(mass).__name__}.")
    return (lambda u, *args: u(*args)) if mass is None else mass
