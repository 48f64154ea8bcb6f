"""Covers of several regions: every region has a tree of boxes of its own, and patches of different regions meet on the
interfaces between them."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np
from jaxtyping import Bool, Float, Int

from pdofm._types import Coefficients, Points, Vector
from pdofm.calculus.jets import Index
from pdofm.discrete.cover import Cover, Inside, Located
from pdofm.discrete.skeleton import Placed, Seam, on_part, seams
from pdofm.domain import Domain, Part, Piece
from pdofm.domain.tree import BoxTree, Forest
from pdofm.features import Concatenate, Features, SectorFunctions
from pdofm.features.patches import Patches
from pdofm.features.regions import RegionPolynomials
from pdofm.numerics.sampling import UnitPoints

SURFACE_POINTS = 2**15
"""Points of an interface in three dimensions from which those that are used are chosen."""


class MaterialCover:
    """The patches of a forest over several regions, numbered region by region. It is used like a `Cover`."""

    def __init__(
        self,
        domain: Domain,
        tree: Forest,
        degrees: dict[int, tuple[int, ...]],
        known: dict[int, Inside],
        singular: Mapping[str, Sequence[SectorFunctions]],
    ):
        assert domain.materials is not None
        self.domain, self.tree, self.regions = domain, tree, domain.materials
        self.covers = [
            Cover(region, tree.branch(number), degrees, known, singular.get(name, ()))
            for number, (name, region) in enumerate(self.regions.by_name.items())
        ]
        self.starts = np.cumsum([0, *(len(cover.patches) for cover in self.covers)])
        self._pairs: dict[tuple[str, str], _Across] = {}

    def of(self, region: str | None) -> tuple[Cover, int]:
        """The cover of a region and the number of its first patch."""
        number = self.regions.names.index(str(region))
        return self.covers[number], int(self.starts[number])

    @cached_property
    def region_of(self) -> Int[np.ndarray, " P"]:
        """The number of the region of each patch."""
        return np.repeat(np.arange(len(self.covers)), np.diff(self.starts))

    @cached_property
    def members(self) -> list[list[int]]:
        """The leaves of each patch, the one that it is named after first."""
        return [members for cover in self.covers for members in cover.members]

    @cached_property
    def whole(self) -> Bool[np.ndarray, " P"]:
        """Whether a patch is one box, all of it inside."""
        return np.concatenate([cover.whole for cover in self.covers])

    @cached_property
    def fraction(self) -> Float[np.ndarray, " P"]:
        """How much of the box of a patch is inside, roughly."""
        return np.concatenate([cover.fraction for cover in self.covers])

    @cached_property
    def patches(self) -> Patches:
        """The patches, each with a box around its inner part."""
        each = [cover.patches for cover in self.covers]
        shifted = zip(each, self.starts.tolist(), strict=False)
        singular = {start + i: functions for p, start in shifted for i, functions in p.singular.items()}
        lower, upper, degrees = (
            np.concatenate([getattr(p, name) for p in each]) for name in ("lower", "upper", "degrees")
        )
        return Patches(lower, upper, degrees, singular)

    @cached_property
    def features(self) -> RegionPolynomials:
        """The space of polynomials in the patches."""
        shifted = [np.where(c.owners >= 0, c.owners + s, -1) for c, s in zip(self.covers, self.starts, strict=False)]
        return RegionPolynomials(self.regions, self.tree.arrays(), np.max(shifted, axis=0), self.patches)

    def interior(self, unit: list[UnitPoints]) -> tuple[Points, Int[np.ndarray, " n"]]:
        """Points of each patch, given in the unit cube of its box, and their patches; of cut patches those inside."""
        found = [
            cover.interior(unit[start : start + len(cover.patches)])
            for cover, start in zip(self.covers, self.starts.tolist(), strict=False)
        ]
        points, patches = zip(*found, strict=True)
        return np.concatenate(points), np.concatenate([p + s for p, s in zip(patches, self.starts, strict=False)])

    def seams(self) -> list[Seam]:
        """Where patches of one region meet."""
        return [
            Seam(seam.first + start, seam.second + start, seam.axis, seam.points, seam.shift)
            for cover, start in zip(self.covers, self.starts.tolist(), strict=False)
            for seam in seams(cover)
        ]

    def on_interface(self, pair: tuple[str, str], part: Part, more: int) -> Placed:
        """Points on a part of an interface, with the patches on both of its sides."""
        across = self._pairs.setdefault(pair, _Across(self.of(pair[0])[0], self.of(pair[1])[0]))
        is_surface = any(piece.dim > 1 for piece in part.pieces)
        placed = across.on_surface(part, more) if is_surface else on_part(across, part, more)
        first, second = across.both(placed.patch)
        return Placed(placed.points, placed.normals, first + self.of(pair[0])[1], second + self.of(pair[1])[1])


def singular_of(features: RegionPolynomials) -> dict[str, list[SectorFunctions]]:
    """The singular functions of each region that patches have beside their polynomials."""
    leaves = np.flatnonzero(features.owners >= 0)
    roots, names = features.tree.roots(len(features.regions.names)), features.regions.names
    region = dict(zip(features.owners[leaves].tolist(), roots[leaves].tolist(), strict=True))
    found: dict[str, list[SectorFunctions]] = {name: [] for name in names}
    for patch, functions in features.patches.singular.items():
        own = found[names[region[patch]]]
        each = functions.parts if isinstance(functions, Concatenate) else (functions,)
        # Patches that touch one point share functions, which a file has several times.
        new = (f for f in each if isinstance(f, SectorFunctions) and not any(f.equals(other) for other in own))
        own.extend(new)
    return found


class _Across(Located):
    """The pairs of patches on the two sides of an interface, numbered like the patches of a cover."""

    def __init__(self, first: Cover, second: Cover):
        self._first, self._second = first, second
        self.intervals: dict[Piece, tuple[Vector, np.ndarray]] = {}

    def both(self, pair: Int[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The two patches of pairs."""
        return np.divmod(pair, len(self._second.patches))

    def locate(self, points: Points, toward: Points | None = None) -> Int[np.ndarray, " n"]:
        back = None if toward is None else -toward
        return self._first.locate(points, toward) * len(self._second.patches) + self._second.locate(points, back)

    def cuts(self, axis: int) -> Vector:
        return np.union1d(self._first.cuts(axis), self._second.cuts(axis))

    def highest(self, patch: Int[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
        first, second = self.both(patch)
        return np.maximum(self._first.highest(first), self._second.highest(second))

    def on_surface(self, part: Part, more: int) -> Placed:
        """Points on a surface, uniform in area. Every pair of patches gets as many as their polynomials need, since
        each point is an unknown that they share."""
        points, normals = part.sample(SURFACE_POINTS, key=more)
        pair = self.locate(points, -normals)
        numbers, index, counts = np.unique(pair, return_inverse=True, return_counts=True)
        first, second = self.both(numbers)
        # The area of a pair relative to that of the patch of which it is the larger part.
        of_first, of_second = np.bincount(first, counts)[first], np.bincount(second, counts)[second]
        needed = (1.5 * self.highest(numbers) + 2 + more) ** (points.shape[1] - 1)
        wanted = np.ceil(needed * counts / np.minimum(of_first, of_second))
        order = np.argsort(index, kind="stable")
        rank = np.empty(len(pair), dtype=int)
        rank[order] = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        kept = rank < wanted[index]
        return Placed(points[kept], normals[kept], pair[kept])


AnyCover = Cover | MaterialCover


def make_cover(
    domain: Domain,
    tree: BoxTree,
    degrees: dict[int, tuple[int, ...]],
    known: dict[int, Inside],
    singular: Mapping[str, Sequence[SectorFunctions]] = MappingProxyType({}),
) -> AnyCover:
    """The patches of a tree over a domain, or of a forest over its regions, with singular functions for each region."""
    if isinstance(tree, Forest):
        return MaterialCover(domain, tree, degrees, known, singular)
    return Cover(domain, tree, degrees, known)


def make_tree(domain: Domain) -> BoxTree:
    """The box of a domain, or those of its regions."""
    if domain.materials is None:
        return BoxTree(domain.lower, domain.upper)
    return Forest([(region.lower, region.upper) for region in domain.materials.by_name.values()])


def jet_at(
    cover: AnyCover, placed: Placed, which: Sequence[Index], iterate: tuple[Features, Coefficients]
) -> Float[np.ndarray, "a n sides"]:
    """The derivatives of a function at points; on an interface those on the first side, then those on the second. Its
    patches may be others than those of the cover."""
    features, coefficients = iterate
    if not isinstance(features, RegionPolynomials) or not isinstance(cover, MaterialCover):
        return features.expand(placed.points, which, coefficients)
    found = []
    for patch in (placed.patch,) if placed.beyond is None else (placed.patch, placed.beyond):
        own = features.locate_in(cover.region_of[patch], placed.points)
        found.append(features.patches.expand_all(own, placed.points, which, coefficients))
    return np.concatenate(found, axis=2)
