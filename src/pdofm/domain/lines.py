"""Lines through a domain that is known only by the points it contains: where they are inside, and how many to take."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Mask, Points, Vector
from pdofm.numerics.nodes import gauss_weights, tensor, tensor_gauss

SAMPLES = 4
"""Points along a line at which its inside is looked for, per node. Shorter intervals are missed, so this number must
grow with the order: otherwise the difference of two rules would not show what both of them miss."""

COARSE, FINE = 4, 6
"""Gauss nodes along each side of a cell: two rules, whose difference says whether the cell is refined."""

MOST_LINES = 60
"""Cells are refined until there are so many lines, times the square of the order."""

ACCURACY = 1e-13
"""Cells are refined until the rules differ by less than this fraction of the whole."""

Contains = Callable[[Points], Mask]


def inside_intervals(
    contains: Contains, base: Float[np.ndarray, "l e"], lower: float, upper: float, order: int
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """The intervals of the first coordinate, between `lower` and `upper`, in which lines are inside: the number of the
    line, and both ends. `base` has the other coordinates of each line."""
    samples = SAMPLES * order
    x = lower + (upper - lower) * (np.arange(samples) + 0.5) / samples

    def at(line: Int[np.ndarray, " n"], first: Float[np.ndarray, " n"]) -> Mask:
        return contains(np.concatenate([first[:, None], base[line]], axis=1))

    every = np.repeat(np.arange(len(base)), samples)
    held = at(every, np.tile(x, len(base))).reshape(-1, samples)
    padded = np.pad(held, ((0, 0), (1, 1)))
    edges = np.concatenate([[lower], x, [upper]])
    line, change = np.nonzero(padded[:, 1:] != padded[:, :-1])
    a, b, starts = edges[change], edges[change + 1], padded[line, change + 1]
    for _ in range(52):
        middle = (a + b) / 2
        beyond = at(line, middle) == starts
        a, b = np.where(beyond, a, middle), np.where(beyond, middle, b)
    ends = (a + b) / 2
    return line[starts], ends[starts], ends[~starts]


def refined_cells(
    contains: Contains, lower: Vector, upper: Vector, order: int
) -> tuple[Float[np.ndarray, "l e"], Float[np.ndarray, " l"]]:
    """Nodes and weights over all coordinates but the first: those of Gauss in cells that are halved where the lengths
    of the lines through them are not smooth."""
    dim, whole = len(lower) - 1, float(np.prod(upper - lower))
    first = max(1, order // 6)
    sides = (upper - lower)[1:] / first
    low = lower[1:] + sides * tensor([np.arange(first, dtype=float)] * dim)
    width = np.tile(sides, (len(low), 1))
    points, weights, lines = [], [], 0
    while len(low):
        fine, fine_weights = _nodes(low, width, FINE)
        coarse, coarse_weights = _nodes(low, width, COARSE)
        totals = [
            (w * _lengths(contains, nodes, lower[0], upper[0], order)).reshape(len(low), -1).sum(axis=1)
            for nodes, w in ((fine, fine_weights), (coarse, coarse_weights))
        ]
        lines += len(fine)
        bad = np.abs(totals[0] - totals[1]) > ACCURACY * whole
        bad &= lines + 2**dim * bad.sum() * FINE**dim <= MOST_LINES * order**2
        keep = np.repeat(~bad, FINE**dim)
        points.append(fine[keep])
        weights.append(fine_weights[keep])
        halves = tensor([np.array([0.0, 0.5])] * dim)
        low = (low[bad][:, None] + halves * width[bad][:, None]).reshape(-1, dim)
        width = np.repeat(width[bad] / 2, 2**dim, axis=0)
    return np.concatenate(points), np.concatenate(weights)


def _nodes(low: Points, width: Points, count: int) -> tuple[Float[np.ndarray, "l e"], Float[np.ndarray, " l"]]:
    dim = low.shape[1]
    points = low[:, None] + tensor_gauss((count,) * dim) * width[:, None]
    each = np.prod(tensor([gauss_weights(count)] * dim), axis=1)
    return points.reshape(-1, dim), np.outer(np.prod(width, axis=1), each).reshape(-1)


def _lengths(
    contains: Contains, base: Float[np.ndarray, "l e"], lower: float, upper: float, order: int
) -> Float[np.ndarray, " l"]:
    line, a, b = inside_intervals(contains, base, lower, upper, order)
    return np.bincount(line, weights=b - a, minlength=len(base))
