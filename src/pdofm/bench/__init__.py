"""Benchmarks. Every time is compared with a reference that is measured in the same run."""

import contextlib
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from pdofm.bench.accuracy import Run, compare, extra_sources, installed, race
from pdofm.bench.cluster import bench_cluster
from pdofm.bench.contenders import SEED
from pdofm.bench.eigenvalues import bench_eigenvalues
from pdofm.bench.figure import plot
from pdofm.bench.growth import bench_growth
from pdofm.bench.phases import bench_assembly, bench_lstsq, bench_partition, bench_training, bench_transfer
from pdofm.bench.start import bench_start
from pdofm.bench.timing import Row
from pdofm.errors import unknown_name

__all__ = ["BENCHES", "NAMES", "Report", "Row", "Run", "machine", "plot", "run"]

BENCHES: dict[str, Callable[[], list[Row]]] = {
    "assembly": bench_assembly,
    "training": bench_training,
    "lstsq": bench_lstsq,
    "partition": bench_partition,
    "transfer": bench_transfer,
    "start": bench_start,
    "growth": bench_growth,
    "eigenvalues": bench_eigenvalues,
    "cluster": bench_cluster,
}
"""The benchmarks that return rows of the table, by name."""

NAMES = (*BENCHES, "accuracy")
"""All benchmarks; "accuracy" also returns the runs of every package."""


@dataclass
class Report:
    """The rows of the table, and all runs from which those of "accuracy" were derived."""

    rows: list[Row] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The report and a description of the machine, in a form that json.dumps accepts."""
        return {
            "machine": machine(),
            "rows": [asdict(row) | {"ratio": row.ratio} for row in self.rows],
            "runs": [asdict(run) for run in self.runs],
        }


def run(names: list[str], show: Callable[[str], None] = lambda _: None) -> Report:
    """Run the named benchmarks, or all for ``["all"]`` or an empty list; `show` is called before each with its name."""
    chosen = list(NAMES) if not names or names == ["all"] else names
    for name in chosen:
        if name not in NAMES:
            raise unknown_name("benchmark", name, NAMES)
    report = Report()
    for name in chosen:
        show(name)
        if name == "accuracy":
            report.runs, failures = race(show=show)
            report.rows += compare(report.runs) + failures + extra_sources(show=show)
        else:
            report.rows += BENCHES[name]()
    return report


def machine() -> dict[str, Any]:
    """The machine, the versions of the packages and the seeds with which the numbers were measured."""
    packages = {name: version(name) for name in ("pdofm", "jax", "numpy", "scipy")}
    for contender in installed().values():
        packages |= contender
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "seeds": f"0 (pyRFM: its own), and {SEED} for the points at which errors are measured",
        **packages,
    }


def _processor() -> str:
    """The model of the processor, or its architecture if the system does not tell the model."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()}, {platform.machine()}"
    return platform.processor() or platform.machine()
