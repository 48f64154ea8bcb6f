"""Functions in boxes: features of their own in each patch of a tree of boxes, zero elsewhere; and polynomials there,
products of Chebyshev polynomials."""

import abc
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index
from pdofm.domain.tree import BoxTree, TreeArrays
from pdofm.errors import FeaturesError
from pdofm.features.base import Jets, Unmapped, check_count
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.patches import Patches, grouped, tensor_indices

MOST_POLYNOMIALS = 2**20
"""Products of polynomials in one box, at most."""

NEAR = 1e-9
"""A point that is outside of a box by no more than this, relative to its sides, counts as one of the box."""


class InBoxes(Unmapped):
    """Features of their own in each patch of a tree of boxes. A function may jump between boxes: solving adds that the
    solution and its derivatives do not."""

    lower: Corner
    upper: Corner
    axis: Int[np.ndarray, " n"]
    cut: Float[np.ndarray, " n"]
    children: Int[np.ndarray, "n 2"]
    owners: Int[np.ndarray, " n"]
    patch_lower: Float[np.ndarray, "P d"]
    patch_upper: Float[np.ndarray, "P d"]

    @property
    @abc.abstractmethod
    def patches(self) -> Patches:
        """The boxes with their features."""

    @property
    @abc.abstractmethod
    def degrees(self) -> Int[np.ndarray, "P d"]:
        """The degrees of the polynomials of each patch along each axis, or of those that resolve as much."""

    @property
    def tree(self) -> TreeArrays:
        """The cuts."""
        return TreeArrays(self.axis, self.cut, self.children)

    @property
    def most_at_a_point(self) -> int:
        # One axis after the other is contracted, so that a point never has all products at once.
        patches = self.patches
        return max(int(np.max(self.degrees)) + 1, int(np.max(patches.sizes, initial=0, where=~patches.are_polynomials)))

    def locate(self, points: Points, toward: Points | None = None) -> Int[np.ndarray, " n"]:
        """The patch that is used at each point; of points on a cut the one to the side that `toward` points to."""
        return self._held(points, toward, lambda at, toward: self.owners[self.tree.locate(at, toward)])

    def _held(
        self,
        points: Points,
        toward: Points | None,
        locate: Callable[[Points, Points | None], Int[np.ndarray, " n"]],
    ) -> Int[np.ndarray, " n"]:
        """The same by a function that looks into the tree. A boundary may lie on a cut: where nothing is said of the
        side and the box to one side is outside of the domain, the patch is one whose box holds the point."""
        found = locate(points, toward)
        astray = np.flatnonzero(~self._holds(found, points)) if toward is None else []
        for signs in product((-1.0, 1.0), repeat=self.dim) if len(astray) else ():
            at = points[astray]
            other = locate(at, np.broadcast_to(np.array(signs), at.shape))
            held = self._holds(other, at)
            found[astray[held]] = other[held]
            astray = astray[~held]
        return found

    def _holds(self, patch: Int[np.ndarray, " n"], points: Points) -> Bool[np.ndarray, " n"]:
        """Whether points lie in the boxes of patches."""
        lower, upper = self.patch_lower[patch], self.patch_upper[patch]
        near = NEAR * (upper - lower)
        return np.all((points >= lower - near) & (points <= upper + near), axis=1)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        patches, found = self.patches, np.zeros((len(which), self.size, len(points)))
        for patch, at in grouped(self.locate(points)):
            found[:, patches.of(patch), at] = np.swapaxes(patches.jets(patch, points[at], which), 1, 2)
        return np.swapaxes(found, 1, 2)

    def expand(
        self, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        return self.patches.expand_all(self.locate(points), points, which, coefficients)

    def owner(self, x: Point) -> Array:
        """The patch that is used at one point, by operations that JAX can trace."""
        axis, cut, children, owners = (jnp.asarray(a) for a in (self.axis, self.cut, self.children, self.owners))
        at = jax.lax.stop_gradient(x)

        def leaf(beyond: Callable[[Array, Array], Array]) -> Array:
            def descend(node: Array) -> Array:
                return children[node, beyond(at[axis[node]], cut[node]).astype(int)]

            return owners[jax.lax.while_loop(lambda node: axis[node] >= 0, descend, self._root(at))]

        def holds(patch: Array) -> Array:
            lower, upper = jnp.asarray(self.patch_lower)[patch], jnp.asarray(self.patch_upper)[patch]
            near = NEAR * (upper - lower)
            return jnp.all((at >= lower - near) & (at <= upper + near))

        # A boundary may lie on a cut, as for `locate`.
        above, below = leaf(jnp.greater_equal), leaf(jnp.greater)
        return jnp.where(holds(below) & ~holds(above), below, above)

    def _root(self, at: Point) -> Array:
        """The node at which the search for the box of a point begins."""
        return jnp.zeros((), dtype=int)

    def check_tree(self, count: int) -> None:
        """Refuse what is not a tree of boxes with so many patches; a file may hold anything."""
        nodes, dim = len(self.axis), len(self.lower)
        shapes = [a.shape for a in (self.cut, self.owners, self.children, self.patch_lower, self.patch_upper)]
        if nodes == 0 or shapes != [(nodes,), (nodes,), (nodes, 2), (count, dim), (count, dim)]:
            raise FeaturesError("The arrays of a tree of boxes have shapes that do not fit together.")
        inner = self.axis >= 0
        # A node comes before those that it is cut into, so that every path ends in a leaf.
        after = np.arange(nodes)[inner, None] < self.children[inner]
        if not (np.all(self.axis < dim) and np.all(after) and np.all(self.children[inner] < nodes)):
            raise FeaturesError("The cuts of a tree of boxes do not form a tree.")
        owners = self.owners[~inner]
        if not (np.all(owners >= 0) and np.all(owners < count) and np.all(self.patch_lower < self.patch_upper)):
            raise FeaturesError("A tree of boxes has leaves without polynomials, or boxes without an interior.")


class BoxPolynomials(InBoxes):
    """Products of Chebyshev polynomials in boxes, up to a degree per axis and box; zero outside of their own box.

    ``solve(problem, tol=…)`` finds such boxes, and `BoxPolynomials.grid` makes equal ones. A function of this space may
    jump between boxes: solving adds that the solution and its derivatives do not.

    Args:
        lower, upper: the box that the tree divides.
        tree: its cuts.
        owners: the patch that is used in each node of the tree; what inner nodes say is ignored.
        patches: the boxes of the polynomials with their degrees.
    """

    tied_to: ClassVar[str] = "a tree of boxes. Solve on the other domain to find another one"

    patch_degrees: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(self, lower: Vector, upper: Vector, tree: TreeArrays, owners: Int[np.ndarray, " n"], patches: Patches):
        self.lower, self.upper = lower, upper
        self.axis, self.cut, self.children = tree.axis, tree.cut, tree.children
        self.owners = owners
        self.patch_lower, self.patch_upper = patches.lower, patches.upper
        self.patch_degrees = tuple(map(tuple, patches.degrees.tolist()))

    def __check_init__(self) -> None:
        """Refuse what is not a tree of boxes; a file may hold anything."""
        dim = len(self.lower)
        self.check_tree(len(self.patch_degrees))
        for each in self.patch_degrees:
            if len(each) != dim or min(each) < 0 or math.prod(k + 1 for k in each) > MOST_POLYNOMIALS:
                raise FeaturesError(
                    f"Polynomials in a box have a degree for each of {dim} axes, at least 0 and at most "
                    f"{MOST_POLYNOMIALS} products; got {each}."
                )

    @classmethod
    def grid(cls, domain: HasBox, boxes: int | Sequence[int], degree: int | Sequence[int]) -> "BoxPolynomials":
        """Equal boxes, so many along each axis of the box of a domain, with polynomials of one degree (per axis)."""
        lower, upper, tree = equal_boxes(domain, boxes)
        leaves = tree.leaves
        degrees = np.tile(_per_axis("degree", degree, len(lower), least=0), (len(leaves), 1))
        patches = Patches(*tree.corners(leaves), degrees)
        return cls(lower, upper, tree.arrays(), numbered(tree, leaves), patches)

    @property
    def degrees(self) -> Int[np.ndarray, "P d"]:
        """The degrees of the polynomials of each patch along each axis."""
        return np.array(self.patch_degrees, dtype=np.int64).reshape(len(self.patch_degrees), -1)

    @property
    def patches(self) -> Patches:
        """The boxes of the polynomials."""
        return Patches(self.patch_lower, self.patch_upper, self.degrees)

    @property
    def size(self) -> int:
        return sum(math.prod(k + 1 for k in each) for each in self.patch_degrees)

    def __call__(self, x: Point) -> FeatureValues:
        """All features at one point, by differentiable operations: for the few uses that need them all."""
        here = self.owner(x)
        lower, upper = jnp.asarray(self.patch_lower)[here], jnp.asarray(self.patch_upper)[here]
        y = (x - (lower + upper) / 2) * (2 / (upper - lower))
        columns = [jnp.ones_like(y), y]
        while len(columns) <= max(map(max, self.patch_degrees)):
            columns.append(2 * y * columns[-1] - columns[-2])
        table = jnp.stack(columns)
        indices = np.concatenate([tensor_indices(degrees) for degrees in self.patch_degrees])
        values = math.prod(table[indices[:, i], i] for i in range(self.dim))
        owner = np.repeat(np.arange(len(self.patch_degrees)), np.prod(self.degrees + 1, axis=1))
        return jnp.where(here == owner, values, 0.0)


def equal_boxes(domain: HasBox, boxes: int | Sequence[int]) -> tuple[Vector, Vector, BoxTree]:
    """The box of a domain, and a tree that divides it into so many equal boxes along each axis."""
    lower, upper = box_of(domain)
    tree = BoxTree(lower, upper)
    for axis, count in enumerate(_per_axis("boxes", boxes, len(lower), least=1)):
        for node in tree.leaves.tolist():
            _divide(tree, node, axis, count)
    return lower, upper, tree


def numbered(tree: BoxTree, leaves: Int[np.ndarray, " P"]) -> Int[np.ndarray, " n"]:
    """The position of each node of a tree among its leaves; -1 for other nodes."""
    owners = np.full(len(tree.arrays().axis), -1)
    owners[leaves] = np.arange(len(leaves))
    return owners


def _per_axis(what: str, value: int | Sequence[int], dim: int, least: int) -> tuple[int, ...]:
    """A number for each axis, from one for all or one for each."""
    each = tuple(value) if isinstance(value, Sequence) else (value,) * dim
    if len(each) != dim:
        raise FeaturesError(f"{what} must be one number, or one for each of {dim} axes; got {each}.")
    return tuple(check_count(what, k, least=least) for k in each)


def _divide(tree: BoxTree, node: int, axis: int, count: int) -> None:
    """Cut a leaf into equal parts along an axis, by cuts through the middle as far as possible."""
    if count == 1:
        return
    lower, upper = tree.box(node)
    first = count // 2
    at = float(lower[axis] + (upper[axis] - lower[axis]) * first / count)
    for half, parts in zip(tree.split(node, axis, at), (first, count - first), strict=True):
        _divide(tree, half, axis, parts)
