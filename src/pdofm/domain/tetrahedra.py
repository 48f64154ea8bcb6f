"""Where a function vanishes in a box, as triangles: marching tetrahedra."""

from itertools import permutations

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Points, Vector
from pdofm.domain.level import LevelFunction
from pdofm.domain.trace import check_values
from pdofm.domain.triangles import Triangles

CELLS = 40
"""Cells along the longest side of the box in which surfaces are first seen; what is narrower is not."""

_CASES = {
    # Which corners are inside -> triangles between points on edges, each named by the two corners it joins.
    0b0001: [((0, 1), (0, 2), (0, 3))],
    0b0010: [((1, 0), (1, 3), (1, 2))],
    0b0100: [((2, 0), (2, 1), (2, 3))],
    0b1000: [((3, 0), (3, 2), (3, 1))],
    0b0011: [((0, 2), (0, 3), (1, 3)), ((0, 2), (1, 3), (1, 2))],
    0b0101: [((0, 1), (2, 1), (2, 3)), ((0, 1), (2, 3), (0, 3))],
    0b1001: [((0, 1), (0, 2), (3, 2)), ((0, 1), (3, 2), (3, 1))],
}
"""The triangles in a tetrahedron, up to exchange of inside and outside; their orientation is fixed afterwards."""


def surface_of(function: LevelFunction) -> Triangles:
    """The zeros of a function as triangles with corners on the surface, which run counterclockwise when seen from where
    the function is positive."""
    sides = function.upper - function.lower
    counts = np.maximum(np.ceil(CELLS * sides / sides.max()), 2).astype(int)
    axes = [np.linspace(a, b, n + 1) for a, b, n in zip(function.lower, function.upper, counts, strict=True)]
    grid = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = function.values(grid)
    check_values(values.reshape(counts + 1))
    values = np.where(values == 0, 1e-300, values)
    edges = _cut_edges(kuhn(counts + 1), values)
    pairs, number = np.unique(np.sort(edges.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    share = values[pairs[:, 0]] / (values[pairs[:, 0]] - values[pairs[:, 1]])
    # Off the corners of the grid, where several edges would meet in one point and leave triangles without area.
    share = np.clip(share, 0.05, 0.95)[:, None]
    between = (1 - share) * grid[pairs[:, 0]] + share * grid[pairs[:, 1]]
    vertices, faces = function.projected(between), number.reshape(-1, 3)
    return Triangles(vertices, _outwards(function, vertices, faces))


def kuhn(shape: Int[np.ndarray, " 3"]) -> Int[np.ndarray, "t 4"]:
    """Six tetrahedra in each cell of a grid, which fit together across cells: along the paths from one corner to the
    opposite one, axis by axis."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    start = numbers[:-1, :-1, :-1].ravel()
    strides = np.array([shape[1] * shape[2], shape[2], 1])
    paths = [np.cumsum([0, *strides[list(order)]]) for order in permutations(range(3))]
    return np.concatenate([start[:, None] + path for path in paths])


def _cut_edges(tetrahedra: Int[np.ndarray, "t 4"], values: Vector) -> Int[np.ndarray, "f 3 2"]:
    """The triangles in all tetrahedra: for each corner the two points of the grid between which it lies."""
    code = (values[tetrahedra] < 0) @ np.array([1, 2, 4, 8])
    found = []
    for case, triangles in _CASES.items():
        some = tetrahedra[(code == case) | (code == 15 - case)]
        found += [some[:, np.array(triangle)] for triangle in triangles]
    return np.concatenate(found)


def _outwards(function: LevelFunction, vertices: Points, faces: Int[np.ndarray, "f 3"]) -> Int[np.ndarray, "f 3"]:
    """The faces, turned so that their normals point along the gradient."""
    corners: Float[np.ndarray, "f 3 3"] = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    gradients = function.with_gradients(corners.mean(axis=1))[1]
    wrong = np.sum(normals * gradients, axis=1) < 0
    return np.where(wrong[:, None], faces[:, ::-1], faces)
