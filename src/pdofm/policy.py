"""Ask for a tolerance: which spaces are tried, in which order, and when to believe an answer.

A policy is a function ``policy(search)`` that calls `Search.attempt` or `Search.grow` until `search.over`; everything
that is decided about a space is decided in `default_policy`.

An answer is believed if its estimated error is below the tolerance, the solution before it or a later one, in another
space, agrees with it to half as many digits, and the equation holds at many more points: an estimate alone can be
fooled by a layer or a source that falls between the points.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from pdofm._types import Key, Points, Vector
from pdofm.assemble import entries, left_values, right_values
from pdofm.collocate import Block, collocate
from pdofm.conditions import Periodic
from pdofm.domain import corners
from pdofm.errors import PdofmError, ProblemError, SolveError
from pdofm.evaluate import evaluate
from pdofm.features import (
    Chebyshev,
    Concatenate,
    CornerFunctions,
    Features,
    Fourier,
    NetworkFeatures,
    StretchedPolynomials,
)
from pdofm.fit import fit
from pdofm.methods import Method, Newton, fitted
from pdofm.problem import Problem
from pdofm.sampling import generator
from pdofm.solution import Attempt, Solution

FIRST_SIZES = {1: 32, 2: 120, 3: 220}
"""The smallest space that is tried, by dimension."""

GROWTH = 1.8
"""Every space has so many times more features than the one before."""

PAYS = 3.0
"""Growth pays as long as it divides the estimate by this, at least every other time."""

WIDTHS = (0.05, 0.015, 0.005)
CENTRES = 40
"""Where layers are looked for in one dimension: so many places and these widths, relative to the interval."""

MOST_DIMENSIONS = 3
"""In more dimensions layers are not looked for: the search would take longer than the solution."""

THINNEST = 1e-6
"""No layer thinner than this, relative to the domain, is looked for."""

RESOLVED = 0.1
"""Newton's iteration starts from a solution whose estimated error is below this, else from zero."""

DENSE = 20_000
"""Points in between: so many that a detail of a thousandth of an interval meets ten of them."""


class Search:
    """The state of a search for a tolerance: what was tried, and the best so far.

    `over` tells a policy to stop. `best` is the solution with the smallest estimate, of those that have converged if
    there are any.
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
        if not isinstance(problem, Problem):
            raise ProblemError(f"solve() takes a Problem; got {type(problem).__name__}. Make one with Problem(…).")
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
        self.reached = False
        self._last: np.ndarray | None = None
        self._best: np.ndarray | None = None
        self._start = time.perf_counter()
        self._points = problem.domain.sample(1000, "random", key=self.seed)

    @property
    def time_left(self) -> float:
        """Seconds of the budget."""
        return self.max_seconds - (time.perf_counter() - self._start)

    @property
    def over(self) -> bool:
        """Whether the tolerance is reached or, after one attempt at least, the time is up."""
        return self.reached or (bool(self.attempts) and self.time_left < 0)

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
        self._last = values
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

    def residual(self, solution: Solution) -> Float[np.ndarray, "n k"]:
        """Left minus right side of the equation at the points in between."""
        block, right = self.in_between
        return left_values(self.problem.layout, solution.features, block, solution.coefficients) - right

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
        if method is None and best is not None and best.stats.steps and best.error_estimate < RESOLVED:
            points = self.in_between[0].points[: 4 * features.size]
            known = evaluate(best.features, best.coefficients, points)
            method = Newton(initial=fitted(features, points, known))
        options = {"sampling": sampling, "tol": self.tol, "key": self.seed}
        found = fit(self.problem, features, method=method, **options)
        if method is not self.method and not found.stats.finished:  # a bad start: from zero, then
            found = fit(self.problem, features, method=self.method, **options)
        return found

    def grow(self, space: str, why: str, make: Callable[[int], Features], sampling: str = "sobol") -> None:
        """Try ``make(size)`` with more and more features, as long as that pays."""
        estimates: list[float] = []
        size = 0
        for most in self.sizes():
            features = make(most)
            if self.over:
                return
            if not size < features.size <= self.max_features:
                continue
            size, found = features.size, self.attempt(space, why, features, sampling)
            if found is None:
                return
            estimates.append(found.error_estimate)
            if len(estimates) > 2 and not (estimates[-1] <= max(self.tol, estimates[-3] / PAYS)):
                return

    def sizes(self) -> Iterator[int]:
        """Growing numbers of features within the budget."""
        size = float(FIRST_SIZES.get(self.problem.domain.dim, FIRST_SIZES[3]))
        while size < self.max_features:
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


Policy = Callable[[Search], None]


def default_policy(search: Search) -> None:
    """Features at hand, then polynomials: where the solution is smooth nothing is cheaper. Where they converge slowly,
    what is known to spoil them: re-entrant corners, then a layer. At last networks, which depend on the shape of the
    solution least.
    """
    problem = search.problem
    domain = problem.domain
    for features in search.candidates:
        if not search.over and features.size <= search.max_features:
            search.attempt("features at hand", "they were given", features)
    if not search.over and _is_periodic(problem):
        search.grow("Fourier", "all sides are periodic", lambda m: Fourier(domain, m, kind="tensor"))
    if not search.over:
        search.grow("polynomials", "best where the solution is smooth", lambda m: Chebyshev(domain, m), "clustered")
    if not search.over and _has_reentrant_corners(problem):
        singular = CornerFunctions(domain, convex=True)  # too many for a small budget, which grow() leaves out
        search.grow(
            "polynomials and corner functions",
            "polynomials converge slowly, and the domain has a re-entrant corner",
            lambda m: Concatenate(Chebyshev(domain, max(m - singular.size, m // 2)), singular),
            "clustered",
        )
    if not search.over and (layer := find_layer(search)) is not None:
        search.grow(
            "polynomials stretched across a layer",
            f"a layer of width {layer.width:.1g} fits the residual at n·x = {layer.center:.3g}, n = "
            f"{np.round(layer.direction, 3).tolist()}",
            layer.polynomials,
        )
    if not search.over:
        search.grow(
            "network",
            "nothing else has converged",
            lambda m: NetworkFeatures(domain, m, key=search.seed),
        )


def _is_periodic(problem: Problem) -> bool:
    axes = {condition.axis for condition in problem.stated if isinstance(condition, Periodic)}
    return not problem.layout.has_time and axes == set(range(problem.domain.dim))


def _has_reentrant_corners(problem: Problem) -> bool:
    plane = problem.domain.dim == 2 and not problem.layout.has_time
    return plane and any(corner.angle > math.pi + 1e-9 for corner in corners(problem.domain))


class Layer(NamedTuple):
    """A layer of a width at n·x = center, on a problem's domain."""

    problem: Problem
    direction: Vector
    center: float
    width: float

    def polynomials(self, size: int) -> StretchedPolynomials:
        """Polynomials that are stretched across it."""
        return StretchedPolynomials(
            self.problem.domain, size, direction=self.direction, center=self.center, width=self.width
        )


