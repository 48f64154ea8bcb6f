"""Run cases, store each result as soon as it is measured, and collect the results."""

import json
import math
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import jax

import pdofm as pf
from pdofm.errors import PdofmError
from pdofm.experiments.case import Case

VERSION = pf.__version__
"""Results of another version are measured again."""

Show = Callable[[str, int, int, float], None]
"""Called as ``show(what, done, total, seconds_left)``."""


class Job(NamedTuple):
    """A case that is run with a seed."""

    case: Case
    seed: int

    def __str__(self) -> str:
        case = self.case
        return f"{case.experiment}, {case.case}, {case.method}, {case.settings}, seed {self.seed}"


class Failure(NamedTuple):
    """A job that ended with an error."""

    job: Job
    message: str


def run(
    cases: Iterable[Case],
    seeds: int,
    out: Path,
    show: Show = lambda *_: None,
    *,
    workers: int = 1,
    prepare: Callable[[], None] | None = None,
) -> list[Failure]:
    """Run every case with the seeds 0, 1, …, except those that this version has already stored in `out` with the same
    settings.

    Args:
        cases: the cases to run.
        seeds: the number of seeds; a case may limit it.
        out: the folder of the results. Each finished case and seed is a file in its subfolder "cases".
        show: called as ``show(what, done, total, seconds_left)`` before the first job and after each job.
        workers: the number of processes, each with one thread; 1 means this process.
        prepare: called in every process before its first job.

    Returns the jobs that ended with an error; they are run again next time.
    """
    # Seed by seed, so that a run that is interrupted leaves complete tables.
    cases = list(cases)
    jobs = [Job(case, seed) for seed in range(seeds) for case in cases if seed < (case.seeds or seeds)]
    (out / "cases").mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if _read(out, *job) is None]
    failures, start = [], time.perf_counter()
    finish = _in_turn if workers == 1 else _side_by_side
    show("starting", len(jobs) - len(waiting), len(jobs), math.nan)
    for i, (job, message) in enumerate(finish(waiting, out, prepare, workers), 1):
        if message is not None:
            failures.append(Failure(job, message))
        left = (time.perf_counter() - start) / i * (len(waiting) - i)
        show(str(job) if message is None else f"{job}: {message}", len(jobs) - len(waiting) + i, len(jobs), left)
    return failures


def collect(cases: Iterable[Case], out: Path) -> list[dict[str, Any]]:
    """Write results.json, with medians and ranges of all finished cases, and return its rows."""
    rows = [row for case in cases for row in _rows(case, out)]
    _write(out / "results.json", json.dumps(rows, indent=1))
    return rows


def curves(case: Case, out: Path) -> list[dict[str, Any]]:
    """The curves of a case, one entry for each finished seed, the lowest seed first."""
    return [entry["curves"] for entry in _finished(case, out).values()]


def _in_turn(
    jobs: Sequence[Job], out: Path, prepare: Callable[[], None] | None, workers: int = 1
) -> Iterator[tuple[Job, str | None]]:
    if prepare is not None:
        prepare()
    for job in jobs:
        yield job, _measure(job, out)


def _side_by_side(
    jobs: Sequence[Job], out: Path, prepare: Callable[[], None] | None, workers: int
) -> Iterator[tuple[Job, str | None]]:
    fresh = multiprocessing.get_context("spawn")  # the threads of JAX do not survive a fork
    with _one_thread(), ProcessPoolExecutor(workers, fresh, start_worker, (prepare,)) as pool:
        waiting: dict[Future, Job] = {pool.submit(_measure, job, out): job for job in jobs}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def start_worker(prepare: Callable[[], None] | None) -> None:
    """Prepare a process of the pool, and make it end when its parent process ends, even if that is killed; the pool
    itself does not ensure this."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
    if prepare is not None:
        prepare()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that are started in this context use one thread each; more would wait for each other."""
    settings = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    settings["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _measure(job: Job, out: Path) -> str | None:
    """Run a job and store its result; returns a message if it ends with an error."""
    start = time.perf_counter()
    try:
        measured = job.case.run(job.seed)
    except Exception as error:  # noqa: BLE001 (a case that fails must not end a run of several hours)
        return str(error) if isinstance(error, PdofmError) else f"{type(error).__name__}: {error}"
    content: dict[str, Any] = {"version": VERSION, "settings": job.case.fingerprint}
    content |= {"metrics": _finite(measured.metrics), "curves": measured.curves}
    content["seconds"] = time.perf_counter() - start
    _write(_file(out, *job), json.dumps(content))
    jax.clear_caches()  # with the compiled code of hundreds of cases, a process runs out of memory maps
    return None


def _finite(metrics: dict[str, float]) -> dict[str, float | None]:
    """The metrics with None in place of infinite values and NaN, which JSON does not have."""
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def _file(out: Path, case: Case, seed: int) -> Path:
    return out / "cases" / f"{case.slug}--{seed}.json"


def _read(out: Path, case: Case, seed: int) -> dict[str, Any] | None:
    """The stored result of a case; None if there is none of this version with these settings."""
    path = _file(out, case, seed)
    content = json.loads(path.read_text()) if path.exists() else {}
    is_this = (content.get("version"), content.get("settings")) == (VERSION, case.fingerprint)
    return content if is_this else None


def _finished(case: Case, out: Path) -> dict[int, dict[str, Any]]:
    """The stored results of a case, by seed."""
    seeds = sorted(int(path.stem.rsplit("--")[-1]) for path in (out / "cases").glob(f"{case.slug}--*.json"))
    found = {seed: _read(out, case, seed) for seed in seeds}
    return {seed: entry for seed, entry in found.items() if entry is not None}


def _write(path: Path, text: str) -> None:
    """Write a file atomically: a run that is killed leaves the old file, or none."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text)
    partial.replace(path)


def _rows(case: Case, out: Path) -> list[dict[str, Any]]:
    """A row for each metric of a case, with the median and the range over the seeds."""
    found = list(_finished(case, out).values())
    rows = []
    for metric in dict.fromkeys(name for entry in found for name in entry["metrics"]):
        measured = [entry["metrics"][metric] for entry in found if metric in entry["metrics"]]
        values = [math.inf if value is None else value for value in measured]  # a diverged value is the largest
        rows.append(
            {
                "experiment": case.experiment,
                "case": case.case,
                "method": case.method,
                "settings": case.settings,
                "metric": metric,
                "published": case.published.get(metric),
                **_finite({"measured": median(values), "low": min(values), "high": max(values)}),
                "seeds": len(values),
                "seconds": median(entry["seconds"] for entry in found),
            }
        )
    return rows
