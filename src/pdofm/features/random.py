"""One layer of random features, σ(w·x + b)."""

from collections.abc import Sequence
from itertools import product
from typing import ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from pdofm._types import FeatureValues, Key, Point, Points
from pdofm.calculus.jets import Index
from pdofm.errors import unknown_name
from pdofm.features.activations import activation_of, derivatives
from pdofm.features.base import Corner, Features, HasBox, Jets, box_of, check_count, polynomial_degree
from pdofm.features.network import INITIALISATIONS
from pdofm.numerics.batches import slices
from pdofm.numerics.sampling import generator

BLOCK_POINTS, BLOCK = 2048, 2**15
"""How many points, and how many values at points, are computed at once: a core's cache holds a few arrays of them."""


def ridges(
    found: Float[np.ndarray, "a m n"],
    points: Points,
    weight: Float[np.ndarray, "m d"],
    bias: Float[np.ndarray, " m"],
    slopes: Float[np.ndarray, " d"],
    activation: str,
    which: Sequence[Index],
) -> None:
    """Write the derivatives `which` of σ(w·y + b), points y given on the cube, in coordinates xᵢ with dyᵢ/dxᵢ = slopes:
    σ^(|α|)(w·y + b) Π (wᵢ slopeᵢ)^αᵢ."""
    orders = sorted({sum(index) for index in which})
    factors = [np.prod((weight * slopes) ** np.array(index), axis=1, keepdims=True) for index in which]
    rows = max(1, BLOCK // max(1, min(len(points), BLOCK_POINTS)))
    for at, some in product(slices(len(points), BLOCK_POINTS), slices(len(weight), rows)):
        phase = weight[some] @ points[at].T
        phase += bias[some, None]
        sigma = derivatives(activation, phase, orders)
        for out, factor, index in zip(found, factors, which, strict=True):
            if any(index):
                np.multiply(sigma[sum(index)], factor[some], out=out[some, at])
            else:
                out[some, at] = sigma[0]


class RandomFeatures(Features):
    """m random features σ(w·y + b) on the reference cube, one layer, nothing to train.

    Initialisations:

    - ``"default"``: w ~ N(0, scale²), and b such that the zero line of each feature passes through a random point of
      the box; `scale` defaults to a value that grows with the number of features, as `resolving_scale` does for
      networks.
    - ``"uniform"``: w and b ~ U(-scale, scale), the random feature method's choice (its R_m is `scale`, 1 if omitted).
    - ``"xavier"``, ``"kaiming"``: normal w of variance 2/(d + m) and 2/d, times `scale`, and b = 0.
    """

    trained: ClassVar[tuple[str, ...]] = ("weight", "bias")

    weight: Float[Array, "m d"]
    bias: Float[Array, " m"]
    lower: Corner
    upper: Corner
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        domain: HasBox,
        size: int = 500,
        *,
        key: Key = 0,
        activation: str = "tanh",
        initialisation: str = "default",
        scale: float | None = None,
    ):
        activation_of(activation)
        if initialisation not in INITIALISATIONS:
            raise unknown_name("initialisation", initialisation, INITIALISATIONS)
        self.lower, self.upper = box_of(domain)
        m, d = check_count("size", size), self.dim
        rng = generator(key)
        if initialisation == "default":
            if scale is None:
                scale = (polynomial_degree(m, d) / 35.0) ** 2
            weight = scale * rng.standard_normal((m, d))
            bias = -np.sum(weight * rng.uniform(-1, 1, (m, d)), axis=1)
        else:
            scale = 1.0 if scale is None else scale
            if initialisation == "uniform":
                weight, bias = scale * rng.uniform(-1, 1, (m, d)), scale * rng.uniform(-1, 1, m)
            else:
                variance = 2 / (d + m) if initialisation == "xavier" else 2 / d
                weight, bias = scale * np.sqrt(variance) * rng.standard_normal((m, d)), np.zeros(m)
        (self.weight, self.bias), self.activation = jax.device_put((weight, bias)), activation

    @property
    def size(self) -> int:
        return self.weight.shape[0]

    def rescaled(self, factor: float) -> "RandomFeatures":
        return eqx.tree_at(lambda f: (f.weight, f.bias), self, (factor * self.weight, factor * self.bias))

    def values(self, y: Point) -> FeatureValues:
        return activation_of(self.activation)(y @ self.weight.T + self.bias)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        found = np.empty((len(which), self.size, len(points)))
        on_cube, slopes = self.to_cube(points)
        ridges(found, on_cube, np.asarray(self.weight), np.asarray(self.bias), slopes, self.activation, which)
        return np.swapaxes(found, 1, 2)
