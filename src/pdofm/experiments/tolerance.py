"""Solve the problems of the zoo: every basic one to several tolerances, all others to one.

Measured are the space that is chosen, its cost, and the true error.
"""

import time
from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import quiet

TOLERANCES = (1e-4, 1e-8, 1e-10)
"""The relative errors that are required."""

LOCAL_TOLERANCE = 1e-8
"""The relative error that is required of local problems."""

WRONG = 3.0
"""How many times larger than the tolerance the true error of a converged solution may be before it counts as wrong."""

DETAILED = ("interior-layer", "two-layers", "slanted-layer", "poisson-corner")
"""Problems with small details. A figure shows where their features are concentrated."""


def cases() -> Iterator[Case]:
    """Every basic problem with every tolerance."""
    for name in pf.zoo.names("basic"):
        for tol in TOLERANCES:
            yield Case("tolerance", name, f"tol = {tol:g}", OURS, partial(_run, name, tol), seeds=5)


def local_cases() -> Iterator[Case]:
    """Every local problem, and every one of several materials, cold and hot."""
    for group, name in ((each, name) for each in ("local", "materials") for name in pf.zoo.names(each)):
        yield Case(group, name, f"tol = {LOCAL_TOLERANCE:g}", OURS, partial(_run_twice, name, LOCAL_TOLERANCE), seeds=5)


def _run_twice(name: str, tol: float, seed: int) -> Measured:
    """Solve a problem twice: the second time what the first has compiled is used again."""
    cold, again = _run(name, tol, seed), _run(name, tol, seed)
    seconds = {
        f"{state} seconds": run.metrics["seconds of the search"] for state, run in (("cold", cold), ("hot", again))
    }
    metrics = {key: value for key, value in again.metrics.items() if key != "seconds of the search"}
    return Measured(metrics | seconds, again.curves)


def _run(name: str, tol: float, seed: int) -> Measured:
    problem = pf.zoo.get(name)
    start = time.perf_counter()
    with quiet():
        solution = pf.solve(problem, tol=tol, key=seed)
    seconds = time.perf_counter() - start
    # Where no exact solution is known, no true error is reported.
    error = None if problem.exact is None else solution.errors().relative_l2
    known = {} if error is None else {"relative L2": error, "kept its word": _kept(solution, error, tol)}
    metrics = known | {
        "estimated error": solution.error_estimate,
        "converged": float(solution.converged),
        "features": float(solution.stats.features),
        "rows": float(solution.stats.rows),
        "attempts": float(len(solution.attempts)),
        "seconds of the search": seconds,
    }
    where = _points(solution) if seed == 0 and name in DETAILED else []
    curves = {
        "true": [] if error is None else [error],
        "estimated": [solution.error_estimate],
        "space": [solution.space],
        "points": where,
    }
    return Measured(metrics, curves)


def _kept(solution: pf.Solution, error: float, tol: float) -> float:
    """1 if the error is as required or the solution has not converged, else 0."""
    return float(error <= WRONG * tol or not solution.converged)


def _points(solution: pf.Solution) -> list:
    """Points that are dense where the features vary fast: their density is the mean wave number to the power d."""
    features = solution.features
    candidates = solution.problem.domain.sample(5000)

    @jax.jit
    def wave_numbers(points: Array) -> Array:
        def at(x: Array) -> Array:
            return jnp.sum(jax.jacfwd(features)(x) ** 2) / jnp.sum(features(x) ** 2)

        return jnp.sqrt(jax.vmap(at)(points))

    found = [np.asarray(wave_numbers(points)) for points in np.split(candidates, 20)]
    weights = np.concatenate(found) ** candidates.shape[1]
    kept = np.random.default_rng(0).choice(len(candidates), 600, replace=False, p=weights / weights.sum())
    return candidates[kept].round(4).tolist()
