"""Square systems with multipliers: equations for coefficients, under conditions that hold exactly."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Shaped
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import block_array, csc_array, diags_array

from pdofm.errors import SolveError
from pdofm.marching.band import SINGULAR

LOOSENESS = 1e-9
"""How far conditions may be missed, in units of the multipliers. Where boxes meet, some conditions say the same, and
without this the matrix would be singular. Multipliers vanish with the residual of the equation, so that a solution that
is resolved satisfies its conditions much better than this."""


class Saddle:
    """The factors of [[M, Bᵀ], [B, 0]], with M the equations and B the conditions."""

    def __init__(self, square: csc_array, conditions: csc_array):
        from scipy.sparse.linalg import splu  # slow to import

        n, k = square.shape[0], conditions.shape[0]
        # Equations are scaled to one size, together with the multipliers in them.
        self._scale = 1 / np.maximum(abs(square).max(axis=1).toarray().reshape(-1), 1e-300)
        scale = diags_array(self._scale)
        loose = diags_array(np.full(k, -LOOSENESS))
        forces = conditions.conj().T / np.median(self._scale)
        whole = block_array([[scale @ square, scale @ forces], [conditions, loose]], format="csc")
        try:
            self._lu = splu(whole, permc_spec="COLAMD")
        except RuntimeError as error:
            raise SolveError(SINGULAR) from error
        self._size, self._is_complex = n, np.iscomplexobj(whole.data)

    def solve(self, rows: Shaped[np.ndarray, " _"]) -> Shaped[np.ndarray, " _"]:
        """The coefficients for one right-hand side; the multipliers are left out."""
        right = np.concatenate([rows[: self._size] * self._scale, rows[self._size :]])
        return self._lu.solve(right if self._is_complex else right.real)[: self._size]


@dataclass(frozen=True, eq=False)
class SaddleFactors:
    """A factored matrix for each of k rates."""

    each: "tuple[Saddle | DenseSaddle, ...]"

    def solve(self, rows: Complex[np.ndarray, "k ... _"]) -> Complex[np.ndarray, "k ... _"]:
        """The functions for right-hand sides: one per rate, or, with dense matrices, several."""
        return np.stack([one.solve(row) for one, row in zip(self.each, rows, strict=True)])


class Conditions:
    """Dense conditions B, in no more rows than columns: of more rows only BᴴB matters, which is that of the triangle in
    B = QR."""

    def __init__(self, matrix: Shaped[np.ndarray, "k n"]):
        if not np.all(np.isfinite(matrix)):
            raise SolveError(SINGULAR)
        self._turn, self.matrix = None, matrix
        if matrix.shape[0] > matrix.shape[1]:
            self._turn, self.matrix = np.linalg.qr(matrix)

    def turned(self, data: Shaped[np.ndarray, "... _"]) -> Shaped[np.ndarray, "... _"]:
        """The right-hand sides of these rows, from those of all conditions."""
        return data if self._turn is None else data @ self._turn.conj()


class DenseSaddle:
    """`Saddle` with dense matrices."""

    def __init__(self, square: Shaped[np.ndarray, "n n"], conditions: Conditions):
        if not np.all(np.isfinite(square)):
            raise SolveError(SINGULAR)
        n, k = len(square), len(conditions.matrix)
        self._scale = 1 / np.maximum(np.abs(square).max(axis=1), 1e-300)
        forces = self._scale[:, None] * conditions.matrix.conj().T / np.median(self._scale)
        whole = np.block([[self._scale[:, None] * square, forces], [conditions.matrix, -LOOSENESS * np.eye(k)]])
        self._lu = lu_factor(whole, overwrite_a=True, check_finite=False)
        self._size, self._conditions, self._is_complex = n, conditions, np.iscomplexobj(whole)
        if not np.all(np.isfinite(self._lu[0])) or np.any(np.diagonal(self._lu[0]) == 0):
            raise SolveError(SINGULAR)

    def solve(self, rows: Shaped[np.ndarray, "... _"]) -> Shaped[np.ndarray, "... _"]:
        """The coefficients for right-hand sides, one in each row; the multipliers are left out."""
        data = self._conditions.turned(rows[..., self._size :])
        right = np.concatenate([rows[..., : self._size] * self._scale, data], axis=-1).T
        return lu_solve(self._lu, right if self._is_complex else np.real(right), check_finite=False)[: self._size].T
