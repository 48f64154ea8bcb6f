"""The verifier of a search: checks answers at points that were not fitted, and compares them with each other.

An error estimate alone can be fooled by a layer or a source that lies between the collocation points. So the equation
is checked on a dense set of points, and solutions in two spaces must agree.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.calculus.symbol import symbol_of
from pdofm.discrete.assemble import left_values
from pdofm.discrete.collocate import Block, collocate, interior_of
from pdofm.discrete.evaluate import evaluate
from pdofm.discrete.leftsides import entries
from pdofm.discrete.right import right_values
from pdofm.features.boxes import InBoxes
from pdofm.problem.problem import Problem
from pdofm.solving.solution import Solution
from pdofm.solving.steep import term_sizes
from pdofm.solving.verdict import HIDDEN

DENSE_POINTS = 20_000
"""Points of the dense check: in one dimension a detail of a thousandth of the interval contains about twenty."""

NOISE = 1e-9
"""A right side below this fraction of the terms of the equation is their rounding error."""

IN_A_BOX, SEEN = 40, 4.0
"""Points in a box at which its residual is looked at, and how many times larger one must be elsewhere to count as not
seen."""

AGREEMENT_POINTS = 1000
"""Points at which solutions are compared."""


class Verifier:
    """The dense points of a problem, with its right side there."""

    def __init__(self, problem: Problem, seed: int):
        self.problem, self.seed = problem, seed
        self._compared = problem.domain.sample(AGREEMENT_POINTS, "random", key=seed)
        self._last: tuple[Solution, float] | None = None

    def values(self, solution: Solution) -> Float[np.ndarray, "n C"]:
        """A solution at the points at which solutions are compared."""
        return evaluate(solution.features, solution.coefficients, self._compared)

    @cached_property
    def _dense(self) -> tuple[list[Block], Float[np.ndarray, "n k"]]:
        """The equation, or those of the regions, at the dense points, and the right sides there."""
        layout = self.problem.layout
        found = collocate(self.problem, DENSE_POINTS, 1, sampling="random", key=self.seed)
        blocks = [block for block in found if block.term.on is None]
        return blocks, np.concatenate([right_values(layout, block, entries(layout, block)) for block in blocks])

    @cached_property
    def points(self) -> Points:
        """The dense points, inside the domain."""
        return interior_of(self._dense[0])

    @property
    def right(self) -> Float[np.ndarray, "n k"]:
        """The right side of the equation at the dense points."""
        return self._dense[1]

    def residual(self, solution: Solution, count: int = DENSE_POINTS) -> Float[np.ndarray, "n k"]:
        """Left minus right side of the equation at the dense points, or at the first `count` of them in each region."""
        found, start = [], 0
        for block in self._dense[0]:
            right = self.right[start : start + len(block.points)][:count]
            found.append(self._left(solution, block.part(slice(count))) - right)
            start += len(block.points)
        return np.concatenate(found)

    def right_at(self, points: Points) -> Float[np.ndarray, "n k"]:
        """The right side of the equation at other points inside the domain."""
        layout, block = self.problem.layout, self._at(points)
        return right_values(layout, block, entries(layout, block))

    def residual_at(self, solution: Solution, points: Points) -> Float[np.ndarray, "n k"]:
        """Left minus right side of the equation at other points inside the domain."""
        return self._left(solution, self._at(points)) - self.right_at(points)

    def hidden(self, solution: Solution) -> float:
        """The largest residual at the dense points, relative to the largest right side there."""
        if self._last is None or self._last[0] is not solution:
            largest = float(np.max(np.abs(self.right)))
            noise = self._is_noise(solution, largest)
            self._last = solution, 0.0 if noise else self._largest_residual(solution) / largest
        return self._last[1]

    def _largest_residual(self, solution: Solution) -> float:
        """The largest residual at the dense points; of features in boxes, of those that the estimate does not know. It
        has looked at points in each box, and a source that jumps in a box leaves a residual there however small the box
        is."""
        sizes, features = np.max(np.abs(self.residual(solution)), axis=1), solution.features
        if not isinstance(features, InBoxes) or len(self._dense[0]) > 1:
            return float(sizes.max())
        box, patches = features.locate(self.points), features.patches
        wrong = np.unique(box[sizes > HIDDEN * float(np.max(np.abs(self.right)))])
        rng, known = np.random.default_rng(self.seed), np.zeros(len(patches))
        unit = rng.random((len(wrong), IN_A_BOX, self.problem.domain.dim))
        points = patches.lower[wrong, None] + unit * (patches.upper - patches.lower)[wrong, None]
        points = points.reshape(-1, self.problem.domain.dim)
        points = points[self.problem.domain.contains(points)]
        if len(points):
            seen = np.max(np.abs(self.residual_at(solution, points)), axis=1)
            np.maximum.at(known, features.locate(points), seen)
        return float(np.max(np.where(sizes > SEEN * known[box], sizes, 0.0)))

    def _is_noise(self, solution: Solution, largest: float) -> bool:
        """Whether a right side of that size is zero up to rounding, as the one that follows from an exact solution of
        the homogeneous equation is."""
        layout, dim = self.problem.layout, self.problem.domain.dim
        symbols = (symbol_of(term.lhs, layout, dim, dim - layout.has_time) for term in solution.problem.equations)
        if largest == 0 or not all(symbol.is_computable for symbol in symbols):
            return largest == 0
        return largest <= NOISE * float(np.max(term_sizes(solution.problem, solution.features, solution.coefficients)))

    def _at(self, points: Points) -> Block:
        """The equation of the only region at points."""
        block = self._dense[0][0]
        return replace(block, points=points, normals=np.zeros((len(points), block.normals.shape[1])))

    def _left(self, solution: Solution, block: Block) -> Float[np.ndarray, "n k"]:
        """The left side, with the numbers of the solution if some are unknown."""
        term = next(each for each in solution.problem.equations if each.region == block.term.region)
        return left_values(self.problem.layout, solution.features, replace(block, term=term), solution.coefficients)
