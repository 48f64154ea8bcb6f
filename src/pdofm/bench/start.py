"""The time that a user waits for the first solution in a new process, and what it consists of."""

import math
import os
import tempfile
import time
import warnings
from collections.abc import Iterable
from typing import Any

import jax

import pdofm as pf
from pdofm.bench.process import Answer, ask, failed, results
from pdofm.bench.timing import Row

PROBLEM = "poisson-lshape"
"""The problem that is solved on the command line."""

TOLERANCE = 1e-8
"""The tolerance with which each basic problem of the zoo is solved twice."""

COMPILE = "/jax/core/compile/backend_compile_duration"
"""The event that JAX records when it compiles a function."""

BEFORE_RUNNING = ("/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration", COMPILE)
"""The events that JAX records before a function runs: when it traces, lowers and compiles it."""

Span = tuple[str, float, float]
"""An event of JAX with its start and its end, in seconds."""

CHILD = """
import sys, time
start = time.perf_counter()
import pdofm
seconds = time.perf_counter() - start
from pdofm.bench.start import main
main(sys.argv[1], seconds)
"""
"""The program of a new process. It is not ``python -m pdofm.bench.start``, which would import the package before the
import can be timed."""


def bench_start() -> list[Row]:
    """The import, the first solve on the command line, and the first solve of every basic problem of the zoo."""
    return [*_command_line(), *(row for name in pf.zoo.names("basic") for row in first_solve(name))]


def _command_line() -> list[Row]:
    """The import, and a solve on the command line without and with a cache of compiled functions; each is the median of
    three processes."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = _median("-c", "import jax.numpy, equinox, scipy.linalg").seconds
        ours = _median("-c", "import pdofm").seconds
        rows = [Row("start", "import pdofm", "import jax, equinox and scipy.linalg", ours, libraries)]
        solve = ("-m", "pdofm.cli", "solve", PROBLEM, "--json")
        for state in ("empty cache", "filled cache"):
            # A process fills the cache, so each one that needs an empty cache has its own folder.
            answer = _median(*solve, cache=folder, fresh=state == "empty cache")
            case = f"pdofm solve {PROBLEM}, {state}"
            if answer.failure:
                rows.append(failed("start", case, answer.failure))
                continue
            rows.append(Row("start", case, "import pdofm", answer.seconds, ours))
            phases = answer.lines[-1]["seconds"]
            rows += [
                Row("start", f"{case}: {phase}", "the whole command", value, answer.seconds)
                for phase, value in phases.items()
            ]
    return rows


def first_solve(name: str) -> list[Row]:
    """Solve a problem of the zoo twice in a new process without a cache, and measure the import, both solves, and how
    much of the first one is tracing and compiling."""
    answer = ask("-c", CHILD, name, environment={"JAX_ENABLE_COMPILATION_CACHE": "false"})
    if answer.failure or not answer.lines:
        return [failed("start", f"{name}: first solve", answer.failure or "failed, no output")]
    found = answer.lines[-1]
    first, functions, again = found["first"], float(found["functions"]), found["functions of second"]
    return [
        Row("start", f"{name}: import pdofm", "first solve", found["import"], first),
        Row("start", f"{name}: first solve", "second solve", first, found["second"]),
        Row("start", f"{name}: tracing and compiling", "first solve", found["compiling"], first),
        Row("start", f"{name}: functions compiled", f"second solve, {again}", functions, float(again) or math.nan, ""),
    ]


def main(name: str, seconds: float) -> None:
    """Solve a problem of the zoo twice and report the times; `seconds` is that of the import."""
    report = results()
    spans: list[Span] = []

    def listen(event: str, start_time: float, end_time: float, **_: Any) -> None:
        spans.append((event, start_time, end_time))

    jax.monitoring.register_event_time_span_listener(listen)
    first = _solve_seconds(name)
    cold = list(spans)
    second = _solve_seconds(name)
    report(
        {
            "import": seconds,
            "first": first,
            "second": second,
            "compiling": covered((start, end) for event, start, end in cold if event in BEFORE_RUNNING),
            "functions": _compiled(cold),
            "functions of second": _compiled(spans) - _compiled(cold),
        }
    )


def _solve_seconds(name: str) -> float:
    """The time for one problem in seconds, from its statement to its solution."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the time is wanted even if the solution does not converge
        pf.solve(pf.zoo.get(name), tol=TOLERANCE)
    return time.perf_counter() - start


def _compiled(spans: Iterable[Span]) -> int:
    return sum(event == COMPILE for event, _, _ in spans)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """The seconds that at least one of the spans covers; nested and overlapping spans count once."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _median(*arguments: str, cache: str | None = None, fresh: bool = False) -> Answer:
    """Of three processes, the answer of the one with the median time, or of one that failed."""
    answers = []
    for turn in range(3):
        folder = {} if cache is None else {"XDG_CACHE_HOME": os.path.join(cache, str(turn) if fresh else "0")}
        answers.append(ask(*arguments, environment=folder))
    failures = [answer for answer in answers if answer.failure]
    return failures[0] if failures else sorted(answers, key=lambda answer: answer.seconds)[1]
