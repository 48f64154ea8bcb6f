"""Trimming: the part of a boundary piece that a predicate accepts, for combinations of domains and `Part.where`."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pdofm._types import Mask, Matrix, Normals, Points, Vector
from pdofm.domain.boundary import Keep, Piece
from pdofm.domain.vectors import between
from pdofm.numerics.sampling import UnitPoints, unit_points

_CELLS, _SUBCELLS = 2048, 32
"""A curve is examined in this many cells of its parameter; cells near the other boundary are divided into this many.
The product, 65536, is the resolution at which cuts are seen."""

_SHORTEST = 1e-5
"""Sub-intervals of the parameter, and gaps between them, that are shorter than this are dropped. They are below the
resolution of the cells: artefacts of rounding where boundaries touch."""

_FARTHEST = 1e-4
"""The largest distance, in the parameter, between a cut as it was first seen and its refined position."""

_SURFACE_POINTS = 2**14
"""Sobol' points that measure the share of a surface that is kept, to about 1e-3."""

Level = Callable[[Points], Vector]
Predicate = Callable[[Vector], Mask]


def trim(piece: Piece, keep: Keep, level: Level | None = None, tolerance: float = 0.0) -> tuple[Piece, ...]:
    """The parts of a piece that `keep` accepts, as pieces of the same name.

    A curve is cut into exact sub-curves by bisection. If `level` is given, the cuts lie at its zeros, and `keep` may be
    wrong where its absolute value is below `tolerance`. A point is either kept or dropped. A surface is sampled by
    rejection from then on; its measure is accurate to about 1e-3, and exact if all of it is kept.
    """
    if piece.dim == 0:
        return (piece,) if keep(*piece.chart(np.zeros((1, 0)))).all() else ()
    if piece.dim == 1 and piece.keep is None:
        return _sub_curves(piece, keep, level, tolerance)
    rng = np.random.default_rng(0)
    kept = keep(*piece.place(unit_points(_SURFACE_POINTS, piece.dim, "sobol", rng), "sobol", rng))
    if not kept.any():
        return ()
    return (replace(piece, measure=piece.measure * float(kept.mean()), keep=_both(piece.keep, keep)),)


def _sub_curves(piece: Piece, keep: Keep, level: Level | None, tolerance: float) -> tuple[Piece, ...]:
    """The parts of a curve that `keep` accepts."""

    def kept_at(s: Vector) -> Mask:
        return keep(*piece.chart(s[:, None]))

    s = _parameters(piece, level)
    kept = kept_at(s)
    if kept.all():
        return (piece,)
    if not kept.any():
        return ()
    closed = not piece.ends[0]
    if closed:  # the first cell follows the last one
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


def _parameters(piece: Piece, level: Level | None) -> Vector:
    """Where a curve is examined: at the midpoints of cells, which are divided where the level may vanish in them."""
    s = (np.arange(_CELLS) + 0.5) / _CELLS
    if level is None:
        return s if not piece.ends[0] else np.concatenate([[1e-9], s, [1 - 1e-9]])
    # The level changes at most by the distance travelled, and a chart moves at constant speed.
    near = np.abs(level(piece.chart(s[:, None])[0])) <= piece.measure / _CELLS
    offsets = ((np.arange(_SUBCELLS) + 0.5) / _SUBCELLS - 0.5) / _CELLS
    return np.sort(np.concatenate([s[~near], (s[near][:, None] + offsets).ravel()]))


def _bisect(holds: Predicate, a: Vector, b: Vector) -> Vector:
    """Where the value of `holds` changes between a and b, up to rounding."""
    at_a = holds(a)
    for _ in range(60):
        middle = 0.5 * (a + b)
        same = holds(middle) == at_a
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    return 0.5 * (a + b)


def _polished(piece: Piece, level: Level, tolerance: float, cut: float) -> float:
    """The zero of the level along the curve that is nearest to `cut`, which the tolerance has displaced.

    Where the curve follows the other boundary, or leaves it tangentially, the level does not change its sign between
    values of comparable size, and `cut` is right as it is.
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
    """The intervals `(n, 2)`, joined across short gaps, and without those that are too short."""
    merged: list[tuple[float, float]] = []
    for start, end in intervals:
        if merged and start - merged[-1][1] < _SHORTEST:
            merged[-1] = (merged[-1][0], float(end))
        else:
            merged.append((float(start), float(end)))
    return [(start, end) for start, end in merged if end - start >= _SHORTEST]


def _sub_curve(piece: Piece, start: float, end: float) -> Piece:
    """The part of a curve between two values of its parameter."""

    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        return piece.chart(between(start, end, u))

    return replace(piece, measure=(end - start) * piece.measure, ends=(True,), chart=chart)


def _both(first: Keep | None, second: Keep) -> Keep:
    return second if first is None else lambda points, normals: first(points, normals) & second(points, normals)
