"""Features of the same number against the limit: no m functions represent a family better than its n-width allows.

The families are those of the transfer experiment. The n-width is approached by the principal components of many
solutions, in L², by projection. Everything else solves the equation by least squares.
"""

import time
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import optax
from jax import Array

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import pretrain, quiet
from pdofm.experiments.transfer import (
    APPENDIX,
    DISTRIBUTIONS,
    DOMAINS,
    TRAINING_SEED,
    WIDTHS,
    errors,
    gaussians,
    tests,
    values_of,
)

AGAINST = "against the limit"
"""What the names of the cases begin with."""

SIZES = (100, 200, 300, 500)
"""Numbers of features."""

MEMBERS, SPACE = 900, {"released": 1035, "stated": 1326}
"""Number of random solutions that features are learned from, and of the polynomials that these are solved in."""

OVERSAMPLING = 8
"""Points per function inside the domain: with four of them, errors are a tenth larger."""

NODES = 56
"""Gauss nodes along each side of the square, for projections in L²."""

TRAINED_FOR, STEPS = 100, {100: 1500, 200: 700, 300: 400, 500: 200}
"""Number of random solutions that a network is trained for, and of steps, by the number of features."""

SCALES = (3.0, 4.0, 6.0, 8.0)
"""Scales of a network that are tried before training."""

MOVED = " of the square"
"""What is added to the name of a domain for features that were learned on the square."""

EVALUATED = 20_000
"""Points at which values and Laplacians of all features are evaluated for the comparison of speed."""


def cases() -> Iterator[Case]:
    """Every method with every number of features."""
    for size in SIZES:
        rows = {domain: APPENDIX[domain][WIDTHS.index(size)][2] for domain in DOMAINS}
        published = {f"geometric mean, {domain}, released": value for domain, value in rows.items()}
        for method, run in METHODS.items():
            # The published values, PD-OFM of depth 2, stand beside each method.
            yield Case("transfer", f"{AGAINST}, {size} functions", method, OURS, partial(run, size), published, seeds=1)


def _summary(found: np.ndarray, label: str) -> dict[str, float]:
    return {f"geometric mean, {label}": float(np.exp(np.mean(np.log(found)))), f"largest, {label}": float(found.max())}


def _measured(size: int, metrics: dict[str, float]) -> Measured:
    on_the_square = {
        d: [metrics[f"{what}, square, {d}"] for what in ("geometric mean", "largest")] for d in DISTRIBUTIONS
    }
    return Measured(metrics, {"size": [size]} | on_the_square)


def _everywhere(features: pf.Features, distribution: str, suffix: str = "", **options: Any) -> dict[str, float]:
    metrics = {}
    for domain in DOMAINS:
        found = errors(features, domain, distribution, 0, points=OVERSAMPLING * features.size, **options)
        metrics |= _summary(found, f"{domain}{suffix if domain != 'square' else ''}, {distribution}")
    return metrics


def _seconds(features: pf.Features) -> dict[str, float]:
    """The time in which values and Laplacians of all features are evaluated."""
    points = pf.Box([-1, -1], [1, 1]).sample(EVALUATED)
    which, found = [(0, 0), (2, 0), (0, 2)], []
    for _ in range(3):
        start = time.perf_counter()
        features.jets(points, which)
        found.append(time.perf_counter() - start)
    return {f"seconds for the features and their Laplacians at {EVALUATED} points": min(found)}


@cache
def _solutions(distribution: str) -> pf.Solutions:
    """Random solutions in a space that resolves them; they are not those of the test."""
    problem = pf.zoo.get(DOMAINS["square"])
    members = gaussians(distribution, MEMBERS, TRAINING_SEED)
    with quiet():
        solver = pf.factor(problem, pf.Chebyshev(problem.domain, SPACE[distribution]), sampling="clustered")
        sources = values_of(members, "sources", solver.points["equation"])
        return solver.solve(sources, values_of(members, "values", solver.points["dirichlet"]))


