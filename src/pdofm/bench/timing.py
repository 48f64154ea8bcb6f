"""Measurements: medians of tasks that take turns, and rows of a table."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

REPEATS = 15


@dataclass(frozen=True)
class Row:
    """One measurement: the `value` of the task and that of the `reference` it is compared with, in the same unit."""

    bench: str
    case: str
    against: str
    value: float
    reference: float
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """How many times the reference the task takes."""
        return self.value / self.reference


def median_seconds(*tasks: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """Median seconds of each task; the tasks take turns, so that a change of the machine's speed meets all of them."""
    for task in tasks:
        jax.block_until_ready(task())
    seconds = np.empty((repeats, len(tasks)))
    for turn in range(repeats):
        for i, task in enumerate(tasks):
            start = time.perf_counter()
            jax.block_until_ready(task())
            seconds[turn, i] = time.perf_counter() - start
    return np.median(seconds, axis=0).tolist()


def products(rows: int, width: int, dtype: Any = np.float64) -> Callable[[], Any]:
    """One product (rows, width) x (width, width)."""
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.standard_normal((n, width)), dtype) for n in (rows, width))
    product = jax.jit(lambda a, b: a @ b)
    return lambda: product(a, b)
