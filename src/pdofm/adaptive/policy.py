"""Which spaces are tried for a tolerance, and in which order: everything that is decided about a space is decided
here."""

import math
import time
import warnings
from collections.abc import Callable

import numpy as np

from pdofm.adaptive.layer import find_layer
from pdofm.adaptive.refine import DEGREES, Refinement
from pdofm.adaptive.search import GROWTH, PAYS, Search
from pdofm.domain import corners
from pdofm.errors import ConvergenceWarning
from pdofm.features import Chebyshev, Concatenate, CornerFunctions, Features, Fourier, NetworkFeatures, RandomFeatures
from pdofm.problem.conditions import Periodic
from pdofm.problem.problem import Problem
from pdofm.solving.solution import Solution
from pdofm.training.pretraining import pretrain

CONCENTRATED = 0.25
"""A residual is local if nine tenths of its square lie in this part of the domain."""

SCALE_STEP = 1.4
"""Ratio of the scales of random features and networks that are tried."""

TRIAL, TRAINING = 60, 200
"""Steps of training that show whether it pays, and that are done if it does."""


def default_policy(search: Search) -> None:
    """Features at hand, then polynomials: where the solution is smooth nothing is cheaper. Where they converge slowly,
    what is known to spoil them: re-entrant corners, a layer, details that take more polynomials, anything else that is
    local. At last networks and random features, which depend on the shape of the solution least, and networks that are
    trained, if that pays.
    """
    problem = search.problem
    domain = problem.domain

    def polynomials(size: int) -> Features:
        return Chebyshev(domain, size)

    for features in search.candidates:
        if not search.over and features.size <= search.max_features:
            search.attempt("features at hand", "they were given", features)
    if not search.over and _is_periodic(problem):
        search.grow("Fourier", "all sides are periodic", lambda m: Fourier(domain, m, kind="tensor"))
    if not search.over:
        search.grow("polynomials", "best where the solution is smooth", polynomials, "clustered")
    if not search.over and _has_reentrant_corners(problem):
        singular = CornerFunctions(domain, convex=True)  # too many for a small budget, which grow() leaves out
        search.grow(
            "polynomials and corner functions",
            "polynomials converge slowly, and the domain has a re-entrant corner",
            lambda m: Concatenate(Chebyshev(domain, max(m - singular.size, m // 2)), singular),
            "clustered",
        )
    if not search.over and (layer := find_layer(search)) is not None:
        search.grow(
            "polynomials stretched across a layer",
            f"a layer of width {layer.width:.1g} fits the residual at n·x = {layer.center:.3g}, n = "
            f"{np.round(layer.direction, 3).tolist()}",
            layer.polynomials,
        )
    if not search.over and not search.resolved:
        largest = max((attempt.features for attempt in search.attempts if attempt.space == "polynomials"), default=0)
        why = "nothing is resolved yet, so that fewer say nothing about more"
        search.grow("polynomials", why, polynomials, "clustered", until_resolved=True, above=largest)
    if not search.over and _is_local(search):
        search.grow(
            "partition of unity",
            "what is missed is local: boxes are split where the residual is large",
            Refinement(search).features,
            until_resolved=True,
        )
    if not search.over:
        _grow_networks(search)


def _grow_networks(search: Search) -> None:
    """Networks or random features, whichever solves the problem better at one size; the largest of them with other
    scales; then networks that are trained."""
    domain = search.problem.domain
    families: dict[str, Callable[[int], Features]] = {
        "network": lambda m: NetworkFeatures(domain, m, key=search.seed),
        "random features": lambda m: RandomFeatures(domain, m, key=search.seed),
    }
    size, estimates = min(round(GROWTH * search.first_size), search.max_features), {}
    for name, make in families.items():
        found = None if search.over else search.attempt(name, "nothing else has converged: a first look", make(size))
        estimates[name] = math.inf if found is None else found.error_estimate
    name = min(estimates, key=lambda name: estimates[name])
    found = search.grow(name, "the better one at a first look", families[name], above=size)
    if not search.over and found is not None:
        _vary_scale(search, name, found)
    if not search.over:
        _train(search, families["network"], size, estimates["network"])


def _vary_scale(search: Search, name: str, first: Solution) -> None:
    """The same features with larger or smaller frequencies, as long as that lowers the estimate."""
    for step in (SCALE_STEP, 1 / SCALE_STEP):
        before, factor = first.error_estimate, step
        while not search.over:
            found = search.attempt(name, f"the same at a scale of {factor:.2g}", first.features.rescaled(factor))
            if found is None or not found.error_estimate < before:
                break
            before, factor = found.error_estimate, factor * step
        if before < first.error_estimate:
            return


def _train(search: Search, make: Callable[[int], Features], size: int, untrained: float) -> None:
    """Train a small network for some steps. If that divides its estimate by `PAYS`, train one as wide as there is time
    for."""
    start = time.perf_counter()
    found = _attempt_trained(search, make(size), TRIAL, f"does training pay? The estimate was {untrained:.1e}")
    seconds = time.perf_counter() - start
    # The time of a step grows with the square of the width; half of the time left is for solving.
    affordable = int(size * (max(search.time_left, 0.0) / 2 / (seconds * TRAINING / TRIAL)) ** 0.5)
    if found is not None and found.error_estimate < untrained / PAYS and affordable > size and not search.over:
        wide = make(min(affordable, search.max_features))
        _attempt_trained(search, wide, TRAINING, "training has paid for a smaller one")


def _attempt_trained(search: Search, features: Features, steps: int, why: str) -> Solution | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the features before are as good as any
        trained = pretrain(search.problem, features, steps=steps, key=search.seed, progress=False)
    return search.attempt(f"network, {steps} steps trained", why, trained.features)


def _is_local(search: Search) -> bool:
    """Whether a partition of unity can be refined where the best solution violates the equation. In one dimension it
    always can, since there the residual of what is not resolved spreads."""
    dim = search.problem.domain.dim
    if dim == 1 or dim not in DEGREES or search.best is None:
        return dim == 1
    squares = np.sort(np.sum(search.residual(search.best) ** 2, axis=1))[::-1]
    most = np.searchsorted(np.cumsum(squares), 0.9 * squares.sum())
    return bool(most < CONCENTRATED * len(squares))


def _is_periodic(problem: Problem) -> bool:
    axes = {condition.axis for condition in problem.stated if isinstance(condition, Periodic)}
    return not problem.layout.has_time and axes == set(range(problem.domain.dim))


def _has_reentrant_corners(problem: Problem) -> bool:
    plane = problem.domain.dim == 2 and not problem.layout.has_time
    return plane and any(corner.angle > math.pi + 1e-9 for corner in corners(problem.domain))
