"""Members of a linear family in few functions: the equation itself is solved, with matrices that are known beforehand.

The matrix of a member is a combination of those of some others, A(mu) = Σ θ_q(mu) A(mu_q), and so is its right side;
θ are polynomials in mu. Its residual is measured behind the inverse of one fixed member: ‖A₀⁺(A(mu) B y - b(mu))‖ in L²
is the error itself if A(mu) is A₀, and near it otherwise. The matrices A₀⁺ A(mu_q) B are reduced by one QR to as many
rows as they have columns, so that no squares of small numbers are taken.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack, qr, solve_triangular

from pdofm.families.polynomial import Parameters, Polynomial, interpolated

SAME = 1e-13
"""What a matrix differs from a combination of others, relative to the largest, if it is one."""


@dataclass(frozen=True, eq=False)
class Projection:
    """A linear system in few unknowns.

    Attributes:
        left, right: the matrices (q, rows, r) and right sides (p, rows) that are combined.
        of_left, of_right: how they are combined, as functions of the parameters.
        typical: the smallest singular value of the combined matrix at usual parameters.
    """

    left: Float[np.ndarray, "q rows r"]
    right: Float[np.ndarray, "p rows"]
    of_left: Polynomial
    of_right: Polynomial
    typical: float

    def solve(self, mu: Parameters, size: int | None = None) -> tuple[Float[np.ndarray, " r"], float, float]:
        """The coordinates of a member in the first `size` functions, all by default; its residual, which estimates the
        error in L² of a problem like that of the fixed member; and the smallest singular value, about."""
        q, rows, r = self.left.shape
        size = r if size is None else size
        matrix = np.asfortranarray((self.of_left(mu) @ self.left.reshape(q, -1)).reshape(rows, r)[:, :size])
        right = self.of_right(mu) @ self.right
        factored, tau, _, _ = lapack.dgeqrf(matrix, overwrite_a=1)
        projected = lapack.dormqr("L", "T", factored, tau, right[:, None], 64 * max(rows, 1))[0][:, 0]
        triangle = np.asfortranarray(factored[:size])
        y = solve_triangular(triangle, projected[:size], check_finite=False)
        reciprocal = lapack.dtrcon(triangle, uplo="U")[0]
        smallest = reciprocal * np.abs(np.triu(triangle)).sum(axis=0).max()
        return y, float(np.linalg.norm(projected[size:])), float(smallest)


def chosen(samples: Float[np.ndarray, "n values"], tol: float) -> np.ndarray:
    """Some of the samples, of which all others are combinations: by QR with column pivoting."""
    triangle, pivots = qr(samples.T, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(triangle))
    return np.sort(pivots[: max(1, int(np.count_nonzero(diagonal > tol * diagonal[0])))])


def combined(
    mus: Float[np.ndarray, "n parameters"], samples: Float[np.ndarray, "n values"], tol: float
) -> tuple[np.ndarray, Polynomial]:
    """Numbers of samples of which all are combinations, and the weights as a function of the parameters."""
    picked = chosen(samples, SAME)
    if len(picked) > len(mus) // 2:
        picked = chosen(samples, 0.1 * tol)
    weights = np.linalg.lstsq(samples[picked].T, samples.T, rcond=1e-15)[0].T
    return picked, interpolated(mus, weights, 1e-2 * tol)


def compressed(
    left: Float[np.ndarray, "q rows r"], right: Float[np.ndarray, "p rows"]
) -> tuple[Float[np.ndarray, "q few r"], Float[np.ndarray, "p few"]]:
    """The same matrices and right sides in coordinates of the space that all of their columns span."""
    q, rows, r = left.shape
    columns = np.concatenate([np.moveaxis(left, 1, 0).reshape(rows, q * r), right.T], axis=1)
    triangle = qr(columns, mode="r", check_finite=False)[0][: min(columns.shape)]
    few = len(triangle)
    parts = np.moveaxis(triangle[:, : q * r].reshape(few, q, r), 1, 0), triangle[:, q * r :].T
    return np.ascontiguousarray(parts[0]), np.ascontiguousarray(parts[1])
