"""Solutions for other programs: meshes with data for ParaView, and plain arrays.

A solution needs no mesh, but ParaView does. The solution is evaluated at the points of a mesh of:

- lines for an interval or a union of intervals, which end exactly at the ends;
- quadrilaterals or hexahedra for a box;
- triangles for any other plane domain: the Delaunay triangulation of a lattice and of points on the boundary. Corners
  are kept and curves become polygons, so that with cells of size h the area is accurate to O(h²). Around a round hole
  the sides of the polygon are chords that cut into the hole to a depth of O(h²); no cell reaches farther out of the
  domain. Details narrower than a cell are lost;
- tetrahedra for any other domain of three dimensions, with faces that follow the boundary (`pdofm.output.solid`);
- the mesh of the space, extruded along the time axis, for a space-time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from os import PathLike
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Points, Vector
from pdofm.archives import in_folder
from pdofm.domain import Domain, SpaceTime
from pdofm.domain.vectors import between
from pdofm.errors import DomainError, unknown_name
from pdofm.output.solid import tetrahedra
from pdofm.solving.solution import Solution, comparison_points

FORMATS = (".vtk", ".vtu")
"""Suffixes of the files that can be written."""

RESOLUTIONS = {1: 1000, 2: 200, 3: 40}
"""Default number of cells along the longest side, by the number of dimensions: at most some 64000 cells."""

_ON_BOUNDARY = 1e-9
"""Points closer than this, in sizes of the domain, coincide; a corner this close to the boundary lies on it."""

_SMALLEST_CIRCLE = 16
"""Least number of sides of the polygon that stands for a circle: one smaller than a cell would otherwise vanish."""

Cells = Int[np.ndarray, "cells corners"]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Points `(n, dim)` and cells of one `kind`, named as in meshio: rows of indices of points, in the order of VTK."""

    points: Points
    kind: str
    cells: Cells


def write_vtk(solution: Solution, path: str | PathLike, *, resolution: int | None = None) -> None:
    """Write a solution for ParaView as .vtu, or as .vtk for older programs. Its folder must exist.

    The file has a field for each unknown, under its name ("u" if there is one scalar); vectors have three entries. If
    the exact solution is known, there is also the absolute "error". In a system, "error_v" is that of the unknown v,
    and the length of the difference if v is a vector. With several regions, each has a mesh of its own, and "region" is
    its number.

    Args:
        solution: the solution to write, on a domain of at most three dimensions, time included.
        path: the file, ending in .vtu or .vtk.
        resolution: number of cells along the longest side, and along the time axis; by default 1000, 200 and 40 in 1, 2
            and 3 dimensions.
    """
    import meshio

    target = in_folder(path)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise unknown_name(f"suffix of the mesh {target.name!r}:", target.suffix, FORMATS)
    grids = _meshes(solution.problem.domain, resolution)
    parts = [_data(solution, grid.points, region) for region, grid in grids]
    data = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    vectors: dict[str, Any] = {name: _padded(values) for name, values in data.items() if values.ndim == 2}
    starts = np.cumsum([0, *(len(grid.points) for _, grid in grids)])
    cells: list[Any] = [
        (grid.kind, grid.cells + start) for (_, grid), start in zip(grids, starts.tolist(), strict=False)
    ]
    points = np.concatenate([grid.points for _, grid in grids])
    meshio.write(target, meshio.Mesh(_padded(points), cells, point_data={**data, **vectors}), file_format=suffix[1:])


def _meshes(domain: Domain, resolution: int | None) -> list[tuple[str | None, Mesh]]:
    """The mesh of a domain, or one for each of its regions with its name: values may jump between them."""
    if domain.materials is None:
        return [(None, mesh(domain, resolution))]
    finest = RESOLUTIONS[min(domain.dim, 3)] if resolution is None else resolution
    shares = {name: each.size / domain.size for name, each in domain.materials.by_name.items()}
    return [(name, mesh(each, max(1, round(finest * shares[name])))) for name, each in domain.materials.by_name.items()]


