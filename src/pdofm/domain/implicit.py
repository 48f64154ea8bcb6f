"""Domains where a function is negative."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Piece
from pdofm.domain.curve import Smooth
from pdofm.domain.level import LevelFunction
from pdofm.domain.loop import Loop
from pdofm.domain.tetrahedra import surface_of
from pdofm.domain.trace import loops_of
from pdofm.domain.vectors import Numbers, finite_vector, show
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints

_FOOT_STEPS = 6
"""Steps of the search for the nearest point of a surface: each lands on the surface exactly, and reduces the sideways
error by a factor of the distance over the radius of curvature."""


_SLACK = 1e-8
"""The bounding box of a solid is larger by this, in sizes of the solid: its extreme points are found to fewer digits
where the surface is flat."""


def Implicit(function: Callable[[Any], Any], lower: Numbers, upper: Numbers) -> Domain:
    """The domain in the box from `lower` to `upper` where a function is negative, in two or three dimensions.

    The function takes a point `(d,)`, returns a number, and is written with `jax.numpy`. It must be positive on the
    sides of the box, and smooth with a gradient other than 0 where it vanishes. Where a boundary has corners, combine
    several such domains by `a | b`, `a - b` and `a & b`. Details narrower than 1/256 of the box in the plane, and 1/40
    in space, are not seen.

    In the plane a curve that bounds a hole is named "hole" and any other "curve"; if there are several, larger ones
    come first and numbers follow ("hole0", "hole1", …). In space the boundary is named "surface".
    """
    low = finite_vector(lower, "lower corner of Implicit")
    high = finite_vector(upper, "upper corner of Implicit", dim=low.size)
    if low.size not in (2, 3) or not (low < high).all():
        raise DomainError(
            f"Implicit was given the box from {show(low)} to {show(high)}; expected lower < upper in 2 or 3 dimensions."
        )
    if not callable(function):
        raise DomainError(f"Implicit was given {type(function).__name__}; expected a function of a point.")
    found = LevelFunction(function, low, high)
    return ImplicitPlane(found) if low.size == 2 else ImplicitSolid(found)


class ImplicitPlane(Smooth):
    """A plane domain where a function is negative; `Implicit` makes it. `modes` are the Fourier coefficients of its
    curves, as in `Curve`."""

    def __init__(self, function: LevelFunction | None = None, *, modes: Any = None):
        if function is not None:
            self._set_loops(loops_of(function))
        else:
            series = [np.array(each, dtype=np.float64) @ np.array([1, 1j]) for each in modes]
            self._set_loops(tuple(Loop(each, "The boundary of Implicit") for each in series))

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"modes": [[[c.real, c.imag] for c in loop.modes.tolist()] for loop in self.loops]}

    def _names(self) -> tuple[str, ...]:
        kinds = ["hole" if hole else "curve" for hole in self.bounds_holes]
        numbers = [kinds[:index].count(kind) for index, kind in enumerate(kinds)]
        return tuple(
            kind if kinds.count(kind) == 1 else f"{kind}{number}" for kind, number in zip(kinds, numbers, strict=True)
        )

    def __repr__(self) -> str:
        return f"ImplicitPlane({len(self.loops)} curves, from {show(self.lower)} to {show(self.upper)})"


class ImplicitSolid(Domain):
    """A solid where a function is negative; `Implicit` makes it.

    Points of its boundary are exact up to rounding. Triangles only distribute them, with a density that is constant to
    about the square of their size over the radius of curvature; `measure` is as accurate.
    """

    def __init__(self, function: LevelFunction):
        self.function, self.surface = function, surface_of(function)
        lower, upper = self._bounds()
        self.lower, self.upper = finite_vector(lower, "lower corner"), finite_vector(upper, "upper corner")

    def _bounds(self) -> tuple[Vector, Vector]:
        """The box around the surface: from the extreme vertices, moved along the surface to where its normal points
        along the axis."""
        found = []
        for sign in (-1.0, 1.0):
            for axis in range(3):
                x = self.surface.vertices[[np.argmax(sign * self.surface.vertices[:, axis])]]
                target = np.array(x)
                target[0, axis] += sign * self.surface.size
                for _ in range(200):
                    x, before = self._nearer(x, target, 0.05), x
                    if np.abs(x - before).max() < 1e-16 * self.surface.size:
                        break
                most = sign * max(sign * x[0, axis], (sign * self.surface.vertices[:, axis]).max())
                found.append(most + sign * _SLACK * self.surface.size)
        return np.array(found[:3]), np.array(found[3:])

    @cached_property
    def _areas(self) -> Vector:
        """The areas of the curved triangles: those of the four parts of each, with corners on the surface."""
        a, b, c = np.moveaxis(self.surface.corners, 1, 0)
        ab, bc, ca = (self.function.projected((p + q) / 2) for p, q in ((a, b), (b, c), (c, a)))
        total = np.zeros(len(a))
        for p, q, r in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)):
            total += np.linalg.norm(np.cross(q - p, r - p), axis=1) / 2
        # Both errors are quadratic in the size of the triangles: a third of the difference is left (Richardson).
        return total + (total - self.surface.areas) / 3

    def _measure(self) -> float:
        """By the divergence theorem, at the middles of the curved triangles."""
        corners = self.surface.corners
        a, b, c = np.moveaxis(corners, 1, 0)
        total, center = 0.0, self.surface.corners.mean(axis=(0, 1))
        # The rule of degree 2 on a triangle: the middles of its sides.
        for p, q in ((a, b), (b, c), (c, a)):
            points = self.function.projected((p + q) / 2)
            total += float(np.sum(self._areas * np.sum((points - center) * self._normals(points), axis=1))) / 3
        return total / 3

    def _pieces(self) -> tuple[Piece, ...]:
        def chart(u: UnitPoints) -> tuple[Points, Normals]:
            points = self.function.projected(self.surface.chart(u, self._areas)[0])
            return points, self._normals(points)

        return (Piece("surface", float(self._areas.sum()), (False, False), chart),)

    def _normals(self, points: Points) -> Normals:
        gradients = self.function.with_gradients(points)[1]
        unit = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
        return unit / np.linalg.norm(unit, axis=1, keepdims=True)

    def contains(self, x: Numbers, tol: float | int = 0.0) -> Mask:
        if tol != 0:
            return super().contains(x, tol)
        points = self.checked(x)
        return (self.function.values(points) < 0) & self._in_box(points)

    def _in_box(self, x: Points) -> Mask:
        return np.all((x >= self.lower) & (x <= self.upper), axis=1)

    def _level(self, x: Points) -> Vector:
        radius, tree = self._vertices
        distance, nearest = tree.query(x)
        level = np.maximum(distance - radius, 0.0)
        close = np.flatnonzero(distance < 2 * radius)
        foot = self.surface.vertices[self._used][nearest[close]]
        for _ in range(_FOOT_STEPS):
            foot = self._nearer(foot, x[close], 1.0)
        level[close] = np.minimum(np.linalg.norm(x[close] - foot, axis=1), distance[close])
        inside = (self.function.values(x) < 0) & self._in_box(x)
        return np.where(inside, level, -level)

    def _nearer(self, foot: Points, x: Points, fraction: float) -> Points:
        """Points of the surface, moved along it towards x by a fraction of the way."""
        normals = self._normals(foot)
        away = x - foot
        sideways = away - np.sum(away * normals, axis=1, keepdims=True) * normals
        return self.function.projected(foot + fraction * sideways)

    @cached_property
    def _used(self) -> np.ndarray:
        return np.unique(self.surface.faces)

    @cached_property
    def _vertices(self) -> tuple[float, Any]:
        """The longest side of a triangle, and the vertices in a tree."""
        from scipy.spatial import cKDTree

        corners = self.surface.corners
        longest = max(float(np.linalg.norm(corners[:, i] - corners[:, i - 1], axis=1).max()) for i in range(3))
        return longest, cKDTree(self.surface.vertices[self._used])

    def __repr__(self) -> str:
        return f"ImplicitSolid({len(self.surface.faces)} triangles, from {show(self.lower)} to {show(self.upper)})"
