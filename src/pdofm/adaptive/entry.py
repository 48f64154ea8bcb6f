"""solve(): in given features, or in a space that a policy finds for a tolerance."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pdofm._types import Key
from pdofm.adaptive.policy import default_policy
from pdofm.adaptive.search import Policy, Search
from pdofm.adaptive.together import search_together
from pdofm.arguments import explained
from pdofm.errors import ConvergenceWarning, SolveError
from pdofm.features import Features
from pdofm.problem.problem import Problem
from pdofm.solving.fit import fit
from pdofm.solving.methods import Method
from pdofm.solving.solution import Solution
from pdofm.solving.verdict import ROUNDING

MAX_SECONDS = 120.0
"""Default time after which a search begins nothing new."""


@explained
def solve(
    problem: Problem,
    features: Any = None,
    *,
    method: Method | None = None,
    points: int | None = None,
    boundary_points: int | None = None,
    sampling: str | None = None,
    tol: float | None = None,
    key: Key = 0,
    policy: Policy | None = None,
    max_features: int | None = None,
    max_seconds: float | None = None,
    candidates: Sequence[Features] | None = None,
    cluster: Any = None,
) -> Solution:
    """Solve a problem by least squares over features.

    ``solve(problem)`` takes default features, ``solve(problem, features)`` those, and ``solve(problem, tol=1e-8)``
    looks for a space in which the estimated relative error is below the tolerance.

    Args:
        problem: what to solve.
        features: the space to solve in; a number asks for that many features (per component) of the default family,
            which `default_features` makes. With several regions also a dictionary with features for each of them; the
            same features may serve all.
        method: `Linear`, `Newton` or `Picard`, each with its least-squares solver, as in ``Linear(lstsq=SVD())``; by
            default Linear if the problem is linear, else Newton.
        points, boundary_points: how many collocation points inside, and on all parts with conditions together; see
            `default_counts`.
        sampling: "sobol" (the default), "random", "grid" or "clustered".
        tol: the relative error that is required. Without features it is the goal of the search. If the estimate
            misses it, the solution says that it has not converged, with a warning. By default two correct digits are
            required.
        key: seed of features and points.
        policy: which spaces the search tries, by default `default_policy`; ``solution.attempts`` tells what was tried,
            and why.
        max_features, max_seconds: the budget of the search: features per component, by default 2000 in one dense
            matrix and 300 000 unknowns in boxes, and the time after which nothing new is begun, by default 120 (an
            attempt that runs is not interrupted).
        candidates: features that are at hand, trained ones for instance; the search tries them first.
        cluster: a `dask.distributed.Client`; its workers make the rows of the equations, in shares, or search for a
            tolerance side by side (see docs/cluster.md).
    """
    if tol is not None and not (isinstance(tol, int | float | np.number) and tol > 0):
        raise SolveError(f"tol is a relative error and must be a positive number; got {tol!r}.")
    placed = {"points": points, "boundary_points": boundary_points, "sampling": sampling}
    searched = {"policy": policy, "max_features": max_features, "max_seconds": max_seconds, "candidates": candidates}
    if features is None and tol is not None:
        _refuse(placed, "belongs to features that you choose: give them, too")
        given = {name: value for name, value in searched.items() if value is not None}
        solution = _search(problem, tol, method, key, cluster, **given)
    else:
        _refuse(searched, "belongs to a search: give tol=, and no features")
        chosen = {name: value for name, value in placed.items() if value is not None}
        solution = fit(problem, features, method=method, tol=tol, key=key, cluster=cluster, **chosen)
    _warn(solution)
    return solution


def _search(
    problem: Problem,
    tol: float,
    method: Method | None,
    key: Key,
    cluster: Any,
    *,
    policy: Policy | None = None,
    max_features: int | None = None,
    max_seconds: float = MAX_SECONDS,
    candidates: Sequence[Features] = (),
) -> Solution:
    if not ROUNDING <= tol < 1:
        raise SolveError(
            f"A search needs a relative error between {ROUNDING:g}, what rounding allows in float64, and 1; got "
            f"tol={tol:g}."
        )
    if cluster is None:
        return Search(problem, tol, method, key, max_features, max_seconds, candidates).run(policy or default_policy)
    _refuse({"policy": policy}, "belongs to a search in one process: leave cluster= out")
    make = partial(
        Search,
        tol=tol,
        method=method,
        key=key,
        max_features=max_features,
        max_seconds=max_seconds,
        candidates=candidates,
    )
    return search_together(problem, make, cluster)


def _warn(solution: Solution) -> None:
    """Point out a solution that has not converged, and one that is zero."""
    name = solution.problem.name
    if not solution.converged:
        warnings.warn(
            f"The solution of {name!r} has not converged: {solution.reason}.", ConvergenceWarning, stacklevel=4
        )
    elif not solution.coefficients.any() and not solution(solution.problem.domain.sample(8)).any():
        warnings.warn(
            f"The solution of {name!r} is zero, as all of its data are. Was a source or a value forgotten?",
            stacklevel=4,
        )


def _refuse(arguments: dict[str, Any], why: str) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise SolveError(f"{name}= {why}; or leave it out.")
