"""The five methods that every table compares, with the settings of the paper and with ours."""

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import optax

import pdofm as pf
from pdofm.experiments.case import OURS, PAPER

METHODS = ("PD-OFM", "PD-FM", "RFM", "TransNet", "Chebyshev")
"""The methods in the order of the tables. The first two train their features, with and without orthogonality."""

ADAM = optax.chain(optax.add_decayed_weights(1e-4), optax.adam(1e-3))
"""The optimiser of the published experiments: Adam with weight decay in the gradient."""


@dataclass(frozen=True)
class Setup:
    """A problem and the settings that the paper uses for it.

    Attributes:
        problem: makes the problem.
        size: number of features.
        orthogonality: weight λ of the penalty in PD-OFM.
        steps: training steps.
        points, boundary_points: numbers of points, in training and in least squares.
        picard_steps: number of Picard steps of a nonlinear problem.
        training_problem: makes the problem that features are trained for, if it is another one.
    """

    problem: Callable[[], pf.Problem]
    size: int
    orthogonality: float
    steps: int
    points: int
    boundary_points: int
    picard_steps: int | None = None
    training_problem: Callable[[], pf.Problem] | None = None

    def solution(self, method: str, settings: str, seed: int) -> pf.Solution:
        """Solve the problem by a method, with the settings "paper" or "ours"."""
        problem, features = self.problem(), self.features(method, settings, seed)
        if settings == PAPER:
            steps = self.picard_steps
            return self.solve(problem, features, seed, None if steps is None else pf.Picard(max_steps=steps, memory=0))
        with quiet():
            if method == "Chebyshev":
                return pf.solve(problem, features, sampling="clustered", key=seed)
            return pf.solve(problem, pf.tune_scale(problem, features, key=seed), key=seed)

    def solve(
        self, problem: pf.Problem, features: pf.Features, seed: int, method: pf.Picard | pf.Newton | None = None
    ) -> pf.Solution:
        """Solve a problem with the numbers of points of the paper."""
        with quiet():
            return pf.solve(
                *(problem, features),
                method=method,
                points=self.points,
                boundary_points=self.boundary_points,
                key=seed,
            )

    def features(self, method: str, settings: str, seed: int) -> pf.Features:
        """The features of a method, trained if the method trains them."""
        if method in ("PD-OFM", "PD-FM"):
            return self.trained((self.training_problem or self.problem)(), method, settings, seed).features
        return _fixed_space(self.problem().domain, method, self.size, seed)

    def trained(
        self,
        problem: pf.Problem,
        method: str,
        settings: str,
        seed: int,
        depth: int = 2,
        initialisation: str = "xavier",
        **options: Any,
    ) -> pf.Trained:
        """The pretrained network of PD-OFM or PD-FM; depth and initialisation are for the settings of the paper."""
        if settings == OURS:
            return _pretrained(problem, method, self.size, seed, **options)
        network = pf.NetworkFeatures(
            problem.domain, self.size, depth, key=seed, activation="tanh3", initialisation=initialisation
        )
        training: dict[str, Any] = {
            "orthogonality": self.orthogonality if method == "PD-OFM" else 0.0,
            "steps": self.steps,
            "points": self.points,
            "boundary_points": self.boundary_points,
            "optimiser": ADAM,
            "resample": False,
        }
        return pretrain(problem, network, key=seed, **(training | options))


def features_for(problem: pf.Problem, method: str, size: int, seed: int) -> pf.Features:
    """The features of a method for any problem, with our settings; those of PD-OFM and PD-FM are trained."""
    known = {name.lower(): name for name in METHODS}
    if method.lower() not in known:
        raise pf.errors.unknown_name("method", method, known)
    name = known[method.lower()]
    if name in ("PD-OFM", "PD-FM"):
        features = _pretrained(problem, name, size, seed, progress=True).features
    else:
        features = _fixed_space(problem.domain, name, size, seed)
    return features if name == "Chebyshev" else pf.tune_scale(problem, features, key=seed)


def _fixed_space(domain: pf.Domain, method: str, size: int, seed: int) -> pf.Features:
    """The features of a method without training."""
    if method == "Chebyshev":
        return pf.Chebyshev(domain, size)
    if method == "TransNet":
        return pf.TransNet.tune(domain, size, key=seed)

    def divided(each: int) -> pf.Features:
        def inner(box: pf.Box, key: int) -> pf.Features:
            return pf.RandomFeatures(box, each, initialisation="uniform", key=key)

        return pf.PartitionOfUnity(inner, domain, 2, window="b", key=seed)

    # With one feature each, the size is the number of subdomains that meet the domain.
    return divided(max(size // divided(1).size, 1))


def _pretrained(problem: pf.Problem, method: str, size: int, seed: int, **options: Any) -> pf.Trained:
    """Default features with default training; for PD-FM without orthogonality."""
    weight: dict[str, Any] = {} if method == "PD-OFM" else {"orthogonality": 0.0}
    return pretrain(problem, pf.NetworkFeatures(problem.domain, size, key=seed), key=seed, **(weight | options))


def pretrain(problem: pf.Problem, network: pf.Features, *, progress: bool = False, **options: Any) -> pf.Trained:
    """Pretrain features. An interruption also ends the experiment, because half-trained features are not a result."""
    trained = pf.pretrain(problem, network, **({"progress": progress, "keep": "last"} | options))
    if trained.verdict.status is pf.Status.INTERRUPTED:
        raise KeyboardInterrupt
    return trained


@contextmanager
def quiet():
    """Suppress warnings about convergence: the tables show which methods do not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
        yield
