"""The verdict on an answer: whether it converged, why or why not, the numbers that say so, and what to do.

What counts as converged is decided in this file. A solve, a search, a factored problem and a
training run collect `Evidence`, numbers that they measured, and `judge` goes through `CHECKS` in order; the first check
that fails is the verdict. Iterations and training runs end for reasons of their own, which `ending` judges.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pdofm.solving.status import Status

ACCEPTABLE = 1e-2
"""The relative error required where the user gives no tolerance: two correct digits."""

ROUNDING = 1e-15
"""The smallest relative error that float64 allows: a few units of its last digit."""

NOT_UNIQUE = 1e-4
"""The fraction of a random function that the problem may fail to see before its solution counts as not unique. Rounding
and a large `rcond` stay below 1e-5 where solutions have any digits; free functions are above 1e-3."""

VIOLATED = 0.05
"""The largest residual of a term at held-out points, as a fraction of all data, that a solution may have."""

SATISFIED = 1e-8
"""A residual below this fraction of all data is as good as none."""

HIDDEN = 0.1
"""The largest residual of the equation on a dense set of points, relative to the largest right side there. A larger one
means that a detail of the data lies between the collocation points."""

GROWING, GROWN = 8.0, 50.0
"""A stability constant that grows by `GROWING` or more when the features are doubled, and by `GROWN` or more since an
eighth of them, belongs to a problem that its data do not determine. In the zoo it grows by less than 5 where the
solution is resolved."""

AMPLIFYING = 1e5
"""The stability constant, times the data and relative to the solution, from which its growth matters. It is 6e3, by
rounding, for u' = u over fifteen units of length, and 3e8 for Cauchy data of Laplace's equation."""


UNEXPLAINED = 0.5
"""Of data without known noise at most this may be left when they are fitted, relative to how much they vary."""

UNLIKELY = 1e-6
"""Data that fit as badly as theirs do with this probability, or less, contradict the model or their noise; so do data
of which noise leaves something as smooth with this probability, or less."""


@dataclass(frozen=True)
class Evidence:
    """What was measured about an answer; None where nothing was measured.

    Attributes:
        tol: the relative error required; None requires `ACCEPTABLE`.
        iteration: the verdict on the iteration that found the answer.
        estimate: the estimated relative error.
        violations: for each term the residual at held-out points, as a fraction of all data.
        undetermined: the fraction of a random function that neither the equation nor the conditions see.
        hidden: the largest residual of the equation on a dense set of points, relative to its largest right side.
        missed: the relative error that details of the data between the points cause, or the integral of the residual
            where coefficients change steeply, relative to the terms of the equation.
        contradiction: by how much the data violate a condition that they must satisfy for a solution to exist, as a
            fraction of their size.
        disagreement: the distance to the solution in another space, relative to the solution; NaN if there is none.
        stability: γ, the size of the largest solution that data of size 1 can cause.
        growth, grown: by how much γ grew when the features were doubled for the last time, and since an eighth of them.
        amplification: γ times the size of the data, relative to the solution.
        freest: where the largest such solution is largest, in words.
        free: the combination of unknown numbers that the data do not determine; empty if they determine all.
        misfit: how probable it is that data with their noise fit as badly as these.
        unexplained: of data without known noise what is left when they are fitted, relative to how much they vary.
        likeness: how probable it is that white noise looks as smooth as what is left of the data.
        held_back: the unknown numbers that a bound keeps from their best values, in words.
        is_pending: whether the search for unknown numbers ended before its steps were small.
        features, points, usual_points: how many features and collocation points inside the domain were used, and how
            many points are usual for as many features.
    """

    tol: float | None = None
    iteration: "Verdict | None" = None
    estimate: float | None = None
    violations: Mapping[str, float] = field(default_factory=dict)
    undetermined: float = 0.0
    hidden: float | None = None
    missed: float | None = None
    contradiction: float = 0.0
    disagreement: float | None = None
    stability: float | None = None
    growth: float = 1.0
    grown: float = 1.0
    amplification: float = 0.0
    freest: str = ""
    free: str = ""
    misfit: float | None = None
    unexplained: float | None = None
    likeness: float = 1.0
    held_back: str = ""
    is_pending: bool = False
    features: int = 0
    points: int = 0
    usual_points: int = 0

    @property
    def required(self) -> float:
        """The relative error that is required."""
        return ACCEPTABLE if self.tol is None else self.tol

    @property
    def is_finished(self) -> bool:
        """Whether the iteration, if there was one, reached its own goal."""
        return self.iteration is None or self.iteration.converged

    @property
    def is_unique(self) -> bool:
        """Whether the problem determines its solution."""
        return is_unique(self.undetermined)

    @property
    def is_determined(self) -> bool:
        """Whether the data determine the solution: whether a change of them has an effect that is bounded."""
        grows = self.growth >= GROWING and self.grown >= GROWN
        return not (grows and self.amplification >= AMPLIFYING)


@dataclass(frozen=True)
class Verdict:
    """How a computation ended: its `status`, a `message` with the numbers, a `remedy` where there is one to name, and
    the `evidence` that it rests on."""

    status: Status
    message: str
    remedy: str = ""
    evidence: Evidence = field(default_factory=Evidence, repr=False)

    @property
    def converged(self) -> bool:
        """Whether the answer is what was asked for."""
        return self.status is Status.CONVERGED

    @property
    def reason(self) -> str:
        """Message and remedy in one sentence."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


