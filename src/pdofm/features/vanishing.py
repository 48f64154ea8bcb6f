"""Smooth functions that vanish on the boundary of a domain and nowhere inside, with their derivatives.

A domain that has one names it by a shape ("box", "ball" or "shell") and two arrays: the corners of a box, or the center
and the radii (inner, outer) of a ball or a shell.
"""

import operator
from collections.abc import Sequence
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Point, Points
from pdofm.calculus.jets import Index, product, unit

Corner = Float[np.ndarray, " d"]
Values = Float[np.ndarray, " n"]
Radii = Float[np.ndarray, "2"]


def vanishing(shape: str, corners: tuple[Array | np.ndarray, ...], x: Point) -> Array:
    """The function at a point of the space; it is of the order of 1 inside."""
    if shape == "box":
        lower, upper = corners
        return jnp.prod(4 * (x - lower) * (upper - x) / (upper - lower) ** 2)
    center, radii = corners
    square = jnp.sum((x - center) ** 2)
    outer = (radii[1] ** 2 - square) / radii[1] ** 2
    return outer * (square - radii[0] ** 2) / radii[1] ** 2 if shape == "shell" else outer


def vanishing_jet(
    shape: str, corners: tuple[Array | np.ndarray, ...], points: Points, which: Sequence[Index]
) -> dict[Index, Values]:
    """The derivatives `which` of the function at points, without those that are zero everywhere."""
    first, second = (np.asarray(corner) for corner in corners)
    return _box(points, first, second, which) if shape == "box" else _ball(points, first, second, which)


def _box(points: Points, lower: Corner, upper: Corner, which: Sequence[Index]) -> dict[Index, Values]:
    """The derivatives of Π 4 (xᵢ - aᵢ) (bᵢ - xᵢ) / (bᵢ - aᵢ)², a product of parabolas."""
    scale = 4 / (upper - lower) ** 2
    slopes, curvatures = scale * (lower + upper - 2 * points), np.broadcast_to(-2 * scale, points.shape)
    parabolas = (scale * (points - lower) * (upper - points), slopes, curvatures)
    return {
        index: reduce(operator.mul, (parabolas[k][:, axis] for axis, k in enumerate(index)))
        for index in which
        if max(index) < len(parabolas)
    }


def _ball(points: Points, center: Corner, radii: Radii, which: Sequence[Index]) -> dict[Index, Values]:
    """The derivatives of 1 - q, where q = |x - c|² / R²; for a shell of inner radius r, of that times q - r² / R²."""
    inner, outer = radii.tolist()
    dim, offset = points.shape[1], (points - center) / outer
    value, square = (0,) * dim, np.sum(offset**2, axis=1)
    rising, falling = {value: square - (inner / outer) ** 2}, {value: 1 - square}
    for axis in range(dim):
        once = unit(dim, axis)
        rising[once] = 2 * offset[:, axis] / outer
        rising[tuple(2 * k for k in once)] = np.full(len(points), 2 / outer**2)
    falling |= {index: -each for index, each in rising.items() if any(index)}
    if inner > 0:
        return product(falling, rising, which)
    return {index: falling[index] for index in which if index in falling}
