"""One solve with given features: validate, choose what is not given, run a method, wrap the answer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from pdofm._types import Key
from pdofm.discrete.assemble import Memory
from pdofm.discrete.defaults import default_counts
from pdofm.discrete.discretisation import Discretisation, discretise
from pdofm.errors import NonlinearError
from pdofm.features import Features
from pdofm.problem.problem import Problem
from pdofm.solving.estimate import UNSEEN, estimate_error, undetermined
from pdofm.solving.methods import Linear, Method, Newton, Outcome
from pdofm.solving.solution import Residual, Solution, Stats

ACCEPTABLE = 1e-2
"""Without a tolerance a solution counts as converged if its estimated relative error is below this: two digits."""


ROUNDING = 1e-15
"""No tolerance below this can be met in float64."""

VIOLATED = 0.05
"""A term whose (scaled) residual at points that were not fitted exceeds this fraction of all data is not solved."""

NOT_DETERMINED = "not determined: there are functions that neither the equation nor the conditions see at the points"

SATISFIED = 1e-8
"""Below this fraction of all data nothing is violated."""


def fit(
    problem: Problem,
    features: Features | int | None = None,
    *,
    method: Method | None = None,
    points: int | None = None,
    boundary_points: int | None = None,
    sampling: str = "sobol",
    tol: float | None = None,
    key: Key = 0,
    memory: Memory | None = None,
) -> Solution:
    """What `solve` does for given features; never warns, the solution says whether it has converged. `memory` is what
    is known from solving the same problem before."""
    clock = Clock()
    with clock("points"):
        discretisation = discretise("solve", problem, features, points, boundary_points, sampling, key, memory)
        held_out = discretisation.other_points(discretisation.features.size)
        discretisation = replace(discretisation, held_out=held_out)
    features, size = discretisation.features, discretisation.features.size
    with clock("assemble"):
        first = Linear() if method is None else method
        system = first.system(discretisation)
    with clock("solve"):
        try:
            outcome = first.run(discretisation, system)
        except NonlinearError:
            if method is not None:
                raise
            outcome = Newton().run(discretisation, system)
    with clock("estimate"):
        unseen = outcome.unseen or discretisation.system(
            outcome.coefficients, held_out, check=True, fold=False, role="held out"
        )
        estimate = estimate_error(features, outcome, unseen, held_out[0].points)
        free = undetermined(features, outcome.factorization, held_out[0].points)
        estimate = max(estimate, free if free <= UNSEEN else 1.0)
    residuals = {
        name: Residual(_rms(outcome.residual[rows]), _rms((unseen.left - unseen.right)[unseen.rows[name]]))
        for name, rows in outcome.rows.items()
    }
    stats = Stats(
        rows=len(outcome.residual),
        features=size,
        components=problem.layout.components,
        rank=outcome.factorization.rank,
        condition=outcome.factorization.condition,
        residuals=residuals,
        held_out=_rms(unseen.b),
        seconds=clock.seconds,
        steps=outcome.steps,
        finished=outcome.converged,
        undetermined=free,
    )
    data = _rms(unseen.scales * unseen.right)
    violated = {name: _rms(unseen.b[rows]) / data if data > 0 else 0.0 for name, rows in unseen.rows.items()}
    remedy = advice(discretisation, estimate, max(violated.values()), free)
    converged, reason = _judge(outcome, estimate, violated, free, tol, remedy)
    return Solution(problem, features, outcome.coefficients, estimate, converged, reason, stats)


def advice(discretisation: Discretisation, estimate: float = 0.0, violated: float = 1.0, free: float = 0.0) -> str:
    """What to change where the answer is not good enough: points, if there are fewer than usual, else features, and
    the problem itself where nothing is solved, or where all is satisfied and the answer still uncertain."""
    usual, _ = default_counts(discretisation.problem, discretisation.features.size)
    inside = len(discretisation.blocks[0].points)
    if inside < usual / 2:
        return (
            f"use more points: {inside} inside for {discretisation.features.size} features, usual are {usual} (points=)"
        )
    if free > UNSEEN:
        return "add a condition, such as a value at a point, or points"
    if estimate <= ACCEPTABLE:
        return "use more features"
    if violated < SATISFIED:
        return "yet all that the problem asks for is satisfied: it leaves the solution undetermined, add a condition"
    return "use more features, unless the conditions contradict each other or leave the solution undetermined"


def _judge(
    outcome: Outcome, estimate: float, violated: dict[str, float], free: float, tol: float | None, remedy: str
) -> tuple[bool, str]:
    accepted = ACCEPTABLE if tol is None else tol
    if not outcome.converged:
        return False, outcome.reason
    if free > UNSEEN:
        return False, f"it is {NOT_DETERMINED}; {remedy}"
    if accepted < ROUNDING < estimate:
        return False, (
            f"the estimated relative error is {estimate:.1e}; {accepted:g} is beyond what rounding allows in float64"
        )
    if not estimate <= accepted:
        return (
            False,
            f"the estimated relative error {estimate:.1e} is above {accepted:g}; {remedy}",
        )
    worst = max(violated, key=lambda name: violated[name])
    if violated[worst] > VIOLATED:
        return False, (
            f"{worst!r} is violated at points that were not fitted, by {violated[worst]:.0%} of the data; conditions "
            "may contradict each other, or points or features are too few"
        )
    return True, outcome.reason


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


class Clock:
    """Seconds per phase."""

    def __init__(self):
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = time.perf_counter() - start
