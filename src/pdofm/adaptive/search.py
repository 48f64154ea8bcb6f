"""A search for a tolerance: what was tried, what it costs, and when an answer is believed.

An answer is believed if its estimated error is below the tolerance, the solution before it or a later one, in another
space, agrees with it to half as many digits, and the equation holds at many more points: an estimate alone can be
fooled by a layer or a source that falls between the points.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import equinox as eqx
import numpy as np
from jaxtyping import Float

from pdofm._types import Key
from pdofm.discrete.assemble import Memory, entries, left_values
from pdofm.discrete.checks import check_problem
from pdofm.discrete.collocate import Block, collocate
from pdofm.discrete.evaluate import evaluate
from pdofm.discrete.right import right_values
from pdofm.errors import PdofmError, SolveError
from pdofm.features import Features
from pdofm.numerics.sampling import generator
from pdofm.problem.problem import Problem
from pdofm.solving.estimate import UNSEEN
from pdofm.solving.fit import fit
from pdofm.solving.methods import Method, Newton, fitted
from pdofm.solving.solution import Attempt, Solution

FIRST_SIZES = {1: 32, 2: 120, 3: 220}
"""The smallest space that is tried, by dimension."""

GROWTH = 1.8
"""Every space has so many times more features than the one before."""

PAYS = 3.0
"""Growth pays as long as it divides the estimate by this, at least every other time."""

RESOLVED = 0.1
"""Below this estimate a solution has a digit: Newton's iteration may start from it."""

DENSE = 20_000
"""Points in between: so many that a detail of a thousandth of an interval meets ten of them."""


