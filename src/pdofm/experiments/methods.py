"""The five methods that every table compares, with the paper's settings and with ours."""

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import optax

import pdofm as pf
from pdofm.experiments.case import OURS, PAPER

METHODS = ("PD-OFM", "PD-FM", "RFM", "TransNet", "Chebyshev")

ADAM = optax.chain(optax.add_decayed_weights(1e-4), optax.adam(1e-3))
"""The optimiser of the published experiments: Adam with weight decay in the gradient."""


@dataclass(frozen=True)
class Setup:
    """A problem and the paper's settings for it."""

    problem: Callable[[], pf.Problem]
    size: int
    orthogonality: float
    steps: int
    points: int
    boundary_points: int
    subdomains: int  # those of the 2 x … x 2 that meet the domain
    picard_steps: int | None = None
    tolerance: float = 1e-3

    def solution(self, method: str, settings: str, seed: int) -> pf.Solution:
        """Solve the problem by a method with the settings of a name."""
        problem = self.problem()
        with quiet():
            features = self.features(problem, method, settings, seed)
            if settings == PAPER:
                steps = self.picard_steps
                how = None if steps is None else pf.Picard(max_steps=steps, memory=0)
                counts: dict[str, Any] = {"points": self.points, "boundary_points": self.boundary_points}
                return pf.solve(problem, features, method=how, key=seed, **counts)
            if method == "Chebyshev":
                return pf.solve(problem, features, sampling="clustered", key=seed)
            return pf.solve(problem, pf.tune_scale(problem, features, key=seed), key=seed)

    def features(self, problem: pf.Problem, method: str, settings: str, seed: int) -> pf.Features:
        """The space of a method, trained if it is one that trains."""
        if method in ("PD-OFM", "PD-FM"):
            return self.trained(problem, method, settings, seed).features
        return _fixed_space(problem.domain, method, self.size, self.subdomains, seed)

    def trained(
        self, problem: pf.Problem, method: str, settings: str, seed: int, depth: int = 2, **options: Any
    ) -> pf.Trained:
        """The pretrained network of PD-OFM or PD-FM."""
        if settings == OURS:
            return _pretrained(problem, method, self.size, seed, progress=False, **options)
        network = pf.NetworkFeatures(
            problem.domain, self.size, depth, key=seed, activation="tanh3", initialisation="xavier"
        )
        settings_: dict[str, Any] = {
            "orthogonality": self.orthogonality if method == "PD-OFM" else 0.0,
            "steps": self.steps,
            "tolerance": self.tolerance,
            "points": self.points,
            "boundary_points": self.boundary_points,
            "optimiser": ADAM,
            "resample": False,
        }
        return pf.pretrain(problem, network, key=seed, progress=False, **(settings_ | options))


def features_for(problem: pf.Problem, method: str, size: int, seed: int) -> pf.Features:
    """The features of a method for any problem, with our settings; those of PD-OFM and PD-FM are trained first."""
    known = {name.lower(): name for name in METHODS}
    if method.lower() not in known:
        raise pf.errors.unknown_name("method", method, known)
    name = known[method.lower()]
    if name == "Chebyshev":
        return _fixed_space(problem.domain, name, size, 1, seed)
    if name in ("PD-OFM", "PD-FM"):
        features = _pretrained(problem, name, size, seed).features
    else:
        features = _fixed_space(problem.domain, name, size, 2**problem.domain.dim, seed)
    return pf.tune_scale(problem, features, key=seed)


def _fixed_space(domain: pf.Domain, method: str, size: int, subdomains: int, seed: int) -> pf.Features:
    """The space of a method that does not train."""
    if method == "Chebyshev":
        return pf.Chebyshev(domain, size)
    if method == "TransNet":
        return pf.TransNet.tune(domain, size, key=seed)

    def inner(box: pf.Box, key: int) -> pf.Features:
        return pf.RandomFeatures(box, size // subdomains, initialisation="uniform", key=key)

    return pf.PartitionOfUnity(inner, domain, 2, window="b", key=seed)


def _pretrained(problem: pf.Problem, method: str, size: int, seed: int, **options: Any) -> pf.Trained:
    """Default features, trained by default with orthogonality, or without."""
    weight: dict[str, Any] = {} if method == "PD-OFM" else {"orthogonality": 0.0}
    return pf.pretrain(problem, pf.NetworkFeatures(problem.domain, size, key=seed), key=seed, **(weight | options))


@contextmanager
def quiet():
    """Without warnings: a method that does not converge shows it in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
        yield
