"""The round holes of a domain, and the round bores of a solid, found from its boundary."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pdofm._types import Normals, Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Piece

ROUND = 1e-9
"""A piece of the boundary is round if its normals meet in one point, up to this fraction of the domain."""

SAMPLES = 64
"""Points of a piece at which this is tried."""

SEGMENTS, HALVINGS = 16, 24
"""Segments of the axis of a bore in which the domain is looked for, and how often they are halved."""


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
        hole = _round_hole(*_looked_at(piece), near)
        if hole is None or hole.radius > domain.size or domain.contains(hole.center[None])[0]:
            continue
        if all(np.linalg.norm(hole.center - other.center) > near for other in found):
            found.append(hole)
    return tuple(found)


class Bore(NamedTuple):
    """A cylinder outside of a solid whose side, or a part of it, bounds the solid: a point of its axis, an orthonormal
    frame whose last row is the direction of the axis, and its radius."""

    start: Vector
    frame: Float[np.ndarray, "3 3"]
    radius: float


@lru_cache(maxsize=128)
def round_bores(domain: Domain) -> tuple[Bore, ...]:
    """The round bores of a domain in three dimensions whose axes do not enter it, each once."""
    if domain.dim != 3 or domain.has_time:
        return ()
    near, found = ROUND * domain.size, list[Bore]()
    for piece in domain.pieces:
        bore = _bore(piece, near)
        if bore is None or bore.radius > domain.size or _enters(domain, bore):
            continue
        across = [(bore.start - other.start) @ other.frame[:2].T for other in found]
        parallel = [abs(bore.frame[2] @ other.frame[2]) > 1 - ROUND for other in found]
        if all(np.linalg.norm(off) > near or not same for off, same in zip(across, parallel, strict=True)):
            found.append(bore)
    return tuple(found)


def _enters(domain: Domain, bore: Bore) -> bool:
    """Whether the axis of a bore enters the domain: segments that are farther from it than they are long are left out,
    and the others are halved."""
    axis, half = bore.frame[2], float(domain.size) / SEGMENTS
    points = bore.start + half * np.arange(1 - SEGMENTS, SEGMENTS, 2)[:, None] * axis
    for _ in range(HALVINGS):
        level = domain.level(points)
        if np.any(level > 0):
            return True
        points = points[level > -half]
        half /= 2
        points = np.concatenate([points - half * axis, points + half * axis])
    return False


def _bore(piece: Piece, near: float) -> Bore | None:
    """The cylinder around which a piece runs; None if there is none."""
    if piece.dim != 2:
        return None
    points, normals = _looked_at(piece)
    if len(points) <= 3:
        return None
    _, extents, axes = np.linalg.svd(normals)
    if extents[2] > ROUND * extents[0] or extents[1] < ROUND**0.5 * extents[0]:
        return None  # not perpendicular to one direction, or flat
    axis = axes[2] * np.sign(axes[2][np.argmax(np.abs(axes[2]))])
    first = np.eye(3)[np.argmin(np.abs(axis))]
    first = first - (first @ axis) * axis
    first /= np.linalg.norm(first)
    frame = np.stack([first, np.cross(axis, first), axis])
    hole = _round_hole(points @ frame[:2].T, normals @ frame[:2].T, near)
    if hole is None:
        return None
    start = hole.center @ frame[:2] + np.mean(points @ axis) * axis
    return Bore(start, frame, hole.radius)


def _looked_at(piece: Piece) -> tuple[Points, Normals]:
    """Points of a piece with their normals."""
    return piece.filtered(*piece.chart(np.random.default_rng(0).random((SAMPLES, piece.dim))))


def _round_hole(points: Points, normals: Normals, near: float) -> RoundHole | None:
    """The ball around which points with normals lie, which point to its center; None if there is none."""
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
