"""One solve with given features: validate, choose what is not given, run a method, wrap the answer."""

from dataclasses import replace

import numpy as np

from pdofm._types import Key
from pdofm.discrete.defaults import default_counts
from pdofm.discrete.discretisation import Discretisation, discretise
from pdofm.discrete.memory import Memory
from pdofm.discrete.system import System
from pdofm.errors import NonlinearError, SolveError
from pdofm.features import BoxPolynomials, Features
from pdofm.problem.problem import Problem
from pdofm.solving.clock import Clock
from pdofm.solving.estimate import estimate
from pdofm.solving.given import check_given_in_boxes, fit_given
from pdofm.solving.methods import Linear, Method, Newton, Outcome
from pdofm.solving.solution import Solution
from pdofm.solving.stats import Residual, Stats
from pdofm.solving.steep import missed_flux
from pdofm.solving.verdict import Evidence, judge


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
    """Solve a problem in given features, without warnings: the verdict of the solution says whether it converged.

    The arguments are those of `solve`; `memory` holds what is known from solving the same problem before.
    """
    _check_method(method)
    if isinstance(features, BoxPolynomials):
        check_given_in_boxes("solve", points, boundary_points, sampling, method)
        return fit_given(problem, features, method, tol, key)
    clock = Clock()
    with clock("points"):
        discretisation = discretise("solve", problem, features, points, boundary_points, sampling, key, memory)
        others = discretisation.other_points(discretisation.features.size)
    return fit_at(replace(discretisation, held_out=others), method, tol, clock)[0]


def fit_at(
    discretisation: Discretisation, method: Method | None, tol: float | None, clock: Clock
) -> tuple[Solution, Outcome]:
    """The solution at the points of a discretisation, which has some that are held out, and how it was found."""
    problem, features, others = discretisation.problem, discretisation.features, discretisation.held_out
    with clock("assemble"):
        system = (method or Linear()).system(discretisation)
    with clock("solve"):
        outcome = _run(method, discretisation, system)
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
    return Solution(problem, features, outcome.coefficients, found.error, judge(evidence), stats), outcome


def _run(method: Method | None, discretisation: Discretisation, system: System) -> Outcome:
    """Run the method; without one, try a linear solve, and Newton's method if the problem turns out nonlinear."""
    try:
        return (method or Linear()).run(discretisation, system)
    except NonlinearError:
        if method is not None:
            raise
        return Newton().run(discretisation, system)


def _check_method(method: object) -> None:
    if method is not None and not isinstance(method, Method):
        called = method.__name__ if isinstance(method, type) else str(method).capitalize()
        example = f"{called}()" if called in ("Linear", "Newton", "Picard") else "Newton()"
        raise SolveError(
            f"method= takes Linear(), Newton() or Picard(); got {method!r}. Write method={example}, or leave it out."
        )


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
