"""Linear equations in time among the functions that satisfy linear conditions, with dense matrices.

The equations Σ_k s^k M_k c = f are tested with the functions that satisfy the conditions Bc = 0, and c = Lg + Zy with
the columns of Z a basis of these functions and BLg = g. Where M_1, M_2, … are multiples of the identity among them and
M_0 is symmetric, as for heat, reactions, waves and plates, the eigenfunctions of M_0 solve them for any s at once.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float, Shaped
from scipy.linalg import lu_factor, lu_solve

from pdofm.errors import SolveError
from pdofm.marching.arrays import Vector
from pdofm.marching.band import SINGULAR
from pdofm.marching.radau import Radau

LARGEST_VIOLATION = 1e-5
"""Functions satisfy the conditions if these are below this fraction of the largest. Where no function satisfies
them exactly, a smaller bound leaves too few functions. A larger one is unstable: what conditions leave free is
multiplied by the square of the degree in the energy of a function."""

SAME = 1e-8
"""Differences of matrices below this fraction of the largest entry are left to the iteration."""


class Conditions:
    """Dense conditions Bc = g.

    Attributes:
        inside: an orthonormal basis of the coefficients with g = 0, one in each column.
        lift: maps g to the smallest coefficients with Bc = g.
    """

    def __init__(self, matrix: Shaped[np.ndarray, "k n"]):
        if not np.all(np.isfinite(matrix)):
            raise SolveError(SINGULAR)
        turn, small = None, matrix
        if matrix.shape[0] > matrix.shape[1]:
            turn, small = np.linalg.qr(matrix)
        left, sizes, right = np.linalg.svd(small)
        count = int(np.sum(sizes > LARGEST_VIOLATION * np.max(sizes, initial=0.0)))
        self.inside = right[count:].conj().T
        lift = (right[:count].conj().T / sizes[:count]) @ left[:, :count].conj().T
        self.lift = lift if turn is None else lift @ turn.conj().T


@dataclass(frozen=True, eq=False)
class Linear:
    """The tested equations and the conditions, linearised, by power of the time derivative."""

    squares: list[Float[np.ndarray, "n n"]]
    conditions: list[Float[np.ndarray, "k n"]]

    @cached_property
    def steady(self) -> Conditions | None:
        """The conditions, if they have no time derivatives."""
        return None if any(each.any() for each in self.conditions[1:]) else Conditions(self.conditions[0])

    @cached_property
    def _inside(self) -> list[Float[np.ndarray, "r r"]]:
        assert self.steady is not None
        return [self.steady.inside.T @ each @ self.steady.inside for each in self.squares]

    @cached_property
    def multiples(self) -> Vector | None:
        """The factors of the identity that M_1, M_2, … are among the functions inside; None if they are not."""
        if self.steady is None or not all(np.all(np.isfinite(each)) for each in self.squares):
            return None
        found = []
        for each in self._inside[1:]:
            found.append(float(np.mean(np.diagonal(each))))
            if np.max(np.abs(each - found[-1] * np.eye(len(each))), initial=0.0) > SAME * abs(found[-1]):
                return None
        return np.array(found)

    @cached_property
    def modes(self) -> "tuple[Vector, Float[np.ndarray, 'n r']] | None":
        """The eigenvalues of M_0 and its eigenfunctions, if these solve the equations for any rate."""
        if self.multiples is None:
            return None
        assert self.steady is not None
        first = self._inside[0]
        if np.max(np.abs(first - first.T), initial=0.0) > SAME * np.max(np.abs(first), initial=0.0):
            return None
        values, vectors = np.linalg.eigh((first + first.T) / 2)
        return values, self.steady.inside @ vectors

    @cached_property
    def eigenvalues(self) -> Shaped[np.ndarray, " r"] | None:
        """The eigenvalues of M_0 among the functions inside, if they tell how functions grow."""
        if self.multiples is None:
            return None
        return np.linalg.eigvals(self._inside[0]) if self.modes is None else self.modes[0]


class Modes:
    """The equations solved in eigenfunctions, for several rates."""

    def __init__(self, linear: Linear, rates: Complex[np.ndarray, " k"]):
        assert linear.modes is not None
        assert linear.multiples is not None
        assert linear.steady is not None
        self._linear, self._rates, self._conditions = linear, rates, linear.steady
        values, self._functions = linear.modes
        powers = rates[:, None] ** np.arange(1, len(linear.squares))
        self._sizes = values + (powers @ linear.multiples)[:, None]
        if np.any(self._sizes == 0):
            raise SolveError(SINGULAR)

    def solve(self, rows: Complex[np.ndarray, "k ... _"]) -> Complex[np.ndarray, "k ... _"]:
        """The coefficients for right-hand sides: f, then g."""
        n = len(self._functions)
        known = rows[..., n:] @ self._conditions.lift.T
        rest, shape = rows[..., :n], (-1, *[1] * (rows.ndim - 1))
        for power, square in enumerate(self._linear.squares):
            rest = rest - self._rates.reshape(shape) ** power * (known @ square.T)
        sizes = self._sizes.reshape(len(rows), *[1] * (rows.ndim - 2), -1)
        return known + (rest @ self._functions / sizes) @ self._functions.T


class Projected:
    """The equations for one rate, factored."""

    def __init__(self, square: Shaped[np.ndarray, "n n"], conditions: Conditions):
        if not np.all(np.isfinite(square)):
            raise SolveError(SINGULAR)
        self._square, self._conditions = square, conditions
        inside = conditions.inside
        self._lu = lu_factor(inside.conj().T @ square @ inside, overwrite_a=True, check_finite=False)
        if not np.all(np.isfinite(self._lu[0])) or np.any(np.diagonal(self._lu[0]) == 0):
            raise SolveError(SINGULAR)

    def solve(self, rows: Shaped[np.ndarray, "... _"]) -> Shaped[np.ndarray, "... _"]:
        """The coefficients for right-hand sides, one in each row: f, then g."""
        n, inside = len(self._square), self._conditions.inside
        known = rows[..., n:] @ self._conditions.lift.T
        rest = (rows[..., :n] - known @ self._square.T) @ inside.conj()
        if not np.iscomplexobj(self._lu[0]):
            rest = np.real(rest)
        flat = rest.reshape(-1, rest.shape[-1]).T
        return known + lu_solve(self._lu, flat, check_finite=False).T.reshape(rest.shape) @ inside.T


def growth(scheme: Radau, length: float, eigenvalues: Shaped[np.ndarray, " r"], multiples: Vector) -> float:
    """The spectral radius of a slab for μ u + Σ_k c_k u^(k) = 0, with these μ and c: the largest of all μ."""
    p, order = scheme.stages, len(multiples)
    slope, one = scheme.slope / length, np.ones(p)
    # The change y of u since the start determines all derivatives at the stages: each is `slope` times the change of
    # the one before, which is that one minus its value at the start.
    of_change, of_start = [np.eye(p)], np.zeros((order + 1, p, order))
    of_start[0, :, 0] = one
    for k in range(1, order + 1):
        change = of_start[k - 1].copy()
        change[:, k - 1] -= one
        of_change.append(slope @ of_change[-1])
        of_start[k] = slope @ change
    weights = [eigenvalues, *(np.full(len(eigenvalues), c) for c in multiples)]
    matrix = sum(w[:, None, None] * each for w, each in zip(weights, of_change, strict=True))
    right = sum(w[:, None, None] * each for w, each in zip(weights, of_start, strict=True))
    y = -np.linalg.solve(matrix, right)  # (r, p, order)
    ends = [of_start[k][-1] + of_change[k][-1] @ y for k in range(order)]
    return float(np.max(np.abs(np.linalg.eigvals(np.stack(ends, axis=1)))))
