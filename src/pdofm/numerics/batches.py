"""Functions of many points, evaluated batch by batch: few sizes to compile for, and bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Shaped

BATCH_BYTES = 2**21
"""Bytes of the arrays that are computed for one batch. A few arrays of this size fit into the cache of a core: larger
batches are slower, and smaller ones spend their time on dispatch."""

FEWEST_POINTS = 64
"""The smallest full batch, in points, however many bytes a point takes."""

REMAINDER_FRACTION = 8
"""A full batch over a small one. A remainder that fits into a small batch is not padded to a full one; two sizes in all
keep the compilations few."""

POINTS_PER_CALL = 512
"""Points per call of a compiled function that the user wrote (a left side, a right side). All calls have this one size,
because compiling for a second size takes longer than evaluating the padding."""


def batch_size(point_bytes: int, least: int = FEWEST_POINTS) -> int:
    """The number of points whose arrays, of `point_bytes` each, fill a batch: a power of two, or `least` if larger."""
    return max(least, 2 ** ((BATCH_BYTES // max(point_bytes, 1)).bit_length() - 1))


def two_sizes(size: int) -> tuple[int, int]:
    """The small and the full batch for `in_batches`, given the full one."""
    return max(size // REMAINDER_FRACTION, 1), size


def slices(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover n points."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def padded(array: Shaped[np.ndarray, "n *rest"], size: int) -> Shaped[np.ndarray, "size *rest"]:
    """The array with its last row repeated up to `size` rows."""
    if len(array) == size:
        return array
    return np.concatenate([array, np.repeat(array[-1:], size - len(array), axis=0)])


def in_batches(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], sizes: Sequence[int], *, axis: int = 0
) -> Any:
    """`function(*arrays)`, computed from batches of rows.

    Args:
        function: maps arrays with n rows each to one array, or a tuple of arrays, with n entries along `axis`; usually
            compiled, and therefore only called with as many rows as `sizes` lists.
        arrays: the arguments, with n rows each. A batch that is too short is padded with copies of its last row.
        sizes: the numbers of rows that `function` is called with, in ascending order.
        axis: the axis of the results that runs over the rows.

    Returns:
        What `function` returns, as NumPy arrays.
    """
    n, found, waiting = len(arrays[0]), None, None
    for here in slices(n, sizes[-1]):
        size = next(size for size in sizes if size >= here.stop - here.start)
        values = function(*(padded(array[here], size) for array in arrays))
        if found is None:
            found = _empty_like(values, n, axis)
        # JAX returns before the values are computed: the batch before is copied in the meantime.
        if waiting is not None:
            _store(found, *waiting, axis)
        waiting = here, values
    if waiting is None:  # without rows there is nothing to compute but the shapes
        rows = (jax.ShapeDtypeStruct((sizes[0], *array.shape[1:]), array.dtype) for array in arrays)
        return _empty_like(jax.eval_shape(function, *rows), 0, axis)
    _store(found, *waiting, axis)
    return found


def _empty_like(values: Any, n: int, axis: int) -> Any:
    """Arrays of the shapes of `values`, but with n entries along the axis."""
    if isinstance(values, tuple):
        return tuple(_empty_like(each, n, axis) for each in values)
    shape = list(values.shape)
    shape[axis] = n
    return np.empty(shape, values.dtype)


def _store(found: Any, here: slice, values: Any, axis: int) -> None:
    """Copy the values of a batch to their place, without those of the padding."""
    if isinstance(values, tuple):
        for into, each in zip(found, values, strict=True):
            _store(into, here, each, axis)
        return
    before = (slice(None),) * (axis % values.ndim)
    found[(*before, here)] = np.asarray(values)[(*before, slice(here.stop - here.start))]
