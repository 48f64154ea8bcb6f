"""How long a user waits in a new process, and for what."""

import json
import os
import subprocess
import sys
import tempfile
import time

from pdofm.bench.timing import Row

PROBLEM = "poisson-lshape"


def bench_start() -> list[Row]:
    """The import, and the first solve on the command line: with nothing compiled before, and with the cache that the
    first one leaves; median of three processes each."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = _seconds("-c", "import jax.numpy, equinox, optax, scipy.linalg")[0]
        ours = _seconds("-c", "import pdofm")[0]
        rows = [Row("start", "import pdofm", "import of jax, equinox, optax and scipy.linalg", ours, libraries)]
        solve = ("-m", "pdofm.cli", "solve", PROBLEM, "--json")
        for state in ("nothing compiled", "compiled before"):
            # The first process fills the cache for the others: each cold one needs a new folder.
            fresh = state == "nothing compiled"
            total, output = _seconds(*solve, cache=folder, fresh=fresh)
            case = f"pdofm solve {PROBLEM}, {state}"
            rows.append(Row("start", case, "import pdofm", total, ours))
            phases = json.loads(output)["seconds"]
            rows += [Row("start", f"{case}: {phase}", "the whole", value, total) for phase, value in phases.items()]
    return rows


def _seconds(*arguments: str, cache: str | None = None, fresh: bool = False) -> tuple[float, str]:
    """The wall time of a Python process, and what it wrote: the median one of three."""
    taken = []
    for turn in range(3):
        environment = dict(os.environ)
        if cache is not None:
            environment["XDG_CACHE_HOME"] = os.path.join(cache, str(turn))
            if not fresh:
                environment["XDG_CACHE_HOME"] = os.path.join(cache, "0")
        start = time.perf_counter()
        done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
        taken.append((time.perf_counter() - start, done.stdout))
    return sorted(taken)[1]
