"""A tree of boxes over a domain: which boxes lie inside, and which are cut by the boundary and by how much.

A box of which little is inside would leave its polynomials nearly undetermined. It is merged with the neighbour that it
shares most with: one polynomial lives on both. What carries one polynomial is a patch.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from pdofm._types import Mask, Points, Vector
from pdofm.domain import Domain, Piece
from pdofm.domain.tree import BoxTree, Faces, TreeArrays
from pdofm.features import Concatenate, Features, SectorFunctions
from pdofm.features.boxes import BoxPolynomials, InBoxes
from pdofm.features.patches import Patches, grouped
from pdofm.numerics.nodes import midpoints
from pdofm.numerics.sampling import UnitPoints

SAMPLES = {1: 64, 2: 16, 3: 8}
"""Points along each axis of a box, by dimension, that tell how much of it is inside."""

LITTLE = 0.3
"""A box of which less than this fraction is inside is merged with a neighbour; 0.15 to 0.5 are equally good."""

NUDGE = 1e-7
"""To see whether a face is inside, both of its sides are looked at, so far away relative to the box."""

ON_BOUNDARY = 1e-13
"""Points of a face that are farther outside than this, relative to the domain, lie in a gap of the domain, however
narrow it is."""

FAR_LARGER = 2.1
"""A neighbour so many times larger is the last choice to be merged with: what is small would not be resolved."""


@dataclass(frozen=True, eq=False)
class Inside:
    """How much of a box is inside of a domain: the fraction, and the corners of a box around that part. It is `clear`
    if no boundary can be near, not even a slit."""

    fraction: float
    lower: Vector
    upper: Vector
    clear: bool = True


class Located(ABC):
    """What knows the patch of every point, and the degree of its polynomials: a cover, or two of them on an
    interface. `intervals` are those of curves in one patch, as far as they are known."""

    intervals: dict[Piece, tuple[Vector, np.ndarray]]

    @abstractmethod
    def locate(self, points: Points, toward: Points | None = None) -> Int[np.ndarray, " n"]:
        """The patch that is used at each point; of points on a cut the one to the side that `toward` points to."""

    @abstractmethod
    def cuts(self, axis: int) -> Vector:
        """The coordinates along an axis at which patches may end."""

    @abstractmethod
    def highest(self, patch: Int[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
        """The highest degree along any axis of the polynomials of patches."""


class Cover(Located):
    """The patches of a tree of boxes over a domain.

    Args:
        domain: what is covered.
        tree: the boxes.
        degrees: of the polynomials along each axis, for every leaf.
        known: what was found out about boxes before; boxes never change.
        singular: functions that patches at singular points have beside their polynomials.
    """

    def __init__(
        self,
        domain: Domain,
        tree: BoxTree,
        degrees: dict[int, tuple[int, ...]],
        known: dict[int, Inside],
        singular: Sequence[SectorFunctions] = (),
    ):
        self.domain, self.tree, self._degrees, self.known, self._singular = domain, tree, degrees, known, singular
        self.leaves = tree.leaves
        self.intervals: dict[Piece, tuple[Vector, np.ndarray]] = {}  # of curves: where they pass from patch to patch
        self._learn()
        fractions = np.array([known[node].fraction for node in self.leaves.tolist()])
        self._fraction = dict(zip(self.leaves.tolist(), fractions.tolist(), strict=True))
        self.faces, self.open = self._open_faces()
        self.roots = self._merged()

    def _learn(self) -> None:
        """Find out how much of each new leaf is inside."""
        new = np.array([node for node in self.leaves.tolist() if node not in self.known], dtype=int)
        if len(new) == 0:
            return
        lower, upper = self.tree.corners(new)
        if self.domain.is_box:
            self.known.update({n: Inside(1.0, a, b) for n, a, b in zip(new.tolist(), lower, upper, strict=True)})
            return
        level = self.domain.level((lower + upper) / 2)
        radius = np.linalg.norm(upper - lower, axis=1) / 2
        for where, fraction in ((level >= radius, 1.0), (level <= -radius, 0.0)):
            each = zip(new[where].tolist(), lower[where], upper[where], strict=True)
            self.known.update({n: Inside(fraction, a, b) for n, a, b in each})
        unclear = np.abs(level) < radius
        self._sample(new[unclear], lower[unclear], upper[unclear])

    def _sample(self, nodes: Int[np.ndarray, " n"], lower: Points, upper: Points) -> None:
        dim = lower.shape[1]
        unit = midpoints(SAMPLES[dim], dim)
        step = (upper - lower) / SAMPLES[dim] / 2
        points = lower[:, None] + unit * (upper - lower)[:, None]
        inside = self.domain.contains(points.reshape(-1, dim)).reshape(points.shape[:2])
        for i, node in enumerate(nodes.tolist()):
            held = points[i][inside[i]]
            if len(held) == 0:
                self.known[node] = Inside(0.0, lower[i], upper[i])
                continue
            low = np.maximum(held.min(axis=0) - step[i], lower[i])
            high = np.minimum(held.max(axis=0) + step[i], upper[i])
            self.known[node] = Inside(float(inside[i].mean()), low, high, clear=False)

    def _open_faces(self) -> tuple[Faces, Float[np.ndarray, " f"]]:
        """The faces between boxes that are not outside, and how much of each is inside."""
        all_faces = self.tree.faces()
        shares = np.array([[self._fraction[int(n)] for n in side] for side in (all_faces.below, all_faces.above)])
        shares = shares.reshape(2, -1)
        kept = np.all(shares > 0, axis=0)
        faces = Faces(*(getattr(all_faces, name)[kept] for name in ("below", "above", "axis", "lower", "upper")))
        opened = np.ones(len(faces.axis))
        clear = np.array([[self.known[int(n)].clear for n in side] for side in (faces.below, faces.above)])
        unclear = np.flatnonzero(~np.all(clear.reshape(2, -1), axis=0))
        if len(unclear):
            unit = midpoints(SAMPLES[self.domain.dim], self.domain.dim - 1)
            points = np.concatenate([face_points(faces, f, unit) for f in unclear.tolist()])
            found = self.is_open(faces, np.repeat(unclear, len(unit)), points)
            opened[unclear] = found.reshape(len(unclear), -1).mean(axis=1)
        return faces, opened

    def is_open(self, faces: Faces, face: Int[np.ndarray, " n"], points: Points) -> Mask:
        """Whether points of faces are inside of the domain, seen from both of their sides."""
        axis, rows = faces.axis[face], np.arange(len(points))
        widths = [np.subtract(*self.tree.corners(side[face])[::-1])[rows, axis] for side in (faces.below, faces.above)]
        nudge = np.zeros_like(points)
        nudge[rows, axis] = NUDGE * np.minimum(*widths)
        # Where the parts of a union meet, their common boundary is inside: only its two sides tell. A slit may be
        # narrower than the distance of these; the points themselves tell.
        near = self.domain.level(points) >= -ON_BOUNDARY * self.domain.size
        return near & self.domain.contains(points - nudge) & self.domain.contains(points + nudge)

    def _merged(self) -> dict[int, int]:
        """The leaf that each leaf is merged with, itself for most; leaves outside are missing."""
        roots = {node: node for node, fraction in self._fraction.items() if fraction > 0}
        areas = self.open * np.prod(
            np.where(np.arange(self.domain.dim) == self.faces.axis[:, None], 1.0, self.faces.upper - self.faces.lower),
            axis=1,
        )
        touching: dict[int, list[tuple[int, float]]] = {}
        for a, b, area in zip(self.faces.below.tolist(), self.faces.above.tolist(), areas.tolist(), strict=True):
            touching.setdefault(a, []).append((b, area))
            touching.setdefault(b, []).append((a, area))
        sizes = {node: float(np.max(np.subtract(*self.tree.box(node)[::-1]))) for node in roots}
        small = sorted((n for n in roots if self._fraction[n] < LITTLE), key=lambda n: self._fraction[n])
        for node in small:
            best, most = None, 0.0
            for other, area in touching.get(node, ()):
                root = roots[other]
                if root == roots[node]:
                    continue
                weight = area * (1.0 if self._fraction[root] >= LITTLE else 1e-3)
                weight *= 1e-2 if sizes[root] > FAR_LARGER * sizes[node] else 1.0
                best, most = (root, weight) if weight > most else (best, most)
            if best is not None:
                old = roots[node]
                roots = {n: best if root == old else root for n, root in roots.items()}
        return roots

    @cached_property
    def numbers(self) -> dict[int, int]:
        """The patch of each leaf that is not outside."""
        order = {root: i for i, root in enumerate(dict.fromkeys(self.roots.values()))}
        return {node: order[root] for node, root in self.roots.items()}

    @cached_property
    def members(self) -> list[list[int]]:
        """The leaves of each patch, the one that it is named after first."""
        found: list[list[int]] = [[] for _ in range(len(set(self.numbers.values())))]
        for node, root in self.roots.items():
            at = found[self.numbers[node]]
            at.insert(0, node) if node == root else at.append(node)
        return found

    @cached_property
    def whole(self) -> Bool[np.ndarray, " P"]:
        """Whether a patch is one box, all of it inside."""
        return np.array([len(m) == 1 and self._fraction[m[0]] == 1.0 for m in self.members])

    def corners(self) -> tuple[Points, Points]:
        """The corners of a box around the inner part of each patch."""
        each = [[self.known[node] for node in members] for members in self.members]
        lower = [np.min([one.lower for one in known], axis=0) for known in each]
        return np.array(lower), np.array([np.max([one.upper for one in known], axis=0) for known in each])

    @cached_property
    def patches(self) -> Patches:
        """The patches, each with a box around its inner part."""
        degrees = [self._degrees[members[0]] for members in self.members]
        return Patches(*self.corners(), np.array(degrees, dtype=int), self._singular_functions())

    def _singular_functions(self) -> dict[int, Features]:
        """The singular functions of patches that touch their apexes; of several sectors at one point those of the
        sector that a patch lies in."""
        found: dict[int, Features] = {}
        for apex in dict.fromkeys(tuple(each.apex.tolist()) for each in self._singular):
            sectors = [each for each in self._singular if tuple(each.apex.tolist()) == apex]
            touching = [node for node in self.numbers if self.tree.touches(node, np.array(apex))]
            for patch in dict.fromkeys(self.numbers[node] for node in touching):
                lower, upper = self.tree.corners(np.array([n for n in touching if self.numbers[n] == patch]))
                toward = np.mean(lower + upper, axis=0) / 2 - apex
                own = max(sectors, key=lambda each, toward=toward: float(each.middle @ toward))
                found[patch] = Concatenate(found[patch], own) if patch in found else own
        return found

    @cached_property
    def fraction(self) -> Float[np.ndarray, " P"]:
        """How much of the box of a patch is inside, roughly."""
        volumes = np.prod(self.patches.upper - self.patches.lower, axis=1)
        held = [
            sum(self._fraction[n] * float(np.prod(np.subtract(*self.tree.box(n)[::-1]))) for n in members)
            for members in self.members
        ]
        return np.clip(np.array(held) / volumes, 0.0, 1.0)

    @cached_property
    def arrays(self) -> TreeArrays:
        """The cuts of the tree."""
        return self.tree.arrays()

    @cached_property
    def owners(self) -> Int[np.ndarray, " n"]:
        """The patch of each leaf; -1 for other nodes. Boxes outside use the nearest patch, so that points on the
        boundary that rounding puts there have a value."""
        owners = np.full(len(self.arrays.axis), -1)
        owners[list(self.numbers)] = list(self.numbers.values())
        outside = np.array([n for n in self.leaves.tolist() if n not in self.numbers], dtype=int)
        lower, upper = self.tree.corners(outside)
        for node, low, high in zip(outside.tolist(), lower, upper, strict=True):
            gaps = np.maximum(np.maximum(self.patches.lower - high, low - self.patches.upper), 0.0)
            owners[node] = int(np.argmin(np.linalg.norm(gaps, axis=1)))
        return owners

    @cached_property
    def features(self) -> InBoxes:
        """The space of polynomials in the patches."""
        return BoxPolynomials(self.domain.lower, self.domain.upper, self.arrays, self.owners, self.patches)

    def of(self, region: str | None) -> tuple["Cover", int]:
        """The cover of a region and the number of its first patch; here there is only one."""
        return self, 0

    def locate(self, points: Points, toward: Points | None = None) -> Int[np.ndarray, " n"]:
        return self.owners[self.arrays.locate(points, toward, self.tree.root)]

    def cuts(self, axis: int) -> Vector:
        return np.unique(self.arrays.cut[self.arrays.axis == axis])

    def highest(self, patch: Int[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
        return self.patches.along[patch].max(axis=1)

    def interior(self, unit: list[UnitPoints]) -> tuple[Points, Int[np.ndarray, " n"]]:
        """Points of each patch, given in the unit cube of its box, and their patches; of cut patches those that are
        inside, and in one of their boxes."""
        patches = self.patches
        points = [
            patches.lower[i] + u * (patches.upper[i] - patches.lower[i])
            if self.whole[i]
            else patches.lower[i] * (1 - u) + patches.upper[i] * u
            for i, u in enumerate(unit)
        ]
        owner = np.repeat(np.arange(len(points)), [len(each) for each in points])
        all_points = np.concatenate(points)
        kept = self.whole[owner]
        unclear = np.flatnonzero(~kept)
        if len(unclear):
            at = all_points[unclear]
            kept[unclear] = self.domain.contains(at) & (self.locate(at) == owner[unclear])
        return all_points[kept], owner[kept]


def face_points(faces: Faces, face: int, unit: UnitPoints) -> Points:
    """Points of a face from points of the unit cube with one dimension less."""
    lower, upper, axis = faces.lower[face], faces.upper[face], int(faces.axis[face])
    others = np.delete(np.arange(len(lower)), axis)
    points = np.empty((len(unit), len(lower)))
    points[:, axis] = lower[axis]
    points[:, others] = lower[others] * (1 - unit) + upper[others] * unit
    return points


def by_patch(owner: Int[np.ndarray, " n"], count: int) -> list[Int[np.ndarray, " k"]]:
    """The positions of the points of each patch."""
    found = [np.zeros(0, dtype=int)] * count
    for patch, at in grouped(owner):
        found[patch] = at
    return found
