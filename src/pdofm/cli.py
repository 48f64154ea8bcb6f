"""The command line: ``pdofm list``, ``pdofm solve``, ``pdofm reproduce``, ``pdofm bench``."""

import contextlib
import dataclasses
import json
import math
import os
import runpy
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import pdofm as pf

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Partial differential equations without a mesh.")
console = Console(stderr=True)
"""Everything that is said goes to standard error; standard output carries results only."""


def _version(wanted: bool) -> bool:
    if wanted:
        print(f"pdofm {pf.__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Partial differential equations without a mesh, to near machine precision."""


@app.command("list")
def list_problems() -> None:
    """List the problems that can be solved by name."""
    for name in pf.zoo.names():
        print(f"{name:18s} {pf.zoo.describe(name)}")


@app.command()
def solve(
    problem: Annotated[str, typer.Argument(help="A name from 'pdofm list', or a Python file that defines `problem`.")],
    method: Annotated[
        str | None, typer.Option(help="pd-ofm, pd-fm, rfm, transnet or chebyshev; untrained features if omitted.")
    ] = None,
    features: Annotated[int | None, typer.Option(help="Number of features (per component).")] = None,
    tol: Annotated[
        float | None, typer.Option(help="Relative error; without --method and --features, a space is looked for.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of features and points.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for a picture and a VTK file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object on standard output.")] = False,
) -> None:
    """Solve a problem and report its error. Exit code 1 if the solution has not converged."""
    if out is not None and out.exists() and not out.is_dir():
        raise pf.errors.SolveError(f"--out {str(out)!r} is a file; give a folder.")
    stated = _problem(problem)
    with warnings.catch_warnings(), _threads():
        warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)  # the report and the exit code say it
        solution = pf.solve(stated, _features(stated, method, features, seed), tol=tol, key=seed)
    report: dict[str, Any] = {
        "problem": stated.name,
        "converged": solution.converged,
        "reason": solution.reason,
        "error_estimate": solution.error_estimate,
        "features": solution.stats.features,
        "rows": solution.stats.rows,
        "rank": solution.stats.rank,
        "seconds": solution.stats.seconds,
    }
    if solution.attempts:
        report |= {"space": solution.space, "attempts": [dataclasses.asdict(each) for each in solution.attempts]}
    if stated.exact is not None:
        errors = solution.errors()
        report |= {"relative_l2": errors.relative_l2, "max_error": errors.max}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        solution.plot(out / f"{stated.name}.png")
        report["picture"] = str(out / f"{stated.name}.png")
        if solution.attempts:
            solution.plot_search(out / f"{stated.name}-search.png")
        if stated.domain.dim <= 3:
            solution.to_vtk(out / f"{stated.name}.vtu")
    if as_json:
        print(json.dumps(_finite(report)))
    else:
        print(solution)
        if solution.attempts:
            print(solution.search)
        if "relative_l2" in report:
            print(f"  true relative L2 error {report['relative_l2']:.1e}, maximum error {report['max_error']:.1e}")
    raise typer.Exit(0 if solution.converged else 1)


