"""Vectors that users pass to domains, and points between two others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import Array

from pdofm._types import Vector
from pdofm.errors import DomainError

Numbers = Sequence[Any] | np.ndarray | Array | float | int
"""The types that users may pass for a point, for several points, or for a number."""


def between(start: Any, end: Any, u: Any) -> Any:
    """The point at fraction u of the way from start to end; exact at both ends, unlike start + u (end - start)."""
    return start * (1 - u) + end * u


def finite_vector(value: Numbers, what: str, dim: int | None = None) -> Vector:
    """`value` as a read-only vector of finite numbers, of length `dim` if given; errors call it `what`."""
    expected = "a list of numbers" if dim is None else f"{dim} numbers"
    try:
        given = np.asarray(value)
        if given.dtype.kind in "SU":  # NumPy reads numbers from strings
            raise TypeError(value)
        vector = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError(f"The {what} is {value!r}; expected {expected}.") from error
    if vector.ndim != 1 or vector.size == 0 or dim not in (None, vector.size):
        raise DomainError(f"The {what} has shape {vector.shape}; expected {expected}.")
    if not np.isfinite(vector).all():
        raise DomainError(f"The {what} is {value!r}; expected finite numbers.")
    vector.setflags(write=False)
    return vector


def finite_number(value: Any, what: str) -> float:
    """`value` as a finite number; errors call it `what`."""
    if np.ndim(value) != 0 or np.asarray(value).dtype.kind not in "biuf":
        raise DomainError(f"The {what} is {value!r}; expected a number.")
    return float(finite_vector([value], what)[0])


def show(vector: Vector) -> str:
    """A vector as a short text, for `repr`."""
    return f"[{', '.join(f'{value:.6g}' for value in vector)}]"
