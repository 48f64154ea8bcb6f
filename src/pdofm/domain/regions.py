"""Several domains that touch, such as the materials of a body: their common boundaries are found."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Int

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Part, Piece
from pdofm.domain.csg import flipped
from pdofm.domain.trim import trim
from pdofm.errors import DomainError, unknown_name

SHARED = 1e-12
"""A point of the boundary of one region lies on the boundary of another if it is closer to it than this, in sizes of
the domain: above rounding errors, below the smallest boxes at a singular point."""

PROBE = 1e-8
"""Distance from a boundary, in sizes of the domain, at which both of its sides are examined: far above rounding errors,
far below any detail."""

PROBES = (PROBE, 1e-10, 1e-12)
"""The same for what two regions share. Near the end of an interface the larger distances lead out of the region beyond,
if it ends in an acute angle there; the smaller ones find the end to that precision."""

OVERLAP, OVERLAP_POINTS = 1e-9, 2**12
"""Regions overlap if one of so many points of a region lies deeper than this inside another, in sizes of the domain."""

SIDE_POINTS = 64
"""Points of a piece of boundary that tell which regions lie on its two sides."""


class Regions(Domain):
    """Several domains that do not overlap, each with a name: ``Regions(plate=plate - disk, inclusion=disk)``.

    The domain is their union. Its boundary is what bounds the union; the pieces keep their names, and those of several
    regions may have the same. A boundary that two regions share is an interface. It is named after both, as in
    ``regions.part("plate|inclusion")``, and has normals that point from the first region to the second.

    Args:
        regions: the domains by name.
    """

    def __init__(self, **regions: Any):
        _check(regions)
        self.by_name: Mapping[str, Domain] = MappingProxyType(dict(regions))
        self.lower = np.min([each.lower for each in regions.values()], axis=0)
        self.upper = np.max([each.upper for each in regions.values()], axis=0)
        self.lower.setflags(write=False)
        self.upper.setflags(write=False)
        self._refuse_overlaps()

    def _refuse_overlaps(self) -> None:
        for (first, a), (second, b) in combinations(self.by_name.items(), 2):
            if np.any(a.upper <= b.lower) or np.any(b.upper <= a.lower):
                continue
            for inner, outer in ((a, b), (b, a)):
                points = inner.sample(OVERLAP_POINTS)
                inside = outer.level(points) > OVERLAP * self.size
                if inside.any():
                    raise DomainError(
                        f"The regions {first!r} and {second!r} overlap, for instance at {points[inside][0].tolist()}; "
                        f"expected regions that touch at most. Subtract one from the other: "
                        f"Regions({first}={first} - {second}, {second}={second})."
                    )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the regions."""
        return tuple(self.by_name)

    @property
    def materials(self) -> "Regions":
        return self

    @property
    def whole(self) -> Domain:
        """The domain that these are the regions of: they themselves, or a space-time over such."""
        return self

    @property
    def arguments(self) -> dict[str, Any] | None:
        return dict(self.by_name)

    def __getitem__(self, name: str) -> Domain:
        if name not in self.by_name:
            raise unknown_name("region", name, self.by_name)
        return self.by_name[name]

    def _measure(self) -> float:
        return float(sum(each.measure for each in self.by_name.values()))

    def _level(self, x: Points) -> Vector:
        return self.levels(x).max(axis=0)

    def levels(self, x: Points) -> np.ndarray:
        """The signed distances of points to the boundary of each region, shape (regions, n)."""
        return np.stack([each.level(x) for each in self.by_name.values()])

    def which(self, points: Points, toward: Points | None = None) -> Int[np.ndarray, " n"]:
        """The number of the region that each point lies in, or is nearest to; of points on a boundary the one to the
        side that `toward` points to."""
        return np.argmax(self.levels(points if toward is None else points + PROBE * self.size * toward), axis=0)

    def _pieces(self) -> tuple[Piece, ...]:
        found: list[Piece] = []
        for name, region in self.by_name.items():
            others = [other for each, other in self.by_name.items() if each != name]

            def keep(points: Points, normals: Normals, others: list[Domain] = others) -> Mask:
                return ~np.any([self._borders(other, points, normals) for other in others], axis=0)

            found += [part for piece in region.pieces for part in trim(piece, keep)]
        return tuple(found)

    def _borders(self, region: Domain, points: Points, normals: Normals) -> Mask:
        """Whether points lie on the boundary of a region, with the region on the side that normals point to."""
        found = np.abs(region.level(points)) <= SHARED * self.size
        # The level of a combination is also zero where a boundary of both operands is none of the combination.
        on = np.flatnonzero(found)
        probes = [region.contains(points[on] + probe * self.size * normals[on]) for probe in PROBES]
        found[on] = np.any(probes, axis=0)
        return found

    @cached_property
    def interfaces(self) -> Mapping[tuple[str, str], Part]:
        """The boundaries that two regions share, by their names in the order in which the regions were given."""
        found = {}
        for (first, a), (second, b) in combinations(self.by_name.items(), 2):
            slack = SHARED * self.size
            if np.any(a.upper < b.lower - slack) or np.any(b.upper < a.lower - slack):
                continue

            def keep(points: Points, normals: Normals, other: Domain = b) -> Mask:
                return self._borders(other, points, normals)

            pieces = [part for piece in a.pieces for part in trim(piece, keep)]
            if pieces:
                name = f"{first}|{second}"
                found[first, second] = Part(tuple(replace(piece, name=name) for piece in pieces), self.has_time)
        return MappingProxyType(found)

    def interface(self, first: str, second: str) -> Part:
        """The boundary that two regions share, with normals that point from the first region to the second."""
        for name in (first, second):
            self[name]  # raises if there is no such region
        if (first, second) in self.interfaces:
            return self.interfaces[first, second]
        if (second, first) in self.interfaces:
            part = self.interfaces[second, first]
            pieces = tuple(replace(flipped(piece), name=f"{first}|{second}") for piece in part.pieces)
            return Part(pieces, self.has_time)
        touching = ", ".join("|".join(pair) for pair in self.interfaces) or "none"
        raise DomainError(f"The regions {first!r} and {second!r} do not touch. Interfaces: {touching}.")

    def part(self, *names: str) -> Part:
        pieces: list[Piece] = []
        known = (*self.boundary.names, *("|".join(pair) for pair in self.interfaces))
        for name in names:
            pair = name.split("|")
            if len(pair) == 2 and all(each in self.by_name for each in pair):
                pieces += self.interface(*pair).pieces
            elif name not in known:
                raise unknown_name("part", name, known)
            else:
                pieces += [piece for piece in self.pieces if piece.name == name]
        return Part(tuple(pieces), self.has_time) if names else super().part()

    def sides(self, part: Part) -> list[tuple[str, str | None, Part]]:
        """A part by the regions on its two sides: that which its normals point out of, that which they point into (None
        if it lies on the boundary of the union), and where this is so."""
        found: dict[tuple[int, int], list[Piece]] = {}
        for piece in part.pieces:
            points, normals = piece.sample(SIDE_POINTS, "sobol", np.random.default_rng(0))
            for inner, outer in np.unique(np.stack(self._both(points, normals)), axis=1).T.tolist():
                here = found.setdefault((inner, outer), [])

                def keep(points: Points, normals: Normals, inner: int = inner, outer: int = outer) -> Mask:
                    below, above = self._both(points, normals)
                    return (below == inner) & (above == outer)

                here += [piece] if keep(points, normals).all() else trim(piece, keep)
        return [
            (self.names[inner], None if outer < 0 else self.names[outer], Part(tuple(pieces), part.has_time))
            for (inner, outer), pieces in found.items()
            if pieces
        ]

    def _both(self, points: Points, normals: Normals) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The numbers of the regions below and above points of a boundary; -1 above the boundary of the union."""
        above = self.levels(points + PROBE * self.size * normals)
        return self.which(points, -normals), np.where(above.max(axis=0) > 0, np.argmax(above, axis=0), -1)

    def __repr__(self) -> str:
        return f"Regions({', '.join(f'{name}={each!r}' for name, each in self.by_name.items())})"


def _check(regions: Mapping[str, Any]) -> None:
    if len(regions) < 2:
        raise DomainError(
            f"Regions() was given {len(regions)} region{'s' * (len(regions) != 1)}; expected at least two, as in "
            "Regions(plate=plate - disk, inclusion=disk)."
        )
    for name, region in regions.items():
        if not isinstance(region, Domain) or region.materials is not None:
            raise DomainError(f"The region {name!r} is {region!r}; expected a domain such as Box([0, 0], [1, 1]).")
        if region.has_time:
            raise DomainError(
                f"The region {name!r} includes time; expected a domain in space. "
                "Add time to all of them at once: SpaceTime(Regions(…), T)."
            )
        if name.startswith("_"):
            raise DomainError(f"{name!r} cannot name a region; expected a name that does not start with an underscore.")
    dims = {name: region.dim for name, region in regions.items()}
    if len(set(dims.values())) > 1:
        raise DomainError(f"The regions have the dimensions {dims}; expected equal ones.")
