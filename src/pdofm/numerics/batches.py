"""Many points in batches of few shapes: compiled code is shared, and memory is bounded."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

BATCH_BYTES = 2**21
"""Size of the arrays that are made at once. A core's cache holds a few of them: larger ones are slower, smaller ones
spend their time on dispatch."""

FEWEST = 8
"""A batch is never smaller than this fraction of the full one: few points are padded to it, so that at most two shapes
are compiled."""


def batch_size(point_bytes: int) -> int:
    """The number of points whose arrays, of so many bytes each, fill a batch: a power of two, at least 64."""
    return max(64, 2 ** ((BATCH_BYTES // max(point_bytes, 1)).bit_length() - 1))


def slices(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover n points."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def batches(n: int, size: int) -> Iterator[tuple[slice, int]]:
    """Slices that cover n points, each with the size that its points are padded to: `size`, or for a few points that
    are left an eighth of it."""
    for here in slices(n, size):
        few = max(size // FEWEST, 1)
        yield here, few if here.stop - here.start <= few else size


def padded(array: Float[np.ndarray, "n *rest"], size: int) -> Float[np.ndarray, "size *rest"]:
    """The array with its last row repeated up to `size` rows."""
    if len(array) == size:
        return array
    return np.concatenate([array, np.repeat(array[-1:], size - len(array), axis=0)])
