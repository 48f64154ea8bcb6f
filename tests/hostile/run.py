"""Run the collection, or the problems whose names contain a word, and print what came out.

python tests/hostile/run.py --part 0/4 --out results.jsonl
"""

import argparse
import dataclasses
import json
import time
import warnings
from pathlib import Path

import collection
import illposed  # noqa: F401 (registers its kinds)
import narrow  # noqa: F401
import scales  # noqa: F401
import wellposed  # noqa: F401

TOLERANCES = (None, 1e-6)


def main() -> None:
    """Solve, print a line per problem and tolerance, and append the numbers to a file."""
    given = argparse.ArgumentParser()
    given.add_argument("word", nargs="?", default="")
    given.add_argument("--part", default="0/1")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--out", type=Path)
    chosen = given.parse_args()
    part, parts = (int(each) for each in chosen.part.split("/"))
    known = chosen.out.read_text().splitlines() if chosen.out is not None and chosen.out.exists() else []
    done = {(row["name"], row["tol"]) for row in map(json.loads, known)}
    for name in [each for each in collection.names() if chosen.word in each][part::parts]:
        case = None
        for tol in TOLERANCES:
            if (name, tol) in done:
                continue
            start = time.perf_counter()
            with warnings.catch_warnings(action="ignore"):
                try:
                    case = case or collection.get(name)
                    found = collection.outcome(case, tol, chosen.seed)
                except Exception as error:  # noqa: BLE001 (a raw error is a result, too)
                    print(f"{name:22s} {tol} RAW {error!r:.300s}", flush=True)
                    continue
            row = dataclasses.asdict(found) | {"name": name, "tol": tol, "is_well_posed": case.is_well_posed}
            row |= {"seconds": time.perf_counter() - start, "deceiving": found.is_deceiving}
            if chosen.out is not None:
                with chosen.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            mark = "DECEIVING" if found.is_deceiving else "cautious" if found.is_overcautious else ""
            print(
                f"{name:22s} {tol} {'yes' if found.converged else 'no '} error {found.error:.1e} "
                f"estimate {found.estimate:.1e} {row['seconds']:.1f} s {mark} {found.refused[:150]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
