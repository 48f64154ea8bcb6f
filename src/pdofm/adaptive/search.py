"""A search for a tolerance: solves in one space after another until an answer is confirmed.

The work is divided: `ledger` keeps what was tried and the budget, `verifier` looks at answers where nothing was fitted,
`schedule` says how spaces grow, `pdofm.solving.verdict` decides what counts as converged, and a policy, by default that
of `policy`, chooses the spaces.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import equinox as eqx
import numpy as np

from pdofm._types import Key
from pdofm.adaptive.ledger import Ledger
from pdofm.adaptive.schedule import pays, sizes
from pdofm.adaptive.verifier import Verifier
from pdofm.discrete.checks import check_problem
from pdofm.discrete.evaluate import evaluate
from pdofm.discrete.memory import Memory
from pdofm.errors import PdofmError, SolveError
from pdofm.features import Features
from pdofm.numerics.distance import distance
from pdofm.numerics.sampling import generator
from pdofm.problem.problem import Problem
from pdofm.shown import Shown
from pdofm.solving.fit import fit
from pdofm.solving.inferred import Inferred
from pdofm.solving.methods import Method, Newton, fitted
from pdofm.solving.solution import Solution
from pdofm.solving.verdict import HIDDEN, VIOLATED, Evidence, Status, Verdict, judge

CONFIRMED = (Status.CONVERGED, Status.MISFIT)
"""What a solution in another space must confirm before it counts."""

CONTRADICTED = (Status.FREE_NUMBERS, Status.MISFIT)
"""Numbers that the data do not determine, or do not agree with, are no start for a search in another space."""

RESOLVED = 0.1
"""A solution with a smaller estimated error has a correct digit: Newton's iteration may start from it."""


