"""Solutions for other programs: meshes with data for ParaView, and plain arrays.

A solution needs no mesh, but ParaView does. The meshes here carry exact values of the solution at their points:

- an interval, or a union of them: lines that end exactly at the ends;
- a box: quadrilaterals or hexahedra;
- any other plane domain: Delaunay triangles of a lattice and of points on the boundary. Corners are kept and curves
  become polygons: with cells of size h the area is right to O(h²). Around a round hole the sides of the polygon are
  chords that run through the hole, O(h²) deep; no cell reaches farther out. What is narrower than a cell is lost;
- any other domain of three dimensions: those cubes of a grid that lie inside, so the volume is too small by O(h);
- space-time: the mesh of the space, extruded along the time, which is the last axis.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Points, Vector
from pdofm.domain import Domain, SpaceTime
from pdofm.domain.vectors import between
from pdofm.errors import DomainError, unknown_name
from pdofm.solving.solution import TEST_POINTS, Solution

FORMATS = (".vtk", ".vtu")
# Cells along the longest side.
RESOLUTIONS = {1: 1000, 2: 200, 3: 40}
# Corners closer to the boundary than this, times the size of the domain, are on it.
_ON_BOUNDARY = 1e-9

Cells = Int[np.ndarray, "cells corners"]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Points `(n, dim)`, and cells of one `kind` (a name of meshio): rows of indices of points, in the order of VTK."""

    points: Points
    kind: str
    cells: Cells


def write_vtk(solution: Solution, path: str | PathLike, *, resolution: int | None = None) -> None:
    """Write a solution for ParaView as .vtu, or .vtk for old programs; folders are made.

    The points carry each unknown under its name ("u" if there is one scalar), vectors with three entries. Where the
    exact solution is known they also carry the absolute "error"; in a system it is "error_v" for an unknown v, and the
    length of the difference if v is a vector.

    Args:
        solution: what to write; of a domain of at most three dimensions, time included.
        path: where to.
        resolution: cells along the longest side, and along the time; by default 1000, 200, 40 in 1, 2, 3 dimensions.
    """
    import meshio

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise unknown_name(f"suffix of the mesh {target.name!r}:", target.suffix, FORMATS)
    grid = mesh(solution.problem.domain, resolution)
    data = _data(solution, grid.points)
    vectors: dict[str, Any] = {name: _padded(values) for name, values in data.items() if values.ndim == 2}
    target.parent.mkdir(parents=True, exist_ok=True)
    written = meshio.Mesh(_padded(grid.points), [(grid.kind, grid.cells)], point_data={**data, **vectors})
    meshio.write(target, written, file_format=suffix[1:])


def to_arrays(solution: Solution, points: Any = None) -> dict[str, np.ndarray]:
    """Points `(n, dim)`, each unknown `(n,)` or `(n, size)`, and errors as in `write_vtk`, by name.

    Save them with ``np.savez("u.npz", **to_arrays(u))``. Without `points`, those of a uniform grid inside the domain.
    """
    domain = solution.problem.domain
    if points is None:
        points = domain.sample(TEST_POINTS.get(domain.dim, 4096), "grid")
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != domain.dim:
        raise DomainError(f"Points have shape {points.shape}; expected (n, {domain.dim}), one point a row.")
    return {"points": points, **_data(solution, points)}


def mesh(domain: Domain, resolution: int | None = None) -> Mesh:
    """A mesh of a domain of at most three dimensions, with `resolution` cells along the longest side."""
    if domain.dim > 3:
        raise DomainError(
            f"{domain!r} has {domain.dim} dimensions; a mesh has at most 3, time included. "
            "Use to_arrays(solution, points) with the points of a slice."
        )
    resolution = RESOLUTIONS[domain.dim] if resolution is None else resolution
    if resolution < 1:
        raise DomainError(f"The resolution is {resolution}; expected at least 1 cell along the longest side.")
    if isinstance(domain, SpaceTime):
        return _extruded(mesh(domain.space, resolution), np.linspace(domain.t0, domain.t1, resolution + 1))
    if domain.dim == 1:
        return _lines(domain, resolution)
    if domain.is_box:
        return _grid(domain, resolution)
    return (_triangles if domain.dim == 2 else _cubes)(domain, resolution)


def _data(solution: Solution, points: Points) -> dict[str, np.ndarray]:
    layout, exact = solution.problem.layout, solution.problem.exact
    offsets: Mapping[str, tuple[int, int]] = layout.offsets or {"u": (0, 1)}
    found = solution(points).reshape(len(points), -1)
    parts = {name: found[:, start : start + size] for name, (start, size) in offsets.items()}
    data = {name: part[:, 0] if part.shape[1] == 1 else part for name, part in parts.items()}
    if exact is not None:
        difference = found - solution.problem.exact_values(points)
        for name, (start, size) in offsets.items():
            label = f"error_{name}" if layout.offsets else "error"
            data[label] = np.linalg.norm(difference[:, start : start + size], axis=1)
    return data


def _padded(vectors: Points) -> Float[np.ndarray, "n D"]:
    """With zeros for the coordinates that are missing to three, which is what VTK stores."""
    return np.pad(vectors, ((0, 0), (0, max(0, 3 - vectors.shape[1]))))


