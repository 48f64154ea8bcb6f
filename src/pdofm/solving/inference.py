"""Unknown numbers and coefficients from data: Gauss-Newton over the solutions of the equation.

The equation is taken to be exact, and data to be noisy. So the function u is determined by the parameters p: it is the
least-squares solution of the equation and the conditions. What is minimised is the misfit of the data,

    Σ ρ(r_i²),    r_i = (of(u(p), p)(x_i) - value_i) / noise_i,

over the parameters alone. Their influence on u comes from the factorisation that gave u: with A the matrix of the
linearised equation, and B the derivatives of its left sides with respect to p,

    ∂u/∂p = -A⁺ B,    ∂r/∂p = (D ∂u/∂p + E) / noise,

where D and E are the derivatives of the measured quantity with respect to u and p. Without data the conditions must
determine the parameters: then r is the residual of the equation and the conditions, and ∂r/∂p = (I - A A⁺) B.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Vector
from pdofm.discrete.assemble import left_values
from pdofm.discrete.collocate import Block
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.parameters import sensitivities, with_numbers
from pdofm.discrete.system import System
from pdofm.errors import FeaturesError, PdofmError, SolveError
from pdofm.features import BoxPolynomials
from pdofm.problem.data import Given
from pdofm.problem.problem import Problem
from pdofm.problem.unknown import THRESHOLDS, Number
from pdofm.solving.clock import Clock
from pdofm.solving.conclude import concluded
from pdofm.solving.inferred import Inferred
from pdofm.solving.methods import Linear, Method, Newton, Outcome, Picard, run
from pdofm.solving.statistics import Fitted, Numbers, robust_loss
from pdofm.solving.verdict import judge

KEEP = 1e-6
"""Newton's method keeps a matrix below this change: the factorisation at its end gives the derivatives with respect to
the parameters."""

STEP, FALL = 1e-12, 1e-10
"""The search for the parameters ends when a step is that small, or the misfit falls by that little, relatively."""

MOST_EVALUATIONS = 60
"""Solves with different parameters, at most."""

NEAR = 0.95
"""The fraction of the features in which a second solution shows how resolution changes the parameters."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Data at their points, as real numbers in one vector."""

    blocks: Sequence[Block]
    values: Vector
    noise: Vector | None
    losses: Sequence[tuple[str | None, int]]

    @property
    def is_unscaled(self) -> bool:
        """Whether there are data whose noise is not known."""
        return self.noise is None and len(self.values) > 0

    @property
    def scales(self) -> np.ndarray:
        """What residuals are divided by: the noise, or the size of the data if it is not known."""
        if self.noise is not None:
            return self.noise
        size = float(np.sqrt(np.mean(self.values**2))) if len(self.values) else 1.0
        return np.full(len(self.values), size or 1.0)


def _measurements(discretisation: Discretisation) -> Measurements:
    problem = discretisation.problem
    blocks, values, noise, losses = [], [], [], []
    for data, term in problem.measured:
        points = problem.given_points(term)
        normals = np.zeros((len(points), points.shape[1] - problem.layout.has_time))
        blocks.append(Block(term, Given((0.0,)), points, normals))
        probe = left_values(
            problem.layout, discretisation.features, blocks[-1].part(slice(0, 1)), discretisation.zero()
        )
        rows, each = data.rows(len(points), probe.shape[1], problem.layout.is_complex)
        values.append(rows.reshape(-1))
        noise.append(None if each is None else each.reshape(-1))
        losses.append((data.robust, rows.size))
    known = [each for each in noise if each is not None]
    joined = np.concatenate(values) if values else np.zeros(0)
    return Measurements(blocks, joined, np.concatenate(known) if known else None, losses)


