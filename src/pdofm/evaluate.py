"""Functions of a feature space at points, in chunks that bound the memory and share compiled code."""

from collections.abc import Iterable, Iterator

import jax
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Points
from pdofm.features import Features

Coefficients = Float[np.ndarray, "m C"]

CHUNK_BYTES = 2**21
"""Size of the largest block of rows that is assembled at once. Temporaries take a small multiple of it, which a core's
cache holds: larger blocks are slower, smaller ones spend their time on dispatch."""


def bucket(n: int) -> int:
    """n rounded up to one of four sizes per power of two, so that few shapes are compiled."""
    step = max(1, 2 ** (max(n - 1, 1).bit_length() - 3))
    return -(-n // step) * step


def largest_chunk(row_bytes: int) -> int:
    """How many rows of that size `CHUNK_BYTES` hold, a power of two, but at least 64."""
    return max(64, 2 ** ((CHUNK_BYTES // row_bytes).bit_length() - 1))


def chunks(n: int, row_bytes: int) -> Iterator[tuple[slice, int]]:
    """Slices of at most `CHUNK_BYTES`, and the padded size that all of them are evaluated at: one shape to compile."""
    if n == 0:
        return
    each = -(-n // -(-n // largest_chunk(row_bytes)))
    size = bucket(each) if each == n else -(-each // 16) * 16
    yield from pieces(n, size)


def pieces(n: int, size: int) -> Iterator[tuple[slice, int]]:
    """Slices of one size, and that size, which the last one is padded to."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n)), size


def padded(array: Float[np.ndarray, "n d"], size: int) -> Float[np.ndarray, "size d"]:
    """The array with its last row repeated up to `size` rows."""
    return np.concatenate([array, np.repeat(array[-1:], size - len(array), axis=0)])


FEW, FEW_POINTS = 6, 256
"""Functions and points that `evaluate_few` takes at once."""


@jax.jit
def _evaluate(features, coefficients: Array, points: Array) -> Array:
    # Of many functions the features are worth evaluating.
    function = features.value_of if len(coefficients) <= FEW else features.combine
    return jax.vmap(lambda z: jax.vmap(lambda c: function(z, c))(coefficients))(points)


def evaluate(features: Features, coefficients: np.ndarray, points: Points) -> Float[np.ndarray, "n C"]:
    """Σ cⱼ φⱼ at points, in chunks."""
    return evaluate_all(features, coefficients[None], points)[0]


def evaluate_all(features: Features, coefficients: Float[np.ndarray, "k m C"], points: Points) -> np.ndarray:
    """Several functions of the space at points, (k, n, C), all in one go."""
    row_bytes = 8 * max(coefficients.shape[1], len(coefficients) * coefficients.shape[2]) + features.working_bytes
    return _in_slices(features, coefficients, points, chunks(len(points), row_bytes))


def evaluate_few(features: Features, coefficients: Float[np.ndarray, "k m C"], points: Points) -> np.ndarray:
    """The same for up to six functions and some hundred points, in one shape whatever their numbers: for all that is
    evaluated once on the way to a solution."""
    filled = np.resize(coefficients, (FEW, *coefficients.shape[1:]))
    return _in_slices(features, filled, points, pieces(len(points), FEW_POINTS))[: len(coefficients)]


def _in_slices(
    features: Features, coefficients: np.ndarray, points: Points, slices: Iterable[tuple[slice, int]]
) -> np.ndarray:
    out = np.empty((len(coefficients), len(points), coefficients.shape[2]))
    for here, size in slices:
        values = np.asarray(_evaluate(features, coefficients, padded(points[here], size)))
        out[:, here] = np.moveaxis(values[: here.stop - here.start], 0, 1)
    return out


@jax.jit
def _feature_values(features, points: Array) -> Array:
    return jax.vmap(features)(points)


def feature_values(features: Features, points: Points) -> Float[np.ndarray, "n m"]:
    """All features at points, in chunks."""
    out = np.empty((len(points), features.size), order="F")
    for here, size in chunks(len(points), 8 * features.size + features.working_bytes):
        out[here] = np.asarray(_feature_values(features, padded(points[here], size)))[: here.stop - here.start]
    return out
