"""One solve with given features: validate, choose what is not given, run a method, wrap the answer."""

from collections.abc import Mapping
from dataclasses import replace

from pdofm._types import Key
from pdofm.discrete.discretisation import discretise
from pdofm.discrete.memory import Memory
from pdofm.errors import SolveError
from pdofm.features import Features, InBoxes
from pdofm.problem.problem import Problem
from pdofm.solving.clock import Clock
from pdofm.solving.conclude import concluded
from pdofm.solving.given import check_given_in_boxes, fit_given
from pdofm.solving.inference import infer
from pdofm.solving.methods import Linear, Method, run
from pdofm.solving.solution import Solution


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
    numbers: Mapping[str, float] | None = None,
) -> Solution:
    """Solve a problem in given features, without warnings: the verdict of the solution says whether it converged.

    The arguments are those of `solve`; `memory` holds what is known from solving the same problem before, and
    `numbers` where the search for unknown numbers starts.
    """
    _check_method(method)
    if isinstance(features, InBoxes):
        check_given_in_boxes("solve", points, boundary_points, sampling, method)
        return fit_given(problem, features, method, tol, key)
    clock = Clock()
    with clock("points"):
        discretisation = discretise("solve", problem, features, points, boundary_points, sampling, key, memory)
        others = discretisation.other_points(discretisation.features.size)
        discretisation = replace(discretisation, held_out=others)
    if problem.parameters.names:
        return infer(discretisation, method, clock, tol, numbers or {})
    with clock("assemble"):
        system = (method or Linear()).system(discretisation)
    with clock("solve"):
        outcome = run(method, discretisation, system)
    return concluded(discretisation, outcome, clock, tol)


def _check_method(method: object) -> None:
    if method is not None and not isinstance(method, Method):
        called = method.__name__ if isinstance(method, type) else str(method).capitalize()
        example = f"{called}()" if called in ("Linear", "Newton", "Picard") else "Newton()"
        raise SolveError(
            f"method= takes Linear(), Newton() or Picard(); got {method!r}. Write method={example}, or leave it out."
        )
