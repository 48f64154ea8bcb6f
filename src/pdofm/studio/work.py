"""What the server keeps between requests: the last statement, one computation at a time, and its solution."""

import ctypes
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pdofm.adaptive.entry import solve
from pdofm.adaptive.policy import default_policy
from pdofm.adaptive.search import Search
from pdofm.discrete.evaluate import evaluate
from pdofm.errors import PdofmError
from pdofm.solving.files import save
from pdofm.solving.solution import Solution
from pdofm.solving.stats import Attempt
from pdofm.studio.code import as_python
from pdofm.studio.compare import compared
from pdofm.studio.dragging import Dragging
from pdofm.studio.formula import FormulaError
from pdofm.studio.reading import FieldError, handle_numbers, read
from pdofm.studio.statement import Statement
from pdofm.studio.view import FINE, Grid, drawn, finite, summary

SECONDS, TOLERANCE = (1.0, 3600.0), (1e-14, 0.5)
"""The limits of the time that a search may take, and of the tolerance that may be asked for."""

FILES = {"picture.png": "image/png", "solution.vtu": "application/xml", "solution.pdofm": "application/octet-stream"}
"""The files of a solution, and their types."""


class Job:
    """A computation in a thread of its own."""

    def __init__(self, work: Callable[["Job"], dict[str, Any]]):
        self.search: Search | None = None
        self.result: dict[str, Any] | None = None
        self.error = ""
        self.started = time.perf_counter()
        self.ended: float | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def seconds(self) -> float:
        return (self.ended or time.perf_counter()) - self.started

    def watch(self, search: Search) -> None:
        """The policy of a search that is watched: the default one."""
        self.search = search
        default_policy(search)

    def stop(self) -> None:
        """End the computation as Ctrl-C does, which makes a search return the best solution so far."""
        if self.is_running and self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(KeyboardInterrupt)
            )

    def join(self, seconds: float) -> None:
        """Wait for the end."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self.result = self._work(self)
        except KeyboardInterrupt:
            self.error = "It was stopped before anything was found."
        except PdofmError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 (a thread must not end in silence)
            traceback.print_exc()
            self.error = f"{type(error).__name__}: {error}"
        finally:
            self.ended = time.perf_counter()


class Session:
    """One user, one page."""

    def __init__(self) -> None:
        self.given: Any = None
        self.statement: Statement | None = None
        self.solution: Solution | None = None
        self.job: Job | None = None
        self._dragging: Dragging | None = None
        self._lock = threading.RLock()

    def check(self, given: dict[str, Any]) -> dict[str, Any]:
        """Read a statement: the picture of its domain, and its Python."""
        self.given = given
        try:
            statement = read(given.get("statement"))
        except FieldError as error:
            return {"error": str(error), "field": error.field}
        found = {"domain": drawn(statement.sketch.domain), "code": as_python(statement, *_limits(given))}
        try:
            statement.problem()
        except PdofmError as error:
            return found | {"error": str(error), "field": ""}
        return found

    def begin(self, given: dict[str, Any]) -> dict[str, Any]:
        """Begin to solve; the state says how it goes."""
        self.given = given
        statement, (tol, seconds) = read(given.get("statement")), _limits(given)
        problem = statement.problem()

        def work(job: Job) -> dict[str, Any]:
            self.solution = solve(problem, tol=tol, max_seconds=seconds, policy=job.watch)
            return self._found(statement, self.solution)

        with self._lock:
            self._check_idle()
            self.statement, self.solution, self._dragging = statement, None, None
            self.job = Job(work)
        return self.state()

    def begin_comparison(self, given: dict[str, Any]) -> dict[str, Any]:
        """Begin to solve the same problem with untrained and with learned features."""
        _, solution = self._solved()
        size, steps = _whole(given, "size", 20, 1000), _whole(given, "steps", 1, 5000)
        with self._lock:
            self._check_idle()
            self.job = Job(lambda job: {"comparison": compared(solution.problem, solution, size, steps)})
        return self.state()

    def stop(self) -> dict[str, Any]:
        """Stop what is running."""
        if self.job is not None:
            self.job.stop()
        return self.state()

    def state(self) -> dict[str, Any]:
        """What is running, how far it is, and what it has found."""
        job = self.job
        if job is None:
            return {"running": False, "given": self.given}
        attempts = [] if job.search is None else job.search.ledger.attempts
        found = {"running": job.is_running, "seconds": round(job.seconds, 1), "error": job.error}
        return found | {"attempts": [_row(each) for each in tuple(attempts)], "result": job.result}

    def picture(self, given: dict[str, Any]) -> dict[str, Any]:
        """The solution on a grid, at a time."""
        statement, solution = self._solved()
        at = _time(given, statement)
        grid = Grid(statement.sketch.domain, FINE)
        values = evaluate(solution.features, solution.coefficients, grid.points(at))
        return grid.picture(values[:, _component(given, statement)])

    def drag(self, given: dict[str, Any]) -> dict[str, Any]:
        """The solution on a coarse grid for other positions of the handles."""
        statement, solution = self._solved()
        numbers = handle_numbers(given.get("handles"))
        if set(numbers) - set(statement.numbers):
            raise FieldError("handles", "A handle was added after the problem was solved; solve it again.")
        with self._lock:
            if self._dragging is None:
                if not statement.moves_only_data(set(numbers)):
                    raise FieldError(
                        "handles",
                        "A left side or an initial value contains a handle, so that the matrix changes with it; solve "
                        "again instead.",
                    )
                self._dragging = Dragging(statement, solution.problem, solution)
            start = time.perf_counter()
            found = self._dragging.at(numbers, _time(given, statement), _component(given, statement))
        return found | {"milliseconds": round(1000 * (time.perf_counter() - start), 1)}

    def file(self, name: str) -> bytes:
        """One of the `FILES` of the solution."""
        _, solution = self._solved()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            if name.endswith(".png"):
                solution.plot(path)
            elif name.endswith(".vtu"):
                solution.to_vtk(path)
            else:
                save(path, solution)
            return path.read_bytes()

    def _check_idle(self) -> None:
        if self.job is not None and self.job.is_running:
            raise FormulaError("Something is being computed already; stop it first, or wait.")

    def _solved(self) -> tuple[Statement, Solution]:
        if self.statement is None or self.solution is None:
            raise FormulaError("There is no solution yet; solve the problem first.")
        return self.statement, self.solution

    def _found(self, statement: Statement, solution: Solution) -> dict[str, Any]:
        found = summary(solution, len(statement.unknowns)) | {
            "unknowns": list(statement.unknowns),
            "end": statement.end,
        }
        return found | {"draggable": not solution.stats.steps and statement.moves_only_data(_handles(statement))}


def _handles(statement: Statement) -> set[str]:
    return {name for name in statement.numbers if len(name) == 2 and name[0] in "pqrs" and name[1] in "xy"}


def _row(attempt: Attempt) -> dict[str, Any]:
    return {
        "space": attempt.space,
        "why": attempt.why,
        "features": attempt.features,
        "seconds": round(attempt.seconds, 2),
        "estimate": finite(attempt.estimate),
    }


def _limits(given: dict[str, Any]) -> tuple[float, float]:
    """The tolerance and the seconds that are asked for."""
    tol, seconds = given.get("tol", 1e-6), given.get("seconds", 60)
    for name, each, (least, most) in (("tol", tol, TOLERANCE), ("seconds", seconds, SECONDS)):
        if isinstance(each, bool) or not isinstance(each, int | float) or not least <= each <= most:
            raise FieldError(name, f"{str(each)[:40]!r} is not between {least:g} and {most:g}.")
    return float(tol), float(seconds)


def _time(given: dict[str, Any], statement: Statement) -> float | None:
    if statement.end is None:
        return None
    at = given.get("time", statement.end)
    if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at <= statement.end:
        raise FieldError("time", f"The time is {str(at)[:40]!r}; expected 0 to {statement.end:g}.")
    return float(at)


def _component(given: dict[str, Any], statement: Statement) -> int:
    return _whole(given, "component", 0, len(statement.unknowns) - 1, default=0)


def _whole(given: dict[str, Any], name: str, least: int, most: int, default: int | None = None) -> int:
    found = given.get(name, default)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        raise FieldError(name, f"{name} is {str(found)[:40]!r}; expected a whole number from {least} to {most}.")
    return found