class Search(Shown):
    """The state of a search for a tolerance.

    Attributes:
        problem, tol, seed: what is searched for, and the seed of features and points.
        candidates: features at hand that a policy should try.
        last: the solution of the last attempt.
        best: the solution with the smallest estimate, of those that have converged if there are any.
        reached: whether an answer is confirmed.
        ceased: a march that ended early because the solution ceases to exist, as far as it can tell.
        ledger: what was tried, and the budget.
        verifier: looks at solutions where nothing was fitted.
    """

    def __init__(
        self,
        problem: Problem,
        tol: float,
        method: Method | None,
        key: Key,
        max_features: int | None,
        max_seconds: float,
        candidates: Sequence[Features] = (),
    ):
        check_problem("solve", problem)
        self.problem, self.tol, self.method = problem, tol, method
        self.seed = int(generator(key).integers(2**31))
        self.candidates = _checked(candidates)
        self.ledger = Ledger(max_features, max_seconds, problem.layout.components)
        self.verifier = Verifier(problem, self.seed)
        self.best: Solution | None = None
        self.last: Solution | None = None
        self.reached = False
        self.ceased: Solution | None = None
        self._undetermined = self._free = 0  # attempts in a row that say so
        self._blamed: Verdict | None = (
            None  # what no other space can change: the data contradict the model, or each other
        )
        self._evidence: Evidence | None = None  # of the last answer that was checked in full
        self._last_values: np.ndarray | None = None
        self._best_values: np.ndarray | None = None
        self._best_of: dict[str, Solution] = {}  # of each space
        self._memory = Memory()

    @property
    def max_features(self) -> int:
        """The largest number of features of a space with one dense matrix."""
        return self.ledger.max_features

    @property
    def over(self) -> bool:
        """Whether the tolerance is reached, the solution is not unique or ceases to exist, data leave numbers free or
        contradict the model or each other, or the time is up."""
        ended = self.undetermined or self._blamed is not None or self.ceased is not None
        return self.reached or ended or self.ledger.is_out_of_time

    @property
    def undetermined(self) -> bool:
        """Whether one space after another leaves the solution undetermined."""
        return self._undetermined > 1

    @property
    def resolved(self) -> bool:
        """Whether there is a solution with a correct digit, by its estimate and between the collocation points."""
        best = self.best
        return best is not None and best.error_estimate < RESOLVED and self.verifier.hidden(best) <= HIDDEN

    def attempt(
        self, space: str, why: str, features: Features, sampling: str = "sobol", counts: tuple[int, int] | None = None
    ) -> Solution | None:
        """Solve in a space and take note of it; None if that fails and something else has not. `counts` are the numbers
        of points inside and on the boundary, if they are not the usual ones."""
        start = time.perf_counter()
        try:
            found = replace(self.solved(features, sampling, counts), space=space)
        except PdofmError as error:
            if self.best is None:
                raise
            self.ledger.note(space, f"{why}; failed: {error}", features.size, start)
            return None
        return self.enter(found, why, start)

    def enter(self, found: Solution, why: str, start: float) -> Solution:
        """Take note of a solution that was found since `start`, and compare it with the best one so far."""
        values = self.verifier.values(found)
        change = math.nan if self._last_values is None else distance(self._last_values, values)
        self.last, self._last_values = found, values
        evidence = found.verdict.evidence
        self._undetermined = self._undetermined + 1 if evidence.is_finished and not evidence.is_unique else 0
        self._free = self._free + 1 if self._leaves_numbers_free(found) else 0
        if found.attempts:  # it has a search of its own behind it
            self.ledger.attempts += [replace(found.attempts[0], why=why), *found.attempts[1:]]
        else:
            rows, estimate = found.stats.rows, found.error_estimate
            self.ledger.note(found.space, why, found.features.size, start, rows, estimate, change)
        if not self.reached:  # a policy that goes on does not lose what it has
            self._compare(found, values, change)
        return found

    def _leaves_numbers_free(self, found: Solution) -> bool:
        """Whether the data leave numbers free, and not only a space that does not resolve what a number does."""
        if found.verdict.status is not Status.FREE_NUMBERS:
            return False
        held_out = max(found.verdict.evidence.violations.values(), default=0.0)
        return held_out <= VIOLATED and self.verifier.hidden(found) <= HIDDEN

    def _compare(self, found: Solution, values: np.ndarray, change: float) -> None:
        """Keep the better one of a new solution and the best so far, and see whether it is confirmed: by the last one,
        from which it differs by `change`, or by the best one."""
        if found.space not in self._best_of or better(found, self._best_of[found.space]):
            self._best_of[found.space] = found
        if self._best_values is not None:
            change = float(np.fmin(change, distance(self._best_values, values)))
        self.reached = self._verdict(found, change).converged
        if self.reached or self.best is None or self._best_values is None or better(found, self.best):
            self.best, self._best_values = found, values
        elif found.verdict.evidence.is_finished:  # it may confirm what stood alone
            self.reached = self._verdict(self.best, distance(self._best_values, values)).converged

    def _verdict(self, solution: Solution, disagreement: float) -> Verdict:
        """The verdict on a solution that differs from another one by that much. The dense check, which costs most, is
        left out where something else decides. A solution may bring a comparison of its own."""
        verdict = solution.verdict
        if verdict.status in CONFIRMED and verdict.evidence.disagreement is None:
            verdict = judge(replace(verdict.evidence, disagreement=disagreement))
        if verdict.status in CONFIRMED:
            verdict = judge(replace(verdict.evidence, hidden=self.verifier.hidden(solution)))
            self._evidence = verdict.evidence
        if verdict.status in (Status.MISFIT, Status.CONTRADICTORY) or self._free > 1:
            self._blamed = verdict
        return verdict

    def solved(self, features: Features, sampling: str = "sobol", counts: tuple[int, int] | None = None) -> Solution:
        """Solve in a space without taking note of it; a nonlinear problem from the best solution so far, and unknown
        numbers from those that it has."""
        method, best, numbers = self.method, self.best, None
        if isinstance(best, Inferred) and best.verdict.status not in CONTRADICTED:
            numbers = best.numbers
        if method is None and best is not None and best.stats.steps and self._is_start(best):
            points = self.verifier.points[: 4 * features.size]
            known = evaluate(best.features, best.coefficients, points)
            method = Newton(initial=fitted(features, points, known))
        inside, around = (None, None) if counts is None else counts
        options = {"sampling": sampling, "tol": self.tol, "key": self.seed, "memory": self._memory}
        options |= {"points": inside, "boundary_points": around}
        found = fit(self.problem, features, method=method, numbers=numbers, **options)
        if method is not self.method and not found.verdict.evidence.is_finished:  # a bad start: from zero, then
            found = fit(self.problem, features, method=self.method, **options)
        return found

    def _is_start(self, best: Solution) -> bool:
        """Whether Newton's iteration may start from a solution. Where numbers are unknown, the solution for the last
        ones is needed long before the equation holds everywhere."""
        if isinstance(best, Inferred):
            return best.error_estimate < RESOLVED and best.verdict.status not in CONTRADICTED
        return self.resolved

    def grow(
        self,
        space: str,
        why: str,
        make: Callable[[int], Features],
        sampling: str = "sobol",
        *,
        until_resolved: bool = False,
        above: int = 0,
        goes_on: Callable[[list[float], float], bool] = pays,
    ) -> Solution | None:
        """Try ``make(size)`` with more and more features than `above`, as long as that pays by the estimates so far and
        the tolerance; with `until_resolved` also as long as nothing is resolved. Returns the last solution, if there is
        one."""
        estimates: list[float] = []
        size, found = above, None
        for most in sizes(self.problem.domain.dim, self.max_features):
            features = make(most)
            if self.over:
                return found
            if not size < features.size <= self.max_features:
                continue
            size, new = features.size, self.attempt(space, why, features, sampling)
            if new is None:
                return found
            found = new
            estimates.append(found.error_estimate)
            if not goes_on(estimates, self.tol) and (self.resolved or not until_resolved):
                return found
        return found

    def run(self, policy: "Policy") -> Solution:
        """Let a policy search, and say how it ended. Ctrl-C ends it with the best solution so far, if there is one."""
        interrupted = False
        try:
            policy(self)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            interrupted = True
        if self.ceased is not None:
            return replace(self.ceased, attempts=tuple(self.ledger.attempts))
        best = self.best
        if best is None:
            raise SolveError(
                "The policy has tried no space, or none within the budget. Let it call search.attempt(...), or raise "
                "max_features."
            )
        best = best if self.reached or self.undetermined or self._blamed is not None else self._least_violating(best)
        ending = self._ending(best)
        if interrupted and not self.reached:
            message = f"the search was interrupted; {ending.message}"
            ending = replace(ending, status=Status.INTERRUPTED, message=message)
        return replace(best, verdict=ending, attempts=tuple(self.ledger.attempts))

    def _least_violating(self, best: Solution) -> Solution:
        """The best solution, unless it violates the equation between the collocation points: then its estimate, which
        comes from what was fitted and what is near, means little. Of the best solutions of all spaces, the one that
        violates the equation least takes its place, and what it violates is the least that is estimated."""
        if not np.isfinite(best.coefficients).all() or self.verifier.hidden(best) <= HIDDEN:
            return best
        known = [s for s in self._best_of.values() if np.isfinite(s.error_estimate)]  # not those cut short
        each = [s for s in known if np.isfinite(s.coefficients).all()] or [best]
        violated = [self.verifier.hidden(s) for s in each]
        least = int(np.argmin(violated))
        found, left = each[least], violated[least]
        if left <= HIDDEN:
            return found
        estimate = max(found.error_estimate, min(left, 1.0))
        evidence = replace(found.verdict.evidence, estimate=estimate)
        return replace(found, error_estimate=estimate, verdict=replace(found.verdict, evidence=evidence))

    def _ending(self, best: Solution) -> Verdict:
        """The verdict on the best solution, with what the search has to say about it."""
        chosen = f"{best.space}, {best.stats.features} features"
        if self.reached:
            message = f"the tolerance {self.tol:g} is reached by {chosen}"
            return Verdict(Status.CONVERGED, message, evidence=self._evidence or best.verdict.evidence)
        if self.undetermined and best.verdict.status is Status.UNDETERMINED:
            return best.verdict
        if self._blamed is not None:
            return self._blamed
        verdict = judge(replace(best.verdict.evidence, hidden=self.verifier.hidden(best), disagreement=math.nan))
        message = (
            f"the tolerance {self.tol:g} is not reached with {self.ledger.budget}; the best of {self.ledger.solved} "
            f"spaces, {chosen}, has an estimated error of {best.error_estimate:.1e}"
        )
        if verdict.status is not Status.INACCURATE:
            message += f", {'but' if best.error_estimate <= self.tol else 'because'} {verdict.message}"
        if self.ledger.is_out_of_time:
            message += "; the time limit ended the search, so another run may reach a different space"
        return replace(verdict, message=message, remedy="")


def _checked(candidates: Sequence[Features]) -> tuple[Features, ...]:
    """Features, each once: equal ones would confirm each other."""
    if not isinstance(candidates, list | tuple) or not all(isinstance(each, Features) for each in candidates):
        raise SolveError("candidates must be a list of features, as in candidates=[pf.load('poisson-2d')].")
    kept: list[Features] = []
    for each in candidates:
        if not any(eqx.tree_equal(each, other) for other in kept):
            kept.append(each)
    return tuple(kept)


def better(one: Solution, other: Solution) -> bool:
    """Whether the first solution is better than the second: a converged one than another, then the smaller estimate."""
    return _rank(one) < _rank(other)


def _rank(solution: Solution) -> tuple[bool, float]:
    """Smaller is better."""
    estimate = solution.error_estimate
    return not solution.converged, estimate if math.isfinite(estimate) else math.inf


Policy = Callable[[Search], None]
"""Calls `Search.attempt` or `Search.grow` until the search is over."""
