"""Few functions for many: those that represent snapshots best."""

import numpy as np
from jaxtyping import Float
from scipy.linalg import qr, svd

from pdofm.errors import unknown_name

ROUNDS = 7
"""How often weights are adapted to the errors."""

SPREAD = 1e-3
"""The smallest error that counts, relative to the median: far smaller ones need no attention."""

TARGETS = ("worst", "mean")


def principal(
    rows: Float[np.ndarray, "rows k"], size: int, target: str = "worst"
) -> tuple[Float[np.ndarray, "k size"], Float[np.ndarray, " q"]]:
    """The combinations of k snapshots whose rows are orthonormal and represent all of them best, and the singular
    values; each snapshot should have norm 1.

    "worst" is the singular value decomposition, which minimises the sum of squares and therefore minds the largest
    errors. "mean" weighs each snapshot with the inverse of its error, again and again, which minimises the mean of the
    logarithms: the typical error is several times smaller, the largest one usually grows.
    """
    if target not in TARGETS:
        raise unknown_name("target", target, TARGETS)
    triangle = qr(rows, mode="r", check_finite=False)[0][: min(rows.shape)]
    weights = np.ones(rows.shape[1])

    def decomposed() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        left, singular, right = svd(triangle * weights, full_matrices=False, check_finite=False)
        kept = min(size, int(np.count_nonzero(singular > 1e-15 * singular[0])))
        return left[:, :kept], singular, right[:kept]

    for _ in range(ROUNDS if target == "mean" else 0):
        basis, _, _ = decomposed()
        errors = np.linalg.norm(triangle - basis @ (basis.T @ triangle), axis=0)
        typical = float(np.median(errors)) or 1.0
        weights = np.sqrt(weights * typical / np.maximum(errors, SPREAD * typical))
    _, singular, right = decomposed()
    return weights[:, None] * (right.T / singular[: len(right)]), singular
