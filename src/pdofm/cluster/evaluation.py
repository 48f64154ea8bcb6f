"""Solutions at many points."""

from typing import Any

import numpy as np

from pdofm.numerics.executor import Share, executor_of

POINTS = 2**16
"""Points of one task."""


def evaluate(solution: Any, points: np.ndarray, cluster: Any) -> np.ndarray:
    """``solution(points)``, with the points divided among the workers of a cluster.

    `solution` is a `Solution`, `Solutions`, or any function of points (n, d) that can be sent; `cluster` a client of
    dask.distributed, or an `Executor`.
    """
    executor, count = executor_of(cluster), max(1, -(-len(points) // POINTS))
    sent = executor.send(solution, "The solution")
    parts = [
        executor.submit(_at, sent, points[Share(k, count).of(len(points))], name="pdofm-evaluate", place=k / count)
        for k in range(count)
    ]
    return np.concatenate([executor.result(part) for part in parts])


def _at(solution: Any, points: np.ndarray) -> np.ndarray:
    return solution(points)
