"""Space-time cylinders: a domain in space times an interval of time."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from pdofm._types import Normals, Points, Vector
from pdofm.domain.base import MARGIN, Domain
from pdofm.domain.boundary import Chart, Keep, Part, Piece
from pdofm.domain.regions import Regions
from pdofm.domain.vectors import Numbers, between, finite_number, finite_vector
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints


class SpaceTime(Domain):
    """The product of `space` and an interval of time: (t0, t1) if `T` is a pair, (0, T) if it is a positive number.

    Time is the last coordinate. The boundary is the lateral one, `space.boundary` x (t0, t1), and its pieces have the
    names that they have in space; the space at one time is `at(t)`.
    """

    has_time = True

    def __init__(self, space: Domain, T: Numbers):
        if not isinstance(space, Domain):
            raise DomainError(f"The space is {space!r}; expected a domain such as Interval(0, 1).")
        if space.has_time:
            raise DomainError(f"The space {space!r} already includes time; expected a domain in space only.")
        times = finite_vector([0.0, T] if np.ndim(T) == 0 else T, "time of SpaceTime", dim=2)
        if not times[0] < times[1]:
            raise DomainError(f"The time of SpaceTime is {T!r}; expected a positive number or a pair t0 < t1.")
        self.space = space
        self.t0, self.t1 = float(times[0]), float(times[1])
        self.lower = finite_vector(np.append(space.lower, self.t0), "lower corner")
        self.upper = finite_vector(np.append(space.upper, self.t1), "upper corner")

    @property
    def is_box(self) -> bool:
        return self.space.is_box

    @property
    def vanishing(self) -> tuple[str, tuple[Vector, ...]]:
        return self.space.vanishing

    @cached_property
    def materials(self) -> Regions | None:  # type: ignore[override]
        return None if self.space.materials is None else RegionsInTime(self, self.space.materials)

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"space": self.space, "T": [self.t0, self.t1]}

    def _measure(self) -> float:
        return self.space.measure * (self.t1 - self.t0)

    def _pieces(self) -> tuple[Piece, ...]:
        return tuple(self.lateral(piece) for piece in self.space.pieces)

    def at(self, t: float | int) -> Part:
        """The whole space at time t. Its normal points backwards in time at t0, and forwards at any other time."""
        time = finite_number(t, "time")
        if not self.t0 <= time <= self.t1:
            raise DomainError(f"The time is {t!r}; expected a number between t0={self.t0:.6g} and t1={self.t1:.6g}.")
        if self.materials is not None:
            each = (region.at(time) for region in self.materials.by_name.values() if isinstance(region, SpaceTime))
            return Part(tuple(piece for part in each for piece in part.pieces), has_time=True)
        name, measure, ends = f"t={time:.6g}", self.space.measure, (True,) * self.space.dim
        if self.space.is_box:
            piece = Piece(name, measure, ends, _slice_chart(self, time))
        else:
            piece = Slice(
                name, measure, ends, _slice_chart(self, time), _in_space(_inside(self.space)), space=self.space
            )
        return Part((piece,), has_time=True)

    @property
    def initial(self) -> Part:
        """The space at the initial time t0."""
        return self.at(self.t0)

    def candidates(self, u: UnitPoints) -> Points:
        time = between(self.t0, self.t1, u[:, -1:])
        return np.concatenate([self.space.candidates(u[:, :-1]), time], axis=1)

    def _level(self, x: Points) -> Vector:
        time = x[:, -1]
        return np.minimum(self.space.level(x[:, :-1]), np.minimum(time - self.t0, self.t1 - time))

    def lateral(self, piece: Piece) -> Piece:
        """A piece of the boundary of the space during the whole time."""

        def chart(u: UnitPoints) -> tuple[Points, Normals]:
            points, normals = piece.chart(u[:, :-1])
            time = between(self.t0, self.t1, u[:, -1:])
            return np.concatenate([points, time], axis=1), np.concatenate([normals, np.zeros_like(time)], axis=1)

        measure = piece.measure * (self.t1 - self.t0)
        return Piece(piece.name, measure, (*piece.ends, True), chart, _in_space(piece.keep), piece.is_named)

    def __repr__(self) -> str:
        return f"SpaceTime({self.space!r}, ({self.t0:.6g}, {self.t1:.6g}))"


class RegionsInTime(Regions):
    """The regions of a space during an interval of time."""

    has_time = True

    def __init__(self, domain: SpaceTime, space: Regions):
        times = (domain.t0, domain.t1)
        self.by_name = MappingProxyType({name: SpaceTime(each, times) for name, each in space.by_name.items()})
        self.lower, self.upper, self._domain, self._space = domain.lower, domain.upper, domain, space

    @property
    def whole(self) -> Domain:
        return self._domain

    def _pieces(self) -> tuple[Piece, ...]:
        return self._domain.pieces

    @cached_property
    def interfaces(self) -> Mapping[tuple[str, str], Part]:
        return MappingProxyType(
            {
                pair: Part(tuple(self._domain.lateral(piece) for piece in part.pieces), has_time=True)
                for pair, part in self._space.interfaces.items()
            }
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Piece):
    """The space at one time, for a space that is not a box: its points cluster like those of the space."""

    space: Domain

    def place(self, u: UnitPoints, sampling: str, rng: np.random.Generator) -> tuple[Points, Normals]:
        inside = self.space.place(u, sampling, rng)
        points, normals = self.chart(np.full_like(inside, 0.5))
        points[:, :-1] = inside
        return self.filtered(points, normals)


def _slice_chart(domain: SpaceTime, time: float) -> Chart:
    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        column = np.full((len(u), 1), time)
        normals = np.zeros((len(u), domain.dim))
        normals[:, -1] = -1.0 if time == domain.t0 else 1.0
        return np.concatenate([domain.space.candidates(u), column], axis=1), normals

    return chart


def _inside(space: Domain) -> Keep:
    return lambda points, normals: space.level(points) > MARGIN * space.size


def _in_space(keep: Keep | None) -> Keep | None:
    return None if keep is None else lambda points, normals: keep(points[:, :-1], normals[:, :-1])
