"""Trees of boxes for an evolution: where they begin, how boxes are cut and joined."""

import math

import numpy as np
from jaxtyping import Bool, Int

from pdofm.domain import Domain, corners
from pdofm.domain.tree import BoxTree

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
