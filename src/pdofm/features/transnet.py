"""Features whose hyperplanes are spread uniformly over a ball (Zhang et al., "Transferable neural networks", 2024)."""

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float

from pdofm._types import Key
from pdofm.errors import FeaturesError
from pdofm.features.activations import activation_of
from pdofm.features.base import check_count
from pdofm.features.box import HasBox, box_of
from pdofm.features.ridges import Ridges
from pdofm.numerics.lstsq import QR
from pdofm.numerics.numbers import as_number
from pdofm.numerics.sampling import generator, unit_points


class TransNet(Ridges):
    """1, and σ(γ (a·y / R + r)) with directions a uniform on the sphere and offsets r uniform in (0, 1).

    y are the coordinates of the reference cube. R is the `radius` of a ball about its centre, by default that of the
    smallest ball that contains the cube, √d. The hyperplanes have the same density everywhere in the ball. γ is the
    `shape`, which `tune` chooses.
    """

    def __init__(
        self,
        domain: HasBox,
        size: int = 500,
        *,
        shape: float = 2.0,
        radius: float | None = None,
        activation: str = "tanh",
        key: Key = 0,
    ):
        activation_of(activation)
        self.lower, self.upper = box_of(domain)
        n = check_count("size", size, least=2) - 1
        radius = float(np.sqrt(self.dim)) if radius is None else radius
        shape, radius = (
            as_number(each, f"{name} of {type(self).__name__}", FeaturesError, above=0.0)
            for each, name in ((shape, "shape"), (radius, "radius"))
        )
        rng = generator(key)
        directions = rng.standard_normal((n, self.dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        self.weight, self.bias = jax.device_put((shape / radius * directions, shape * rng.uniform(0, 1, n)))
        self.activation = activation

    @classmethod
    def tune(
        cls,
        domain: HasBox,
        size: int = 500,
        *,
        shapes: Sequence[float] | None = None,
        correlation: float = 1.0,
        realisations: int = 10,
        points: int | None = None,
        radius: float | None = None,
        activation: str = "tanh",
        key: Key = 0,
    ) -> "TransNet":
        """The features whose shape parameter γ fits Gaussian random fields best. No equation is involved.

        Fields of covariance exp(-|y - y'|² / 2ℓ²), where ℓ is the `correlation` length in coordinates of the reference
        cube, are drawn at `points` (by default two per feature, at least 200) and fitted by least squares for each of
        `shapes` (by default 25 values from 0.2 to 5). The γ with the smallest mean square error over all `realisations`
        is chosen.
        """
        dim = len(box_of(domain)[0])
        rng = generator(key)
        seed = int(rng.integers(2**31))
        count = max(200, 2 * size) if points is None else points
        y = 2 * unit_points(count, dim, "sobol", rng)[:count] - 1
        fields = gaussian_fields(y, correlation, realisations, rng)
        cube = _Cube(-np.ones(dim), np.ones(dim))
        tried = np.linspace(0.2, 5, 25).tolist() if shapes is None else list(shapes)
        if not tried:
            raise FeaturesError("shapes is empty; give the values of the shape parameter to try, or leave it out.")

        def misfit(shape: float) -> float:
            trial = cls(cube, size, shape=float(shape), radius=radius, activation=activation, key=seed)
            values = trial.jets(y, [(0,) * dim])[0]
            fitted = QR(rcond=1e-12).factor(values).solve(fields)
            return float(np.mean((values @ fitted - fields) ** 2))

        return cls(domain, size, shape=min(tried, key=misfit), radius=radius, activation=activation, key=seed)

    @property
    def has_constant(self) -> bool:
        return True


class _Cube:
    """The reference cube, as a box for features."""

    def __init__(self, lower: np.ndarray, upper: np.ndarray):
        self.lower, self.upper = lower, upper


def gaussian_fields(
    points: Float[np.ndarray, "n d"], correlation: float, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "n k"]:
    """`count` Gaussian random fields of covariance exp(-|x - x'|² / 2ℓ²) at points, by an eigendecomposition.

    The covariance is singular to working precision: a Cholesky factorization would need a regularisation.
    """
    squares = np.sum(points**2, axis=1)
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * points @ points.T, 0.0)
    eigenvalues, vectors = np.linalg.eigh(np.exp(-distances / (2 * correlation**2)))
    kept = eigenvalues > 1e-14 * eigenvalues[-1]
    return vectors[:, kept] @ (np.sqrt(eigenvalues[kept])[:, None] * rng.standard_normal((kept.sum(), count)))
