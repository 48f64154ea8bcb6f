"""Polynomials in boxes that are split, and raised in degree, where the solution needs it.

Round after round the problem is solved in the patches of a tree of boxes. Where a patch is seen to be wrong its degree
is raised if its coefficients fall so fast that this reaches the tolerance, and it is split otherwise, across the axes
along which they fall slowly.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from pdofm._types import Key
from pdofm.adaptive.singular import Degrees, SingularPoint, first_tree, grade, singular_points, touches
from pdofm.discrete.checks import check_problem
from pdofm.discrete.cover import Cover, Inside
from pdofm.discrete.evaluate import evaluate
from pdofm.numerics.sampling import generator
from pdofm.problem.problem import Problem
from pdofm.solving.boxes import BoxFit, fit_boxes
from pdofm.solving.solution import Attempt, Residual, Solution, Stats

FIRST_DEGREE = {1: 10, 2: 8, 3: 5}
HIGHEST_DEGREE = {1: 24, 2: 16, 3: 9}
LOWEST_DEGREE = 4
"""Degrees of the first polynomials, of the highest and, in boxes graded towards a singularity, of the lowest."""

FEWEST_BOXES = 2
"""Boxes along each axis at the start."""

MARKED = 0.05
"""Patches are refined whose indicator is above this fraction of the largest."""

MOST_DEGREES = 4
"""A degree is raised by at most so much in a round."""

ALIKE = 6.0
"""Axes are split, or raised in degree, whose last coefficients are at least the largest ones divided by this."""

INNOCENT = 3e-3
"""A patch whose last coefficients are below this fraction of its indicator suffers from its neighbours."""

HALVING = math.log(3 + 8**0.5)
"""Slope of the coefficients of a function that is singular at a distance of one box: what degrees follow in a box graded
towards a singularity."""

TEST_POINTS = 4000
"""Points at which two solutions are compared."""


@dataclass
class _Rounds:
    """The state of a run."""

    problem: Problem
    tol: float
    seed: int

    def __post_init__(self):
        domain = self.problem.domain
        self.points = singular_points(self.problem)
        self.tree = first_tree(self.problem, self.points, FEWEST_BOXES)
        first = (FIRST_DEGREE[domain.dim],) * domain.dim
        self.degrees: dict[int, Degrees] = {node: first for node in self.tree.leaves.tolist()}
        self.known: dict[int, Inside] = {}
        self.test = domain.sample(TEST_POINTS, "random", key=self.seed)
        self.last: BoxFit | None = None
        self.values: np.ndarray | None = None
        self.history: list[tuple[float, float]] = []
        self.factor = 1.0  # error per indicator, as far as known
        for point in self.points:
            if point.is_strong:
                self._grade_all(point)

    def _grade_all(self, point: SingularPoint) -> None:
        for node in self.tree.leaves.tolist():
            if touches(self.tree, node, point.point):
                self.grade_leaf(node, point)

    def grade_leaf(self, node: int, point: SingularPoint) -> None:
        size = self.problem.domain.size
        smallest = size * point.smallest(self.tol)
        highest = HIGHEST_DEGREE[self.problem.domain.dim]

        def degree(width: float) -> int:
            left = self.tol * (size / width) ** point.exponent  # the part that may be wrong there
            return int(np.clip(math.ceil(-math.log(min(left, 1.0)) / HALVING) + 2, LOWEST_DEGREE, highest))

        self.degrees[node] = tuple(max(k, degree(float(size))) for k in self.degrees[node])
        grade(self.tree, self.degrees, node, point.point, smallest, degree)

    def cover(self) -> Cover:
        return Cover(self.problem.domain, self.tree, self.degrees, self.known)

    def solve(self) -> BoxFit:
        """One round."""
        start = None if self.last is None else self.last.iterate
        before = 1.0 if not self.history else self.history[-1][1]
        found = fit_boxes(self.problem, self.cover(), start, max(0.01 * self.tol, min(1e-2, 1e-2 * before)), self.seed)
        self.seed += 1
        values = evaluate(*found.iterate, self.test)
        eta = self.measured(found)
        distance = math.nan
        if self.values is not None:
            distance = _distance(self.values, values)
        self.history.append((distance, eta))
        self.last, self.values = found, values
        return found

    def measured(self, found: BoxFit) -> float:
        return float(np.max(found.indicator))

    def refine(self, found: BoxFit, goal: float) -> int:
        """Raise degrees and split boxes; how many patches were changed."""
        indicator = found.indicator
        tails = found.tails.max(axis=1)
        marked = indicator > max(goal, MARKED * float(indicator.max()))
        guilty = marked & (tails > INNOCENT * indicator)
        chosen = np.flatnonzero(guilty if guilty.any() else marked)
        for patch in chosen.tolist():
            self._refine_patch(found, patch, goal)
        return len(chosen)

    def _refine_patch(self, found: BoxFit, patch: int, goal: float) -> None:
        members = found.cover.members[patch]
        degrees = self.degrees[members[0]]
        highest = HIGHEST_DEGREE[len(degrees)]
        tails, slopes = found.tails[patch], found.slopes[patch]
        worst = int(np.argmax(tails))
        axes = [axis for axis in range(len(degrees)) if tails[axis] * ALIKE >= tails[worst]]
        slope = max(float(slopes[worst]), 1e-3)
        need = math.ceil(math.log(max(found.indicator[patch] / goal, 1.0)) / slope)
        top = max(degrees[axis] for axis in axes)
        if top + need <= highest or (top + 2 <= highest and slope > 1.0):
            more = max(1, min(need, MOST_DEGREES))
            raised = tuple(min(highest, k + more) if axis in axes else k for axis, k in enumerate(degrees))
            for node in members:
                self.degrees[node] = raised
            return
        corner = next(
            (p for p in self.points for node in members if touches(self.tree, node, p.point)), None
        )
        width = float(np.max(np.subtract(*self.tree.box(members[0])[::-1])))
        if corner is not None and width > 4 * self.problem.domain.size * corner.smallest(self.tol):
            for node in members:
                if touches(self.tree, node, corner.point):
                    self.grade_leaf(node, corner)
            return
        sides = np.subtract(*self.tree.box(members[0])[::-1])
        for node in members:
            pieces = [node]
            for axis in axes:
                if np.subtract(*self.tree.box(node)[::-1])[axis] > 0.6 * sides[axis]:
                    pieces = [half for piece in pieces for half in self.tree.split(piece, axis)]
            kept = self.degrees.pop(node)
            self.degrees.update(dict.fromkeys(pieces, kept))


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    sizes = np.maximum(np.linalg.norm(b, axis=0), 1e-6 * np.linalg.norm(b))
    return float(np.max(np.linalg.norm(a - b, axis=0) / np.where(sizes == 0, 1.0, sizes)))