def judge(evidence: Evidence, remedy: str | None = None) -> Verdict:
    """The verdict on an answer: the first check that fails decides. `remedy` replaces what follows from the numbers."""
    for check in CHECKS:
        failed = check(evidence)
        if failed is not None:
            status, message, found = failed
            return Verdict(status, message, found if remedy is None else remedy, evidence)
    if evidence.iteration is not None:
        message = evidence.iteration.message
    elif evidence.estimate is None:
        message = "the problem determines its solutions"
    else:
        message = f"the estimated relative error {evidence.estimate:.1e} is below {evidence.required:g}"
    return Verdict(Status.CONVERGED, message, evidence=evidence)


def is_unique(undetermined: float) -> bool:
    """Whether a problem determines its solution, from the fraction of a random function that it does not see."""
    return undetermined <= NOT_UNIQUE


def is_accurate(errors: Any, required: float = ACCEPTABLE) -> Any:
    """Whether errors, or relative residuals that stand for them, are small enough; NaN never is."""
    return errors <= required


Failure = tuple[Status, str, str]
"""Status, message and remedy of a check that failed."""


def _finished(evidence: Evidence) -> Failure | None:
    """The iteration must have reached its own goal."""
    if evidence.iteration is None or evidence.iteration.converged:
        return None
    return evidence.iteration.status, evidence.iteration.message, evidence.iteration.remedy


def _unique(evidence: Evidence) -> Failure | None:
    """The problem must determine its solution."""
    if evidence.is_unique:
        return None
    message = "the solution is not unique: some nonzero functions satisfy the homogeneous problem at the points"
    if max(evidence.violations.values(), default=0.0) > VIOLATED:
        message += (
            ", and the data contradict each other: no function satisfies the equation and all conditions. With "
            "∂u/∂n = g on the whole boundary, for instance, -Δu = f has solutions only if ∫f + ∫g = 0"
        )
    return Status.UNDETERMINED, message, remedy_for(evidence)


def _compatible(evidence: Evidence) -> Failure | None:
    """The data must satisfy what the left sides ask of them for a solution to exist."""
    if evidence.contradiction <= evidence.required:
        return None
    message = (
        "the data contradict each other: no function satisfies the equation and all conditions, as their integrals do "
        f"not balance, by {100 * evidence.contradiction:.3g} % of the data"
    )
    remedy = (
        "check source and boundary values; with ∂u/∂n = g on the whole boundary, for instance, -Δu = f has solutions "
        "only if ∫f + ∫g = 0"
    )
    return Status.CONTRADICTORY, message, remedy


def _accurate(evidence: Evidence) -> Failure | None:
    """The estimated error must be below the tolerance."""
    estimate, required = evidence.estimate, evidence.required
    if estimate is None or is_accurate(estimate, required):
        return None
    if required < ROUNDING:
        message = f"the estimated relative error is {estimate:.1e}; {required:g} is below the rounding error of float64"
        return Status.BEYOND_ROUNDING, message, f"ask for tol={ROUNDING:g} or more"
    message = f"the estimated relative error {estimate:.1e} is above {required:g}"
    return Status.INACCURATE, message, remedy_for(evidence)


def _determined(evidence: Evidence) -> Failure | None:
    """The effect of a change of the data must not grow with the number of features."""
    if evidence.is_determined:
        return None
    message = (
        "the data do not determine the solution, or the problem is ill-posed: data of size 1 can cause solutions of "
        f"size {evidence.stability:.0e}, {evidence.grown:.0e} times as large as in an eighth of the features, and they "
        f"are largest {evidence.freest}"
    )
    return Status.UNDETERMINED, message, "add a condition there; u.plot_undetermined() draws that function"


