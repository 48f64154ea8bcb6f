"""Pictures that follow a handle: the problem is factored once, and every position is one more right-hand side."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pdofm.features import Chebyshev, Features
from pdofm.features.slabs import Slabs
from pdofm.problem.problem import Problem
from pdofm.solving.factored import factor
from pdofm.solving.solution import Solution
from pdofm.studio.statement import Statement
from pdofm.studio.view import COARSE, Grid, finite

MOST_FEATURES = 2000
"""Features of one dense matrix, all components together, at most: with more, a picture takes longer than a tenth of a
second. In boxes there may be more, as their matrix is sparse."""

INSTEAD = 1000
"""Polynomials that are used where the features of the solution cannot be factored."""


class Dragging:
    """A factored problem, and the points of its pictures."""

    def __init__(self, statement: Statement, problem: Problem, solution: Solution):
        self.statement = statement
        self.solver = factor(problem, _features(problem, solution))
        self.grid = Grid(statement.sketch.domain, COARSE)
        self._tables: dict[float | None, np.ndarray] = {}

    def at(self, numbers: Mapping[str, float], time: float | None, index: int) -> dict[str, Any]:
        """The picture for other parameters, with the relative residual at the fitted points."""
        statement, points, normals = self.statement, self.solver.points, self.solver.normals
        every = {**statement.numbers, **numbers}
        data = {row.name: statement.data_at(row, points[row.name], normals[row.name], every) for row in statement.rows}
        many = self.solver.solve(statement.source_at(points["equation"], every), data)
        values = self._values(np.asarray(many.coefficients)[:, :, 0], time)
        shown = self.grid.picture(values[:, index])
        return shown | {"residual": finite(float(many.residuals[0])), "accurate": bool(many.converged[0])}

    def _values(self, coefficients: np.ndarray, time: float | None) -> np.ndarray:
        """Values at the points of the grid; those of the features are kept where they fit a dense matrix."""
        features, points = self.solver.features, self.grid.points(time)
        if features.most_at_a_point < features.size:  # in boxes
            return features.expand(points, [(0,) * features.dim], coefficients)[0]
        if time not in self._tables:
            self._tables.clear()  # one table is enough for one time
            self._tables[time] = features.jets(points, [(0,) * features.dim])[0].astype(np.float32)
        return self._tables[time] @ coefficients.astype(np.float32)


def _features(problem: Problem, solution: Solution) -> Features:
    """The features of the solution, or polynomials if they are too many or change in time."""
    features = solution.features
    is_local = features.most_at_a_point < features.size
    if isinstance(features, Slabs) or (features.size * problem.layout.components > MOST_FEATURES and not is_local):
        return Chebyshev(problem.domain, INSTEAD // problem.layout.components)
    return features
