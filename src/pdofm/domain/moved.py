"""Domains that are turned, scaled and moved elsewhere."""

import math
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.domain.ball import Annulus, Ball, Disk, Shell
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Piece
from pdofm.domain.box import Box, Interval
from pdofm.domain.csg import Difference, Intersection, Union
from pdofm.domain.curve import Curve, Ellipse
from pdofm.domain.polygon import Polygon
from pdofm.domain.vectors import Numbers, finite_number, finite_vector, show
from pdofm.errors import DomainError
from pdofm.numerics.nodes import midpoints
from pdofm.numerics.numbers import as_number
from pdofm.numerics.sampling import UnitPoints

_LOOKS = {1: 4096, 2: 128, 3: 24}
"""Points along each parameter of a piece at which the search for its farthest point begins, by number of parameters."""

_ZOOMS = 40
"""How often that search looks more closely around the best point: each time in a third of the cell."""

Rotation = Float[np.ndarray, "d d"]


class Moved(Domain):
    """The domain of the points ``shift + scale · rotation @ y`` for all y of `domain`. Its parts keep their names.

    `domain.translated`, `domain.rotated` and `domain.scaled` make it.

    Args:
        domain: a domain without time.
        rotation: an orthogonal matrix `(d, d)` of determinant 1.
        scale: a positive number.
        shift: a vector `(d,)`.
    """

    def __init__(self, domain: Domain, rotation: Numbers, scale: float | int, shift: Numbers):
        self.domain = domain
        self.rotation = np.array(rotation, dtype=np.float64)
        if self.rotation.shape != (domain.dim, domain.dim) or not np.allclose(
            self.rotation @ self.rotation.T, np.eye(domain.dim), rtol=0, atol=1e-12
        ):
            raise DomainError(f"The rotation of {domain!r} is not an orthogonal matrix of {domain.dim} rows.")
        self.rotation.setflags(write=False)
        self.scale, self.shift = positive(scale, "scale"), finite_vector(shift, "shift", domain.dim)
        lower, upper = self._bounds()
        self.lower, self.upper = finite_vector(lower, "lower corner"), finite_vector(upper, "upper corner")

    @property
    def arguments(self) -> dict[str, Any] | None:
        if self.domain.arguments is None:
            return None
        return {
            "domain": self.domain,
            "rotation": self.rotation.tolist(),
            "scale": self.scale,
            "shift": self.shift.tolist(),
        }

    def _measure(self) -> float:
        return self.domain.measure * self.scale**self.dim

    def _pieces(self) -> tuple[Piece, ...]:
        return tuple(self._moved(piece) for piece in self.domain.pieces)

    def _moved(self, piece: Piece) -> Piece:
        def chart(u: UnitPoints) -> tuple[Points, Normals]:
            points, normals = piece.chart(u)
            turned = normals @ self.rotation.T
            return self._forth(points), turned / np.linalg.norm(turned, axis=1, keepdims=True)

        keep = piece.keep

        def kept(points: Points, normals: Normals) -> Mask:
            assert keep is not None
            return keep(self._back(points), normals @ self.rotation)

        measure = piece.measure * self.scale**piece.dim
        return Piece(piece.name, measure, piece.ends, chart, None if keep is None else kept, piece.is_named)

    def _level(self, x: Points) -> Vector:
        return self.scale * self.domain.level(self._back(x))

    def _forth(self, y: Points) -> Points:
        return self.shift + self.scale * (y @ self.rotation.T)

    def _back(self, x: Points) -> Points:
        return ((x - self.shift) @ self.rotation) / self.scale

    def _bounds(self) -> tuple[Vector, Vector]:
        corners = np.array(list(product(*zip(self.domain.lower, self.domain.upper, strict=True))))
        moved = self._forth(corners)
        lower, upper = moved.min(axis=0), moved.max(axis=0)
        if isinstance(self.domain, Box) or self.domain.dim > 3:
            return lower, upper
        for axis in range(self.domain.dim):
            for sign, bound in ((1.0, upper), (-1.0, lower)):
                direction = sign * self.rotation[axis]
                farthest = max(_farthest(piece, direction) for piece in self.domain.pieces)
                found = sign * self.scale * farthest + self.shift[axis]
                bound[axis] = sign * min(sign * bound[axis], sign * found + 2 * np.spacing(abs(found)))
        return lower, upper

    def __repr__(self) -> str:
        return f"Moved({self.domain!r}, scale {self.scale:.6g}, shift {show(self.shift)})"


def translated(domain: Domain, by: Numbers) -> Domain:
    """The domain moved by a vector."""
    _check_space(domain)
    return moved(domain, np.eye(domain.dim), 1.0, finite_vector(by, "translation", domain.dim))


def scaled(domain: Domain, factor: float | int, about: Numbers | None) -> Domain:
    """The domain enlarged by a factor, with the point `about` fixed."""
    _check_space(domain)
    centre = finite_vector(np.zeros(domain.dim) if about is None else about, "fixed point", domain.dim)
    factor = positive(factor, "factor")
    return moved(domain, np.eye(domain.dim), factor, centre - factor * centre)


