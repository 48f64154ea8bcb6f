"""Processes that measure for a benchmark: how they are asked, and how they answer."""

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
"""Seconds after which a process counts as hanging."""


@dataclass(frozen=True)
class Answer:
    """What a process has written, and how it failed: ``""`` if it did not. `lines` are the values of its complete
    lines of JSON, those before a failure included; `seconds` is its wall time, NaN if it failed."""

    lines: list[Any] = field(default_factory=list)
    failure: str = ""
    seconds: float = math.nan


def ask(*arguments: str, environment: Mapping[str, str] | None = None, limit: float = LIMIT) -> Answer:
    """Run Python with these arguments, and with these variables besides our own; whatever happens to it is an answer.

    What a process that fails has written on standard error is passed on to ours.
    """
    # In files, not in pipes: what was written before the process crashed or had to be killed is all there.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        command, variables = [sys.executable, *arguments], os.environ | (environment or {})
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
    """Take standard output for results: the function returned writes one as a line of JSON, at once.

    For the rest of this process, what anything else prints, compiled code included, goes to standard error. There is
    no way back: compiled code may keep what it prints until the process ends.
    """
    sys.stdout.flush()
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return lambda found: print(json.dumps(found), file=output, flush=True)


def failed(bench: str, case: str, failure: str) -> Row:
    """The row of something that could not be measured."""
    return Row(bench, case, failure, math.nan, math.nan)


def _failure(code: int, said: str, garbage: str) -> str:
    """How a process failed, by its exit code, its last words, and what it wrote that is not JSON."""
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
    """All that was written to a file; a process that crashes may write anything."""
    file.seek(0)
    return file.read().decode(errors="replace")


def _short(line: str) -> str:
    return textwrap.shorten(line, 100, placeholder=" …")
