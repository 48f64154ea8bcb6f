"""Measures of the quality of a solution, and of the features that it is a combination of.

The inputs are values at sample points, as NumPy or JAX arrays or as nested lists; everything is computed by NumPy in
float64.
"""

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from pdofm._types import Matrix, Vector
from pdofm.errors import FeaturesError, PdofmError, ProblemError

ASYMMETRY = 1e-10
"""The largest difference between a Gram matrix and its transpose, relative to its largest entry, that counts as
rounding."""

# ---- solutions: u and exact hold the values at the same sample points, shape (N,) or (N, components)


def relative_l2(u: ArrayLike, exact: ArrayLike) -> float:
    """Relative error in the discrete L2 norm, sqrt(Σ|u − u*|² / Σ|u*|²) over the sample points."""
    u, exact = _pair(u, exact)
    size = _norm(exact)
    if size == 0.0:
        raise ProblemError(
            f"The exact solution is zero at all {exact.shape[0]} points; a relative error needs a nonzero one. "
            "Use max_error instead."
        )
    return _norm(u - exact) / size


def max_error(u: ArrayLike, exact: ArrayLike) -> float:
    """Largest absolute error at a sample point, max |u − u*|."""
    u, exact = _pair(u, exact)
    return float(np.max(np.abs(u - exact)))


# ---- features: U holds m features at N points, shape (N, m)


def gram(U: ArrayLike, measure: float | None = None) -> Matrix:
    """Gram matrix of the features, shape (m, m).

    With the `measure` |Ω| of the domain, it is the Monte Carlo approximation of the inner products in L2(Ω),
    G_jk = |Ω|/N Σ_i φ_j(x_i) φ_k(x_i) ≈ ∫_Ω φ_j φ_k dx. Without it, it is the plain sum UᵀU.
    """
    U = _matrix(U, "U")
    if measure is None:
        return U.T @ U
    if not (np.isfinite(measure) and measure > 0):
        raise FeaturesError(f"measure is {measure}; expected a positive number. Pass the volume of the domain.")
    return U.T @ U * (float(measure) / U.shape[0])


def effective_rank(gram_matrix: ArrayLike, eps: float = 1e-3) -> int:
    """Number of eigenvalues of a Gram matrix greater than `eps`.

    `eps` is absolute, so the rank depends on the scaling of the Gram matrix. Compare only ranks with the same scaling.
    """
    G = _matrix(gram_matrix, "The Gram matrix")
    if G.shape[0] != G.shape[1]:
        raise FeaturesError(f"The Gram matrix has shape {G.shape}; expected (m, m). Pass gram(U), not U.")
    if np.max(np.abs(G - G.T)) > ASYMMETRY * np.max(np.abs(G)):
        raise FeaturesError("The Gram matrix is not symmetric; expected a symmetric one. Pass gram(U).")
    if not eps >= 0:
        raise FeaturesError(f"eps is {eps}; expected a nonnegative number such as 1e-3.")
    return int(np.sum(scipy.linalg.eigvalsh(G) > eps))


def singular_spectrum(A: ArrayLike) -> Vector:
    """Singular values σ_1 ≥ σ_2 ≥ … of `A`, shape (min(rows, columns),)."""
    return np.linalg.svdvals(_matrix(A, "A"))


def condition(A: ArrayLike) -> float:
    """Condition number σ_max/σ_min of `A` in the 2-norm; infinite if a singular value is zero."""
    spectrum = singular_spectrum(A)
    return float(spectrum[0] / spectrum[-1]) if spectrum[-1] > 0.0 else float("inf")


def orthogonality_loss(U: ArrayLike, *, squared: bool = True, mean: bool = False) -> float:
    """Distance of the features from an orthonormal system, ‖UᵀU − I‖_F².

    With `squared=False` it is the norm itself. With `mean=True`, UᵀU/N takes the place of UᵀU, so that the value does
    not grow with the number of points.
    """
    U = _matrix(U, "U")
    G = U.T @ U / U.shape[0] if mean else U.T @ U
    distance = _norm(G - np.eye(U.shape[1]))
    return distance**2 if squared else distance


