"""Linear, Newton and Picard: what to do with the linearised system.

All three solve the same system min ‖A δ - b‖ at the current coefficients. Linear takes one step from zero. Newton
repeats it. Picard repeats it with the frozen operator, whose derivative leaves the last iterate out.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Points
from pdofm.deprecation import renamed
from pdofm.discrete.assemble import left_values
from pdofm.discrete.collocate import thinned
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import feature_values
from pdofm.discrete.system import Sums, System
from pdofm.errors import NonlinearError, SolveError
from pdofm.features import Features
from pdofm.numerics.lstsq import QR, Factorization, LeastSquares
from pdofm.numerics.numbers import as_number
from pdofm.solving.ending import START_NEARER, is_flat, judge_iteration
from pdofm.solving.start import start_values
from pdofm.solving.verdict import Status, Verdict


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method found, and how it went.

    Attributes:
        factorization: that of the last matrix.
        projected: the projected right-hand side.
        residuals: left minus right side at the fitted points.
        verdict: how the iteration ended; None if there was none.
        kept: the system at the fitted points, if its rows are still there: an iteration overwrites them.
        held_out: the system at the held-out points, if it is known: its sides at the coefficients, its matrix that of
            the factorization.
        scales: what the rows of the factored matrix were scaled with, if that matrix belongs to the solution.
    """

    coefficients: Coefficients
    factorization: Factorization
    projected: np.ndarray
    residuals: Sums
    verdict: Verdict | None = None
    steps: list[dict[str, float]] = field(default_factory=list)
    held_out: System | None = None
    kept: System | None = None
    scales: np.ndarray | None = None

    @property
    def iteration_error(self) -> float:
        """How far the iteration still is from its limit, relative to the solution: the sum of the steps to come, if
        they keep shrinking as the last two did."""
        if len(self.steps) < 2:
            return self.steps[-1]["change"] if self.steps else 0.0
        before, last = (step["change"] for step in self.steps[-2:])
        rate = min(last / before, 0.99) if before > 0 else 0.0
        return last * rate / (1 - rate)


class Method(ABC):
    """How the coefficients are found."""

    def start(self, discretisation: Discretisation) -> Coefficients:
        """The coefficients to start from."""
        return discretisation.zero()

    def system(self, discretisation: Discretisation) -> System:
        """The system at the start, checked."""
        return discretisation.system(self.start(discretisation), check=True)

    @abstractmethod
    def run(self, discretisation: Discretisation, system: System) -> Outcome:
        """Find the coefficients, given the system at the start."""


DIRECT = QR(rcond=1e-15)
ITERATED = QR(rcond=1e-14)
"""Least squares inside an iteration: what is kept below 1e-14 is noise that changes from step to step and slows the
convergence down."""


@dataclass(frozen=True)
class Linear(Method):
    """One least-squares solve; refuses an operator or a condition that is not linear."""

    lstsq: LeastSquares = DIRECT

    def run(self, discretisation: Discretisation, system: System) -> Outcome:
        _refuse(discretisation, discretisation.nonlinear_terms())
        factorization = self.lstsq.factor(system.A)
        projected = factorization.project(system.target)
        c = factorization.finish(projected).reshape(discretisation.zero().shape)
        found = discretisation.residuals(system, c)
        _refuse(discretisation, discretisation.nonlinear_terms(c))
        held_out = None if system.held_out is None else system.held_out.moved(c)
        kept = system if system.folded is None else None
        return Outcome(c, factorization, projected, found, held_out=held_out, kept=kept, scales=system.scales)


def run(method: Method | None, discretisation: Discretisation, system: System) -> Outcome:
    """Run a method; without one, try a linear solve, and Newton's method if the problem turns out nonlinear."""
    try:
        return (method or Linear()).run(discretisation, system)
    except NonlinearError:
        if method is not None:
            raise
        return Newton().run(discretisation, system)


def _refuse(discretisation: Discretisation, nonlinear: Sequence[str]) -> None:
    if nonlinear:
        raise NonlinearError(
            f"Linear() needs a linear problem, but {' and '.join(map(repr, nonlinear))} of "
            f"{discretisation.problem.name!r} is not linear in the unknown. Use method=Newton(), or Picard() with a "
            "frozen operator."
        )


