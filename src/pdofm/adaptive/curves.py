"""The search for a thin layer along a curve in the plane, where the right side of the equation is concentrated.

A solution that changes steeply across a curve has a source that is large there and nowhere else. So the curve is seen
before anything is solved: as a graph n·x = c(t) over the direction in which the large values of the source spread most.
It is followed along lines across it, on which the source has a center and a width.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev

from pdofm._types import Points, Vector
from pdofm.domain import Domain

LARGE = 0.1
"""Sources are large above this fraction of the largest one."""

MOST_LARGE, FEWEST_LARGE = 0.1, 20
"""The largest fraction, and the smallest number, of points with large sources that show a thin curve."""

THIN = 0.01
"""A layer is thin if its width is below this fraction of the domain. Boxes resolve wider ones."""

LINES, ON_A_LINE = 160, 801
"""Lines across the curve, and points on each of them."""

DEGREES = (2, 4, 6, 8, 10, 12, 14)
"""The degrees of the polynomial c(t), one after the other, until it follows the curve."""

FOLLOWED = 0.1
"""The curve is followed if its centers on the lines are no farther from it than this fraction of its width."""

LONG = 20.0
"""A curve is so many times longer than wide, at least."""

WIDER, ROUGHLY = 1.5, 10.0
"""Points with large sources are not followed if they lie wider than this, relative to the widest thin layer, or if
their length is not so many times larger."""

FAINT = 1e-4
"""Lines with less than this fraction of the largest source do not meet the curve."""

STIFF = 1e-2
"""How much c(t) is kept from swinging where no line says where the curve is, relative to its width."""

Strength = Callable[[Points], Vector]
"""The square of a source at points."""


class Curve(NamedTuple):
    """A curve n·x = c(t): the direction n, the Chebyshev coefficients of c, and the width of what lies along it."""

    direction: Vector
    center: Vector
    width: float


def find_curve(domain: Domain, strength: Strength, points: Points, weights: Vector) -> Curve | None:
    """The thin curve along which a source is concentrated, if there is one that is a graph over a direction.

    Args:
        domain: a domain in the plane.
        strength: the square of the source.
        points: points that are spread over the domain.
        weights: the square of the source there.
    """
    if not np.max(weights, initial=0.0) > 0:
        return None
    cloud = points[weights > LARGE**2 * weights.max()]
    if not FEWEST_LARGE <= len(cloud) <= MOST_LARGE * len(points):
        return None
    spread, directions = np.linalg.eigh(np.cov(cloud.T))
    normal = directions[:, 0]
    along = np.array([normal[1], -normal[0]])
    box = np.stack(np.meshgrid(*np.stack([domain.lower, domain.upper], axis=1)), axis=-1).reshape(-1, 2) @ along
    reached = cloud @ along
    lines = _Lines(domain, strength, normal, along, np.linspace(reached.min(), reached.max(), LINES))
    return lines.followed(cloud, (float(box.min()), float(box.max())), float(spread[0]) ** 0.5)


class _Lines(NamedTuple):
    """Lines along a direction, at some coordinates t."""

    domain: Domain
    strength: Strength
    normal: Vector
    along: Vector
    t: Vector

    def followed(self, cloud: Points, box: tuple[float, float], rough: float) -> Curve | None:
        """The curve that is followed from the points at which the source is large."""
        t, at = cloud @ self.along, cloud @ self.normal
        curve = _smooth(t, at, np.ones(len(t)), DEGREES[1], box, STIFF * rough)
        thick = float(np.std(at - curve(t)))
        if thick > min(WIDER * THIN * float(np.max(self.domain.size)), float(np.ptp(t)) / ROUGHLY):
            return None
        reach = 4 * thick + 4 * rough / LINES
        for degree in (degree for degree in DEGREES[1:] for _ in range(2)):
            center, width, met = self._centers(curve, reach)
            if np.count_nonzero(met) < LINES // 2:
                return None
            typical = float(np.median(width[met]))
            curve = _smooth(self.t[met], center[met], np.ones(int(met.sum())), degree, box, STIFF * typical)
            off = float(np.sqrt(np.mean((center[met] - curve(self.t[met])) ** 2)))
            reach = 8 * typical + 4 * off
            if off <= FOLLOWED * typical:
                long = np.ptp(self.t[met]) >= LONG * typical
                is_thin = typical <= THIN * float(np.max(self.domain.size))
                return Curve(self.normal, curve.coef, typical) if long and is_thin else None
        return None

    def _centers(self, curve: Chebyshev, reach: float) -> tuple[Vector, Vector, np.ndarray]:
        """On each line the center and the width of the source within a reach of a curve, and whether there is one."""
        offset = reach * np.linspace(-1, 1, ON_A_LINE)
        at = curve(self.t)[:, None] + offset
        points = at[..., None] * self.normal + self.t[:, None, None] * self.along
        points = points.reshape(-1, 2)
        inside, found = self.domain.contains(points), np.zeros(len(points))
        found[inside] = np.nan_to_num(self.strength(points[inside]))
        weights = found.reshape(at.shape)
        total = weights.sum(axis=1)
        share = weights / np.where(total > 0, total, 1.0)[:, None]
        center = np.sum(share * at, axis=1)
        width = np.sqrt(np.sum(share * (at - center[:, None]) ** 2, axis=1))
        # A line that ends inside of the layer sees a part of it alone.
        whole = inside.reshape(at.shape)
        ends = np.abs(center - curve(self.t)) + 4 * width
        cut = np.any(~whole & (np.abs(offset) <= np.minimum(ends, reach)[:, None]), axis=1)
        return center, width, (total > FAINT * total.max()) & ~cut


def _smooth(t: Vector, at: Vector, weights: Vector, degree: int, box: tuple[float, float], stiff: float) -> Chebyshev:
    """The polynomial through points, kept from swinging where there are none."""
    scaled = (2 * t - box[0] - box[1]) / (box[1] - box[0])
    powers = np.arange(degree + 1)
    rows = np.polynomial.chebyshev.chebvander(scaled, degree) * (weights / np.sqrt(len(t)))[:, None]
    matrix = np.concatenate([rows, np.diag(stiff * powers**2.0)])
    right = np.concatenate([at * weights / np.sqrt(len(t)), np.zeros(degree + 1)])
    return Chebyshev(np.linalg.lstsq(matrix, right, rcond=None)[0], box)
