"""A formal unknown: a function that is defined by its jet alone.

Left sides are applied to it to find their order, their values and their coefficients, independently of any feature
space.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Layout, LeftSide

FEW_INDICES = 64
"""The largest number of derivatives for which entries of a jet are picked by a product with rows of the identity, which
is traced and compiled faster than indexing."""


def linearised(
    lhs: LeftSide, layout: Layout, dim: int, highest: int, indices: tuple[Index, ...]
) -> Callable[..., tuple[Array, Array]]:
    """The function (point, normal, J, elsewhere) -> (left side, its derivative with respect to J).

    The point may be given as the arguments of the user's functions. J holds the derivatives `indices` of each component
    of u there; those that are missing, up to the order `highest` of the left side, are zero. `elsewhere` is added to u
    at all other points.
    """
    value_of = function_of_jet(dim, highest, indices, layout.components)

    def at(z: Array | tuple[Array, ...], normal: Array, J: Array, elsewhere: Array) -> tuple[Array, Array]:
        arguments = z if isinstance(z, tuple) else layout.arguments(z)
        here = layout.point(arguments)

        def left(J: Array) -> tuple[Array, Array]:
            u, last = (
                layout.fields(lambda y, J=J: value_of(_real(y), J, (here, elsewhere)))
                for J in (J, jax.lax.stop_gradient(J))
            )
            v = lhs(u, last, arguments, normal)
            return v, v

        coefficients, v = jax.jacrev(left, has_aux=True)(J)
        return v, coefficients

    return at


def function_of_jet(
    dim: int, highest: int, indices: tuple[Index, ...], components: int
) -> Callable[[Array, Array, tuple[Array, Array]], Array]:
    """The function (y, J, (here, elsewhere)) -> u(y), whose derivatives `indices` are the entries of J, of shape
    (a, C), wherever they are asked for; those that are missing, up to the order `highest`, are zero. `elsewhere` is
    added to u at all points but `here`."""
    rows = [_positions(dim, order, indices) for order in range(highest + 1)]

    def picked(order: int, J: Array) -> Array:
        """All derivatives of an order, a tensor (d, …, d, C)."""
        if order > highest:  # differentiation by J asks for these, but multiplies them by zero
            return jnp.zeros((dim,) * order + (components,))
        at = rows[order]
        if len(indices) > FEW_INDICES:
            return jnp.concatenate([J, jnp.zeros((1, components))])[at]
        picks = jnp.asarray(np.eye(len(indices) + 1, len(indices))[at.reshape(-1)])
        return (picks @ J).reshape(*at.shape, components)

    def derivative(order: int) -> Callable[[Array, Array, tuple[Array, Array]], Array]:
        @jax.custom_jvp  # its functions must not close over traced variables, hence the last argument
        def value(y: Array, J: Array, away: tuple[Array, Array]) -> Array:
            return picked(order, J) + _away(y, *away)

        @value.defjvp
        def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
            (y, J, away), (direction, change, _) = primals, tangents
            slope = jnp.tensordot(direction, derivative(order + 1)(y, J, away), 1)
            return value(y, J, away), slope + picked(order, change)

        return value

    return derivative(0)


def _real(y: Array) -> Array:
    """A point in floating point; users may write one in integers."""
    return jnp.asarray(y, jnp.result_type(float))


@jax.jit
def _away(y: Array, here: Array, elsewhere: Array) -> Array:
    """What is added to u at y: nothing at the point in question, `elsewhere` at all others."""
    return jnp.where(jnp.all(y == here), 0.0, elsewhere)


@lru_cache(maxsize=64)
def _positions(dim: int, order: int, indices: tuple[Index, ...]) -> Int[np.ndarray, "..."]:
    """The position in a jet of each entry of the tensor of all derivatives of an order; the length of the jet stands
    for entries that it does not have."""
    at = {index: position for position, index in enumerate(indices)}
    found = np.full((dim,) * order, len(indices))
    for axes in combinations_with_replacement(range(dim), order):
        index = [0] * dim
        for axis in axes:
            index[axis] += 1
        found[axes] = at.get(tuple(index), len(indices))
    # Derivatives commute, so that permutations of the axes have the same position.
    return found if order < 2 else found[tuple(np.sort(np.indices(found.shape), axis=0))]


def order_and_entries(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> tuple[int, int]:
    """The highest order to which the left side differentiates u, and the number of its entries, by abstract
    evaluation."""
    deepest = 0

    def derivative(order: int) -> Callable[[Array], Array]:
        nonlocal deepest
        deepest = max(deepest, order)

        @jax.custom_jvp
        def value(y: Array) -> Array:
            return jnp.zeros(layout.components, y.dtype)

        @value.defjvp
        def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
            (y,), (direction,) = primals, tangents
            return value(y), jnp.sum(direction) * derivative(order + 1)(y)

        return value

    def left(z: Array, normal: Array) -> Array:
        u = layout.fields(lambda y: derivative(0)(_real(y)))
        return lhs(u, u, layout.arguments(z), normal)

    entries = jax.eval_shape(left, *(jax.ShapeDtypeStruct((n,), jnp.float64) for n in (dim, space_dim))).shape[0]
    return deepest, entries
