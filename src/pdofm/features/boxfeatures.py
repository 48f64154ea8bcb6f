"""Any features in boxes: a space of its own in each patch of a tree of boxes, zero elsewhere.

This is the random feature method with indicators as windows (Chen et al., "Bridging traditional and machine
learning-based algorithms for solving PDEs: the random feature method", 2022). Windows that do not overlap leave a
matrix that is sparse by blocks, so that it is solved box by box, with as many boxes as memory allows.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from pdofm._types import FeatureValues, Key, Point, Points
from pdofm.calculus.jets import Index
from pdofm.domain import Box
from pdofm.domain.tree import BoxTree, TreeArrays
from pdofm.errors import FeaturesError
from pdofm.features.base import Features, Jets
from pdofm.features.box import Corner, HasBox
from pdofm.features.boxes import InBoxes, equal_boxes, numbered
from pdofm.features.patches import SPECIAL, Patches, grouped
from pdofm.numerics.sampling import generator


class FeaturePatches(Patches):
    """Boxes with the leading features of a space in each of them.

    Args:
        lower, upper: the boxes.
        local: the features in each box.
        used: how many of them, the leading ones, each box has.
    """

    def __init__(
        self,
        lower: Float[np.ndarray, "P d"],
        upper: Float[np.ndarray, "P d"],
        local: Sequence[Features],
        used: Sequence[int],
    ):
        # Products of polynomials that are as many resolve about as much.
        each = np.rint(np.array(used, dtype=float) ** (1 / lower.shape[1])).astype(int) - 1
        super().__init__(lower, upper, np.repeat(each.clip(1)[:, None], lower.shape[1], axis=1))
        self.local, self.used = local, used

    @cached_property
    def along(self) -> Int[np.ndarray, "P d"]:
        special = [np.count_nonzero(each.ranks[:k] == 0) for each, k in zip(self.local, self.used, strict=True)]
        # Faces have one dimension less, and more points for the special features, which the faces share.
        faces = max(self.degrees.shape[1] - 1, 1)
        on_faces = (self.degrees + 1) ** faces + (SPECIAL / faces**2 * np.array(special)).astype(int)[:, None]
        return np.ceil(on_faces ** (1 / faces) - 1e-9).astype(int) - 1

    @cached_property
    def are_polynomials(self) -> Bool[np.ndarray, " P"]:
        return np.zeros(len(self), dtype=bool)

    def polynomials(self, patch: int) -> slice:
        return slice(0, 0)

    @cached_property
    def sizes(self) -> Int[np.ndarray, " P"]:
        """Number of features in each patch."""
        return np.array(self.used, dtype=int)

    def jets(self, patch: int, points: Points, which: Sequence[Index]) -> Jets:
        return self.local[patch].jets(points, which)[:, :, : self.used[patch]]

    def expand(
        self, patch: int, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        local = self.local[patch]
        rest = np.zeros((local.size - len(coefficients), coefficients.shape[1]))
        return local.expand(points, which, np.concatenate([coefficients, rest]) if len(rest) else coefficients)

    def expand_all(
        self,
        owner: Int[np.ndarray, " n"],
        points: Points,
        which: Sequence[Index],
        coefficients: Float[np.ndarray, "m C"],
    ) -> Float[np.ndarray, "a n C"]:
        found = np.zeros((len(which), len(points), coefficients.shape[1]))
        for patch, at in grouped(owner):
            found[:, at] = self.expand(patch, points[at], which, coefficients[self.of(patch)])
        return found


class BoxFeatures(InBoxes):
    """Features of any family in boxes, zero outside of their own box.

    Continuity from box to box is added by solving, as for `BoxPolynomials`. The system is solved box by box, in which
    directions that the equation and the conditions do not see are left out, so that features may be dependent.

    Args:
        inner: builds the features of one box from the box and a seed; families and sizes may differ from box to box,
            for instance with `CornerFunctions` at a corner.
        domain: what the boxes divide.
        boxes: how many equal boxes along each axis (one number for all axes, or one for each); or features in boxes,
            such as those of a solution, whose boxes are taken over.
        key: seed.
    """

    tied_to: ClassVar[str] = "its boxes. Make it anew on the other domain"

    local: tuple[Features, ...]
    used: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        inner: Callable[[Box, int], Features],
        domain: HasBox,
        boxes: int | Sequence[int] | InBoxes,
        *,
        key: Key = 0,
    ):
        if isinstance(boxes, InBoxes):
            lower, upper = boxes.lower, boxes.upper
            tree = BoxTree.of(np.asarray(lower), np.asarray(upper), boxes.tree)
        else:
            lower, upper, tree = equal_boxes(domain, boxes)
        leaves = tree.leaves
        low, high = tree.corners(leaves)
        seeds = generator(key).integers(2**31, size=len(leaves))
        local = [inner(Box(a, b), int(seed)) for a, b, seed in zip(low, high, seeds, strict=True)]
        for each in local:
            _check(each, len(lower))
        used = [each.size for each in local]
        owners = numbered(tree, leaves)
        self._set(lower, upper, tree.arrays(), owners, FeaturePatches(low, high, local, used))

    @classmethod
    def of(
        cls, lower: Corner, upper: Corner, tree: TreeArrays, owners: Int[np.ndarray, " n"], patches: FeaturePatches
    ) -> "BoxFeatures":
        """Features in the patches of a tree, which `owners` gives for each of its leaves."""
        found = object.__new__(cls)
        found._set(lower, upper, tree, owners, patches)
        return found

    def _set(
        self, lower: Corner, upper: Corner, tree: TreeArrays, owners: Int[np.ndarray, " n"], patches: FeaturePatches
    ) -> None:
        each = (lower, upper, tree.axis, tree.cut, tree.children, owners, patches.lower, patches.upper)
        local, used = tuple(patches.local), tuple(int(count) for count in patches.used)
        for field, value in zip(fields(self), (*each, local, used), strict=True):
            object.__setattr__(self, field.name, value)

    def __check_init__(self) -> None:
        """Refuse what is not a tree of boxes with features; a file may hold anything."""
        self.check_tree(len(self.local))
        if len(self.used) != len(self.local):
            raise FeaturesError("The arrays of a tree of boxes have shapes that do not fit together.")

    @property
    def patches(self) -> FeaturePatches:
        """The boxes of the features."""
        return FeaturePatches(self.patch_lower, self.patch_upper, self.local, self.used)

    @property
    def degrees(self) -> Int[np.ndarray, "P d"]:
        return self.patches.degrees

    @property
    def size(self) -> int:
        return sum(self.used)

    def __call__(self, x: Point) -> FeatureValues:
        """All features at one point, by differentiable operations: for the few uses that need them all."""
        here = self.owner(x)
        found: list[jax.Array] = [jnp.zeros(0)] * len(self.local)
        alike: dict[object, list[int]] = {}
        for number, each in enumerate(self.local):
            shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(each))
            alike.setdefault((jax.tree.structure(each), shapes), []).append(number)
        for numbers in alike.values():  # features of one kind are evaluated together
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(self.local[i] for i in numbers))
            values = jax.vmap(lambda features: features(x))(stacked)
            for number, each in zip(numbers, values, strict=True):
                found[number] = jnp.where(here == number, each[: self.used[number]], 0.0)
        return jnp.concatenate(found)


def _check(features: object, dim: int) -> None:
    if not isinstance(features, Features) or features.dim != dim:
        raise FeaturesError(f"inner must build features in {dim} dimensions for each box; got {features!r}.")
    if features.imposes == "value" or isinstance(features, InBoxes):
        raise FeaturesError(
            f"The features of one box can neither impose conditions nor be in boxes themselves; got "
            f"{type(features).__name__}. Build plain features, and state the conditions in the problem."
        )