def _satisfied(evidence: Evidence) -> Failure | None:
    """Every term must hold at points that were not fitted."""
    worst = max(evidence.violations, key=lambda name: evidence.violations[name], default=None)
    if worst is None or evidence.violations[worst] <= VIOLATED:
        return None
    message = f"{worst!r} is violated at points that were not fitted, by {evidence.violations[worst]:.0%} of the data"
    remedy = "check whether conditions contradict each other, or use more points or features"
    return Status.VIOLATED, message, remedy


def _resolved(evidence: Evidence) -> Failure | None:
    """No detail of the data may lie between the collocation points."""
    if evidence.missed is not None and not is_accurate(evidence.missed, evidence.required):
        message = (
            "details of the data or of the coefficients between the collocation points cause an error of "
            f"{evidence.missed:.1e}, above {evidence.required:g}"
        )
    elif evidence.hidden is not None and evidence.hidden > HIDDEN:
        message = (
            "the residual between the collocation points is large: the solution, the data or the coefficients vary "
            "faster than the points resolve"
        )
    else:
        return None
    return Status.UNRESOLVED, message, "use more points, or a space that is finer there"


def _confirmed(evidence: Evidence) -> Failure | None:
    """A solution in another space must agree to half as many digits as are required."""
    if evidence.disagreement is None or is_accurate(evidence.disagreement, evidence.required**0.5):
        return None
    return Status.UNCONFIRMED, "no solution in another space agrees with it", "allow more features or more time"


def _identified(evidence: Evidence) -> Failure | None:
    """The data must determine the unknown numbers."""
    if not evidence.free:
        return None
    if "," not in evidence.free:
        message = f"the data do not determine {evidence.free}"
    else:
        message = f"the data do not see a change of several numbers together, relatively {evidence.free}"
    return Status.FREE_NUMBERS, message, "measure something else, too, or give one of the numbers"


def _at_rest(evidence: Evidence) -> Failure | None:
    """The search for unknown numbers must have reached the smallest misfit."""
    if not evidence.is_pending:
        return None
    message = (
        "the search for the unknown numbers ended although the data still ask for a step larger than a tenth of a "
    )
    return Status.STUCK, message + "standard deviation", "start nearer (Number(start)), or use more features"


def _fits(evidence: Evidence) -> Failure | None:
    """The misfit of the data must be explained by their noise."""
    if evidence.held_back:
        return Status.MISFIT, evidence.held_back, "widen the bounds, or check the equation"
    if evidence.unexplained is not None and evidence.unexplained > UNEXPLAINED:
        message = f"the solution does not explain the data: {evidence.unexplained:.0%} of their variation is left"
        return Status.MISFIT, message, "check the equation, start elsewhere, or say how noisy the data are (noise=)"
    if evidence.likeness <= UNLIKELY:
        message = (
            f"the solution does not explain the data: {evidence.unexplained or 0.0:.1%} of their variation is left, "
            f"and that is not like noise, which looks as smooth with a probability of {evidence.likeness:.0e}"
        )
        return Status.MISFIT, message, "check the equation, or start elsewhere"
    if evidence.misfit is None or evidence.misfit > UNLIKELY:
        return None
    probability = f"is {evidence.misfit:.0e}" if evidence.misfit > 1e-300 else "is below 1e-300"
    message = (
        "the residual of the data is larger than their noise explains: with a correct model the probability of that "
        + probability
    )
    return Status.MISFIT, message, "check noise= and the equation; outliers need robust='huber'"


CHECKS: tuple[Callable[[Evidence], Failure | None], ...] = (
    _finished,
    _unique,
    _compatible,
    _identified,
    _resolved,
    _accurate,
    _determined,
    _satisfied,
    _confirmed,
    _fits,
    _at_rest,
)
"""What an answer must pass to count as converged, in order. A check of something that was not measured passes."""


def remedy_for(evidence: Evidence) -> str:
    """What to change where an answer is not good enough: the points, if there are fewer than usual; the problem, where
    it leaves its solution free; else the features."""
    if evidence.points < evidence.usual_points / 2:
        return (
            f"use more points: {evidence.points} inside the domain are few for {evidence.features} features, "
            f"{evidence.usual_points} are usual (points=)"
        )
    if not evidence.is_unique:
        return "add a condition, such as a value at a point, or use more points"
    if evidence.estimate is None or is_accurate(evidence.estimate):
        return "use more features"
    if evidence.violations and max(evidence.violations.values()) < SATISFIED:
        return (
            "the equation and all conditions are satisfied nevertheless, so they do not determine the solution: add a "
            "condition"
        )
    return "use more features, and check whether the conditions contradict each other or leave the solution free"
