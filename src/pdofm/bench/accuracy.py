"""Time to accuracy: the same problems solved by this package and by others, each in its own process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from pdofm.bench.contenders import PROBLEMS
from pdofm.bench.process import Answer, ask, failed
from pdofm.bench.timing import Row

CONTENDERS = {
    "pdofm": "pdofm",
    "ngsolve": "NGSolve",
    "scikit_fem": "scikit-fem",
    "pyrfm": "pyRFM",
    "deepxde": "DeepXDE",
}
"""The modules in `pdofm.bench.contenders`, with the names of the packages in tables."""

TARGET = 1e-9
"""The relative L2 error at which times are compared: accurate, but still far above rounding errors."""

LIMIT = 1800.0
"""Seconds after which the process of a contender is stopped; the slowest one takes a few minutes."""

CONTEST: tuple[str, ...] = ("-m", "pdofm.bench.contest")
"""The arguments of Python that run one contender on one problem."""

KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**28)}
"""Variables that let the process of a contender keep memory that is freed: to obtain new pages from the system takes
longer than some solves."""


@dataclass(frozen=True)
class Run:
    """One level of one contender: the time for all work in seconds, and the relative L2 error that is reached."""

    contender: str
    problem: str
    level: str
    seconds: float
    error: float


def installed() -> dict[str, dict[str, str]]:
    """The contenders whose packages are installed, with the versions of the packages."""
    found = {}
    for name in CONTENDERS:
        try:
            found[name] = {each: version(each) for each in import_module(f"pdofm.bench.contenders.{name}").PACKAGES}
        except PackageNotFoundError:
            continue
    return found


def race(show: Callable[[str], None] = lambda _: None, limit: float = LIMIT) -> tuple[list[Run], list[Row]]:
    """Measure all levels of all installed contenders. Returns the runs, and a row for each process that failed; what it
    had measured before is among the runs."""
    runs, failures = [], []
    for problem in PROBLEMS:
        for name in installed():
            show(f"{problem}, {CONTENDERS[name]}")
            answer = _contest(name, problem, limit=limit)
            runs += [Run(CONTENDERS[name], problem, **level) for level in answer.lines]
            if answer.failure:
                failures.append(failed("accuracy", problem, f"{CONTENDERS[name]}: {answer.failure}"))
    return runs, failures


def extra_sources(count: int = 1000, show: Callable[[str], None] = lambda _: None, limit: float = LIMIT) -> list[Row]:
    """Measure the time for one of `count` further sources on the square, when everything else has been prepared."""
    if "ngsolve" not in installed():
        return []
    show("further sources")
    answers = {name: _contest(name, "sources", str(count), limit=limit) for name in ("pdofm", "ngsolve")}
    case = f"poisson-square: one of {count} further sources"
    failures = [f"{CONTENDERS[name]}: {answer.failure}" for name, answer in answers.items() if answer.failure]
    if failures:
        return [failed("accuracy", case, failure) for failure in failures]
    ours, theirs = (answer.lines[0] for answer in answers.values())
    against = f"NGSolve with a prepared factorisation, error {theirs['error']:.0e}"
    return [Row("accuracy", f"{case}, error {ours['error']:.0e}", against, ours["seconds"], theirs["seconds"])]


def _contest(name: str, *arguments: str, limit: float) -> Answer:
    """The answer of a process that runs one contender."""
    environment = KEEP_MEMORY | import_module(f"pdofm.bench.contenders.{name}").ENVIRONMENT
    answer = ask(*CONTEST, name, *arguments, environment=environment, limit=limit)
    measured = [line for line in answer.lines if isinstance(line, dict)]
    # Its last line is the number of the others: a package may end the process early without an error.
    complete = answer.lines[-1:] == [len(measured)]
    return Answer(measured, answer.failure or ("" if complete else "failed, ended before it had finished"))


def compare(runs: Sequence[Run]) -> list[Row]:
    """Compare this package with each of the others, problem by problem, by the fastest levels that reach `TARGET`. If
    the other package does not reach it, its smallest error is the target."""
    rows = []
    for problem in dict.fromkeys(run.problem for run in runs):
        here = [run for run in runs if run.problem == problem]
        for other in dict.fromkeys(run.contender for run in here if run.contender != "pdofm"):
            theirs, ours = ([run for run in here if run.contender == name] for name in (other, "pdofm"))
            target = max(TARGET, min(run.error for run in theirs))
            mine, their = cheapest(ours, target), cheapest(theirs, target)
            if mine is None or their is None:
                best = f"not reached, smallest error {min(r.error for r in ours):.0e}" if ours else "not measured"
                rows.append(Row("accuracy", f"{problem}: {best}", f"{other}, error {target:.0e}", float("nan"), 1.0))
                continue
            case = f"{problem}: {mine.level}, error {mine.error:.0e}"
            rows.append(
                Row("accuracy", case, f"{other}, {their.level}, error {their.error:.0e}", mine.seconds, their.seconds)
            )
    return rows


def cheapest(runs: Sequence[Run], target: float) -> Run | None:
    """The fastest run with an error of at most `target`."""
    reached = [run for run in runs if run.error <= target]
    return min(reached, key=lambda run: run.seconds, default=None)
