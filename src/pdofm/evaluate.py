"""Functions of a feature space at points, in chunks that bound the memory and share compiled code."""

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


def chunks(n: int, row_bytes: int):
    """Slices of at most `CHUNK_BYTES`, and the padded size that each is evaluated at."""
    size = max(64, 2 ** ((CHUNK_BYTES // row_bytes).bit_length() - 1))
    for start in range(0, n, size):
        stop = min(start + size, n)
        yield slice(start, stop), bucket(stop - start)


def padded(array: Float[np.ndarray, "n d"], size: int) -> Float[np.ndarray, "size d"]:
    """The array with its last row repeated up to `size` rows."""
    return np.concatenate([array, np.repeat(array[-1:], size - len(array), axis=0)])


@jax.jit
def _evaluate(features, coefficients: Array, points: Array) -> Array:
    return jax.vmap(lambda z: jax.vmap(lambda c: features.combine(z, c))(coefficients))(points)


def evaluate(features: Features, coefficients: np.ndarray, points: Points) -> Float[np.ndarray, "n C"]:
    """Σ cⱼ φⱼ at points, in chunks."""
    return evaluate_all(features, coefficients[None], points)[0]


def evaluate_all(features: Features, coefficients: Float[np.ndarray, "k m C"], points: Points) -> np.ndarray:
    """Several functions of the space at points, (k, n, C); the features are evaluated once."""
    out = np.empty((len(coefficients), len(points), coefficients.shape[2]))
    row_bytes = 8 * max(coefficients.shape[1], out.shape[0] * out.shape[2]) + features.working_bytes
    for here, size in chunks(len(points), row_bytes):
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
