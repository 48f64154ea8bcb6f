"""Trees of boxes for an evolution: where they begin, how boxes are cut and joined, and the boundary around them."""

import math

import numpy as np
from jaxtyping import Bool, Int

from pdofm._types import Normals
from pdofm.domain import Domain, Part, Piece, corners
from pdofm.domain.tree import BoxTree, TreeArrays
from pdofm.marching.arrays import Mask, Points
from pdofm.numerics.sampling import UnitPoints

FEWEST = 2
"""Boxes along each axis at the start."""

NEAR = 1e-9
"""Corners nearer to a cut than this, relative to the domain, are on it."""


def first_tree(space: Domain) -> BoxTree:
    """Boxes that are cut through the re-entrant corners of a plane domain, and none longer than half of it."""
    tree = BoxTree(space.lower, space.upper)
    if space.dim == 2 and not space.is_box:
        for corner in (corner for corner in corners(space) if corner.angle > math.pi + NEAR):
            for axis in range(2):
                for node in tree.leaves.tolist():
                    lower, upper = tree.box(node)
                    at = float(corner.apex[axis])
                    if lower[axis] + NEAR * space.size < at < upper[axis] - NEAR * space.size:
                        tree.split(node, axis, at)
    most = (space.upper - space.lower) / FEWEST * (1 + NEAR)
    for axis in range(space.dim):
        for node in tree.leaves.tolist():
            _shorten(tree, node, axis, float(most[axis]))
    return tree


def _shorten(tree: BoxTree, node: int, axis: int, most: float) -> None:
    lower, upper = tree.box(node)
    if upper[axis] - lower[axis] > most:
        for half in tree.split(node, axis):
            _shorten(tree, half, axis, most)


def split_tree(tree: BoxTree, cuts: dict[int, Bool[np.ndarray, " d"]]) -> BoxTree:
    """A copy of a tree in which leaves are halved along the axes that are true."""
    lower, upper = tree.box(0)
    found = BoxTree.of(lower, upper, tree.arrays())
    for leaf, axes in cuts.items():
        nodes = [leaf]
        for axis in np.flatnonzero(axes).tolist():
            nodes = [half for node in nodes for half in found.split(node, axis)]
    return found


def numbers_of(tree: BoxTree) -> list[float]:
    """The cuts of a tree in one list: axis, coordinate and the two nodes beyond, node by node."""
    arrays = tree.arrays()
    return np.column_stack([arrays.axis, arrays.cut, arrays.children]).reshape(-1).tolist()


def tree_of(space: Domain, numbers: list[float]) -> BoxTree:
    """The tree with these numbers."""
    axis, cut, *children = np.array(numbers).reshape(-1, 4).T
    arrays = TreeArrays(axis.astype(np.int64), cut, np.stack(children, axis=1).astype(np.int64))
    return BoxTree.of(space.lower, space.upper, arrays)


def parents(tree: BoxTree) -> Int[np.ndarray, "n 3"]:
    """The nodes that are cut into two leaves, each with these."""
    arrays = tree.arrays()
    inner = np.flatnonzero(arrays.axis >= 0)
    children = arrays.children[inner]
    last = np.all(arrays.axis[children] < 0, axis=1)
    return np.column_stack([inner[last], children[last]])


def merged_tree(tree: BoxTree, joined: set[int]) -> BoxTree:
    """A copy of a tree without the cuts of these nodes."""
    lower, upper = tree.box(0)
    arrays, found = tree.arrays(), BoxTree(lower, upper)
    waiting = [(0, 0)]
    while waiting:
        old, new = waiting.pop()
        if arrays.axis[old] >= 0 and old not in joined:
            halves = found.split(new, int(arrays.axis[old]), float(arrays.cut[old]))
            waiting += zip(arrays.children[old].tolist(), halves, strict=True)
    return found


def in_space(piece: Piece) -> Piece:
    """A piece of the boundary of space-time, seen in space."""

    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        points, normals = piece.chart(np.concatenate([u, np.full((len(u), 1), 0.5)], axis=1))
        return points[:, :-1], normals[:, :-1]

    def keep(points: Points, normals: Normals) -> Mask:
        assert piece.keep is not None
        time = piece.chart(np.full((1, piece.dim), 0.5))[0][0, -1]
        column = np.zeros((len(points), 1))
        return piece.keep(np.concatenate([points, column + time], axis=1), np.concatenate([normals, column], axis=1))

    return Piece(piece.name, piece.measure, piece.ends[:-1], chart, None if piece.keep is None else keep)


def part_in_space(part: Part) -> Part:
    """A part of the boundary of space-time, seen in space."""
    return Part(tuple(map(in_space, part.pieces)), False)
