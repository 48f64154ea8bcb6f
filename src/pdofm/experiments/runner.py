"""Run cases, store each result as soon as it is measured, and collect the results."""

import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import jax

import pdofm as pf
from pdofm.cluster import Pool, Serial
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
    pool: Pool | None = None,
) -> list[Failure]:
    """Run every case with the seeds 0, 1, …, except those that this version has already stored in `out` with the same
    settings.

    Args:
        cases: the cases to run.
        seeds: the number of seeds; a case may limit it.
        out: the folder of the results. Each finished case and seed is a file in its subfolder "cases".
        show: called as ``show(what, done, total, seconds_left)`` before the first job and after each job.
        pool: where the cases run; by default one after the other in this process.

    Returns the jobs that ended with an error; they are run again next time.
    """
    # Seed by seed, so that a run that is interrupted leaves complete tables.
    cases = list(cases)
    jobs = [Job(case, seed) for seed in range(seeds) for case in cases if seed < (case.seeds or seeds)]
    (out / "cases").mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if _read(out, *job) is None]
    failures, start = [], time.perf_counter()
    show("starting", len(jobs) - len(waiting), len(jobs), math.nan)
    finished = (Serial() if pool is None else pool).each(measure, waiting, name="pdofm-case")
    for i, (number, found) in enumerate(finished, 1):
        job, message = waiting[number], ""
        if isinstance(found, str):
            message = f": {found}"
            failures.append(Failure(job, found))
        else:  # written here: other machines may have other disks
            _write(_file(out, *job), json.dumps(found))
        left = (time.perf_counter() - start) / i * (len(waiting) - i)
        show(f"{job}{message}", len(jobs) - len(waiting) + i, len(jobs), left)
    return failures


def collect(cases: Iterable[Case], out: Path) -> list[dict[str, Any]]:
    """Write results.json, with medians and ranges of all finished cases, and return its rows."""
    rows = [row for case in cases for row in _rows(case, out)]
    _write(out / "results.json", json.dumps(rows, indent=1))
    return rows


def curves(case: Case, out: Path) -> list[dict[str, Any]]:
    """The curves of a case, one entry for each finished seed, the lowest seed first."""
    return [entry["curves"] for entry in _finished(case, out).values()]


def measure(job: Job) -> dict[str, Any] | str:
    """Run a job. Returns what is stored, or a message if it ends with an error."""
    start = time.perf_counter()
    try:
        measured = job.case.run(job.seed)
    except Exception as error:  # noqa: BLE001 (a case that fails must not end a run of several hours)
        return str(error) if isinstance(error, PdofmError) else f"{type(error).__name__}: {error}"
    content: dict[str, Any] = {"version": VERSION, "settings": job.case.fingerprint}
    content |= {"metrics": _finite(measured.metrics), "curves": measured.curves}
    content["seconds"] = time.perf_counter() - start
    jax.clear_caches()  # with the compiled code of hundreds of cases, a process runs out of memory maps
    return content


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
