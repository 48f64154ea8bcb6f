"""Speed, as ratios that are measured in one run, never as seconds alone."""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pdofm as pf
from pdofm.assemble import assemble, collocate
from pdofm.errors import unknown_name

REPEATS = 15


@dataclass(frozen=True)
class Row:
    """One measurement: `seconds` of the task, `reference` seconds of what it is compared with, both medians."""

    bench: str
    case: str
    against: str
    seconds: float
    reference: float

    @property
    def ratio(self) -> float:
        """How many times the reference the task takes."""
        return self.seconds / self.reference


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


def _products(rows: int, width: int) -> Callable[[], Any]:
    """One float64 product (rows, width) x (width, width)."""
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.standard_normal((n, width))) for n in (rows, width))
    product = jax.jit(lambda a, b: a @ b)
    return lambda: product(a, b)


def bench_assembly() -> list[Row]:
    """The least-squares matrix of the Laplacian, 1024 points x 500 features of a residual network of depth 2.

    The least arithmetic: the first hidden layer sees the values only (n rows; the first derivatives of its input are
    the same at all points), the second one values, two first derivatives and the Laplacian (4 n rows).
    """
    square = pf.Box([-1, -1], [1, 1])
    problem = pf.Problem(square, lambda u, x: -pf.laplacian(u)(x), source=1.0, conditions=[pf.Dirichlet(0.0)])
    features = pf.NetworkFeatures(square, width=500, depth=2)
    blocks = collocate(problem, 1024, 16)[:1]
    zero = np.zeros((500, 1))
    task, reference = median_seconds(
        lambda: assemble(problem.layout, features, blocks, zero).A, _products(5 * 1024, 500)
    )
    return [Row("assembly", "Laplacian, 1024 x 500, depth 2", "bare float64 GEMMs", task, reference)]


BENCHES: dict[str, Callable[[], list[Row]]] = {"assembly": bench_assembly}


def run(names: list[str]) -> list[Row]:
    """The rows of the named benchmarks, all of them for ``["all"]`` or an empty list."""
    chosen = list(BENCHES) if not names or names == ["all"] else names
    for name in chosen:
        if name not in BENCHES:
            raise unknown_name("benchmark", name, BENCHES)
    return [row for name in chosen for row in BENCHES[name]()]


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    packages = ("pdofm", "jax", "numpy", "scipy")
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        **{name: version(name) for name in packages},
    }


def as_json(rows: list[Row]) -> dict[str, Any]:
    """The rows and the machine, ready for json.dumps."""
    return {"machine": machine(), "rows": [asdict(row) | {"ratio": row.ratio} for row in rows]}
