"""Kill a march at random moments and let it go on from its record: the solution must have the same bits every time.

    python tools/kill_march.py [KILLS] [SEED]

Each kill is a SIGKILL to a process of its own, after a random part of the time that an undisturbed march takes.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MARCH = """
import sys
import jax.numpy as jnp
import numpy as np
import pdofm as pf

u = pf.march(pf.zoo.get("burgers-sine"), tol=1e-8, checkpoint=sys.argv[1], progress=False)
np.save(sys.argv[2], u.coefficients)
"""


def march(record: Path, result: Path, seconds: float | None = None) -> bool:
    """March in a process that is killed after so many seconds; whether it came to its end."""
    process = subprocess.Popen([sys.executable, "-c", MARCH, str(record), str(result)])
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


def main(kills: int = 10, seed: int = 0) -> int:
    """The number of kills after which the bits differed."""
    rng, failures = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.npy"
        start = time.perf_counter()
        if not march(Path(folder) / "whole.march", whole):
            raise SystemExit("The march that nothing disturbs has failed.")
        usual = time.perf_counter() - start
        for number in range(kills):
            record, result = Path(folder) / f"{number}.march", Path(folder) / f"{number}.npy"
            moment = rng.uniform(0.3, 1.0) * usual
            ended = march(record, result, moment)
            written = record.stat().st_size if record.exists() else 0
            same = march(record, result) and result.read_bytes() == whole.read_bytes()
            failures += not same
            how = "had already ended" if ended else f"was killed after {moment:.2f} s with {written} bytes written"
            print(f"{number + 1}: {how}; {'the same bits' if same else 'OTHER BITS'}", flush=True)
    print(f"the same bits {kills - failures} of {kills} times")
    return failures


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
