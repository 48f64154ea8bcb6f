"""Meshes of solids: the tetrahedra of a grid, cut where the boundary crosses them.

The corners of the cut cells lie on the boundary, so that with cells of size h the volume and the surface are accurate
to O(h²). Neighbouring tetrahedra share whole faces. Edges of the domain are kept where they lie in the faces of the
bounding box, and rounded off by less than a cell elsewhere; details narrower than a cell are lost.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from pdofm._types import Points, Vector
from pdofm.domain import Domain
from pdofm.domain.tetrahedra import kuhn
from pdofm.errors import DomainError

ON_BOUNDARY = 1e-9
"""Points closer to the boundary than this, in sizes of the domain, lie on it."""

_HALVINGS = 12
"""How often an edge that crosses the boundary is halved, before one step of the secant method."""

_AT_A_CORNER = 1e-6
"""A cut closer than this to a corner of the grid, in lengths of its edge, is that corner."""

Tetrahedra = Int[np.ndarray, "t 4"]
Pieces = Int[np.ndarray, "pieces 4"]
Faces = Int[np.ndarray, "f 3"]


def tetrahedra(domain: Domain, ticks: Sequence[np.ndarray]) -> tuple[Points, Tetrahedra]:
    """The mesh of a domain of three dimensions in a grid with these coordinates along its axes."""
    grid = np.stack([each.ravel() for each in np.meshgrid(*ticks, indexing="ij")], axis=1)
    level = domain.level(grid)
    tolerance = ON_BOUNDARY * domain.size
    inside = level > -tolerance
    cells = kuhn(np.array([len(each) for each in ticks]))
    count = np.count_nonzero(inside[cells], axis=1)
    whole, cut = cells[count == 4], cells[(count > 0) & (count < 4)]
    # All corners of a tetrahedron that fills a notch of the domain lie on the boundary, so its middle decides.
    touching = np.all(level[whole] < tolerance, axis=1)
    touching[touching] = domain.level(grid[whole[touching]].mean(axis=1)) <= 0
    points, pieces = _cut(domain, grid, inside, cut)
    found = np.concatenate([whole[~touching], pieces])
    corners = points[found]
    volume = np.linalg.det(corners[:, 1:] - corners[:, :1])
    found = np.where(volume[:, None] < 0, found[:, [0, 1, 3, 2]], found)
    found = found[np.abs(volume) > 1e-12 * np.prod([each[1] - each[0] for each in ticks])]
    if not len(found):
        raise DomainError(
            f"A grid with resolution {max(map(len, ticks)) - 1} has no cell inside {domain!r}. Raise the resolution."
        )
    return points, found


def surface(cells: Tetrahedra) -> Faces:
    """The faces that belong to one tetrahedron only, counterclockwise when seen from outside."""
    faces = np.concatenate([cells[:, [0, 2, 1]], cells[:, [0, 1, 3]], cells[:, [1, 2, 3]], cells[:, [0, 3, 2]]])
    _, first, count = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    return faces[first[count == 1]]


def _cut(
    domain: Domain, grid: Points, inside: Bool[np.ndarray, " n"], cells: Tetrahedra
) -> tuple[Float[np.ndarray, "m 3"], Pieces]:
    """What lies inside of tetrahedra that the boundary crosses, and the points of the grid with those of the cuts."""
    # Corners inside come first, so that there are only three cases.
    cells = np.take_along_axis(cells, np.argsort(~inside[cells], axis=1, kind="stable"), axis=1)
    count = np.count_nonzero(inside[cells], axis=1)
    one, two, three = (cells[count == k] for k in (1, 2, 3))
    # Every edge from a corner inside to a corner outside, in the order in which `number` is used below.
    edges = [one[:, [0, k]] for k in (1, 2, 3)]
    edges += [two[:, [i, k]] for i in (0, 1) for k in (2, 3)]
    edges += [three[:, [i, 3]] for i in (0, 1, 2)]
    pairs, number = np.unique(np.concatenate(edges), axis=0, return_inverse=True)
    share = _crossing(domain, grid[pairs[:, 0]], grid[pairs[:, 1]])
    points = np.concatenate([grid, grid[pairs[:, 0]] + share[:, None] * (grid[pairs[:, 1]] - grid[pairs[:, 0]])])
    index = np.where(share < _AT_A_CORNER, pairs[:, 0], len(grid) + np.arange(len(pairs)))
    split = np.split(index[number.ravel()], np.cumsum([len(each) for each in edges])[:-1])
    ab, ac, ad = split[:3]
    single = np.column_stack([one[:, 0], ab, ac, ad])
    a2, a3, b2, b3 = split[3:7]
    between = _halved(np.column_stack([two[:, 0], a2, a3, two[:, 1], b2, b3]), cut_side=True)
    below = _halved(np.column_stack([three[:, :3], *split[7:]]), cut_side=False)
    found = np.concatenate([single, between, below])
    ordered = np.sort(found, axis=1)
    return points, found[np.all(ordered[:, 1:] != ordered[:, :-1], axis=1)]


def _crossing(
    domain: Domain, start: Float[np.ndarray, "e 3"], end: Float[np.ndarray, "e 3"]
) -> Float[np.ndarray, " e"]:
    """Where edges leave the domain, from 0 at their start, which lies inside or on the boundary, to 1."""
    tolerance = ON_BOUNDARY * domain.size

    def level(share: Vector) -> Vector:
        return domain.level(start + share[:, None] * (end - start))

    low, high = np.zeros(len(start)), np.ones(len(start))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        is_inside = level(middle) > -tolerance
        low, high = np.where(is_inside, middle, low), np.where(is_inside, high, middle)
    at_low, at_high = np.maximum(level(low), 0.0), np.minimum(level(high), -0.1 * tolerance)
    return low + (high - low) * at_low / (at_low - at_high)


def _halved(wedges: Int[np.ndarray, "w 6"], *, cut_side: bool) -> Pieces:
    """Three tetrahedra for each wedge (p0, p1, p2, q0, q1, q2) with the edges p_i q_i.

    A side that two wedges share is cut from its corner with the smallest number, in both of them. With `cut_side`, the
    side p1 p2 q2 q1 lies on the boundary and may be cut either way; where cuts coincide with corners of the grid, only
    the other way leaves no flat tetrahedron.
    """
    smallest = np.argmin(wedges, axis=1)
    p0, p1, p2, q0, q1, q2 = np.take_along_axis(wedges, _TURNS[smallest], axis=1).T
    last = np.column_stack([p0, q1, q2, q0])
    forth = (np.minimum(p1, q2) < np.minimum(p2, q1)) != cut_side
    first = np.column_stack([p0, p1, p2, np.where(forth, q2, q1)])
    second = np.where(forth[:, None], np.column_stack([p0, p1, q2, q1]), np.column_stack([p0, q1, p2, q2]))
    return np.concatenate([first, second, last])


_TURNS = np.array(
    [
        [0, 1, 2, 3, 4, 5],
        [1, 2, 0, 4, 5, 3],
        [2, 0, 1, 5, 3, 4],
        [3, 5, 4, 0, 2, 1],
        [4, 3, 5, 1, 0, 2],
        [5, 4, 3, 2, 1, 0],
    ]
)
"""The orders of the corners of a wedge in which each of them comes first."""
