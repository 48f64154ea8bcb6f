"""The boundary of a plane domain as closed curves, and its corners."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.domain.base import Domain, Piece

SHARPEST_CURVE = 0.1
"""Turns of the outline above this angle are corners; a circle is drawn with turns of a few hundredths."""


class PlaneCorner(NamedTuple):
    """A corner of a plane domain; it is re-entrant if its inner angle is above π."""

    apex: Float[np.ndarray, " 2"]
    middle: Float[np.ndarray, " 2"]  # the direction that halves the inner angle
    angle: float


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
    """A piece of the boundary of a plane domain as a line through close points, with the domain on its left."""
    points, normals = piece.chart(np.linspace(0.0, 1.0, 401)[:, None])
    along = points[201] - points[200]
    points = points if normals[200] @ (along[1], -along[0]) > 0 else points[::-1]
    return points[[0, -1]] if np.allclose(normals, normals[0], rtol=0, atol=1e-12) else points


def _chained(curves: list[np.ndarray]) -> list[np.ndarray]:
    """Closed loops of curves that run in one sense: each goes on with what starts nearest to where it ends."""
    loops, rest = [], list(curves)
    while rest:
        loop = rest.pop(0)
        while (nearest := int(np.argmin([math.dist(loop[-1], curve[0]) for curve in (loop, *rest)]))) > 0:
            loop = np.concatenate([loop, rest.pop(nearest - 1)])
        loops.append(np.concatenate([loop, loop[:1]]))
    return loops