def _learned(size: int, seed: int) -> Measured:
    """Learned from solutions on the square, and moved to the other domains; and learned there."""
    metrics = {}
    for distribution in DISTRIBUTIONS:
        many = _solutions(distribution)
        features = pf.learn(many, size, key=seed)
        metrics |= _everywhere(features, distribution, MOVED)
        for domain in ("L-shape", "annulus"):
            own = pf.learn(many, size, problem=pf.zoo.get(DOMAINS[domain]), key=seed)
            metrics |= _summary(
                errors(own, domain, distribution, seed, points=OVERSAMPLING * size), f"{domain}, {distribution}"
            )
        if distribution == DISTRIBUTIONS[0]:
            metrics |= _seconds(features)
    return _measured(size, metrics)


def _nodes() -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes in the square, and the roots of their weights (n, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    points = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    return points, np.sqrt(np.outer(weights, weights).reshape(-1, 1))


@cache
def _components(distribution: str) -> np.ndarray:
    """Principal components of random solutions."""
    points, roots = _nodes()
    known = values_of(gaussians(distribution, 2 * MEMBERS, TRAINING_SEED), "values", points) * roots
    return np.linalg.svd(known / np.linalg.norm(known, axis=0), full_matrices=False)[0]


def _width(size: int, seed: int) -> Measured:
    """Principal components of solutions in L², and projection: no space of this dimension is much better."""
    metrics, (points, roots) = {}, _nodes()
    for distribution in DISTRIBUTIONS:
        basis = _components(distribution)[:, :size]
        new = values_of(tests(distribution), "values", points) * roots
        left = np.linalg.norm(new - basis @ (basis.T @ new), axis=0) / np.linalg.norm(new, axis=0)
        metrics |= _summary(left, f"square, {distribution}")
    return _measured(size, metrics)


def _chebyshev(size: int, seed: int) -> Measured:
    features = pf.Chebyshev(pf.zoo.get(DOMAINS["square"]).domain, size)
    metrics = _seconds(features)
    for distribution in DISTRIBUTIONS:
        metrics |= _everywhere(features, distribution, sampling="clustered")
    return _measured(size, metrics)


def _network(size: int, scale: float, seed: int) -> pf.Features:
    square = pf.zoo.get(DOMAINS["square"]).domain
    return pf.NetworkFeatures(square, size, depth=1, residual=False, scale=scale, key=seed)


def _untrained(size: int, seed: int) -> Measured:
    features = pf.NetworkFeatures(pf.zoo.get(DOMAINS["square"]).domain, size, key=seed)
    metrics = _seconds(features)
    for distribution in DISTRIBUTIONS:
        metrics |= _everywhere(features, distribution)
    return _measured(size, metrics)


def _family(distribution: str, x: Array) -> Array:
    return gaussians(distribution, TRAINED_FOR, TRAINING_SEED).values(x)


def _trained(size: int, seed: int) -> Measured:
    """One layer of sines, trained for the family by variable projection."""
    problem = pf.zoo.get(DOMAINS["square"])
    metrics = {}
    for distribution in DISTRIBUTIONS:
        loss = pf.losses.Projected(partial(_family, distribution))
        settings = {"physics": loss, "orthogonality": 0.0, "precision": "float64", "tol": 0.0, "key": seed}
        settings |= {"points": 5 * size, "boundary_points": max(240, size)}

        def first_loss(network: pf.Features, settings: dict = settings) -> float:
            return pretrain(problem, network, steps=1, **settings).history["physics"][0]

        network = min((_network(size, scale, seed) for scale in SCALES), key=first_loss)
        optimiser = optax.adam(optax.cosine_decay_schedule(1e-2, STEPS[size]))
        features = pretrain(problem, network, steps=STEPS[size], optimiser=optimiser, **settings).features
        metrics |= _everywhere(features, distribution, MOVED)
        if distribution == DISTRIBUTIONS[0]:
            metrics |= _seconds(features)
    return _measured(size, metrics)


METHODS = {
    "n-width, by projection": _width,
    "learned from solutions": _learned,
    "network trained on the family": _trained,
    "untrained network": _untrained,
    "Chebyshev": _chebyshev,
}
"""How features of a given number are found."""
