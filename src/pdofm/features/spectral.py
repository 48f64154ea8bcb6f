"""Polynomials and trigonometric functions: the classical spaces, as comparators and for smooth solutions."""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product

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


Tables = tuple[Float[Array, "k d"], ...]
"""For each order the derivatives of T₀, T₁, … at each coordinate."""

ORDERS = 4
"""Derivatives up to this order share one set of tables; those that are not used cost nothing."""


def _tables(y: Point, highest: int, orders: int) -> Tables:
    """The derivatives of orders 0 … `orders` of T₀ … T_highest at each coordinate.

    By T_{k+j} = 2 T_k T_j - T_{k-j} the tables are doubled at each step, derivatives by Leibniz' rule: a handful of
    steps whatever their length.
    """
    one, zero = jnp.ones_like(y), jnp.zeros_like(y)
    first = [(one, y), (zero, one), *[(zero, zero)] * (orders - 1)]
    tables = [jnp.stack(pair) for pair in first[: orders + 1]]
    while len(tables[0]) <= highest:
        top, others = [table[-1] for table in tables], [table[1:] for table in tables]
        products = [
            sum(math.comb(r, s) * top[s][None] * others[r - s] for s in range(r + 1)) for r in range(orders + 1)
        ]
        tables = [
            jnp.concatenate([table, 2 * product - table[-2::-1]])
            for table, product in zip(tables, products, strict=True)
        ]
    return tuple(table[: highest + 1] for table in tables)


def products(y: Point, indices: Int[np.ndarray, "m d"]) -> FeatureValues:
    """The products of Chebyshev polynomials of these degrees per axis.

    Their derivatives are products of the polynomials' own derivatives, one order per axis. Said so, they cost small
    matrix products and no automatic differentiation, and share tables.
    """
    dim = indices.shape[1]
    return _derivative(indices, (0,) * dim, y, _tables(jax.lax.stop_gradient(y), int(indices.max()), ORDERS))


def _derivative(indices: Int[np.ndarray, "m d"], orders: tuple[int, ...], y: Point, tables: Tables) -> FeatureValues:
    """The derivative of the products of these orders per axis."""
    highest = int(indices.max())
    if max(orders) >= len(tables):
        tables = _tables(jax.lax.stop_gradient(y), highest, 2 * max(orders))

    @jax.custom_jvp
    def value(y: Point, tables: Tables) -> Array:
        if len(orders) == 1:
            return tables[orders[0]][indices[:, 0], 0]
        # A product with columns of the identity picks entries, and is much faster than to gather them.
        picked = (
            tables[k][:, axis] @ np.eye(highest + 1, dtype=y.dtype)[:, indices[:, axis]]
            for axis, k in enumerate(orders)
        )
        return functools.reduce(operator.mul, picked)

    @value.defjvp
    def _(primals: tuple[Array, Tables], tangents: tuple[Array, Tables]) -> tuple[Array, Array]:
        (y, tables), (direction, _) = primals, tangents
        slopes = (
            direction[axis] * _derivative(indices, (*orders[:axis], orders[axis] + 1, *orders[axis + 1 :]), y, tables)
            for axis in range(len(orders))
        )
        return value(y, tables), functools.reduce(operator.add, slopes)

    return value(y, tables)


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
