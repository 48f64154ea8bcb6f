"""Ridge functions σ(w·y + b): one layer of a network, with derivatives in closed form."""

import abc
from collections.abc import Sequence
from itertools import product
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pdofm._types import FeatureValues, Point, Points
from pdofm.calculus.jets import Index
from pdofm.features.activations import activation_derivatives, activation_of
from pdofm.features.base import Features, Jets
from pdofm.features.box import Corner
from pdofm.numerics.batches import slices

TILE_POINTS, TILE_ENTRIES = 2048, 2**15
"""Points, and entries (points times features), that are computed at once. The cache of a core holds a few arrays of
this size (256 kB), one for each order of derivative."""


class Ridges(Features):
    """Features σ(w·y + b) on the reference cube, preceded by the constant 1 if `has_constant`."""

    trained: ClassVar[tuple[str, ...]] = ("weight", "bias")
    scaled: ClassVar[tuple[str, ...]] = ("weight", "bias")

    weight: Float[Array, "n d"]
    bias: Float[Array, " n"]
    lower: Corner
    upper: Corner
    activation: str = eqx.field(static=True)

    @property
    @abc.abstractmethod
    def has_constant(self) -> bool:
        """Whether the first feature is the constant 1."""

    @property
    def size(self) -> int:
        return self.weight.shape[0] + self.has_constant

    def values(self, y: Point) -> FeatureValues:
        sigma = activation_of(self.activation)(y @ self.weight.T + self.bias)
        return jnp.concatenate([jnp.ones(1, dtype=y.dtype), sigma]) if self.has_constant else sigma

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        found = np.empty((len(which), self.size, len(points)))
        if self.has_constant:
            found[:, 0] = np.array([not any(index) for index in which])[:, None]
        on_cube, slopes = self.to_cube(points)
        weight, bias = np.asarray(self.weight), np.asarray(self.bias)
        _write(found[:, int(self.has_constant) :], on_cube, weight, bias, slopes, self.activation, which)
        return np.swapaxes(found, 1, 2)


def _write(
    found: Float[np.ndarray, "a m n"],
    points: Points,
    weight: Float[np.ndarray, "m d"],
    bias: Float[np.ndarray, " m"],
    slopes: Float[np.ndarray, " d"],
    activation: str,
    which: Sequence[Index],
) -> None:
    """Write the derivatives `which` of σ(w·y + b) at points y of the cube to `found`. They are taken with respect to
    coordinates xᵢ with dyᵢ/dxᵢ = slopeᵢ: σ^(|α|)(w·y + b) Π (wᵢ slopeᵢ)^αᵢ."""
    orders = sorted({sum(index) for index in which})
    factors = [np.prod((weight * slopes) ** np.array(index), axis=1, keepdims=True) for index in which]
    rows = max(1, TILE_ENTRIES // max(1, min(len(points), TILE_POINTS)))
    for at, some in product(slices(len(points), TILE_POINTS), slices(len(weight), rows)):
        phase = weight[some] @ points[at].T
        phase += bias[some, None]
        sigma = activation_derivatives(activation, phase, orders)
        for out, factor, index in zip(found, factors, which, strict=True):
            if any(index):
                np.multiply(sigma[sum(index)], factor[some], out=out[some, at])
            else:
                out[some, at] = sigma[0]
