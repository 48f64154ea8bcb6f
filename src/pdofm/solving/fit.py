"""One solve with given features: validate, choose what is not given, run a method, wrap the answer."""

from dataclasses import replace
from typing import Any

from pdofm._types import Key
from pdofm.discrete.defaults import default_counts
from pdofm.discrete.discretisation import Discretisation, discretise
from pdofm.discrete.look import Look
from pdofm.discrete.memory import Memory
from pdofm.discrete.shared import discretise_shared
from pdofm.discrete.system import System
from pdofm.errors import NonlinearError, SolveError
from pdofm.features import BoxPolynomials, Features
from pdofm.numerics.executor import executor_of
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
    cluster: Any = None,
) -> Solution:
    """Solve a problem in given features, without warnings: the verdict of the solution says whether it converged.

    The arguments are those of `solve`; `memory` holds what is known from solving the same problem before.
    """
    _check_method(method)
    if isinstance(features, BoxPolynomials):
        check_given_in_boxes("solve", points, boundary_points, sampling, method)
        return fit_given(problem, features, method, tol, key, cluster)
    clock, stated = Clock(), (problem, features, points, boundary_points, sampling, key)
    with clock("points"):
        if cluster is None:
            discretisation = discretise("solve", *stated, memory)
        else:
            discretisation = discretise_shared("solve", *stated, executor=executor_of(cluster))
        discretisation = discretisation.with_held_out()
    features = discretisation.features
    with clock("assemble"):
        system = (method or Linear()).system(discretisation)
    with clock("solve"):
        outcome = _run(method, discretisation, system)
    with clock("estimate"):
        found = estimate(discretisation, outcome)
    stats = Stats(
        rows=outcome.residuals.rows,
        features=features.size,
        components=problem.layout.components,
        rank=outcome.factorization.rank,
        condition=outcome.factorization.condition,
        residuals=_residuals(outcome, found.look),
        held_out_residual=found.look.scaled.mean,
        seconds=clock.seconds,
        steps=outcome.steps,
        undetermined=found.undetermined,
    )
    evidence = replace(
        gathered(discretisation, found.undetermined),
        tol=tol,
        iteration=outcome.verdict,
        estimate=found.error,
        violations=_violations(found.look),
        hidden=missed_flux(problem, features, outcome.coefficients),
    )
    return Solution(problem, features, outcome.coefficients, found.error, judge(evidence), stats)


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


def _residuals(outcome: Outcome, look: Look) -> dict[str, Residual]:
    """The residual of each term, at fitted and held-out points."""
    fitted, others = outcome.residuals.rms, look.raw.rms
    return {name: Residual(fitted[name], others[name]) for name in fitted}


def _violations(look: Look) -> dict[str, float]:
    """The scaled residual of each term at held-out points, as a fraction of all scaled data."""
    data = look.data.mean
    return {name: rms / data if data > 0 else 0.0 for name, rms in look.scaled.rms.items()}


def gathered(discretisation: Discretisation, free: float) -> Evidence:
    """The evidence that is known before anything is solved: numbers of points and features, and whether the solution
    is unique, from the fraction `free` of a random function that the problem does not see."""
    usual, _ = default_counts(discretisation.problem, discretisation.features.size)
    inside = discretisation.interior_points
    return Evidence(undetermined=free, features=discretisation.features.size, points=inside, usual_points=usual)
