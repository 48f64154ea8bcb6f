"""Polynomials and trigonometric functions: the classical spaces, as comparators and for smooth solutions."""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pdofm._types import FeatureValues, Point
from pdofm.errors import FeaturesError, unknown_name
from pdofm.features.base import Corner, Features, HasBox, box_of, check_count
from pdofm.features.trigonometry import cos, sin


@lru_cache(maxsize=64)
def indices_below(weights: tuple[int, ...], budget: int, kind: str = "total") -> Int[np.ndarray, "m d"]:
    """Multi-indices k with Σ wᵢ kᵢ ("total") or max wᵢ kᵢ ("tensor") at most `budget`, the smallest first, so that
    leading ones span a coarser space."""
    if kind not in ("total", "tensor"):
        raise unknown_name("kind of degree", kind, ("total", "tensor"))

    def weighted(index: tuple[int, ...]) -> int:
        each = [weight * k for weight, k in zip(weights, index, strict=False)]
        return sum(each) if kind == "total" else max(each)

    found: list[tuple[int, ...]] = [()]
    for weight in weights:  # axis by axis, so that nothing above the budget is ever listed
        found = [
            (*head, k)
            for head in found
            for k in range((budget - (weighted(head) if kind == "total" else 0)) // weight + 1)
        ]
    return np.array(sorted(found, key=lambda index: (weighted(index), index)), dtype=np.int64).reshape(-1, len(weights))


def _indices(dim: int, degree: int | tuple[int, ...], kind: str) -> Int[np.ndarray, "m d"]:
    """Multi-indices up to a degree; with a degree per axis, those with Σ kᵢ / degreeᵢ ≤ 1."""
    if isinstance(degree, int):
        return indices_below((1,) * dim, degree, kind)
    budget = math.lcm(*(k for k in degree if k > 0))
    return indices_below(tuple(budget // k if k > 0 else budget + 1 for k in degree), budget, kind)


@lru_cache(maxsize=64)
def _half_space(dim: int, highest: int, kind: str) -> Int[np.ndarray, "m d"]:
    """Wave vectors with |k| up to a degree, one of each pair ±k (the first entry that is not zero is positive)."""
    waves = []
    for index in _indices(dim, highest, kind):
        for signs in product((1, -1), repeat=dim):
            wave = index * np.array(signs)
            first = wave[np.flatnonzero(wave)[:1]]
            is_new = all(sign == 1 or k != 0 for sign, k in zip(signs, index, strict=True))
            if is_new and (len(first) == 0 or first[0] > 0):
                waves.append(wave)
    return np.array(waves, dtype=np.int64).reshape(-1, dim)


def chosen_degree(size: int | None, degree: int | None, count: Callable[[int], int]) -> int:
    """The degree that was asked for, directly or as the largest one with at most `size` functions."""
    if (size is None) == (degree is None):
        raise FeaturesError(f"Give either size or degree; got size={size}, degree={degree}.")
    if degree is not None:
        return check_count("degree", degree, least=0)
    check_count("size", size or 0)
    found = 0
    while count(found + 1) <= (size or 0):
        found += 1
    return found


Table = tuple[Float[Array, " _"], ...]
"""For each order the derivatives of T₀, T₁, … at one coordinate."""

ORDERS = 4
"""Derivatives up to this order share one set of tables; those that are not used cost nothing."""


def _table(y: Array, highest: int, orders: int) -> Table:
    """The derivatives of orders 0 … `orders` of T₀ … T_highest at a coordinate.

    By T_{k+j} = 2 T_k T_j - T_{k-j} the table is doubled at each step, derivatives by Leibniz' rule: a handful of steps
    whatever its length.
    """
    one, zero = jnp.ones_like(y), jnp.zeros_like(y)
    first = [(one, y), (zero, one), *[(zero, zero)] * (orders - 1)]
    table = [jnp.stack(pair) for pair in first[: orders + 1]]
    while len(table[0]) <= highest:
        top, others = [column[-1] for column in table], [column[1:] for column in table]
        products = [sum(math.comb(r, s) * top[s] * others[r - s] for s in range(r + 1)) for r in range(orders + 1)]
        table = [
            jnp.concatenate([column, 2 * product - column[-2::-1]])
            for column, product in zip(table, products, strict=True)
        ]
    return tuple(column[: highest + 1] for column in table)


def _tables(y: Point, indices: Int[np.ndarray, "m d"], orders: int) -> tuple[Table, ...]:
    """One table per axis."""
    fixed = jax.lax.stop_gradient(y)
    return tuple(_table(fixed[axis], int(highest), orders) for axis, highest in enumerate(indices.max(axis=0)))


def products(y: Point, indices: Int[np.ndarray, "m d"]) -> FeatureValues:
    """The products of Chebyshev polynomials of these degrees per axis."""

    def picked(columns: list[Array], _: None) -> Array:
        if len(columns) == 1:
            return columns[0][indices[:, 0]]
        # A product with columns of the identity picks entries, and is much faster than to gather them.
        entries = (
            column @ np.eye(len(column), dtype=y.dtype)[:, index]
            for column, index in zip(columns, indices.T, strict=True)
        )
        return functools.reduce(operator.mul, entries)

    return _of_columns(picked, y, indices, None)


SPARSE = 8
"""A grid of coefficients with so many times more entries than coefficients is not worth while."""


def combined(y: Point, indices: Int[np.ndarray, "m d"], coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
    """The combination of the products with these coefficients: in few dimensions a grid of them is contracted axis by
    axis, and no product is formed."""
    sizes = indices.max(axis=0) + 1
    if math.prod(sizes.tolist()) > SPARSE * len(indices):
        return products(y, indices) @ coefficients
    grid = jnp.zeros((*sizes, coefficients.shape[1]), coefficients.dtype).at[tuple(indices.T)].set(coefficients)

    def contracted(columns: list[Array], grid: Array) -> Array:
        for column in columns:
            grid = (column @ grid.reshape(len(grid), -1)).reshape(grid.shape[1:])
        return grid

    return _of_columns(contracted, y, indices, grid)


def _of_columns(
    form: Callable[[list[Array], Any], Array], y: Point, indices: Int[np.ndarray, "m d"], data: Array | None
) -> Array:
    """A form that is linear in the column T₀, T₁, … of each axis, and in its data if it has any.

    Its derivatives are the same form of derivatives of the columns, one order per axis. Said so, they cost small matrix
    products and no automatic differentiation, and share tables.
    """

    def derivative(orders: tuple[int, ...], y: Point, tables: tuple[Table, ...], data: Array | None) -> Array:
        if max(orders) >= len(tables[0]):
            tables = _tables(y, indices, 2 * max(orders))

        @jax.custom_jvp
        def value(y: Point, tables: tuple[Table, ...], data: Array | None) -> Array:
            return form([table[k] for table, k in zip(tables, orders, strict=True)], data)

        @value.defjvp
        def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
            (y, tables, data), (direction, _, change) = primals, tangents
            slopes = [
                direction[axis] * derivative((*orders[:axis], orders[axis] + 1, *orders[axis + 1 :]), y, tables, data)
                for axis in range(len(orders))
            ]
            if data is not None:
                slopes.append(value(y, tables, change))
            return value(y, tables, data), functools.reduce(operator.add, slopes)

        return value(y, tables, data)

    return derivative((0,) * indices.shape[1], y, _tables(y, indices, ORDERS), data)


class Chebyshev(Features):
    """Products of Chebyshev polynomials on the box.

    Up to a total degree (``kind="total"``) or a degree per axis (``kind="tensor"``); give `degree`, or `size` for the
    largest degree with at most that many functions. A degree for each axis, as in ``degree=(8, 20)``, resolves some
    directions better than others: Σ kᵢ / degreeᵢ ≤ 1, or kᵢ ≤ degreeᵢ.
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
        self.kind = kind
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

    def values(self, y: Point) -> FeatureValues:
        return products(y, _indices(self.dim, self.degree, self.kind))

    def value_of(self, x: Point, coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
        return combined(self.mapped(x), _indices(self.dim, self.degree, self.kind), coefficients)


class Fourier(Features):
    """Sines and cosines of all frequencies up to `degree` per axis ("tensor") or in sum ("total") on the box.

    With ``extension=1`` the functions are periodic on the box, and periodic conditions need no rows. For functions that
    are not, an extension of 1.5 to 2 makes them periodic on a box that much larger, on which nothing is asked of them.
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
        if not extension >= 1:
            raise FeaturesError(f"extension must be at least 1 (periodic on the box); got {extension}.")
        self.kind, self.extension = kind, float(extension)
        self.degree = chosen_degree(size, degree, lambda k: 2 * len(_half_space(self.dim, k, kind)) - 1)

    @property
    def size(self) -> int:
        return 2 * len(_half_space(self.dim, self.degree, self.kind)) - 1

    @property
    def imposes(self) -> str | None:
        return "periodic" if self.extension == 1 else None

    def values(self, y: Point) -> FeatureValues:
        waves = _half_space(self.dim, self.degree, self.kind)
        phase = y @ ((np.pi / self.extension) * jnp.asarray(waves.T, dtype=y.dtype))
        # cos 0, then cosine and sine of each wave in turn, so that leading functions are the coarser ones
        pairs = jnp.stack([cos(phase[1:]), sin(phase[1:])], axis=1).reshape(-1)
        return jnp.concatenate([jnp.ones(1, dtype=y.dtype), pairs])
