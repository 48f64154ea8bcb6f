"""Dense least squares in float64: a matrix is factored once, and solved for many right-hand sides.

Both solvers start with one Householder QR of the tall matrix and then work on the small triangle R. The normal
equations are never formed: they square the condition number, and the feature matrices here have condition numbers of
1e10 to 1e16.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack, qr, solve_triangular, svd

from pdofm._types import Matrix, Vector
from pdofm.errors import SolveError
from pdofm.numerics.householder import (
    back_substitute,
    check_info,
    reflect,
    smallest_solution,
    triangularise,
    with_zeros,
)
from pdofm.numerics.sized import Sized

EPSILON = float(np.finfo(np.float64).eps)
"""The relative precision of float64. Directions below it consist of rounding errors, even if `rcond` is smaller."""

TRIANGLE_BLOCK = 32
"""Columns that LAPACK reflects at once where it stacks triangles."""

Tall = Float[np.ndarray, " rows"] | Float[np.ndarray, "rows sides"]
Short = Float[np.ndarray, " cols"] | Float[np.ndarray, "cols sides"]


@dataclass(frozen=True)
class _Inverse:
    """The pseudo-inverse of a triangle, truncated to its numerical rank.

    `rotate` maps a right-hand side to coordinates in the part of the range that is kept (None if all of it is kept),
    and `finish` maps these to a solution. `transposed` is the transpose of both together.
    """

    rank: int
    rotate: Callable[[np.ndarray], np.ndarray] | None
    finish: Callable[[np.ndarray], np.ndarray]
    transposed: Callable[[np.ndarray], np.ndarray]
    condition: float

    def apply(self, y: np.ndarray) -> np.ndarray:
        return self.finish(y if self.rotate is None else self.rotate(y))


@dataclass(frozen=True)
class LeastSquares(ABC):
    """A method for min ‖A c - b‖. Directions below `rcond` times the largest are dropped, and among the solutions the
    one of smallest norm is returned."""

    rcond: float = 1e-15

    def factor(self, A: Matrix, *, overwrite: bool = False) -> "Factorization":
        """Factor a matrix with at least as many rows as columns. With `overwrite`, LAPACK works in place if A is in
        Fortran order."""
        rows, columns = A.shape
        if rows < columns:
            raise SolveError(
                f"Fewer rows than unknown coefficients: {rows} rows for {columns} coefficients. "
                "Use more points (points=, boundary_points=) or fewer features."
            )
        if not np.isfinite(A).all():
            raise SolveError(
                "The least-squares matrix has entries that are not finite. Check the operator and the features."
            )
        reflectors, tau = triangularise(A, overwrite=overwrite)
        triangle = np.tril(reflectors[:columns].T).T
        # Without scaling, small but independent columns would fall below rcond. The columns of R have the norms of
        # those of A.
        scale = np.linalg.norm(triangle, axis=0)
        if not scale.any():
            raise SolveError("The least-squares matrix is zero: nothing in the problem depends on the features.")
        scale[scale == 0] = 1.0
        triangle /= scale
        return Factorization(self, reflectors, tau, triangle, scale, self.invert(triangle))

    @abstractmethod
    def invert(self, triangle: Matrix) -> _Inverse:
        """The truncated pseudo-inverse of a square triangle with unit columns."""


class SVD(LeastSquares):
    """Truncated singular value decomposition (the semantics of LAPACK's gelsd)."""

    def invert(self, triangle: Matrix) -> _Inverse:
        left, singular, right = svd(triangle, check_finite=False)
        rank = int(np.count_nonzero(singular > self.rcond * singular[0]))
        right, kept = right[:rank].T, singular[:rank]

        def finish(y: np.ndarray) -> np.ndarray:
            return right @ (y.T / kept).T

        def transposed(g: np.ndarray) -> np.ndarray:
            return rotation.T @ ((right.T @ g).T / kept).T

        rotation = left[:, :rank].T
        return _Inverse(rank, lambda y: rotation @ y, finish, transposed, float(singular[0] / singular[rank - 1]))


class QR(LeastSquares):
    """QR with column pivoting and a complete orthogonal decomposition (the semantics of LAPACK's gelsy).

    It is several times cheaper than the SVD of the triangle, and slightly more accurate on feature matrices. A triangle
    that is so well conditioned that nothing can be dropped is not pivoted. The condition number is an estimate: in the
    1-norm without pivoting, and otherwise the ratio of the diagonal entries, which is a lower bound.
    """

    def invert(self, triangle: Matrix) -> _Inverse:
        reciprocal, _ = lapack.dtrcon(triangle)
        # A lower bound of the smallest singular value, up to the small factor within which LAPACK estimates the norm of
        # the inverse. With pivoting, no diagonal entry would be smaller, and the first one would be 1.
        smallest = reciprocal * np.linalg.norm(triangle, 1) / len(triangle) ** 0.5
        if smallest > max(self.rcond, EPSILON):
            solves = partial(back_substitute, triangle), partial(solve_triangular, triangle, trans=1)
            return _Inverse(len(triangle), None, *solves, 1 / reciprocal)
        (reflectors, tau), r, pivots = qr(triangle, mode="raw", pivoting=True, check_finite=False)
        r = np.asfortranarray(r)
        diagonal = np.abs(np.diag(r))
        rank = int(np.count_nonzero(diagonal > self.rcond * diagonal[0]))
        if rank == len(diagonal):
            solve, solve_transposed = partial(back_substitute, r), partial(solve_triangular, r, trans=1)
        else:
            solve, solve_transposed = smallest_solution(r[:rank])

        def finish(y: np.ndarray) -> np.ndarray:
            solved = solve(y)
            c = np.empty_like(solved)
            c[pivots] = solved
            return c

        def transposed(g: np.ndarray) -> np.ndarray:
            return reflect(reflectors, tau, with_zeros(solve_transposed(g[pivots]), len(g)), "N")

        condition = float(diagonal[0] / diagonal[rank - 1])
        return _Inverse(rank, lambda y: reflect(reflectors, tau, y)[:rank], finish, transposed, condition)


@dataclass(frozen=True)
class Factorization:
    """A factored matrix: ``solve(b)`` for one right-hand side (rows,) or many (rows, k)."""

    method: LeastSquares
    reflectors: Matrix
    tau: Float[np.ndarray, " cols"]
    triangle: Float[np.ndarray, "cols cols"]
    scale: Float[np.ndarray, " cols"]
    inverse: Any

    @property
    def rank(self) -> int:
        """Numerical rank."""
        return self.inverse.rank

    @property
    def condition(self) -> float:
        """Condition number of the part that is kept, with columns scaled to unit norm."""
        return self.inverse.condition

    @cached_property
    def explicit(self) -> "Explicit":
        """The same factorization with an explicit Q, so that products replace reflections. Forming Q costs more than
        factoring; it pays off if there are about as many right-hand sides as A has columns, or more."""
        work = int(lapack.dorgqr(self.reflectors, self.tau, lwork=-1)[1][0])
        q, _, info = lapack.dorgqr(self.reflectors, self.tau, lwork=work)
        check_info(info, "dorgqr")
        rotate = self.inverse.rotate
        basis = q if rotate is None else np.asfortranarray(q @ rotate(np.eye(len(self.scale))).T)
        return Explicit(basis, self.inverse.finish, self.scale)

    def project(self, b: Tall) -> Short:
        """The leading entries of Qᵀb, on which alone the solution depends."""
        return reflect(self.reflectors, self.tau, b)[: len(self.scale)]

    def solve(self, b: Tall) -> Short:
        """The least-squares solution."""
        return self.finish(self.project(b))

    def missed(self, b: Tall) -> Any:
        """The norm of the part of right-hand sides that is outside of the range of A."""
        return np.linalg.norm(reflect(self.reflectors, self.tau, b)[len(self.scale) :], axis=0)

    def adjoint(self, g: Short) -> Tall:
        """The transpose of `solve`: how much each entry of a right-hand side contributes to gᵀc."""
        scaled = self.inverse.transposed((g.T / self.scale).T)
        return reflect(self.reflectors, self.tau, with_zeros(scaled, len(self.reflectors)), "N")

    def normal(self, g: Short) -> Short:
        """The coefficients c with AᵀA c = g, from the triangle: how a solution changes with rows that are added to it,
        if g is the product of these rows with their residuals. Its digits are fewer than those of `solve`."""
        scaled = self.inverse.transposed((g.T / self.scale).T)
        return (self.inverse.apply(scaled).T / self.scale).T

    def multiply(self, c: Short) -> Short:
        """The projection of A c, computed from the triangle."""
        return self.triangle @ (self.scale * c.T).T

    def finish(self, projected: Short) -> Short:
        """The solution from a projected right-hand side."""
        return (self.inverse.apply(projected).T / self.scale).T

    def coarse(self, projected: Short, columns: int) -> Short:
        """The solution in the space of the first `columns` columns, with zeros for the others.

        It is computed without the rows: the leading block of R is the triangle of the leading columns of A.
        """
        y = np.array(projected)
        y[columns:] = 0.0
        if self.inverse.rotate is None:  # back substitution keeps the zeros at the end
            return (back_substitute(self.triangle, y).T / self.scale).T
        if columns > 0:
            leading = np.asfortranarray(self.triangle[:columns, :columns])
            y[:columns] = (self.method.invert(leading).apply(y[:columns]).T / self.scale[:columns]).T
        return y


@dataclass(frozen=True)
class Explicit:
    """A factored matrix for very many right-hand sides, with an orthonormal basis of its range."""

    basis: Float[np.ndarray, "rows rank"]
    finish: Callable[[np.ndarray], np.ndarray]
    scale: Float[np.ndarray, " cols"]

    def project(self, b: Float[np.ndarray, "rows sides"]) -> Float[np.ndarray, "rank sides"]:
        """The coordinates of right-hand sides in the basis."""
        return self.basis.T @ b

    def complete(self, projected: Float[np.ndarray, "rank sides"]) -> Float[np.ndarray, "cols sides"]:
        """The least-squares solutions from projected right-hand sides."""
        solved = self.finish(projected)
        solved /= self.scale[:, None]
        return solved


class Folding:
    """min ‖A c - b‖ for rows that arrive in blocks and are not kept: each block is folded into the triangle of [A b].

    The memory does not depend on the number of rows. The reduced problem has the same solutions and the same residual
    norm.
    """

    ROWS_PER_COLUMN = 8
    """Rows that are collected before they are folded, per column. With more rows, folding repeats less work on the
    triangle; with fewer, it takes less memory."""

    @classmethod
    def rows_held(cls, columns: int) -> int:
        """The number of rows in memory."""
        return (1 + cls.ROWS_PER_COLUMN) * (columns + 1)

    def __init__(self, columns: int):
        self.columns, self._held = columns, columns + 1
        self._stack = np.zeros((self.rows_held(columns), self._held), order="F")
        self._filled = self._held  # the triangle, zero at first, takes the leading rows

    def add(self, A: Matrix, b: Vector) -> None:
        """Add rows of A and their right side."""
        done = 0
        while done < len(A):
            take = min(len(A) - done, len(self._stack) - self._filled)
            new = slice(self._filled, self._filled + take)
            self._stack[new, :-1], self._stack[new, -1] = A[done : done + take], b[done : done + take]
            self._filled, done = new.stop, done + take
            if self._filled == len(self._stack):
                self._fold()

    def _fold(self) -> None:
        reflectors, _ = triangularise(self._stack[: self._filled], overwrite=True)
        self._stack[: self._held] = np.triu(reflectors[: self._held])
        self._filled = self._held

    def reduced(self) -> tuple[Float[np.ndarray, "held cols"], Float[np.ndarray, " held"]]:
        """The reduced problem: a matrix with one row more than columns, and its right side."""
        return split(self.triangle())

    def triangle(self) -> Float[np.ndarray, "held held"]:
        """The triangle of [A b]."""
        self._fold()
        return self._stack[: self._held].copy(order="F")


def split(triangle: Float[np.ndarray, "held held"]) -> tuple[Matrix, Vector]:
    """The matrix and the right side of a problem that was reduced to a triangle of [A b]."""
    return triangle[:, :-1].copy(order="F"), triangle[:, -1].copy()


class Reflected(Sized):
    """The QR factorization of a matrix, which may be overwritten, without an inverse."""

    def __init__(self, A: Matrix):
        columns = A.shape[1]
        if len(A) < columns:
            A = np.concatenate([A, np.zeros((columns - len(A), columns))])
        self._columns, (self._reflectors, self._tau) = columns, triangularise(A, overwrite=True)
        self.triangle = np.asfortranarray(np.triu(self._reflectors[:columns]))

    def apply(self, b: Float[np.ndarray, "rows sides"]) -> tuple[Short, Float[np.ndarray, "rest sides"]]:
        """Qᵀ times a right-hand side: the part beside the triangle, and what no combination of the columns reaches."""
        missing = max(len(self._reflectors) - len(b), 0)
        whole = np.concatenate([b, np.zeros((missing, b.shape[1]))]) if missing else b
        found = reflect(self._reflectors, self._tau, whole)
        return found[: self._columns], found[self._columns :]


class Stacked(Sized):
    """The QR factorization of a triangle above another, with 2/3 n³ operations: the zeros of both are left alone."""

    def __init__(self, first: Float[np.ndarray, "n n"], second: Float[np.ndarray, "n n"]):
        n = len(first)
        found, self._below, self._factors, info = lapack.dtpqrt(
            n, min(TRIANGLE_BLOCK, n), np.asfortranarray(first), np.array(second, order="F"), overwrite_b=True
        )
        check_info(info, "dtpqrt")
        self.triangle = np.asfortranarray(np.triu(found))

    def apply(
        self, top: Float[np.ndarray, "n sides"], bottom: Float[np.ndarray, "n sides"]
    ) -> tuple[Float[np.ndarray, "n sides"], Float[np.ndarray, "n sides"]]:
        """Qᵀ times a right-hand side, given as the parts beside both triangles."""
        sides = [np.array(each, order="F") for each in (top, bottom)]
        *found, info = lapack.dtpmqrt(len(top), self._below, self._factors, *sides, trans="T")
        check_info(info, "dtpmqrt")
        return found[0], found[1]
