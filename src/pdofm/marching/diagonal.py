"""Equations that separate, solved in products of eigenfunctions of each axis, in which they are diagonal."""

import math

import numpy as np
from jaxtyping import Complex

from pdofm.errors import SolveError
from pdofm.marching.axes import LIFTING, Axis, Bounded, Tensor, along
from pdofm.marching.band import SINGULAR
from pdofm.marching.separable import Separated


class Diagonal:
    """The equations Σ_j a_j ∂²u/∂x_j² + cu = f with conditions on all faces, for several numbers c.

    Args:
        parts: what separates.
        axes: the polynomials along each axis.
        bounded: those that satisfy the conditions, by component and axis.
        factors: the numbers c, by component.
    """

    def __init__(
        self, parts: Separated, axes: list[Axis], bounded: list[list[Bounded]], factors: Complex[np.ndarray, "k C"]
    ):
        self._parts, self._axes, self._bounded, self._factors = parts, axes, bounded, factors
        self._dim, self._counts = len(axes), tuple(axis.count for axis in axes)
        self._sizes = []
        for component, by_axis in enumerate(bounded):
            sizes = self._scalars(component)
            for axis, factor in self._diffusion(component):
                sizes = sizes + factor * by_axis[axis].rates.reshape(self._shape(axis, -1, 1))
            if np.any(sizes == 0):
                raise SolveError(SINGULAR)
            self._sizes.append(sizes)

    def _shape(self, axis: int, own: int, *others: int) -> tuple[int, ...]:
        """A shape with one number along an axis, and others along the other ones; the counts by default."""
        return tuple(own if a == axis else (others[0] if others else n) for a, n in enumerate(self._counts))

    def _scalars(self, component: int) -> Complex[np.ndarray, "k ..."]:
        return self._factors[:, component].reshape(-1, *[1] * self._dim)

    def _diffusion(self, component: int) -> list[tuple[int, float]]:
        """The axes along which there are second derivatives, and their coefficients."""
        found = self._parts.constant.items()
        return [(int(np.argmax(orders)), float(each[component])) for (*orders, _), each in found if any(orders)]

    def solve(self, rows: Complex[np.ndarray, "k _"]) -> Complex[np.ndarray, "k _"]:
        """The functions for right-hand sides: the tested equation, then the conditions."""
        whole = (len(rows), len(self._bounded), *self._counts)
        size = math.prod(whole[1:])
        found, given = rows[:, :size].reshape(whole).copy(), self._given(rows[:, size:])
        for component, by_axis in enumerate(self._bounded):
            rest, known = found[:, component], self._lifted(by_axis, given[component])
            for axis, piece in enumerate(known):
                low = self._low(rest, axis)
                low -= self._scalars(component) * piece
                for other, factor in self._diffusion(component):
                    second = self._axes[other].second
                    low -= factor * along(
                        second[:LIFTING, :LIFTING] if other == axis else second, piece, other, self._dim
                    )
            # Matrices are real: real and imaginary parts are two functions.
            parts = np.stack([np.real(rest), np.imag(rest)])
            for axis, one in enumerate(by_axis):
                parts = along(one.modes.T, parts, axis, self._dim)
            solved = (parts[0] + 1j * parts[1]) / self._sizes[component]
            parts = np.stack([np.real(solved), np.imag(solved)])
            for axis, one in enumerate(by_axis):
                parts = along(one.modes, parts, axis, self._dim)
            rest.real, rest.imag = parts
            for axis, piece in enumerate(known):
                self._low(rest, axis)[...] += piece
        return found.reshape(len(rows), -1)

    def _low(self, of: Tensor, axis: int) -> Tensor:
        """The part of coefficients with the lowest degrees along an axis."""
        return of[(..., *(slice(LIFTING) if a == axis else slice(None) for a in range(self._dim)))]

    def _given(self, rows: Tensor) -> list[list[Tensor]]:
        """What conditions ask for, by component and axis: the values at both ends are beside each other along it."""
        found = [
            [np.zeros((len(rows), *self._shape(axis, 2)), dtype=rows.dtype) for axis in range(self._dim)]
            for _ in self._bounded
        ]
        start = 0
        for face in self._parts.faces:
            shape = self._shape(face.axis, 1)
            for component, _, _ in face.entries:
                here = rows[:, start : start + math.prod(shape)].reshape(len(rows), *shape)
                side = slice(face.side, face.side + 1)
                at = tuple(side if a == face.axis else slice(None) for a in range(self._dim))
                found[component][face.axis][(slice(None), *at)] = here
                start += math.prod(shape)
        return found

    def _lifted(self, by_axis: list[Bounded], given: list[Tensor]) -> list[Tensor]:
        """Functions that together meet the conditions, one with low degrees along each axis. Each leaves the conditions
        along earlier axes as they are."""
        found: list[Tensor] = []
        for axis, (one, lacking) in enumerate(zip(by_axis, given, strict=True)):
            for earlier, piece in enumerate(found):
                low = self._low(lacking, earlier)
                low -= along(one.rows, piece, axis, self._dim)
            for earlier, other in enumerate(by_axis[:axis]):
                low = self._low(lacking, earlier)
                low -= along(other.lift @ other.rows, lacking, earlier, self._dim)
            found.append(along(one.lift, lacking, axis, self._dim))
        return found