class Search:
    """The state of a search for a tolerance: what was tried, and the best so far.

    `over` tells a policy to stop. `last` is the solution of the last attempt, `best` the one with the smallest
    estimate, of those that have converged if there are any.
    """

    def __init__(
        self,
        problem: Problem,
        tol: float,
        method: Method | None,
        key: Key,
        max_features: int,
        max_seconds: float,
        candidates: Sequence[Features] = (),
    ):
        check_problem("solve", problem)
        if max_features < 1 or not max_seconds >= 0:
            raise SolveError(
                f"A search needs a budget of at least one feature and no negative time; got max_features="
                f"{max_features}, max_seconds={max_seconds}."
            )
        self.problem, self.tol, self.method = problem, tol, method
        self.seed = int(generator(key).integers(2**31))
        self.max_features, self.max_seconds = max_features, max_seconds
        self.candidates = _checked(candidates)
        self.attempts: list[Attempt] = []
        self.best: Solution | None = None
        self.last: Solution | None = None
        self.reached = False
        self._undetermined = 0  # attempts in a row
        self._last: np.ndarray | None = None
        self._held: tuple[Solution, bool] | None = None  # the last answer of `resolved`
        self._best: np.ndarray | None = None
        self._memory = Memory()
        self._start = time.perf_counter()
        self._points = problem.domain.sample(1000, "random", key=self.seed)

    @property
    def time_left(self) -> float:
        """Seconds of the budget."""
        return self.max_seconds - (time.perf_counter() - self._start)

    @property
    def over(self) -> bool:
        """Whether the tolerance is reached, the solution not unique or, after one attempt at least, the time up."""
        return self.reached or self.undetermined or (bool(self.attempts) and self.time_left < 0)

    @property
    def undetermined(self) -> bool:
        """Whether one space after another leaves the solution undetermined."""
        return self._undetermined > 1

    @property
    def resolved(self) -> bool:
        """Whether there is a solution with a digit, by its estimate and between the fitted points."""
        if self.best is None or not self.best.error_estimate < RESOLVED:
            return False
        if self._held is None or self._held[0] is not self.best:
            self._held = self.best, self.holds_in_between(self.best)
        return self._held[1]

    def attempt(self, space: str, why: str, features: Features, sampling: str = "sobol") -> Solution | None:
        """Solve in a space and take note of it; None if that fails and something else has not."""
        start = time.perf_counter()
        try:
            found = self.solved(features, sampling)
        except PdofmError as error:
            if self.best is None:
                raise
            self.note(space, f"{why}; failed: {error}", features.size, start)
            return None
        values = evaluate(features, found.coefficients, self._points)
        change = math.nan if self._last is None else _distance(self._last, values)
        self.last, self._last = found, values
        free = found.stats.finished and found.stats.undetermined > UNSEEN
        self._undetermined = self._undetermined + 1 if free else 0
        self.note(space, why, features.size, start, found.stats.rows, found.error_estimate, change)
        if self.reached:  # a policy that goes on does not lose what it has
            return found
        enough = self.tol**0.5
        self.reached = found.converged and change <= enough and self.holds_in_between(found)
        if self.reached or self.best is None or self._best is None or _rank(found) < _rank(self.best):
            self.best, self._best = replace(found, space=space), values
        elif found.stats.finished and self.best.converged and _distance(self._best, values) <= enough:
            self.reached = self.holds_in_between(self.best)  # what stood alone is confirmed
        return found

    @cached_property
    def in_between(self) -> tuple[Block, Float[np.ndarray, "n k"]]:
        """Many more points inside than are ever fitted, and the right side of the equation there."""
        layout = self.problem.layout
        block = collocate(self.problem, DENSE, 1, sampling="random", key=self.seed)[0]
        return block, right_values(layout, block, entries(layout, block))

    def residual(self, solution: Solution, count: int = DENSE) -> Float[np.ndarray, "n k"]:
        """Left minus right side of the equation at the points in between, or at the first `count` of them."""
        block, right = self.in_between
        block = replace(block, points=block.points[:count], normals=block.normals[:count])
        return left_values(self.problem.layout, solution.features, block, solution.coefficients) - right[:count]

    def holds_in_between(self, solution: Solution) -> bool:
        """Whether no detail of the data hides between the fitted points: nowhere is the equation violated by a tenth of
        its largest right side. An equation without a right side has nothing to hide."""
        largest = float(np.max(np.abs(self.in_between[1])))
        return largest == 0 or bool(np.max(np.abs(self.residual(solution))) <= largest / 10)

    def note(
        self,
        space: str,
        why: str,
        features: int,
        start: float,
        rows: int = 0,
        estimate: float = math.inf,
        change: float = math.nan,
    ) -> None:
        """Enter something that was tried since `start` into the table."""
        self.attempts.append(Attempt(space, why, features, rows, time.perf_counter() - start, estimate, change))

    def solved(self, features: Features, sampling: str = "sobol") -> Solution:
        """Solve in a space without taking note of it; a nonlinear problem from the best solution so far."""
        method, best = self.method, self.best
        if method is None and best is not None and best.stats.steps and self.resolved:
            points = self.in_between[0].points[: 4 * features.size]
            known = evaluate(best.features, best.coefficients, points)
            method = Newton(initial=fitted(features, points, known))
        options = {"sampling": sampling, "tol": self.tol, "key": self.seed, "memory": self._memory}
        found = fit(self.problem, features, method=method, **options)
        if method is not self.method and not found.stats.finished:  # a bad start: from zero, then
            found = fit(self.problem, features, method=self.method, **options)
        return found

    def grow(
        self,
        space: str,
        why: str,
        make: Callable[[int], Features],
        sampling: str = "sobol",
        *,
        until_resolved: bool = False,
        above: int = 0,
    ) -> Solution | None:
        """Try ``make(size)`` with more and more features than `above`, as long as that pays; with `until_resolved` also
        as long as nothing is resolved. Returns the last solution, if there is one."""
        estimates: list[float] = []
        size, found = above, None
        for most in self.sizes():
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
            if until_resolved and not self.resolved:
                continue
            if len(estimates) > 2 and not (estimates[-1] <= max(self.tol, estimates[-3] / PAYS)):
                return found
        return found

    @property
    def first_size(self) -> int:
        """The number of features of the smallest space that is tried."""
        return FIRST_SIZES.get(self.problem.domain.dim, FIRST_SIZES[3])

    def sizes(self) -> Iterator[int]:
        """Growing numbers of features; the last one is the budget."""
        size = float(self.first_size)
        while (size if size == self.first_size else 1.2 * size) < self.max_features:
            yield round(size)
            size *= GROWTH
        yield self.max_features

    def _doubt(self, best: Solution) -> str:
        """Why a solution is not believed although its estimate is small enough."""
        if not best.converged:
            return best.reason
        if not self.holds_in_between(best):
            return "between the fitted points the equation is violated: something is narrower than the points are dense"
        return "no other solution agrees with it"

    def run(self, policy: "Policy") -> Solution:
        """Let a policy search, and say how it ended."""
        policy(self)
        best = self.best
        if best is None:
            raise SolveError(
                "The policy has tried no space, or none within the budget. Let it call search.attempt(...), or raise "
                "max_features."
            )
        chosen = f"{best.space}, {best.stats.features} features"
        if self.reached:
            reason = f"the tolerance {self.tol:g} is reached by {chosen}"
        elif self.undetermined and best.stats.undetermined > UNSEEN:
            reason = best.reason
        else:
            solved = sum(attempt.rows > 0 for attempt in self.attempts)
            reason = (
                f"the tolerance {self.tol:g} is not reached with max_features={self.max_features} and max_seconds="
                f"{self.max_seconds:g}; the best of {solved} spaces, {chosen}, has an estimated error of "
                f"{best.error_estimate:.1e}"
            )
            if best.error_estimate <= self.tol:
                reason += f", but {self._doubt(best)}"
        return replace(best, converged=self.reached, reason=reason, attempts=tuple(self.attempts))


def _checked(candidates: Sequence[Features]) -> tuple[Features, ...]:
    """Features, each once: equal ones would confirm each other."""
    if isinstance(candidates, Features) or not all(isinstance(each, Features) for each in candidates):
        raise SolveError("candidates must be a list of features, as in candidates=[pf.load('poisson-2d')].")
    kept: list[Features] = []
    for each in candidates:
        if not any(eqx.tree_equal(each, other) for other in kept):
            kept.append(each)
    return tuple(kept)


def _rank(solution: Solution) -> tuple[bool, float]:
    """Smaller is better."""
    estimate = solution.error_estimate
    return not solution.converged, estimate if math.isfinite(estimate) else math.inf


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """Relative L2 distance, in a system of the component that moved most."""
    sizes = np.maximum(np.linalg.norm(b, axis=0), 1e-6 * np.linalg.norm(b))
    return float(np.max(np.linalg.norm(a - b, axis=0) / np.where(sizes == 0, 1.0, sizes)))


Policy = Callable[[Search], None]
"""Calls `Search.attempt` or `Search.grow` until the search is over."""
