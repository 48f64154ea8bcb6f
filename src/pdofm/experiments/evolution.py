"""Solve the evolution problems of the zoo with nothing but a tolerance, beside the best published values."""

import time
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import quiet


class Row(NamedTuple):
    """A tolerance, the best published relative L2 error that we know (None if none), and where it is from. Values whose
    source says "unverified" were not checked in the publication."""

    tol: float
    published: float | None = None
    source: str = ""


UNVERIFIED = "unverified"

ROWS = {
    "burgers-sine": Row(1e-10, 8e-9, f"network with SSBroyden's optimiser, hours; {UNVERIFIED}"),
    "burgers-sine-1000": Row(1e-9, 2.7e-7, f"network; {UNVERIFIED}"),
    "burgers-sine-10000": Row(1e-8),
    "allen-cahn": Row(1e-9, 1.9e-6, f"network; {UNVERIFIED}"),
    "korteweg-de-vries": Row(1e-9, 2.2e-6, f"network; {UNVERIFIED}"),
    "kuramoto-sivashinsky": Row(1e-6, 1.4e-4, f"network; {UNVERIFIED}"),
    "advection-40": Row(1e-11, 8.4e-9, f"features, 0.7 s; {UNVERIFIED}"),
    "advection-10000": Row(1e-9, 1e-4, f"an upper bound; {UNVERIFIED}"),
    "advection-long": Row(1e-9, 1e-5, f"an upper bound, 0.9 s; {UNVERIFIED}"),
    "wave-modes": Row(1e-12, 1.8e-6, f"features, 0.6 s; {UNVERIFIED}"),
    "wave-modes-long": Row(1e-9),
    "beam": Row(1e-10, 9.3e-9, f"6.9 s; {UNVERIFIED}"),
    "heat-corner": Row(1e-8),
    "reaction-front": Row(1e-8),
    "taylor-green": Row(1e-8),
    "fisher-front": Row(1e-8),
}
"""By problem."""

HALF = "relative L2 until half the time"
"""A metric of chaotic problems."""


def cases() -> Iterator[Case]:
    """Every evolution problem. Nothing is random, so that one seed is enough."""
    for name in pf.zoo.names("evolution"):
        row = ROWS[name]
        published = {} if row.published is None else {"relative L2": row.published}
        yield Case("evolution", name, f"tol = {row.tol:g}", OURS, partial(_run, name, row.tol), published, seeds=1)


def _run(name: str, tol: float, seed: int) -> Measured:
    """Solve a problem twice: the second time what the first has compiled is used again."""
    problem, seconds = pf.zoo.get(name), {}
    for state in ("cold seconds", "hot seconds"):
        start = time.perf_counter()
        with quiet():
            solution = pf.solve(problem, tol=tol, key=seed)
        seconds[state] = time.perf_counter() - start
    reference = pf.zoo.reference(name)
    assert reference is not None, "every evolution problem has an exact solution or a reference"
    error = reference.relative_l2(solution)
    domain = problem.domain
    assert isinstance(domain, pf.SpaceTime)
    metrics = {
        "relative L2": error,
        HALF: reference.until((domain.t0 + domain.t1) / 2).relative_l2(solution),
        "estimated error": solution.error_estimate,
        "converged": float(solution.converged),
        "slabs": float(len(solution.slabs)) if isinstance(solution, pf.Evolution) else 0.0,
        "error of the reference": reference.error,
    }
    return Measured(metrics | seconds, {"source": [ROWS[name].source]})
