"""Liftings: functions with given boundary values, which hard conditions add to every function of a space."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Point, Points
from pdofm.calculus.jets import Index
from pdofm.calculus.terms import joined
from pdofm.errors import FeaturesError
from pdofm.features.base import all_derivatives
from pdofm.numerics.batches import in_batches, two_sizes

Lifting = Any
"""A number, several numbers (one per component), or a function of a point that returns either."""

LIFTING_POINTS = 256
"""Points per call of a compiled lifting. Users write liftings as short formulas, so that a call with more points would
gain little, and the last one would compute more padding."""


def as_lifting(value: Lifting) -> Lifting:
    """A lifting as something that can be compared: a function, a number, or a tuple of numbers."""
    if callable(value):
        return value
    found = np.asarray(value, dtype=np.float64)
    return float(found) if found.ndim == 0 else tuple(found.ravel().tolist())


def lifting_at(value: Lifting, x: Point, components: int, has_time: bool) -> Float[Array, " C"]:
    """A lifting at one point."""
    found = _fitting(_at(value, x, has_time), components)
    return jnp.broadcast_to(found, (components,))


def lifting_jets(
    value: Lifting, points: Points, which: Sequence[Index], components: int, has_time: bool
) -> Float[np.ndarray, "a n C"]:
    """The derivatives `which` of a lifting at points."""
    shape = (len(which), len(points), components)
    if not callable(value):
        numbers = np.atleast_1d(value)
        found = np.zeros((*shape[:2], len(numbers)))
        found[[not any(index) for index in which]] = numbers
    elif not which:
        found = np.zeros(shape)
    else:
        compiled = partial(_derivatives, value=value, which=tuple(which), has_time=has_time)
        found = in_batches(compiled, (points,), two_sizes(LIFTING_POINTS), axis=1)
    return np.broadcast_to(_fitting(found, components), shape)


def _at(value: Lifting, x: Point, has_time: bool) -> Float[Array, " _"]:
    """A lifting at one point: one number, or one per component."""
    arguments = (x[:-1], x[-1]) if has_time else (x,)
    return joined(value(*arguments) if callable(value) else value).astype(x.dtype)


@partial(jax.jit, static_argnames=("value", "which", "has_time"))
def _derivatives(points: Array, value: Callable[..., Any], which: tuple[Index, ...], has_time: bool) -> Array:
    """The derivatives, of shape (a, n, C)."""
    return jnp.moveaxis(jax.vmap(all_derivatives(lambda x: _at(value, x, has_time), which))(points), 0, 1)


def _fitting(found: Any, components: int) -> Any:
    """The values of a lifting; an error unless they have one entry, or one per component, along the last axis."""
    if found.shape[-1] not in (1, components):
        raise FeaturesError(
            f"The lifting of HardDirichlet has {found.shape[-1]} components, the unknowns have {components}. "
            "Give one number, or one per component."
        )
    return found
