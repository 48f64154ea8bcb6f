"""Derivatives of solutions in parameters: against exact formulas and central differences, and what they cost.

Differentiated is half the mean square of the solution at some points. Every number is relative to the largest entry of
the gradient.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured

SQUARE, DISK = pf.Box([0, 0], [1, 1]), pf.Disk([0, 0], 1)

POINTS, REPEATS = 50, 7
"""Number of points at which solutions are taken, and of members whose times are measured."""

STEP, DIRECTIONS = 1e-3, 4
"""Step of the central differences of fourth order, and the number of random directions in which they are taken."""

COEFFICIENTS, RATE = 200, 3.0
"""Number of coefficients of the boundary data, and how fast they vary."""


@dataclass(frozen=True, eq=False)
class Example:
    """A family with known solutions: ``exact(mu, x)`` is that of `make`; mu is where derivatives are taken."""

    make: Callable[[Any], pf.Problem]
    exact: Callable[[Any, Array], Array]
    features: Callable[[], pf.Features | None]
    mu: np.ndarray
    inside: pf.Domain


def cases() -> Iterator[Case]:
    """Every family."""
    for name in EXAMPLES:
        yield Case("gradients", name, "adjoint", OURS, partial(_run, name), seeds=1)


def _run(name: str, seed: int) -> Measured:
    example = EXAMPLES[name]
    family = pf.Family(example.make, example.features())
    points, mu = example.inside.sample(POINTS), jnp.asarray(example.mu)
    rng = np.random.default_rng(seed)

    def number(mu: Any) -> Array:
        return jnp.mean(family.values(mu, points) ** 2) / 2

    def exactly(mu: Any) -> Array:
        return jnp.mean(jax.vmap(lambda x: example.exact(mu, x))(jnp.asarray(points)) ** 2) / 2

    gradient, truth = np.asarray(jax.grad(number)(mu)), np.asarray(jax.grad(exactly)(mu))
    size = np.abs(truth).max()
    differences = []
    for direction in rng.standard_normal((DIRECTIONS, len(mu))) / np.sqrt(len(mu)):
        at = [float(number(mu + k * STEP * direction)) for k in (-2, -1, 1, 2)]
        found = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * STEP)
        differences.append(abs(found - gradient @ direction) / np.linalg.norm(gradient))
    forward, adjoint = [], []
    for _ in range(REPEATS):
        new = mu * jnp.asarray(1 + 1e-3 * rng.uniform(size=len(mu)))
        start = time.perf_counter()
        family(new)
        forward.append(time.perf_counter() - start)
        start = time.perf_counter()
        jax.grad(number)(new).block_until_ready()  # the solution is known
        adjoint.append(time.perf_counter() - start)
    metrics = {
        "parameters": float(len(mu)),
        "distance to the exact gradient": float(np.abs(gradient - truth).max() / size),
        "distance to central differences": float(max(differences)),
        "forward solve, milliseconds": 1e3 * float(np.median(forward)),
        "gradient after it, milliseconds": 1e3 * float(np.median(adjoint)),
        "gradient over forward solve": float(np.median(adjoint) / np.median(forward)),
    }
    return Measured(metrics, {})


def _conductivity(mu: Any) -> pf.Problem:
    """-a Δu = 2π² b sin πx sin πy with u = c x on the boundary."""
    return pf.Problem(
        SQUARE,
        operator=lambda u, x: -mu[0] * pf.laplacian(u)(x),
        source=lambda x: 2 * jnp.pi**2 * mu[1] * jnp.prod(jnp.sin(jnp.pi * x)),
        conditions=[pf.Dirichlet(lambda x: mu[2] * x[0])],
        name="conductivity",
    )


def _of_conductivity(mu: Any, x: Array) -> Array:
    return mu[1] / mu[0] * jnp.prod(jnp.sin(jnp.pi * x)) + mu[2] * x[0]


_FLOW = pf.Box([-0.3, -0.3], [0.3, 0.3])


def _of_flow(mu: Any, x: Array) -> Array:
    """Kovasznay's flow with viscosity mu[0]: velocity and pressure, which vanishes at the origin."""
    reynolds = 1 / mu[0]
    decay = reynolds / 2 - jnp.sqrt(reynolds**2 / 4 + 4 * jnp.pi**2)
    e, y = jnp.exp(decay * x[0]), 2 * jnp.pi * x[1]
    return jnp.stack([1 - e * jnp.cos(y), decay / (2 * jnp.pi) * e * jnp.sin(y), (1 - e**2) / 2])


