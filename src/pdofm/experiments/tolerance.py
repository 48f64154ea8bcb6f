"""Ask for a tolerance on every problem of the zoo: what is chosen, what it costs, and how wrong it is."""

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import quiet

TOLERANCES = (1e-4, 1e-8, 1e-10)


def cases() -> Iterator[Case]:
    """Every problem with every tolerance."""
    for name in pf.zoo.names():
        for tol in TOLERANCES:
            yield Case("tolerance", name, f"tol = {tol:g}", OURS, partial(_run, name, tol), seeds=5)


def _run(name: str, tol: float, seed: int) -> Measured:
    problem = pf.zoo.get(name)
    start = time.perf_counter()
    with quiet():
        solution = pf.solve(problem, tol=tol, key=seed)
    seconds = time.perf_counter() - start
    error = solution.errors().relative_l2
    metrics = {
        "relative L2": error,
        "estimated error": solution.error_estimate,
        "converged": float(solution.converged),
        "kept its word": float(error <= 3 * tol or not solution.converged),
        "features": float(solution.stats.features),
        "rows": float(solution.stats.rows),
        "attempts": float(len(solution.attempts)),
        "seconds of the search": seconds,
    }
    where = _points(solution) if seed == 0 else []
    return Measured(metrics, {"true": [error], "estimated": [solution.error_estimate], "points": where})


def _points(solution: pf.Solution) -> list:
    """Points of the density that a layer has asked for; they are where its features are fine."""
    if not isinstance(solution.features, pf.StretchedPolynomials):
        return []
    candidates = solution.problem.domain.sample(20_000)
    weights = solution.features.density(candidates)
    kept = np.random.default_rng(0).choice(len(candidates), 600, replace=False, p=weights / weights.sum())
    return candidates[kept].round(4).tolist()
