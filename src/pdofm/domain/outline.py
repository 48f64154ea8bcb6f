"""The boundary of a plane domain as closed curves, and its corners."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Piece

SHARPEST_CURVE = 0.1
"""The largest turn between neighbouring segments of an outline, in radians, that still belongs to a smooth curve;
larger turns are corners. A full circle is drawn in turns of 2π/400 = 0.016."""

CURVE_SEGMENTS = 400
"""Segments of the polyline that stands for a curved piece of the boundary: its sagitta is below 1e-4 of the radius."""


class PlaneCorner(NamedTuple):
    """A corner of a plane domain; it is re-entrant if its interior angle exceeds π."""

    apex: Float[np.ndarray, " 2"]
    middle: Float[np.ndarray, " 2"]  # the direction that bisects the interior angle
    angle: float  # the interior angle, in radians


def outline(domain: Domain) -> list[Float[np.ndarray, "n 2"]]:
    """The boundary of a plane domain as closed curves, with the domain on their left."""
    return _chained([_curve(piece) for piece in domain.pieces])


def corners(domain: Domain) -> list[PlaneCorner]:
    """The corners of a plane domain; none in other dimensions."""
    if domain.dim != 2 or domain.has_time:
        return []
    found = []
    for loop in outline(domain):
        far = np.linalg.norm(np.diff(loop, axis=0), axis=1) > 1e-12 * domain.size
        points = loop[:-1][far]
        before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
        turns = np.arctan2(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0], np.sum(before * after, axis=1))
        for i in np.flatnonzero(np.abs(turns) > SHARPEST_CURVE):
            angle = math.pi - float(turns[i])
            direction = math.atan2(after[i, 1], after[i, 0]) + angle / 2
            middle = np.array([math.cos(direction), math.sin(direction)])
            found.append(PlaneCorner(points[i], middle, angle))
    return found


def _curve(piece: Piece) -> Points:
    """A piece of the boundary of a plane domain as a fine polyline, with the domain on its left."""
    points, normals = piece.chart(np.linspace(0.0, 1.0, CURVE_SEGMENTS + 1)[:, None])
    middle = CURVE_SEGMENTS // 2
    along = points[middle + 1] - points[middle]
    points = points if normals[middle] @ (along[1], -along[0]) > 0 else points[::-1]
    return points[[0, -1]] if np.allclose(normals, normals[0], rtol=0, atol=1e-12) else points


def _chained(curves: list[np.ndarray]) -> list[np.ndarray]:
    """Curves of the same orientation, joined to closed loops: each is followed by the one that starts nearest to its
    end."""
    loops, rest = [], list(curves)
    while rest:
        loop = rest.pop(0)
        while (nearest := int(np.argmin([math.dist(loop[-1], curve[0]) for curve in (loop, *rest)]))) > 0:
            loop = np.concatenate([loop, rest.pop(nearest - 1)])
        loops.append(np.concatenate([loop, loop[:1]]))
    return loops
