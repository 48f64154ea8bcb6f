"""The last resort of a search: networks and random features, at several scales, and trained networks."""

import math
import warnings
from collections.abc import Callable

from pdofm.adaptive.schedule import GROWTH, PAYS, first_size
from pdofm.adaptive.search import Search
from pdofm.errors import ConvergenceWarning
from pdofm.features import Features, NetworkFeatures, RandomFeatures
from pdofm.solving.solution import Solution
from pdofm.training.pretraining import pretrain

SCALE_STEP = 1.4
"""Ratio of consecutive scales that are tried: about √2."""

TRIAL_STEPS, TRAINING_STEPS = 60, 200
"""Steps of training that show whether it pays, and steps that are done if it does."""

TRAINED_GROWTH = 2
"""Ratio of the widths of the network that is trained in earnest and of the trial. Fixed, so that the answer does not
depend on the speed of the machine."""


def grow_networks(search: Search, why: str) -> None:
    """Grow networks or random features, whichever solves the problem better at one size; try the largest of them at
    other scales; then train networks."""
    domain = search.problem.domain
    families: dict[str, Callable[[int], Features]] = {
        "network": lambda size: NetworkFeatures(domain, size, key=search.seed),
        "random features": lambda size: RandomFeatures(domain, size, key=search.seed),
    }
    size, estimates = min(round(GROWTH * first_size(domain.dim)), search.max_features), {}
    for name, make in families.items():
        found = None if search.over else search.attempt(name, f"{why}: a first look", make(size))
        estimates[name] = math.inf if found is None else found.error_estimate
    name = min(estimates, key=lambda name: estimates[name])
    found = search.grow(name, "the better one at a first look", families[name], above=size)
    if not search.over and found is not None:
        _vary_scale(search, name, found)
    if not search.over:
        _train(search, families["network"], size, estimates["network"])


def _vary_scale(search: Search, name: str, first: Solution) -> None:
    """Try the same features with larger or smaller frequencies, as long as that lowers the estimate."""
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
    """Train a small network for some steps; if that divides its estimate by `PAYS`, train a wider one for longer."""
    why = f"does training pay? The estimate was {untrained:.1e}"
    found = _attempt_trained(search, make(size), TRIAL_STEPS, why)
    wide = min(TRAINED_GROWTH * size, search.max_features)
    if found is not None and found.error_estimate < untrained / PAYS and wide > size and not search.over:
        _attempt_trained(search, make(wide), TRAINING_STEPS, "training has paid for a smaller one")


def _attempt_trained(search: Search, features: Features, steps: int, why: str) -> Solution | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # training that broke down returns its last good features
        trained = pretrain(search.problem, features, steps=steps, key=search.seed, progress=False, keep="last")
    return search.attempt(f"network, {steps} steps trained", why, trained.features)