@renamed(rtol="tol")
@dataclass(frozen=True)
class Newton(Method):
    """Gauss-Newton from the linearisation by automatic differentiation, with a backtracking line search on the scaled
    residual.

    Stops when a step changes the values of the unknowns by less than `tol` relative to their size, or when the
    residual no longer falls and the steps are below `stall` (the limit of the features or of rounding is reached).
    Below `keep` the factored matrix serves the next steps, too, as long as they shrink tenfold: no longer quadratic
    convergence, but steps that cost next to nothing and do not count against `max_steps`. They end in the same solution
    up to the residual that is left, times `keep`; ``keep=0`` is the plain iteration. `initial` is where the
    iteration starts: a solution, a number, a function of the point (in a system a dictionary of functions, or one
    function that returns all components), or coefficients of shape (m, C).
    """

    lstsq: LeastSquares = ITERATED
    max_steps: int = 20
    tol: float = 1e-10
    stall: float = 1e-6
    initial: Any = None
    keep: float = 1e-2

    def run(self, discretisation: Discretisation, system: System) -> Outcome:
        if not (isinstance(self.keep, int | float | np.number) and self.keep >= 0):
            raise SolveError(f"keep is a relative change and must be at least 0, the plain iteration; got {self.keep}.")
        discretisation = discretisation.iterating()

        def advance(step: _Step, system: System) -> _Next | None:
            merit, length = system.norm, 1.0
            while length > 1e-3:
                is_full = length == 1.0
                keeps = is_full and self._keeps(step, system)
                new = step.target if is_full else step.start + length * (step.target - step.start)
                moved = discretisation.moved(system, new) if keeps else discretisation.system(new)
                # A step is judged with the row scales that it was computed with, and by what it could gain: little,
                # where most of the residual cannot be removed.
                residual = discretisation.merit(system, moved)
                if residual**2 <= merit**2 - 1e-4 * length * step.gain:
                    return new, moved, keeps
                if is_full and residual <= 2 * merit and step.change <= self.stall:
                    return new, moved, keeps  # at the limit of rounding the residual no longer falls
                if step.by_kept:
                    return None
                length /= 2
            return None

        return _iterate(self, discretisation, self.start(discretisation), system, advance)

    def _keeps(self, step: "_Step", system: System) -> bool:
        """Whether the matrix is good enough for the next step, if there is one at all."""
        shrinks = step.change <= min(self.keep, 0.1 * step.last_change)
        return step.change <= self.tol or (shrinks and system.folded is None)

    def start(self, discretisation: Discretisation) -> Coefficients:
        return _start(self.initial, discretisation)


@renamed(rtol="tol")
@dataclass(frozen=True)
class Picard(Method):
    """Fixed-point iteration: solve the linear problem ``operator(u, w, x) = source`` with w the last iterate, again and
    again.

    `operator` says what is frozen; without it the problem's `frozen_operator` is used. Anderson's acceleration combines
    the last `memory` steps so that their combined change is smallest; ``memory=0`` is the plain iteration. The other
    arguments are as in `Newton`.
    """

    operator: Callable[..., Any] | None = None
    lstsq: LeastSquares = ITERATED
    max_steps: int = 50
    tol: float = 1e-10
    stall: float = 1e-6
    memory: int = 10
    initial: Any = None

    def system(self, discretisation: Discretisation) -> System:
        frozen = self._frozen(discretisation)
        _check_frozen(discretisation, frozen)
        return frozen.system(self.start(discretisation), check=True)

    def _frozen(self, discretisation: Discretisation) -> Discretisation:
        """The frozen operator in place of the equation's."""
        return discretisation.with_equation(discretisation.problem.frozen_terms(self.operator))

    def run(self, discretisation: Discretisation, system: System) -> Outcome:
        frozen, c = self._frozen(discretisation.iterating()), self.start(discretisation)
        targets: list[Coefficients] = []
        changes: list[np.ndarray] = []

        def advance(step: _Step, system: System) -> _Next:
            targets.append(step.target)
            changes.append((step.target_values - step.start_values).reshape(-1))
            del targets[: -self.memory - 1], changes[: -self.memory - 1]
            new = step.target
            if len(changes) > 1:
                # Weights that sum to one and make the combined change smallest, by least squares in the differences
                # from the last.
                differences = np.stack([changes[-1] - change for change in changes[:-1]], axis=1)
                weights = np.linalg.lstsq(differences, changes[-1], rcond=1e-10)[0]
                new = new - sum(w * (step.target - old) for w, old in zip(weights, targets[:-1], strict=True))
            return new, frozen.system(new), False

        return _iterate(self, frozen, c, system, advance)

    def start(self, discretisation: Discretisation) -> Coefficients:
        return _start(self.initial, discretisation)


def fitted(features: Features, points: Points, values: Float[np.ndarray, "n C"]) -> Coefficients:
    """The coefficients that fit values at points best: a start for an iteration."""
    lifting = features.lifting(points, [(0,) * features.dim], values.shape[1])
    return ITERATED.factor(feature_values(features, points)).solve(values if lifting is None else values - lifting[0])


