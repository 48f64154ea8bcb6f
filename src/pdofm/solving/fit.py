"""One solve with given features: validate, choose what is not given, run a method, wrap the answer."""

from collections.abc import Mapping
from typing import Any

from pdofm._types import Key
from pdofm.discrete.discretisation import Discretisation, discretise
from pdofm.discrete.memory import Memory
from pdofm.discrete.right import check_size
from pdofm.discrete.shared import discretise_shared
from pdofm.errors import SolveError
from pdofm.features import InBoxes
from pdofm.numerics.executor import executor_of
from pdofm.numerics.numbers import as_count, as_number
from pdofm.problem.problem import Problem
from pdofm.solving.balance import balanced
from pdofm.solving.clock import Clock
from pdofm.solving.conclude import concluded
from pdofm.solving.given import check_given_in_boxes, fit_given
from pdofm.solving.inference import check_numbers, infer
from pdofm.solving.methods import Linear, Method, Newton, Outcome, Picard, run
from pdofm.solving.solution import Solution


def fit(
    problem: Problem,
    features: Any = None,
    *,
    method: Method | None = None,
    points: int | None = None,
    boundary_points: int | None = None,
    sampling: str = "sobol",
    tol: float | None = None,
    key: Key = 0,
    memory: Memory | None = None,
    cluster: Any = None,
    numbers: Mapping[str, float] | None = None,
) -> Solution:
    """Solve a problem in given features, without warnings: the verdict of the solution says whether it converged.

    The arguments are those of `solve`; `memory` holds what is known from solving the same problem before, and
    `numbers` where the search for unknown numbers starts.
    """
    _check_method(method)
    if isinstance(problem, Problem) and problem.parameters.names:
        check_numbers(problem, features, method)
    if isinstance(features, InBoxes):
        check_given_in_boxes("solve", points, boundary_points, sampling, method)
        return fit_given(problem, features, method, tol, key, cluster)
    clock, stated = Clock(), (problem, features, points, boundary_points, sampling, key)
    with clock("points"):
        if cluster is None:
            discretisation = discretise("solve", *stated, memory)
        else:
            _check_shared(problem)
            discretisation = discretise_shared("solve", *stated, executor=executor_of(cluster))
        discretisation = discretisation.with_held_out()
    if problem.parameters.names:
        return infer(discretisation, method, clock, tol, numbers or {})
    return fit_at(discretisation, method, tol, clock)[0]


def fit_at(
    discretisation: Discretisation, method: Method | None, tol: float | None, clock: Clock
) -> tuple[Solution, Outcome]:
    """The solution at the points of a discretisation, which has some that are held out, and how it was found."""
    with clock("assemble"):
        system = (method or Linear()).system(discretisation)
        check_size(system.right, discretisation.problem.name)
    with clock("solve"):
        outcome = run(method, discretisation, system)
        discretisation, outcome = balanced(method, discretisation, outcome)
    return concluded(discretisation, outcome, clock, tol), outcome


def _check_method(method: object) -> None:
    if method is not None and not isinstance(method, Method):
        called = method.__name__ if isinstance(method, type) else str(method).capitalize()
        example = f"{called}()" if called in ("Linear", "Newton", "Picard") else "Newton()"
        raise SolveError(
            f"method= takes Linear(), Newton() or Picard(); got {method!r}. Write method={example}, or leave it out."
        )
    if isinstance(method, Newton | Picard):
        as_count(method.max_steps, f"max_steps of {type(method).__name__}", SolveError)
        as_number(method.tol, f"tol of {type(method).__name__}", SolveError, least=0.0)
        as_number(method.stall, f"stall of {type(method).__name__}", SolveError, least=0.0)


def _check_shared(problem: Problem) -> None:
    if isinstance(problem, Problem) and problem.parameters.names:
        raise SolveError(f"{problem.name!r} has unknown numbers, which are found in one process. Leave cluster= out.")
