"""Means over a domain that is covered by boxes: one equation that involves the unknowns of all patches.

The block elimination of `pdofm.numerics.blocks` knows rows of a single patch, and numbers that two patches share. A
mean is a sum of contributions of all patches. So patches form a tree, and each shares with its parent the sum over the
branch that begins with it:

    Σ own contribution + Σ sums of its children = its sum,

which is what it shares; at the root the sum is the given mean. Patches get a few more unknowns, the sums of their
children, and the elimination goes on as before.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from pdofm.discrete.cover import Cover
from pdofm.discrete.skeleton import Placed, Seam, on_part
from pdofm.domain import Part
from pdofm.domain.quadrature import Quadrature, Rule, box_rule, over_part, quadrature_of
from pdofm.domain.spacetime import Slice
from pdofm.domain.tree import BoxTree
from pdofm.features import InBoxes
from pdofm.numerics.blocks import Leaf

MORE_NODES = 4
"""Gauss nodes in a box beyond the degree of its polynomials."""

SLICE_NODES = 40
"""Nodes along the longest side of the space at one time, if it is not a box."""

STIFFNESS = 10.0
"""The rows that pass sums on weigh so many times more than the mean itself, times the root of their number: together
they hardly add to its residual."""


def rule_in_leaves(domain_rules: Quadrature, features: InBoxes, more: int = 0) -> tuple[Rule, np.ndarray]:
    """A rule of quadrature for functions of the boxes over a domain, and the patch of each node."""
    domain = domain_rules.domain
    tree = BoxTree.of(features.lower, features.upper, features.tree)
    leaves = tree.leaves
    lower, upper = (np.clip(each, domain.lower, domain.upper) for each in tree.corners(leaves))
    level = np.full(len(leaves), np.inf) if domain.is_box else domain.level((lower + upper) / 2)
    radius, owners, degrees = np.linalg.norm(upper - lower, axis=1) / 2, features.owners[leaves], features.degrees
    rules, patches = [], []
    for a, b, height, reach, owner in zip(lower, upper, level, radius, owners, strict=True):
        if owner < 0 or height <= -reach or (a >= b).any():
            continue
        order = int(degrees[owner].max()) + MORE_NODES + more
        rules.append(box_rule(a, b, order) if height >= reach else domain_rules.in_box(a, b, order))
        patches.append(np.full(len(rules[-1].weights), owner))
    return Rule.joined(rules), np.concatenate(patches)


def averaged(cover: Cover, over: object, more: int = 0) -> Placed:
    """Points of a mean over the domain of a cover, or over a part of its boundary, with weights of sum 1."""
    if isinstance(over, Part):
        rule, patch = rule_on_part(cover, over, more)
    else:
        rule, patch = rule_in_leaves(quadrature_of(cover.domain), cover.features, more)
    return Placed(rule.points, rule.normals, patch, weights=rule.weights / rule.weights.sum())


def rule_on_part(cover: Cover, part: Part, more: int = 0) -> tuple[Rule, np.ndarray]:
    """A rule of quadrature for functions of the boxes over a part of the boundary, and the patch of each node."""
    rules, patches = [], []
    for piece in part.pieces:
        one = Part((piece,), part.has_time)
        if isinstance(piece, Slice):
            # Functions are as smooth across boxes as they are accurate, so the rule need not follow the boxes.
            rules.append(over_part(one, SLICE_NODES + more))
            patches.append(cover.locate(rules[-1].points, -rules[-1].normals))
        else:
            placed = on_part(cover, one, more)
            assert placed.weights is not None
            rules.append(Rule(placed.points, placed.normals, placed.weights))
            patches.append(placed.patch)
    return Rule.joined(rules), np.concatenate(patches)


class Averages:
    """Rows that sum over all patches, spread over a tree of patches.

    Args:
        seams: where patches meet; neighbours are neighbours in the tree.
        sizes: the number of unknowns of each patch.
        rows: what each patch contributes, (A, unknowns of the patch).
        right: the given sums, (A, sides).
    """

    def __init__(
        self,
        seams: Sequence[Seam],
        sizes: Sequence[int],
        rows: Sequence[Float[np.ndarray, "A _"]],
        right: Float[np.ndarray, "A sides"],
    ):
        self._first, self._sizes, self._rows, self._right = len(seams), sizes, rows, right
        self._parents = _tree(seams, len(sizes))
        self._children: list[list[int]] = [[] for _ in sizes]
        for child, parent in enumerate(self._parents):
            if parent >= 0:
                self._children[parent].append(child)
        self._stiffness = STIFFNESS * len(sizes) ** 0.5

    @property
    def links(self) -> list[int]:
        """The sizes of the links that are added: one for each patch but the first, which is the root."""
        return [len(self._right)] * (len(self._sizes) - 1)

    def extended(self, leaves: Iterable[Leaf]) -> Iterator[Leaf]:
        """Leaves with the unknowns and links that pass sums on. The given sums are the first rows of the root."""
        count = len(self._right)
        for patch, leaf in enumerate(leaves):
            size, children = self._sizes[patch], self._children[patch]
            columns = size + count * len(children)
            sums = np.zeros((count, columns))
            sums[:, :size] = self._rows[patch]
            links = [(number, _padded(rows, columns)) for number, rows in leaf.links]
            for i, child in enumerate(children):
                at = slice(size + i * count, size + (i + 1) * count)
                sums[:, at] = np.eye(count)
                passed = np.zeros((count, columns))
                passed[:, at] = self._stiffness * np.eye(count)
                links.append((self._first + child - 1, passed))
            own, right = _padded(leaf.own, columns), leaf.right
            if self._parents[patch] < 0:
                own, right = np.concatenate([sums, own]), np.concatenate([self._right, right])
            else:
                links.append((self._first + patch - 1, self._stiffness * sums))
            shifts = leaf.shifts
            if shifts is not None:
                passing = sum(len(rows) for _, rows in links) - len(shifts)
                shifts = np.pad(shifts, ((0, passing), (0, 0)))
            yield Leaf(own, right, links, shifts, leaf.dependent)


def _padded(rows: np.ndarray, columns: int) -> np.ndarray:
    return np.pad(rows, ((0, 0), (0, columns - rows.shape[1])))


def _tree(seams: Sequence[Seam], count: int) -> list[int]:
    """The parent of each patch in a tree of neighbours, -1 for patch 0; patches that touch no other hang from it."""
    around: list[set[int]] = [set() for _ in range(count)]
    for seam in seams:
        around[seam.first].add(seam.second)
        around[seam.second].add(seam.first)
    parents, queue = [-2] * count, [0]
    parents[0] = -1
    for start in range(count):
        if parents[start] == -2:
            parents[start] = 0
            queue.append(start)
        while queue:
            patch = queue.pop(0)
            for other in sorted(around[patch]):
                if parents[other] == -2:
                    parents[other] = patch
                    queue.append(other)
    return parents
