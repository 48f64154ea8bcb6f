"""In which spaces an evolution is marched, and with which degrees."""

import math
import sys
from collections.abc import Callable

import numpy as np

from pdofm.errors import SolveError
from pdofm.marching.intervals import Intervals
from pdofm.marching.separable import separated
from pdofm.marching.spaces import Space
from pdofm.marching.spots import Spot, spots_of
from pdofm.marching.statement import Statement
from pdofm.marching.tensors import Tensors
from pdofm.marching.tiles import Tiles, fills_boxes
from pdofm.marching.waves import Waves
from pdofm.marching.whole import Whole

MOST_WAVES = {1: 5000, 2: 400_000, 3: 1_000_000}
"""Unknowns on a periodic grid, by dimension. In one dimension intervals take over from there."""

TILE_DEGREES = {2: (6, 12), 3: (4, 6)}
"""The lowest and the highest degree in boxes, by dimension."""

MOST_IN_TENSORS = {2: 160_000, 3: 400_000}
"""Unknowns of products of polynomials in a box, by dimension."""

MOST_IN_TILES = 60_000
"""Unknowns in boxes."""

MOST_IN_INTERVALS = 200_000
"""Unknowns in intervals."""


MOST_BEFORE_TILES = 600
"""Unknowns on the whole of a domain that could also be cut into boxes. Smooth solutions need few, and no others are
quicker: the matrix is dense."""

Candidates = list[tuple[Callable[[], Space], int]]
"""Spaces to try, each with the most unknowns that it may have."""


def stages_for(statement: Statement, slab_tol: float) -> int:
    """The degree in time for a tolerance. In a linear problem factorisations serve many slabs, so that more stages,
    and with them fewer slabs, are cheaper."""
    digits = -math.log10(slab_tol)
    found = digits + 4 if statement.is_linear else 0.6 * digits + 3
    return int(np.clip(math.ceil(found), 5, 15 if statement.is_linear else 12))


def degree_for(statement: Statement, slab_tol: float) -> int:
    """The degree in space for a tolerance."""
    digits = -math.log10(slab_tol)
    return int(np.clip(math.ceil(1.2 * digits + 5), 10, 20)) + max(statement.orders(0)) // 2


def tile_degree(statement: Statement, slab_tol: float) -> int:
    """The degree in boxes for a tolerance."""
    low, high = TILE_DEGREES[statement.domain.space.dim]
    return int(np.clip(math.ceil(0.9 * -math.log10(slab_tol) + 2), low, high))


def can_hold(statement: Statement) -> bool:
    """Whether there is a space that holds small values relative to their own size: intervals, which come first where
    the problem is not periodic."""
    return statement.domain.space.is_box and statement.domain.space.dim == 1 and not statement.periodic


def spaces(statement: Statement, slab_tol: float, floor: float = 1.0, number: int = 0) -> Candidates:
    """The spaces to try, in this order, each with the most unknowns that it may have. Where that is possible, values
    down to `floor`, relative to the whole, are represented relative to their own size."""
    space = statement.domain.space
    found: Candidates = []
    if space.is_box and statement.periodic == frozenset(range(space.dim)) and space.dim in MOST_WAVES:
        found.append((lambda: Waves.first(statement), MOST_WAVES[space.dim] * statement.components))
    if space.is_box and space.dim == 1:
        degree = degree_for(statement, slab_tol)
        if floor < 1:
            found.append((lambda: Intervals.first(statement, degree, floor), MOST_IN_INTERVALS))
        found.append((lambda: Intervals.first(statement, degree), MOST_IN_INTERVALS))
    if not found and space.dim in TILE_DEGREES:
        fills = fills_boxes(statement)
        parts = separated(statement)
        if parts is not None:
            most = MOST_IN_TENSORS[space.dim] * statement.components
            found.append((lambda: Tensors.first(statement, parts, number), most))
        elif not statement.periodic:
            most = MOST_BEFORE_TILES if fills else sys.maxsize
            found.append((lambda: Whole.first(statement, number), most))
        if fills:
            degree = tile_degree(statement, slab_tol)
            spots = [] if parts is None else spots_of(statement)
            found.append((lambda: seeing(Tiles.first(statement, degree), spots), MOST_IN_TILES))
    if not found:
        raise SolveError(
            f"march does not know a space for {space!r} yet: it solves in one to three dimensions. Use "
            "solve(problem), which solves for all times at once."
        )
    return found


def seeing(space: Tiles, spots: list[Spot]) -> Tiles:
    """Boxes that are halved until there are points in each of some small places where data vary."""
    for spot in spots:
        while True:
            marks = spot.meets(space.patches.lower, space.patches.upper)
            points = space.quadrature()[0].reshape(space.count, -1, space.dim)
            if spot.is_seen(points[marks].reshape(-1, space.dim)) or space.size > MOST_IN_TILES:
                break
            space = space.refined(np.repeat(marks[:, None], space.dim, axis=1), [])[0]
    return space
