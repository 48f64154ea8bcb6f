"""Run one contender on one problem, in this process.

``python -m pdofm.bench.contest NAME PROBLEM`` prints each level as soon as it is measured. ``python -m
pdofm.bench.contest NAME sources COUNT`` prints the seconds for each of COUNT further sources, and the error. The output
consists of lines of JSON; the last line is the number of the lines before it.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

from pdofm.bench.contenders import SEED, Evaluate, Level, Sources, swelling
from pdofm.bench.contenders.local import stated
from pdofm.bench.process import results


def main(name: str, problem: str, count: str = "0") -> None:
    """Measure, and print each result as a line."""
    report, reported = results(), 0
    module = import_module(f"pdofm.bench.contenders.{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cheap levels are not expected to converge
        for found in _found(module, problem, int(count)):
            report(found)
            reported += 1
    report(reported)


def _found(module: ModuleType, problem: str, count: int) -> Iterator[dict[str, Any]]:
    """The results, measured one after the other."""
    if problem == "sources":
        yield _sources(module.sources(), count)
        return
    for level in module.levels(problem):
        yield _measured(level, problem)


LEAST_SECONDS = 0.5
"""Least total time of repeated runs in seconds: the times of single short runs vary too much."""


def _hot(solve: Callable[[], Evaluate], repeats: int) -> tuple[float, Evaluate]:
    """The median time of all runs but the first, and the last solution; with one repeat, those of the first run."""
    start = time.perf_counter()
    found, taken, begun = solve(), [], time.perf_counter()
    if repeats == 1:
        return begun - start, found
    while len(taken) < repeats or time.perf_counter() - begun < LEAST_SECONDS:
        start = time.perf_counter()
        found = solve()
        taken.append(time.perf_counter() - start)
    return median(taken), found


def _measured(level: Level, problem: str) -> dict[str, str | float]:
    """The time and the error of a level."""
    seconds, found = _hot(level.solve, level.repeats)
    return {"level": level.name, "seconds": seconds, "error": _error(found, problem)}


def _sources(solve: Sources, count: int) -> dict[str, float]:
    """The time for each source, including its evaluation, and the median of the relative L2 errors."""
    rng = np.random.default_rng(SEED)
    frequencies, points = rng.uniform(-np.pi, np.pi, (count, 2)), rng.uniform(-1, 1, (1000, 2))
    seconds, _ = _hot(lambda: solve(frequencies), 9)
    errors = []
    for i in range(21):
        turned = np.roll(frequencies, i, axis=0)
        exact = swelling(points, turned[-1:])[:, 0]
        errors.append(np.linalg.norm(solve(turned)(points) - exact) / np.linalg.norm(exact))
    return {"seconds": seconds / count, "error": median(errors)}


def _error(found: Evaluate, name: str) -> float:
    """The relative L2 error of the worst component, at points that the contenders do not know."""
    problem = stated(name)
    points = problem.domain.sample(10000, "random", key=SEED)
    exact = problem.exact_values(points)
    values = np.asarray(found(points)).reshape(exact.shape)
    return float(np.max(np.linalg.norm(values - exact, axis=0) / np.linalg.norm(exact, axis=0)))


if __name__ == "__main__":
    main(*sys.argv[1:])
