"""Linear, Newton and Picard: what to do with the linearised system.

All three solve the same system min ‖A δ - b‖ at the current coefficients. Linear takes one step from zero. Newton
repeats it. Picard repeats it with the frozen operator, whose derivative leaves the last iterate out.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.assemble import Memory, System, all_left_values, assemble, entries, left_values, residuals
from pdofm.collocate import Block, thinned, with_equation
from pdofm.direct import Coefficients
from pdofm.errors import NonlinearError, SolveError
from pdofm.evaluate import evaluate, feature_values
from pdofm.features import Features
from pdofm.linearity import is_affine, nonlinear_terms
from pdofm.lstsq import QR, Factorization, LeastSquares
from pdofm.problem import Problem
from pdofm.sampling import spread

FEW_POINTS = 256
"""Points at which an iteration watches the unknowns."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method found, and how it went.

    `factorization` is that of the last matrix and `projected` the projected right-hand side; `residual` is left minus
    right side at the fitted points, with `rows` telling which entries belong to which term. `unseen` is the system at
    the points that are held out, if it is known: its sides at the coefficients, its matrix that of the factorization.
    """

    coefficients: Coefficients
    factorization: Factorization
    projected: np.ndarray
    residual: np.ndarray
    rows: dict[str, slice]
    converged: bool
    reason: str
    steps: list[dict[str, float]] = field(default_factory=list)
    unseen: System | None = None

    @property
    def iteration_error(self) -> float:
        """How far the iteration still is from its limit, relative to the solution: the sum of the steps to come, if
        they keep shrinking as the last two did."""
        if len(self.steps) < 2:
            return self.steps[-1]["change"] if self.steps else 0.0
        before, last = (step["change"] for step in self.steps[-2:])
        rate = min(last / before, 0.99) if before > 0 else 0.0
        return last * rate / (1 - rate)


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything a method works with; `blocks[0]` is the equation. `held_out` are the same terms at points that are not
    fitted."""

    problem: Problem
    features: Features
    blocks: Sequence[Block]
    held_out: Sequence[Block] = ()
    memory: Memory = field(default_factory=Memory)

    def system(
        self,
        coefficients: Coefficients,
        blocks: Sequence[Block] | None = None,
        *,
        check: bool = False,
        fold: bool = True,
        role: str = "fitted",
    ) -> System:
        """The linearised system at `coefficients`, for its own blocks together with that at the points that are held
        out; with `check`, errors for values that are not finite; without `fold` all rows are there, however many.
        `role` is what the points of other blocks are called in the memory."""
        known = {"check": check, "memory": self.memory}
        joint = blocks is None and bool(self.held_out)
        if joint:
            for block, other in zip(self.blocks, self.held_out, strict=True):
                both, layout = {"fitted": block, "held out": other}, self.problem.layout
                self.memory.right_sides.learn(layout, both, entries(layout, block))
        own = self._assembled(self.blocks if blocks is None else blocks, coefficients, fold=fold, role=role, **known)
        if not joint:
            return own
        return replace(own, unseen=self._assembled(self.held_out, coefficients, role="held out", **known))

    def _assembled(self, blocks: Sequence[Block], coefficients: Coefficients, **options: Any) -> System:
        return assemble(self.problem.layout, self.features, blocks, coefficients, **options)

    def moved(self, system: System, coefficients: Coefficients) -> System:
        """The system with its left sides at other coefficients. Its rows and scales stay; the factored matrix is not to
        be factored again."""

        def left(blocks: Sequence[Block]) -> np.ndarray:
            return all_left_values(self.problem.layout, self.features, blocks, coefficients, self.memory)

        unseen = replace(system.unseen, left=left(self.held_out)) if system.unseen is not None else None
        return replace(system, left=left(self.blocks), unseen=unseen)

    def iterating(self) -> "Setting":
        """The same for an iteration, which meets the same derivatives of the features in each step."""
        return replace(self, memory=self.memory.iterating())

    def zero(self) -> Coefficients:
        """Coefficients of the zero function."""
        return np.zeros((self.features.size, self.problem.layout.components))

    @cached_property
    def is_affine(self) -> bool:
        """Whether the problem is linear as it is written, whatever the solution."""
        return all(is_affine(self.problem.layout, block) for block in self.blocks)

    def nonlinear_terms(self, step: Coefficients | None = None) -> list[str]:
        """Terms that are not affine in the unknown, tried by a step away from zero: to a solution, at whose size and in
        whose region a nonlinearity may show first, or any step."""
        return nonlinear_terms(self.problem.layout, self.features, self.blocks, step)

    def values(self, coefficients: Coefficients) -> np.ndarray:
        """The unknowns at some of the interior points."""
        points = self.blocks[0].points
        return evaluate(self.features, coefficients, points[spread(len(points), FEW_POINTS)])


