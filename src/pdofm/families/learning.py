"""Features that are learned from solutions: the few functions that represent many of them best."""

from typing import Any

import numpy as np

from pdofm._types import Key
from pdofm.discrete.discretisation import discretise
from pdofm.errors import FeaturesError
from pdofm.families.basis import principal
from pdofm.features import check_count
from pdofm.features.combined import Combined
from pdofm.problem.problem import Problem
from pdofm.solving.solution import Solutions

CONDITIONS = 0.3
"""How much a condition counts, the equation being 1, where each is measured by how much its data vary. For Poisson's
equation a tenth doubles the errors of many functions, and far larger weights spend few functions on the boundary."""

ROUNDING = 1e-10
"""What is smaller than this, relative to features and coefficients, is rounding: left sides that vanish for all
solutions, such as values on a boundary with zero data."""


def learn(solutions: Any, size: int, *, problem: Any = None, target: str = "mean", key: Key = 0) -> Combined:
    """Learn features from many solutions: the `size` combinations that represent all of them best in the norm in which
    the problem is solved, in the order of their importance.

        solver = pf.factor(problem, pf.Chebyshev(problem.domain, 1000))
        features = pf.learn(solver.solve(sources), 200)

    Args:
        solutions: what ``factor(problem, features).solve(sources)`` returns, in a space that resolves them; better
            twice as many as functions are learned.
        size: how many functions are learned.
        problem: the problem that is solved in them, if it is another one, for instance on another domain in the box of
            the features; by default that of the solutions.
        target: "mean" makes the typical error small, "worst" the largest one.
        key: seed of the points.
    """
    if not isinstance(solutions, Solutions):
        raise FeaturesError(
            f"learn() takes the solutions of factor(problem, features).solve(sources); got {type(solutions).__name__}."
        )
    problem = solutions.problem if problem is None else problem
    if not isinstance(problem, Problem):
        raise FeaturesError(f"problem must be a Problem, or left out; got {type(problem).__name__}.")
    m, components, k = solutions.coefficients.shape
    if components != 1:
        raise FeaturesError(
            f"{problem.name!r} has {components} unknown components, which share one set of features. Features are "
            "learned for one unknown."
        )
    if check_count("size", size) > min(k, m):
        raise FeaturesError(
            f"{min(k, m)} functions at most can be learned from {k} solutions in {m} features; got size={size}. "
            "Solve for more right-hand sides."
        )
    columns = solutions.coefficients[:, 0]
    rows = _rows(problem, solutions, columns, key)
    norms = np.linalg.norm(rows, axis=0)
    norms[norms == 0] = 1.0
    found, singular = principal(rows / norms, size, target)
    return Combined(solutions.features, (columns / norms) @ found, singular / singular[0])


def _rows(problem: Problem, solutions: Solutions, columns: np.ndarray, key: Key) -> np.ndarray:
    """The left sides of all solutions (columns of coefficients) at points, each term divided by the size of all of its
    left sides together."""
    found = discretise("learn", problem, solutions.features, None, None, "sobol", key)
    system = found.system(found.zero(), found.blocks, fold=False)
    rows = (system.A @ columns) / system.scales[:, None]
    for name, at in system.rows.items():
        bound = np.linalg.norm(system.A[at] / system.scales[at, None]) * np.linalg.norm(columns)
        size = max(float(np.linalg.norm(rows[at])), ROUNDING * bound, np.finfo(float).tiny)
        rows[at] *= (1.0 if name.startswith("equation") else CONDITIONS) / size
    return rows
