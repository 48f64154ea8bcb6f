"""Solving with many rows on a cluster of processes: time, memory, traffic, and whether the bits are the same.

``python -m pdofm.bench.cluster --help`` runs parts of it with other sizes, and with workers that are killed at random
moments. ``--workers 0`` solves in this process, without a cluster; the values of all other solves are compared with
those of the first one.
"""

import argparse
import hashlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

import pdofm as pf
from pdofm.bench.growth import peak_memory
from pdofm.bench.process import ask, failed, results
from pdofm.bench.timing import Row

ROWS, FEATURES, WORKERS = 4_000_000, 800, (0, 1, 2, 4)
"""The largest case. No workers are one process without a cluster."""

LIMIT = 7200.0
"""Seconds for all solves together."""

LARGEST_DIFFERENCE = 1e-12
"""What the values may differ from those of one process, relative to the largest of them."""

LARGEST_PEAK = 1024.0
"""MiB that a worker should stay below."""

SQUARE = pf.Box([-1, -1], [1, 1])

PLACES = 1000
"""Points at which values are compared."""


def bench_cluster() -> list[Row]:
    """The time with 2 and 4 workers compared with that with one, the memory of a worker, and what it sends."""
    answer = ask("-m", "pdofm.bench.cluster", limit=LIMIT)
    if answer.failure or len(answer.lines) < 2:
        return [failed("cluster", f"{ROWS} rows x {FEATURES}", answer.failure or "failed, no output")]
    first, rows = answer.lines[1], []
    for found in answer.lines[1:]:
        what = f"{found['rows']} rows x {found['features']} in {found['shares']} shares, {found['workers']} workers"
        same = "same bits" if found["hash"] == first["hash"] else "OTHER BITS"
        rows += [
            Row("cluster", f"{what}: values", "one process", found["difference"], LARGEST_DIFFERENCE, ""),
            Row("cluster", f"{what}: time, {same}", "one worker", found["seconds"], first["seconds"], "s"),
            Row("cluster", f"{what}: peak memory of a worker", "1 GiB", found["peak"], LARGEST_PEAK, "MiB"),
            Row("cluster", f"{what}: sent by a worker", "2 triangles x log2(shares)", *sent(found), "MiB"),
        ]
    return rows


def sent(found: dict[str, Any]) -> tuple[float, float]:
    """MiB that the busiest worker sent, and two triangles times the depth of the tree."""
    most = 2 * 8 * (found["features"] + 1) ** 2 * np.log2(max(found["shares"], 2))
    return found["sent"] / 2**20, float(most) / 2**20


def poisson() -> pf.Problem:
    """-Δu = f on a square, u = sin(x + y) + cos(3 x - 2 y)."""

    def exact(x: Array) -> Array:
        return jnp.sin(x[0] + x[1]) + jnp.cos(3 * x[0] - 2 * x[1])

    return pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=exact)


def placed(rows: int) -> dict[str, Any]:
    """The options of `pf.solve` for so many rows."""
    return {"points": rows - rows // 64, "boundary_points": rows // 64}


def alone(rows: int, features: int) -> dict[str, Any]:
    """Solve in this process, after a small solve that compiles."""
    problem, space = poisson(), pf.Chebyshev(SQUARE, features)
    pf.solve(problem, space, points=4 * features)
    start = time.perf_counter()
    solution = pf.solve(problem, space, **placed(rows))
    took = time.perf_counter() - start
    return {"workers": 0, "shares": 0, "seconds": took, "killed": False, "peak": peak_memory(), "sent": 0} | seen(
        solution
    )


def seen(solution: pf.Solution) -> dict[str, Any]:
    """What of a solution is compared with other runs."""
    return {
        "rows": solution.stats.rows,
        "features": solution.stats.features,
        "hash": hashlib.sha256(solution.coefficients.tobytes()).hexdigest()[:16],
        "error": solution.errors().relative_l2,
        "estimate": solution.error_estimate,
        "values": solution(SQUARE.sample(PLACES)),
    }


def measured(workers: int, rows: int, features: int, repeats: int, kill: bool) -> Iterator[dict[str, Any]]:
    """Solve on a new cluster, `repeats` times after a small solve that compiles; with `kill` a random worker is killed
    at a random moment of each."""
    import dask
    from distributed import Client, LocalCluster

    problem, space, options = poisson(), pf.Chebyshev(SQUARE, features), placed(rows)
    seconds = 1.0
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10m"}),  # busy machines start workers slowly
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        # Results are coroutines in the eyes of a type checker; a worker that has just been killed does not answer.
        everywhere: Any = partial(client.run, on_error="ignore")
        pf.solve(problem, space, points=4 * features, cluster=pf.cluster.Dask(client, shares=2 * workers))
        for number in range(repeats):
            executor = pf.cluster.Dask(client)
            before = dict(everywhere(_sent))
            killer = threading.Timer(random.random() * seconds, _kill, [client]) if kill and number > 0 else None
            start = time.perf_counter()
            if killer is not None:
                killer.start()
            solution = pf.solve(problem, space, cluster=executor, **options)
            took = time.perf_counter() - start
            seconds = took if killer is None else seconds
            if killer is not None:
                killer.join()
            after = everywhere(_sent)
            yield {
                "workers": workers,
                "shares": pf.cluster.shares_for(rows, space.size),
                "seconds": took,
                "killed": killer is not None,
                "peak": max(everywhere(peak_memory).values()),
                "sent": max(after[each] - before.get(each, 0) for each in after),
            } | seen(solution)


def _sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def _kill(client: Any) -> None:
    """Kill the process of a random worker; its nanny starts another one."""
    running = client.run(os.getpid, on_error="ignore")
    os.kill(random.choice(list(running.values())), signal.SIGKILL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line of JSON for each solve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--workers", type=int, nargs="+", default=list(WORKERS))
    parser.add_argument("--repeats", type=int, default=1, help="solves on each cluster")
    parser.add_argument("--kill", action="store_true", help="kill a random worker in each solve but the first")
    given = parser.parse_args(arguments)
    report, reference = results(), None
    for workers in given.workers:
        found = measured(workers, given.rows, given.features, given.repeats, given.kill)
        for line in found if workers else [alone(given.rows, given.features)]:
            values = line.pop("values")
            reference = values if reference is None else reference
            report(line | {"difference": float(np.max(np.abs(values - reference)) / np.max(np.abs(reference)))})


if __name__ == "__main__":
    main()
