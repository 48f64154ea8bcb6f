"""Disks, balls, annuli and shells: the inside of a sphere, or the space between two concentric spheres."""

import math
from typing import Any

import numpy as np

from pdofm._types import Normals, Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Chart, Piece
from pdofm.domain.vectors import Numbers, finite_number, finite_vector, show
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints


class _Round(Domain):
    """The points with inner < |x - center| < outer; if inner is 0, those with |x - center| < outer."""

    center: Vector
    inner: float
    outer: float
    _outer_name = "outer"

    def __init__(self, center: Numbers, inner: float | int, outer: float | int, dim: int | None = None):
        kind = type(self).__name__
        self.center = finite_vector(center, f"center of {kind}", dim)
        if self.center.size < 2:
            raise DomainError(
                f"The center of {kind} has 1 coordinate; expected 2 or more. In one dimension use Interval."
            )
        self.inner, self.outer = float(inner), float(outer)
        self.lower = finite_vector(self.center - self.outer, f"bounding box of {kind}")
        self.upper = finite_vector(self.center + self.outer, f"bounding box of {kind}")

    @property
    def vanishing(self) -> tuple[str, tuple[Vector, ...]]:
        return "shell" if self.inner > 0 else "ball", (self.center, np.array([self.inner, self.outer]))

    @property
    def arguments(self) -> dict[str, Any] | None:
        radii = {"inner": self.inner, "outer": self.outer} if self.inner > 0 else {"radius": self.outer}
        return {"center": self.center.tolist(), **radii}

    def _measure(self) -> float:
        unit_ball = math.pi ** (self.dim / 2) / math.gamma(self.dim / 2 + 1)
        return unit_ball * (self.outer**self.dim - self.inner**self.dim)

    def _pieces(self) -> tuple[Piece, ...]:
        outer = self._sphere(self._outer_name, self.outer, 1.0)
        return (self._sphere("inner", self.inner, -1.0), outer) if self.inner > 0 else (outer,)

    def _sphere(self, name: str, radius: float | int, sign: float) -> Piece:
        unit_sphere = 2 * math.pi ** (self.dim / 2) / math.gamma(self.dim / 2)
        ends = (False,) * (self.dim - 1)
        return Piece(name, unit_sphere * radius ** (self.dim - 1), ends, _sphere_chart(self.center, radius, sign))

    def _level(self, x: Points) -> Vector:
        distance = np.linalg.norm(x - self.center, axis=1)
        return np.minimum(self.outer - distance, distance - self.inner) if self.inner > 0 else self.outer - distance

    def candidates(self, u: UnitPoints) -> Points:
        if self.dim <= 3:
            return super().candidates(u)
        # In many dimensions a ball fills little of its bounding box (2.5e-8 of it in 20): map the cube onto the ball.
        powers = self.inner**self.dim + (self.outer**self.dim - self.inner**self.dim) * u[:, :1]
        return self.center + powers ** (1 / self.dim) * _directions(u[:, 1:])


class Disk(_Round):
    """The disk |x - center| < radius in the plane; its boundary is named "circle"."""

    _outer_name = "circle"

    def __init__(self, center: Numbers = (0.0, 0.0), radius: float | int = 1.0):
        super().__init__(center, 0.0, _positive(radius, "radius of Disk"), dim=2)

    def __repr__(self) -> str:
        return f"Disk({show(self.center)}, {self.outer:.6g})"


class Ball(_Round):
    """The ball |x - center| < radius in two or more dimensions; its boundary is named "sphere"."""

    _outer_name = "sphere"

    def __init__(self, center: Numbers = (0.0, 0.0, 0.0), radius: float | int = 1.0):
        super().__init__(center, 0.0, _positive(radius, "radius of Ball"))

    def __repr__(self) -> str:
        return f"Ball({show(self.center)}, {self.outer:.6g})"


class Annulus(_Round):
    """The annulus inner < |x - center| < outer in the plane; its circles are named "inner" and "outer"."""

    def __init__(self, center: Numbers = (0.0, 0.0), inner: float | int = 0.5, outer: float | int = 1.0):
        super().__init__(center, *_radii(inner, outer, "Annulus"), dim=2)

    def __repr__(self) -> str:
        return f"Annulus({show(self.center)}, {self.inner:.6g}, {self.outer:.6g})"


class Shell(_Round):
    """The shell inner < |x - center| < outer in two or more dimensions; its spheres are named "inner" and "outer"."""

    def __init__(self, center: Numbers = (0.0, 0.0, 0.0), inner: float | int = 0.5, outer: float | int = 1.0):
        super().__init__(center, *_radii(inner, outer, "Shell"))

    def __repr__(self) -> str:
        return f"Shell({show(self.center)}, {self.inner:.6g}, {self.outer:.6g})"


def _positive(value: float | int, what: str) -> float:
    radius = finite_number(value, what)
    if radius <= 0:
        raise DomainError(f"The {what} is {value!r}; expected a positive number.")
    return radius


def _radii(inner: float | int, outer: float | int, kind: str) -> tuple[float, float]:
    radii = _positive(inner, f"inner radius of {kind}"), _positive(outer, f"outer radius of {kind}")
    if radii[0] >= radii[1]:
        raise DomainError(f"The radii of {kind} are inner={inner!r}, outer={outer!r}; expected inner < outer.")
    return radii


def _sphere_chart(center: Vector, radius: float | int, sign: float) -> Chart:
    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        directions = _directions(u)
        return center + radius * directions, sign * directions

    return chart


def _directions(u: UnitPoints) -> Points:
    """Map parameters `(n, d - 1)` to the unit sphere `(n, d)`, preserving area; the map is periodic if d = 2.

    A coordinate z of a point that is uniform on the sphere in R^d has the density (1 - z^2)^((d-3)/2), so (1 + z) / 2
    has the distribution Beta(a, a) with a = (d - 1) / 2, which is uniform for d = 3. The other coordinates lie on a
    sphere of radius sqrt(1 - z^2).
    """
    angle = 2 * np.pi * u[:, -1]
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for axis in range(u.shape[1] - 2, -1, -1):
        half = (u.shape[1] - axis) / 2
        height = u[:, axis]
        if half != 1:
            from scipy.special import betaincinv

            height = betaincinv(half, half, height)
        radius = 2 * np.sqrt(height * (1 - height))
        direction = np.concatenate([radius[:, None] * direction, (2 * height - 1)[:, None]], axis=1)
    return direction / np.linalg.norm(direction, axis=1, keepdims=True)
