"""The random feature method and TransNet, as published and with a scale chosen by the held-out residual.

Relative L2 errors, medians over seeds 0, 1, 2 (one seed for the cube), beside those that Jia and Wang (2026) report for
the two methods. "As published": uniform weights and biases in (-1, 1), tanh, a partition of unity of 2 subdomains per
axis (window b, and window a with continuity rows); TransNet with its shape parameter tuned on Gaussian random fields.
About five minutes. Prints a Markdown table.
"""

import warnings
from collections.abc import Callable
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


def row(name: str) -> str:
    """One line of the table."""
    size, grid, used, published_rfm, published_transnet = CASES[name]
    problem, seeds = pf.zoo.get(name), (0,) if name == "poisson-cube" else (0, 1, 2)

    def error(build: Callable[[int], pf.Features]) -> str:
        found = [pf.solve(problem, build(seed), key=seed).errors().relative_l2 for seed in seeds]
        return f"{median(found):.1e}"

    def local(seed: int, window: str = "b") -> pf.Features:
        return partition(problem, size // used, grid, window, seed)

    cells = [
        f"{published_rfm:.1e}",
        error(local),
        error(lambda seed: local(seed, "a")),
        error(lambda seed: pf.tune_scale(problem, local(seed), key=seed)),
        f"{published_transnet:.1e}",
        error(lambda seed: pf.TransNet.tune(problem.domain, size, key=seed)),
        error(lambda seed: pf.tune_scale(problem, pf.TransNet(problem.domain, size, key=seed), key=seed)),
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
    print(
        "| problem | RFM published | window b | window a | scale chosen | TransNet published | tuned | scale chosen |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in CASES:
        print(row(name), flush=True)
