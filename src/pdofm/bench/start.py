"""How long a user waits in a new process, and for what."""

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
TOLERANCE = 1e-8

COMPILE = "/jax/core/compile/backend_compile_duration"
BEFORE_RUNNING = ("/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration", COMPILE)
"""What JAX does with a function before it runs: to trace it, to lower it, to compile it."""

Span = tuple[str, float, float]
"""An event of JAX, its start and its end."""

# `python -m pdofm.bench.start` would have imported the package before any clock of ours starts.
CHILD = """
import sys, time
start = time.perf_counter()
import pdofm
seconds = time.perf_counter() - start
from pdofm.bench.start import main
main(sys.argv[1], seconds)
"""


def bench_start() -> list[Row]:
    """The import, the first solve on the command line, and the first solve of every problem of the zoo."""
    return [*_command_line(), *(row for name in pf.zoo.names() for row in first_solve(name))]


def _command_line() -> list[Row]:
    """The import, and the first solve on the command line: with nothing compiled before, and with the cache that the
    first one leaves; median of three processes each."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = _median("-c", "import jax.numpy, equinox, optax, scipy.linalg").seconds
        ours = _median("-c", "import pdofm").seconds
        rows = [Row("start", "import pdofm", "import of jax, equinox, optax and scipy.linalg", ours, libraries)]
        solve = ("-m", "pdofm.cli", "solve", PROBLEM, "--json")
        for state in ("nothing compiled", "compiled before"):
            # The first process fills the cache for the others: each cold one needs a new folder.
            answer = _median(*solve, cache=folder, fresh=state == "nothing compiled")
            case = f"pdofm solve {PROBLEM}, {state}"
            if answer.failure:
                rows.append(failed("start", case, answer.failure))
                continue
            rows.append(Row("start", case, "import pdofm", answer.seconds, ours))
            phases = answer.lines[-1]["seconds"]
            rows += [
                Row("start", f"{case}: {phase}", "the whole", value, answer.seconds) for phase, value in phases.items()
            ]
    return rows


def first_solve(name: str) -> list[Row]:
    """One problem of the zoo in a new process without a cache: the import, the first solve, the second one, and how
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
        Row("start", f"{name}: functions compiled", f"second solve: {again}", functions, float(again) or math.nan, ""),
    ]


def main(name: str, seconds: float) -> None:
    """Solve a problem of the zoo twice and report what it took; `seconds` is what the import took."""
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
    """Seconds for one problem, to state it included."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the time counts, whether it has converged or not
        pf.solve(pf.zoo.get(name), tol=TOLERANCE)
    return time.perf_counter() - start


def _compiled(spans: Iterable[Span]) -> int:
    return sum(event == COMPILE for event, _, _ in spans)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds within at least one of the spans: those inside of others, or of other threads, count once."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _median(*arguments: str, cache: str | None = None, fresh: bool = False) -> Answer:
    """The answer of a Python process: of three the one of median time, or one that failed."""
    answers = []
    for turn in range(3):
        folder = {} if cache is None else {"XDG_CACHE_HOME": os.path.join(cache, str(turn) if fresh else "0")}
        answers.append(ask(*arguments, environment=folder))
    failures = [answer for answer in answers if answer.failure]
    return failures[0] if failures else sorted(answers, key=lambda answer: answer.seconds)[1]
