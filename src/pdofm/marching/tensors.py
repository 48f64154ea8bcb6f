"""Space in a box without cuts: products of polynomials in each coordinate, with a degree of its own along each axis.

Where the derivatives in space separate, they are diagonal in products of eigenfunctions, which satisfy the conditions.
Equations for all of them are solved by a few products with small matrices, and nothing is factored but one matrix for
each axis. What varies in the rest of the equation, the reaction, is left to the iteration on a slab.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Complex, Float

from pdofm.calculus.jets import Index
from pdofm.domain.tree import BoxTree
from pdofm.features.boxes import BoxPolynomials
from pdofm.features.patches import Patches
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.axes import Axis, Bounded, Tensor, along
from pdofm.marching.diagonal import Diagonal
from pdofm.marching.edges import Asked, contradictory
from pdofm.marching.separable import Face, Separated
from pdofm.marching.spaces import States
from pdofm.marching.spots import spots_of
from pdofm.marching.statement import Statement
from pdofm.marching.termat import TermAt, Unsuitable
from pdofm.numerics.nodes import tensor

FIRST, STEP = (12, 14), 1.25
"""The number of polynomials along each axis to begin with, in the first, third, … run and in the others, so that
successive runs differ; and by what factor it grows."""

MOST_FIRST = 256
"""The largest number to begin with."""

LAST = 0.05
"""This part of the polynomials along an axis, those of the highest degrees, tells what may be missing; at least two."""

COARSER = 0.03
"""Fewer polynomials are used if the last of them contribute less than this fraction of what is allowed."""


@dataclass(frozen=True, eq=False)
class Powers:
    """What multiplies the time derivatives of each component, by order, in the equation without space derivatives."""

    factors: Float[np.ndarray, "K C"]


class Tensors:
    """Products of polynomials in a box, so many along each axis.

    A state has the coefficients of orthonormal polynomials, of shape (C, n_1, n_2, …).
    """

    kind = "products of polynomials"

    def __init__(self, statement: Statement, parts: Separated, counts: tuple[int, ...], least: int = FIRST[0]):
        self.statement, self.parts, self.counts, self._least = statement, parts, counts, least
        space = statement.domain.space
        self.dim = space.dim
        self._axes = [Axis(*each) for each in zip(space.lower, space.upper, counts, strict=True)]
        self.shape = (statement.components, *counts)
        self.size = math.prod(self.shape)
        points = tensor([axis.points for axis in self._axes])
        self._equation = statement.placed(statement.equation, points)
        domain = statement.domain
        self._times = domain.t0 + (domain.t1 - domain.t0) * np.array([0.0, 0.3819, 1.0])
        probes = statement.placed(statement.equation, points[:: max(1, len(points) // 256)])
        self._used = probes.used(self._times)
        self._matched = list(statement.matched)
        self._matrices = {index: np.diag(each)[self._matched] for index, each in parts.constant.items()}
        self.algebraic = np.zeros(self.size, dtype=bool)
        self._data: dict[bytes, np.ndarray] = {}
        self._conditions: dict[bytes, Asked] = {}

    @classmethod
    def first(cls, statement: Statement, parts: Separated, number: int = 0) -> "Tensors":
        """The polynomials to begin with: so many that some points are in each small place where data vary."""
        space, least = statement.domain.space, FIRST[number % 2]
        for spot in spots_of(statement):
            while not spot.is_seen(
                tensor([Axis(*each, least).points for each in zip(space.lower, space.upper, strict=True)])
            ):
                least = finer(least)
                if least > MOST_FIRST:
                    raise Unsuitable
        return cls(statement, parts, (least,) * space.dim, least)

    def forget(self) -> None:
        """Free the memory of the data."""
        self._data, self._conditions = {}, {}

    def _each(self, matrices: list[np.ndarray], of: Tensor) -> Tensor:
        """A matrix along each axis."""
        for axis, matrix in enumerate(matrices):
            of = along(matrix, of, axis, self.dim)
        return of

    # Functions

    def _values(self, state: Tensor, orders: Index) -> Float[np.ndarray, "p n C"]:
        """The values of a derivative at the Gauss points."""
        of = state.reshape(-1, *self.shape)
        for axis, order in enumerate(orders):
            for _ in range(order):
                of = along(self._axes[axis].slope, of, axis, self.dim)
        values = self._each([axis.values for axis in self._axes], of)
        return np.swapaxes(values.reshape(*values.shape[:2], -1), 1, 2)

    def quadrature(self) -> tuple[Points, Vector]:
        """The Gauss points and their weights."""
        return self._equation.points, np.prod(tensor([axis.weights for axis in self._axes]), axis=1)

    def norms(self, state: Float[np.ndarray, "... _"]) -> Float[np.ndarray, "... C"]:
        """The root mean square of each component: the polynomials are orthonormal."""
        return np.linalg.norm(state.reshape(*state.shape[:-1], self.shape[0], -1), axis=-1)

    def _beyond(self, state: Tensor, axis: int, count: int) -> Float[np.ndarray, "p C"]:
        """The norm of the polynomials from a degree on along an axis."""
        of = np.moveaxis(state.reshape(-1, *self.shape), 2 + axis, 2)[:, :, count:]
        return np.linalg.norm(of.reshape(*of.shape[:2], -1), axis=-1)

    def tails(self, state: Tensor, scale: Vector) -> Float[np.ndarray, " d"]:
        """The norm of the last polynomials along each axis, relative to the size of the solution."""
        last = [count - max(2, math.ceil(LAST * count)) for count in self.counts]
        return np.array([np.max(self._beyond(state, axis, n) / scale) for axis, n in enumerate(last)])

    # Rows

    def residual(self, states: States, times: Vector) -> Float[np.ndarray, "p _"]:
        """The equation, tested, and all conditions, at several times."""
        p, constant = len(times), self.parts.constant
        if all(index in constant for index in self._used):
            key = times.tobytes()
            if key not in self._data:
                self._data = {key: self._tested(states, times)}
            tested = self._data[key].copy()
        else:
            tested = self._tested(states, times)
        for (*orders, in_time), factor in constant.items():
            of = states[in_time].reshape(-1, *self.shape)
            factors = factor.reshape(-1, *[1] * self.dim)
            if any(orders):
                axis = int(np.argmax(orders))
                of = along(self._axes[axis].second, of, axis, self.dim)
            tested += factors * of
        rows, state = [tested.reshape(p, -1)], states[0].reshape(-1, *self.shape)
        for (component, axis, side), asked in self._asked(times).items():
            row = self.bounded[component][axis].rows[side]
            rows.append((along(row[None], state[:, component], axis, self.dim) - asked).reshape(p, -1))
        return np.concatenate(rows, axis=1)

    def _tested(self, states: States, times: Vector) -> Float[np.ndarray, "p C ..."]:
        """The part of the equation that does not have constant coefficients, tested."""
        found = self._equation.residual(
            times, lambda index: self._values(states[index[-1]], index[:-1]), self._used, self._matrices
        )
        tested = np.zeros((len(times), *self.shape))
        if found.any():
            grid = np.swapaxes(found, 1, 2).reshape(len(times), -1, *(len(axis.points) for axis in self._axes))
            tested[:, self._matched] = self._each([axis.tests for axis in self._axes], grid)
        return tested

    @cached_property
    def _faces(self) -> list[tuple[TermAt, tuple[Index, ...], Face]]:
        """The conditions at the Gauss points of the faces, with the derivatives in them."""
        space, found = self.statement.domain.space, []
        for face in self.parts.faces:
            bound = (space.lower, space.upper)[face.side][face.axis]
            points = tensor([np.array([bound]) if a == face.axis else axis.points for a, axis in enumerate(self._axes)])
            normals = np.zeros_like(points)
            normals[:, face.axis] = 2.0 * face.side - 1
            at = self.statement.placed(face.term, points, normals)
            found.append((at, at.used(self._times), face))
        return found

    def _asked(self, times: Vector) -> Asked:
        """What conditions ask for at some times, as coefficients on the faces; `Unsuitable` if no function meets all of
        it, or if the coefficients of a condition are found to vary."""
        key = times.tobytes()
        if key not in self._conditions:
            asked: Asked = {}
            for at, used, face in self._faces:
                none = np.zeros((len(times), len(at.points), self.shape[0]))
                constant = face.coefficients(self.dim, self.shape[0])
                if not set(used) <= set(constant):
                    raise Unsuitable
                data = -np.swapaxes(at.residual(times, lambda index, none=none: none, used, constant), 1, 2)
                shape = (1 if a == face.axis else len(axis.points) for a, axis in enumerate(self._axes))
                tests = [np.ones((1, 1)) if a == face.axis else axis.tests for a, axis in enumerate(self._axes)]
                found = self._each(tests, data.reshape(*data.shape[:2], *shape))
                for entry, (component, _, _) in enumerate(face.entries):
                    asked[component, face.axis, face.side] = found[:, entry]
            if contradictory(asked, self.bounded):
                raise Unsuitable
            self._conditions = {key: asked}
        return self._conditions[key]

    def linearise(self, states: States, time: float) -> Powers:
        """The equation linearised at one time; coefficients that vary are replaced by the middle of their values, from
        which the farthest is as near as can be."""
        powers = np.zeros((self.statement.order + 1, self.shape[0]))
        constant, none = self.parts.constant, np.zeros((1, len(self._equation.points), self.shape[0]))
        if any(index not in constant for index in self._used):
            found = self._equation.coefficients(
                time,
                lambda index: none if index in constant else self._values(states[index[-1]], index[:-1]),
                self._used,
            )
            for a, index in enumerate(self._used):
                own = found[:, np.argsort(self._matched), a, np.arange(self.shape[0])]
                powers[index[-1]] += 0.0 if any(index[:-1]) else (own.max(axis=0) + own.min(axis=0)) / 2
            return Powers(powers)
        for (*orders, in_time), factor in constant.items():
            powers[in_time] += 0.0 if any(orders) else factor
        return Powers(powers)

    def factor(self, linear: Powers, rates: Complex[np.ndarray, " k"]) -> Diagonal:
        """The equations for functions that grow as exp(rate t)."""
        return Diagonal(
            self.parts, self._axes, self.bounded, (rates[:, None] ** np.arange(len(linear.factors))) @ linear.factors
        )

    @cached_property
    def bounded(self) -> list[list[Bounded]]:
        """The functions along each axis that satisfy the conditions, by component."""
        rows = np.empty((self.shape[0], self.dim, 2), dtype=object)
        for face in self.parts.faces:
            for component, *factors in face.entries:
                rows[component, face.axis, face.side] = (face.side, *factors)
        known: dict[tuple, Bounded] = {}
        for key in {(axis, *rows[c, axis]) for c in range(self.shape[0]) for axis in range(self.dim)}:
            own = self._axes[key[0]]
            known[key] = Bounded(own, np.stack([own.condition(*each) for each in key[1:]]))
        return [[known[axis, *rows[c, axis]] for axis in range(self.dim)] for c in range(self.shape[0])]

    # The answer

    @cached_property
    def _features(self) -> BoxPolynomials:
        space = self.statement.domain.space
        degrees = np.array([self.counts]) - 1
        patches = Patches(space.lower[None], space.upper[None], degrees)
        tree = BoxTree(space.lower, space.upper)
        return BoxPolynomials(space.lower, space.upper, tree.arrays(), np.array([0]), patches)

    @property
    def features(self) -> BoxPolynomials:
        """The space of these polynomials."""
        return self._features

    def coefficients(self, state: Float[np.ndarray, "q _"]) -> Float[np.ndarray, "q m C"]:
        """The coefficients of functions in `features`."""
        found = self._each([axis.to_chebyshev for axis in self._axes], state.reshape(len(state), *self.shape))
        return np.swapaxes(found.reshape(*found.shape[:2], -1), 1, 2)

    def fitted(self) -> States:
        """The state at the start: the nearest functions."""
        values = np.swapaxes(self.statement.start(self._equation.points), 1, 2)
        grid = values.reshape(*values.shape[:2], *(len(axis.points) for axis in self._axes))
        found = self._each([axis.tests for axis in self._axes], grid)
        return list(found.reshape(len(found), -1))

    # Refinement

    def _moved(self, states: States, counts: tuple[int, ...]) -> "tuple[Tensors, States]":
        """The same functions, with other numbers of polynomials."""
        other, found = Tensors(self.statement, self.parts, counts, self._least), []
        common = (slice(None), *(slice(min(pair)) for pair in zip(self.counts, counts, strict=True)))
        for state in states:
            moved = np.zeros(other.shape)
            moved[common] = state.reshape(self.shape)[common]
            found.append(moved.reshape(-1))
        return other, found

    def marked(self, tails: Float[np.ndarray, " d"], tol: float) -> Bool[np.ndarray, " d"] | None:
        """The axes along which there are too few polynomials; together the others contribute less than `tol`."""
        found = tails > tol / np.sqrt(self.dim)
        return found if found.any() else None

    def refined(self, marks: Bool[np.ndarray, " d"], states: States) -> "tuple[Tensors, States]":
        """More polynomials along some axes."""
        return self._moved(
            states, tuple(finer(n) if more else n for n, more in zip(self.counts, marks.tolist(), strict=True))
        )

    def coarsened(self, states: States, scales: list[Vector], tol: float) -> "tuple[Tensors, States]":
        """Fewer polynomials along axes where they suffice."""
        counts = list(self.counts)
        for axis in range(self.dim):
            fewer = self._least
            while fewer < counts[axis] and any(
                np.any(self._beyond(state, axis, int(fewer * (1 - LAST)) - 1) > COARSER * tol * scale)
                for state, scale in zip(states, scales, strict=True)
            ):
                fewer = finer(fewer)
            counts[axis] = min(fewer, counts[axis])
        return (self, states) if tuple(counts) == self.counts else self._moved(states, tuple(counts))

    @property
    def description(self) -> list[int]:
        """The numbers of polynomials."""
        return list(self.counts)

    def described(self, description: list[int]) -> "Tensors":
        """So many polynomials along each axis."""
        return Tensors(self.statement, self.parts, tuple(map(int, description)), self._least)


def finer(count: int) -> int:
    """The number of polynomials after one that does not suffice."""
    return math.ceil(STEP * count)
