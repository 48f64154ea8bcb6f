"""Polynomials in the boxes of several regions, each region with boxes of its own."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from pdofm._types import FeatureValues, Point, Points
from pdofm.calculus.terms import Term
from pdofm.domain import Regions
from pdofm.domain.tree import TreeArrays
from pdofm.errors import unknown_name
from pdofm.features.base import Features
from pdofm.features.boxes import BoxPolynomials
from pdofm.features.byregion import region_number, regions_of
from pdofm.features.patches import Patches


class RegionPolynomials(BoxPolynomials):
    """Products of Chebyshev polynomials in boxes, of which every region has its own: functions may jump between
    regions. ``solve(problem, tol=…)`` finds them.

    Args:
        regions: the regions; tree i, with the root node i, belongs to region i.
        tree, owners, patches: as for `BoxPolynomials`.
        only: the number of the region whose polynomials are used everywhere, as on one side of an interface; if
            omitted the region of a point decides.

    Attributes:
        singular, singular_at: the singular functions that some patches have beside polynomials, and the numbers of
            these patches.
    """

    singular: tuple[Features, ...]
    singular_at: tuple[int, ...] = eqx.field(static=True)

    regions: Regions = eqx.field(static=True)
    only: int | None = eqx.field(static=True)

    def __init__(
        self,
        regions: Regions,
        tree: TreeArrays,
        owners: Int[np.ndarray, " n"],
        patches: Patches,
        only: int | None = None,
    ):
        super().__init__(regions.lower, regions.upper, tree, owners, patches)
        self.singular, self.singular_at = tuple(patches.singular.values()), tuple(patches.singular)
        self.regions, self.only = regions, only

    @property
    def patches(self) -> Patches:
        singular = dict(zip(self.singular_at, self.singular, strict=True))
        return Patches(self.patch_lower, self.patch_upper, self.degrees, singular)

    @property
    def size(self) -> int:
        return super().size + sum(each.size for each in self.singular)

    def __call__(self, x: Point) -> FeatureValues:
        smooth, here = super().__call__(x), self.owner(x)
        if not self.singular:
            return smooth
        values = []
        for at, each in zip(self.singular_at, self.singular, strict=True):
            # Away from its patch a function is evaluated where it is not singular, and not used.
            somewhere = jnp.asarray(0.6 * self.patch_lower[at] + 0.4 * self.patch_upper[at])
            values.append(jnp.where(here == at, each(jnp.where(here == at, x, somewhere)), 0.0))
        counts = np.prod(self.degrees + 1, axis=1)
        numbers = [np.repeat(2 * np.arange(len(counts)), counts)]  # those of patches, polynomials before the others
        numbers += [np.full(each.size, 2 * at + 1) for at, each in zip(self.singular_at, self.singular, strict=True)]
        return jnp.concatenate([smooth, *values])[np.argsort(np.concatenate(numbers), kind="stable")]

    def of_region(self, name: str) -> "RegionPolynomials":
        """The same functions, with the polynomials of one region used everywhere."""
        if name not in self.regions.names:
            raise unknown_name("region", name, self.regions.names)
        only = self.regions.names.index(name)
        return RegionPolynomials(self.regions, self.tree, self.owners, self.patches, only)

    def sides(self, term: Term) -> tuple[Features, ...]:
        names = regions_of(term)
        return tuple(self.of_region(name) for name in names) if names else (self,)

    def locate(self, points: Points, toward: Points | None = None) -> Int[np.ndarray, " n"]:
        return self.locate_in(self.regions.which(points, toward) if self.only is None else self.only, points, toward)

    def locate_in(
        self, region: int | Int[np.ndarray, " n"], points: Points, toward: Points | None = None
    ) -> Int[np.ndarray, " n"]:
        """The patch that is used at each point, of the region with a number."""
        if isinstance(region, int):
            return self._held(points, toward, lambda at, side: self.owners[self.tree.locate(at, side, region)])
        found = np.empty(len(points), dtype=int)
        for each in np.unique(region).tolist():
            here = region == each
            found[here] = self.locate_in(each, points[here], None if toward is None else toward[here])
        return found

    def _root(self, at: Point) -> Array:
        return jnp.array(self.only) if self.only is not None else region_number(self.regions, at)
