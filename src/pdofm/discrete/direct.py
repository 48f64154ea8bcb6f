"""Rows by differentiation with respect to the coefficients: for left sides that look at u at other points, too.

With u(z) = Σ cⱼ φⱼ(z), reverse mode over c and forward mode inside the operators: every derivative of u is a
contraction of c with the same derivative of all features, so that all entries of a row cost one forward pass of the
features. It works for every left side, but is compiled for each of them together with each family and size of features.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Points, SpaceNormals
from pdofm.calculus.terms import Layout, LeftSide
from pdofm.features import Features
from pdofm.numerics.batches import batch_size, batches, padded

Coefficients = Float[np.ndarray, "m C"]


def row(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Array, z: Array, normal: Array
) -> tuple[Array, Array]:
    """The left side (k,) at a point and its derivative (k, C, m) with respect to the coefficients (C, m); the last
    iterate is held fixed."""

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
    left, gradients = [], []
    for here, size in batches(len(points), batch_size(8 * coefficients.size)):
        args = (padded(each[here], size) for each in (points, normals))
        value, gradient = _rows(lhs, layout, features, jnp.asarray(coefficients.T), *args)
        left.append(np.asarray(value)[: here.stop - here.start])
        gradients.append(np.asarray(gradient)[: here.stop - here.start])
    return np.concatenate(left), np.concatenate(gradients)


def left_sides(
    lhs: LeftSide, layout: Layout, features: Features, coefficients: Coefficients, points: Points, normals: SpaceNormals
) -> Float[np.ndarray, "n k"]:
    """The left sides alone."""
    parts = []
    for here, size in batches(len(points), batch_size(8 * coefficients.size)):
        args = (padded(each[here], size) for each in (points, normals))
        found = _left(lhs, layout, features, jnp.asarray(coefficients), *args)
        parts.append(np.asarray(found)[: here.stop - here.start])
    return np.concatenate(parts)
