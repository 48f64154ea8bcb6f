"""Polynomials and trigonometric functions: the classical spaces for smooth solutions."""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Complex, Float, Int

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index
from pdofm.errors import FeaturesError, unknown_name
from pdofm.features.base import MOST_FEATURES, Features, Jets, check_count
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.trigonometry import cos, sin
from pdofm.numerics.numbers import as_number


def checked_kind(kind: Any) -> str:
    """A kind of degree; an error that names the known ones if it is none."""
    if kind not in ("total", "tensor"):
        raise unknown_name("kind of degree", kind, ("total", "tensor"))
    return kind


@lru_cache(maxsize=64)
def indices_below(weights: tuple[int, ...], budget: int, kind: str = "total") -> Int[np.ndarray, "m d"]:
    """Multi-indices k with Σ wᵢ kᵢ ("total") or max wᵢ kᵢ ("tensor") at most `budget`, in ascending order, so that
    leading ones span a coarser space."""
    checked_kind(kind)

    def weighted(index: tuple[int, ...]) -> int:
        each = [weight * k for weight, k in zip(weights, index, strict=False)]
        return sum(each) if kind == "total" else max(each)

    found: list[tuple[int, ...]] = [()]
    for weight in weights:  # axis by axis, so that no index above the budget is ever listed
        counts = [(budget - (weighted(head) if kind == "total" else 0)) // weight + 1 for head in found]
        if sum(counts) > MOST_FEATURES:
            raise FeaturesError(
                f"The degree asks for more than {MOST_FEATURES} functions in {len(weights)} dimensions. Use a lower "
                "degree, or polynomials in boxes (BoxPolynomials)."
            )
        found = [(*head, k) for head, count in zip(found, counts, strict=True) for k in range(count)]
    return np.array(sorted(found, key=lambda index: (weighted(index), index)), dtype=np.int64).reshape(-1, len(weights))


def _indices(dim: int, degree: int | tuple[int, ...], kind: str) -> Int[np.ndarray, "m d"]:
    """Multi-indices up to a degree; if it is given per axis, those with Σ kᵢ / degreeᵢ ≤ 1."""
    each = (degree,) * dim if isinstance(degree, int) else degree
    if len(each) != dim or not all(isinstance(k, int) and k >= 0 for k in each):
        raise FeaturesError(f"degree must be a number of at least 0, or one for each of {dim} axes; got {degree!r}.")
    if isinstance(degree, int):
        return indices_below((1,) * dim, degree, kind)
    budget = math.lcm(*(k for k in degree if k > 0))
    return indices_below(tuple(budget // k if k > 0 else budget + 1 for k in degree), budget, kind)


@lru_cache(maxsize=64)
def _half_space(dim: int, highest: int, kind: str) -> Int[np.ndarray, "m d"]:
    """Wave vectors k up to a degree, one of each pair ±k (the one whose first nonzero entry is positive)."""
    indices, signs = _indices(dim, highest, kind)[:, None], np.array(list(product((1, -1), repeat=dim)))[None]
    waves = indices * signs
    is_new = np.all((signs == 1) | (indices != 0), axis=2)
    first = np.take_along_axis(waves, np.argmax(waves != 0, axis=2)[..., None], axis=2)[..., 0]
    return waves[is_new & (first >= 0)]


def chosen_degree(size: int | None, degree: int | None, count: Callable[[int], int]) -> int:
    """The degree that was asked for: `degree` itself, or the largest degree with at most `size` functions."""
    if (size is None) == (degree is None):
        raise FeaturesError(f"Give either size or degree; got size={size}, degree={degree}.")
    if degree is not None:
        return check_count("degree", degree, least=0)
    check_count("size", size or 0)
    found = 0
    while count(found + 1) <= (size or 0):
        found += 1
    return found


Series = Sequence[Float[np.ndarray, " n"] | float]
"""A coordinate at points, followed by its first, second, … derivatives along an axis."""

Table = Float[np.ndarray, "_ _ n"]
"""The derivatives of T₀, T₁, … at points; the first axis runs over the orders of derivatives."""


def table(coordinate: Series, highest: int) -> Table:
    """The derivatives of T₀(s), …, T_highest(s), where s is a `coordinate` given with its derivatives, up to the same
    order.

    Each step doubles the table by T_{k+j} = 2 T_k T_j - T_{k-j}, with derivatives by Leibniz' rule. The number of steps
    is the logarithm of its length.
    """
    orders, n = len(coordinate), len(np.atleast_1d(coordinate[0]))
    found = np.zeros((orders, max(highest, 1) + 1, n))
    found[0, 0] = 1.0
    for row, each in zip(found[:, 1], coordinate, strict=True):
        row[...] = each
    top = 1
    while top < highest:
        new = min(top, highest - top)
        above, mirrored = found[:, top + 1 : top + new + 1], found[:, top - new : top][:, ::-1]
        for r in range(orders):
            total = found[0, top] * found[r, 1 : new + 1]
            for s in range(1, r + 1):
                total += (math.comb(r, s) * found[s, top]) * found[r - s, 1 : new + 1]
            np.subtract(2 * total, mirrored[r], out=above[r])
        top += new
    return found[:, : highest + 1]


def tables(points: Points, lower: Vector, upper: Vector, highest: Sequence[int], which: Sequence[Index]) -> list[Table]:
    """One table per axis of a box, each up to the degree and the order of derivative that is needed along that axis."""
    found = []
    for axis, k in enumerate(highest):
        slope = 2 / (upper[axis] - lower[axis])
        y = (points[:, axis] - (upper[axis] + lower[axis]) / 2) * slope
        orders = max((index[axis] for index in which), default=0)
        found.append(table([y, slope, *[0.0] * (orders - 1)][: orders + 1], int(k)))
    return found


def products(along: Sequence[Table], indices: Int[np.ndarray, "m d"], which: Sequence[Index]) -> Jets:
    """The derivatives `which` of products of functions from tables, one table per coordinate."""
    found = np.empty((len(which), len(indices), along[0].shape[-1]))
    buffer = np.empty(found.shape[1:])
    for out, index in zip(found, which, strict=True):
        for axis, (each, k) in enumerate(zip(along, index, strict=True)):
            target = out if axis == 0 else buffer
            # The default mode, "raise", would copy through a buffer.
            np.take(each[k], indices[:, axis], axis=0, out=target, mode="clip")
            if axis > 0:
                np.multiply(out, target, out=out)
    return np.swapaxes(found, 1, 2)


LARGEST_GRID = 8
"""The largest ratio of the entries of a grid to the coefficients in it at which the grid is contracted. Beyond it, in
high dimensions, most of the grid would be zero."""


def contracted(
    along: Sequence[Table],
    indices: Int[np.ndarray, "m d"],
    which: Sequence[Index],
    coefficients: Float[np.ndarray, "m C"],
) -> Float[np.ndarray, "a n C"]:
    """The derivatives `which` of linear combinations of these products. In low dimensions, a grid of coefficients is
    contracted with one table after the other, so that no products are formed."""
    sizes = [each.shape[1] for each in along]
    if math.prod(sizes) > LARGEST_GRID * len(indices):
        return products(along, indices, which) @ coefficients
    grid = np.zeros((*sizes, coefficients.shape[1]))
    grid[tuple(indices.T)] = coefficients
    first: dict[int, np.ndarray] = {}
    found = np.empty((len(which), along[0].shape[-1], coefficients.shape[1]))
    for out, (k, *others) in zip(found, which, strict=True):
        if k not in first:
            first[k] = np.tensordot(along[0][k], grid, (0, 0))
        value = first[k]
        for each, order in zip(along[1:], others, strict=True):
            value = np.einsum("kn,nk...->n...", each[order], value)
        out[...] = value
    return found


def column(x: Array, highest: int) -> Array:
    """T₀, T₁, … of coordinates, up to a degree at least."""
    found = jnp.stack([jnp.ones_like(x), x])
    while len(found) <= highest:
        found = jnp.concatenate([found, 2 * found[-1:] * found[1:] - found[-2::-1]])
    return found


def polynomials(y: Point, indices: Int[np.ndarray, "m d"]) -> FeatureValues:
    """Products of Chebyshev polynomials, of these degrees along each axis, at one point."""

    columns = (column(y[axis], int(k))[indices[:, axis]] for axis, k in enumerate(indices.max(axis=0)))
    return functools.reduce(operator.mul, columns)


class Chebyshev(Features):
    """Products of Chebyshev polynomials on the box.

    They are taken up to a total degree (``kind="total"``) or up to a degree along each axis (``kind="tensor"``). Give
    `degree`, or `size` for the largest degree with at most that many functions. A degree for each axis, as in
    ``degree=(8, 20)``, resolves some directions better than others: Σ kᵢ / degreeᵢ ≤ 1 ("total"), or kᵢ ≤ degreeᵢ
    ("tensor").
    """

    lower: Corner
    upper: Corner
    degree: int | tuple[int, ...] = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def __init__(
        self,
        domain: HasBox,
        size: int | None = None,
        *,
        degree: int | Sequence[int] | None = None,
        kind: str = "total",
    ):
        self.lower, self.upper = box_of(domain)
        self.kind = checked_kind(kind)
        if isinstance(degree, Sequence):
            if size is not None or len(degree) != self.dim:
                raise FeaturesError(
                    f"degree must be one number, or one for each of {self.dim} axes, without size; got degree="
                    f"{tuple(degree)}, size={size}."
                )
            self.degree = tuple(check_count("degree", k, least=0) for k in degree)
            return
        self.degree = chosen_degree(size, degree, lambda k: len(_indices(self.dim, k, kind)))

    @property
    def size(self) -> int:
        return len(_indices(self.dim, self.degree, self.kind))

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        # By degrees rather than by numbers. In several dimensions the last degree is a large part of all polynomials,
        # and where the solution is even or odd it may contribute nothing: solutions without it would not be coarser.
        return super().ranks ** (1 / self.dim)

    @property
    def degrees(self) -> Int[np.ndarray, "m d"]:
        """The degree of each function along each axis."""
        return _indices(self.dim, self.degree, self.kind)

    def values(self, y: Point) -> FeatureValues:
        return polynomials(y, self.degrees)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        return products(self._tables(points, which), self.degrees, which)

    def expand(
        self, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        return contracted(self._tables(points, which), self.degrees, which, coefficients)

    def _tables(self, points: Points, which: Sequence[Index]) -> list[Table]:
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        return tables(points, lower, upper, self.degrees.max(axis=0).tolist(), which)


class Fourier(Features):
    """Sines and cosines of all frequencies up to `degree`, along each axis ("tensor") or in sum ("total"), on the box.

    With ``extension=1`` the functions are periodic on the box, and periodic conditions need no rows. For solutions that
    are not periodic, an `extension` of 1.5 to 2 makes the functions periodic on a box that is larger by this factor.
    """

    lower: Corner
    upper: Corner
    degree: int = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    extension: float = eqx.field(static=True)

    def __init__(
        self,
        domain: HasBox,
        size: int | None = None,
        *,
        degree: int | None = None,
        kind: str = "total",
        extension: float = 1.0,
    ):
        self.lower, self.upper = box_of(domain)
        self.extension = as_number(extension, "extension", FeaturesError, least=1.0)
        self.kind = checked_kind(kind)
        self.degree = chosen_degree(size, degree, lambda k: 2 * len(_half_space(self.dim, k, kind)) - 1)

    @property
    def size(self) -> int:
        return 2 * len(_half_space(self.dim, self.degree, self.kind)) - 1

    @property
    def waves(self) -> Int[np.ndarray, "k d"]:
        """The wave vectors: zero, whose only function is 1, then those of each pair of a cosine and a sine."""
        return _half_space(self.dim, self.degree, self.kind)

    @property
    def imposes(self) -> str | None:
        return "periodic" if self.extension == 1 else None

    def values(self, y: Point) -> FeatureValues:
        waves = self.waves
        phase = y @ ((np.pi / self.extension) * jnp.asarray(waves.T, dtype=y.dtype))
        # cos 0, then the cosine and the sine of each wave in turn, so that leading functions are the coarser ones
        pairs = jnp.stack([cos(phase[1:]), sin(phase[1:])], axis=1).reshape(-1)
        return jnp.concatenate([jnp.ones(1, dtype=y.dtype), pairs])

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        # A wave exp(i k·y) is a product of waves along the axes, and its derivatives are the wave times powers of i k.
        waves = self.waves[1:]
        on_cube, slopes = self.to_cube(points)
        frequency = np.pi / self.extension
        along = [_wave_table(frequency * on_cube[:, axis], self.degree) for axis in range(self.dim)]
        every = functools.reduce(operator.mul, (each[waves[:, axis]] for axis, each in enumerate(along)))
        cosines, sines = np.real(every), np.imag(every)
        found = np.empty((len(which), self.size, len(points)))
        for out, index in zip(found, which, strict=True):
            out[0] = float(not any(index))
            factor = np.prod((frequency * slopes * waves) ** np.array(index), axis=1, keepdims=True)
            for shift, rows in ((0, out[1::2]), (-1, out[2::2])):  # cosines; sines, which lag by a quarter period
                quarter = (sum(index) + shift) % 4
                sign = -1 if quarter in (1, 2) else 1
                np.multiply(sines if quarter % 2 else cosines, sign * factor, out=rows)
        return np.swapaxes(found, 1, 2)


def _wave_table(angle: Vector, highest: int) -> Complex[np.ndarray, "k n"]:
    """exp(i k θ) for k = 0, …, highest, -highest, …, -1, so that k, possibly negative, is the index. The table is
    doubled at each step."""
    found = np.empty((2 * highest + 1, len(angle)), dtype=np.complex128)
    found[0] = 1.0
    if highest > 0:
        found.real[1], found.imag[1] = np.cos(angle), np.sin(angle)
    top = 1
    while top < highest:
        new = min(top, highest - top)
        np.multiply(found[1 : new + 1], found[top], out=found[top + 1 : top + new + 1])
        top += new
    np.conjugate(found[1 : highest + 1], out=found[highest + 1 :][::-1])
    return found