def rotated(domain: Domain, angle: float | int, about: Numbers | None, axis: Numbers | None) -> Domain:
    """The domain turned by an angle, with the point `about` fixed; in space around an axis."""
    _check_space(domain)
    if domain.dim not in (2, 3) or (domain.dim == 2 and axis is not None):
        raise DomainError(
            f"{domain!r} has {domain.dim} dimensions; a rotation needs a plane, or three dimensions and axis=."
        )
    centre = finite_vector(np.zeros(domain.dim) if about is None else about, "fixed point", domain.dim)
    angle = as_number(angle, "The angle of a rotation", DomainError)
    cos, sin = math.cos(angle), math.sin(angle)
    turn = np.array([[cos, -sin], [sin, cos]])
    if domain.dim == 3:
        base = frame(finite_vector((0.0, 0.0, 1.0) if axis is None else axis, "axis", 3))
        around = np.eye(3)
        around[:2, :2] = turn
        turn = base @ around @ base.T
    return moved(domain, turn, 1.0, centre - turn @ centre)


def moved(domain: Domain, rotation: Rotation, scale: float, shift: Vector) -> Domain:
    """A domain that is moved, with the names of its parts: one of the same kind where there is one, and a `Moved`
    otherwise."""
    found = _moved(domain, rotation, scale, shift)
    return found if isinstance(found, Moved) else found.with_names(domain.given_names)


def _moved(domain: Domain, rotation: Rotation, scale: float, shift: Vector) -> Domain:
    straight = np.array_equal(rotation, np.eye(domain.dim))
    if isinstance(domain, Union | Intersection | Difference):
        return type(domain)(moved(domain.first, rotation, scale, shift), moved(domain.second, rotation, scale, shift))
    if isinstance(domain, Moved):
        return moved(
            domain.domain,
            rotation @ domain.rotation,
            scale * domain.scale,
            shift + scale * (rotation @ domain.shift),
        )

    def forth(y: Vector) -> Vector:
        return shift + scale * (rotation @ y)

    if type(domain) is Interval:
        return Interval(*(float(forth(end)[0]) for end in (domain.lower, domain.upper)))
    if type(domain) is Box and straight:
        return Box(forth(domain.lower), forth(domain.upper))
    if isinstance(domain, Disk | Ball):
        return type(domain)(forth(domain.center), scale * domain.outer)
    if isinstance(domain, Annulus | Shell):
        return type(domain)(forth(domain.center), scale * domain.inner, scale * domain.outer)
    if type(domain) is Polygon:
        return Polygon(
            [forth(vertex) for vertex in domain.vertices], [[forth(each) for each in hole] for hole in domain.holes]
        )
    if type(domain) is Ellipse:
        angle = domain.angle + math.atan2(rotation[1, 0], rotation[0, 0])
        return Ellipse(forth(domain.center), scale * domain.a, scale * domain.b, angle)
    if type(domain) is Curve:
        modes = scale * (rotation[0, 0] + 1j * rotation[1, 0]) * domain.modes
        modes[len(modes) // 2] += complex(*shift)
        return Curve(modes=np.stack([modes.real, modes.imag], axis=1))
    return Moved(domain, rotation, scale, shift)


def frame(direction: Vector) -> Rotation:
    """A rotation that takes the third axis to a direction; exact if that is along a coordinate axis."""
    length = np.linalg.norm(direction)
    if not length > 0:
        raise DomainError("The axis has length 0; expected a direction such as [0, 0, 1].")
    third = direction / length
    first = np.cross(np.eye(3)[np.argmin(np.abs(third))], third)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(third, first), third], axis=1)


def positive(value: float | int, what: str) -> float:
    """A positive number; errors call it `what`."""
    number = finite_number(value, what)
    if number <= 0:
        raise DomainError(f"The {what} is {value!r}; expected a positive number.")
    return number


def _check_space(domain: Domain) -> None:
    if domain.has_time:
        raise DomainError(f"{domain!r} includes time; move its space first: SpaceTime(space.translated(…), T).")


def _farthest(piece: Piece, direction: Vector) -> float:
    """The largest coordinate of a piece along a direction, by looking ever more closely around the best point."""
    if piece.dim == 0:
        return float((piece.chart(np.zeros((1, 0)))[0] @ direction)[0])
    count = _LOOKS[piece.dim]
    u, width, best = midpoints(count, piece.dim), 1.0 / count, -np.inf
    for _ in range(_ZOOMS):
        points, normals = piece.chart(u)
        values = points @ direction
        if piece.keep is not None:
            values = np.where(piece.keep(points, normals), values, -np.inf)
        best = max(best, float(values.max()))
        # The cell of the best point and half of its neighbours, ends included.
        u = np.clip(u[np.argmax(values)] + width * (2 * midpoints(7, piece.dim) - 1) * 7 / 6, 0.0, 1.0)
        width /= 3
    return best