@dataclass(frozen=True, eq=False)
class State:
    """The solution of the equation with certain parameters."""

    forward: "Forward"
    vector: Float[np.ndarray, " p"]
    discretisation: Discretisation
    system: System
    outcome: Outcome

    @property
    def coefficients(self) -> Coefficients:
        return self.outcome.coefficients

    @cached_property
    def influence(self) -> Float[np.ndarray, "columns p"]:
        """The derivatives of the coefficients of u with respect to the parameters."""
        return -self.outcome.factorization.solve(self._of_equation)

    @cached_property
    def _of_equation(self) -> Float[np.ndarray, "rows p"]:
        """The derivatives of the scaled left sides with respect to the parameters, with u fixed."""
        return self.system.scales[:, None] * self.forward.slopes(self.discretisation.blocks, self.coefficients)

    @cached_property
    def residual(self) -> np.ndarray:
        """The scaled residual of the data; without data that of the equation and the conditions."""
        data = self.forward.data
        if not data.blocks:
            is_there = self.outcome.verdict is not None  # else it was made at zero
            return -(self.system if is_there else self.system.moved(self.coefficients)).b
        return (self.forward.measured(self.vector, self.coefficients) - data.values) / data.scales

    @cached_property
    def jacobian(self) -> Float[np.ndarray, "r p"]:
        """The derivatives of the residual with respect to the parameters."""
        forward = self.forward
        if not forward.data.blocks:
            return self._of_equation + self.system.A @ self.influence
        slopes = forward.slopes(forward.measuring(self.vector), self.coefficients)
        return (self.of_data @ self.influence + slopes) / forward.data.scales[:, None]

    @cached_property
    def of_data(self) -> Float[np.ndarray, "r columns"]:
        """The derivatives of what is measured with respect to the coefficients of u."""
        blocks = self.forward.measuring(self.vector)
        system = self.discretisation.system(self.coefficients, blocks, fold=False, role="data")
        return system.A / system.scales[:, None]


class Forward:
    """The solutions of the equation, one for each vector of parameters."""

    def __init__(self, discretisation: Discretisation, method: Method | None):
        self.discretisation = replace(discretisation.iterating(), held_out=())
        self.data = _measurements(discretisation)
        self.method = replace(method, keep=KEEP) if isinstance(method, Newton) else method
        self.last: State | None = None

    def measuring(self, vector: Float[np.ndarray, " p"]) -> list[Block]:
        """The data with these parameters."""
        return with_numbers(self.data.blocks, vector)

    def measured(self, vector: Float[np.ndarray, " p"], c: Coefficients) -> np.ndarray:
        """What would be measured of a function."""
        layout, features = self.discretisation.problem.layout, self.discretisation.features
        return np.concatenate([left_values(layout, features, b, c).reshape(-1) for b in self.measuring(vector)])

    def slopes(self, blocks: Sequence[Block], c: Coefficients) -> Float[np.ndarray, "rows p"]:
        """The derivatives of the left sides of blocks with respect to the parameters, with u fixed."""
        layout, features = self.discretisation.problem.layout, self.discretisation.features
        found = [sensitivities(layout, features, block, c) for block in blocks]
        return np.concatenate([each.reshape(-1, each.shape[2]) for each in found])

    def at(self, vector: Float[np.ndarray, " p"]) -> State:
        """The solution with these parameters; an iteration for it starts from the last one."""
        if self.last is not None and np.array_equal(self.last.vector, vector):
            return self.last
        base = self.discretisation
        here = replace(base, blocks=with_numbers(base.blocks, vector))
        method = self._continued(vector)
        outcome, system = self._solved(method, here)
        if method is not self.method and not _is_finished(outcome):  # a bad start
            outcome, system = self._solved(self.method, here)
        if self.last is None and method is None and outcome.verdict is not None:
            self.method = Newton(keep=KEEP)  # it turned out to be nonlinear
        if outcome.verdict is not None:
            system = here.system(outcome.coefficients, fold=False)
        found = State(self, vector.copy(), here, system, outcome)
        if self.last is None or _is_finished(outcome):
            self.last = found
        return found

    def _solved(self, method: Method | None, here: Discretisation) -> tuple[Outcome, System]:
        system = here.system((method or Linear()).start(here), check=self.last is None, fold=False)
        return run(method, here, system), system

    def _continued(self, vector: Float[np.ndarray, " p"]) -> Method | None:
        """The method with the start that the last solution suggests."""
        if self.last is None or not isinstance(self.method, Newton):
            return self.method
        step = self.last.influence @ (vector - self.last.vector)
        return replace(self.method, initial=self.last.coefficients + step.reshape(self.last.coefficients.shape))


def check_numbers(problem: Problem, features: Any, method: Any) -> None:
    """Refuse what unknown numbers cannot be found with."""
    names = problem.parameters.names
    if isinstance(features, BoxPolynomials):
        raise FeaturesError(
            f"Polynomials in boxes do not find unknown numbers; {problem.name!r} has {names}. Give other features, "
            "such as Chebyshev(domain, 300), or a tolerance."
        )
    if isinstance(method, Picard):
        raise SolveError(
            f"Picard() does not find unknown numbers; {problem.name!r} has {names}. Leave method= out, or give "
            "Newton()."
        )


