"""The growth of time and memory with the numbers of points, features, dimensions and subdomains, and with the final
time."""

import math
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
from jax import Array

import pdofm as pf
from pdofm.bench.process import ask, failed, results
from pdofm.bench.timing import Row, median_seconds

_SQUARE = pf.Box([-1, -1], [1, 1])

MANY_ROWS, FEATURES = 1_000_000, 500
"""Points and features of the process whose peak memory is measured: its matrix takes 4 GB."""

BOX_UNKNOWNS = 81
"""Unknowns in each box of the square: polynomials of degree 8 along each axis."""

BOXES = (10, 20, 35, 50)
"""Boxes along each side of the square, 200 000 unknowns for the most. Nested dissection needs N^1.5 operations, of
which N is the part within boxes, and N log N memory."""


FINAL_TIMES = (10, 20, 40, 80)
"""Periods of a wave that is marched with its slabs on disk."""


def bench_growth() -> list[Row]:
    """Complete solves of increasing size, after a first one; the largest is compared with the smallest.

    Least squares with N rows and m features needs of the order of N m² operations, and so does the assembly of a
    network of width m. The exponent is fitted to all sizes.
    """
    points, features, dimensions, subdomains = (
        (4000, 8000, 16000, 32000),
        (100, 200, 400, 800),
        (1, 2, 3, 4),
        (4, 16, 64),
    )
    return [
        *_growth("points N", points, lambda n: _solve(pf.NetworkFeatures(_SQUARE, 200), points=n)),
        *_growth("features m, 4000 points", features, lambda m: _solve(pf.NetworkFeatures(_SQUARE, m), points=4000)),
        *_growth("polynomials m, 4000 points", features, lambda m: _solve(pf.Chebyshev(_SQUARE, m), points=4000)),
        *_growth("dimensions d, 300 features", dimensions, _in_dimensions),
        *_growth("subdomains, 512 features", subdomains, lambda s: _solve(_partition(s), points=4000)),
        *_growth("unknowns N in boxes", [BOX_UNKNOWNS * n**2 for n in BOXES], _in_boxes),
        *_growth("final time T of a march", FINAL_TIMES, _march_until),
        _peak_of_many_rows(),
    ]


def _growth(what: str, sizes: Sequence[int], make: Callable[[int], Callable[[], Any]]) -> list[Row]:
    """The time and the memory of the largest size, compared with the smallest."""
    tasks = [make(size) for size in sizes]
    seconds, memory = median_seconds(*tasks, repeats=3), [_traced(task) for task in tasks]
    rows = []
    for name, values, unit in (("time", seconds, "s"), ("memory", memory, "MiB")):
        case = f"{what}: {sizes[0]} to {sizes[-1]}, {name} grows with exponent {_exponent(sizes, values):.2f}"
        rows.append(Row("growth", case, f"the smallest, {sizes[0]}", values[-1], values[0], unit))
    return rows


def _exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The slope of the line that fits the logarithms."""
    x, y = ([math.log(value) for value in series] for series in (sizes, values))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def _traced(task: Callable[[], Any]) -> float:
    """Peak memory of NumPy arrays in MiB. Compiled code works on blocks of a fixed size and is not counted."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def _poisson(domain: pf.Domain) -> pf.Problem:
    def exact(x: Array) -> Array:
        return jnp.sin(jnp.sum(x))

    return pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=exact)


def _solve(features: pf.Features, points: int) -> Callable[[], Any]:
    problem = _poisson(_SQUARE)
    return lambda: pf.solve(problem, features, points=points, tol=math.inf).coefficients


def _in_dimensions(dim: int) -> Callable[[], Any]:
    box = pf.Box([0.0] * dim, [1.0] * dim)
    problem, features = _poisson(box), pf.NetworkFeatures(box, 300)
    return lambda: pf.solve(problem, features, points=2000, boundary_points=500, tol=math.inf).coefficients


def _partition(subdomains: int) -> pf.Features:
    each, side = 512 // subdomains, math.isqrt(subdomains)
    return pf.PartitionOfUnity(lambda box, key: pf.RandomFeatures(box, each, key=key), _SQUARE, (side, side))


def _in_boxes(unknowns: int) -> Callable[[], Any]:
    """A solve in equal boxes of the square, with so many unknowns altogether."""
    boxes, problem = math.isqrt(unknowns // BOX_UNKNOWNS), _poisson(_SQUARE)
    features = pf.BoxPolynomials.grid(_SQUARE, boxes, math.isqrt(BOX_UNKNOWNS) - 1)
    return lambda: pf.solve(problem, features, tol=math.inf).coefficients


def _march_until(periods: int) -> Callable[[], Any]:
    """A standing wave for so many periods; its slabs are kept on disk."""
    problem = pf.Problem(
        pf.SpaceTime(pf.Interval(0, 1), float(periods)),
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - 4 * pf.partial(u, 0, 0)(x, t),
        conditions=[pf.Dirichlet(0.0), pf.Initial()],
        exact=lambda x, t: jnp.sin(math.pi * x[0]) * jnp.cos(2 * math.pi * t),
    )

    def march() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return pf.march(problem, tol=1e-6, checkpoint=Path(folder) / "wave.march", progress=False).error_estimate

    return march


def _peak_of_many_rows() -> Row:
    """The peak memory of a process that solves with a million rows, compared with that of the matrix."""
    answer = ask("-m", "pdofm.bench.growth")
    if answer.failure or not answer.lines:
        return failed(
            "growth", f"peak memory of a process with {MANY_ROWS} points", answer.failure or "failed, no output"
        )
    found = answer.lines[-1]
    case = f"peak memory of a process, {found['rows']} rows x {FEATURES}, relative L2 error {found['error']:.0e}"
    matrix = 8 * found["rows"] * FEATURES / 2**20
    return Row("growth", case, "the matrix alone", found["peak"], matrix, "MiB")


def main() -> None:
    """Solve with a million rows and print the peak memory and the error."""
    report, problem = results(), _poisson(_SQUARE)
    solution = pf.solve(problem, pf.NetworkFeatures(_SQUARE, FEATURES), points=MANY_ROWS)
    report({"rows": solution.stats.rows, "peak": peak_memory(), "error": solution.errors().relative_l2})


def peak_memory() -> float:
    """The peak memory of this process in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage() would include the memory of the parent when it started this process
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    import resource  # not available on every system

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    main()
