"""The random feature method and TransNet, as published and with a scale chosen by the held-out residual.

Relative L2 errors, medians over seeds 0, 1, 2 (one seed for the cube), beside those that Jia and Wang (2026) report for
the two methods. "As published": uniform weights and biases in (-1, 1), tanh, a partition of unity of 2 subdomains per
axis (window b, and window a with continuity rows); TransNet with its shape parameter tuned on Gaussian random fields.
About five minutes. Prints a Markdown table.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median

import pdofm as pf

# problem: features, subdomains per axis, subdomains in use, published errors of the random feature method and TransNet
CASES = {
    "helmholtz-1d": (100, 2, 2, 9.64e-9, 1.43e-3),
    "poisson-square": (500, 2, 4, 1.73e-5, 1.43e-7),
    "poisson-lshape": (500, 2, 3, 2.48e-6, 5.16e-9),
    "poisson-annulus": (500, 2, 4, 4.50e-8, 2.23e-9),
    "poisson-cube": (600, 2, 8, 1.38e-1, 2.03e-4),
}


def partition(problem: pf.Problem, size: int, grid: int, window: str, seed: int) -> pf.Features:
    """The random feature method's space with `size` features in each subdomain."""

    def inner(box: pf.Box, key: int) -> pf.Features:
        return pf.RandomFeatures(box, size, initialisation="uniform", key=key)

    return pf.PartitionOfUnity(inner, problem.domain, grid, window=window, key=seed)


def main(names: Iterable[str] = CASES, seeds: Sequence[int] = (0, 1, 2)) -> Iterator[tuple[str, dict[str, float]]]:
    """Solve the named problems; yields each name with its errors by column, as soon as they are measured."""
    for name in names:
        yield name, errors(name, seeds[:1] if name == "poisson-cube" else seeds)


def errors(name: str, seeds: Sequence[int]) -> dict[str, float]:
    """The published and the measured errors of one problem, medians over the seeds."""
    size, grid, used, published_rfm, published_transnet = CASES[name]
    problem = pf.zoo.get(name)

    def error(build: Callable[[int], pf.Features]) -> float:
        return median(pf.solve(problem, build(seed), key=seed).errors().relative_l2 for seed in seeds)

    def local(seed: int, window: str = "b") -> pf.Features:
        return partition(problem, size // used, grid, window, seed)

    return {
        "RFM published": published_rfm,
        "window b": error(local),
        "window a": error(lambda seed: local(seed, "a")),
        "RFM, scale chosen": error(lambda seed: pf.tune_scale(problem, local(seed), key=seed)),
        "TransNet published": published_transnet,
        "tuned": error(lambda seed: pf.TransNet.tune(problem.domain, size, key=seed)),
        "TransNet, scale chosen": error(
            lambda seed: pf.tune_scale(problem, pf.TransNet(problem.domain, size, key=seed), key=seed)
        ),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
    for i, (name, found) in enumerate(main()):
        if i == 0:
            print(f"| problem | {' | '.join(found)} |")
            print("|---" * (1 + len(found)) + "|")
        print(f"| {name} | {' | '.join(f'{value:.1e}' for value in found.values())} |", flush=True)
