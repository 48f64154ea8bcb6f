"""Values that are known at given points."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.terms import Where
from pdofm.domain import Part
from pdofm.errors import ProblemError


class Tabulated:
    """The function on given points that has the given values there: at any point, the value of the nearest one.

    Args:
        points: shape (n, d), time included.
        values: shape (n, k).
    """

    def __init__(self, points: np.ndarray, values: np.ndarray):
        self._points, self._values = points, values

    def __call__(self, *args: Array) -> Array:
        z = jnp.concatenate([jnp.atleast_1d(jnp.asarray(each)) for each in args])
        nearest = jnp.argmin(jnp.sum((jnp.asarray(self._points) - z[None]) ** 2, axis=1))
        return jnp.asarray(self._values)[nearest]

    def __repr__(self) -> str:
        return f"<{len(self._values)} values>"


def tabulated(value: Any, on: Where, name: str, components: int) -> Any:
    """The data of a condition: an array with one entry, or one row, for each point of `on` becomes a function; other
    data are returned as they are."""
    if callable(value) or value is None or isinstance(value, tuple) or np.ndim(value) == 0:
        return value
    if on is None or isinstance(on, Part):
        return value
    values = np.asarray(value, dtype=np.complex128 if np.iscomplexobj(value) else np.float64)
    points = np.asarray(on, dtype=np.float64)
    points = points[:, None] if points.ndim == 1 else points  # on a line
    if values.ndim == 1 and components > 1:
        return value  # one constant for each component
    rows = values[:, None] if values.ndim == 1 else values
    if rows.ndim != 2 or rows.shape not in ((len(points), components), (1, components)):
        expected = f"({len(points)},)" if components == 1 else f"({len(points)}, {components})"
        raise ProblemError(
            f"Condition {name!r} was given values of shape {values.shape} at {len(points)} points; expected "
            f"{expected}, one for each point, or a number."
        )
    if not np.isfinite(rows).all():
        raise ProblemError(f"Condition {name!r}: some values are infinite or NaN. Leave these points out.")
    return Tabulated(points, np.broadcast_to(rows, (len(points), components)))


def shown(value: Any) -> str:
    """A value for a `repr`: functions by name, points and many values by number."""
    if isinstance(value, Part):
        return repr(value)
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    entries = np.shape(value)
    if len(entries) == 0 or (len(entries) == 1 and entries[0] < 4):
        return repr(value)
    return f"<{entries[0]} {'values' if len(entries) == 1 else 'points'}>"
