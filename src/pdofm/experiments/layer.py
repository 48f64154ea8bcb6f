"""Where learning pays: an interior layer that fixed spaces of the same size miss.

    ε u'' + (x - 0.37) u' = f on (-1, 1), ε = 1e-4, u(±1) = 0

has a layer of width √ε = 0.01 at 0.37. Features are trained on one f by variable projection and tested on 50 others,
all random polynomials of degree 8, against 1200 Chebyshev polynomials.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.polynomial import chebyshev

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import pretrain, quiet

EPSILON, CENTRE, SIZE, TESTS = 1e-4, 0.37, 160, 50
DEGREES = np.arange(9)
STEPS = 8000
GRID = np.linspace(-1, 1, 4001)[:, None]


def cases() -> Iterator[Case]:
    """Fixed spaces, and trained features."""
    for method in ("Chebyshev", "untrained tanh", "untrained sine", "trained tanh"):
        yield Case("interior-layer", "50 other sources", method, OURS, partial(_run, method))


def _problem(source) -> pf.Problem:
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


def _source(coefficients: np.ndarray):
    a = jnp.asarray(coefficients)

    def f(x: Array) -> Array:
        return jnp.sum(a * jnp.cos(jnp.asarray(DEGREES) * jnp.arccos(jnp.clip(x[0], -1, 1))))

    return f


def _solutions(features: pf.Features, sources: np.ndarray, **options) -> np.ndarray:
    """All solutions on the grid, (4001, count)."""
    solver = pf.factor(_problem(0.0), features, boundary_points=2, **options)
    values = chebyshev.chebval(solver.points["equation"][:, 0], sources.T).T
    with quiet():
        return solver.solve(values)(GRID)


@cache
def _reference() -> np.ndarray:
    basis = pf.Chebyshev(pf.Interval(-1, 1), 1200)
    return _solutions(basis, _random_sources(123, TESTS), points=3000, sampling="clustered")


def _run(method: str, seed: int) -> Measured:
    domain, curves = pf.Interval(-1, 1), dict[str, list]()
    shallow: dict[str, Any] = {"depth": 1, "residual": False, "activation": "tanh", "scale": 20.0}
    options: dict[str, Any] = {"points": 16 * SIZE}
    if method == "Chebyshev":
        features: pf.Features = pf.Chebyshev(domain, SIZE)
        options["sampling"] = "clustered"
    elif method == "untrained sine":
        features = pf.NetworkFeatures(domain, SIZE, key=seed)
    else:
        features = pf.NetworkFeatures(domain, SIZE, key=seed, **shallow)
    if method == "trained tanh":
        problem = _problem(_source(_random_sources(1000 + seed, 1)[0]))
        run = pretrain(
            *(problem, features),
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
        curves = {"loss": run.history["loss"][::20], "ridges before": _ridges(features)}
        features = run.features
        curves["ridges after"] = _ridges(features)
    truth = _reference()
    found = _solutions(features, _random_sources(123, TESTS), key=seed, **options)
    errors = np.linalg.norm(found - truth, axis=0) / np.linalg.norm(truth, axis=0)
    metrics = {"geometric mean of relative L2": float(np.exp(np.mean(np.log(errors)))), "largest": float(errors.max())}
    return Measured(metrics, curves | {"errors": errors.tolist()})


def _ridges(features: pf.Features) -> list:
    """Where each unit of the first layer crosses zero, and how steep it is."""
    weight, bias = np.asarray(features.first)[:, 0], np.asarray(features.first_bias)  # type: ignore[attr-defined]
    return [(-bias / weight).tolist(), np.abs(weight).tolist()]
