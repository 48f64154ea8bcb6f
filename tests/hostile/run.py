"""Run a hostile collection as a user would, without the checks of types that the tests switch on.

python tests/hostile/run.py problems [--some N] [--part 0/4] [--out results.jsonl] [WORD]
python tests/hostile/run.py mistakes [--some N] [WORD]
python tests/hostile/run.py files [--some N]

Every line that is printed on standard output is a broken promise; what else came out goes to standard error.
"""

import argparse
import contextlib
import dataclasses
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import collection
import details  # noqa: F401 (registers its kinds)
import files
import fuzz
import illposed  # noqa: F401
import jax
import mistakes
import narrow  # noqa: F401
import numpy as np
import scales  # noqa: F401
import wellposed  # noqa: F401

import pdofm as pf

TOLERANCES = (None, 1e-6)

FILES = 2000
"""How many changed files are read."""

MOST_SECONDS, MOST_MEMORY = 1.0, 200 * 2**20
"""What reading a file may take."""

HANGS = 60
"""Seconds after which a mistake counts as a hang."""

CAUTIOUS = 0.03
"""The fraction of right answers to well-posed problems that may be called not converged."""


def told(text: str) -> None:
    """Say how it goes."""
    print(text, file=sys.stderr, flush=True)


def broken(text: str) -> None:
    """Report a broken promise."""
    print(text, flush=True)


def problems(names: list[str], out: Path | None) -> None:
    """Solve every problem by default and with a tolerance."""
    known = out.read_text().splitlines() if out is not None and out.exists() else []
    done = {(row["name"], row["tol"]) for row in map(json.loads, known)}
    right, doubted = 0, []
    for name, tol in ((name, tol) for name in names for tol in TOLERANCES if (name, tol) not in done):
        start, case = time.perf_counter(), collection.get(name)
        try:
            found = collection.outcome(case, tol)
        except Exception as error:  # noqa: BLE001 (a raw error is a broken promise)
            broken(f"{name} {tol}: {error!r:.300}")
            continue
        row = dataclasses.asdict(found) | {"name": name, "tol": tol, "is_well_posed": case.is_well_posed}
        if out is not None:
            with out.open("a") as file:
                file.write(json.dumps(row | {"seconds": time.perf_counter() - start}) + "\n")
        told(f"{name} {tol}: {found}")
        if found.is_deceiving:
            broken(f"{name} {tol}: {found}")
        if case.is_well_posed and found.is_right:
            right += 1
            doubted += [] if found.converged else [f"{name} {tol}"]
    if len(doubted) > max(CAUTIOUS * right, 1):
        broken(f"{len(doubted)} of {right} right answers are doubted: {doubted}")


def _where(error: Exception) -> str:
    """The last lines of this package that an error passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "pdofm/" in frame.filename]
    return ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-3:])


def _alarm(*_: Any) -> None:
    raise TimeoutError(f"no answer after {HANGS} s")


def make_mistakes(names: list[str]) -> None:
    """Make mistakes: all must be refused."""
    signal.signal(signal.SIGALRM, _alarm)
    for name in names:
        signal.alarm(HANGS)
        try:
            broken(f"{name} ({mistakes.value_of(name)!r:.60}) is accepted: {mistakes.make(name)!r:.80}")
        except pf.errors.PdofmError as error:
            if len(str(error)) < 20:
                broken(f"{name}: {error}")
        except Exception as error:  # noqa: BLE001
            at = [frame for frame in traceback.extract_tb(error.__traceback__) if "pdofm" in frame.filename][-1:]
            broken(
                f"{name} ({mistakes.value_of(name)!r:.60}): {error!r:.100} {[f'{f.filename}:{f.lineno}' for f in at]}"
            )
        signal.alarm(0)


def read_files(count: int) -> None:
    """Read changed files: each must be refused, or describe an object that works."""
    folder = Path(tempfile.mkdtemp())
    path, whole = folder / "file", files.contents(folder)
    for content in whole.values():
        path.write_bytes(content)
        files.use(pf.load(path))
    names, before = sorted(whole), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        rng = np.random.default_rng(number)
        name = names[rng.integers(len(names))]
        path.write_bytes(fuzz.mutated(whole[name], rng))
        start = time.perf_counter()
        try:
            with contextlib.suppress(pf.errors.PdofmError):
                found = pf.load(path)
                if time.perf_counter() - start > MOST_SECONDS:
                    broken(f"{number} {name}: {time.perf_counter() - start:.1f} s")
                files.use(found)
        except Exception as error:  # noqa: BLE001
            broken(f"{number} {name}: {error!r:.200} {_where(error)}")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > MOST_MEMORY:
        broken(f"reading {count} files took {grown / 2**20:.0f} MiB")


def main() -> None:
    """Run what is asked for."""
    given = argparse.ArgumentParser()
    given.add_argument("what", choices=("problems", "mistakes", "files"))
    given.add_argument("word", nargs="?", default="")
    given.add_argument("--some", type=int)
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--part", default="0/1")
    given.add_argument("--out", type=Path)
    chosen = given.parse_args()
    each: dict[str, Callable[[], list[str]]] = {
        "problems": collection.names,
        "mistakes": lambda: list(mistakes.names()),
        "files": list,
    }
    names = [name for name in each[chosen.what]() if chosen.word in name]
    if chosen.some is not None:
        names = random.Random(chosen.seed).sample(names, min(chosen.some, len(names)))
    part, parts = map(int, chosen.part.split("/"))
    with warnings.catch_warnings(action="ignore"):
        if chosen.what == "problems":
            problems(names[part::parts], chosen.out)
        elif chosen.what == "mistakes":
            make_mistakes(names[part::parts])
        else:
            read_files(FILES if chosen.some is None else chosen.some)


if __name__ == "__main__":
    base = Path.home() / ".cache" / "pdofm" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(base))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    main()
