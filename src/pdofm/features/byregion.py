"""Features of several regions: each region has a space of its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pdofm._types import Coefficients, FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Term
from pdofm.domain import Domain, Regions
from pdofm.errors import FeaturesError, unknown_name
from pdofm.features.base import Features, Jets
from pdofm.features.box import Corner, derived
from pdofm.features.compose import Concatenate
from pdofm.features.wrapper import Wrapper

SLACK = 1e-9
"""A region may reach outside the box of its features by this fraction of the domain."""


class RegionFeatures(Wrapper):
    """Features of several regions. Each region has features of its own, so that functions may jump between regions:
    ``RegionFeatures(regions, plate=Chebyshev(plate, 300), inclusion=Chebyshev(disk, 200))``.

    Args:
        regions: the regions, or a space-time over them.
        features: the features of each region, by its name; their box must contain the region.
    """

    tied_to: ClassVar[str] = "its regions. Make features of each region of the other domain, and join them again"

    regions: Regions = eqx.field(static=True)
    basis: Concatenate
    only: int | None = eqx.field(static=True)

    def __init__(self, regions: Domain, **features: Features):
        if regions.materials is None:
            raise FeaturesError(f"RegionFeatures needs a domain with several regions; got {regions!r}.")
        self.regions, self.only = regions.materials, None
        for name in features:
            if name not in self.regions.names:
                raise unknown_name("region", name, self.regions.names)
        for name in self.regions.names:
            _check(name, self.regions[name], features.get(name), SLACK * self.regions.size)
        self.basis = Concatenate(*(features[name] for name in self.regions.names))

    @property
    def wrapped(self) -> tuple[Features, ...]:
        return self.basis.parts

    @derived
    def lower(self) -> Corner:
        """The lower corner of the regions together."""
        return self.regions.lower

    @derived
    def upper(self) -> Corner:
        """The upper corner of the regions together."""
        return self.regions.upper

    @property
    def most_at_a_point(self) -> int:
        return max(part.size for part in self.wrapped)

    @property
    def concentration(self) -> float:
        return self.basis.concentration if self.only is None else self.wrapped[self.only].concentration

    def density(self, points: Points) -> Vector:
        found = np.zeros(len(points))
        for part, at in self._parts(points):
            found[at] = part.density(points[at])
        return found

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        """The terms of the features of each region, which hold there."""
        return tuple(
            replace(term, name=f"{term.name} {name}", region=name)
            for name, part in zip(self.regions.names, self.wrapped, strict=True)
            for term in part.extra_terms(self.regions[name])
        )

    def of_region(self, name: str) -> "RegionFeatures":
        """The same functions, with the features of one region used everywhere."""
        if name not in self.regions.names:
            raise unknown_name("region", name, self.regions.names)
        found = object.__new__(RegionFeatures)
        for field, value in (("regions", self.regions), ("basis", self.basis)):
            object.__setattr__(found, field, value)
        object.__setattr__(found, "only", self.regions.names.index(name))
        return found

    def sides(self, term: Term) -> tuple[Features, ...]:
        names = regions_of(term)
        return tuple(self.of_region(name) for name in names) if names else (self,)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        found = np.zeros((len(which), self.size, len(points)))
        for (part, at), (_, here) in zip(self._parts(points), self.basis.places(), strict=True):
            if len(at) == len(points):
                found[:, here] = np.swapaxes(part.jets(points, which), 1, 2)
            elif len(at):
                found[:, here[:, None], at] = np.swapaxes(part.jets(points[at], which), 1, 2)
        return np.swapaxes(found, 1, 2)

    def expand(self, points: Points, which: Sequence[Index], coefficients: Coefficients) -> Float[np.ndarray, "a n C"]:
        found = np.zeros((len(which), len(points), coefficients.shape[1]))
        for (part, at), (_, here) in zip(self._parts(points), self.basis.places(), strict=True):
            if len(at):
                found[:, at] = part.expand(points[at], which, coefficients[here])
        return found

    def __call__(self, x: Point) -> FeatureValues:
        number = (
            jnp.array(self.only) if self.only is not None else region_number(self.regions, jax.lax.stop_gradient(x))
        )
        values = []
        for i, (name, part) in enumerate(zip(self.regions.names, self.wrapped, strict=True)):
            # Features may be singular outside of their region, where they are not used.
            somewhere = jnp.asarray(self.regions[name].sample(1)[0])
            values.append(jnp.where(number == i, part(jnp.where(number == i, x, somewhere)), 0.0))
        return self.basis.ordered(values)

    def _parts(self, points: Points) -> list[tuple[Features, Int[np.ndarray, " _"]]]:
        """The features of each region with the points at which they are used."""
        if self.only is not None:
            everywhere, nowhere = np.arange(len(points)), np.arange(0)
            return [(part, everywhere if i == self.only else nowhere) for i, part in enumerate(self.wrapped)]
        number = self.regions.which(points)
        return [(part, np.flatnonzero(number == i)) for i, part in enumerate(self.wrapped)]


def regions_of(term: Term) -> tuple[str, ...]:
    """The regions that a term sees: its own, or on an interface those on both sides."""
    if term.pair is not None:
        return term.pair
    return () if term.region is None else (term.region,)


def region_number(regions: Regions, at: Point) -> Array:
    """The number of the region that a traced point lies in."""

    def which(points: Any) -> Any:
        each = np.asarray(points)
        return regions.which(each.reshape(-1, each.shape[-1])).reshape(each.shape[:-1])

    return jax.pure_callback(which, jax.ShapeDtypeStruct((), jnp.int64), at, vmap_method="expand_dims")


def _check(name: str, region: Domain, features: Features | None, slack: float) -> None:
    if not isinstance(features, Features):
        raise FeaturesError(
            f"The features of the region {name!r} are {features!r}; expected features for every region, such as "
            f"{name}=Chebyshev({name}, 300)."
        )
    if features.dim != region.dim:
        raise FeaturesError(f"The features of {name!r} have {features.dim} dimensions, the region has {region.dim}.")
    lower, upper = np.asarray(features.lower), np.asarray(features.upper)
    if (region.lower < lower - slack).any() or (region.upper > upper + slack).any():
        raise FeaturesError(
            f"The region {name!r} reaches outside the box of its features, {lower.tolist()} to {upper.tolist()}. Make "
            "features on this region or on a box that contains it, or move these: features.on(region)."
        )
    if features.imposes is not None:
        raise FeaturesError(
            f"The features of {name!r} impose conditions by construction, which is not possible with several regions. "
            "Use their inner features."
        )
