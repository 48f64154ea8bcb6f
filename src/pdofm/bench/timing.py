"""Median times of tasks, and rows of the table of results."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

REPEATS = 15
"""How often a task is timed."""


@dataclass(frozen=True)
class Row:
    """A measurement: the `value` of a task, and that of the `reference` that it is compared with, in the same unit."""

    bench: str
    case: str
    against: str
    value: float
    reference: float
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """The value of the task divided by that of the reference."""
        return self.value / self.reference


def median_seconds(*tasks: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """The median time of each task in seconds; tasks take turns, so that changes of the machine's speed affect all."""
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
    """A task that computes one product of matrices, (rows, width) x (width, width)."""
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.standard_normal((n, width)), dtype) for n in (rows, width))
    product = jax.jit(lambda a, b: a @ b)
    return lambda: product(a, b)
