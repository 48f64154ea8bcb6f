"""Points on what surrounds the patches of a cover: parts of the boundary, and the faces between patches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.discrete.cover import Cover, Located, face_points
from pdofm.domain import Domain, Part, Piece
from pdofm.features.patches import Patches
from pdofm.numerics.nodes import gauss, gauss_weights, midpoints, tensor, tensor_gauss

FIRST_LOOK = 64
"""Parameters at which a curve is looked at first, to see which patches it passes."""

SHORTEST = 1e-13
"""Pieces of a curve shorter than this fraction of it are left out."""

SURFACE_LEVELS = 8
"""A cell of the parameters of a surface is cut in four as often as this where it meets several patches."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Points with their normals and the patches that they belong to; on an interface also the patch `beyond` it, in
    another region; and, if they are known, weights of quadrature."""

    points: Points
    normals: Normals
    patch: Int[np.ndarray, " n"]
    beyond: Int[np.ndarray, " n"] | None = None
    weights: Vector | None = None

    def some(self, kept: Mask) -> "Placed":
        """Some of the points."""
        beyond, weights = (None if each is None else each[kept] for each in (self.beyond, self.weights))
        return Placed(self.points[kept], self.normals[kept], self.patch[kept], beyond, weights)


@dataclass(frozen=True, eq=False)
class Seam:
    """Where two patches meet: points on the faces between them that are flat along `axis`. The points of the second
    patch are `shift` away, which is not zero for opposite sides of a periodic domain."""

    first: int
    second: int
    axis: int
    points: Points
    shift: Vector


def on_part(cover: Located, part: Part, more: int = 0) -> Placed:
    """Points on a part of the boundary, as many in each patch as its polynomials need, and `more`."""
    found = [_on_piece(cover, piece, more) for piece in part.pieces]
    names = ("points", "normals", "patch", "weights")
    return Placed(**{name: np.concatenate([getattr(each, name) for each in found]) for name in names})


def at_points(cover: Cover, points: Points) -> Placed:
    """Given points, with their patches."""
    return Placed(points, np.zeros_like(points), cover.locate(points))


def _on_piece(cover: Located, piece: Piece, more: int) -> Placed:
    if piece.dim == 0:
        points, normals = piece.chart(np.zeros((1, 0)))
        weights = np.ones(1)
    elif piece.dim == 1 and piece.keep is None:
        return _on_curve(cover, piece, more)
    else:
        points, normals, weights = _on_surface(cover, piece, more)
    return Placed(points, normals, cover.locate(points, -normals), weights=weights)


def _on_curve(cover: Located, piece: Piece, more: int) -> Placed:
    """Gauss points on each interval of the parameter that lies in one patch."""
    if piece not in cover.intervals:

        def owner(s: Vector) -> Int[np.ndarray, " n"]:
            points, normals = piece.chart(s[:, None])
            return cover.locate(points, -normals)

        cuts = _cuts(cover, piece)
        cover.intervals[piece] = _intervals(owner) if cuts is None else _between(cuts, owner)
    ends, inside = cover.intervals[piece]
    long = np.diff(ends) > SHORTEST
    starts, stops, inside = ends[:-1][long], ends[1:][long], inside[long]
    # A polynomial of degree p along each axis has degree 2 p on a slanted line.
    straight = _runs_along_an_axis(piece)
    highest = cover.highest(inside) + more
    counts = highest + 3 if straight else 2 * highest + 4
    s = np.concatenate([a + (b - a) * gauss(int(n)) for a, b, n in zip(starts, stops, counts, strict=True)])
    weights = [(b - a) * gauss_weights(int(n)) for a, b, n in zip(starts, stops, counts, strict=True)]
    points, normals = piece.chart(s[:, None])
    weights = piece.measure * np.concatenate(weights)
    return Placed(points, normals, np.repeat(inside, counts), weights=weights)


def _runs_along_an_axis(piece: Piece) -> bool:
    points, _ = piece.chart(np.linspace(0.0, 1.0, 9)[:, None])
    return int(np.sum(np.ptp(points, axis=0) > 1e-12 * np.max(np.abs(points), initial=1e-300))) == 1


def _cuts(cover: Located, piece: Piece) -> Vector | None:
    """The parameters, from 0 to 1, at which a line along an axis may pass to another patch; None for other curves."""
    s = np.linspace(0.0, 1.0, 9)
    points, _ = piece.chart(s[:, None])
    axis = int(np.argmax(np.ptp(points, axis=0)))
    start, length = points[0], points[-1] - points[0]
    straight = start + s[:, None] * length * (np.arange(len(start)) == axis)
    if np.max(np.abs(points - straight)) > SHORTEST * abs(length[axis]):
        return None
    at = (cover.cuts(axis) - start[axis]) / length[axis]
    return np.concatenate([[0.0], np.unique(at[(at > 0) & (at < 1)]), [1.0]])


def _between(
    cuts: Float[np.ndarray, " c"], owner: Callable[[Vector], Int[np.ndarray, " n"]]
) -> tuple[Float[np.ndarray, " e"], Int[np.ndarray, " m"]]:
    """The ends of the intervals on which `owner` is constant, which are among the cuts, and its values there."""
    values = owner((cuts[:-1] + cuts[1:]) / 2)
    changes = values[1:] != values[:-1]
    return np.concatenate([cuts[:1], cuts[1:-1][changes], cuts[-1:]]), values[np.append(True, changes)]


def _intervals(owner: Callable[[Vector], Int[np.ndarray, " n"]]) -> tuple[Vector, Int[np.ndarray, " n"]]:
    """The ends of the intervals of [0, 1] on which `owner` is constant, and its values there.

    Intervals with different values at both ends are halved until they are as short as rounding allows; so patches are
    found however small they are, if patches grow gradually.
    """
    ends = np.linspace(0.0, 1.0, FIRST_LOOK + 1)
    values = owner(np.clip(ends, SHORTEST, 1 - SHORTEST))
    # A column for each interval: its ends, and the values there.
    intervals = np.stack([ends[:-1], ends[1:], values[:-1], values[1:]])
    for _ in range(60):
        a, b, at_a, at_b = intervals
        differ = (at_a != at_b) & (b - a > 1e-15 * np.maximum(b, 1e-2))
        if not differ.any():
            break
        intervals = _joined(np.concatenate([intervals[:, ~differ], _halves(intervals[:, differ], owner)], axis=1))
    a, b, at_a, at_b = intervals
    changes = ((a + b) / 2)[at_a != at_b]
    cuts = np.unique(np.concatenate([[0.0], changes, [1.0]]))
    return cuts, owner((cuts[:-1] + cuts[1:]) / 2)


def _halves(
    intervals: Float[np.ndarray, "4 n"], owner: Callable[[Vector], Int[np.ndarray, " n"]]
) -> Float[np.ndarray, "4 m"]:
    a, b, at_a, at_b = intervals
    middle = (a + b) / 2
    found = owner(middle)
    return np.concatenate([[a, middle, at_a, found], [middle, b, found, at_b]], axis=1)


def _joined(intervals: Float[np.ndarray, "4 n"]) -> Float[np.ndarray, "4 m"]:
    """Intervals in their order; neighbours with the same value throughout become one."""
    a, b, at_a, at_b = intervals[:, np.argsort(intervals[0], kind="stable")]
    joins = (at_a[1:] == at_b[1:]) & (at_a[:-1] == at_b[:-1]) & (at_b[:-1] == at_a[1:])
    first, last = np.append(True, ~joins), np.append(~joins, True)
    return np.stack([a[first], b[last], at_a[first], at_b[last]])


def _on_surface(cover: Located, piece: Piece, more: int) -> tuple[Points, Normals, Vector]:
    """Gauss points in cells of the parameters that are refined until each meets about one patch."""
    dim = piece.dim
    lower, upper = np.zeros((1, dim)), np.ones((1, dim))
    look, finished = midpoints(3, dim), []
    for level in range(SURFACE_LEVELS + 1):
        u = lower[:, None] + look * (upper - lower)[:, None]
        points, normals = piece.chart(u.reshape(-1, dim))
        owner = cover.locate(points, -normals).reshape(len(lower), -1)
        mixed = np.any(owner != owner[:, :1], axis=1) if level < SURFACE_LEVELS else np.zeros(len(lower), dtype=bool)
        finished.append((lower[~mixed], upper[~mixed], owner[~mixed, 0]))
        if not mixed.any():
            break
        half = (upper[mixed] - lower[mixed]) / 2
        corners = midpoints(2, dim) * 2 - 0.5
        lower = (lower[mixed][:, None] + corners * half[:, None]).reshape(-1, dim)
        upper = lower + np.repeat(half, 2**dim, axis=0)
    lower, upper, owner = (np.concatenate(each) for each in zip(*finished, strict=True))
    highest, size = cover.highest(owner) + more, np.prod(upper - lower, axis=1)
    _, number = np.unique(owner, return_inverse=True)
    # Small cells of a patch share its points.
    share = size / np.bincount(number, size)[number]
    counts = np.maximum(2, np.ceil((1.5 * highest + 2) * share ** (1 / dim))).astype(int)
    u = [a + tensor_gauss((int(n),) * dim) * (b - a) for a, b, n in zip(lower, upper, counts.tolist(), strict=True)]
    weights = [
        each * np.prod(tensor([gauss_weights(int(n))] * dim), axis=1)
        for each, n in zip(size, counts.tolist(), strict=True)
    ]
    points, normals = piece.chart(np.concatenate(u))
    kept = np.ones(len(points), dtype=bool) if piece.keep is None else piece.keep(points, normals)
    share = np.concatenate(weights)[kept]
    return points[kept], normals[kept], piece.measure * share / share.sum()


def seams(cover: Cover, periodic: Sequence[int] = (), more: int = 0) -> list[Seam]:
    """Where patches meet, with points as their polynomials need in least squares, and `more`; each pair of patches once
    per axis."""
    faces = cover.faces
    found: dict[tuple[int, int, int], list[Points]] = {}
    for f in np.flatnonzero(cover.open > 0).tolist():
        first, second = cover.numbers[int(faces.below[f])], cover.numbers[int(faces.above[f])]
        if first == second:
            continue
        axis = int(faces.axis[f])
        counts = _counts(cover.patches, (first, second), faces.lower[f], faces.upper[f], axis)
        counts = tuple(count + more for count in counts)
        points = face_points(faces, f, tensor_gauss(counts))
        if cover.open[f] < 1:
            points = _open_points(cover, f, counts)
        if len(points):
            found.setdefault((first, second, axis), []).append(points)
    dim = cover.domain.dim
    joined = [Seam(a, b, axis, np.concatenate(points), np.zeros(dim)) for (a, b, axis), points in found.items()]
    for axis in periodic:
        joined += _across(cover, axis)
    return joined


FEWER = 1
"""Points along a face are fewer than the polynomials on it by this and one more: the equation settles the rest."""


def _counts(patches: Patches, sides: tuple[int, int], lower: Vector, upper: Vector, axis: int) -> tuple[int, ...]:
    """The number of Gauss points along each axis of a face: a polynomial looks simpler on a part of its side."""
    needed = []
    for side in sides:
        degrees, width = patches.along[side], patches.upper[side] - patches.lower[side]
        share = np.clip((upper - lower) / width, 0.0, 1.0)
        needed.append(np.minimum(degrees, np.ceil(degrees * share) + 3))
    return tuple(np.delete(np.max(needed, axis=0) - FEWER, axis).clip(2).astype(int).tolist())


_opened: WeakKeyDictionary[Domain, dict[bytes, list[tuple[float, float]]]] = WeakKeyDictionary()
"""The intervals of faces that are inside of a domain, as far as they are known: most faces stay from round to round."""


def _key(cover: Cover, face: int) -> bytes:
    """What the open part of a face depends on: its corners, and the boxes on its two sides."""
    faces = cover.faces
    around = cover.tree.corners(np.array([faces.below[face], faces.above[face]]))
    return b"".join(each.tobytes() for each in (faces.lower[face], faces.upper[face], *around))


def _open_points(cover: Cover, face: int, counts: tuple[int, ...]) -> Points:
    """Points on the part of a face that is inside; along a line on each of its intervals."""
    faces = cover.faces

    def is_open(unit: Float[np.ndarray, "n e"]) -> Mask:
        return cover.is_open(faces, np.full(len(unit), face), face_points(faces, face, unit))

    if len(counts) != 1:
        unit = tensor_gauss(tuple(n + 2 for n in counts))
        return face_points(faces, face, unit[is_open(unit)])
    known, key = _opened.setdefault(cover.domain, {}), _key(cover, face)
    if key not in known:
        cuts, inside = _intervals(lambda s: is_open(s[:, None]).astype(int))
        known[key] = list(zip(cuts[:-1][inside == 1], cuts[1:][inside == 1], strict=True))
    parts = []
    for a, b in known[key]:
        if b - a > 1e-6:
            parts.append(a + (b - a) * gauss(max(4, round(counts[0] * (b - a)))))
    return face_points(faces, face, np.concatenate(parts)[:, None]) if parts else np.zeros((0, cover.domain.dim))


def _across(cover: Cover, axis: int) -> list[Seam]:
    """The seams between the lower and the upper side of a domain that is periodic along an axis."""
    domain = cover.domain
    shift = np.zeros(domain.dim)
    shift[axis] = domain.upper[axis] - domain.lower[axis]
    below = on_part(cover, domain.face(axis, 0))
    direction = np.zeros_like(below.points)
    direction[:, axis] = -1.0
    opposite = below.points + shift
    opposite[:, axis] = domain.upper[axis]
    above = cover.locate(opposite, direction)
    found = []
    for first, second in dict.fromkeys(zip(below.patch.tolist(), above.tolist(), strict=True)):
        at = (below.patch == first) & (above == second)
        found.append(Seam(first, second, axis, below.points[at], shift))
    return found
