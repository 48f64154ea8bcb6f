"""Polynomials and trigonometric functions: the classical spaces, as comparators and for smooth solutions."""

from collections.abc import Callable
from functools import lru_cache
from itertools import product

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pdofm._types import FeatureValues, Point
from pdofm.errors import FeaturesError, unknown_name
from pdofm.features.base import Corner, Features, HasBox, box_of, check_count
from pdofm.features.trigonometry import cos, sin


@lru_cache(maxsize=64)
def _indices(dim: int, highest: int, kind: str) -> Int[np.ndarray, "m d"]:
    """Multi-indices up to a degree, ordered by degree, so that leading ones span a coarser space."""
    if kind not in ("total", "tensor"):
        raise unknown_name("kind of degree", kind, ("total", "tensor"))
    found: list[tuple[int, ...]] = [()]
    for _ in range(dim):  # axis by axis, so that nothing above the total degree is ever listed
        found = [(*head, k) for head in found for k in range(highest - (sum(head) if kind == "total" else 0) + 1)]
    of_degree = sum if kind == "total" else max
    return np.array(sorted(found, key=lambda index: (of_degree(index), index)), dtype=np.int64).reshape(-1, dim)


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


def _chosen(size: int | None, degree: int | None, count: Callable[[int], int]) -> int:
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


def _chebyshev(y: Float[Array, ""], highest: int) -> Float[Array, " n"]:
    """T₀ … T_highest at y by doubling, T_{k+j} = 2 T_k T_j - T_{k-j}: log₂ steps instead of a recurrence."""
    known = jnp.stack([jnp.ones_like(y), y])
    while known.shape[0] <= highest:
        last = known.shape[0] - 1
        known = jnp.concatenate([known, 2 * known[last] * known[1:] - known[:-1][::-1]])
    return known[: highest + 1]


class Chebyshev(Features):
    """Products of Chebyshev polynomials on the box.

    Up to a total degree (``kind="total"``) or a degree per axis (``kind="tensor"``); give `degree`, or `size` for the
    largest degree with at most that many functions.
    """

    lower: Corner
    upper: Corner
    degree: int = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def __init__(self, domain: HasBox, size: int | None = None, *, degree: int | None = None, kind: str = "total"):
        self.lower, self.upper = box_of(domain)
        self.kind = kind
        self.degree = _chosen(size, degree, lambda k: len(_indices(self.dim, k, kind)))

    @property
    def size(self) -> int:
        return len(_indices(self.dim, self.degree, self.kind))

    def values(self, y: Point) -> FeatureValues:
        indices = _indices(self.dim, self.degree, self.kind)
        out = jnp.ones(len(indices), dtype=y.dtype)
        for axis in range(self.dim):
            out = out * _chebyshev(y[axis], self.degree)[indices[:, axis]]
        return out


class Fourier(Features):
    """Sines and cosines of all frequencies up to `degree` per axis ("tensor") or in sum ("total") on the box.

    With ``extension=1`` the functions are periodic on the box; for functions that are not, an extension of 1.5 to 2
    makes them periodic on a box that much larger, on which nothing is asked of them.
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
        self.degree = _chosen(size, degree, lambda k: 2 * len(_half_space(self.dim, k, kind)) - 1)

    @property
    def size(self) -> int:
        return 2 * len(_half_space(self.dim, self.degree, self.kind)) - 1

    def values(self, y: Point) -> FeatureValues:
        waves = _half_space(self.dim, self.degree, self.kind)
        phase = (np.pi / self.extension) * jnp.asarray(waves, dtype=y.dtype) @ y
        # cos 0, then cosine and sine of each wave in turn, so that leading functions are the coarser ones
        pairs = jnp.stack([cos(phase[1:]), sin(phase[1:])], axis=1).reshape(-1)
        return jnp.concatenate([jnp.ones(1, dtype=y.dtype), pairs])
