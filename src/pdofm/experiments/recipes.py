"""Other ways to train features: other optimisers, losses and initial networks, and compression after training.

Unless the row says otherwise, cases use the paper's network and points, for the Helmholtz equation with 100 features
and for the Poisson equation on the square with 200.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.flatten_util import ravel_pytree

import pdofm as pf
from pdofm.experiments.case import OURS, PAPER, Case, Measured
from pdofm.experiments.forms import SETUPS
from pdofm.experiments.methods import Setup


class Combined(pf.Features):
    """Linear combinations of features; the columns of `mixing` (m, k) are their coefficients."""

    lower: np.ndarray | Array
    upper: np.ndarray | Array
    features: pf.Features
    mixing: Array

    def __init__(self, features: pf.Features, mixing: np.ndarray | Array):
        self.lower, self.upper = features.lower, features.upper
        self.features, self.mixing = features, jnp.asarray(mixing)

    def values(self, y: Array) -> Array:
        return self.features.values(y) @ self.mixing


def compressed(features: pf.Features, points: np.ndarray, size: int) -> pf.Features:
    """The `size` principal directions of the features at the points, which are orthonormal there."""
    U = np.asarray(jax.vmap(features)(jnp.asarray(points)))
    _, values, directions = np.linalg.svd(U, full_matrices=False)
    return Combined(features, (directions[:size] / values[:size, None]).T)


def gauss_newton(problem: pf.Problem, network: pf.NetworkFeatures, points: int, steps: int, seed: int) -> pf.Features:
    """Train features by damped Gauss-Newton steps on the residuals of a scalar equation with Dirichlet values, whose
    data come from the exact solution.

    There are fewer residuals r than weights, so a step solves (J Jᵀ + μ I) y = r and moves the weights by -Jᵀ y. The
    damping μ decreases after a step that lowers ‖r‖, and increases after one that does not, which is taken back.
    """
    inside = jnp.asarray(problem.domain.sample(points, "random", key=seed))
    edge = jnp.asarray(problem.domain.boundary.sample(2, key=seed)[0])
    output = np.random.default_rng(seed).standard_normal(network.size) * np.sqrt(2 / (network.size + 1))
    parts = (network.first, network.first_bias, network.hidden, network.hidden_bias)
    weights, restore = ravel_pytree((parts, jnp.asarray(output)))

    def replaced(parts: tuple[Array, ...]) -> pf.NetworkFeatures:
        return eqx.tree_at(lambda f: (f.first, f.first_bias, f.hidden, f.hidden_bias), network, parts)

    def unknown(weights: Array) -> Callable[[Array], Array]:
        parts, coefficients = restore(weights)
        features = replaced(parts)
        return lambda x: features(x) @ coefficients

    def equation(weights: Array, x: Array) -> Array:
        return (problem.operator(unknown(weights), x) - problem.operator(problem.exact, x)) / len(inside) ** 0.5

    def value(weights: Array, x: Array) -> Array:
        return (unknown(weights)(x) - problem.exact(x)) / len(edge) ** 0.5

    def at_all_points(of: Callable[[Any], Any], weights: Array) -> Array:
        terms = ((equation, inside), (value, edge))
        return jnp.concatenate([jax.vmap(of(term), (None, 0))(weights, points) for term, points in terms])

    def residuals(weights: Array) -> Array:
        return at_all_points(lambda term: term, weights)

    @jax.jit
    def move(weights: Array, damping: Array) -> tuple[Array, Array, Array]:
        r, J = residuals(weights), at_all_points(jax.grad, weights)
        moved = weights - J.T @ jnp.linalg.solve(J @ J.T + damping * jnp.eye(len(r)), r)
        return moved, jnp.sum(r**2), jnp.sum(residuals(moved) ** 2)

    damping = 1.0
    for _ in range(steps):
        moved, before, after = move(weights, jnp.asarray(damping))
        weights, damping = (moved, damping / 3) if after < before else (weights, damping * 4)
    return replaced(restore(weights)[0])


def _trained(setup: Setup, seed: int, **options: Any) -> pf.Features:
    options = {"tol": 0.0} | options
    return setup.trained(setup.problem(), "PD-OFM", PAPER, seed, **options).features


def _quasi_newton(setup: Setup, seed: int) -> pf.Features:
    return _trained(setup, seed, optimiser=optax.lbfgs(), precision="float64")


def _muon(setup: Setup, seed: int) -> pf.Features:
    return _trained(setup, seed, optimiser=optax.contrib.muon(1e-3))


def _gauss_newton(setup: Setup, seed: int) -> pf.Features:
    problem = setup.problem()
    network = pf.NetworkFeatures(problem.domain, setup.size, key=seed, activation="tanh3", initialisation="xavier")
    return gauss_newton(problem, network, setup.points, 60, seed)


def _projected(setup: Setup, seed: int) -> pf.Features:
    physics = pf.losses.Projected()
    return _trained(
        setup, seed, physics=physics, orthogonality=0.0, precision="float64", boundary_points=2 * setup.size
    )


def _compressed(setup: Setup, seed: int) -> pf.Features:
    wide = _trained(replace(setup, size=2 * setup.size), seed)
    return compressed(wide, setup.problem().domain.sample(8 * setup.size, key=seed), setup.size)


def _sines(setup: Setup, seed: int) -> pf.Features:
    return pf.NetworkFeatures(setup.problem().domain, setup.size, key=seed)


def _sines_trained(setup: Setup, seed: int) -> pf.Features:
    return setup.trained(setup.problem(), "PD-OFM", OURS, seed).features


RECIPES: dict[str, Callable[[Setup, int], pf.Features]] = {
    "Adam": _trained,
    "Muon": _muon,
    "L-BFGS": _quasi_newton,
    "Gauss-Newton": _gauss_newton,
    "variable projection": _projected,
    "twice as wide, compressed": _compressed,
    "sines, untrained": _sines,
    "sines, Adam": _sines_trained,
}


def cases() -> Iterator[Case]:
    """Every recipe. Gauss-Newton is run in one dimension only, since its Jacobian grows with the width squared."""
    for case, setup in SETUPS.items():
        for name, recipe in RECIPES.items():
            if recipe is not _gauss_newton or setup.problem().domain.dim == 1:
                yield Case("recipes", case, name, PAPER, partial(_run, setup, recipe), seeds=3)


def _run(setup: Setup, recipe: Callable[[Setup, int], pf.Features], seed: int) -> Measured:
    start = time.perf_counter()
    features = jax.block_until_ready(recipe(setup, seed))
    seconds = time.perf_counter() - start
    solution = setup.solve(setup.problem(), features, seed)
    return Measured({"relative L2": solution.errors().relative_l2, "seconds of training": seconds}, {})
