"""Sparse square systems with multipliers: equations for coefficients, under conditions that hold exactly."""

import numpy as np
from jaxtyping import Shaped
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
