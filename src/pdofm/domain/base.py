"""The interface of all domains."""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pdofm._types import Mask, Points, Vector
from pdofm.deprecation import renamed
from pdofm.domain.boundary import Part, Piece
from pdofm.domain.vectors import Numbers, between
from pdofm.errors import DomainError, unknown_name
from pdofm.numerics.numbers import as_numbers
from pdofm.numerics.sampling import UnitPoints, cluster, draw, generator
from pdofm.shown import Shown

if TYPE_CHECKING:
    from pdofm.domain.regions import Regions

MARGIN = 1e-12
"""The least distance of interior points from the boundary, in sizes of the domain: just above rounding errors."""

_CLUSTER_DEPTH = 0.01
"""The depth at which the density of clustered points stops growing towards the boundary, in halves of the size of the
domain. It applies to domains that are not boxes: the smaller it is, the more candidates are rejected elsewhere."""


def rebuilt(kind: "type[Domain]", arguments: dict[str, Any], names: Mapping[str, str]) -> "Domain":
    """A domain from the arguments of its constructor, and the names that were given to its parts."""
    return kind(**arguments).with_names(names)


class Domain(Shown, ABC):
    """A bounded open set of R^dim whose boundary consists of smooth pieces. Immutable; compared by identity.

    `lower` and `upper` `(dim,)` are the corners of the bounding box.

    A subclass sets `lower` and `upper` and defines `_measure`, `_pieces` and `_level`.
    """

    lower: Vector
    upper: Vector
    has_time: bool = False
    """Whether the last coordinate is time."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__ or hasattr(type(self), name):
            raise AttributeError(f"{self!r} is immutable: cannot set {name!r}. Build a new domain instead.")
        super().__setattr__(name, value)

    @abstractmethod
    def _measure(self) -> float:
        """What `measure` returns; called once."""

    @abstractmethod
    def _pieces(self) -> tuple[Piece, ...]:
        """What `pieces` returns; called once."""

    @abstractmethod
    def _level(self, x: Points) -> Vector:
        """What `level` returns, for points that have been checked."""

    @cached_property
    def measure(self) -> float:
        """The length, area or volume of the domain."""
        return self._measure()

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The smooth pieces of the boundary."""
        given = self.given_names
        pieces = self._pieces()
        return tuple(
            replace(piece, name=given[piece.name], is_named=True) if piece.name in given else piece for piece in pieces
        )

    @property
    def given_names(self) -> dict[str, str]:
        """The names that `named` gave to parts, by the names that they had before."""
        return self.__dict__.get("_given_names", {})

    def named(self, name: str | Mapping[str, str]) -> "Domain":
        """The same domain with other names of its parts: one name for all of them, or a dictionary of new names.

        Combinations keep given names as they are, so that parts of several domains can share one:
        ``plate - Disk([0, 0], 1).named("holes") - Disk([3, 0], 1).named("holes")`` has a part "holes" of two circles.
        """
        known = self.boundary.names
        if not isinstance(name, str | Mapping):
            raise DomainError(f"named() takes one name, or a dictionary of new names of {list(known)}; got {name!r}.")
        names = dict.fromkeys(known, name) if isinstance(name, str) else dict(name)
        for old, new in names.items():
            if old not in known:
                raise unknown_name("part", old, known)
            if not isinstance(new, str) or not new:
                raise DomainError(f"The name of the part {old!r} is {new!r}; expected a word.")
        before = self.given_names
        original = {piece.name: before.get(piece.name, piece.name) for piece in self._pieces()}
        return self.with_names(
            {old: names.get(now, now) for old, now in original.items() if now in names or old in before}
        )

    def with_names(self, given: Mapping[str, str]) -> "Domain":
        """A copy whose parts have given names."""
        if not given:
            return self
        copied = object.__new__(type(self))
        fields = {name: value for name, value in self.__dict__.items() if name not in ("pieces", "_given_names")}
        for name, value in (fields | {"_given_names": dict(given)}).items():
            object.__setattr__(copied, name, value)
        return copied

    @property
    def is_box(self) -> bool:
        """Whether the domain fills its bounding box."""
        return False

    @property
    def materials(self) -> "Regions | None":
        """The regions that the domain consists of, each with equations of its own; None for most domains."""
        return None

    @cached_property
    def dim(self) -> int:
        """The number of coordinates of a point, time included."""
        return len(self.lower)

    @cached_property
    def size(self) -> float:
        """The longest side of the bounding box."""
        return float(np.max(self.upper - self.lower))

    def level(self, x: Numbers) -> Vector:
        """Signed distance to the boundary at points `(n, dim)`: positive inside, negative outside, and 0 on the
        boundary up to rounding.

        For combinations it is the minimum or maximum of signed distances: its sign is right, except that it is also 0
        on a face that two united domains share, and its absolute value is at most the distance.
        """
        return self._level(self.checked(x))

    def checked(self, x: Numbers) -> Points:
        """Points as an array, if they have shape `(n, dim)`."""
        points = as_numbers(x, "Points", DomainError)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise DomainError(
                f"Points of shape {points.shape} given to {self!r}; expected (n, {self.dim}), one point per row."
            )
        return points

    def contains(self, x: Numbers, tol: float | int = 0.0) -> Mask:
        """Whether points `(n, dim)` lie inside, `level > -tol`: strictly if tol = 0, boundary included if tol > 0."""
        return self.level(x) > -tol

    @property
    def boundary(self) -> Part:
        """The whole boundary; that of a space-time is the lateral one, without the first and the last time."""
        return Part(self.pieces, self.has_time)

    def part(self, *names: str) -> Part:
        """The part of the boundary that consists of the pieces with these names."""
        known = self.boundary.names
        if not names:
            raise DomainError(f"part() was given no name; expected at least one of {', '.join(known)}.")
        for name in names:
            if name not in known:
                raise unknown_name("part", name, known)
        return Part(tuple(piece for piece in self.pieces if piece.name in names), self.has_time)

    @property
    def vanishing(self) -> tuple[str, tuple[Vector, ...]]:
        """The data of a smooth function that vanishes on the boundary and nowhere else: ("box", (lower, upper)), or
        ("ball" or "shell", (center, radii)). Other domains raise a DomainError."""
        raise DomainError(
            f"{self!r} has no simple function that vanishes on its boundary; expected an interval, a box, a disk, a "
            "ball, an annulus or a shell. State the condition with Dirichlet instead."
        )

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments of the constructor, as numbers, nested lists and domains, from which files and copies restore
        the domain; None if it is not described by numbers alone."""
        return None

    def __reduce__(self) -> Any:
        if self.arguments is None:
            raise pickle.PicklingError(
                f"{self!r} is given by a function and cannot be pickled. Send what it is made of, and build it there."
            )
        return rebuilt, (type(self), self.arguments, self.given_names)

    def face(self, axis: int, side: int) -> Part:
        """The face `x[axis] = lower` (side 0) or `upper` (side 1) of a box, or what a combination has left of it."""
        if side not in (0, 1):
            raise DomainError(f"The side of a face is {side!r}; expected 0 (lower) or 1 (upper).")
        name = f"x{axis}={('lower', 'upper')[side]}"
        known = self.boundary.names
        if name not in known:
            raise DomainError(
                f"{self!r} has no face {name!r}; its parts are {', '.join(known)}. "
                "Use domain.part(name) or domain.boundary.where(predicate)."
            )
        return self.part(name)

    @renamed(kind="sampling")
    def sample(self, n: int, sampling: str = "sobol", key: Any = 0) -> Points:
        """n points strictly inside, shape `(n, dim)`, by rejection from the bounding box; at least n for a grid.

        `sampling` is one of "grid", "random", "sobol" and "clustered". The density of the last one is the product of
        Chebyshev densities on a box; on other domains it grows like 1 / sqrt(distance to the boundary), up to a bound.
        """
        rng = generator(key)
        return draw(n, self.dim, sampling, rng, lambda u: (self.place(u, sampling, rng),), repr(self))[0]

    def place(self, u: UnitPoints, sampling: str, rng: np.random.Generator) -> Points:
        """The images of unit points `(n, dim)`, without those that are rejected."""
        clustered = sampling == "clustered"
        points = self.candidates(cluster(u) if clustered and self.is_box else u)
        level = self.level(points)
        inside = level > MARGIN * self.size
        if clustered and not self.is_box:
            depth = np.maximum(level / (0.5 * self.size), _CLUSTER_DEPTH)
            inside &= rng.random(len(points)) < np.sqrt(_CLUSTER_DEPTH / depth)
        return points[inside]

    def candidates(self, u: UnitPoints) -> Points:
        """The images of unit points under a map of constant density whose image covers the domain."""
        return between(self.lower, self.upper, u)

    def plot(self, path: Any = None, **options: Any) -> Any:
        """A figure of the domain with the names of its parts, normals and points, saved to `path` if given."""
        from pdofm.output.domains import plot_domain

        return plot_domain(self, path, **options)

    def translated(self, by: Numbers) -> "Domain":
        """The domain moved by a vector."""
        from pdofm.domain.moved import translated

        return translated(self, by)

    def rotated(self, angle: float | int, *, about: Numbers | None = None, axis: Numbers | None = None) -> "Domain":
        """The domain turned by an angle in radians, counterclockwise, around the point `about` (by default the origin);
        in three dimensions around a line through it in the direction `axis` (by default the third axis)."""
        from pdofm.domain.moved import rotated

        return rotated(self, angle, about, axis)

    def scaled(self, factor: float | int, *, about: Numbers | None = None) -> "Domain":
        """The domain enlarged by a factor; the point `about` (by default the origin) stays where it is."""
        from pdofm.domain.moved import scaled

        return scaled(self, factor, about)

    def __sub__(self, other: "Domain") -> "Domain":
        from pdofm.domain.csg import Difference

        return Difference(self, other) if isinstance(other, Domain) else NotImplemented

    def __or__(self, other: "Domain") -> "Domain":
        from pdofm.domain.csg import Union

        return Union(self, other) if isinstance(other, Domain) else NotImplemented

    def __and__(self, other: "Domain") -> "Domain":
        from pdofm.domain.csg import Intersection

        return Intersection(self, other) if isinstance(other, Domain) else NotImplemented
