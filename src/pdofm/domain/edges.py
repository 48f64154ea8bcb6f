"""Straight edges of domains in space: where two plane faces meet."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float

from pdofm._types import Vector
from pdofm.domain.base import Domain

MOST_PLANES = 40
"""With more plane faces than this, as a mesh of a curved surface has, edges are not looked for."""

LOOKS, FLAT = 16, 1e-10
"""Points of a face at which its normal is looked at, and how far it may be from a plane, relative to the domain."""

PROBES, NEAR = 129, 1e-6
"""Points along a line at which the surroundings are looked at, so far away relative to the domain."""

COINCIDENT = 1e-9
"""An edge meets a box if it is nearer to it than this, relative to the box."""

HALVINGS = 40
"""Steps of bisection that find the end of an edge."""


@dataclass(frozen=True, eq=False)
class StraightEdge:
    """The edge from `start` to `end`, with the inner angle between its faces. The rows of `frame` are two directions
    across the edge, from which the angle is measured, and the one along it: inside, the angle goes from 0 to `angle`
    if that is less than π, and otherwise from -angle/2 to angle/2. It `ends_outside` if the line that continues it
    meets the domain nowhere else."""

    start: Vector
    end: Vector
    frame: Float[np.ndarray, "3 3"]
    angle: float
    ends_outside: bool

    def touches(self, lower: Vector, upper: Vector) -> bool:
        """Whether a piece of the edge, more than a point, lies in a box or on its faces."""
        gap, step = COINCIDENT * float(np.max(upper - lower)), self.end - self.start
        with np.errstate(divide="ignore", invalid="ignore"):
            first, last = (lower - gap - self.start) / step, (upper + gap - self.start) / step
        level = np.abs(step) < gap
        within = np.all((self.start >= lower - gap) & (self.start <= upper + gap) | ~level)
        enters = np.max(np.where(level, 0.0, np.minimum(first, last)), initial=0.0)
        leaves = np.min(np.where(level, 1.0, np.maximum(first, last)), initial=1.0)
        return bool(within and (leaves - enters) * np.linalg.norm(step) > 2 * gap)


@lru_cache(maxsize=32)
def straight_edges(domain: Domain) -> tuple[StraightEdge, ...]:
    """The straight edges of a domain in space; none in other dimensions."""
    if domain.dim != 3 or domain.has_time:
        return ()
    planes = _planes(domain)
    if len(planes) > MOST_PLANES:
        return ()
    found: list[StraightEdge] = []
    for (first, a), (second, b) in combinations(planes, 2):
        along = np.cross(first, second)
        if np.linalg.norm(along) < 1e-6:
            continue
        along = along / np.linalg.norm(along)
        point = np.linalg.lstsq(np.stack([first, second, along]), np.array([a, b, 0.0]), rcond=None)[0]
        found += _on_line(domain, point, along, first, second)
    return tuple(found)


def _planes(domain: Domain) -> list[tuple[Vector, float]]:
    """The planes n·x = c in which faces lie, each once."""
    found: list[tuple[Vector, float]] = []
    size = float(np.max(domain.size))
    for piece in domain.boundary.pieces:
        if piece.dim != 2:
            continue
        points, normals = piece.chart(np.random.default_rng(0).random((LOOKS, 2)))
        normal = normals[0] * np.sign(normals[0][np.argmax(np.abs(normals[0]) > 1e-9)])
        at = float(normal @ points[0])
        if np.max(np.abs(points @ normal - at)) > FLAT * size:
            continue
        if not any(abs(abs(normal @ n) - 1) < 1e-12 and abs(at - c) < FLAT * size for n, c in found):
            found.append((normal, at))
    return found


def _on_line(domain: Domain, point: Vector, along: Vector, first: Vector, second: Vector) -> list[StraightEdge]:
    """The edges on the line in which two planes meet."""
    corners = np.stack(np.meshgrid(*np.stack([domain.lower, domain.upper], axis=1)), axis=-1).reshape(-1, 3)
    low, high = (float(end) for end in np.percentile((corners - point) @ along, [0, 100]))
    t = low + (high - low) * (np.arange(PROBES) + 0.5) / PROBES
    # The planes divide the surroundings of the line into four sectors.
    one, other = np.cross(along, first), np.cross(along, second)
    across = np.cross(along, one)
    turns = np.sort([np.arctan2(s * d @ across, s * d @ one) for d in (one, other) for s in (1.0, -1.0)])
    sectors = np.stack([turns, np.roll(turns, -1) + 2 * np.pi * (np.arange(4) == 3)], axis=1)
    middles = sectors.mean(axis=1)
    rays = np.cos(middles)[:, None] * one + np.sin(middles)[:, None] * across

    def held(at: Vector) -> Bool[np.ndarray, "n 4"]:
        points = point + at[:, None, None] * along + NEAR * float(np.max(domain.size)) * rays
        return domain.contains(points.reshape(-1, 3)).reshape(len(at), 4)

    inside, found, start = held(t), [], 0
    for i in range(1, len(t) + 1):
        if i < len(t) and np.array_equal(inside[i], inside[start]):
            continue
        if inside[start].sum() in (1, 3):
            ends = [
                _end(held, t[start], t[start - 1] if start > 0 else low - NEAR, inside[start]),
                _end(held, t[i - 1], t[i] if i < len(t) else high + NEAR, inside[start]),
            ]
            frame, angle = _frame(sectors, inside[start], one, across, along)
            ends_outside = not (inside[:start].any() or inside[i:].any())
            found.append(StraightEdge(point + ends[0] * along, point + ends[1] * along, frame, angle, ends_outside))
        start = i
    return found


def _end(held, inner: float, outer: float, pattern: Bool[np.ndarray, " 4"]) -> float:
    """Where the pattern ends between two coordinates."""
    for _ in range(HALVINGS):
        middle = (inner + outer) / 2
        inner, outer = (middle, outer) if np.array_equal(held(np.array([middle]))[0], pattern) else (inner, middle)
    return float(inner)


def _frame(
    sectors: Float[np.ndarray, "4 2"], inside: Bool[np.ndarray, " 4"], one: Vector, across: Vector, along: Vector
) -> tuple[Float[np.ndarray, "3 3"], float]:
    """The frame of an edge from the sectors that are inside, and its angle."""
    if inside.sum() == 1:
        begin, end = sectors[int(np.argmax(inside))]
        turn, angle = begin, end - begin
    else:
        begin, end = sectors[int(np.argmin(inside))]
        turn, angle = (begin + end) / 2 + np.pi, 2 * np.pi - (end - begin)
    first = np.cos(turn) * one + np.sin(turn) * across
    frame = np.stack([first, np.cross(along, first), along])
    return np.where(np.abs(frame) < 1e-14, 0.0, frame), float(angle)  # a product with a rounding error is slow
