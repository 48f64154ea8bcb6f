"""Processes that measure for a benchmark: how they are started, and how they return results."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pdofm.bench.timing import Row

LIMIT = 300.0
"""Seconds after which a process is stopped."""

ORDINARY = {"PYTHONDONTWRITEBYTECODE": ""}
"""Python keeps what it has compiled of modules, as it does for most users; an import takes longer otherwise."""


@dataclass(frozen=True)
class Answer:
    """The result of a process.

    Attributes:
        lines: the values of the complete lines of JSON that it has written, also if it failed later.
        failure: how it failed; empty if it did not.
        seconds: its wall time; NaN if it failed.
    """

    lines: list[Any] = field(default_factory=list)
    failure: str = ""
    seconds: float = math.nan


def ask(*arguments: str, environment: Mapping[str, str] | None = None, limit: float = LIMIT) -> Answer:
    """Run Python with these arguments and with additional environment variables. A failure is part of the answer.

    If the process fails, what it has written to its standard error is written to ours.
    """
    # Files, unlike pipes, keep everything that was written before the process crashed or was killed.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        command, variables = [sys.executable, *arguments], os.environ | ORDINARY | dict(environment or {})
        start, code = time.perf_counter(), None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = subprocess.run(
                command, env=variables, stdout=output, stderr=errors, timeout=limit, check=False
            ).returncode
        seconds = time.perf_counter() - start
        written, said = _text(output), _text(errors)
    lines, garbage = _parsed(written)
    failure = f"failed, still running after {limit:g} s" if code is None else _failure(code, said, garbage)
    if failure:
        sys.stderr.write(said)
        return Answer(lines, failure)
    return Answer(lines, seconds=seconds)


def results() -> Callable[[Any], None]:
    """Reserve standard output for results. The function that is returned writes one as a line of JSON, at once.

    For the rest of this process, everything else that is printed, also by compiled code, goes to standard error. This
    cannot be undone, since compiled code may buffer its output until the process ends.
    """
    sys.stdout.flush()
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return lambda found: print(json.dumps(found), file=output, flush=True)


def failed(bench: str, case: str, failure: str) -> Row:
    """A row of the table for a measurement that failed."""
    return Row(bench, case, failure, math.nan, math.nan)


def _failure(code: int, said: str, garbage: str) -> str:
    """How a process failed, from its exit code, the last line of its standard error, and output that is not JSON."""
    if code < 0:
        names = {each.value: each.name for each in signal.Signals}
        return f"failed, signal {-code} ({names.get(-code, 'unknown')})"
    if code > 0:
        last = said.strip().splitlines()[-1:]
        return ": ".join([f"failed, exit code {code}", *(_short(line) for line in last)])
    return f"failed, output is not JSON: {_short(garbage)!r}" if garbage else ""


def _parsed(written: str) -> tuple[list[Any], str]:
    """The values of the lines that are JSON, and the first line that is not."""
    lines, garbage = [], ""
    for line in written.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            garbage = garbage or line
    return lines, garbage


def _text(file: Any) -> str:
    """The content of a file; bytes that are not text are replaced."""
    file.seek(0)
    return file.read().decode(errors="replace")


def _short(line: str) -> str:
    return textwrap.shorten(line, 100, placeholder=" …")
