"""A rank-revealing QR factorisation that solves from both sides: min ‖A c - b‖, and the adjoint of that map."""

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack, qr, solve_triangular

from pdofm.errors import SolveError

Matrix = Float[np.ndarray, "_ _"]


class LeftAndRight:
    """A factored matrix A with at least as many rows as columns: ``solve(b)`` is A⁺ b, and ``solve_left(w)`` is (A⁺)ᵀ w.

    Columns are scaled to unit norm. Those that depend on others, up to `rcond`, get the coefficient zero.
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
        self._r, self._q = np.asfortranarray(r[: self.rank, : self.rank]), self._q[:, : self.rank]

    def solve(self, b: Matrix) -> Matrix:
        """The least-squares solutions for right-hand sides (rows, k)."""
        columns, k = len(self._scale), b.shape[1]
        work = 64 * max(k, 1)
        rotated = lapack.dormqr("L", "T", self._reflectors, self._tau, np.asfortranarray(b), work)[0][:columns]
        found = np.zeros((columns, k))
        found[self._pivots[: self.rank]] = solve_triangular(self._r, self._q.T @ rotated, check_finite=False)
        return found / self._scale[:, None]

    def solve_left(self, w: Matrix) -> Matrix:
        """The adjoint of `solve` for vectors (columns, k)."""
        columns, k = w.shape
        scaled = (w / self._scale[:, None])[self._pivots[: self.rank]]
        rotated = np.zeros((len(self._reflectors), k), order="F")
        rotated[:columns] = self._q @ solve_triangular(self._r, scaled, trans="T", check_finite=False)
        return lapack.dormqr("L", "N", self._reflectors, self._tau, rotated, 64 * max(k, 1), overwrite_c=True)[0]