class Method(ABC):
    """How the coefficients are found."""

    def start(self, setting: Setting) -> Coefficients:
        """The coefficients to start from."""
        return setting.zero()

    @abstractmethod
    def run(self, setting: Setting, system: System) -> Outcome:
        """Find the coefficients, given the system at the start."""


DIRECT = QR(rcond=1e-15)
ITERATED = QR(rcond=1e-14)
"""Least squares inside an iteration: what is kept below 1e-14 is noise that changes from step to step and slows the
convergence down."""


@dataclass(frozen=True)
class Linear(Method):
    """One least-squares solve; refuses an operator or a condition that is not linear."""

    lstsq: LeastSquares = DIRECT

    def run(self, setting: Setting, system: System) -> Outcome:
        _refuse(setting, setting.nonlinear_terms())
        factorization = self.lstsq.factor(system.A)
        projected = factorization.project(system.target)
        c = factorization.finish(projected).reshape(setting.zero().shape)
        residual = residuals(setting.problem.layout, setting.features, setting.blocks, system, c)
        _refuse(setting, setting.nonlinear_terms(c))
        unseen = None if system.unseen is None else system.unseen.moved(c)
        return Outcome(c, factorization, projected, residual, system.rows, True, "one linear solve", unseen=unseen)


def _refuse(setting: Setting, nonlinear: Sequence[str]) -> None:
    if nonlinear:
        raise NonlinearError(
            f"Linear() needs a linear problem, but {' and '.join(map(repr, nonlinear))} of {setting.problem.name!r} is "
            "not linear in the unknown. Use method=Newton(), or Picard() with a frozen operator."
        )


@dataclass(frozen=True)
class Newton(Method):
    """Gauss-Newton from the linearisation by automatic differentiation, with a backtracking line search on the scaled
    residual.

    Stops when a step changes the values of the unknowns by less than `rtol` relative to their size, or when the
    residual no longer falls and the steps are below `stall` (the limit of the features or of rounding is reached).
    Below `keep` the factored matrix serves the next steps, too, as long as they shrink tenfold: no longer quadratic
    convergence, but steps that cost next to nothing and do not count against `max_steps`. They end in the same solution
    up to the residual that is left, times `keep`; ``keep=0`` is the plain iteration. `initial` is a start: coefficients
    of shape (m, C), or a Solution in the same features.
    """

    lstsq: LeastSquares = ITERATED
    max_steps: int = 20
    rtol: float = 1e-10
    stall: float = 1e-6
    initial: Any = None
    keep: float = 1e-2

    def run(self, setting: Setting, system: System) -> Outcome:
        if not self.keep >= 0:
            raise SolveError(f"keep is a relative change and must be at least 0, the plain iteration; got {self.keep}.")
        setting = setting.iterating()

        def advance(step: _Step, system: System) -> _Next | None:
            merit, length = np.linalg.norm(system.b), 1.0
            while length > 1e-3:
                is_full = length == 1.0
                keeps = is_full and self._keeps(step, system)
                new = step.target if is_full else step.start + length * (step.target - step.start)
                moved = setting.moved(system, new) if keeps else setting.system(new)
                # A step is judged with the row scales that it was computed with, and by what it could gain: little,
                # where most of the residual cannot be removed.
                residual = np.linalg.norm(system.scales * (moved.right - moved.left))
                if residual**2 <= merit**2 - 1e-4 * length * step.gain:
                    return new, moved, keeps
                if is_full and residual <= 2 * merit and step.change <= self.stall:
                    return new, moved, keeps  # at the limit of rounding the residual no longer falls
                if step.by_kept:
                    return None
                length /= 2
            return None

        return _iterate(self, setting, self.start(setting), system, advance)

    def _keeps(self, step: "_Step", system: System) -> bool:
        """Whether the matrix is good enough for the next step, if there is one at all."""
        shrinks = step.change <= min(self.keep, 0.1 * step.last_change)
        return step.change <= self.rtol or (shrinks and system.folded is None)

    def start(self, setting: Setting) -> Coefficients:
        return _start(self.initial, setting.zero())


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
    rtol: float = 1e-10
    stall: float = 1e-6
    memory: int = 10
    initial: Any = None

    def run(self, setting: Setting, system: System) -> Outcome:
        setting = setting.iterating()
        blocks = with_equation(setting.blocks, setting.problem.frozen_terms(self.operator))
        _check_frozen(setting, blocks)
        c = self.start(setting)
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
            return new, setting.system(new, blocks), False

        return _iterate(self, setting, c, setting.system(c, blocks, check=True), advance)

    def start(self, setting: Setting) -> Coefficients:
        return _start(self.initial, setting.zero())


