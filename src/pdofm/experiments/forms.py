"""Which penalty on the features serves best? Other forms of orthogonality, other weights, other precision.

All with the paper's network and optimiser: Helmholtz's equation with 100 features, Poisson's on the square with 200.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

import pdofm as pf
from pdofm.experiments.case import PAPER, Case, Measured
from pdofm.experiments.methods import Setup

SETUPS = {
    "Helmholtz": Setup(partial(pf.zoo.get, "helmholtz-1d"), 100, 1.0, 500, 1000, 2),
    "square": Setup(partial(pf.zoo.get, "poisson-square"), 200, 0.01, 500, 1024, 128),
}
WEIGHTS = (0.01, 1.0)


def _gram(features: pf.Features, batch: Any) -> Array:
    U = jax.vmap(features)(batch.interior)
    return U.T @ U


def _departure(gram: Array) -> Array:
    return jnp.sqrt(jnp.sum((gram - jnp.eye(len(gram), dtype=gram.dtype)) ** 2))


def normalised(features: pf.Features, coefficients: Array, batch: Any) -> Array:
    """‖D⁻¹ᐟ² UᵀU D⁻¹ᐟ² - I‖ with D the diagonal of UᵀU: angles only, sizes are free."""
    gram = _gram(features, batch)
    size = jnp.sqrt(jnp.diagonal(gram))
    return _departure(gram / size[:, None] / size[None, :])


def log_determinant(features: pf.Features, coefficients: Array, batch: Any) -> Array:
    """tr G - log det(G + δ) with G = UᵀU / n: small only if no direction is lost."""
    gram = _gram(features, batch) / len(batch.interior)
    shifted = gram + 1e-6 * jnp.eye(len(gram), dtype=gram.dtype)
    return jnp.trace(gram) - jnp.linalg.slogdet(shifted)[1]


def image(features: pf.Features, coefficients: Array, batch: Any) -> Array:
    """Orthogonality of what the operator makes of the features, with sizes free."""
    _, gradients = batch.linearised("equation", features, coefficients)
    A = gradients[:, 0, :, 0]
    gram = A.T @ A
    size = jnp.sqrt(jnp.diagonal(gram))
    return _departure(gram / size[:, None] / size[None, :])


PENALTIES: dict[str, Any] = {
    "norm": pf.losses.Orthogonality(),
    "squared norm": pf.losses.Orthogonality(squared=True),
    "norm of the mean": pf.losses.Orthogonality(mean=True),
    "normalised": normalised,
    "log-determinant": log_determinant,
    "operator's image": image,
}


def cases() -> Iterator[Case]:
    """Every penalty with every weight, and without any; the paper's form in double precision, too."""
    for case, setup in SETUPS.items():
        yield Case("forms", case, "none", PAPER, partial(_run, setup, None, 0.0, "float32"), seeds=3)
        for name in PENALTIES:
            for weight in WEIGHTS:
                run = partial(_run, setup, name, weight, "float32")
                yield Case("forms", case, f"{name}, λ = {weight:g}", PAPER, run, seeds=3)
        double = partial(_run, setup, "norm", setup.orthogonality, "float64")
        yield Case("forms", case, f"norm, λ = {setup.orthogonality:g}, float64", PAPER, double, seeds=3)


def _run(setup: Setup, penalty: str | None, weight: float, precision: str, seed: int) -> Measured:
    problem = setup.problem()
    options: dict[str, Any] = {"orthogonality": weight, "precision": precision, "tolerance": 0.0}
    if penalty is not None:
        options["penalty"] = PENALTIES[penalty]
    trained = setup.trained(problem, "PD-OFM", PAPER, seed, **options)
    solution = setup.solve(problem, trained.features, seed)
    rank = float(solution.stats.rank)
    return Measured({"relative L2": solution.errors().relative_l2, "rank of the matrix": rank}, {})
