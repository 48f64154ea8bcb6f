"""The command line: ``pdofm list``, ``solve``, ``reproduce``, ``bench`` and ``studio``.

Results go to standard output, and everything else to standard error. Rich is imported only where it is used: without
it, ``pdofm solve`` starts faster.
"""

import contextlib
import dataclasses
import gc
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

import pdofm as pf
from pdofm.runs import (
    JsonOption,
    challenge,
    console,
    file_name,
    finite,
    make_folder,
    reproduce,
    use_compilation_cache,
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Solve partial differential equations without a mesh, to near machine precision.",
)

ProblemArgument = Annotated[
    str, typer.Argument(help="A name from 'pdofm list', or a Python file that defines a variable `problem`.")
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        help="Kind of features: pd-ofm and pd-fm (trained first), rfm, transnet or chebyshev. An untrained network if "
        "omitted."
    ),
]
FeaturesOption = Annotated[int | None, typer.Option(help="Number of features for each component of the solution.")]
ToleranceOption = Annotated[
    float | None,
    typer.Option(
        help="Relative error that is required. Without --method and --features, feature spaces are tried until one "
        "reaches it."
    ),
]


def _version(wanted: bool) -> bool:
    if wanted:
        print(f"pdofm {pf.__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Solve partial differential equations without a mesh, to near machine precision."""


@app.command("list")
def list_problems() -> None:
    """List the problems that come with the package."""
    for name in pf.zoo.names():
        print(f"{name:20s} {pf.zoo.describe(name)}")


@app.command()
def solve(
    problem: ProblemArgument,
    method: MethodOption = None,
    features: FeaturesOption = None,
    tol: ToleranceOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the random features and points.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder in which to write a picture and a VTK file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a problem and report the error of the solution.

    The exit code is 0 if the solution has converged, 1 if it has not, and 2 after an error.
    """
    if out is not None:
        make_folder(out)
    stated = _problem(problem)
    with warnings.catch_warnings(), _one_blas_thread():
        warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)  # the report and the exit code say it
        solution = pf.solve(stated, _features(stated, method, features, seed), tol=tol, key=seed)
    report = _report(solution)
    if out is not None:
        report["picture"] = str(_write_files(solution, out))
    if as_json:
        print(json.dumps(finite(report)))
    else:
        _print_solution(solution, report)
    raise typer.Exit(0 if solution.converged else 1)


def _report(solution: pf.Solution) -> dict[str, Any]:
    """What ``--json`` prints about a solution."""
    report: dict[str, Any] = {
        "problem": solution.problem.name,
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
    if solution.problem.exact is not None:
        errors = solution.errors()
        report |= {"relative_l2": errors.relative_l2, "max_error": errors.max}
    return report


def _write_files(solution: pf.Solution, folder: Path) -> Path:
    """Write the pictures and the VTK file of a solution; returns the path of the main picture."""
    name = file_name(solution.problem.name)
    picture = folder / f"{name}.png"
    solution.plot(picture)
    if solution.attempts:
        solution.plot_search(folder / f"{name}-search.png")
    if solution.problem.domain.dim <= 3:  # VTK has no more
        solution.to_vtk(folder / f"{name}.vtu")
    return picture


def _print_solution(solution: pf.Solution, report: dict[str, Any]) -> None:
    print(solution)
    if solution.attempts:
        print(solution.search)
    if "relative_l2" in report:
        print(f"  true relative L2 error {report['relative_l2']:.1e}, maximum error {report['max_error']:.1e}")


def _one_blas_thread() -> contextlib.AbstractContextManager[Any]:
    """Limit BLAS to one thread, unless the user has set a number of threads.

    In problems of this size, several threads of BLAS and those of XLA wait for each other.
    """
    if any(name in os.environ for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")):
        return contextlib.nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


app.command()(reproduce)
app.command()(challenge)


BENCHMARKS = (
    "Names: assembly, training, lstsq, partition, transfer, start, growth, eigenvalues (minutes each), cluster and "
    "accuracy (a quarter of an hour each, if all packages that the last compares with are installed). All of them if "
    "omitted."
)
"""The help of the argument of ``pdofm bench``: every benchmark with the time that it takes."""


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help=BENCHMARKS)] = None,
    as_json: JsonOption = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder in which to write bench.json and a figure of the accuracy benchmark.")
    ] = None,
) -> None:
    """Measure speed, and compare each time with a reference that is measured in the same run."""
    from rich.console import Console
    from rich.table import Table

    from pdofm import bench as benches

    if out is not None:
        make_folder(out)
    with console().status("measuring") as status:
        report = benches.run(names or [], lambda what: status.update(f"measuring: {what}"))
    if out is not None:
        (out / "bench.json").write_text(json.dumps(finite(report.as_json()), indent=1) + "\n")
        if report.runs:
            benches.plot(report.runs, out / "accuracy.png")
    if as_json:
        print(json.dumps(finite(report.as_json())))
        return
    note = "The ratio is the result divided by that of the reference, which is measured in the same run."
    table = Table("benchmark", "task", "result", "ratio", "reference", caption=note)
    for row in report.rows:
        table.add_row(row.bench, row.case, _number(row.value, ".4g", row.unit), _number(row.ratio, ".3g"), row.against)
    Console().print(table)
    machine = "; ".join(f"{name} {value}" for name, value in benches.machine().items())
    Console().print(f"Measured on: {machine}", highlight=False)


@app.command()
def studio(port: Annotated[int, typer.Option(help="Port of this machine; 0 for any free one.")] = 0) -> None:
    """Serve a page to draw a domain, type an equation and see its solution, for this machine only. Ctrl-C ends it."""
    from pdofm.studio import serve

    with _one_blas_thread():
        serve(port)


def _number(value: float, form: str, unit: str = "") -> str:
    """A number with its unit, or a dash if it was not measured or has no reference."""
    return "–" if math.isnan(value) else f"{value:{form}} {unit}".strip()


def _features(problem: pf.Problem, method: str | None, size: int | None, seed: int) -> pf.Features | int | None:
    """The features of a method, or their number if no method is given."""
    if method is None:
        return size
    from pdofm.experiments.methods import features_for

    return features_for(problem, method, pf.default_features(problem, size).size, seed)


def _problem(name: str) -> pf.Problem:
    """The problem of this name, or the one that the Python file of this name defines as `problem`."""
    if not name.endswith(".py"):
        if Path(name).is_file():
            raise pf.errors.ProblemError(f"{name!r} is not a Python file; its name must end in .py.")
        return pf.zoo.get(name)
    if not Path(name).is_file():
        raise pf.errors.ProblemError(
            f"There is no file {name!r}. Give a file that defines `problem`, or a name from 'pdofm list'."
        )
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output carries results only
            found = runpy.run_path(name).get("problem")
    except pf.errors.PdofmError:
        raise
    except SystemExit as error:
        raise pf.errors.ProblemError(
            f"{name!r} ends the program, by exit({error.code!r}), before it defines `problem`. Leave that out."
        ) from error
    except Exception as error:
        at = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
        where = f", line {at[-1]}" if at else ""
        raise pf.errors.ProblemError(
            f"{name!r} cannot be run: {type(error).__name__}{where}: {error}. Correct the file."
        ) from error
    if not isinstance(found, pf.Problem):
        raise pf.errors.ProblemError(
            f"{name!r} must define a variable `problem` that is a pdofm.Problem; "
            + ("it defines none." if found is None else f"it is {type(found).__name__}.")
        )
    return found if found.name != "problem" else found.replace(name=Path(name).stem)


def main() -> None:
    """Run the command line. An error of pdofm is printed as one line on standard error; the exit code is then 2."""
    # Objects that the imports made are never garbage. If they were not frozen, the collector would spend 60 ms on them
    # in a solve and 100 ms at exit.
    gc.freeze()
    use_compilation_cache()
    try:
        app()
    except pf.errors.PdofmError as error:
        console().print("error: " + str(error), style="red", markup=False, highlight=False)
        sys.exit(2)


if __name__ == "__main__":
    main()
