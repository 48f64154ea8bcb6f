"""Polynomials in coordinates that are stretched across a layer.

A layer of width w at the plane n·x = c is a smooth function of the coordinate s = arcsinh((n·x - c) / w). Inside the
layer, s is n·x - c magnified by 1/w; outside, it grows like a logarithm. This is the map of Tee and Trefethen, "A
rational spectral collocation method with adaptively transformed Chebyshev grid points", 2006, along a direction.

In the plane the layer may be curved: n·x = c(t), where t is the coordinate along n's perpendicular. In the sheared
coordinates (n·x - c(t), t) it is straight.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.polynomial import Chebyshev

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index
from pdofm.errors import FeaturesError
from pdofm.features.base import Jets, Unmapped
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.rotated import rotated
from pdofm.features.spectral import Table, chosen_degree, contracted, indices_below, polynomials, products, table

RIM = 400
"""Points on each side of a rectangle, to see how far a curved layer is from it."""

ALONG_WEIGHT, ALONG_A_CURVE = 2, 4
"""The weight of a degree along the layer in the total degree, if it is straight, and along a curve. The degree across
is twice as large, or four times, because functions are harder to resolve across a layer; curved ones are thin."""


def _indices(dim: int, degree: int, weight: int = ALONG_WEIGHT) -> Int[np.ndarray, "m d"]:
    """Degrees (i across, j along) with i + weight Σj ≤ degree, in ascending order."""
    return indices_below((1, *(weight,) * (dim - 1)), degree)


def _weight(center: Array | np.ndarray) -> int:
    """The weight of a degree along a layer; a curved one has several coefficients."""
    return ALONG_A_CURVE if np.size(center) > 1 else ALONG_WEIGHT


class StretchedPolynomials(Unmapped):
    """Chebyshev polynomials in the coordinate arcsinh((n·x - c) / w) across a layer, and in the coordinates along it.

    Args:
        domain: the domain, or features, whose box they are defined on.
        size: the largest number of polynomials; or give `degree`.
        degree: the degree across the layer; along it, the degree is half as large, and along a curve a quarter.
        direction: the normal n of the layer, of any length.
        center: the position c of the layer: n·x = c for the unit normal. In the plane also the Chebyshev coefficients
            of c(t) for a curved layer n·x = c(t), where t = (n₁ x₀ - n₀ x₁), scaled so that it goes from -1 to 1 over
            the box of the domain.
        width: the width w of the layer.

    The polynomials vary fastest inside the layer, and ask for more collocation points there.
    """

    tied_to: ClassVar[str] = "its layer. Make them anew on the other domain, with its direction, center and width there"

    axes: Float[Array | np.ndarray, "d d"]  # orthonormal rows, the first one is the normal
    low: Float[Array | np.ndarray, " d"]
    high: Float[Array | np.ndarray, " d"]
    center: Float[Array | np.ndarray, " _"]
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
        center: float | Sequence[float] | Vector,
        width: float,
    ):
        self.lower, self.upper = box_of(domain)
        normal = np.array(direction, dtype=np.float64)
        if normal.shape != (self.dim,) or not 0 < np.linalg.norm(normal) < np.inf:
            raise FeaturesError(
                f"direction must be a vector of {self.dim} finite numbers, not all zero; got {normal.tolist()}. Give "
                "the normal of the layer."
            )
        curve = np.array(center, dtype=np.float64)
        if not (0 < width < np.inf and np.isfinite(curve).all() and curve.ndim < 2 and curve.size):
            raise FeaturesError(
                f"width must be positive, and center a number or, in the plane, a list of Chebyshev coefficients; got "
                f"width={width}, center={center}. They are lengths in the coordinates of the domain."
            )
        if curve.size > 1 and self.dim != 2:
            raise FeaturesError(
                f"center has {curve.size} coefficients, but layers can be curved in two dimensions only, and the "
                f"domain has {self.dim}. Give one number."
            )
        self.degree = chosen_degree(size, degree, lambda k: len(_indices(self.dim, k, _weight(curve))))
        normal = normal / np.linalg.norm(normal)
        basis = np.linalg.qr(np.column_stack([normal, np.eye(self.dim)]))[0]
        basis[:, 0] = normal
        self.axes = basis.T if self.dim != 2 else np.array([normal, [normal[1], -normal[0]]])
        self.center, self.width = curve.reshape(-1), np.asarray(float(width))
        corners = np.stack(np.meshgrid(*np.stack([self.lower, self.upper], axis=1))).reshape(self.dim, -1)
        reached = self.axes @ corners
        self.low, self.high = reached.min(axis=1), reached.max(axis=1)
        # The coordinate across a curved layer has no extremum inside of the box.
        rim = corners.T if curve.size == 1 else _rim(np.asarray(self.lower), np.asarray(self.upper))
        across = np.arcsinh(self._offset(rim @ self.axes.T) / width)
        self.low[0], self.high[0] = across.min(), across.max()

    def _curve(self) -> Chebyshev:
        """The position of the layer as a function of the coordinate along it."""
        along = [float(self.low[-1]), float(self.high[-1])] if self.dim == 2 else [-1.0, 1.0]
        return Chebyshev(np.asarray(self.center).reshape(-1), along)

    def _offset(self, reached: Points) -> Vector:
        """How far points, given along the rotated axes, are from the layer, along its normal."""
        return reached[:, 0] - self._curve()(reached[:, -1])

    @property
    def size(self) -> int:
        return len(self._indices)

    @property
    def _indices(self) -> Int[np.ndarray, "m d"]:
        """The degrees of each polynomial across and along the layer."""
        return _indices(self.dim, self.degree, _weight(self.center))

    @property
    def concentration(self) -> float:
        """The density of points in the middle of the layer relative to the mean, if they were uniform in the stretched
        coordinate."""
        low, high = (float(np.sinh(end[0]) * self.width) for end in (self.low, self.high))
        return (high - low) / float(self.width * (self.high[0] - self.low[0]))

    def density(self, points: Points) -> Vector:
        """Half of the points uniform in the domain, half of them uniform in the stretched coordinate."""
        offset = self._offset(points @ np.asarray(self.axes).T)
        fine = 1 / np.hypot(offset, float(self.width))
        return 1 / len(points) + fine / fine.sum()

    def __call__(self, x: Point) -> FeatureValues:
        return polynomials(self._stretched(x), self._indices)

    def _stretched(self, x: Point) -> Point:
        """A point in the coordinates across and along the layer, scaled to [-1, 1]^d."""
        across, *along = jnp.asarray(self.axes) @ x
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        center = jnp.reshape(jnp.asarray(self.center), -1)
        position = center[0]
        if len(center) > 1:
            t = (2 * along[0] - low[1] - high[1]) / (high[1] - low[1])
            position = center @ polynomials(t[None], np.arange(len(center))[:, None])
        stretched = jnp.stack([jnp.arcsinh((across - position) / self.width), *along])
        return (2 * stretched - low - high) / (high - low)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        straight, factors = self._straightened(points, which)
        found = np.swapaxes(products(self._tables(points, straight), self._indices, straight), 1, 2)
        if factors.ndim == 2:
            return np.swapaxes(np.tensordot(factors, found, 1), 1, 2)
        return np.swapaxes(np.einsum("abn,bmn->amn", factors, found), 1, 2)

    def expand(
        self, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        straight, factors = self._straightened(points, which)
        found = contracted(self._tables(points, straight), self._indices, straight, coefficients)
        return np.tensordot(factors, found, 1) if factors.ndim == 2 else np.einsum("abn,bnC->anC", factors, found)

    def _straightened(
        self, points: Points, which: Sequence[Index]
    ) -> tuple[tuple[Index, ...], Float[np.ndarray, "a b"] | Float[np.ndarray, "a b n"]]:
        """The derivatives `which` as combinations of derivatives across and along the layer: these, and the factors,
        which depend on the point if the layer is curved."""
        turned, factors = rotated(np.asarray(self.axes), which)
        curve = self._curve()
        if len(curve.coef) == 1:
            return turned, factors
        each = [_sheared(index, curve) for index in turned]
        straight = tuple(dict.fromkeys(index for terms in each for index in terms))
        along, found = points @ np.asarray(self.axes)[1], np.zeros((len(which), len(straight), len(points)))
        for row, terms in zip(factors.T, each, strict=True):
            for index, factor in terms.items():
                found[:, straight.index(index)] += row[:, None] * factor(along)
        return straight, found

    def _tables(self, points: Points, which: Sequence[Index]) -> list[Table]:
        """The polynomials in each stretched coordinate, with derivatives along the rotated axes."""
        reached = points @ np.asarray(self.axes).T
        low, high = np.asarray(self.low), np.asarray(self.high)
        found = []
        for axis, highest in enumerate(self._indices.max(axis=0)):
            orders = max((index[axis] for index in which), default=0)
            if axis == 0:
                width = float(self.width)
                along = _arcsinh(self._offset(reached) / width, orders)
                series = [derivative / width**order for order, derivative in enumerate(along)]
            else:
                series = [reached[:, axis], 1.0, *[0.0] * (orders - 1)][: orders + 1]
            slope = 2 / (high[axis] - low[axis])
            series = [slope * derivative for derivative in series]
            series[0] = series[0] - slope * (low[axis] + high[axis]) / 2
            found.append(table(series, int(highest)))
        return found


def _rim(lower: Vector, upper: Vector) -> Points:
    """Points on the sides of a rectangle, its corners included."""
    t = (1 - np.cos(np.linspace(0, np.pi, RIM)))[:, None] / 2
    x, y = lower[0] + t * (upper[0] - lower[0]), lower[1] + t * (upper[1] - lower[1])
    sides = [
        np.hstack(np.broadcast_arrays(*each)) for each in ((x, lower[1]), (x, upper[1]), (lower[0], y), (upper[0], y))
    ]
    return np.concatenate(sides)


def _sheared(index: Index, curve: Chebyshev) -> dict[Index, Chebyshev]:
    """A derivative in the coordinates (a, t) as derivatives in (a - c(t), t) with factors that depend on t. There ∂ₜ
    becomes ∂ₜ - c′(t) ∂ₐ, and is applied again and again."""
    slope = curve.deriv()
    terms = {(0, 0): Chebyshev([1.0], curve.domain)}
    for _ in range(index[1]):
        new: dict[Index, Chebyshev] = {}
        for (across, along), factor in terms.items():
            parts = (((across, along), factor.deriv()), ((across, along + 1), factor))
            for key, part in (*parts, ((across + 1, along), -slope * factor)):
                new[key] = new[key] + part if key in new else part
        terms = new
    return {(across + index[0], along): factor for (across, along), factor in terms.items()}


def _arcsinh(q: Vector, orders: int) -> list[Vector]:
    """arcsinh q and its derivatives. The first derivative g satisfies (1 + q²) g′ + q g = 0. Differentiated k times,
    this is (1 + q²) g⁽ᵏ⁺¹⁾ + (2k + 1) q g⁽ᵏ⁾ + k² g⁽ᵏ⁻¹⁾ = 0."""
    square = 1 + q * q
    found = [np.arcsinh(q), 1 / np.sqrt(square)]
    for k in range(orders - 1):
        before = k**2 * found[k] if k > 0 else 0.0
        found.append(-((2 * k + 1) * q * found[k + 1] + before) / square)
    return found[: orders + 1]
