"""An interior layer, which trained features resolve and fixed spaces of the same size do not.

    ε u'' + (x - 0.37) u' = f on (-1, 1), ε = 1e-4, u(±1) = 0

has a layer of width √ε = 0.01 at 0.37. Features are trained for one source f by variable projection and tested with 50
others; all are random polynomials of degree 8. The reference solutions are computed with 1200 Chebyshev polynomials.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.polynomial import chebyshev

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import pretrain, quiet

EPSILON, CENTRE = 1e-4, 0.37
"""The diffusion coefficient ε, and the position of the layer."""

SIZE, TESTS = 160, 50
"""Number of features, and of sources that they are tested with."""

DEGREES = np.arange(9)
"""Degrees of the polynomials of which a source is a combination."""

STEPS = 8000
"""Number of training steps."""

TEST_SEED = 123
"""Seed of the sources of the test; those of the training have seeds from 1000 on."""

GRID = np.linspace(-1, 1, 4001)[:, None]
"""The points at which solutions are compared: 20 per width of the layer."""


def cases() -> Iterator[Case]:
    """Fixed spaces, and trained features."""
    for method in ("Chebyshev", "untrained tanh", "untrained sine", "trained tanh"):
        yield Case("interior-layer", "50 other sources", method, OURS, partial(_run, method))


def _problem(source: float | Callable[[Array], Array]) -> pf.Problem:
    return pf.Problem(
        pf.Interval(-1, 1),
        operator=lambda u, x: EPSILON * pf.laplacian(u)(x) + (x[0] - CENTRE) * pf.partial(u, 0)(x),
        source=source,
        conditions=[pf.Dirichlet(0.0)],
        name="interior-layer",
    )


def _random_sources(seed: int, count: int) -> np.ndarray:
    """Coefficients of random polynomials in the Chebyshev basis, (count, 9)."""
    return np.random.default_rng(seed).standard_normal((count, len(DEGREES))) / (1 + DEGREES)


def _source(coefficients: np.ndarray) -> Callable[[Array], Array]:
    """A polynomial, given by its coefficients in the Chebyshev basis."""
    a = jnp.asarray(coefficients)

    def f(x: Array) -> Array:
        return jnp.sum(a * jnp.cos(jnp.asarray(DEGREES) * jnp.arccos(jnp.clip(x[0], -1, 1))))

    return f


def _solutions(features: pf.Features, sources: np.ndarray, **options: Any) -> np.ndarray:
    """The solutions for all sources on the grid, (4001, count)."""
    solver = pf.factor(_problem(0.0), features, boundary_points=2, **options)
    values = chebyshev.chebval(solver.points["equation"][:, 0], sources.T).T
    with quiet():
        return solver.solve(values)(GRID)


@cache
def _reference() -> np.ndarray:
    basis = pf.Chebyshev(pf.Interval(-1, 1), 1200)
    return _solutions(basis, _random_sources(TEST_SEED, TESTS), points=3000, sampling="clustered")


def _run(method: str, seed: int) -> Measured:
    features, curves = _fixed_space(method, seed), dict[str, list]()
    if method == "trained tanh":
        features, curves = _trained(features, seed)
    sampling = {"sampling": "clustered"} if method == "Chebyshev" else {}
    truth = _reference()
    found = _solutions(features, _random_sources(TEST_SEED, TESTS), key=seed, points=16 * SIZE, **sampling)
    errors = np.linalg.norm(found - truth, axis=0) / np.linalg.norm(truth, axis=0)
    metrics = {"geometric mean of relative L2": float(np.exp(np.mean(np.log(errors)))), "largest": float(errors.max())}
    return Measured(metrics, curves | {"errors": errors.tolist()})


def _fixed_space(method: str, seed: int) -> pf.Features:
    """The features of a method before any training."""
    domain = pf.Interval(-1, 1)
    if method == "Chebyshev":
        return pf.Chebyshev(domain, SIZE)
    if method == "untrained sine":
        return pf.NetworkFeatures(domain, SIZE, key=seed)
    return pf.NetworkFeatures(domain, SIZE, key=seed, depth=1, residual=False, activation="tanh", scale=20.0)


def _trained(features: pf.Features, seed: int) -> tuple[pf.Features, dict[str, list]]:
    """Features trained for one source by variable projection, with the loss and the ridges before and after."""
    run = pretrain(
        *(_problem(_source(_random_sources(1000 + seed, 1)[0])), features),
        physics=pf.losses.Projected(),
        orthogonality=0.0,
        precision="float64",
        steps=STEPS,
        points=1000,
        boundary_points=2,
        tol=0.0,
        optimiser=optax.adam(optax.cosine_decay_schedule(0.1, STEPS)),
        key=seed,
    )
    ridges = {"ridges before": _ridges(features), "ridges after": _ridges(run.features)}
    return run.features, {"loss": run.history["loss"][::20], **ridges}


def _ridges(features: pf.Features) -> list[list[float]]:
    """The place at which each unit of the first layer crosses zero, and its slope there."""
    network = cast(pf.NetworkFeatures, features)
    weight, bias = np.asarray(network.first)[:, 0], np.asarray(network.first_bias)
    return [(-bias / weight).tolist(), np.abs(weight).tolist()]
