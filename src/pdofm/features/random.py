"""One layer of random features, σ(w·x + b)."""

import jax
import numpy as np

from pdofm._types import Key
from pdofm.features.base import check_count, polynomial_degree
from pdofm.features.box import HasBox, box_of
from pdofm.features.initialisation import check_choices
from pdofm.features.ridges import Ridges
from pdofm.numerics.sampling import generator


class RandomFeatures(Ridges):
    """m random features σ(w·y + b) on the reference cube, which need no training.

    Initialisations:

    - ``"default"``: w ~ N(0, scale²), and b such that the zero line of each feature passes through a random point of
      the box; `scale` defaults to a value that grows with the number of features, as `resolving_scale` does for
      networks.
    - ``"uniform"``: w and b ~ U(-scale, scale), the random feature method's choice (its R_m is `scale`, 1 if omitted).
    - ``"xavier"``, ``"kaiming"``: normal w of variance 2/(d + m) and 2/d, times `scale`, and b = 0.
    """

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
        check_choices(activation, initialisation)
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
    def has_constant(self) -> bool:
        return False
