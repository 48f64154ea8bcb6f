"""A row of the challenge: a question, the best published answer, and how ours is found and judged."""

import base64
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

import pdofm as pf
from pdofm.errors import PdofmError
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import quiet

REPEATED = 60.0
"""Seconds. A row that took longer is not run a second time."""

DPI = 80
"""Resolution of the pictures in the report."""


@dataclass(frozen=True)
class Published:
    """The best published error that is known.

    Attributes:
        error: None if no one has published any.
        source: who found it, and where it stands.
        verified: whether the number was checked in that publication.
    """

    error: float | None = None
    source: str = ""
    verified: bool = False


@dataclass(frozen=True, eq=False)
class Answer:
    """What was found for a row.

    Attributes:
        error: the true error, relative and in the measure of the row.
        estimate: what the answer itself says of its error, in the same measure.
        converged: its own word.
        how: the space that it was found in.
        features: the size of that space.
        solution: a function to draw, if there is one.
        reference: the error of what it is compared with, by its digits.
    """

    error: float
    estimate: float
    converged: bool
    how: str
    features: int
    solution: pf.Solution | None = None
    reference: float = 0.0


@dataclass(frozen=True, eq=False)
class Row:
    """A question that solvers are compared with.

    Attributes:
        name: the name by which the row is selected.
        group: the part of the table in which it stands.
        question: what is asked, in one line.
        answer: from a tolerance to an answer.
        tol: the tolerance that is asked for by default.
        published: the best published error.
        measure: what kind of error is compared.
        quick: whether the row belongs to the quick subset.
    """

    name: str
    group: str
    question: str
    answer: Callable[[float], Answer]
    tol: float
    published: Published = Published()
    measure: str = "relative L2"
    quick: bool = False

    def case(self, tol: float | None = None) -> Case:
        """The row as a case for the runner. Nothing in it depends on a seed."""
        tol = self.tol if tol is None else tol
        known = {} if self.published.error is None else {"error": self.published.error}
        return Case("challenge", self.name, f"tol = {tol:g}", OURS, partial(_run, self.answer, tol), known, seeds=1)


def of_the_zoo(name: str, group: str, tol: float, published: Published = Published(), *, quick: bool = False) -> Row:
    """The row of a problem of the zoo, which is solved by nothing but ``pf.solve(problem, tol=…)``."""
    return Row(name, group, pf.zoo.describe(name), partial(solved, name), tol, published, quick=quick)


def solved(name: str, tol: float, max_seconds: float | None = None) -> Answer:
    """Solve a problem of the zoo and compare the solution with its reference."""
    problem, reference = pf.zoo.get(name), pf.zoo.reference(name)
    solution = pf.solve(problem, tol=tol, max_seconds=max_seconds)
    if reference is None:
        return answered(solution, math.nan)
    return answered(solution, reference.relative_l2(solution), reference.error)


def answered(solution: pf.Solution, error: float, reference: float = 0.0) -> Answer:
    """The answer that consists of a solution with this error, against a reference with that one."""
    space = solution.space or type(solution.features).__name__
    size = solution.stats.features
    return Answer(error, solution.error_estimate, solution.converged, space, size, solution, reference)


def estimated(answer: Answer, estimate: float, tol: float) -> Answer:
    """The same answer with another estimate, which then decides as well whether it has converged."""
    return replace(answer, estimate=estimate, converged=answer.converged and estimate <= tol)


def _run(answer: Callable[[float], Answer], tol: float, seed: int) -> Measured:
    """Find an answer twice: what the first time has compiled is used again the second time."""
    with quiet():
        start = time.perf_counter()
        found = answer(tol)
        cold = hot = time.perf_counter() - start
        if cold < REPEATED:
            start = time.perf_counter()
            found = answer(tol)
            hot = time.perf_counter() - start
    metrics = {
        "error": found.error,
        "estimated error": found.estimate,
        "error of the reference": found.reference,
        "converged": float(found.converged),
        "features": float(found.features),
        "cold seconds": cold,
        "hot seconds": hot if cold < REPEATED else math.nan,
    }
    return Measured(metrics, {"space": [found.how], "picture": _picture(found.solution)})


def _picture(solution: pf.Solution | None) -> list[str]:
    """A picture of a solution and, if the exact one is known, of its error, as base64; empty if it cannot be drawn."""
    if solution is None or not np.isfinite(solution.error_estimate):
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solution.png"
        try:
            pf.plot.save(solution.plot(), path, dpi=DPI)
        except PdofmError:  # such as a solution in a hundred dimensions
            return []
        return [base64.b64encode(path.read_bytes()).decode()]


def largest_relative(found: ArrayLike, truth: ArrayLike) -> float:
    """The largest relative error of some numbers."""
    a, b = np.asarray(found), np.asarray(truth)
    return float(np.max(np.abs(a - b) / np.abs(b))) if a.shape == b.shape else math.inf
