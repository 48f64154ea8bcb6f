"""Features that are fixed combinations of others: an exact change of basis."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Coefficients, FeatureValues, Point, Points
from pdofm.calculus.jets import Index
from pdofm.domain import Domain
from pdofm.errors import FeaturesError
from pdofm.features.base import Features, Jets, check_count
from pdofm.features.box import Corner, HasBox
from pdofm.features.wrapper import Wrapper


class Combined(Wrapper):
    """The functions ψₖ = Σ φⱼ Wⱼₖ of other features φ, in the order of their importance.

    Attributes:
        weights: W, of shape (features inside, functions).
        importance: how much each function matters, in descending order, the first one 1: singular values. There may be
            more of them than functions, if some were left out.
    """

    inner: Features
    weights: Float[Array | np.ndarray, "m r"]
    importance: Float[Array | np.ndarray, " q"]
    lower: Corner
    upper: Corner

    def __init__(self, inner: Features, weights: np.ndarray, importance: np.ndarray):
        if isinstance(inner, Combined):
            weights, inner = np.asarray(inner.weights) @ weights, inner.inner
        self.inner, self.weights, self.importance = inner, np.asarray(weights), np.asarray(importance)
        self.lower, self.upper = np.asarray(inner.lower), np.asarray(inner.upper)
        self.__check_init__()

    def __check_init__(self):
        if self.weights.shape[0] != self.inner.size:
            raise FeaturesError(
                f"The weights combine {self.weights.shape[0]} features, but there are {self.inner.size}. Give weights "
                "of shape (features, functions)."
            )

    @property
    def wrapped(self) -> tuple[Features, ...]:
        return (self.inner,)

    @property
    def size(self) -> int:
        return self.weights.shape[1]

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return (np.arange(self.size) + 0.5) / self.size

    @property
    def effective_rank(self) -> float:
        """The exponential of the entropy of the singular values: how many functions there are, if each counts as much
        as it matters."""
        shares = np.asarray(self.importance) / np.sum(self.importance)
        shares = shares[shares > 0]
        return float(np.exp(-np.sum(shares * np.log(shares))))

    def truncated(self, size: int) -> "Combined":
        """The `size` most important functions."""
        if check_count("size", size) > self.size:
            raise FeaturesError(f"There are {self.size} functions; got size={size}. Take at most as many.")
        return Combined(self.inner, np.asarray(self.weights)[:, :size], np.asarray(self.importance))

    def on(self, domain: HasBox | Domain) -> "Combined":
        """The same combinations of the inner features on another domain. They are no longer orthonormal there:
        ``features.on(domain).orthonormal(domain)`` makes them so again."""
        return Combined(self.inner.on(domain), np.asarray(self.weights), np.asarray(self.importance))

    def __call__(self, x: Point) -> FeatureValues:
        return self.inner(x) @ self.weights

    def combine(self, x: Point, coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
        return self.inner.combine(x, jnp.asarray(self.weights) @ coefficients)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        # In memory the points are contiguous, as in every other family.
        inner = np.swapaxes(self.inner.jets(points, which), 1, 2)
        return np.swapaxes(np.matmul(np.asarray(self.weights).T, inner), 1, 2)

    def expand(self, points: Points, which: Sequence[Index], coefficients: Coefficients) -> Float[np.ndarray, "a n C"]:
        return self.inner.expand(points, which, np.asarray(self.weights) @ coefficients)

    def lifting(self, points: Points, which: Sequence[Index], components: int) -> Float[np.ndarray, "a n C"] | None:
        return self.inner.lifting(points, which, components)
