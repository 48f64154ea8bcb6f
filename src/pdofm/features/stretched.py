"""Polynomials in coordinates that are stretched across a layer.

A layer of width w at the plane n·x = c is a smooth function of the coordinate s = arcsinh((n·x - c) / w): inside the
layer s is n·x magnified by 1/w, outside it grows like a logarithm. (The map of Tee and Trefethen, "A rational spectral
collocation method with adaptively transformed Chebyshev grid points", 2006, with a direction.)
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.errors import FeaturesError
from pdofm.features.base import Corner, HasBox, Unmapped, box_of
from pdofm.features.spectral import chosen_degree, combined, indices_below, products

ALONG = 2
"""A degree along the layer counts so many times: across it the function is harder to resolve."""


def _indices(dim: int, degree: int) -> Int[np.ndarray, "m d"]:
    """Degrees (i across, j along) with i + 2 Σj ≤ degree, the smallest sums first."""
    return indices_below((1, *(ALONG,) * (dim - 1)), degree)


class StretchedPolynomials(Unmapped):
    """Chebyshev polynomials in the coordinate arcsinh((n·x - c) / w) across a layer and in those along it.

    Args:
        domain: the box that they live on.
        size, degree: how many at most, or the degree across the layer; along it the degree is half as large.
        direction: the normal n of the layer, of any length.
        center: c, where the layer is: n·x = c for the unit normal.
        width: w, its width.

    Where the polynomials are fine, they ask for more collocation points: see `density`.
    """

    axes: Float[Array | np.ndarray, "d d"]  # orthonormal rows, the first one is the normal
    low: Float[Array | np.ndarray, " d"]
    high: Float[Array | np.ndarray, " d"]
    center: Float[Array | np.ndarray, ""]
    width: Float[Array | np.ndarray, ""]
    lower: Corner
    upper: Corner
    degree: int = eqx.field(static=True)

    def __init__(
        self,
        domain: HasBox,
        size: int | None = None,
        *,
        degree: int | None = None,
        direction: Any,
        center: float,
        width: float,
    ):
        self.lower, self.upper = box_of(domain)
        normal = np.array(direction, dtype=np.float64)
        if normal.shape != (self.dim,) or not 0 < np.linalg.norm(normal) < np.inf:
            raise FeaturesError(
                f"direction must be a vector of {self.dim} finite numbers, not all zero; got {normal.tolist()}. Give "
                "the normal of the layer."
            )
        if not (0 < width < np.inf and np.isfinite(center)):
            raise FeaturesError(
                f"width must be positive and center a number; got width={width}, center={center}. They are lengths in "
                "the coordinates of the domain."
            )
        self.degree = chosen_degree(size, degree, lambda k: len(_indices(self.dim, k)))
        normal = normal / np.linalg.norm(normal)
        basis = np.linalg.qr(np.column_stack([normal, np.eye(self.dim)]))[0]
        basis[:, 0] = normal
        self.axes = basis.T
        corners = np.stack(np.meshgrid(*np.stack([self.lower, self.upper], axis=1))).reshape(self.dim, -1)
        reached = self.axes @ corners
        reached[0] = np.arcsinh((reached[0] - center) / width)
        self.low, self.high = reached.min(axis=1), reached.max(axis=1)
        self.center, self.width = np.asarray(float(center)), np.asarray(float(width))

    @property
    def size(self) -> int:
        return len(_indices(self.dim, self.degree))

    def on(self, domain: HasBox) -> "StretchedPolynomials":
        raise FeaturesError(
            "StretchedPolynomials are tied to their layer. Make them anew on the other domain, with its direction, "
            "center and width there."
        )

    @property
    def concentration(self) -> float:
        """Points in the middle of the layer over the mean, if all of them were even in the stretched coordinate."""
        low, high = (float(np.sinh(end[0]) * self.width) for end in (self.low, self.high))
        return (high - low) / float(self.width * (self.high[0] - self.low[0]))

    def density(self, points: Points) -> Vector:
        """Half of the points anywhere, half of them evenly in the stretched coordinate."""
        offset = points @ np.asarray(self.axes)[0] - float(self.center)
        fine = 1 / np.hypot(offset, float(self.width))
        return 1 / len(points) + fine / fine.sum()

    def __call__(self, x: Point) -> FeatureValues:
        return products(self._stretched(x), _indices(self.dim, self.degree))

    def value_of(self, x: Point, coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
        return combined(self._stretched(x), _indices(self.dim, self.degree), coefficients)

    def _stretched(self, x: Point) -> Point:
        across, *along = jnp.asarray(self.axes) @ x
        stretched = jnp.stack([jnp.arcsinh((across - self.center) / self.width), *along])
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        return (2 * stretched - low - high) / (high - low)
