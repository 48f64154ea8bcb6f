"""One solve in given boxes: block QR instead of dense least squares, with an estimate from lower degrees."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pdofm._types import Coefficients, Key
from pdofm.calculus.terms import Average
from pdofm.discrete.boxed import cover_of, random_polynomial, sensitivity, undetermined
from pdofm.discrete.checks import check_fit, check_problem
from pdofm.discrete.cover import by_patch
from pdofm.discrete.materials import AnyCover
from pdofm.errors import FeaturesError, NonlinearError, SolveError
from pdofm.features import InBoxes
from pdofm.numerics.executor import Executor, executor_of
from pdofm.numerics.nodes import tensor_chebyshev
from pdofm.numerics.sampling import generator
from pdofm.problem.problem import Problem
from pdofm.solving.boxes import BoxFit, distance, fit_boxes, nonlinear_names
from pdofm.solving.clock import Clock
from pdofm.solving.ending import START_NEARER
from pdofm.solving.methods import Linear, Method, Newton
from pdofm.solving.solution import Solution
from pdofm.solving.start import start_values
from pdofm.solving.verdict import NOT_UNIQUE, Evidence, Status, Verdict, judge

SAFETY = 3.0
"""The estimate is so many times what the coarser solution suggests: it is meant to be too small in one case of ten."""

RANDOM = 0.3
"""Random data are smaller than residuals by this: they move a solution more than what a least-squares fit leaves."""

LEAST_FALL = 0.05
"""Errors are never taken to fall by less than this fraction: rounding may keep them from falling at all."""

LEAST_FACTOR = 1e-3
"""The error is never taken to be a smaller part of the indicator than this."""


def check_given_in_boxes(
    caller: str, points: int | None, boundary_points: int | None, sampling: str, method: Method | None
) -> None:
    """Refuse arguments that features in boxes have no use for."""
    if points is not None or boundary_points is not None or sampling != "sobol":
        raise SolveError(
            f"{caller}() places the points of features in boxes by itself. Leave out points=, boundary_points= and "
            "sampling=."
        )
    if method is not None and not (isinstance(method, Linear | Newton) and method.lstsq == type(method)().lstsq):
        raise SolveError(
            f"Features in boxes are solved by a block QR; got method={method!r}. Give Linear() or Newton() without "
            "lstsq=, or other features."
        )


def executor_for(problem: Problem, cluster: Any) -> Executor | None:
    """The executor that eliminates boxes on a cluster, if there is one; means join all boxes and are refused there."""
    if cluster is not None and any(isinstance(term.on, Average) for term in problem.terms):
        raise SolveError(
            f"{problem.name!r} has a condition on a mean, which joins all boxes: these are eliminated in one process. "
            "Leave cluster= out, or give other features."
        )
    return None if cluster is None else executor_of(cluster)


def fit_given(
    problem: Problem, features: InBoxes, method: Method | None, tol: float | None, key: Key, cluster: Any = None
) -> Solution:
    """Solve a problem in given boxes."""
    check_problem("solve", problem)
    check_fit(problem, features)
    newton = method if isinstance(method, Newton) else Newton()
    nonlinear = nonlinear_names(problem)
    if nonlinear and isinstance(method, Linear):
        raise NonlinearError(
            f"Linear() needs a linear problem, but {' and '.join(map(repr, nonlinear))} of {problem.name!r} is not "
            "linear in the unknown. Use method=Newton()."
        )
    executor = executor_for(problem, cluster)
    clock, seed = Clock(), int(generator(key).integers(2**31))
    steps = {"rtol": newton.tol, "most_steps": newton.max_steps}
    with clock("points"):
        cover = cover_of(problem.domain, features)
        probe = random_polynomial(problem, cover)
        start = _start(newton, cover, problem)
    with clock("coarse"):
        coarse = fit_boxes(
            problem, cover_of(problem.domain, features, coarser=True), start, seed=seed, executor=executor, **steps
        )
    with clock("solve"):
        fine = fit_boxes(problem, cover, start or coarse.iterate, seed=seed, probe=probe, executor=executor, **steps)
    with clock("estimate"):
        free = undetermined(fine.local, fine.system, probe, fine.fresh)
        error = max(_estimate(coarse, fine), _amplified(fine), fine.missed, free if free <= NOT_UNIQUE else 1.0)
    iteration = _ended(fine, newton) if nonlinear else None
    evidence = Evidence(tol=tol, iteration=iteration, estimate=error, undetermined=free, features=features.size)
    finer = None if free > NOT_UNIQUE else "use smaller boxes or higher degrees, or solve(problem, tol=…)"
    stats = fine.stats(clock.seconds, undetermined=free)
    return Solution(problem, fine.features, fine.coefficients, error, judge(evidence, finer), stats)


def _start(newton: Newton, cover: AnyCover, problem: Problem) -> tuple[InBoxes, Coefficients] | None:
    """The function that an iteration starts from; None for zero."""
    initial, components, features = newton.initial, problem.layout.components, cover.features
    if initial is None:
        return None
    space = getattr(initial, "features", None)
    if isinstance(space, InBoxes):
        return space, initial.coefficients
    if callable(initial) or isinstance(initial, Mapping) or np.ndim(initial) == 0:
        return features, _fitted(initial, cover, problem)
    c = np.asarray(initial, dtype=np.float64)
    if c.shape != (features.size, components):
        raise FeaturesError(
            f"initial= has coefficients of shape {c.shape}; expected coefficients of shape "
            f"{(features.size, components)}, a solution, a number, or a function of the point."
        )
    return features, c


def _fitted(initial: Any, cover: AnyCover, problem: Problem) -> Coefficients:
    """The coefficients that fit a function best, in each box at points of the domain."""
    patches, dim = cover.features.patches, problem.domain.dim
    points, owner = cover.interior([tensor_chebyshev(tuple((along + 2).tolist())) for along in patches.along])
    values = start_values(initial, problem.layout, points)
    found = np.zeros((cover.features.size, problem.layout.components))
    for patch, here in enumerate(by_patch(owner, len(patches))):
        rows = patches.jets(patch, points[here], [(0,) * dim])[0]
        found[patches.of(patch)] = np.linalg.lstsq(rows, values[here], rcond=1e-12)[0]
    return found


def _estimate(coarse: BoxFit, fine: BoxFit) -> float:
    """The estimated relative error. The ratio of errors is taken to be that of the indicators, of what is seen of the
    errors: e(fine) = ρ e(coarse). As the two solutions are e(coarse) - e(fine) apart at least, e(fine) is at most
    ρ / (1 - ρ) times their distance, much more than that where errors fall slowly."""
    before, after = (float(np.max(each.indicator)) for each in (coarse, fine))
    if not np.isfinite(after):
        return np.inf
    ratio = after / before if before > 0 else 0.0
    error = distance(coarse, fine, []) * ratio / max(1 - ratio, LEAST_FALL)
    return max(SAFETY * max(error, LEAST_FACTOR * after), fine.left)


def _amplified(found: BoxFit) -> float:
    """What random data nearly as large as the residuals that are left would do to the solution, relative to it. It is
    large where a function that the features nearly contain is hardly determined by the problem."""
    moved = sensitivity(found.local, found.system, found.fresh, found.weights)
    return RANDOM * moved * float(np.sqrt(np.mean(found.indicator**2)))


def _ended(found: BoxFit, newton: Newton) -> Verdict:
    """The verdict on Newton's iteration."""
    change = found.steps[-1]["change"]
    if not np.isfinite(change):
        return Verdict(Status.DIVERGED, "the iteration diverged: the residual is no longer finite", START_NEARER)
    if found.left <= newton.tol or change <= newton.stall:
        return Verdict(Status.CONVERGED, f"the last step of Newton's iteration moved the solution by {change:.0e}")
    message = f"{newton.max_steps} steps did not suffice; the last one still moved the solution by {change:.0e}"
    return Verdict(Status.OUT_OF_STEPS, message, "allow more (max_steps=), or start nearer (initial=)")
