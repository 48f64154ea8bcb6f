"""Where the source of an equation jumps across lines or planes that are parallel to the axes: boxes are cut there.

Along many lines that are parallel to an axis the source is looked at densely, and where it changes most, between two
points, the place is halved again and again. A change that remains is a jump; if the lines agree on its coordinate, it
lies on a plane across the axis.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pdofm._types import Points, Vector
from pdofm.discrete.collocate import Block
from pdofm.discrete.leftsides import entries
from pdofm.discrete.right import right_values
from pdofm.domain import Domain
from pdofm.problem.problem import Problem

WEAK = 2.0
"""The exponent of a solution at a corner of the region where its source is: r² log r."""

LINES, ON_A_LINE = 12, 513
"""Lines along each axis, and points on each of them."""

MOST_JUMPS = 6
"""The largest changes on a line that are looked at."""

SMALLEST, HALVINGS = 1e-6, 50
"""The smallest jump, as a fraction of the largest source, and how often an interval around it is halved."""

GENTLE = 6
"""Halvings after which the change of a smooth source has fallen to a small part."""

AGREED, FEWEST = 1e-9, 3
"""Places agree that are nearer than this, relative to the domain, on so many lines at least."""

Source = Callable[[Points], Vector]


def cuts_of(problem: Problem) -> list[tuple[int, float]]:
    """The planes across the axes on which the source of the only equation jumps."""
    term, layout = problem.equations[0], problem.layout
    side = problem.right_side(term)
    if problem.regions is not None or side.numbers is not None:
        return []

    def source(points: Points) -> Vector:
        block = Block(term, side, points, np.zeros((len(points), problem.domain.dim - layout.has_time)))
        return np.sum(right_values(layout, block, entries(layout, block)), axis=1)

    return source_cuts(problem.domain, source)


def crossings(cuts: Sequence[tuple[int, float]], domain: Domain) -> list[Vector]:
    """The points of the plane at which cuts meet each other, where a source that jumps across both has a corner, or the
    sides of a rectangle."""
    if domain.dim != 2 or domain.has_time:
        return []
    sides = [(axis, float(end[axis])) for axis in range(2) for end in (domain.lower, domain.upper) if domain.is_box]
    return [
        np.array([x, y])
        for first, x in [*cuts, *sides]
        for second, y in [*cuts, *sides]
        if (first, second) == (0, 1) and ((0, x) in cuts or (1, y) in cuts)
    ]


def source_cuts(domain: Domain, source: Source) -> list[tuple[int, float]]:
    """The planes across the axes on which a source jumps, as (axis, coordinate)."""
    rng, found = np.random.default_rng(0), []
    for axis in range(domain.dim):
        start = domain.lower + rng.random((LINES, domain.dim)) * (domain.upper - domain.lower)
        places = _jumps(domain, source, axis, start)
        near = AGREED * float(np.max(domain.size))
        while len(places):
            alike = np.abs(places - places[0]) < near
            if alike.sum() >= FEWEST:
                found.append((axis, float(np.median(places[alike]))))
            places = places[~alike]
    return found


def _jumps(domain: Domain, source: Source, axis: int, start: Points) -> Vector:
    """The coordinates at which the source jumps on lines along an axis through some points."""
    t = np.linspace(domain.lower[axis], domain.upper[axis], ON_A_LINE + 2)[1:-1]
    points = np.repeat(start, len(t), axis=0)
    points[:, axis] = np.tile(t, len(start))
    inside = domain.contains(points).reshape(len(start), -1)
    values = source(points).reshape(len(start), -1)
    change = np.where(inside[:, 1:] & inside[:, :-1], np.abs(np.diff(values)), 0.0)
    least = SMALLEST * float(np.max(np.abs(values), where=inside, initial=0.0))
    line, at = [], []
    for number, each in enumerate(change):
        most = np.argsort(-each)[:MOST_JUMPS]
        at += most[each[most] > least].tolist()
        line += [number] * int(np.sum(each[most] > least))
    low, high = t[at], t[np.array(at, dtype=int) + 1]
    if len(low) == 0:
        return low
    here = start[line]

    def along(coordinate: Vector) -> Vector:
        points = here.copy()
        points[:, axis] = coordinate
        return source(points)

    first, last = along(low), along(high)
    for halving in range(HALVINGS):
        if halving >= GENTLE and not np.any(np.abs(last - first) > 0.5 * change[line, at]):
            break  # what falls with the interval is no jump
        middle = (low + high) / 2
        value = along(middle)
        left = np.abs(value - first) > np.abs(last - value)
        low, high = np.where(left, low, middle), np.where(left, middle, high)
        first, last = np.where(left, first, value), np.where(left, value, last)
    remains = np.abs(last - first) > np.maximum(least, 0.5 * change[line, at])
    return ((low + high) / 2)[remains]
