"""Exponents of solutions where several regions meet in a point."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import eigh

from pdofm._types import Vector

DEGREE, WIDEST = 10, math.pi / 4
"""Degree of the polynomials for w, and the widest part of a sector that one of them is used in."""

ZERO = 1e-8
"""Eigenvalues below this belong to constants."""

HIGHEST = 4.0
"""The largest exponent of singular functions; polynomials resolve functions with larger ones."""

ALIKE = 1e-9
"""Exponents that differ by less are one."""


def exponents(
    sectors: Sequence[tuple[float, float]], ends: tuple[bool, bool] | None = None, highest: float = HIGHEST
) -> Vector:
    """The positive exponents α up to `highest` of solutions r^α w(θ) in sectors, given by their angles and
    coefficients k in their order, each once; at least the smallest one. `ends` says whether w is given (else k w') at
    the two ends; None closes the circle."""
    parts = [(a / n, k) for a, k in sectors for n in [math.ceil(a / WIDEST)] for _ in range(n)]
    size = len(parts) * DEGREE + 1
    values, slopes, weights = _on_a_part()
    # Rows of k w'² and k w² at nodes of quadrature, with square roots of the weights.
    of_slopes, of_values = (np.zeros((len(parts) * len(weights), size)) for _ in range(2))
    for i, (angle, k) in enumerate(parts):
        rows, here = slice(i * len(weights), (i + 1) * len(weights)), slice(i * DEGREE, (i + 1) * DEGREE + 1)
        of_slopes[rows, here] = np.sqrt(k / angle * weights)[:, None] * slopes
        of_values[rows, here] = np.sqrt(k * angle * weights)[:, None] * values
    if ends is None:  # the last node is the first one
        fold = np.eye(size, size - 1)
        fold[-1, 0] = 1.0
        of_slopes, of_values = of_slopes @ fold, of_values @ fold
    else:
        kept = slice(1 if ends[0] else 0, size - 1 if ends[1] else size)
        of_slopes, of_values = of_slopes[:, kept], of_values[:, kept]
    scale = 1 / np.linalg.norm(of_values, axis=0)
    of_slopes, of_values = of_slopes * scale, of_values * scale
    squares, vectors = eigh(of_slopes.T @ of_slopes, of_values.T @ of_values)
    # Quotients of norms have a small relative error even where an eigenvalue is far below the largest.
    found = np.linalg.norm(of_slopes @ vectors, axis=0) / np.linalg.norm(of_values @ vectors, axis=0)
    found = found[squares > ZERO]
    found = found[np.append(True, np.diff(found) > ALIKE)]
    return found[: max(1, int(np.searchsorted(found, highest * (1 + ALIKE))))]


@lru_cache(maxsize=1)
def _on_a_part() -> tuple[np.ndarray, np.ndarray, Vector]:
    """The values and slopes of Lagrange's polynomials on [0, 1] at nodes of quadrature, and the weights of these."""
    nodes = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2
    at, weights = np.polynomial.legendre.leggauss(DEGREE + 2)
    at, weights = (at + 1) / 2, weights / 2
    powers = np.linalg.inv(chebyshev.chebvander(2 * nodes - 1, DEGREE))
    values = chebyshev.chebvander(2 * at - 1, DEGREE) @ powers
    slopes = np.stack([chebyshev.chebval(2 * at - 1, 2 * chebyshev.chebder(c)) for c in powers.T], axis=1)
    return values, slopes, weights
