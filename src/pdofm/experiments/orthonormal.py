"""The penalty of the paper against exact orthonormality: rank, orthogonality, conditioning, and transfer.

Networks are trained with the penalty, without it, and for a family of solutions by variable projection, which has the
change of basis inside its loss: it depends on the span of the features only. Each is measured as it is trained, and in
an orthonormal basis, in L² and in the norm of the equation.
"""

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
import optax

import pdofm as pf
from pdofm.experiments.case import OURS, PAPER, Case, Measured
from pdofm.experiments.methods import Setup, pretrain, quiet
from pdofm.experiments.transfer import DOMAINS, errors, family

SIZE, STEPS = 200, 300
"""Number of features, and of steps in our own training."""

NODES = 40
"""Gauss nodes along each side of the square, where features are compared."""

FUNCTIONS = 6
"""Products of sines sin(iπx/2) sin(jπy/2), i and j up to this, that are projected onto the features."""

TRAININGS = {"with the penalty": PAPER, "without the penalty": PAPER, "variable projection": OURS}
"""How features are trained, with their settings."""

BASES = ("as trained", "orthonormal in L²", "orthonormal in the equation's norm")


def cases() -> Iterator[Case]:
    """Every training, in every basis."""
    for training, settings in TRAININGS.items():
        for basis in BASES:
            yield Case("orthonormal", training, basis, settings, partial(_run, training, basis))


@cache
def _trained(training: str, seed: int) -> pf.Features:
    setup = Setup(partial(pf.zoo.get, DOMAINS["square"]), SIZE, 0.01, 1000, 1024, 128)
    with quiet():
        if training != "variable projection":
            method = "PD-OFM" if training == "with the penalty" else "PD-FM"
            return setup.trained(setup.problem(), method, PAPER, seed).features
        return pretrain(
            *(setup.problem(), pf.NetworkFeatures(setup.problem().domain, SIZE, key=seed)),
            physics=pf.losses.Projected(family),
            orthogonality=0.0,
            precision="float64",
            steps=STEPS,
            tol=0.0,
            points=4 * SIZE,
            boundary_points=SIZE,
            optimiser=optax.adam(optax.cosine_decay_schedule(1e-3, STEPS)),
            key=seed,
        ).features


def _run(training: str, basis: str, seed: int) -> Measured:
    problem = pf.zoo.get(DOMAINS["square"])
    features = _trained(training, seed)
    if basis != "as trained":
        features = features.orthonormal(problem.domain if basis == "orthonormal in L²" else problem, size=SIZE)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    points = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    roots = np.sqrt(np.outer(weights, weights).reshape(-1, 1))
    U = features.jets(points, [(0, 0)])[0] * roots
    counts = np.arange(1, FUNCTIONS + 1) * np.pi / 2
    x, y = (np.sin((points[:, [i]] + 1) * counts) for i in (0, 1))
    waves = (x[:, :, None] * y[:, None, :]).reshape(len(points), -1) * roots
    with quiet():
        stats = pf.factor(problem, features, key=seed).stats
    metrics = {
        "features": float(features.size),
        "effective rank": float(pf.metrics.effective_rank(U.T @ U)),
        "largest entry of the Gram matrix minus identity": float(np.abs(U.T @ U - np.eye(U.shape[1])).max()),
        "projection error": float(pf.metrics.mean_projection_error(U, waves)),
        "rank of least squares": float(stats.rank),
        "condition of least squares": stats.condition,
    }
    for domain in DOMAINS:
        moved = features
        if domain != "square" and basis != "as trained":
            other = pf.zoo.get(DOMAINS[domain])  # orthonormal again there, by one QR
            moved = features.orthonormal(other.domain if basis == "orthonormal in L²" else other, size=features.size)
        found = errors(moved, domain, "released", seed)
        metrics[f"geometric mean, {domain}, released"] = float(np.exp(np.mean(np.log(found))))
        metrics[f"largest, {domain}, released"] = float(found.max())
    return Measured(metrics, {})