def find_layer(search: Search) -> Layer | None:
    """The layer in whose stretched coordinates the residual of the equation is smallest; None if it is not ten times
    smaller than with as many plain polynomials.

    All are compared at the same points, which belong to none of them. The search starts where the residual of the best
    solution, or the data themselves, concentrate; in one dimension also from a grid of places and widths, because the
    residual of an unresolved layer may be anywhere.
    """
    problem, start = search.problem, time.perf_counter()
    size = 2 * FIRST_SIZES.get(problem.domain.dim, 0)
    if problem.domain.dim > MOST_DIMENSIONS or size > search.max_features:
        return None
    deadline = start + search.time_left / 2  # the other half is for solving
    block, right = search.in_between

    def quality(features: Features, sampling: str = "sobol") -> float:
        return float(np.linalg.norm(search.residual(search.solved(features, sampling))))

    weights = [right]
    if search.best is not None:
        weights.append(search.residual(search.best))
    starts = [layer for values in weights for layer in _concentrated(problem, block.points, np.sum(values**2, axis=1))]
    starts += _everywhere(problem) if problem.domain.dim == 1 else []
    tried: list[tuple[float, Layer]] = []

    def try_out(layer: Layer) -> float:
        if time.perf_counter() > deadline:
            raise TimeoutError
        tried.append((quality(layer.polynomials(size)), layer))
        return tried[-1][0]

    try:
        for layer in starts:
            try_out(layer)
        for _, layer in sorted(tried, key=lambda each: each[0])[:2]:
            _improve(layer, try_out)
    except TimeoutError:
        pass
    best, layer = min(tried, key=lambda each: each[0], default=(math.inf, None))
    plain = quality(Chebyshev(problem.domain, size), "clustered")
    better = plain / best if best > 0 else math.inf
    why = f"{len(tried)} layers tried; the best one divides the residual of as many polynomials by {better:.0f}"
    search.note("(search for a layer)", why, size, start)
    return layer if better > 10 else None


def _everywhere(problem: Problem) -> list[Layer]:
    """Layers at all places of an interval."""
    domain = problem.domain
    places = domain.lower[0] + domain.size * np.linspace(0, 1, CENTRES + 2)[1:-1]
    return [Layer(problem, np.ones(1), float(x), float(w * domain.size)) for w in WIDTHS for x in places]


def _concentrated(problem: Problem, points: Points, weights: Vector) -> Iterator[Layer]:
    """The plane around which the weights lie: the direction in which they spread least."""
    total = weights.sum()
    if not total > 0:
        return
    mean = weights @ points / total
    spread, directions = np.linalg.eigh((points - mean).T @ ((points - mean) * weights[:, None]) / total)
    normal, width = directions[:, 0], max(float(spread[0]), 0.0) ** 0.5
    for factor in (0.5, 1.0, 2.0):
        yield Layer(problem, normal, float(normal @ mean), max(factor * width, THINNEST * float(problem.domain.size)))


def _improve(start: Layer, quality: Callable[[Layer], float]) -> None:
    """Move, turn and widen the layer as long as its quality falls."""
    from scipy.optimize import minimize  # slow to import, and rarely needed

    normal, domain = start.direction, start.problem.domain
    others = np.linalg.qr(np.column_stack([normal, np.eye(len(normal))]))[0][:, 1 : len(normal)]
    middle = (domain.lower + domain.upper) / 2
    middle = middle + (start.center - normal @ middle) * normal  # it turns about this point of the layer

    def moved(step: Vector) -> Layer:
        direction = normal + start.width / float(domain.size) * others @ step[2:]
        direction = direction / np.linalg.norm(direction)
        return start._replace(
            direction=direction,
            center=float(direction @ middle + start.width * step[0]),
            width=start.width * math.exp(step[1]),
        )

    zero = np.zeros(1 + len(normal))
    minimize(
        lambda step: math.log10(max(quality(moved(step)), 1e-300)),
        zero,
        method="Nelder-Mead",
        options={
            "initial_simplex": np.stack([zero, *(0.5 * np.eye(len(zero)))]),
            "maxfev": 20 * len(zero),
            "xatol": 0.05,
            "fatol": 0.05,
        },
    )


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """Relative L2 distance, in a system of the component that moved most."""
    sizes = np.maximum(np.linalg.norm(b, axis=0), 1e-6 * np.linalg.norm(b))
    return float(np.max(np.linalg.norm(a - b, axis=0) / np.where(sizes == 0, 1.0, sizes)))
