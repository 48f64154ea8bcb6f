"""Polynomials in the boxes of several regions, each region with boxes of its own."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from pdofm._types import Point, Points
from pdofm.calculus.terms import Term
from pdofm.domain import Regions
from pdofm.domain.tree import TreeArrays
from pdofm.errors import unknown_name
from pdofm.features.base import Features
from pdofm.features.boxes import BoxPolynomials, Patches
from pdofm.features.byregion import region_number, regions_of


class RegionPolynomials(BoxPolynomials):
    """Products of Chebyshev polynomials in boxes, of which every region has its own: functions may jump between
    regions. ``solve(problem, tol=…)`` finds them.

    Args:
        regions: the regions; tree i, with the root node i, belongs to region i.
        tree, owners, patches: as for `BoxPolynomials`.
        only: the number of the region whose polynomials are used everywhere, as on one side of an interface; if
            omitted the region of a point decides.
    """

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
        self.regions, self.only = regions, only

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
        return self.owners[self.tree.locate(points, toward, region)]

    def _root(self, at: Point) -> Array:
        return jnp.array(self.only) if self.only is not None else region_number(self.regions, at)
