"""Orthonormal functions on a domain: polynomials, degree by degree, then singular functions.

Polynomials of a degree are those of the degree below times the coordinates, made orthogonal to all lower ones
(Arnoldi's process). Their values and derivatives follow by the same recurrence at any points. Combinations of given
polynomials would lose many digits, as where a domain fills a part of its box only, polynomials on the box are nearly
dependent on the domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from pdofm.calculus.jets import Index, closure
from pdofm.features import Chebyshev, Features
from pdofm.marching.arrays import Points, Vector

LARGEST = 1e7
"""The largest coefficients in a combination of singular functions, relative to the size of these. What needs larger
ones is left out: it would have as many digits less."""

FEWER = 2
"""What a space with so many degrees less, and with as many other functions less in proportion, does not contain tells
what may be missing."""

Places = Int[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class Step:
    """New functions: combinations of candidates minus combinations of the last of the known ones."""

    of_candidates: Float[np.ndarray, "c k"]
    of_known: Float[np.ndarray, "r k"]

    def apply(self, candidates: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The new functions, or anything that is linear in functions; they are in the last axis."""
        return candidates @ self.of_candidates - known[..., known.shape[-1] - len(self.of_known) :] @ self.of_known


@dataclass(eq=False)
class Orthonormal:
    """Orthonormal combinations of polynomials and of other functions.

    Args:
        polynomials: up to a total degree.
        others: other functions, family by family, with the positions of those that are used.
        points, weights: a rule, with respect to which they are orthonormal.

    Attributes:
        ends: the number of functions after each degree, and after each of the other families.
        matrix: the coefficients of the functions: of polynomials, then of the functions of each family.
        last: orthonormal directions that tell what may be missing: all that are orthogonal to the space with `FEWER`
            degrees.
    """

    polynomials: Chebyshev
    others: Sequence[tuple[Features, Places]]
    points: Points
    weights: Vector
    ends: list[int] = field(init=False)
    matrix: Float[np.ndarray, "m r"] = field(init=False)
    last: Float[np.ndarray, "r k"] = field(init=False)

    def __post_init__(self):
        lower, upper = (np.asarray(each) for each in (self.polynomials.lower, self.polynomials.upper))
        self._middle, self._slope = (lower + upper) / 2, 2 / (upper - lower)
        root, degrees = np.sqrt(self.weights)[:, None], self.polynomials.degrees.sum(axis=1)
        self._first = 1 / float(np.linalg.norm(root))
        self._known = np.empty((len(root), self.polynomials.size + sum(len(places) for _, places in self.others)))
        self._known[:, :1] = known = root * self._first
        self.ends, self._steps = [1], list[Step]()
        along = (self.points - self._middle) * self._slope
        for degree in range(1, int(degrees.max()) + 1):
            last = known[:, self._last(degree)]
            candidates = np.concatenate([last * y[:, None] for y in along.T], axis=1)
            # A polynomial times a coordinate is orthogonal to all but the last two degrees below.
            known = self._extended(candidates, known, int(np.sum(degrees == degree)), self._last(degree - 1).start)
        none, low = [(0,) * self.polynomials.dim], self.ends[max(len(self.ends) - 1 - FEWER, 0)]
        lower, share = [], 1 - FEWER / int(degrees.max())
        for family, places in self.others:
            values = family.jets(self.points, none)[0][:, places] * root
            known = self._extended(values, known)
            ranks = family.ranks[places]
            lower.append(values[:, ranks <= share * ranks.max()])
        self.last = np.eye(self.ends[-1])[:, low:]
        if lower:
            values = np.concatenate(lower, axis=1)
            within = known[:, low:].T @ (values / np.linalg.norm(values, axis=0))
            directions, sizes, _ = np.linalg.svd(within)
            self.last = self.last @ directions[:, int(np.sum(sizes > 1 / LARGEST)) :]
        del self._known
        self.matrix = self._coefficients()

    def _last(self, degree: int) -> slice:
        """The polynomials of the degree below; nothing below degree 0."""
        return slice(self.ends[degree - 2] if degree > 1 else 0, self.ends[max(degree - 1, 0)])

    def _extended(
        self, candidates: np.ndarray, every: np.ndarray, count: int | None = None, start: int = 0
    ) -> np.ndarray:
        """Add a step for candidates with these weighted values: so many new functions, or all with enough digits. They
        are orthogonal to the functions before `start` as they are."""
        known = every[:, start:]
        sizes = np.linalg.norm(candidates, axis=0)
        own, of_known, rest = np.diag(1 / sizes), np.zeros((known.shape[1], len(sizes))), candidates / sizes
        for _ in range(2):  # the second time removes what rounding has left
            products = known.T @ rest
            of_known, rest = of_known + products, rest - known @ products
            _, lengths, directions = np.linalg.svd(np.linalg.qr(rest, mode="r"))
            most = int(np.sum(lengths > 1 / LARGEST)) if count is None else count
            turned = (directions[:most] / lengths[:most, None]).T
            own, of_known, rest = own @ turned, of_known @ turned, rest @ turned
            count = most
        self._steps.append(Step(own, of_known))
        self.ends.append(every.shape[1] + rest.shape[1])
        self._known[:, every.shape[1] : self.ends[-1]] = rest
        return self._known[:, : self.ends[-1]]

    def jets(self, points: Points, which: Sequence[Index]) -> Float[np.ndarray, "a n r"]:
        """Derivatives of all functions at points."""
        indices, dim = closure(tuple(which)), self.polynomials.dim
        found = np.zeros((len(indices), len(points), self.ends[-1]))
        found[0, :, 0] = self._first
        along = (points - self._middle) * self._slope
        polynomial_steps = len(self._steps) - len(self.others)
        for degree, step in enumerate(self._steps[:polynomial_steps], 1):
            last, end = found[:, :, self._last(degree)], self.ends[degree - 1]
            candidates = []
            for axis in range(dim):
                times = last * along[:, axis, None]
                for number, index in enumerate(indices):
                    if index[axis]:
                        below = tuple(k - (a == axis) for a, k in enumerate(index))
                        times[number] += index[axis] * self._slope[axis] * last[indices.index(below)]
                candidates.append(times)
            found[:, :, end : self.ends[degree]] = step.apply(np.concatenate(candidates, axis=2), found[:, :, :end])
        for number, (family, places) in enumerate(self.others, polynomial_steps):
            end = self.ends[number]
            jets = family.jets(points, indices)[:, :, places]
            found[:, :, end : self.ends[number + 1]] = self._steps[number].apply(jets, found[:, :, :end])
        return found[[indices.index(index) for index in which]]

    def _coefficients(self) -> Float[np.ndarray, "m r"]:
        """The coefficients of all functions: of polynomials first, then family by family."""
        degrees, size = self.polynomials.degrees, self.polynomials.size
        place = {tuple(index): i for i, index in enumerate(degrees.tolist())}
        matrix = np.zeros((size + sum(family.size for family, _ in self.others), self.ends[-1]))
        matrix[place[(0,) * self.polynomials.dim], 0] = self._first
        polynomial_steps = len(self._steps) - len(self.others)
        for degree, step in enumerate(self._steps[:polynomial_steps], 1):
            last, end = matrix[:, self._last(degree)], self.ends[degree - 1]
            candidates = [self._times(last, axis, degrees, place) for axis in range(self.polynomials.dim)]
            matrix[:, end : self.ends[degree]] = step.apply(np.concatenate(candidates, axis=1), matrix[:, :end])
        start = size
        for number, (family, places) in enumerate(self.others, polynomial_steps):
            own = np.zeros((len(matrix), len(places)))
            own[start + places, np.arange(len(places))] = 1.0
            end, start = self.ends[number], start + family.size
            matrix[:, end : self.ends[number + 1]] = self._steps[number].apply(own, matrix[:, :end])
        return matrix

    def _times(self, last: np.ndarray, axis: int, degrees: np.ndarray, place: dict[tuple[int, ...], int]) -> np.ndarray:
        """The coefficients of polynomials times a coordinate: y T₀ = T₁, and y Tₖ = (Tₖ₋₁ + Tₖ₊₁) / 2."""
        found = np.zeros_like(last)
        for i, index in enumerate(degrees.tolist()):
            if not last[i].any():
                continue
            for change, share in ((1, 0.5 if index[axis] else 1.0), (-1, 0.5 if index[axis] else 0.0)):
                other = tuple(k + change * (a == axis) for a, k in enumerate(index))
                if share:
                    found[place[other]] += share * last[i]
        return found
