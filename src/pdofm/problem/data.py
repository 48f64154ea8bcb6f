"""The data of a problem: the right sides of its terms."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Points, SpaceNormals
from pdofm.calculus.terms import Fields, Layout, LeftSide, joined
from pdofm.numerics.batches import padded, slices
from pdofm.problem.conditions import call

BATCH = 512
"""Points that a right side is evaluated at in one go: one shape, one compilation."""


@dataclass(frozen=True)
class Exact:
    """The exact solution, compared by value so that compiled functions are shared."""

    functions: Any

    def fields(self) -> Any:
        return self.functions if callable(self.functions) else Fields(dict(self.functions))


@dataclass(frozen=True)
class Manufactured:
    lhs: LeftSide
    exact: Exact
    numbers: ClassVar[None] = None

    def __call__(self, layout: Layout, args: tuple[Array, ...], normal: Array) -> Array:
        u = self.exact.fields()
        return self.lhs(u, u, args, normal)


@dataclass(frozen=True)
class Given:
    """Data of the user's: a function or a tuple of numbers, compared by value so that compiled functions are shared."""

    value: Any

    @property
    def numbers(self) -> tuple[float, ...] | None:
        return None if callable(self.value) else self.value

    def __call__(self, layout: Layout, args: tuple[Array, ...], normal: Array) -> Array:
        return joined(call(self.value, args, normal) if callable(self.value) else jnp.array(self.value))


RightSide = Manufactured | Given
"""The right side of a term at a point; its `numbers`, if it is the same everywhere and known."""


def at_points(right_side: RightSide, layout: Layout, points: Array | np.ndarray, normals: Array | np.ndarray) -> Array:
    """A right side at points, operation by operation: for functions that are evaluated once."""
    return jax.vmap(lambda z, normal: right_side(layout, layout.arguments(z), normal))(points, normals)


_compiled = partial(jax.jit, static_argnames=("right_side", "layout"))(at_points)


def values_at(right_side: RightSide, layout: Layout, points: Points, normals: SpaceNormals) -> Float[np.ndarray, "n k"]:
    """A right side at points; numbers need no evaluation, functions are compiled once."""
    if right_side.numbers is not None:
        return np.broadcast_to(np.array(right_side.numbers), (len(points), len(right_side.numbers)))
    if len(points) == 0:
        return values_at(right_side, layout, np.zeros((1, points.shape[1])), np.zeros((1, normals.shape[1])))[:0]
    parts = []
    for here in slices(len(points), BATCH):
        found = _compiled(right_side, layout, padded(points[here], BATCH), padded(normals[here], BATCH))
        parts.append(np.asarray(found)[: here.stop - here.start])
    return np.concatenate(parts)