def projection_error(U: ArrayLike, Phi: ArrayLike, *, rcond: float | None = None) -> Vector:
    """Relative distance of every column φ of `Phi` from the span of the features, ‖φ − Pφ‖ / ‖φ‖.

    P is the orthogonal projection onto the columns of `U`. `Phi` has shape (N, k), or (N,) for one function; the result
    has shape (k,). It is meaningful only with many more points than features: with N ≤ m the features interpolate
    anything.

    P = U (UᵀU)⁻¹ Uᵀ is never formed. The condition number of UᵀU is the square of that of U, and features are usually
    nearly dependent: below σ_min/σ_max ≈ 1e-8 the inverse would be noise. The SVD U = QΣVᵀ gives an orthonormal basis Q
    and P = QQᵀ without an inverse. Columns of Q with σ ≤ `rcond`·σ_max consist of rounding errors and are left out;
    `rcond` defaults to max(N, m)·2.2e-16.
    """
    U = _matrix(U, "U")
    Phi = np.asarray(Phi)
    Phi = _matrix(Phi[:, None] if Phi.ndim == 1 else Phi, "Phi")
    if U.shape[0] != Phi.shape[0]:
        raise FeaturesError(
            f"U has {U.shape[0]} rows and Phi has {Phi.shape[0]}; expected the same. Evaluate both at the same points."
        )
    sizes = np.array([_norm(column) for column in Phi.T])
    if np.any(sizes == 0.0):
        zero = np.flatnonzero(sizes == 0.0).tolist()
        raise FeaturesError(
            f"Columns {zero} of Phi are zero at all points; a relative error needs nonzero functions. Leave them out."
        )
    Phi = Phi / sizes
    Q, sigma, _ = scipy.linalg.svd(U, full_matrices=False)
    if rcond is None:
        rcond = max(U.shape) * np.finfo(np.float64).eps
    Q = Q[:, sigma > rcond * sigma[0]]
    rest = Phi - Q @ (Q.T @ Phi)
    rest = rest - Q @ (Q.T @ rest)  # again: the first projection is inexact where most of Phi cancels
    return np.linalg.norm(rest, axis=0)


def mean_projection_error(U: ArrayLike, Phi: ArrayLike, *, rcond: float | None = None) -> float:
    """Mean of `projection_error` over the columns of `Phi`."""
    return float(np.mean(projection_error(U, Phi, rcond=rcond)))


# ---- input


def _pair(u: ArrayLike, exact: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    u = _real(u, "u", ProblemError)
    exact = _real(exact, "exact", ProblemError)
    if u.shape != exact.shape:
        raise ProblemError(
            f"u has shape {u.shape} and exact has shape {exact.shape}; expected the same. "
            "Evaluate both at the same points, and mind a trailing axis of length 1."
        )
    if u.size == 0 or u.ndim == 0:
        raise ProblemError(f"u and exact have shape {u.shape}; expected values at one or more points.")
    # A solution that blew up has an error, even if that is NaN. An exact solution must be finite.
    if not np.all(np.isfinite(exact)):
        raise ProblemError("exact has values that are not finite. Leave out the points where it is singular.")
    return u, exact


def _matrix(A: ArrayLike, name: str) -> np.ndarray:
    A = _real(A, name, FeaturesError)
    if A.ndim != 2:
        raise FeaturesError(f"{name} has shape {A.shape}; expected two axes: a row per point, a column per feature.")
    if A.size == 0:
        raise FeaturesError(f"{name} has shape {A.shape} and is empty; expected at least one row and one column.")
    if not np.all(np.isfinite(A)):
        raise FeaturesError(f"{name} has values that are not finite. Check the points and the scale of the features.")
    return A


def _real(values: ArrayLike, name: str, error: type[PdofmError]) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise error(f"{name} has dtype {array.dtype}; expected real numbers. Separate real and imaginary parts.")
    return array.astype(np.float64, copy=False)


def _norm(values: np.ndarray) -> float:
    """Euclidean norm of all entries, by nrm2 of BLAS, whose intermediate results neither overflow nor underflow."""
    return float(scipy.linalg.norm(values.ravel(), check_finite=False))
