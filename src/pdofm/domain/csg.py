"""Combinations of domains (a | b, a & b, a - b), and the trimming of boundary pieces behind them and `Part.where`."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from pdofm._types import Mask, Matrix, Normals, Points, Vector
from pdofm.domain.base import Domain, Keep, Piece, between
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints, unit_points

# Boundaries nearer than this, times the size of the domain, coincide ...
_COINCIDENT = 1e-13
# ... and what lies next to them is looked up this far to either side.
_PROBE = 1e-8
# A curve is looked at in this many cells, each cut again in this many where the other boundary is near.
_CELLS, _SUBCELLS = 2048, 32
# Sub-intervals of the parameter shorter than this, and gaps, are below that resolution: artefacts of rounding where
# boundaries touch.
_SHORTEST = 1e-5
# A cut is searched for within this parameter distance of where it was first seen.
_FARTHEST = 1e-4

Predicate = Callable[[Vector], Mask]


class _Combination(Domain):
    """Two domains, combined. Names of pieces are kept; one of `second` that `first` uses too gets "#2" (or "#3", ...).

    `measure` is exact to rounding in one and two dimensions, and accurate to about 1e-4 beyond (2**16 Sobol' points).
    A cut of the boundary that is smaller than 1/65536 of the curve it cuts is not seen.
    """

    symbol = ""

    def __init__(self, first: Domain, second: Domain):
        if first.has_time or second.has_time:
            raise DomainError(
                f"Cannot combine {first!r} and {second!r}: space-times do not combine. "
                "Combine the spaces first: SpaceTime(a - b, T)."
            )
        if first.dim != second.dim:
            raise DomainError(
                f"Cannot combine {first!r} of dimension {first.dim} and {second!r} of dimension {second.dim}; "
                "expected equal dimensions."
            )
        self.first, self.second = first, second
        self.lower, self.upper = self._bounds()
        self.lower.setflags(write=False)
        self.upper.setflags(write=False)
        if not ((self.lower < self.upper).all() and self._inside(2**14).any()):
            raise DomainError(
                f"{self!r} is empty: none of {2**14} points of its bounding box lies inside. "
                "Expected domains that overlap (and a second one that does not cover the first, in a difference)."
            )
        if _PROBE * self.size < 64 * np.spacing(max(np.abs(self.lower).max(), np.abs(self.upper).max())):
            raise DomainError(
                f"{self!r} is {self.size:.3g} wide but farther than {self.size / 1e-6:.3g} from the origin; "
                "expected coordinates that resolve 1e-8 of its size. Move it nearer to the origin."
            )

    @abstractmethod
    def _bounds(self) -> tuple[Vector, Vector]: ...

    @abstractmethod
    def _trimmed(self) -> tuple[list[Piece], list[Piece]]:
        """The pieces of the first and of the second operand that bound the combination.

        Next to a point p of a piece of one operand with outward normal n, that operand has p - eps n inside and
        p + eps n outside; so whether p bounds the combination depends only on where the *other* operand has these
        two. The first operand asks about one of them, and the second about both: where the boundaries coincide the
        two differ, so what they share is taken from the first operand, or from neither.
        """

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        first, second = self._trimmed()
        taken = {piece.name for piece in first}
        names: dict[str, str] = {}
        for piece in second:
            if piece.name not in names:
                names[piece.name] = _free_name(piece.name, taken)
                taken.add(names[piece.name])
        return (*first, *(replace(piece, name=names[piece.name]) for piece in second))

    @cached_property
    def measure(self) -> float:
        if self.dim > 2:
            return float(np.mean(self._inside(2**16)) * np.prod(self.upper - self.lower))
        # div(x - center) = dim, so the measure is the boundary integral of (x - center).n / dim; 32 Gauss points
        # integrate it to rounding on a line, and on a circle, where it is c + cos.
        nodes, weights = np.polynomial.legendre.leggauss(32)
        center = 0.5 * (self.lower + self.upper)
        total = 0.0
        for piece in self.pieces:
            points, normals = piece.chart(np.tile(0.5 + 0.5 * nodes[:, None], (1, piece.dim)))
            total += piece.measure * float(0.5 * weights @ np.sum((points - center) * normals, axis=1))
        return total / self.dim

    def _inside(self, n: int) -> Mask:
        u = unit_points(n, self.dim, "sobol", np.random.default_rng(0))
        return self.contains(between(self.lower, self.upper, u))

    def _cut(self, pieces: tuple[Piece, ...], other: Domain, keep: Callable[[Mask, Mask], Mask]) -> list[Piece]:
        """The sub-pieces where keep(the inner side is in `other`, the outer side is in `other`)."""
        probe = _PROBE * self.size
        farthest = max(np.abs(self.lower).max(), np.abs(self.upper).max())
        tolerance = float(_COINCIDENT * self.size + 8 * np.spacing(farthest))

        def keep_at(points: Points, normals: Normals) -> Mask:
            level = other.level(points)
            inner, outer = level > 0, level > 0
            # Probing only where the boundaries meet leaves tangent ones alone: a probe of 1e-8 would cross over
            # within 1e-4 of the point where a disk touches its bounding square.
            near = np.abs(level) <= tolerance
            inner[near] = other.contains(points[near] - probe * normals[near])
            outer[near] = other.contains(points[near] + probe * normals[near])
            return keep(inner, outer)

        return [kept for piece in pieces for kept in trim(piece, keep_at, other.level, tolerance)]

    def __repr__(self) -> str:
        return f"({self.first!r} {self.symbol} {self.second!r})"


class Union(_Combination):
    """a | b: the points of either, and the face they share where they touch."""

    symbol = "|"

    def _bounds(self) -> tuple[Vector, Vector]:
        return np.minimum(self.first.lower, self.second.lower), np.maximum(self.first.upper, self.second.upper)

    def _level(self, x: Points) -> Vector:
        return np.maximum(self.first.level(x), self.second.level(x))

    def _trimmed(self) -> tuple[list[Piece], list[Piece]]:
        return (
            self._cut(self.first.pieces, self.second, lambda inner, outer: ~outer),
            self._cut(self.second.pieces, self.first, lambda inner, outer: ~inner & ~outer),
        )


class Intersection(_Combination):
    """a & b: the points of both."""

    symbol = "&"

    def _bounds(self) -> tuple[Vector, Vector]:
        return np.maximum(self.first.lower, self.second.lower), np.minimum(self.first.upper, self.second.upper)

    def _level(self, x: Points) -> Vector:
        return np.minimum(self.first.level(x), self.second.level(x))

    def _trimmed(self) -> tuple[list[Piece], list[Piece]]:
        return (
            self._cut(self.first.pieces, self.second, lambda inner, outer: inner),
            self._cut(self.second.pieces, self.first, lambda inner, outer: inner & outer),
        )


class Difference(_Combination):
    """a - b: the points of a that are not in b. The bounding box is that of a."""

    symbol = "-"

    def _bounds(self) -> tuple[Vector, Vector]:
        return self.first.lower.copy(), self.first.upper.copy()

    def _level(self, x: Points) -> Vector:
        return np.minimum(self.first.level(x), -self.second.level(x))

    def _trimmed(self) -> tuple[list[Piece], list[Piece]]:
        flipped = tuple(_flipped(piece) for piece in self.second.pieces)
        return (
            self._cut(self.first.pieces, self.second, lambda inner, outer: ~inner),
            self._cut(flipped, self.first, lambda inner, outer: inner & outer),
        )


def trim(
    piece: Piece, keep: Keep, level: Callable[[Points], Vector] | None = None, tolerance: float = 0.0
) -> tuple[Piece, ...]:
    """What `keep` keeps of a piece, as pieces of the same name.

    A curve is cut by bisection into exact sub-curves; if `level` is given, its zeros are where the cuts are, and
    `keep` may be wrong where it is below `tolerance`. A point is kept or dropped. A surface is sampled by rejection
    from then on, with a measure from 2**14 Sobol' points: accurate to about 1e-3, exact if all is kept.
    """
    if piece.dim == 0:
        return (piece,) if keep(*piece.chart(np.zeros((1, 0)))).all() else ()
    if piece.dim == 1 and piece.keep is None:
        return _sub_curves(piece, keep, level, tolerance)
    rng = np.random.default_rng(0)
    kept = keep(*piece.place(unit_points(2**14, piece.dim, "sobol", rng), "sobol", rng))
    if not kept.any():
        return ()
    return (replace(piece, measure=piece.measure * float(kept.mean()), keep=_both(piece.keep, keep)),)


def _sub_curves(
    piece: Piece, keep: Keep, level: Callable[[Points], Vector] | None, tolerance: float
) -> tuple[Piece, ...]:
    def kept_at(s: Vector) -> Mask:
        return keep(*piece.chart(s[:, None]))

    s = _parameters(piece, level)
    kept = kept_at(s)
    if kept.all():
        return (piece,)
    if not kept.any():
        return ()
    closed = not piece.ends[0]
    if closed:  # the last cell is followed by the first one, once around
        s, kept = np.append(s, s[0] + 1), np.append(kept, kept[0])
    changes = np.flatnonzero(kept[1:] != kept[:-1])
    cuts = _bisect(kept_at, s[changes], s[changes + 1])
    if level is not None:
        cuts = np.array([_polished(piece, level, tolerance, cut) for cut in cuts])
    if closed:
        cuts = np.append(cuts[1:], cuts[0] + 1) if kept[0] else cuts
    else:
        cuts = np.clip(np.concatenate([[0.0] * bool(kept[0]), cuts, [1.0] * bool(kept[-1])]), 0.0, 1.0)
    return tuple(_sub_curve(piece, start, end) for start, end in _merged(cuts.reshape(-1, 2)))


def _parameters(piece: Piece, level: Callable[[Points], Vector] | None) -> Vector:
    """Where to look at a curve: the midpoints of cells, which are cut again where the level can vanish in them."""
    s = (np.arange(_CELLS) + 0.5) / _CELLS
    if level is None:
        return s if not piece.ends[0] else np.concatenate([[1e-9], s, [1 - 1e-9]])
    # The level changes by at most the way gone, and charts have constant speed.
    near = np.abs(level(piece.chart(s[:, None])[0])) <= piece.measure / _CELLS
    offsets = ((np.arange(_SUBCELLS) + 0.5) / _SUBCELLS - 0.5) / _CELLS
    return np.sort(np.concatenate([s[~near], (s[near][:, None] + offsets).ravel()]))


def _bisect(holds: Predicate, a: Vector, b: Vector) -> Vector:
    """Where `holds` changes between a and b, to rounding."""
    at_a = holds(a)
    for _ in range(60):
        middle = 0.5 * (a + b)
        same = holds(middle) == at_a
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    return 0.5 * (a + b)


def _polished(piece: Piece, level: Callable[[Points], Vector], tolerance: float, cut: float) -> float:
    """The zero of the level along the curve nearest to `cut`, which the tolerance has displaced.

    Where the curve follows the other boundary, or leaves it tangentially, the level does not change its sign with
    comparable values on both sides, and the cut is right as it is.
    """

    def level_at(s: Vector) -> Vector:
        return level(piece.chart(s[:, None])[0])

    reach = 64 * tolerance / piece.measure
    while reach <= _FARTHEST:
        around = np.array([cut - reach, cut + reach])
        values = level_at(around)
        smaller, larger = np.sort(np.abs(values))
        if smaller > max(4 * tolerance, 0.01 * larger) and values[0] * values[1] < 0:
            return float(_bisect(lambda s: level_at(s) > 0, around[:1], around[1:])[0])
        reach *= 4
    return cut


def _merged(intervals: Matrix) -> list[tuple[float, float]]:
    """The intervals `(n, 2)`, joined across gaps and without pieces below the resolution."""
    merged: list[tuple[float, float]] = []
    for start, end in intervals:
        if merged and start - merged[-1][1] < _SHORTEST:
            merged[-1] = (merged[-1][0], float(end))
        else:
            merged.append((float(start), float(end)))
    return [(start, end) for start, end in merged if end - start >= _SHORTEST]


def _sub_curve(piece: Piece, start: float, end: float) -> Piece:
    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        return piece.chart(between(start, end, u))

    return Piece(piece.name, (end - start) * piece.measure, (True,), chart)


def _flipped(piece: Piece) -> Piece:
    """The piece with its normals reversed."""

    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        points, normals = piece.chart(u)
        return points, -normals

    keep = piece.keep
    return replace(piece, chart=chart, keep=None if keep is None else lambda points, normals: keep(points, -normals))


def _both(first: Keep | None, second: Keep) -> Keep:
    return second if first is None else lambda points, normals: first(points, normals) & second(points, normals)


def _free_name(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    root = name.partition("#")[0]
    number = 2
    while f"{root}#{number}" in taken:
        number += 1
    return f"{root}#{number}"
