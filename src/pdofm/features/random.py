"""One layer of random features, σ(w·x + b)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pdofm._types import FeatureValues, Key, Point
from pdofm.errors import unknown_name
from pdofm.features.base import Corner, Features, HasBox, box_of, check_count, polynomial_degree
from pdofm.features.network import INITIALISATIONS, activation_of
from pdofm.sampling import generator


class RandomFeatures(Features):
    """m random features σ(w·y + b) on the reference cube, one layer, nothing to train.

    Initialisations:

    - ``"default"``: w ~ N(0, scale²), and b such that the zero line of each feature passes through a random point of
      the box; `scale` defaults to a value that grows with the number of features, as `resolving_scale` does for
      networks.
    - ``"uniform"``: w and b ~ U(-scale, scale), the random feature method's choice (its R_m is `scale`, 1 if omitted).
    - ``"xavier"``, ``"kaiming"``: normal w of variance 2/(d + m) and 2/d, times `scale`, and b = 0.
    """

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
        self.weight, self.bias, self.activation = jnp.asarray(weight), jnp.asarray(bias), activation

    @property
    def size(self) -> int:
        return self.weight.shape[0]

    def rescaled(self, factor: float) -> "RandomFeatures":
        return eqx.tree_at(lambda f: (f.weight, f.bias), self, (factor * self.weight, factor * self.bias))

    def values(self, y: Point) -> FeatureValues:
        return activation_of(self.activation)(y @ self.weight.T + self.bias)
