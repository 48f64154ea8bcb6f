"""A tree of boxes: a bounding box, cut in two again and again, anywhere along any axis."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Points, Vector
from pdofm.domain.vectors import Numbers, finite_vector

NEAR = 1e-15
"""Points nearer to a cut than this, times the largest coordinate, are on it."""

TOUCHING = 1e-9
"""Points nearer to a box than this, relative to its size, touch it."""


@dataclass(frozen=True, eq=False)
class Faces:
    """Where leaves of a tree meet: face f is the rectangle from `lower[f]` to `upper[f]`, flat along `axis[f]`, between
    the leaf `below[f]` and the leaf `above[f]`."""

    below: Int[np.ndarray, " f"]
    above: Int[np.ndarray, " f"]
    axis: Int[np.ndarray, " f"]
    lower: Float[np.ndarray, "f d"]
    upper: Float[np.ndarray, "f d"]


class BoxTree:
    """Boxes by binary cuts. Nodes are numbers; node 0 is the whole box, and a node that is not cut is a leaf.

    Neighbours share the coordinate of a cut exactly, so that faces are found by comparing numbers.
    """

    root: int = 0
    """The node that all others are parts of."""

    def __init__(self, lower: Numbers, upper: Numbers):
        self._lower = [finite_vector(lower, "lower corner of a tree")]
        self._upper = [finite_vector(upper, "upper corner of a tree")]
        self._axis, self._cut, self._children = [-1], [0.0], [(-1, -1)]
        self._corners: tuple[Points, Points] | None = None  # of all nodes, as long as none is added

    @classmethod
    def of(cls, lower: Numbers, upper: Numbers, arrays: "TreeArrays") -> "BoxTree":
        """The tree with these cuts, in which a node comes before those that it is cut into."""
        tree = cls(lower, upper)
        count = len(arrays.axis)
        tree._lower, tree._upper = tree._lower * count, tree._upper * count
        tree._axis, tree._cut = arrays.axis.tolist(), arrays.cut.tolist()
        tree._children = [(first, second) for first, second in arrays.children.tolist()]
        for node in np.flatnonzero(arrays.axis >= 0).tolist():
            (first, second), axis = tree._children[node], tree._axis[node]
            below, above = np.array(tree._upper[node]), np.array(tree._lower[node])
            below[axis] = above[axis] = tree._cut[node]
            tree._lower[first], tree._upper[first] = tree._lower[node], below
            tree._lower[second], tree._upper[second] = above, tree._upper[node]
        return tree

    def touches(self, node: int, point: Vector) -> bool:
        """Whether a point lies in a box or on its boundary."""
        lower, upper = self.box(node)
        near = TOUCHING * np.max(upper - lower)
        return bool(np.all((point >= lower - near) & (point <= upper + near)))

    @property
    def leaves(self) -> Int[np.ndarray, " n"]:
        """The nodes that are not cut."""
        return np.flatnonzero(np.array(self._axis) < 0)

    def corners(self, nodes: Int[np.ndarray, " n"]) -> tuple[Points, Points]:
        """The lower and upper corners of nodes."""
        if self._corners is None or len(self._corners[0]) < len(self._lower):
            self._corners = np.array(self._lower), np.array(self._upper)
        lower, upper = self._corners
        return lower[nodes], upper[nodes]

    def box(self, node: int) -> tuple[Vector, Vector]:
        """The lower and upper corner of a node."""
        return self._lower[node], self._upper[node]

    def split(self, node: int, axis: int, at: float | None = None) -> tuple[int, int]:
        """Cut a leaf across an axis, by default in the middle; the two new leaves."""
        lower, upper = self.box(node)
        at = float((lower[axis] + upper[axis]) / 2 if at is None else at)
        first, second = len(self._axis), len(self._axis) + 1
        below, above = np.array(upper), np.array(lower)
        below[axis] = above[axis] = at
        self._lower += [lower, above]
        self._upper += [below, upper]
        self._axis[node], self._cut[node], self._children[node] = axis, at, (first, second)
        self._axis += [-1, -1]
        self._cut += [0.0, 0.0]
        self._children += [(-1, -1), (-1, -1)]
        return first, second

    def arrays(self) -> "TreeArrays":
        """The cuts as arrays, which do not change when the tree grows."""
        return TreeArrays(np.array(self._axis), np.array(self._cut), np.array(self._children))

    def faces(self) -> Faces:
        """All faces between leaves."""
        leaves = self.leaves
        lower, upper = self.corners(leaves)
        found = []
        for axis in range(lower.shape[1]):
            starts = _grouped(lower[:, axis])
            for position, ending in _grouped(upper[:, axis]).items():
                starting = starts.get(position)
                if starting is None:
                    continue
                low = np.maximum(lower[ending][:, None], lower[starting][None])
                high = np.minimum(upper[ending][:, None], upper[starting][None])
                low[..., axis] = high[..., axis] = position
                a, b = np.nonzero(np.all(np.delete(low < high, axis, axis=2), axis=2))
                along = np.full(len(a), axis)
                found.append((leaves[ending[a]], leaves[starting[b]], along, low[a, b], high[a, b]))
        if not found:
            dim = lower.shape[1]
            none = np.zeros(0, dtype=int)
            return Faces(none, none, none, np.zeros((0, dim)), np.zeros((0, dim)))
        return Faces(*(np.concatenate(each) for each in zip(*found, strict=True)))


class Forest(BoxTree):
    """Several trees whose nodes are numbered together. Boxes of different trees are no neighbours, even where they
    overlap: each tree covers a region of its own."""

    def __init__(self, corners: Sequence[tuple[Numbers, Numbers]]):
        super().__init__(*corners[0])
        for lower, upper in corners[1:]:
            self._lower.append(finite_vector(lower, "lower corner of a tree"))
            self._upper.append(finite_vector(upper, "upper corner of a tree"))
            self._axis.append(-1)
            self._cut.append(0.0)
            self._children.append((-1, -1))
        self._tree = list(range(len(corners)))  # of each node; the first nodes are the roots

    @classmethod
    def grown(cls, corners: Sequence[tuple[Numbers, Numbers]], arrays: "TreeArrays") -> "Forest":
        """The forest with these cuts, in which a node comes before those that it is cut into."""
        forest = cls(corners)
        # Nodes get numbers in the order in which they are made, which is that of their numbers.
        parents = np.flatnonzero(arrays.axis >= 0)
        for node in parents[np.argsort(arrays.children[parents, 0], kind="stable")].tolist():
            forest.split(node, int(arrays.axis[node]), float(arrays.cut[node]))
        return forest

    def split(self, node: int, axis: int, at: float | None = None) -> tuple[int, int]:
        self._tree += [self._tree[node]] * 2
        return super().split(node, axis, at)

    def faces(self) -> Faces:
        each = [self.branch(number).faces() for number in range(max(self._tree) + 1)]
        names = ("below", "above", "axis", "lower", "upper")
        return Faces(*(np.concatenate([getattr(faces, name) for faces in each]) for name in names))

    def branch(self, number: int) -> "Branch":
        """One of the trees, with the numbers of the forest; it grows as the forest does."""
        return Branch(self, number)

    def of_tree(self, number: int) -> Int[np.ndarray, " n"]:
        """The nodes of a tree that are not cut."""
        leaves = self.leaves
        return leaves[np.array(self._tree)[leaves] == number]


class Branch(BoxTree):
    """One tree of a forest: the same nodes, of which only those of this tree count as leaves."""

    def __init__(self, forest: Forest, number: int):
        self._lower, self._upper = forest._lower, forest._upper
        self._axis, self._cut, self._children = forest._axis, forest._cut, forest._children
        self._corners, self._forest, self.root = None, forest, number

    def split(self, node: int, axis: int, at: float | None = None) -> tuple[int, int]:
        return self._forest.split(node, axis, at)

    @property
    def leaves(self) -> Int[np.ndarray, " n"]:
        return self._forest.of_tree(self.root)


def _grouped(values: Vector) -> dict[float, np.ndarray]:
    """The positions of each value."""
    order = np.argsort(values, kind="stable")
    unique, first = np.unique(values[order], return_index=True)
    return dict(zip(unique.tolist(), np.split(order, first[1:]), strict=True))


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """The cuts of a tree: for every node the axis (-1 for a leaf), the coordinate, and the two nodes beyond."""

    axis: Int[np.ndarray, " n"]
    cut: Float[np.ndarray, " n"]
    children: Int[np.ndarray, "n 2"]

    def roots(self, count: int) -> Int[np.ndarray, " n"]:
        """The root of each node of a forest whose first nodes, so many, are its roots."""
        found = np.arange(len(self.axis))
        for node in range(count, len(found)):
            found[node] = -1
        for node in np.flatnonzero(self.axis >= 0).tolist():
            found[self.children[node]] = found[node]
        return found

    def locate(
        self, points: Points, toward: Points | None = None, roots: int | Int[np.ndarray, " p"] = 0
    ) -> Int[np.ndarray, " p"]:
        """The leaves below `roots` that points lie in; of points on a cut those to the side that `toward` points to."""
        node = np.array(np.broadcast_to(roots, len(points)), dtype=np.int64)
        active = np.flatnonzero(self.axis[node] >= 0)
        near = NEAR * float(np.max(np.abs(points), initial=0.0))
        while len(active):
            here = node[active]
            axis = self.axis[here]
            beyond = points[active, axis] - self.cut[here]
            if toward is not None:
                beyond = np.where(np.abs(beyond) <= near, toward[active, axis], beyond)
            node[active] = self.children[here, (beyond >= 0).astype(np.int64)]
            active = active[self.axis[node[active]] >= 0]
        return node
