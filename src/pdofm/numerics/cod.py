"""A rank-revealing QR factorisation that solves from both sides: min ‖A c - b‖, and the adjoint of that map."""

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack, qr, solve_triangular

from pdofm.errors import SolveError

Matrix = Float[np.ndarray, "_ _"]


class LeftAndRight:
    """A factored matrix A, not wider than high: ``solve(b)`` is A⁺ b, and ``solve_left(w)`` is (A⁺)ᵀ w.

    Columns are scaled to unit norm. Directions below `rcond` are dropped, and of all solutions the smallest is taken:
    large coefficients would drown the residual in rounding errors. `rank` is the number of directions that are kept,
    and `condition` the ratio of the largest to the smallest of them, by the diagonal of the triangle.
    """

    def __init__(self, matrix: Matrix, rcond: float = 1e-15):
        rows, columns = matrix.shape
        if rows < columns:
            raise SolveError(f"Fewer rows than unknown coefficients: {rows} rows for {columns} coefficients.")
        if not np.isfinite(matrix).all():
            raise SolveError(
                "The least-squares matrix has entries that are not finite. Check the operator and the features."
            )
        self._scale = np.linalg.norm(matrix, axis=0)
        self._scale[self._scale == 0] = 1.0
        scaled = np.asfortranarray(matrix / self._scale)
        self._reflectors, self._tau, _, _ = lapack.dgeqrf(scaled, lwork=64 * columns, overwrite_a=True)
        # The tall matrix is reduced to a triangle first: pivoting is slow.
        self._q, r, self._pivots = qr(np.triu(self._reflectors[:columns]), pivoting=True, check_finite=False)
        diagonal = np.abs(np.diag(r))
        self.rank = int(np.count_nonzero(diagonal > rcond * diagonal[0]))
        self.condition = float(diagonal[0] / diagonal[max(self.rank, 1) - 1]) if self.rank else 1.0
        self._q = self._q[:, : self.rank]
        # A = Q lower Zᵀ, with as many orthonormal columns in Z as the rank.
        self._z, upper = qr(r[: self.rank].T, mode="economic", check_finite=False)
        self._lower = np.asfortranarray(upper.T)

    def solve(self, b: Matrix) -> Matrix:
        """The least-squares solutions for right-hand sides (rows, k)."""
        columns, k = len(self._scale), b.shape[1]
        work = 64 * max(k, 1)
        rotated = lapack.dormqr("L", "T", self._reflectors, self._tau, np.asfortranarray(b), work)[0][:columns]
        found = np.zeros((columns, k))
        found[self._pivots] = self._z @ solve_triangular(
            self._lower, self._q.T @ rotated, lower=True, check_finite=False
        )
        return found / self._scale[:, None]

    @property
    def range(self) -> Matrix:
        """An orthonormal basis of what A maps to, (rows, rank)."""
        found = np.zeros((len(self._reflectors), self.rank), order="F")
        found[: len(self._q)] = self._q
        return lapack.dormqr("L", "N", self._reflectors, self._tau, found, 64 * self.rank, overwrite_c=True)[0]

    @property
    def preimages(self) -> Matrix:
        """The smallest vectors that A maps to this basis, (columns, rank)."""
        found = np.empty((len(self._scale), self.rank), order="F")
        found[self._pivots] = solve_triangular(self._lower, self._z.T, lower=True, trans="T", check_finite=False).T
        return found / self._scale[:, None]

    def solve_left(self, w: Matrix) -> Matrix:
        """The adjoint of `solve` for vectors (columns, k)."""
        columns, k = w.shape
        scaled = self._z.T @ (w / self._scale[:, None])[self._pivots]
        rotated = np.zeros((len(self._reflectors), k), order="F")
        rotated[:columns] = self._q @ solve_triangular(self._lower, scaled, lower=True, trans="T", check_finite=False)
        return lapack.dormqr("L", "N", self._reflectors, self._tau, rotated, 64 * max(k, 1), overwrite_c=True)[0]