def fitted(features: Features, points: Points, values: Float[np.ndarray, "n C"]) -> Coefficients:
    """The coefficients that fit values at points best: a start for an iteration."""
    lifting = features.lifting(points, [(0,) * features.dim], values.shape[1])
    return ITERATED.factor(feature_values(features, points)).solve(values if lifting is None else values - lifting[0])


def _start(initial: Any, zero: Coefficients) -> Coefficients:
    if initial is None:
        return zero
    start = np.asarray(getattr(initial, "coefficients", initial), dtype=np.float64)
    if start.shape != zero.shape:
        raise SolveError(f"initial must have shape {zero.shape}, (features, components); got {start.shape}.")
    return start


def _check_frozen(setting: Setting, blocks: Sequence[Block]) -> None:
    """The frozen operator must be the operator where both of its arguments agree."""
    c = np.random.default_rng(0).standard_normal(setting.zero().shape) / np.sqrt(setting.features.size)
    own, frozen = (
        left_values(setting.problem.layout, setting.features, thinned(which[0], 16), c)
        for which in (setting.blocks, blocks)
    )
    if own.shape != frozen.shape or not np.max(np.abs(own - frozen)) <= 1e-8 * np.max(np.abs(own)):
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


def _iterate(method: Newton | Picard, setting: Setting, c: Coefficients, system: System, advance: Advance) -> Outcome:
    if method.max_steps < 1:
        raise SolveError(f"max_steps must be at least 1; got {method.max_steps}.")
    steps: list[dict[str, float]] = []
    values, kept, factored = setting.values(c), None, 0
    while True:
        merit = float(np.linalg.norm(system.b))
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
        step = _Step(c, target, values, setting.values(target), kept is not None, gain, last_change)
        moved = advance(step, system)
        if moved is None and kept is not None:
            system, kept = setting.system(c), None
            continue
        if moved is None:
            reason = f"no step along Newton's direction lowers the residual after {len(steps)} steps"
            residual = system.left - system.right
            return Outcome(c, factorization, projected, residual, system.rows, False, reason, steps, system.unseen)
        c, system, keeps = moved
        kept = factorization if keeps else None
        values = step.target_values if c is target else setting.values(c)
        change = _relative_change(step.start_values, values)
        steps.append({"residual": float(np.linalg.norm(system.b)), "change": change})
        verdict = _verdict(method, steps, merit, is_last=factored >= method.max_steps and kept is None)
        if verdict is not None:
            converged, reason = verdict
            residual = system.left - system.right
            return Outcome(c, factorization, projected, residual, system.rows, converged, reason, steps, system.unseen)


def _relative_change(old: np.ndarray, new: np.ndarray) -> float:
    return float(np.linalg.norm(new - old) / max(np.linalg.norm(new), np.finfo(float).tiny))


def _verdict(
    method: Newton | Picard, steps: list[dict[str, float]], merit: float, *, is_last: bool
) -> tuple[bool, str] | None:
    """Whether to stop: (converged, why), or None to go on. `merit` is the residual before the last step."""
    change, residual = steps[-1]["change"], steps[-1]["residual"]
    if not np.isfinite(residual) or not np.isfinite(change):
        return False, "the iteration diverged: the residual is no longer finite"
    if change <= method.rtol:
        return True, f"the last step is below rtol = {method.rtol:g}"
    if change <= method.stall and residual > 0.9 * merit:
        return True, f"the residual no longer falls and the last step, {change:.0e}, is below stall = {method.stall:g}"
    if is_last:
        return (
            False,
            f"{method.max_steps} steps did not suffice, the last of which moved the solution by {change:.0e}",
        )
    return None