def infer(
    discretisation: Discretisation,
    method: Method | None,
    clock: Clock,
    tol: float | None,
    starts: Mapping[str, float],
) -> Inferred:
    """Find the parameters of a problem together with its solution, in given features."""
    problem = discretisation.problem
    _ = problem.transitions  # looked for once, not again for every value of the numbers
    parameters = problem.parameters.replaced(starts)
    numbers = Numbers({n: each for n, each in (problem.unknowns or {}).items() if isinstance(each, Number)})
    start = np.array([value for _, value in parameters.numbers])
    forward = Forward(discretisation, method)
    with clock("solve"):
        vector = _search(forward, numbers, start)
        state = forward.at(vector)
    known = problem.at(parameters.replaced(dict(zip(parameters.names, vector.tolist(), strict=True))))
    held_out = with_numbers(discretisation.held_out, vector)
    fixed = replace(discretisation, problem=known, blocks=state.discretisation.blocks, held_out=held_out)
    solution = concluded(fixed, state.outcome, clock, tol)
    fitted = _statistics(state, numbers)
    change = fitted.moved_by(_coarser(state)) if forward.data.blocks else np.zeros(len(vector))
    error = max(solution.error_estimate, fitted.relative(change))
    evidence = replace(solution.verdict.evidence, estimate=error, free=fitted.free, misfit=fitted.misfit)
    return Inferred(
        known,
        solution.features,
        solution.coefficients,
        error,
        judge(evidence),
        solution.stats,
        numbers=dict(zip(numbers.names, vector.tolist(), strict=True)),
        intervals=fitted.intervals,
        covariance=fitted.covariance,
        noise=fitted.noise * float(forward.data.scales[0]) if forward.data.is_unscaled else None,
        influence=(state.influence * numbers.slopes(vector)).reshape(*state.coefficients.shape, -1),
    )


def _statistics(state: State, numbers: Numbers) -> Fitted:
    """What is known about the parameters, from the residuals of the data and their derivatives."""
    data = state.forward.data
    size = float(np.linalg.norm(data.values / data.scales if data.blocks else state.system.b))
    thresholds, is_unknown = _losses(state.forward), data.noise is None
    return Fitted.of(numbers, state.vector, state.residual, state.jacobian, thresholds, is_unknown, max(size, 1.0))


def _is_finished(outcome: Outcome) -> bool:
    return outcome.verdict is None or outcome.verdict.converged


def _coarser(state: State) -> np.ndarray:
    """How the residual of the data changes if the last features are left out."""
    c, features = state.coefficients, state.discretisation.features
    kept = min(int(np.searchsorted(features.ranks, NEAR)), len(c) - 1)
    coarse = state.outcome.factorization.coarse(state.outcome.projected, kept * c.shape[1])
    return state.of_data @ (coarse - c.reshape(-1)) / state.forward.data.scales


def _losses(forward: Forward) -> Float[np.ndarray, " r"]:
    """For each residual the threshold of its robust loss, negative for Cauchy's; infinite for squares."""
    sign = {"huber": 1.0, "cauchy": -1.0}
    parts = [
        np.full(size, np.inf if kind is None else sign[kind] * THRESHOLDS[kind]) for kind, size in forward.data.losses
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _search(forward: Forward, numbers: Numbers, start: Float[np.ndarray, " p"]) -> np.ndarray:
    """The parameters with the smallest misfit."""
    from scipy.optimize import least_squares

    first = forward.at(start)
    if not np.isfinite(first.residual).all():
        raise SolveError(
            f"The solution with the numbers at their starts, {numbers.shown(start)}, is not finite. Start elsewhere: "
            "Number(start)."
        )

    def residual(q: np.ndarray) -> np.ndarray:
        try:
            state = forward.at(numbers.outward(q))
        except PdofmError:  # no solution there: a smaller step is tried
            return np.full(len(first.residual), np.nan)
        if not _is_finished(state.outcome) and state is not first:
            return np.full(len(first.residual), np.nan)
        return state.residual

    def jacobian(q: np.ndarray) -> np.ndarray:
        vector = numbers.outward(q)
        return forward.at(vector).jacobian * numbers.slopes(vector)

    thresholds = _losses(forward)
    robust: Any = (lambda z: robust_loss(z, thresholds)) if np.isfinite(thresholds).any() else "linear"
    options: dict[str, Any] = {"xtol": STEP, "ftol": FALL, "gtol": None, "max_nfev": MOST_EVALUATIONS}
    q = numbers.inside(start)
    found = least_squares(residual, q, jacobian, bounds=numbers.bounds, loss=robust, x_scale="jac", **options)
    return numbers.outward(found.x)
