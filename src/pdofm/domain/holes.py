"""The round holes of a domain, found from its boundary."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pdofm._types import Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Piece

ROUND = 1e-9
"""A piece of the boundary is round if its normals meet in one point, up to this fraction of the domain."""

SAMPLES = 64
"""Points of a piece at which this is tried."""


class RoundHole(NamedTuple):
    """A ball outside of the domain whose sphere, or a part of it, bounds the domain."""

    center: Vector
    radius: float


def round_holes(domain: Domain) -> list[RoundHole]:
    """The round holes of a domain in two or more dimensions, each once; notches and fillets count as well."""
    return list(_round_holes(domain))


@lru_cache(maxsize=128)
def _round_holes(domain: Domain) -> tuple[RoundHole, ...]:
    if domain.dim < 2 or domain.has_time:
        return ()
    near, found = ROUND * domain.size, list[RoundHole]()
    for piece in domain.pieces:
        hole = _round_hole(piece, near)
        if hole is None or hole.radius > domain.size or domain.contains(hole.center[None])[0]:
            continue
        if all(np.linalg.norm(hole.center - other.center) > near for other in found):
            found.append(hole)
    return tuple(found)


def _round_hole(piece: Piece, near: float) -> RoundHole | None:
    """The ball around which a piece runs, with normals that point to its center; None if there is none."""
    parameters = np.random.default_rng(0).random((SAMPLES, piece.dim))
    points, normals = piece.filtered(*piece.chart(parameters))
    if len(points) <= points.shape[1]:
        return None
    # x + radius · n = center at all points. The mean over the points is subtracted, which leaves the radius.
    offsets, turns = points - points.mean(axis=0), normals - normals.mean(axis=0)
    if np.max(np.abs(turns)) < ROUND:
        return None  # flat
    radius = -float(np.sum(offsets * turns) / np.sum(turns**2))
    centers = points + radius * normals
    if radius <= 0 or np.max(np.abs(centers - centers[0])) > near:
        return None
    return RoundHole(centers.mean(axis=0), radius)