def _viscosity(mu: Any) -> pf.Problem:
    """The Navier-Stokes equations with the velocity of Kovasznay's flow on the boundary."""

    def operator(u: Any, x: Array) -> tuple[Array, Array]:
        momentum = pf.grad(u.v)(x) @ u.v(x) + pf.grad(u.p)(x) - mu[0] * pf.laplacian(u.v)(x)
        return momentum, pf.div(u.v)(x)

    conditions = [
        pf.Dirichlet(lambda x: _of_flow(mu, x)[:2], unknown="v"),
        pf.Dirichlet(0.0, on=[[0.0, 0.0]], unknown="p"),
    ]
    return pf.Problem(_FLOW, operator, 0.0, conditions, unknowns={"v": 2, "p": 1}, name="viscosity")


def _bump(mu: Any, x: Array) -> Array:
    return jnp.exp(-5 * jnp.sum((x - mu) ** 2))


def _position(mu: Any) -> pf.Problem:
    """-Δu = f with u = exp(-5|x - mu|²): a source at mu."""
    return pf.Problem(
        SQUARE,
        operator=lambda u, x: -pf.laplacian(u)(x),
        source=lambda x: (20 - 100 * jnp.sum((x - mu) ** 2)) * _bump(mu, x),
        conditions=[pf.Dirichlet(lambda x: _bump(mu, x))],
        name="position",
    )


def _of_boundary_data(mu: Any, x: Array) -> Array:
    """Σ mu_j Re exp(3 z_j), where z_j is the point as a complex number, turned by an angle: a harmonic function."""
    angles = 2 * jnp.pi * jnp.arange(COEFFICIENTS) / COEFFICIENTS
    along = jnp.cos(angles) * x[0] + jnp.sin(angles) * x[1]
    across = jnp.cos(angles) * x[1] - jnp.sin(angles) * x[0]
    return mu @ (jnp.exp(RATE * along) * jnp.cos(RATE * across))


def _boundary_data(mu: Any) -> pf.Problem:
    """Laplace's equation on the unit disk, with boundary values that depend on 200 coefficients."""
    values = pf.Dirichlet(lambda x: _of_boundary_data(mu, x))
    return pf.Problem(DISK, lambda u, x: -pf.laplacian(u)(x), 0.0, [values], name="boundary data")


def _half_axes(mu: Any) -> pf.Problem:
    """-Δu = 1 on an ellipse with the half-axes mu."""
    return pf.Problem(
        pf.Ellipse([0, 0], mu[0], mu[1]), lambda u, x: -pf.laplacian(u)(x), 1.0, [pf.Dirichlet(0.0)], name="ellipse"
    )


def _of_half_axes(mu: Any, x: Array) -> Array:
    return (1 - jnp.sum((x / mu) ** 2)) / jnp.sum(2 / mu**2)


EXAMPLES = {
    "conductivity in Poisson's equation": Example(
        _conductivity, _of_conductivity, lambda: None, np.array([2.0, 1.5, 0.5]), SQUARE
    ),
    "viscosity in Kovasznay's flow": Example(
        _viscosity, _of_flow, lambda: pf.Chebyshev(_FLOW, 136), np.array([1 / 40]), _FLOW
    ),
    "position of a source": Example(_position, _bump, lambda: None, np.array([0.4, 0.55]), SQUARE),
    "boundary data by 200 coefficients": Example(
        _boundary_data,
        _of_boundary_data,
        lambda: pf.Chebyshev(DISK, 496),
        np.random.default_rng(0).standard_normal(COEFFICIENTS),
        DISK,
    ),
    "half-axes of an ellipse": Example(
        _half_axes, _of_half_axes, lambda: None, np.array([1.5, 1.0]), pf.Disk([0, 0], 0.8)
    ),
}
"""The families, by name."""
