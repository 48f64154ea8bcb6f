"""Figures of sections 2.2 to 2.4: the effect of training and of orthogonality on features in one dimension."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pdofm as pf
from pdofm.experiments.case import PAPER, Case, Measured
from pdofm.experiments.methods import ADAM, pretrain, quiet

TRAINING: dict[str, Any] = {"optimiser": ADAM, "resample": False, "tol": 0.0}
"""The optimiser and points of the published experiments, without an early stop."""

ORTHONORMAL = "PD-OFM, orthonormal"
"""The features of PD-OFM after an exact change of basis, which spans the same functions."""

FIT_SIZES = (5, 10, 20, 40, 80)
POISSON_SIZES = (10, 20, 40, 60, 80, 100)
"""Numbers of features in the figures of the error."""


def cases() -> Iterator[Case]:
    """All lines of the figures."""
    for method in ("RFM", "PD-OFM"):
        yield Case("fit", "error against features", method, PAPER, partial(_fit_errors, method), quick=True)
        yield Case("fit", "coefficients of 20 features", method, PAPER, partial(_fit_coefficients, method), quick=True)
    for scheme in ("xavier", "kaiming"):
        yield Case("dynamics", scheme, "PD-FM", PAPER, partial(_dynamics, scheme), quick=True)
    for method in ("PD-OFM", "PD-FM", ORTHONORMAL):
        yield Case("poisson-1d", "evolution", method, PAPER, partial(_evolution, method), quick=True)
    for method in ("PD-OFM", "PD-FM", "RFM"):
        yield Case("poisson-1d", "error against features", method, PAPER, partial(_poisson_errors, method))


def _waves(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.stack([jnp.sin(k * jnp.pi * x[0]) for k in (2, 3, 4, 20)]))


def _values(features: pf.Features, points: np.ndarray) -> np.ndarray:
    return np.asarray(jax.vmap(features)(jnp.asarray(points)))


UNIT = pf.Interval(0, 1)
FIT = pf.Problem(UNIT, operator=lambda u, x: u(x), source=_waves, conditions=[pf.Dirichlet(0.0)], name="fit")
"""Fitting a function, stated as a problem: the equation is u = f, and f vanishes at the ends."""


def _fit_features(method: str, size: int, seed: int) -> pf.Features:
    if method == "RFM":
        return pf.RandomFeatures(UNIT, size, initialisation="uniform", key=seed)
    network = pf.NetworkFeatures(UNIT, size, key=seed, activation="tanh3", initialisation="xavier")
    fit = pf.losses.Supervised(_waves)
    return pretrain(
        *(FIT, network), physics=fit, orthogonality=0.1, steps=2000, points=1000, key=seed, **TRAINING
    ).features


def _fit(method: str, size: int, seed: int) -> tuple[pf.Features, np.ndarray, float]:
    """Features, the coefficients of the best fit at 1000 points, and its relative error at 2000 other points."""
    features = _fit_features(method, size, seed)
    points, test = np.linspace(0, 1, 1000)[:, None], np.linspace(0, 1, 2000)[:, None]
    target, truth = (np.asarray(jax.vmap(_waves)(jnp.asarray(at))) for at in (points, test))
    coefficients = pf.SVD(1e-15).factor(_values(features, points)).solve(target)
    return features, coefficients, pf.metrics.relative_l2(_values(features, test) @ coefficients, truth)


def _fit_errors(method: str, seed: int) -> Measured:
    errors = [_fit(method, size, seed)[2] for size in FIT_SIZES]
    return Measured({"relative L2 with 80 features": errors[-1]}, {"features": list(FIT_SIZES), "errors": errors})


def _fit_coefficients(method: str, seed: int) -> Measured:
    features, coefficients, error = _fit(method, 20, seed)
    grid = np.linspace(0, 1, 400)[:, None]
    values = _values(features, grid)
    curves = {"coefficients": np.abs(coefficients).tolist(), "x": grid[:, 0].tolist()}
    curves["first ten features"] = (values[:, :10] / np.abs(values[:, :10]).max(axis=0)).T.tolist()
    curves |= {
        "fit": (values @ coefficients).tolist(),
        "function": np.asarray(jax.vmap(_waves)(jnp.asarray(grid))).tolist(),
    }
    return Measured({"relative L2": error, "largest coefficient": float(np.abs(coefficients).max())}, curves)


def _dynamics(scheme: str, seed: int) -> Measured:
    """The least-squares error during the training of a physics-informed network for the Helmholtz equation."""
    problem = pf.zoo.get("helmholtz-1d")
    network = pf.NetworkFeatures(problem.domain, 100, key=seed, activation="tanh3", initialisation=scheme)

    def error(features: pf.Features) -> float:
        with quiet():
            solved = pf.solve(problem, features, points=1000, boundary_points=2, key=seed)
        return solved.errors().relative_l2

    before = error(network)
    counts = {"steps": 400, "points": 1000, "boundary_points": 2}
    run = pretrain(problem, network, orthogonality=0.0, key=seed, record={"error": error}, **counts, **TRAINING)
    errors = [before, *run.history["error"]]
    at_100 = errors[5]
    curves = {"step": list(range(0, 401, 20)), "least-squares error": errors, "loss": run.history["loss"]}
    metrics = {"error before": before, "error after 100 steps": at_100, "error after 400 steps": errors[-1]}
    return Measured(metrics | {"loss after 400 steps": run.history["loss"][-1]}, curves)


def _eigenfunctions(points: np.ndarray, count: int = 10) -> np.ndarray:
    k = np.arange(1, count + 1)
    return np.sin(k * np.pi * (points + 1) / 2)


def _evolution(method: str, seed: int) -> Measured:
    """Effective rank, orthogonality and projection error during training, and the spectrum at its end."""
    problem = pf.zoo.get("poisson-1d")
    network = pf.NetworkFeatures(problem.domain, 100, key=seed, activation="tanh3", initialisation="xavier")
    points, roots = np.linspace(-1, 1, 1024)[:, None], 1.0
    if method == ORTHONORMAL:  # in L², which Gauss nodes with their weights measure exactly
        nodes, weights = np.polynomial.legendre.leggauss(1024)
        points, roots = nodes[:, None], np.sqrt(weights)[:, None]
    eigenfunctions = _eigenfunctions(points) * roots

    def sampled(features: pf.Features) -> np.ndarray:
        if method == ORTHONORMAL:
            features = features.orthonormal(problem.domain)
        return _values(features, points) * roots

    def on_points(measure: Callable[[np.ndarray], float]) -> Callable[[pf.Features], float]:
        return lambda features: float(measure(sampled(features)))

    record = {
        "effective rank": on_points(lambda U: pf.metrics.effective_rank(U.T @ U)),
        "orthogonality loss": on_points(lambda U: pf.metrics.orthogonality_loss(U, squared=False)),
        "projection error": on_points(lambda U: pf.metrics.mean_projection_error(U, eigenfunctions)),
    }
    run = pretrain(
        *(problem, network),
        orthogonality=0.0 if method == "PD-FM" else 0.1,
        steps=200,
        points=1024,
        boundary_points=2,
        record=record,
        key=seed,
        **TRAINING,
    )
    U = sampled(run.features)
    spectrum = np.zeros(network.size)  # functions that an orthonormal basis leaves out count as zero
    spectrum[: U.shape[1]] = pf.metrics.singular_spectrum(U) ** 2  # without the rounding errors of the product UᵀU
    curves = {name: [measure(network), *run.history[name]] for name, measure in record.items()}
    curves |= {"step": list(range(0, 201, 20)), "spectrum": (spectrum / spectrum[0]).tolist()}
    metrics = {name: curves[name][-1] for name in record}
    tail = spectrum[19] / spectrum[0]
    return Measured(metrics | {"20th singular value over the first": float(tail)}, curves)


def _poisson_errors(method: str, seed: int) -> Measured:
    """The relative error for -u'' = f with u = sin πx + sin 4πx against the number of features, which are trained for
    f = 1."""
    problem = pf.zoo.get("poisson-1d")
    target = problem.replace(
        source=None,
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.sin(jnp.pi * x[0]) + jnp.sin(4 * jnp.pi * x[0]),
    )
    errors = []
    for size in POISSON_SIZES:
        with quiet():
            if method == "RFM":
                features = pf.RandomFeatures(problem.domain, size, initialisation="uniform", key=seed)
            else:
                network = pf.NetworkFeatures(
                    problem.domain, size, key=seed, activation="tanh3", initialisation="xavier"
                )
                weight = 0.1 if method == "PD-OFM" else 0.0
                counts = {"steps": 200, "boundary_points": 2}
                features = pretrain(problem, network, orthogonality=weight, key=seed, **counts, **TRAINING).features
            errors.append(pf.solve(target, features, points=1024, boundary_points=2, key=seed).errors().relative_l2)
    return Measured({"relative L2 with 100 features": errors[-1]}, {"features": list(POISSON_SIZES), "errors": errors})
