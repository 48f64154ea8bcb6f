"""Run cases, keep what is finished, and collect results."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pdofm.experiments.case import Case

Show = Callable[[str, int, int, float], None]


def run(cases: Iterable[Case], seeds: int, out: Path, show: Show = lambda *_: None) -> list[dict[str, Any]]:
    """Run every case with seeds 0, 1, …; a case and seed whose file exists is not run again.

    Returns the rows of results.json, which is written to `out` along the way, and calls ``show(what, done, total,
    seconds_left)`` before each run.
    """
    cases = list(cases)
    # Seed by seed, so that a run that is stopped has whole tables.
    jobs = [(case, seed) for seed in range(seeds) for case in cases if seed < (case.seeds or seeds)]
    folder = out / "cases"
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not _file(folder, *job).exists()]
    spent, done = 0.0, len(jobs) - len(waiting)
    for i, (case, seed) in enumerate(waiting):
        left = spent / i * (len(waiting) - i) if i else float("nan")
        show(f"{case.experiment}, {case.case}, {case.method}, {case.settings}, seed {seed}", done + i, len(jobs), left)
        start = time.perf_counter()
        measured = case.run(seed)
        seconds = time.perf_counter() - start
        spent += seconds
        content = {"metrics": measured.metrics, "curves": measured.curves, "seconds": seconds}
        _write(_file(folder, case, seed), json.dumps(content))
    rows = [row for case in cases for row in _rows(case, folder, seeds)]
    _write(out / "results.json", json.dumps(rows, indent=1))
    return rows


def curves(case: Case, out: Path, seeds: int) -> list[dict[str, Any]]:
    """The curves that were measured for a case, one entry per seed that was run."""
    paths = [_file(out / "cases", case, seed) for seed in range(seeds)]
    return [json.loads(path.read_text())["curves"] for path in paths if path.exists()]


def _file(folder: Path, case: Case, seed: int) -> Path:
    return folder / f"{case.slug}--{seed}.json"


def _write(path: Path, text: str) -> None:
    """Write at once: a killed run leaves the old file, or none."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text)
    partial.replace(path)


def _rows(case: Case, folder: Path, seeds: int) -> Sequence[dict[str, Any]]:
    paths = [_file(folder, case, seed) for seed in range(min(seeds, case.seeds or seeds))]
    found = [json.loads(path.read_text()) for path in paths]
    rows = []
    for metric in found[0]["metrics"]:
        values = [entry["metrics"][metric] for entry in found]
        rows.append(
            {
                "experiment": case.experiment,
                "case": case.case,
                "method": case.method,
                "settings": case.settings,
                "metric": metric,
                "published": case.published.get(metric),
                "measured": median(values),
                "low": min(values),
                "high": max(values),
                "seeds": len(values),
                "seconds": median(entry["seconds"] for entry in found),
            }
        )
    return rows
