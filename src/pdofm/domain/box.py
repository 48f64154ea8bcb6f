"""Intervals, rectangles and boxes of any dimension."""

from typing import Any

import numpy as np

from pdofm._types import Normals, Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Chart, Piece
from pdofm.domain.vectors import Numbers, between, finite_vector, show
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints


class Box(Domain):
    """The box lower < x < upper. Its faces are named "x0=lower", "x0=upper", "x1=lower", …"""

    def __init__(self, lower: Numbers, upper: Numbers):
        self.lower = finite_vector(lower, "lower corner of a box")
        self.upper = finite_vector(upper, "upper corner of a box", dim=self.lower.size)
        if not (self.lower < self.upper).all():
            raise DomainError(
                f"A box from {show(self.lower)} to {show(self.upper)} is empty; "
                "expected lower < upper along every axis."
            )

    @property
    def is_box(self) -> bool:
        return True

    @property
    def vanishing(self) -> tuple[str, tuple[Vector, ...]]:
        return "box", (self.lower, self.upper)

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"lower": self.lower.tolist(), "upper": self.upper.tolist()}

    def _measure(self) -> float:
        return float(np.prod(self.upper - self.lower))

    def _pieces(self) -> tuple[Piece, ...]:
        sides = self.upper - self.lower
        return tuple(
            Piece(
                f"x{axis}={('lower', 'upper')[side]}",
                float(np.prod(np.delete(sides, axis))),
                (True,) * (self.dim - 1),
                _face(self.lower, self.upper, axis, side),
            )
            for axis in range(self.dim)
            for side in (0, 1)
        )

    def _level(self, x: Points) -> Vector:
        # Axis by axis: NumPy reduces along a short axis ten times more slowly.
        farthest, squares = np.full(len(x), -np.inf), np.zeros(len(x))
        for lower, upper, coordinate in zip(self.lower, self.upper, x.T, strict=True):
            beyond = np.maximum(lower - coordinate, coordinate - upper)
            np.maximum(farthest, beyond, out=farthest)
            squares += np.maximum(beyond, 0.0) ** 2
        return np.where(farthest > 0, -np.sqrt(squares), -farthest)

    def __repr__(self) -> str:
        return f"Box({show(self.lower)}, {show(self.upper)})"


class Interval(Box):
    """The interval a < x < b; points have shape (1,). Its ends are named "x0=lower" and "x0=upper"."""

    def __init__(self, a: float | int, b: float | int):
        super().__init__(finite_vector([a], "start of an interval"), finite_vector([b], "end of an interval"))

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"a": float(self.lower[0]), "b": float(self.upper[0])}

    def __repr__(self) -> str:
        return f"Interval({self.lower[0]:.6g}, {self.upper[0]:.6g})"


def _face(lower: Vector, upper: Vector, axis: int, side: int) -> Chart:
    others = np.delete(np.arange(lower.size), axis)

    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        points, normals = np.zeros((2, len(u), lower.size))
        points[:, others] = between(lower[others], upper[others], u)
        points[:, axis] = (lower, upper)[side][axis]
        normals[:, axis] = (-1.0, 1.0)[side]
        return points, normals

    return chart
