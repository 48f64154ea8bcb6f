"""A partition of unity that is finer where the equation is violated most.

Boxes are split in halves, those first whose share of the error is largest. The residual at points that are not fitted
tells it: a residual r in a box of radius ρ stands for an error of about ρᵏ r there, with k the order of the equation.
"""

import heapq
from itertools import count, product

import numpy as np
from jaxtyping import Float

from pdofm._types import Points, Vector
from pdofm.adaptive.search import Search
from pdofm.domain import Box
from pdofm.features import OVERLAP, Chebyshev, Features, PartitionOfUnity
from pdofm.numerics.sampling import unit_points
from pdofm.solving.solution import Solution

DEGREES = {1: 16, 2: 10, 3: 6}
"""Degree of the polynomials in each box, by dimension."""

SAMPLES = 128
"""Points at which the residual in a box is evaluated."""

LEVELS = 2
"""How often a box may be split between two solutions: the residual of the coarser one says no more."""

LESS = 1 / 16
"""The assumed ratio of a half's share of the error after a split to its share before: fourth order in the size."""

UNEVEN = 4.0
"""A box is split along the axis whose halves differ most if they differ this many times more than those along its
longest side, else along its longest side."""


class _Box:
    """A box with the squared residual at some points in it."""

    def __init__(self, center: Vector, radius: Vector, points: Points, squares: Float[np.ndarray, " n"], order: int):
        self.center, self.radius, self.points, self.squares, self.order = center, radius, points, squares, order

    @property
    def share(self) -> float:
        """Its share of the squared error."""
        mean = float(self.squares.mean()) if len(self.squares) else 0.0
        return mean * float(np.prod(self.radius)) * float(np.min(self.radius)) ** (2 * self.order)

    def halves(self) -> tuple["_Box", "_Box"]:
        """The box, cut where that separates most."""
        longest = int(np.argmax(self.radius))
        cuts = [self._cut(axis) for axis in range(len(self.center))]
        ratios = [max(a.share, b.share) / max(min(a.share, b.share), 1e-300) for a, b in cuts]
        best = int(np.argmax(ratios))
        return cuts[best if ratios[best] > UNEVEN * ratios[longest] else longest]

    def _cut(self, axis: int) -> tuple["_Box", "_Box"]:
        above = self.points[:, axis] > self.center[axis]
        low, high = (self._part(axis, sign, above == (sign > 0)) for sign in (-1, 1))
        return low, high

    def _part(self, axis: int, sign: int, which: np.ndarray) -> "_Box":
        radius = self.radius.copy()
        radius[axis] /= 2
        center = self.center.copy()
        center[axis] += sign * radius[axis]
        return _Box(center, radius, self.points[which], self.squares[which], self.order)


class Refinement:
    """Polynomials in boxes that are split from solution to solution; starts with two boxes along each axis."""

    def __init__(self, search: Search):
        self.search, domain = search, search.problem.domain
        space = range(domain.dim - search.problem.layout.has_time)
        axes = [*space, None] if search.problem.layout.has_time else [*space]
        self.order = max(max(search.problem.orders(axis)) for axis in axes)
        self.degree = DEGREES[domain.dim]
        radius = (domain.upper - domain.lower) / 4
        self.centers = np.array(
            [domain.lower + radius * (2 * np.array(i) + 1) for i in product((0, 1), repeat=domain.dim)]
        )
        self.radii = np.broadcast_to(radius, self.centers.shape).copy()

    def features(self, size: int) -> Features:
        """The next partition with about `size` features: at least as many boxes as before, and one split of each of the
        first ones."""
        local = Chebyshev(self.search.problem.domain, degree=self.degree).size
        wanted = max(size // local, 2 ** (1 + self.search.problem.domain.dim))
        if self.search.last is not None and wanted > len(self.centers):
            self._split(wanted, self.search.last)
        return PartitionOfUnity(
            lambda box, _: Chebyshev(_under_the_window(box), degree=self.degree),
            self.search.problem.domain,
            centers=self.centers,
            radii=self.radii,
            window="smooth",
        )

    def _split(self, wanted: int, solution: Solution) -> None:
        """Split the boxes with the largest shares until there are as many as wanted."""
        order = count()  # decides between equal shares
        heap = [(-box.share, next(order), 0, box) for box in self._boxes(solution)]
        heapq.heapify(heap)
        finished = []
        while heap and len(heap) + len(finished) < wanted:
            *_, level, box = heapq.heappop(heap)
            if level == LEVELS:
                finished.append(box)
                continue
            for half in box.halves():
                heapq.heappush(heap, (-LESS * half.share, next(order), level + 1, half))
        boxes = [*finished, *(box for *_, box in heap)]
        self.centers, self.radii = (np.stack([getattr(box, name) for box in boxes]) for name in ("center", "radius"))

    def _boxes(self, solution: Solution) -> list[_Box]:
        """The boxes with the residual of a solution."""
        problem, rng = self.search.problem, np.random.default_rng(self.search.seed)
        unit = 2 * unit_points(SAMPLES, problem.domain.dim, "random", rng) - 1
        inside = []
        for center, radius in zip(self.centers, self.radii, strict=True):
            points = center + radius * unit
            inside.append(points[problem.domain.contains(points)])
        residual = self.search.verifier.residual_at(solution, np.concatenate(inside))
        squares = np.split(np.sum(residual**2, axis=1), np.cumsum([len(each) for each in inside])[:-1])
        return [_Box(*each, self.order) for each in zip(self.centers, self.radii, inside, squares, strict=True)]


def _under_the_window(box: Box) -> Box:
    """What the window of a box covers: outside of its own box a polynomial would be huge."""
    middle, half = (box.lower + box.upper) / 2, OVERLAP * (box.upper - box.lower) / 2
    return Box(middle - half, middle + half)