def to_arrays(solution: Solution, points: Any = None) -> dict[str, np.ndarray]:
    """A dictionary of arrays: "points" `(n, dim)`, each unknown `(n,)` or `(n, size)`, and errors as in `write_vtk`.

    Save them with ``np.savez("u.npz", **to_arrays(u))``. By default the points are those at which `errors` compares.
    """
    domain = solution.problem.domain
    if points is None:
        points = comparison_points(domain)
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != domain.dim:
        raise DomainError(f"Points have shape {points.shape}; expected (n, {domain.dim}), one point per row.")
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
    return (_triangles if domain.dim == 2 else _solid)(domain, resolution)


def _data(solution: Solution, points: Points, region: str | None = None) -> dict[str, np.ndarray]:
    """The unknowns and their errors at points, by name; those of a region with its number. Complex unknowns are two:
    ``u_re`` and ``u_im``."""
    layout, exact, regions = solution.problem.layout, solution.problem.exact, solution.problem.regions
    offsets: Mapping[str, tuple[int, int]] = layout.offsets or {"u": (0, 1)}
    found = (solution if region is None else solution.side(region))(points).reshape(len(points), -1)
    parts = {name: found[:, start : start + size] for name, (start, size) in offsets.items()}
    if layout.is_complex:
        of = {"re": np.real, "im": np.imag}
        parts = {f"{name}_{end}": part_of(each) for name, each in parts.items() for end, part_of in of.items()}
    data = {name: part[:, 0] if part.shape[1] == 1 else part for name, part in parts.items()}
    if exact is not None:
        difference = found - layout.gathered(solution.problem.exact_values(points, region))
        for name, (start, size) in offsets.items():
            label = f"error_{name}" if layout.offsets else "error"
            data[label] = np.linalg.norm(difference[:, start : start + size], axis=1)
    if regions is not None and region is not None:
        data["region"] = np.full(len(points), regions.names.index(region))
    return data


def _padded(vectors: Points) -> Float[np.ndarray, "n D"]:
    """The vectors with zeros appended up to three entries, which VTK expects."""
    return np.pad(vectors, ((0, 0), (0, max(0, 3 - vectors.shape[1]))))


def _ticks(domain: Domain, axis: int, resolution: int) -> Vector:
    """Coordinates of the sides of cells along an axis; the cells are about equally long along all axes."""
    side = domain.upper[axis] - domain.lower[axis]
    count = max(1, int(np.ceil(resolution * side / domain.size - 1e-9)))
    return between(domain.lower[axis], domain.upper[axis], np.linspace(0.0, 1.0, count + 1))


def _grid(domain: Domain, resolution: int) -> Mesh:
    """A regular mesh of the bounding box."""
    first, *others = (_ticks(domain, axis, resolution) for axis in range(domain.dim))
    start = np.arange(len(first) - 1)
    return reduce(_extruded, others, Mesh(first[:, None], "line", np.column_stack([start, start + 1])))


def _extruded(base: Mesh, heights: Vector) -> Mesh:
    """The product of a mesh and an interval, which becomes the last axis."""
    count, layers = len(base.points), len(heights) - 1
    points = np.column_stack([np.tile(base.points, (len(heights), 1)), np.repeat(heights, count)])
    low, kind = base.cells, {"line": "quad", "triangle": "wedge", "quad": "hexahedron"}[base.kind]
    if kind == "wedge":
        low = low[:, ::-1]  # VTK numbers the first triangle of a wedge clockwise, seen from the second one
    # The corners of a quadrilateral go around it, so the upper side is reversed.
    high = count + (low[:, ::-1] if kind == "quad" else low)
    cells = np.concatenate([np.hstack([low, high]) + layer * count for layer in range(layers)])
    return Mesh(points, kind, cells)


