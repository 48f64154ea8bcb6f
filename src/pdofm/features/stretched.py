"""Polynomials in coordinates that are stretched across a layer.

A layer of width w at the plane n·x = c is a smooth function of the coordinate s = arcsinh((n·x - c) / w). Inside the
layer, s is n·x - c magnified by 1/w; outside, it grows like a logarithm. This is the map of Tee and Trefethen, "A
rational spectral collocation method with adaptively transformed Chebyshev grid points", 2006, along a direction.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index, unit
from pdofm.errors import FeaturesError
from pdofm.features.base import Jets, Unmapped
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.spectral import Table, chosen_degree, contracted, indices_below, polynomials, products, table

ALONG_WEIGHT = 2
"""The weight of a degree along the layer in the total degree. The degree across is twice as large, because functions
are harder to resolve across a layer."""


def _indices(dim: int, degree: int) -> Int[np.ndarray, "m d"]:
    """Degrees (i across, j along) with i + 2 Σj ≤ degree, in ascending order."""
    return indices_below((1, *(ALONG_WEIGHT,) * (dim - 1)), degree)


class StretchedPolynomials(Unmapped):
    """Chebyshev polynomials in the coordinate arcsinh((n·x - c) / w) across a layer, and in the coordinates along it.

    Args:
        domain: the domain, or features, whose box they are defined on.
        size: the largest number of polynomials; or give `degree`.
        degree: the degree across the layer; along it, the degree is half as large.
        direction: the normal n of the layer, of any length.
        center: the position c of the layer: n·x = c for the unit normal.
        width: the width w of the layer.

    The polynomials vary fastest inside the layer, and ask for more collocation points there.
    """

    tied_to: ClassVar[str] = "its layer. Make them anew on the other domain, with its direction, center and width there"

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

    @property
    def concentration(self) -> float:
        """The density of points in the middle of the layer relative to the mean, if they were uniform in the stretched
        coordinate."""
        low, high = (float(np.sinh(end[0]) * self.width) for end in (self.low, self.high))
        return (high - low) / float(self.width * (self.high[0] - self.low[0]))

    def density(self, points: Points) -> Vector:
        """Half of the points uniform in the domain, half of them uniform in the stretched coordinate."""
        offset = points @ np.asarray(self.axes)[0] - float(self.center)
        fine = 1 / np.hypot(offset, float(self.width))
        return 1 / len(points) + fine / fine.sum()

    def __call__(self, x: Point) -> FeatureValues:
        return polynomials(self._stretched(x), _indices(self.dim, self.degree))

    def _stretched(self, x: Point) -> Point:
        """A point in the coordinates across and along the layer, scaled to [-1, 1]^d."""
        across, *along = jnp.asarray(self.axes) @ x
        stretched = jnp.stack([jnp.arcsinh((across - self.center) / self.width), *along])
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        return (2 * stretched - low - high) / (high - low)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        rotated, factors = _rotated(np.asarray(self.axes), which)
        found = np.swapaxes(products(self._tables(points, rotated), _indices(self.dim, self.degree), rotated), 1, 2)
        return np.swapaxes(np.tensordot(factors, found, 1), 1, 2)

    def expand(
        self, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        rotated, factors = _rotated(np.asarray(self.axes), which)
        tables = self._tables(points, rotated)
        return np.tensordot(factors, contracted(tables, _indices(self.dim, self.degree), rotated, coefficients), 1)

    def _tables(self, points: Points, which: Sequence[Index]) -> list[Table]:
        """The polynomials in each stretched coordinate, with derivatives along the rotated axes."""
        reached = points @ np.asarray(self.axes).T
        low, high = np.asarray(self.low), np.asarray(self.high)
        found = []
        for axis, highest in enumerate(_indices(self.dim, self.degree).max(axis=0)):
            orders = max((index[axis] for index in which), default=0)
            if axis == 0:
                width = float(self.width)
                along = _arcsinh((reached[:, 0] - float(self.center)) / width, orders)
                series = [derivative / width**order for order, derivative in enumerate(along)]
            else:
                series = [reached[:, axis], 1.0, *[0.0] * (orders - 1)][: orders + 1]
            slope = 2 / (high[axis] - low[axis])
            series = [slope * derivative for derivative in series]
            series[0] = series[0] - slope * (low[axis] + high[axis]) / 2
            found.append(table(series, int(highest)))
        return found


def _arcsinh(q: Vector, orders: int) -> list[Vector]:
    """arcsinh q and its derivatives. The first derivative g satisfies (1 + q²) g′ + q g = 0. Differentiated k times,
    this is (1 + q²) g⁽ᵏ⁺¹⁾ + (2k + 1) q g⁽ᵏ⁾ + k² g⁽ᵏ⁻¹⁾ = 0."""
    square = 1 + q * q
    found = [np.arcsinh(q), 1 / np.sqrt(square)]
    for k in range(orders - 1):
        before = k**2 * found[k] if k > 0 else 0.0
        found.append(-((2 * k + 1) * q * found[k + 1] + before) / square)
    return found[: orders + 1]


def _rotated(
    axes: Float[np.ndarray, "d d"], which: Sequence[Index]
) -> tuple[tuple[Index, ...], Float[np.ndarray, "a b"]]:
    """The derivatives `which` as linear combinations of derivatives along the rows of `axes`: the multi-indices of the
    latter, and a row of factors for each of `which`. With ∂ᵢ = Σᵣ axes[r, i] ∂ᵣ, powers and products are expanded."""
    dim = len(axes)
    combinations = []
    for index in which:
        terms: dict[Index, float] = {(0,) * dim: 1.0}
        for axis in (axis for axis, k in enumerate(index) for _ in range(k)):
            new: dict[Index, float] = {}
            for term, factor in terms.items():
                for r in np.flatnonzero(axes[:, axis]).tolist():
                    higher = tuple(a + b for a, b in zip(term, unit(dim, r), strict=True))
                    new[higher] = new.get(higher, 0.0) + factor * float(axes[r, axis])
            terms = new
        combinations.append(terms)
    rotated = tuple(dict.fromkeys(term for terms in combinations for term in terms))
    return rotated, np.array([[terms.get(term, 0.0) for term in rotated] for terms in combinations]).reshape(
        len(which), len(rotated)
    )
