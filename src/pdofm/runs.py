"""The commands that run many cases and can be resumed: ``pdofm reproduce`` and ``pdofm challenge``."""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pdofm as pf

if TYPE_CHECKING:
    from pdofm.experiments.case import Case

JsonOption = Annotated[bool, typer.Option("--json", help="Print a JSON object instead of a report.")]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on the workers of the dask scheduler at this address, such as tcp://host:8786, instead of processes "
        "of this machine.",
    ),
]
WorkersOption = Annotated[
    int, typer.Option(min=1, help="Number of cases that run at the same time, each in a process of one thread.")
]


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of experiments; all experiments of the paper if omitted.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, 0, 1, …, with which each case is run.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="Run a subset that takes less than three minutes.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for results, tables and figures. Cases that it already has are not run again.")
    ] = Path("results"),
    workers: WorkersOption = 2,
    cluster: ClusterOption = None,
) -> None:
    """Reproduce the tables and figures of the paper, with published next to measured values.

    The exit code is 1 if a case ended with an error.
    """
    from pdofm import experiments
    from pdofm.experiments import report, runner

    make_folder(out)

    def write() -> list[Path]:
        rows = runner.collect(experiments.every(), out)  # of earlier runs as well
        return report.write(rows, experiments.every(), out)

    pool = _pool(workers, cluster, use_compilation_cache)
    failed, written = _run(experiments.select(names or [], quick=quick), seeds, out, pool, write)
    for path in written:
        print(path)
    raise typer.Exit(1 if failed else 0)


def challenge(
    names: Annotated[list[str] | None, typer.Argument(help="Names of problems; all of them if omitted.")] = None,
    tol: Annotated[
        float | None, typer.Option(help="Relative error that is required; by default that of each row.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a subset that takes less than two minutes.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for results, tables and pictures. Rows that it already has are not run again.")
    ] = Path("challenge"),
    workers: WorkersOption = 1,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
) -> None:
    """Solve the problems that solvers in this field are compared with, beside the best published values.

    The exit code is 1 if a row ended with an error.
    """
    from pdofm import challenge as rows_of
    from pdofm.challenge import report

    make_folder(out)
    rows = rows_of.select(names or [], quick=quick)
    cases = rows_of.cases(rows, tol)
    # In other processes without a compilation cache, where the first solve has everything to compile.
    pool = pf.cluster.Processes(workers) if cluster is None else _pool(workers, cluster, None)
    failed, (found, written) = _run(cases, 1, out, pool, lambda: report.write(rows, cases, out))
    print(json.dumps(finite(report.as_json(found))) if as_json else report.markdown(found))
    for path in [] if as_json else written:
        print(path)
    raise typer.Exit(1 if failed else 0)


def _run(
    cases: "Sequence[Case]", seeds: int, out: Path, pool: pf.cluster.Pool, write: Callable[[], Any]
) -> tuple[bool, Any]:
    """Run cases with a progress bar, also if they are interrupted write what is there, and print the errors. Returns
    whether there are any, and what `write` returns."""
    from rich.progress import Progress

    from pdofm.experiments import runner

    shown = console()
    with Progress(console=shown, disable=not shown.is_terminal) as bar:
        task = bar.add_task("starting")

        def show(what: str, done: int, total: int, left: float) -> None:
            ending = "" if left != left else f", about {left / 60:.0f} min left"
            bar.update(task, completed=done, total=total, description=what + ending)
            if not shown.is_terminal:
                print(f"[{done}/{total}] {what}{ending}", file=sys.stderr, flush=True)

        try:
            failures = runner.run(cases, seeds, out, show, pool=pool)
        finally:
            written = write()
    for failure in failures:
        shown.print(f"failed: {failure.job}: {failure.message}", style="red", markup=False, highlight=False)
    return bool(failures), written


def _pool(workers: int, cluster: str | None, prepare: Callable[[], None] | None) -> pf.cluster.Pool:
    """Where cases run: on a cluster, in processes, or here."""
    if cluster is not None:
        return pf.cluster.Dask(pf.cluster.connect(cluster), progress=False, prepare=prepare)
    return pf.cluster.Serial() if workers == 1 else pf.cluster.Processes(workers, prepare)


def make_folder(out: Path) -> None:
    """Make the folder of ``--out``, before anything is computed for it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise pf.errors.SolveError(f"--out {str(out)!r} is a file; give a folder.") from error
    except NotADirectoryError as error:
        raise pf.errors.SolveError(f"--out {str(out)!r} lies in a file; give a folder.") from error
    except OSError as error:
        raise pf.errors.SolveError(f"--out {str(out)!r} cannot be made ({error.strerror}); give a folder.") from error


def file_name(name: str) -> str:
    """A name of a problem as that of a file in one folder: other characters than letters, digits, . and - become -."""
    return re.sub(r"[^\w.-]+", "-", name).lstrip(".-")[:100] or "problem"


def use_compilation_cache() -> None:
    """Keep compiled functions on disk, so that a later process that solves the same problem does not compile them."""
    import jax

    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(base / "pdofm" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def console() -> Any:
    """A console on standard error."""
    from rich.console import Console

    return Console(stderr=True)


def finite(value: Any) -> Any:
    """The same value with None, which JSON writes as null, in place of infinite numbers and NaN."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
