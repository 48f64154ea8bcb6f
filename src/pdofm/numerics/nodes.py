"""Nodes of quadrature and interpolation in the unit cube: products of nodes of an interval."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from pdofm._types import Points, Vector


@lru_cache(maxsize=256)
def gauss(count: int) -> Vector:
    """The nodes of Gauss and Legendre in (0, 1)."""
    return (np.polynomial.legendre.leggauss(count)[0] + 1) / 2


@lru_cache(maxsize=256)
def gauss_weights(count: int) -> Vector:
    """The weights that belong to these nodes; their sum is 1."""
    return np.polynomial.legendre.leggauss(count)[1] / 2


@lru_cache(maxsize=256)
def chebyshev(count: int) -> Vector:
    """The roots of a Chebyshev polynomial, in (0, 1)."""
    return (1 - np.cos((np.arange(count) + 0.5) * np.pi / count)) / 2


def tensor(along: Sequence[Float[np.ndarray, " _"]]) -> Points:
    """The products of nodes along each axis, the last axis fastest; the one point there is without axes."""
    if not along:
        return np.zeros((1, 0))
    return np.stack(np.meshgrid(*along, indexing="ij"), axis=-1).reshape(-1, len(along))


@lru_cache(maxsize=64)
def midpoints(count: int, dim: int) -> Points:
    """The midpoints of equal cells, so many along each axis."""
    return tensor([(np.arange(count) + 0.5) / count] * dim)


@lru_cache(maxsize=256)
def tensor_gauss(counts: tuple[int, ...]) -> Points:
    """Products of Gauss nodes."""
    return tensor([gauss(count) for count in counts])


@lru_cache(maxsize=256)
def tensor_chebyshev(counts: tuple[int, ...]) -> Points:
    """Products of Chebyshev nodes."""
    return tensor([chebyshev(count) for count in counts])
