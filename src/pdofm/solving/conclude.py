"""From the outcome of a method to a solution: its error estimate, its statistics and the verdict on it."""

from dataclasses import replace

import numpy as np

from pdofm.discrete.defaults import default_counts
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.system import System
from pdofm.solving.clock import Clock
from pdofm.solving.estimate import estimate
from pdofm.solving.methods import Outcome
from pdofm.solving.solution import Solution
from pdofm.solving.stats import Residual, Stats
from pdofm.solving.steep import missed_flux
from pdofm.solving.verdict import Evidence, judge


def concluded(discretisation: Discretisation, outcome: Outcome, clock: Clock, tol: float | None) -> Solution:
    """The solution of a discretisation with held-out points, from what a method found."""
    problem, features, others = discretisation.problem, discretisation.features, discretisation.held_out
    with clock("estimate"):
        held_out = outcome.held_out or discretisation.system(
            outcome.coefficients, others, check=True, fold=False, role="held out"
        )
        found = estimate(features, outcome, held_out, others[0].points)
    stats = Stats(
        rows=len(outcome.residual),
        features=features.size,
        components=problem.layout.components,
        rank=outcome.factorization.rank,
        condition=outcome.factorization.condition,
        residuals=_residuals(outcome, held_out),
        held_out_residual=_rms(held_out.b),
        seconds=clock.seconds,
        steps=outcome.steps,
        undetermined=found.undetermined,
    )
    evidence = replace(
        gathered(discretisation, found.undetermined),
        tol=tol,
        iteration=outcome.verdict,
        estimate=found.error,
        violations=_violations(held_out),
        hidden=missed_flux(problem, features, outcome.coefficients),
    )
    return Solution(problem, features, outcome.coefficients, found.error, judge(evidence), stats)


def _residuals(outcome: Outcome, held_out: System) -> dict[str, Residual]:
    """The residual of each term, at fitted and held-out points."""
    others = held_out.left - held_out.right
    return {
        name: Residual(_rms(outcome.residual[rows]), _rms(others[held_out.rows[name]]))
        for name, rows in outcome.rows.items()
    }


def _violations(held_out: System) -> dict[str, float]:
    """The scaled residual of each term at held-out points, as a fraction of all scaled data."""
    data = _rms(held_out.scales * held_out.right)
    return {name: _rms(held_out.b[rows]) / data if data > 0 else 0.0 for name, rows in held_out.rows.items()}


def gathered(discretisation: Discretisation, free: float) -> Evidence:
    """The evidence that is known before anything is solved: numbers of points and features, and whether the solution
    is unique, from the fraction `free` of a random function that the problem does not see."""
    usual, _ = default_counts(discretisation.problem, discretisation.features.size)
    inside = len(discretisation.blocks[0].points)
    return Evidence(undetermined=free, features=discretisation.features.size, points=inside, usual_points=usual)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))
