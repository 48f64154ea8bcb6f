"""Combinations of domains: unions a | b, intersections a & b and differences a - b."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Piece
from pdofm.domain.trim import trim
from pdofm.domain.vectors import between
from pdofm.errors import DomainError
from pdofm.numerics.quantiles import composite_gauss
from pdofm.numerics.sampling import UnitPoints, unit_points

_COINCIDENT = 1e-13
"""Two boundaries coincide where they are closer than this, in sizes of the domain: a little above rounding errors."""

_PROBE = 1e-8
"""Where boundaries coincide, the two sides are examined at this distance, in sizes of the domain: far above rounding
errors, far below any detail."""

_EMPTY_POINTS, _MEASURE_POINTS = 2**14, 2**16
"""Sobol' points of the bounding box that decide whether a combination is empty, and that measure its volume in three or
more dimensions, to about 1e-4."""


class _Combination(Domain):
    """A combination of two domains.

    Pieces keep their names; where both domains have a piece of the same name, that of `second` gets the suffix "#2" (or
    "#3", …). Names that were given by `named` stay as they are. `measure` is exact up to rounding in one and two
    dimensions, and accurate to about 1e-4 in more. A cut of the boundary that is shorter than 1/65536 of the curve that
    it cuts is not seen.
    """

    symbol = ""

    def __init__(self, first: Domain, second: Domain):
        if first.has_time or second.has_time:
            raise DomainError(
                f"Cannot combine {first!r} and {second!r}: space-times do not combine. "
                "Combine the spaces first: SpaceTime(a - b, T)."
            )
        if first.dim != second.dim:
            raise DomainError(
                f"Cannot combine {first!r} of dimension {first.dim} and {second!r} of dimension {second.dim}; "
                "expected equal dimensions."
            )
        self.first, self.second = first, second
        self.lower, self.upper = self._bounds()
        self.lower.setflags(write=False)
        self.upper.setflags(write=False)
        if not ((self.lower < self.upper).all() and self._inside(_EMPTY_POINTS).any()):
            raise DomainError(
                f"{self!r} is empty: none of {_EMPTY_POINTS} points of its bounding box lies inside. Expected domains "
                "that overlap, and in a difference a second domain that does not cover the first."
            )
        if _PROBE * self.size < 64 * np.spacing(max(np.abs(self.lower).max(), np.abs(self.upper).max())):
            raise DomainError(
                f"{self!r} is {self.size:.3g} wide but farther than {self.size / 1e-6:.3g} from the origin; "
                "expected coordinates that resolve 1e-8 of its size. Move it closer to the origin."
            )

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"first": self.first, "second": self.second}

    @abstractmethod
    def _bounds(self) -> tuple[Vector, Vector]:
        """The corners of the bounding box."""

    @abstractmethod
    def _trimmed(self) -> tuple[list[Piece], list[Piece]]:
        """The pieces of the first and of the second operand that bound the combination.

        Let p be a point of a piece of one operand, with outward normal n. That operand contains p - eps n and does not
        contain p + eps n, so whether p bounds the combination depends only on which of the two points the *other*
        operand contains. The pieces of the first operand are selected by one of these points, those of the second by
        both. Where the boundaries coincide the two points differ, so a common boundary comes from the first operand or
        from neither, never from both.
        """

    def _pieces(self) -> tuple[Piece, ...]:
        first, second = self._trimmed()
        taken = {piece.name for piece in first}
        names: dict[str, str] = {}
        for piece in second:
            if piece.is_named:
                names[piece.name] = piece.name
            elif piece.name not in names:
                names[piece.name] = _free_name(piece.name, taken)
                taken.add(names[piece.name])
        return (*first, *(replace(piece, name=names[piece.name]) for piece in second))

    def _measure(self) -> float:
        if self.dim > 2:
            return float(np.mean(self._inside(_MEASURE_POINTS)) * np.prod(self.upper - self.lower))
        # div(x - center) = dim, so the measure is the integral of (x - center)·n / dim over the boundary.
        nodes, weights = composite_gauss()
        center = 0.5 * (self.lower + self.upper)
        total = 0.0
        for piece in self.pieces:
            points, normals = piece.chart(np.tile(nodes[:, None], (1, piece.dim)))
            total += piece.measure * float(weights @ np.sum((points - center) * normals, axis=1))
        return total / self.dim

    def _inside(self, n: int) -> Mask:
        u = unit_points(n, self.dim, "sobol", np.random.default_rng(0))
        return self.contains(between(self.lower, self.upper, u))

    def _cut(self, pieces: tuple[Piece, ...], other: Domain, keep: Callable[[Mask, Mask], Mask]) -> list[Piece]:
        """The parts of the pieces where `keep(inner, outer)` holds; inner and outer tell whether `other` contains the
        points just inside and just outside."""
        probe = _PROBE * self.size
        farthest = max(np.abs(self.lower).max(), np.abs(self.upper).max())
        tolerance = float(_COINCIDENT * self.size + 8 * np.spacing(farthest))

        def keep_at(points: Points, normals: Normals) -> Mask:
            level = other.level(points)
            inner, outer = level > 0, level > 0
            # Both sides are probed only where the boundaries coincide. Near a point where they touch tangentially, a
            # probe would cross the other boundary: within 1e-4 of the point where a disk touches its bounding square.
            near = np.abs(level) <= tolerance
            inner[near] = other.contains(points[near] - probe * normals[near])
            outer[near] = other.contains(points[near] + probe * normals[near])
            return keep(inner, outer)

        return [kept for piece in pieces for kept in trim(piece, keep_at, other.level, tolerance)]

    def __repr__(self) -> str:
        return f"({self.first!r} {self.symbol} {self.second!r})"


class Union(_Combination):
    """The union a | b: the points of either domain, and the face that they share where they touch."""

    symbol = "|"

    def _bounds(self) -> tuple[Vector, Vector]:
        return np.minimum(self.first.lower, self.second.lower), np.maximum(self.first.upper, self.second.upper)

    def _level(self, x: Points) -> Vector:
        return np.maximum(self.first.level(x), self.second.level(x))

    def _trimmed(self) -> tuple[list[Piece], list[Piece]]:
        return (
            self._cut(self.first.pieces, self.second, lambda inner, outer: ~outer),
            self._cut(self.second.pieces, self.first, lambda inner, outer: ~inner & ~outer),
        )


class Intersection(_Combination):
    """The intersection a & b: the points of both domains."""

    symbol = "&"

    def _bounds(self) -> tuple[Vector, Vector]:
        return np.maximum(self.first.lower, self.second.lower), np.minimum(self.first.upper, self.second.upper)

    def _level(self, x: Points) -> Vector:
        return np.minimum(self.first.level(x), self.second.level(x))

    def _trimmed(self) -> tuple[list[Piece], list[Piece]]:
        return (
            self._cut(self.first.pieces, self.second, lambda inner, outer: inner),
            self._cut(self.second.pieces, self.first, lambda inner, outer: inner & outer),
        )


class Difference(_Combination):
    """The difference a - b: the points of a that are not in b. Its bounding box is that of a."""

    symbol = "-"

    def _bounds(self) -> tuple[Vector, Vector]:
        return self.first.lower.copy(), self.first.upper.copy()

    def _level(self, x: Points) -> Vector:
        return np.minimum(self.first.level(x), -self.second.level(x))

    def _trimmed(self) -> tuple[list[Piece], list[Piece]]:
        reversed_pieces = tuple(flipped(piece) for piece in self.second.pieces)
        return (
            self._cut(self.first.pieces, self.second, lambda inner, outer: ~inner),
            self._cut(reversed_pieces, self.first, lambda inner, outer: inner & outer),
        )


def flipped(piece: Piece) -> Piece:
    """The piece with its normals reversed."""

    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        points, normals = piece.chart(u)
        return points, -normals

    keep = piece.keep
    return replace(piece, chart=chart, keep=None if keep is None else lambda points, normals: keep(points, -normals))


def _free_name(name: str, taken: set[str]) -> str:
    """The name, with a number behind it if it is taken."""
    if name not in taken:
        return name
    root = name.partition("#")[0]
    number = 2
    while f"{root}#{number}" in taken:
        number += 1
    return f"{root}#{number}"
