"""Other forms and weights of the penalty on the features, and training in double precision.

All cases use the paper's network and optimiser, for the Helmholtz equation with 100 features and for the Poisson
equation on the square with 200.
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
"""The two problems, with fewer training steps and, on the square, fewer features than in the tables of the paper."""

WEIGHTS = (0.01, 1.0)
"""The weights λ of the penalty that are compared."""


def _gram(features: pf.Features, batch: Any) -> Array:
    U = jax.vmap(features)(batch.interior)
    return U.T @ U


def _with_unit_diagonal(gram: Array) -> Array:
    """The Gram matrix of the same functions, each divided by its norm."""
    size = jnp.sqrt(jnp.diagonal(gram))
    return gram / size[:, None] / size[None, :]


def _departure(gram: Array) -> Array:
    """The Frobenius norm of the difference from the identity."""
    return jnp.sqrt(jnp.sum((gram - jnp.eye(len(gram), dtype=gram.dtype)) ** 2))


def normalised(features: pf.Features, coefficients: Array, batch: Any) -> Array:
    """The norm ‖D⁻¹ᐟ² UᵀU D⁻¹ᐟ² - I‖ with D the diagonal of UᵀU, which depends on angles but not on norms."""
    return _departure(_with_unit_diagonal(_gram(features, batch)))


def log_determinant(features: pf.Features, coefficients: Array, batch: Any) -> Array:
    """The function tr G - log det(G + δ I) with G = UᵀU / n, which is small only if no direction is lost."""
    gram = _gram(features, batch) / len(batch.interior)
    shifted = gram + 1e-6 * jnp.eye(len(gram), dtype=gram.dtype)
    return jnp.trace(gram) - jnp.linalg.slogdet(shifted)[1]


def image(features: pf.Features, coefficients: Array, batch: Any) -> Array:
    """The same as `normalised`, for the images of the features under the operator."""
    _, gradients = batch.linearised("equation", features, coefficients)
    A = gradients[:, 0, :, 0]
    return _departure(_with_unit_diagonal(A.T @ A))


PENALTIES: dict[str, Any] = {
    "norm": pf.losses.Orthogonality(),
    "squared norm": pf.losses.Orthogonality(squared=True),
    "norm of the mean": pf.losses.Orthogonality(mean=True),
    "normalised": normalised,
    "log-determinant": log_determinant,
    "operator's image": image,
}


def cases() -> Iterator[Case]:
    """Every penalty with every weight, no penalty, and the paper's penalty in double precision."""
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
    options: dict[str, Any] = {"orthogonality": weight, "precision": precision, "tol": 0.0}
    if penalty is not None:
        options["penalty"] = PENALTIES[penalty]
    trained = setup.trained(problem, "PD-OFM", PAPER, seed, **options)
    solution = setup.solve(problem, trained.features, seed)
    rank = float(solution.stats.rank)
    return Measured({"relative L2": solution.errors().relative_l2, "rank of the matrix": rank}, {})