def _threads() -> contextlib.AbstractContextManager[Any]:
    """One thread for BLAS, unless the user has said how many: in problems of this size several of them, and those of
    XLA, wait for each other."""
    if any(name in os.environ for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")):
        return contextlib.nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def _finite(value: Any) -> Any:
    """JSON has no name for what is infinite or not a number: null."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments; those of the paper if omitted.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0, 1, … per case.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="A subset that takes less than three minutes.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for results, tables and figures; finished cases are kept.")] = Path(
        "results"
    ),
    workers: Annotated[int, typer.Option(min=1, help="Cases at the same time, in processes of one thread.")] = 2,
) -> None:
    """Reproduce the tables and figures of the paper, published values beside measured ones.

    Exit code 1 if a case ended with an error.
    """
    from pdofm import experiments
    from pdofm.experiments import report, runner

    cases = experiments.select(names or [], quick=quick)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("reproducing")

        def show(what: str, done: int, total: int, left: float) -> None:
            ending = "" if left != left else f", about {left / 60:.0f} min left"
            bar.update(task, completed=done, total=total, description=what + ending)
            if not console.is_terminal:
                print(f"[{done}/{total}] {what}{ending}", file=sys.stderr, flush=True)

        try:
            failures = runner.run(cases, seeds, out, show, workers=workers, prepare=use_compilation_cache)
        finally:
            rows = runner.collect(experiments.every(), out)  # of earlier runs, too
            written = report.write(rows, experiments.every(), out)
    for path in written:
        print(path)
    for failure in failures:
        console.print(f"failed: {failure.job}: {failure.message}", style="red", markup=False, highlight=False)
    raise typer.Exit(1 if failures else 0)


BENCHMARKS = (
    "Of assembly, training, lstsq, partition, transfer, start and growth (minutes each), and accuracy (a quarter of an "
    "hour with all other packages); all of them if omitted."
)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help=BENCHMARKS)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object on standard output.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.json and the picture of accuracy.")] = None,
) -> None:
    """Measure speed as ratios within one run."""
    from pdofm import bench as benches

    with console.status("measuring") as status:
        report = benches.run(names or [], lambda what: status.update(f"measuring: {what}"))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "bench.json").write_text(json.dumps(_finite(report.as_json()), indent=1) + "\n")
        if report.runs:
            benches.plot(report.runs, out / "accuracy.png")
    if as_json:
        print(json.dumps(_finite(report.as_json())))
        return
    table = Table("benchmark", "case", "measured", "ratio", "against")
    for row in report.rows:
        table.add_row(row.bench, row.case, _number(row.value, ".4g", row.unit), _number(row.ratio, ".3g"), row.against)
    Console().print(table)
    Console().print("; ".join(f"{name} {value}" for name, value in benches.machine().items()), highlight=False)


def _number(value: float, form: str, unit: str = "") -> str:
    """A number with its unit; a dash for what could not be measured, or has nothing to be compared with."""
    return "–" if math.isnan(value) else f"{value:{form}} {unit}".strip()


def _features(problem: pf.Problem, method: str | None, size: int | None, seed: int) -> pf.Features | int | None:
    """The features of a method, or the default ones."""
    if method is None:
        return size
    from pdofm.experiments.methods import features_for

    return features_for(problem, method, pf.default_features(problem, size).size, seed)


def _problem(name: str) -> pf.Problem:
    """A problem of the zoo, or the one that a user's file defines as `problem`."""
    if not name.endswith(".py"):
        if Path(name).is_file():
            raise pf.errors.ProblemError(f"{name!r} is a file, but not a Python file. Its name must end in .py.")
        return pf.zoo.get(name)
    if not Path(name).is_file():
        raise pf.errors.ProblemError(f"There is no file {name!r}. Give a file that defines `problem`, or a name.")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output carries results only
            found = runpy.run_path(name).get("problem")
    except pf.errors.PdofmError:
        raise
    except Exception as error:
        at = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
        where = f", line {at[-1]}" if at else ""
        raise pf.errors.ProblemError(
            f"{name!r} cannot be run: {type(error).__name__} in it{where}: {error}. It must define `problem`."
        ) from error
    if not isinstance(found, pf.Problem):
        raise pf.errors.ProblemError(
            f"{name!r} must define a variable `problem` that is a pdofm.Problem; "
            + ("it defines none." if found is None else f"it is {type(found).__name__}.")
        )
    return found if found.name != "problem" else found.replace(name=Path(name).stem)


def use_compilation_cache() -> None:
    """Keep compiled functions between processes: a second start of the same problem compiles nothing."""
    import jax

    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(base / "pdofm" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def main() -> None:
    """Run the command line; an error of pdofm is one line on standard error and exit code 2."""
    use_compilation_cache()
    try:
        app()
    except pf.errors.PdofmError as error:
        console.print("error: " + str(error), style="red", markup=False, highlight=False)
        sys.exit(2)


if __name__ == "__main__":
    main()