def _start(initial: Any, discretisation: Discretisation) -> Coefficients:
    """The coefficients of what the user gave as a start."""
    zero, features = discretisation.zero(), discretisation.features
    if initial is None:
        return zero
    if getattr(initial, "features", None) is features:
        initial = initial.coefficients
    if callable(initial) or isinstance(initial, Mapping) or np.ndim(initial) == 0:
        points = discretisation.interior
        return fitted(features, points, start_values(initial, discretisation.problem.layout, points))
    start = np.asarray(initial, dtype=np.float64)
    if start.shape != zero.shape:
        raise SolveError(
            f"initial must have shape {zero.shape}, (features, components); got {start.shape}. Give coefficients, a "
            "solution, a number, or a function of the point."
        )
    return start


def _check_frozen(discretisation: Discretisation, frozen: Discretisation) -> None:
    """The frozen operator must be the operator where both of its arguments agree."""
    c = np.random.default_rng(0).standard_normal(discretisation.zero().shape) / np.sqrt(discretisation.features.size)
    own, other = (
        left_values(discretisation.problem.layout, discretisation.features, thinned(which.blocks[0], 16), c)
        for which in (discretisation, frozen)
    )
    if own.shape != other.shape or not np.max(np.abs(own - other)) <= 1e-8 * np.max(np.abs(own)):
        raise SolveError(
            "The frozen operator of Picard differs from the operator of the problem where both of its arguments are "
            "the same function. "
            "It must satisfy operator(u, u, x) = problem.operator(u, x)."
        )


@dataclass(frozen=True, eq=False)
class _Step:
    """From coefficients to the solution of the problem linearised there, both also as values at points; or, `by_kept`,
    linearised before. By `gain` the square of the linearised residual falls; `last_change` is that of the step
    before."""

    start: Coefficients
    target: Coefficients
    start_values: np.ndarray
    target_values: np.ndarray
    by_kept: bool
    gain: float
    last_change: float

    @property
    def change(self) -> float:
        """How far it moves the values, relative to their size."""
        return _relative_change(self.start_values, self.target_values)


_Next = tuple[Coefficients, System, bool]
"""The next coefficients, the system at them, and whether its matrix is still the one that was factored before."""

Advance = Callable[[_Step, System], _Next | None]
"""What follows from a full step and the system where it starts; None if it leads nowhere."""


def _iterate(
    method: Newton | Picard, discretisation: Discretisation, c: Coefficients, system: System, advance: Advance
) -> Outcome:
    if not (isinstance(method.max_steps, int | np.integer) and method.max_steps >= 1):
        raise SolveError(f"max_steps must be at least 1; got {method.max_steps!r}. Give an integer.")
    as_number(method.tol, "tol of an iteration", SolveError, least=0.0)
    as_number(method.stall, "stall", SolveError, least=0.0)
    steps: list[dict[str, float]] = []
    values, kept, factored = discretisation.values(c), None, 0
    while True:
        merit = system.norm
        if kept is None:
            factorization, factored = method.lstsq.factor(system.A, overwrite=True), factored + 1
        else:
            factorization = kept
        # Solve for the new coefficients, not for the step: A c_new ≈ b + A c. Where features are nearly dependent the
        # smallest solution is taken, and smallest steps would add up to coefficients so large that the residual drowns
        # in rounding.
        projected = factorization.project(system.target) + factorization.multiply(c.reshape(-1))
        target = factorization.finish(projected).reshape(c.shape)
        last_change = steps[-1]["change"] if steps else np.inf
        gain = float(np.sum(factorization.multiply((target - c).reshape(-1)) ** 2))
        step = _Step(c, target, values, discretisation.values(target), kept is not None, gain, last_change)
        moved = advance(step, system)
        if moved is None and kept is not None:
            system, kept = discretisation.system(c), None
            continue
        relative_gain = gain**0.5 / max(merit, np.finfo(float).tiny)
        if moved is None:
            message = f"no step along Newton's direction lowers the residual after {len(steps)} steps"
            verdict = Verdict(Status.STUCK, message, START_NEARER)
            if steps and is_flat(step.change, relative_gain):
                verdict = Verdict(Status.CONVERGED, message)
            break
        c, system, keeps = moved
        kept = factorization if keeps else None
        values = step.target_values if c is target else discretisation.values(c)
        change = _relative_change(step.start_values, values)
        steps.append({"residual": system.norm, "change": change, "gain": relative_gain})
        is_last = factored >= method.max_steps and kept is None
        verdict = judge_iteration(steps[-1], merit, method.tol, method.stall, method.max_steps if is_last else None)
        if verdict is not None:
            break
    found = discretisation.residuals(system)
    return Outcome(c, factorization, projected, found, verdict, steps, system.held_out)


def _relative_change(old: np.ndarray, new: np.ndarray) -> float:
    return float(np.linalg.norm(new - old) / max(np.linalg.norm(new), np.finfo(float).tiny))
