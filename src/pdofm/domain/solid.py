"""Solids made of plane domains: extrusions, bodies of revolution, cylinders, cones and tori."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.domain.ball import Disk
from pdofm.domain.base import MARGIN, Domain
from pdofm.domain.boundary import Chart, Piece
from pdofm.domain.box import Box
from pdofm.domain.moved import Moved, frame, positive
from pdofm.domain.polygon import Polygon
from pdofm.domain.spacetime import Slice
from pdofm.domain.trim import trim
from pdofm.domain.vectors import Numbers, between, finite_number, finite_vector, show
from pdofm.errors import DomainError
from pdofm.numerics.quantiles import Quantiles, composite_gauss
from pdofm.numerics.sampling import UnitPoints, unit_points

_SYMMETRY_POINTS = 256
"""Points at which a profile is compared with its mirror image."""

_ON_AXIS = 1e-9
"""A profile closer to the axis than this, in sizes of the profile, touches it."""


class Extrusion(Domain):
    """The solid between two copies of a plane domain, at the heights 0 and `height`, or at z0 and z1 if that is a pair.

    The sides have the names of the edges of the plane domain; the flat ends are named "bottom" and "top".
    """

    def __init__(self, plane: Domain, height: Numbers):
        _check_plane(plane, "Extrusion")
        heights = finite_vector(np.append(0.0, height) if np.ndim(height) == 0 else height, "height of Extrusion", 2)
        if not heights[0] < heights[1]:
            raise DomainError(f"The height of Extrusion is {height!r}; expected a positive number or a pair z0 < z1.")
        self.plane = plane
        self.z0, self.z1 = heights.tolist()
        self.lower = finite_vector(np.append(plane.lower, self.z0), "lower corner")
        self.upper = finite_vector(np.append(plane.upper, self.z1), "upper corner")

    @property
    def arguments(self) -> dict[str, Any] | None:
        return None if self.plane.arguments is None else {"plane": self.plane, "height": [self.z0, self.z1]}

    def _measure(self) -> float:
        return self.plane.measure * (self.z1 - self.z0)

    def _pieces(self) -> tuple[Piece, ...]:
        return (*(self._side(piece) for piece in self.plane.pieces), self._end("bottom"), self._end("top"))

    def _side(self, piece: Piece) -> Piece:
        def chart(u: UnitPoints) -> tuple[Points, Normals]:
            points, normals = piece.chart(u[:, :1])
            height = between(self.z0, self.z1, u[:, 1:])
            return np.concatenate([points, height], axis=1), np.concatenate([normals, np.zeros_like(height)], axis=1)

        measure = piece.measure * (self.z1 - self.z0)
        return Piece(piece.name, measure, (*piece.ends, True), chart, is_named=piece.is_named)

    def _end(self, name: str) -> Piece:
        height, sign = (self.z0, -1.0) if name == "bottom" else (self.z1, 1.0)

        def chart(u: UnitPoints) -> tuple[Points, Normals]:
            normals = np.zeros((len(u), 3))
            normals[:, 2] = sign
            return np.concatenate([self.plane.candidates(u), np.full((len(u), 1), height)], axis=1), normals

        if self.plane.is_box:
            return Piece(name, self.plane.measure, (True, True), chart)

        def keep(points: Points, normals: Normals) -> Mask:
            return self.plane.level(points[:, :2]) > MARGIN * self.plane.size

        return Slice(name, self.plane.measure, (True, True), chart, keep, space=self.plane)

    def _level(self, x: Points) -> Vector:
        side, end = self.plane.level(x[:, :2]), np.minimum(x[:, 2] - self.z0, self.z1 - x[:, 2])
        return np.where((side < 0) & (end < 0), -np.hypot(side, end), np.minimum(side, end))

    def __repr__(self) -> str:
        return f"Extrusion({self.plane!r}, ({self.z0:.6g}, {self.z1:.6g}))"


class Revolution(Domain):
    """The solid that a plane domain, the profile, sweeps when it turns around the third axis. The coordinates of the
    profile are the distance from the axis and the height.

    A profile that contains or touches the axis is given with its mirror image: `Disk()` becomes a ball. (Of a `Box`
    that touches the axis the half to the right is enough.) Parts have the names of the pieces of the profile.
    """

    def __init__(self, profile: Domain, names: Mapping[str, str] | None = None):
        _check_plane(profile, "Revolution")
        self.profile = _symmetric(profile)
        self._renamed = dict(names or {})
        radius = float(self.profile.upper[0])
        self.lower = finite_vector([-radius, -radius, self.profile.lower[1]], "lower corner")
        self.upper = finite_vector([radius, radius, self.profile.upper[1]], "upper corner")

    @property
    def arguments(self) -> dict[str, Any] | None:
        return None if self.profile.arguments is None or self._renamed else {"profile": self.profile}

    def _half(self) -> list[Piece]:
        """The pieces of the profile to the right of the axis."""
        if self.profile.lower[0] > 0:
            return list(self.profile.pieces)
        tolerance = 1e-14 * self.profile.size
        return [
            kept
            for piece in self.profile.pieces
            for kept in trim(piece, lambda p, n: p[:, 0] > 0, lambda p: p[:, 0], tolerance)
        ]

    def _measure(self) -> float:
        # Green: the integral of ρ over the half profile is that of ρ² nρ / 2 along its boundary, 0 on the axis.
        nodes, weights = composite_gauss()
        total = 0.0
        for piece in self._half():
            points, normals = piece.chart(nodes[:, None])
            total += piece.measure * float(weights @ (points[:, 0] ** 2 * normals[:, 0]))
        return float(np.pi * total)

    def _pieces(self) -> tuple[Piece, ...]:
        return tuple(self._swept(piece) for piece in self._half())

    def _swept(self, piece: Piece) -> Piece:
        def distance(t: Vector) -> Vector:
            return np.maximum(piece.chart(t[:, None])[0][:, 0], 0.0)

        quantiles = Quantiles(distance, f"The part {piece.name!r} of the profile")
        on_axis = distance(np.array([0.0, 1.0])) <= _ON_AXIS * self.profile.size
        ends = piece.ends[0] and not on_axis.all()  # a pole is no end of a surface
        name = self._renamed.get(piece.name, piece.name)
        measure = 2 * np.pi * piece.measure * quantiles.total
        chart = _swept_chart(piece, quantiles)
        return Piece(name, float(measure), (bool(ends), False), chart, is_named=piece.is_named)

    def _level(self, x: Points) -> Vector:
        return self.profile.level(np.stack([np.hypot(x[:, 0], x[:, 1]), x[:, 2]], axis=1))

    def __repr__(self) -> str:
        return f"Revolution({self.profile!r})"


class Cylinder(Moved):
    """The cylinder of a radius around the segment from `start` to `end`, with flat ends. Its parts are named "start",
    "side" and "end"."""

    def __init__(self, start: Numbers = (0, 0, 0), end: Numbers = (0, 0, 1), radius: float | int = 1.0):
        self.start, self.end = _segment(start, end, "Cylinder")
        self.radius = positive(radius, "radius of Cylinder")
        length = float(np.linalg.norm(self.end - self.start))
        profile = Box([-self.radius, 0.0], [self.radius, length])
        names = {"x0=upper": "side", "x1=lower": "start", "x1=upper": "end"}
        super().__init__(Revolution(profile, names), frame(self.end - self.start), 1.0, self.start)

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"start": self.start.tolist(), "end": self.end.tolist(), "radius": self.radius}

    def __repr__(self) -> str:
        return f"Cylinder({show(self.start)}, {show(self.end)}, {self.radius:.6g})"


class Cone(Moved):
    """The cone whose radius is `radius` at `start` and shrinks to `end_radius` at `end`, 0 by default. Its parts are
    named "start", "side" and, if it is truncated, "end"."""

    def __init__(
        self,
        start: Numbers = (0, 0, 0),
        end: Numbers = (0, 0, 1),
        radius: float | int = 1.0,
        end_radius: float | int = 0.0,
    ):
        self.start, self.end = _segment(start, end, "Cone")
        self.radius = positive(radius, "radius of Cone")
        self.end_radius = finite_number(end_radius, "end radius of Cone")
        if self.end_radius < 0:
            raise DomainError(f"The end radius of Cone is {end_radius!r}; expected 0 or a positive number.")
        length, r, q = float(np.linalg.norm(self.end - self.start)), self.radius, self.end_radius
        top = [[q, length], [-q, length]] if q > 0 else [[0.0, length]]
        profile = Polygon([[-r, 0.0], [r, 0.0], *top])
        names = {"edge0": "start", "edge1": "side", "edge2": "end"}
        super().__init__(Revolution(profile, names), frame(self.end - self.start), 1.0, self.start)

    @property
    def arguments(self) -> dict[str, Any] | None:
        ends = {"start": self.start.tolist(), "end": self.end.tolist()}
        return {**ends, "radius": self.radius, "end_radius": self.end_radius}

    def __repr__(self) -> str:
        return f"Cone({show(self.start)}, {show(self.end)}, {self.radius:.6g}, {self.end_radius:.6g})"


class Torus(Moved):
    """The points closer than `tube` to the circle of a radius around a center, in the plane orthogonal to `axis`. Its
    boundary is named "surface"."""

    def __init__(
        self,
        center: Numbers = (0, 0, 0),
        radius: float | int = 1.0,
        tube: float | int = 0.5,
        axis: Numbers = (0, 0, 1),
    ):
        self.center = finite_vector(center, "center of Torus", 3)
        self.radius, self.tube = positive(radius, "radius of Torus"), positive(tube, "tube of Torus")
        if self.tube >= self.radius:
            raise DomainError(f"The radii of Torus are radius={radius!r}, tube={tube!r}; expected tube < radius.")
        self.axis = finite_vector(axis, "axis of Torus", 3)
        inner = Revolution(Disk([self.radius, 0.0], self.tube), {"circle": "surface"})
        super().__init__(inner, frame(self.axis), 1.0, self.center)

    @property
    def arguments(self) -> dict[str, Any] | None:
        radii = {"radius": self.radius, "tube": self.tube}
        return {"center": self.center.tolist(), **radii, "axis": self.axis.tolist()}

    def __repr__(self) -> str:
        return f"Torus({show(self.center)}, {self.radius:.6g}, {self.tube:.6g}, axis={show(self.axis)})"


def _swept_chart(piece: Piece, quantiles: Quantiles) -> Chart:
    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        points, normals = piece.chart(quantiles(u[:, 0])[:, None])
        cos, sin = np.cos(2 * np.pi * u[:, 1]), np.sin(2 * np.pi * u[:, 1])
        found = [
            np.stack([each[:, 0] * cos, each[:, 0] * sin, each[:, 1]], axis=1)
            for each in (np.maximum(points, [0.0, -np.inf]), normals)
        ]
        return found[0], found[1] / np.linalg.norm(found[1], axis=1, keepdims=True)

    return chart


def _symmetric(profile: Domain) -> Domain:
    """A profile off the axis as it is; one that contains the axis if it is symmetric; both halves of a box that touches
    the axis."""
    touches = _ON_AXIS * profile.size
    if profile.lower[0] > touches:
        return profile
    if profile.lower[0] >= -touches:
        if type(profile) is Box:
            return Box([-profile.upper[0], profile.lower[1]], profile.upper)
        raise DomainError(
            f"The profile {profile!r} touches the axis; expected it together with its mirror image, so that the axis "
            "lies inside."
        )
    u = unit_points(_SYMMETRY_POINTS, 2, "sobol", np.random.default_rng(0))
    points = between(profile.lower, profile.upper, u)
    if np.abs(profile.level(points) - profile.level(points * [-1, 1])).max() > touches:
        raise DomainError(
            f"The profile {profile!r} crosses the axis but is not symmetric; expected a profile to the right of the "
            "axis, or one together with its mirror image."
        )
    return profile


def _check_plane(domain: Domain, what: str) -> None:
    if not isinstance(domain, Domain) or domain.dim != 2 or domain.has_time:
        raise DomainError(f"{what} was given {domain!r}; expected a domain in the plane, such as a Polygon.")


def _segment(start: Numbers, end: Numbers, what: str) -> tuple[Vector, Vector]:
    first, last = finite_vector(start, f"start of {what}", 3), finite_vector(end, f"end of {what}", 3)
    if (first == last).all():
        raise DomainError(f"{what} starts and ends at {show(first)}; expected two different points.")
    return first, last
