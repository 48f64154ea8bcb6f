"""Ask for a tolerance: which spaces are tried, in which order, and when to believe an answer.

A policy is a function ``policy(search)`` that calls `Search.attempt` or `Search.grow` until `search.over`; everything
that is decided about a space is decided in `default_policy`. An answer is believed if its estimated error is below the
tolerance and the solution before it, in a smaller or another space, agrees with it to half as many digits: an estimate
alone can be fooled by a layer that falls between the points.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from pdofm._types import Key, Points, Vector
from pdofm.assemble import collocate, entries, evaluate, left_values, right_values
from pdofm.conditions import Periodic
from pdofm.domain import corners
from pdofm.errors import ProblemError
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
from pdofm.methods import Method
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

DENSE = 4000
"""Points at which residuals are looked at to find a layer."""


class Search:
    """The state of a search for a tolerance: what was tried, and the best so far."""

    def __init__(
        self, problem: Problem, tol: float, method: Method | None, key: Key, max_features: int, max_seconds: float
    ):
        if not isinstance(problem, Problem):
            raise ProblemError(f"solve() takes a Problem; got {type(problem).__name__}.")
        self.problem, self.tol, self.method = problem, tol, method
        self.seed = int(generator(key).integers(2**31))
        self.max_features, self.max_seconds = max_features, max_seconds
        self.attempts: list[Attempt] = []
        self.best: Solution | None = None
        self.reached = False
        self._last: np.ndarray | None = None
        self._start = time.perf_counter()
        self._points = problem.domain.sample(1000, "random", key=self.seed)

    @property
    def over(self) -> bool:
        """Whether the tolerance is reached or the time is up, after one attempt at least."""
        return self.reached or (bool(self.attempts) and time.perf_counter() - self._start > self.max_seconds)

    def attempt(self, space: str, why: str, features: Features, sampling: str = "sobol") -> Solution:
        """Solve in a space and take note of it."""
        start = time.perf_counter()
        found = self.fit(features, sampling)
        values = evaluate(features, found.coefficients, self._points)
        change = math.nan if self._last is None else _distance(self._last, values)
        self._last = values
        seconds = time.perf_counter() - start
        self.attempts.append(
            Attempt(space, why, features.size, found.stats.rows, seconds, found.error_estimate, change)
        )
        self.reached = found.converged and change <= self.tol**0.5
        if self.reached or self.best is None or found.error_estimate < self.best.error_estimate:
            self.best = found
        return found

    def fit(self, features: Features, sampling: str = "sobol") -> Solution:
        """Solve in a space without taking note of it."""
        return fit(self.problem, features, method=self.method, sampling=sampling, tol=self.tol, key=self.seed)

    def grow(self, space: str, why: str, make: Callable[[int], Features], sampling: str = "sobol") -> None:
        """Try ``make(size)`` with more and more features, as long as that pays."""
        estimates: list[float] = []
        for size in self.sizes():
            features = make(size)
            if self.over or (len(estimates) > 0 and features.size <= self.attempts[-1].features):
                return
            estimates.append(self.attempt(space, why, features, sampling).error_estimate)
            if len(estimates) > 2 and estimates[-1] > self.tol and estimates[-1] > estimates[-3] / PAYS:
                return

    def sizes(self) -> Iterator[int]:
        """Growing numbers of features within the budget."""
        size = float(FIRST_SIZES.get(self.problem.domain.dim, FIRST_SIZES[3]))
        while size < self.max_features:
            yield round(size)
            size *= GROWTH
        yield self.max_features

    def run(self, policy: "Policy") -> Solution:
        """Let a policy search, and say how it ended."""
        policy(self)
        if self.best is None:
            raise ProblemError("The policy has tried no space. Call search.attempt(...) at least once.")
        found = replace(self.best, converged=self.reached, attempts=tuple(self.attempts))
        chosen = f"{found.space}, {found.stats.features} features"
        if self.reached:
            reason = f"the tolerance {self.tol:g} is reached by {chosen}"
        else:
            budget = f"max_seconds={self.max_seconds:g}" if self.over else f"max_features={self.max_features}"
            alone = "" if self.best.error_estimate > self.tol else ", and no other solution agrees with it"
            reason = (
                f"the tolerance {self.tol:g} is not reached within the budget {budget}; the best of "
                f"{len(self.attempts)} attempts, {chosen}, has an estimated error of {found.error_estimate:.1e}{alone}"
            )
        return replace(found, reason=reason)


Policy = Callable[[Search], None]


def default_policy(search: Search) -> None:
    """Polynomials first: where the solution is smooth nothing is cheaper. Where they converge slowly, what is known to
    spoil them: re-entrant corners, then a layer. At last networks, which depend on the shape of the solution least.
    """
    problem = search.problem
    domain = problem.domain
    if _is_periodic(problem):
        search.grow("Fourier", "all sides are periodic", lambda m: Fourier(domain, m, kind="tensor"))
    if not search.over:
        search.grow("polynomials", "best where the solution is smooth", lambda m: Chebyshev(domain, m), "clustered")
    if not search.over and _has_reentrant_corners(problem):
        singular = CornerFunctions(domain, convex=True)
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
    """The layer in whose stretched coordinates the residual at points that are not fitted is smallest; None if they do
    not divide it by ten.

    It starts where the residual of the best solution, or the data themselves, concentrate; in one dimension also from
    a grid of places and widths, because the residual of an unresolved layer may be anywhere.
    """
    problem = search.problem
    if problem.domain.dim > MOST_DIMENSIONS:
        return None
    size = 2 * round(FIRST_SIZES[problem.domain.dim])
    plain = search.fit(Chebyshev(problem.domain, size), "clustered").stats.held_out

    def quality(layer: Layer) -> float:
        return math.inf if search.over else search.fit(layer.polynomials(size)).stats.held_out

    starts = sorted(_candidates(search), key=quality)[:3]
    if not starts:
        return None
    found = min((_improved(layer, quality) for layer in starts), key=quality)
    return found if quality(found) < plain / 10 else None


def _candidates(search: Search) -> Iterator[Layer]:
    problem, best = search.problem, search.best
    domain = problem.domain
    block = collocate(problem, DENSE, 1, sampling="random", key=search.seed)[0]
    right = right_values(problem.layout, block, entries(problem.layout, block))
    weights = [right]
    if best is not None:
        weights.append(left_values(problem.layout, best.features, block, best.coefficients) - right)
    for values in weights:
        yield from _concentrated(problem, block.points, np.sum(values**2, axis=1))
    if domain.dim == 1:
        length = float(domain.size)
        for width in WIDTHS:
            for place in np.linspace(0, 1, CENTRES + 2)[1:-1]:
                yield Layer(problem, np.ones(1), float(domain.lower[0] + place * length), width * length)


def _concentrated(problem: Problem, points: Points, weights: Vector) -> Iterator[Layer]:
    """The plane around which the weights lie: the direction in which they spread least."""
    total = weights.sum()
    if not total > 0:
        return
    mean = weights @ points / total
    spread, directions = np.linalg.eigh((points - mean).T @ ((points - mean) * weights[:, None]) / total)
    normal = directions[:, 0]
    for factor in (0.5, 1.0, 2.0):
        yield Layer(problem, normal, float(normal @ mean), max(factor * float(spread[0]) ** 0.5, 1e-6))


def _improved(start: Layer, quality: Callable[[Layer], float]) -> Layer:
    """The layer moved, turned and widened until its quality is best nearby."""
    normal = start.direction
    others = np.linalg.qr(np.column_stack([normal, np.eye(len(normal))]))[0][:, 1 : len(normal)]

    def moved(step: Vector) -> Layer:
        direction = normal + start.width * others @ step[2:]
        direction = direction / np.linalg.norm(direction)
        # It turns about where it is, not about the origin.
        middle = start.center * normal
        return start._replace(
            direction=direction,
            center=float(direction @ middle + start.width * step[0]),
            width=start.width * math.exp(step[1]),
        )

    zero = np.zeros(1 + len(normal))
    simplex = np.stack([zero, *(0.5 * np.eye(len(zero)))])
    found = minimize(
        lambda step: math.log10(max(quality(moved(step)), 1e-300)),
        zero,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": 20 * len(zero), "xatol": 0.05, "fatol": 0.05},
    )
    return moved(found.x)


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """Relative L2 distance, in a system of the component that moved most."""
    sizes = np.maximum(np.linalg.norm(b, axis=0), 1e-6 * np.linalg.norm(b))
    return float(np.max(np.linalg.norm(a - b, axis=0) / np.where(sizes == 0, 1.0, sizes)))
