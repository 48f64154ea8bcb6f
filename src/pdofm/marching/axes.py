"""Polynomials in one coordinate of a box, and those of them that satisfy conditions at both ends."""

import math
from functools import cached_property

import numpy as np
from jaxtyping import Float, Shaped

from pdofm.marching.arrays import Vector

LIFTING = 4
"""Values that conditions ask for are met by so many polynomials, those of the lowest degrees."""

Tensor = Shaped[np.ndarray, "..."]


def along(matrix: Float[np.ndarray, "m n"], of: Tensor, axis: int, dim: int) -> Tensor:
    """A matrix times an array along an axis, counted among the last `dim`."""
    at = of.ndim - dim + axis
    after = math.prod(of.shape[at + 1 :])
    shape = (*of.shape[:at], len(matrix), *of.shape[at + 1 :])
    if after == 1:
        return (of.reshape(-1, of.shape[at]) @ matrix.T).reshape(shape)
    return (matrix @ of.reshape(-1, of.shape[at], after)).reshape(shape)


class Axis:
    """Orthonormal polynomials in one coordinate: their values at Gauss points, and their derivatives."""

    def __init__(self, lower: float, upper: float, count: int):
        self.count, self._lower, self._width = count, lower, upper - lower
        nodes, weights = np.polynomial.legendre.leggauss(count + 2)
        self.points, self.weights = lower + self._width * (nodes + 1) / 2, weights / 2
        self.values = self.at(nodes)
        self.tests = (self.values * self.weights[:, None]).T

    def at(self, y: Vector) -> Float[np.ndarray, "n m"]:
        """The values at points of [-1, 1]."""
        return np.polynomial.legendre.legvander(y, self.count - 1) * np.sqrt(2 * np.arange(self.count) + 1)

    @cached_property
    def slope(self) -> Float[np.ndarray, "m m"]:
        """The coefficients of the derivatives."""
        k = np.arange(self.count)
        is_part = (k > k[:, None]) & ((k - k[:, None]) % 2 == 1)
        roots = np.sqrt(2 * k + 1)
        return is_part * np.outer(roots, roots) * (2 / self._width)

    @cached_property
    def second(self) -> Float[np.ndarray, "m m"]:
        """The coefficients of the second derivatives."""
        return self.slope @ self.slope

    def condition(self, side: int, value: float, slope: float) -> Vector:
        """The row of a condition at one end."""
        ends = self.at(np.array([2.0 * side - 1.0]))[0]
        return value * ends + slope * (ends @ self.slope)

    @cached_property
    def nodes(self) -> Vector:
        """Chebyshev points."""
        return self._lower + self._width * (1 + np.cos(np.pi * (np.arange(self.count) + 0.5) / self.count)) / 2

    @cached_property
    def to_chebyshev(self) -> Float[np.ndarray, "m m"]:
        """The matrix to coefficients of Chebyshev polynomials."""
        angle = np.pi * (np.arange(self.count) + 0.5) / self.count
        fit = 2 / self.count * np.cos(np.outer(np.arange(self.count), angle))
        fit[0] /= 2
        return fit @ self.at(np.cos(angle))


class Bounded:
    """The polynomials in one coordinate that satisfy two homogeneous conditions.

    Attributes:
        rows: the conditions.
        lift: the first `LIFTING` coefficients of functions that meet given values of the conditions.
        modes, rates: an orthonormal basis of the polynomials that satisfy them, in which the second derivative is
            diagonal.
    """

    def __init__(self, axis: Axis, rows: Float[np.ndarray, "2 m"]):
        self.rows = rows
        self.lift = np.linalg.pinv(rows[:, :LIFTING])
        inside = np.linalg.qr(rows.T, mode="complete")[0][:, len(rows) :]
        second = inside.T @ axis.second @ inside
        self.rates, turn = np.linalg.eigh((second + second.T) / 2)
        self.modes = inside @ turn
