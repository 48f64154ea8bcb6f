"""The search for a layer: the stretched coordinates across it in which the equation is solved best. `curves` has the
search for a curve along which the source is concentrated."""

import math
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from pdofm._types import Points, Vector
from pdofm.adaptive.curves import find_curve
from pdofm.adaptive.schedule import FIRST_SIZES
from pdofm.adaptive.search import Search
from pdofm.errors import PdofmError
from pdofm.features import Chebyshev, Features, StretchedPolynomials
from pdofm.problem.problem import Problem

WIDTHS = (0.05, 0.015, 0.005)
CENTRES = 40
"""Widths of the layers that are tried in one dimension, relative to the interval, and the number of places."""

MOST_DIMENSIONS = 3
"""The largest dimension in which layers are looked for: beyond it the search takes longer than the solution."""

COMPARED = 4096
"""Points at which the residuals of layers are compared."""

CURVED_SIZE, AROUND_WIDTH = 400, (0.5, 1.0, 2.0)
"""Polynomials with which the width of a curved layer is found, and the widths that are tried, relative to that of the
source."""

THINNEST = 1e-6
"""The smallest width of a layer that is looked for, relative to the domain."""


class Layer(NamedTuple):
    """A layer of a width at n·x = center, on the domain of a problem; a curved one has several coefficients."""

    problem: Problem
    direction: Vector
    center: float | Vector
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
    deadline = start + search.ledger.time_left / 2  # the other half is for solving

    def quality(features: Features, sampling: str = "sobol") -> float:
        try:
            solution = search.solved(features, sampling)
        except PdofmError:  # a bad layer may be no place to solve anything
            return math.inf
        return float(np.linalg.norm(search.verifier.residual(solution, COMPARED)))

    weights = [search.verifier.right]
    if search.best is not None:
        weights.append(search.verifier.residual(search.best))
    starts = [
        layer
        for values in weights
        for layer in _concentrated(problem, search.verifier.points, np.sum(values**2, axis=1))
    ]
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
        ending = ""
    except TimeoutError:
        ending = "; the time for it was up"
    best, layer = min(tried, key=lambda each: each[0], default=(math.inf, None))
    plain = quality(Chebyshev(problem.domain, size), "clustered")
    better = plain / best if best > 0 else math.inf
    why = f"{len(tried)} layers tried; the best one divides the residual of as many polynomials by {better:.0f}{ending}"
    search.ledger.note("(search for a layer)", why, size, start)
    return layer if better > 10 else None


def find_curved_layer(search: Search) -> Layer | None:
    """The layer along a thin curve at which the source is concentrated, with the width, near that of the source, in
    whose stretched coordinates the residual is smallest; None if there is no such curve."""
    problem, verifier, start = search.problem, search.verifier, time.perf_counter()
    if problem.domain.dim != 2 or search.max_features < CURVED_SIZE:
        return None

    def strength(points: Points) -> Vector:
        return np.sum(verifier.right_at(points) ** 2, axis=1)

    curve = find_curve(problem.domain, strength, verifier.points, np.sum(verifier.right**2, axis=1))
    if curve is None:
        return None
    tried: list[tuple[float, Layer]] = []
    for factor in AROUND_WIDTH:
        layer = Layer(problem, curve.direction, curve.center, factor * curve.width)
        try:
            found = search.solved(layer.polynomials(CURVED_SIZE), "clustered")
        except PdofmError:
            continue
        tried.append((float(np.linalg.norm(verifier.residual(found, COMPARED))), layer))
    if not tried:
        return None
    why = f"the source is concentrated along a curve; {len(tried)} widths tried"
    search.ledger.note("(search for a layer)", why, CURVED_SIZE, start)
    return min(tried, key=lambda each: each[0])[1]


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
    center = float(start.center)
    middle = middle + (center - normal @ middle) * normal  # it turns about this point of the layer

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
