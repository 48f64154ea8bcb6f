"""Every problem of the zoo by default `solve`, as a Markdown table: medians over seeds 0, 1, 2.

The true error is known here because all of these problems have exact solutions; the estimate does not use them.
About two minutes.
"""

import time
import warnings
from statistics import median

import pdofm as pf

SEEDS = (0, 1, 2)


def row(name: str) -> str:
    """One line of the table."""
    errors, estimates, seconds = [], [], []
    for seed in SEEDS:
        start = time.perf_counter()
        solution = pf.solve(pf.zoo.get(name), key=seed)
        seconds.append(time.perf_counter() - start)
        errors.append(solution.errors().relative_l2)
        estimates.append(solution.error_estimate)
    stats = solution.stats
    features = f"{stats.features}" if stats.components == 1 else f"{stats.components} x {stats.features}"
    numbers = f"{median(errors):.1e} | {median(estimates):.1e} | {median(seconds):.1f}"
    return f"| {name} | {pf.zoo.describe(name)} | {features} | {numbers} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
    print("| problem | equation | features | relative L2 error | estimated | seconds |")
    print("|---|---|---|---|---|---|")
    for name in pf.zoo.names():
        print(row(name), flush=True)
