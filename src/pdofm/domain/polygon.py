"""Polygons with holes, based on shapely."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pdofm._types import Normals, Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Chart, Piece
from pdofm.domain.vectors import Numbers, between
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints


class Polygon(Domain):
    """The polygon with vertices `(n, 2)`, in either orientation, less the holes, each given by its vertices.

    The edge from vertex i to the next one is named "edge{i}", and that of hole k "hole{k}-edge{i}".
    """

    def __init__(self, vertices: Numbers, holes: Sequence[Numbers] = ()):
        import shapely

        self.vertices = _ring(vertices, "polygon")
        self.holes = tuple(_ring(hole, f"hole {index} of the polygon") for index, hole in enumerate(holes))
        polygon = shapely.Polygon(self.vertices, self.holes)
        if not polygon.is_valid:
            raise DomainError(
                f"The polygon is not valid: {shapely.is_valid_reason(polygon)}. "
                "Expected edges that do not cross, and holes inside it that do not overlap."
            )
        if not polygon.area > 0:
            raise DomainError("The polygon has area 0; expected vertices that do not all lie on one line.")
        shapely.prepare(polygon)
        self._polygon = polygon
        self._edges = polygon.boundary
        self.lower, self.upper = self.vertices.min(axis=0), self.vertices.max(axis=0)
        self.lower.setflags(write=False)
        self.upper.setflags(write=False)

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"vertices": self.vertices.tolist(), "holes": [hole.tolist() for hole in self.holes]}

    def _measure(self) -> float:
        return float(self._polygon.area)

    def _pieces(self) -> tuple[Piece, ...]:
        holes = [_edges(hole, f"hole{index}-", inward=True) for index, hole in enumerate(self.holes)]
        return sum(holes, start=_edges(self.vertices, "", inward=False))

    def _level(self, x: Points) -> Vector:
        import shapely

        distance = shapely.distance(self._edges, shapely.points(x))
        return np.where(shapely.contains_xy(self._polygon, x[:, 0], x[:, 1]), distance, -distance)

    def __repr__(self) -> str:
        holes = f", {len(self.holes)} holes" if self.holes else ""
        return f"Polygon({len(self.vertices)} vertices{holes})"


def _ring(vertices: Numbers, what: str) -> Points:
    """The vertices `(n, 2)` of a closed polygon; a last vertex that repeats the first is dropped."""
    try:
        ring = np.array(vertices, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError(f"The vertices of the {what} are not numbers; expected shape (n, 2).") from error
    if ring.ndim != 2 or ring.shape[1] != 2:
        raise DomainError(f"The vertices of the {what} have shape {ring.shape}; expected (n, 2), one vertex per row.")
    if not np.isfinite(ring).all():
        raise DomainError(f"Some vertices of the {what} are infinite or NaN; expected finite numbers.")
    if len(ring) > 1 and (ring[0] == ring[-1]).all():
        ring = ring[:-1]
    if len(ring) < 3:
        raise DomainError(f"The {what} has {len(ring)} distinct vertices; expected at least 3.")
    repeated = np.flatnonzero((ring == np.roll(ring, -1, axis=0)).all(axis=1))
    if repeated.size:
        raise DomainError(
            f"Vertex {repeated[0]} of the {what} is repeated; expected edges of positive length. Drop it."
        )
    ring.setflags(write=False)
    return ring


def _edges(ring: Points, prefix: str, inward: bool) -> tuple[Piece, ...]:
    """The edges of a closed polygon, with normals that point out of it, or into it if `inward`."""
    following = np.roll(ring, -1, axis=0)
    x, y = (ring - ring[0]).T
    twice_area = np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)
    sign = (1.0 if twice_area > 0 else -1.0) * (-1.0 if inward else 1.0)
    return tuple(
        Piece(f"{prefix}edge{index}", float(np.hypot(*(end - start))), (True,), _segment(start, end, sign))
        for index, (start, end) in enumerate(zip(ring, following, strict=True))
    )


def _segment(start: Vector, end: Vector, sign: float) -> Chart:
    along = (end - start) / np.hypot(*(end - start))
    normal = sign * np.array([along[1], -along[0]])

    def chart(u: UnitPoints) -> tuple[Points, Normals]:
        return between(start, end, u), np.tile(normal, (len(u), 1))

    return chart