def _ticks(domain: Domain, axis: int, resolution: int) -> Vector:
    """Where cells of about the same size along all axes begin and end."""
    side = domain.upper[axis] - domain.lower[axis]
    count = max(1, int(np.ceil(resolution * side / domain.size - 1e-9)))
    return between(domain.lower[axis], domain.upper[axis], np.linspace(0.0, 1.0, count + 1))


def _grid(domain: Domain, resolution: int) -> Mesh:
    """The bounding box in cells."""
    first, *others = (_ticks(domain, axis, resolution) for axis in range(domain.dim))
    start = np.arange(len(first) - 1)
    return reduce(_extruded, others, Mesh(first[:, None], "line", np.column_stack([start, start + 1])))


def _extruded(base: Mesh, heights: Vector) -> Mesh:
    """The mesh times an interval, which becomes the last axis."""
    count, layers = len(base.points), len(heights) - 1
    points = np.column_stack([np.tile(base.points, (len(heights), 1)), np.repeat(heights, count)])
    low, kind = base.cells, {"line": "quad", "triangle": "wedge", "quad": "hexahedron"}[base.kind]
    if kind == "wedge":
        low = low[:, ::-1]  # seen from the other end of the wedge its first triangle is clockwise in VTK
    # A quadrilateral runs around, so that its upper side comes backwards.
    high = count + (low[:, ::-1] if kind == "quad" else low)
    cells = np.concatenate([np.hstack([low, high]) + layer * count for layer in range(layers)])
    return Mesh(points, kind, cells)


def _lines(domain: Domain, resolution: int) -> Mesh:
    ends = [piece.chart(np.zeros((1, 0)))[0][0, 0] for piece in domain.pieces]
    x = np.union1d(_ticks(domain, 0, resolution), ends)
    x = x[np.concatenate([[True], np.diff(x) > _ON_BOUNDARY * domain.size])]
    inside = domain.contains(0.5 * (x[1:] + x[:-1])[:, None])
    first = np.flatnonzero(inside)
    return _used(x[:, None], "line", np.column_stack([first, first + 1]))


def _triangles(domain: Domain, resolution: int) -> Mesh:
    from scipy.spatial import Delaunay, cKDTree

    size = domain.size / resolution
    curves = []
    for piece in domain.pieces:
        # A circle smaller than a cell would else vanish.
        count = max(int(np.ceil(piece.measure / size)), 1 if piece.ends[0] else 16)
        curves.append(piece.chart(np.linspace(0.0, 1.0, count + 1)[:, None])[0])
    boundary = np.concatenate(curves)
    near = cKDTree(boundary)
    # Pieces meet in common points, which are needed once.
    twins = near.query_pairs(_ON_BOUNDARY * domain.size, output_type="ndarray")
    boundary = np.delete(boundary, twins[:, 1], axis=0)
    # Rows of equilateral triangles.
    x, y = np.meshgrid(
        np.arange(domain.lower[0], domain.upper[0], size), np.arange(domain.lower[1], domain.upper[1], 0.866 * size)
    )
    x = x + 0.5 * size * (np.arange(len(x)) % 2)[:, None]
    lattice = np.column_stack([x.ravel(), y.ravel()])
    # An edge between points of the boundary is an edge of Delaunay's triangulation if no point lies in the circle whose
    # diameter it is; points farther than size / sqrt(2) from both ends never do.
    lattice = lattice[domain.contains(lattice) & (near.query(lattice)[0] > 0.75 * size)]
    points = np.concatenate([boundary, lattice])
    cells = Delaunay(points).simplices.astype(np.int64)
    corners = points[cells]
    (ax, ay), (bx, by) = (corners[:, 1] - corners[:, 0]).T, (corners[:, 2] - corners[:, 0]).T
    area = 0.5 * (ax * by - ay * bx)
    cells = np.where(area[:, None] < 0, cells[:, ::-1], cells)  # all counterclockwise
    middles = 0.5 * (corners + np.roll(corners, 1, axis=1))
    reach = domain.level(middles.reshape(-1, 2)).reshape(-1, 3).min(axis=1)
    inside = domain.contains(corners.mean(axis=1)) & (reach > -size / 8)
    return _used(points, "triangle", cells[inside & (abs(area) > 1e-6 * size**2)])


def _cubes(domain: Domain, resolution: int) -> Mesh:
    grid = _grid(domain, resolution)
    on = domain.contains(grid.points, tol=_ON_BOUNDARY * domain.size)
    # Corners may lie on the boundary and leave a cell outside, in a notch of its size; its middle tells.
    inside = np.all(on[grid.cells], axis=1) & domain.contains(grid.points[grid.cells].mean(axis=1))
    if not inside.any():
        raise DomainError(f"None of {resolution} cells a side lies inside {domain!r}; expected some. Raise resolution.")
    return _used(grid.points, grid.kind, grid.cells[inside])


def _used(points: Float[np.ndarray, "m d"], kind: str, cells: Cells) -> Mesh:
    """The mesh with only those points that a cell has."""
    kept, cells_of_kept = np.unique(cells, return_inverse=True)
    return Mesh(points[kept], kind, cells_of_kept.reshape(cells.shape))