def _lines(domain: Domain, resolution: int) -> Mesh:
    """A mesh of an interval, or of a union of intervals."""
    ends = [piece.chart(np.zeros((1, 0)))[0][0, 0] for piece in domain.pieces]
    x = np.union1d(_ticks(domain, 0, resolution), ends)
    x = x[np.concatenate([[True], np.diff(x) > _ON_BOUNDARY * domain.size])]
    inside = domain.contains(0.5 * (x[1:] + x[:-1])[:, None])
    first = np.flatnonzero(inside)
    return _used(x[:, None], "line", np.column_stack([first, first + 1]))


def _triangles(domain: Domain, resolution: int) -> Mesh:
    """A triangulation of a plane domain: of points on its boundary, and of a lattice inside."""
    from scipy.spatial import Delaunay

    size = domain.size / resolution
    boundary = _boundary_points(domain, size)
    points = np.concatenate([boundary, _lattice(domain, boundary, size)])
    cells = Delaunay(points).simplices.astype(np.int64)
    corners = points[cells]
    (ax, ay), (bx, by) = (corners[:, 1] - corners[:, 0]).T, (corners[:, 2] - corners[:, 0]).T
    area = 0.5 * (ax * by - ay * bx)
    cells = np.where(area[:, None] < 0, cells[:, ::-1], cells)  # all counterclockwise
    middles = 0.5 * (corners + np.roll(corners, 1, axis=1))
    reach = domain.level(middles.reshape(-1, 2)).reshape(-1, 3).min(axis=1)
    inside = domain.contains(corners.mean(axis=1)) & (reach > -size / 8)
    return _used(points, "triangle", cells[inside & (abs(area) > 1e-6 * size**2)])


def _boundary_points(domain: Domain, size: float) -> Points:
    """Points on the boundary of a plane domain, at most `size` apart."""
    from scipy.spatial import cKDTree

    curves = []
    for piece in domain.pieces:
        count = max(int(np.ceil(piece.measure / size)), 1 if piece.ends[0] else _SMALLEST_CIRCLE)
        curves.append(piece.chart(np.linspace(0.0, 1.0, count + 1)[:, None])[0])
    points = np.concatenate(curves)
    # Neighbouring pieces share their end points, which are needed once.
    twins = cKDTree(points).query_pairs(_ON_BOUNDARY * domain.size, output_type="ndarray")
    return np.delete(points, twins[:, 1], axis=0)


def _lattice(domain: Domain, boundary: Points, size: float) -> Float[np.ndarray, "m 2"]:
    """The points of a lattice of equilateral triangles that lie inside, not too close to the boundary."""
    from scipy.spatial import cKDTree

    x, y = np.meshgrid(
        np.arange(domain.lower[0], domain.upper[0], size), np.arange(domain.lower[1], domain.upper[1], 0.866 * size)
    )
    x = x + 0.5 * size * (np.arange(len(x)) % 2)[:, None]
    lattice = np.column_stack([x.ravel(), y.ravel()])
    # An edge between two points of the boundary belongs to the Delaunay triangulation if no point lies in the circle
    # that has the edge as its diameter. Points farther than size / sqrt(2) from both ends never do.
    return lattice[domain.contains(lattice) & (cKDTree(boundary).query(lattice)[0] > 0.75 * size)]


def _solid(domain: Domain, resolution: int) -> Mesh:
    """The tetrahedra of a domain of three dimensions."""
    points, cells = tetrahedra(domain, [_ticks(domain, axis, resolution) for axis in range(3)])
    return _used(points, "tetra", cells)


def _used(points: Float[np.ndarray, "m d"], kind: str, cells: Cells) -> Mesh:
    """A mesh of these cells, without the points that no cell uses."""
    kept, cells_of_kept = np.unique(cells, return_inverse=True)
    return Mesh(points[kept], kind, cells_of_kept.reshape(cells.shape))
