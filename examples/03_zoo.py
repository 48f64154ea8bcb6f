"""Every basic problem of the zoo by default `solve`, as a Markdown table: medians over seeds 0, 1, 2.

The true error is known here because all of these problems have exact solutions; the estimate does not use them.
About two minutes.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

import pdofm as pf


class Row(NamedTuple):
    """One line of the table: medians over the seeds."""

    name: str
    features: str
    error: float
    estimate: float
    seconds: float

    def __str__(self) -> str:
        numbers = f"{self.error:.1e} | {self.estimate:.1e} | {self.seconds:.1f}"
        return f"| {self.name} | {pf.zoo.describe(self.name)} | {self.features} | {numbers} |"


def main(names: Iterable[str] | None = None, seeds: Iterable[int] = (0, 1, 2)) -> Iterator[Row]:
    """Solve the named problems, by default all basic ones; yields a row as soon as it is measured."""
    for name in pf.zoo.names("basic") if names is None else names:
        yield row(name, seeds)


def row(name: str, seeds: Iterable[int]) -> Row:
    """Solve one problem with every seed."""
    errors, estimates, seconds = [], [], []
    for seed in seeds:
        start = time.perf_counter()
        solution = pf.solve(pf.zoo.get(name), key=seed)
        seconds.append(time.perf_counter() - start)
        errors.append(solution.errors().relative_l2)
        estimates.append(solution.error_estimate)
    stats = solution.stats
    features = f"{stats.features}" if stats.components == 1 else f"{stats.components} x {stats.features}"
    return Row(name, features, median(errors), median(estimates), median(seconds))


if __name__ == "__main__":
    warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
    print("| problem | equation | features | relative L2 error | estimated | seconds |")
    print("|---|---|---|---|---|---|")
    for each in main():
        print(each, flush=True)
