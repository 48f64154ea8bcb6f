"""Solids bounded by triangles, from files such as STL and OBJ."""

import math
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Piece
from pdofm.domain.triangles import Triangles
from pdofm.domain.vectors import Numbers, finite_vector
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints

_MERGED = 1e-7
"""Vertices of a file closer than this, in sizes of the surface, are one: STL repeats them in single precision."""

_SHARP = math.radians(30)
"""Two triangles that meet at a larger angle meet in an edge of the solid; at a smaller one they stand for a curved
surface."""


class Mesh(Domain):
    """The solid inside a closed surface of triangles, read from a file (STL, OBJ, PLY, … by meshio), or given as
    vertices `(v, 3)` and faces `(t, 3)`. Its boundary is named "surface".

    Flat facets stand for curved surfaces only up to a distance: `digits` says how many digits of the solution of a
    problem on the curved solid they allow at most.
    """

    def __init__(self, path: str | PathLike | None = None, *, vertices: Numbers | None = None, faces: Any = None):
        if (path is None) == (vertices is None or faces is None):
            raise DomainError("Mesh takes the path of a file, or vertices= and faces=.")
        self._name = "" if path is None else Path(path).name
        points, cells = _read(path) if path is not None else _checked(vertices, faces)
        surface = Triangles(*_merged(points, cells))
        surface.check_closed(f"The mesh {self._name!r}" if self._name else "The mesh")
        if surface.volume < 0:  # the triangles run the other way around
            surface = Triangles(surface.vertices, surface.faces[:, ::-1])
        self.surface = surface
        self.lower = finite_vector(surface.lower, "lower corner")
        self.upper = finite_vector(surface.upper, "upper corner")

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"vertices": self.surface.vertices.tolist(), "faces": self.surface.faces.tolist()}

    @property
    def deviation(self) -> float:
        """The largest distance between the facets and the smooth surface that they stand for, estimated from the angles
        at which they meet; 0 for a solid with flat sides."""
        faces, corners = self.surface.faces, self.surface.corners
        owner: dict[tuple[int, int], int] = {}
        for face, (a, b, c) in enumerate(faces.tolist()):
            owner.update({(a, b): face, (b, c): face, (c, a): face})
        pairs = np.array([(face, owner[b, a]) for (a, b), face in owner.items() if a < b])
        cosines = np.sum(self.surface.normals[pairs[:, 0]] * self.surface.normals[pairs[:, 1]], axis=1)
        angles = np.arccos(np.clip(cosines, -1, 1))
        # Triangles whose middles are h apart and that meet at an angle θ lie on a sphere of radius h / θ; one with
        # corners r away from its middle is r² θ / 2 h below it.
        middles = corners.mean(axis=1)
        h = np.linalg.norm(middles[pairs[:, 0]] - middles[pairs[:, 1]], axis=1)
        r = np.linalg.norm(corners - middles[:, None], axis=2).mean(axis=1)[pairs].max(axis=1)
        curved = (angles > 1e-6) & (angles < _SHARP)
        return float(np.max((r**2 * angles / (2 * h))[curved], initial=0.0))

    @property
    def digits(self) -> float:
        """The number of digits that the facets allow: minus the logarithm of `deviation`, in sizes of the solid."""
        relative = self.deviation / self.size
        return math.inf if relative == 0 else -math.log10(relative)

    def _measure(self) -> float:
        return self.surface.volume

    def _pieces(self) -> tuple[Piece, ...]:
        surface = self.surface

        def chart(u: UnitPoints) -> tuple[Points, Normals]:
            points, face = surface.chart(u)
            return points, surface.normals[face]

        return (Piece("surface", surface.area, (False, False), chart),)

    def contains(self, x: Numbers, tol: float | int = 0.0) -> Mask:
        if tol != 0:
            return super().contains(x, tol)
        return self.surface.inside(self.checked(x))  # no distance is needed

    def _level(self, x: Points) -> Vector:
        return np.where(self.surface.inside(x), 1.0, -1.0) * self.surface.distance(x)

    def __repr__(self) -> str:
        curved = "" if math.isinf(self.digits) else f", allows {self.digits:.1f} digits of a curved solid"
        return f"Mesh({self._name + ': ' if self._name else ''}{len(self.surface.faces)} triangles{curved})"


def _read(path: str | PathLike) -> tuple[Points, np.ndarray]:
    import meshio

    if not Path(path).is_file():
        raise DomainError(f"There is no file {str(path)!r}. Give the path of a surface, such as part.stl.")
    try:
        with np.errstate(over="ignore"):  # its test for binary STL multiplies text as a number
            mesh = meshio.read(path)
    except (Exception, SystemExit) as error:
        raise DomainError(f"{str(path)!r} cannot be read as a mesh: {error} Export it as STL or OBJ.") from error
    triangles = [block.data for block in mesh.cells if block.type == "triangle"]
    halves = ([0, 1, 2], [0, 2, 3])
    quads = [block.data[:, half] for block in mesh.cells if block.type == "quad" for half in halves]
    if not triangles + quads:
        kinds = sorted({block.type for block in mesh.cells})
        raise DomainError(f"{str(path)!r} has no triangles, but {kinds}; expected the surface of a solid, as in STL.")
    return np.asarray(mesh.points, dtype=np.float64), np.concatenate(triangles + quads).astype(int)


def _checked(vertices: Any, faces: Any) -> tuple[Points, np.ndarray]:
    points, cells = np.array(vertices, dtype=np.float64), np.array(faces, dtype=int)
    if points.ndim != 2 or points.shape[1] != 3 or cells.ndim != 2 or cells.shape[1] != 3:
        raise DomainError(
            f"Vertices and faces have shapes {points.shape} and {cells.shape}; expected (v, 3) and (t, 3)."
        )
    if cells.min() < 0 or cells.max() >= len(points):
        raise DomainError(f"A face names vertex {cells.max()}; expected indices from 0 to {len(points) - 1}.")
    return points, cells


def _merged(points: Points, faces: np.ndarray) -> tuple[Points, np.ndarray]:
    """Vertices without repetitions, and the faces that remain triangles."""
    if points.shape[1] != 3 or not np.isfinite(points).all():
        raise DomainError(f"The vertices of the mesh have shape {points.shape}; expected (v, 3), all finite.")
    size = float(np.ptp(points, axis=0).max())
    _, first, number = np.unique(np.round(points / (_MERGED * size)), axis=0, return_index=True, return_inverse=True)
    cells = number.reshape(-1)[faces]
    proper = (cells[:, 0] != cells[:, 1]) & (cells[:, 1] != cells[:, 2]) & (cells[:, 2] != cells[:, 0])
    return points[first], cells[proper]
