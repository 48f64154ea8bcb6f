"""Rows by differentiation with respect to the coefficients, for left sides that also evaluate u at other points.

With u(z) = Σ cⱼ φⱼ(z), reverse mode is applied over c, and forward mode inside the operators. Every derivative of u is
a contraction of c with the same derivative of all features, so that all entries of a row cost one forward pass of the
features. This works for every left side, but each combination of a left side with a family and size of features is
compiled anew.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Coefficients, Points, SpaceNormals
from pdofm.calculus.terms import Layout, LeftSide
from pdofm.features import Features
from pdofm.numerics.batches import batch_size, in_batches, two_sizes


def row(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Array, z: Array, normal: Array
) -> tuple[Array, Array]:
    """The left side (k,) at a point and its derivative (k, C, m) with respect to the coefficients (C, m), with the last
    iterate held fixed."""

    def left(c: Array) -> tuple[Array, Array]:
        u, last = (layout.fields(lambda y, c=c: features.combine(y, c.T)) for c in (c, jax.lax.stop_gradient(c)))
        value = lhs(u, last, layout.arguments(z), normal)
        return value, value

    gradient, value = jax.jacrev(left, has_aux=True)(coefficients)
    return value, gradient


@partial(jax.jit, static_argnames=("lhs", "layout"))
def _rows(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Array, points: Array, normals: Array
) -> tuple[Array, Array]:
    return jax.vmap(lambda z, normal: row(lhs, layout, features, coefficients, z, normal))(points, normals)


@partial(jax.jit, static_argnames=("lhs", "layout"))
def _left(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Array, points: Array, normals: Array
) -> Array:
    u = layout.fields(lambda y: features.combine(y, coefficients))
    return jax.vmap(lambda z, normal: lhs(u, u, layout.arguments(z), normal))(points, normals)


def linearise(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Coefficients, points: Points, normals: SpaceNormals
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k C m"]]:
    """The left sides at points and their derivatives with respect to the coefficients."""
    rows = partial(_rows, lhs, layout, features, jnp.asarray(coefficients.T))
    return in_batches(rows, (points, normals), two_sizes(batch_size(8 * coefficients.size)))


def left_sides(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Coefficients, points: Points, normals: SpaceNormals
) -> Float[np.ndarray, "n k"]:
    """The left sides alone."""
    left = partial(_left, lhs, layout, features, jnp.asarray(coefficients))
    return in_batches(left, (points, normals), two_sizes(batch_size(8 * coefficients.size)))


@partial(jax.jit, static_argnames=("lhs", "layout"))
def _slopes(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Array, points: Array, normals: Array
) -> Array:
    u = layout.fields(lambda y: features.combine(y, coefficients))

    def slopes(z: Array, normal: Array) -> Array:
        args = layout.arguments(z)
        space = len(args[0])
        return jax.jacfwd(lambda entries: lhs(u, u, args, jnp.concatenate([normal[:space], entries])))(normal[space:])

    return jax.vmap(slopes)(points, normals)


def sensitivities(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Coefficients, points: Points, normals: SpaceNormals
) -> Float[np.ndarray, "n k e"]:
    """The derivatives of the left sides with respect to the entries of parameters behind the normals."""
    slopes = partial(_slopes, lhs, layout, features, jnp.asarray(coefficients))
    return in_batches(slopes, (points, normals), two_sizes(batch_size(8 * coefficients.size)))
