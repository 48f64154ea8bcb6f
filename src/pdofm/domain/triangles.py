"""Closed surfaces of triangles: a chart with constant density, distances, and which points lie inside."""

from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints

_MORTON_BITS = 10
"""Bits of each coordinate that order triangles along a space-filling curve."""

_PAIRS = 2**21
"""The most pairs of a point and a triangle that are compared at once."""

_CUTS = 6
"""How often triangles that are larger than most are cut in four, for the search of the nearest one."""

_ASIDE = np.array([0.7236e-13, 0.5257e-13])
"""Vertical lines are moved by this, in sizes of the surface, so that they do not meet edges."""

Faces = Int[np.ndarray, "t 3"]


class Triangles:
    """A closed surface made of triangles, whose vertices run counterclockwise when seen from outside.

    Args:
        vertices: shape `(v, 3)`.
        faces: shape `(t, 3)`, indices of vertices.
    """

    def __init__(self, vertices: Points, faces: Faces):
        corners = vertices[faces]
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        twice = np.linalg.norm(cross, axis=1)
        kept = twice > 0
        faces, corners, cross, twice = faces[kept], corners[kept], cross[kept], twice[kept]
        order = _along_a_curve(corners.mean(axis=1))
        self.vertices, self.faces, self.corners = vertices, faces[order], corners[order]
        self.areas, self.normals = twice[order] / 2, (cross / twice[:, None])[order]
        self.area = float(self.areas.sum())
        self.volume = float(np.sum(corners[:, 0] * cross) / 6)
        self.lower, self.upper = vertices[faces].min(axis=(0, 1)), vertices[faces].max(axis=(0, 1))
        self.size = float(np.max(self.upper - self.lower))

    def chart(self, u: UnitPoints, areas: Vector | None = None) -> tuple[Points, Int[np.ndarray, " n"]]:
        """Points of the surface with constant density, and their triangles. `areas` replaces those of the triangles."""
        ends = np.cumsum(self.areas if areas is None else areas)
        at = np.clip(u[:, 0], 0.0, 1.0) * ends[-1]
        face = np.minimum(np.searchsorted(ends, at), len(ends) - 1)
        starts = np.append(0.0, ends[:-1])[face]
        share = np.clip((at - starts) / (ends[face] - starts), 0.0, 1.0)
        # The map (s, v) -> (1 - √s) a + √s ((1 - v) b + v c) has constant density on a triangle.
        root, along = np.sqrt(share)[:, None], np.clip(u[:, 1:], 0.0, 1.0)
        a, b, c = np.moveaxis(self.corners[face], 1, 0)
        return (1 - root) * a + root * ((1 - along) * b + along * c), face

    def distance(self, x: Points) -> Vector:
        """The distance of points to the surface: exact near it, and a lower bound farther than a few triangles away."""
        radius, tree, parents = self._centroids
        nearest, first = tree.query(x)
        found = np.maximum(nearest - radius, 0.0)
        close = np.flatnonzero(nearest < 3 * radius)
        reach = np.sqrt(_squared_distance(x[close], self.corners[parents[first[close]]])) + radius
        step = max(1, _PAIRS // 256)
        for start in range(0, len(close), step):
            some = close[start : start + step]
            # The nearest point of the surface belongs to a triangle whose centroid is at most this far away.
            lists = tree.query_ball_point(x[some], reach[start : start + step] * (1 + 1e-12))
            counts = np.array([len(each) for each in lists])
            pairs = np.repeat(np.arange(len(some)), counts)
            face = parents[np.concatenate([np.asarray(each, dtype=int) for each in lists])]
            squares = _squared_distance(x[some][pairs], self.corners[face])
            best = np.full(len(some), np.inf)
            np.minimum.at(best, pairs, squares)
            found[some] = np.sqrt(best)
        return found

    def inside(self, x: Points) -> Mask:
        """Whether points lie inside: a vertical line upwards from such a point crosses the surface an odd number of
        times."""
        found = np.zeros(len(x), dtype=bool)
        starts, counts, faces = self._columns
        at = x[:, :2] + _ASIDE * self.size
        cell = self._cell(at)
        known = np.flatnonzero(np.all((at >= self.lower[:2]) & (at <= self.upper[:2]), axis=1) & (counts[cell] > 0))
        step = max(1, _PAIRS // int(counts.max()))
        for begin in range(0, len(known), step):
            some = known[begin : begin + step]
            count = counts[cell[some]]
            point = np.repeat(some, count)
            offset = np.arange(len(point)) - np.repeat(np.cumsum(count) - count, count)
            face = faces[np.repeat(starts[cell[some]], count) + offset]
            crossed = point[_is_above(x[point, 2], at[point], self.corners[face], self.normals[face])]
            found ^= np.bincount(crossed, minlength=len(x)) % 2 == 1
        return found

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each cell of a grid of vertical columns the triangles that may meet it: start and number in a list."""
        flat = self.corners[:, :, :2]
        (x0, y0), (x1, y1) = (self._places(corner).T for corner in (flat.min(axis=1), flat.max(axis=1)))
        count = (x1 - x0 + 1) * (y1 - y0 + 1)
        face = np.repeat(np.arange(len(flat)), count)
        offset = np.arange(len(face)) - np.repeat(np.cumsum(count) - count, count)
        width = (x1 - x0 + 1)[face]
        cell = (y0[face] + offset // width) * self._side + x0[face] + offset % width
        order = np.argsort(cell, kind="stable")
        counts = np.bincount(cell, minlength=self._side**2)
        return np.cumsum(counts) - counts, counts, face[order]

    @property
    def _side(self) -> int:
        """Cells along each side of the grid of columns."""
        return int(np.clip(np.sqrt(len(self.faces)), 1, 512))

    def _places(self, at: Float[np.ndarray, "n 2"]) -> Int[np.ndarray, "n 2"]:
        share = (at - self.lower[:2]) / (self.upper - self.lower)[:2]
        return np.clip((share * self._side).astype(int), 0, self._side - 1)

    def _cell(self, at: Float[np.ndarray, "n 2"]) -> Int[np.ndarray, " n"]:
        place = self._places(at)
        return place[:, 1] * self._side + place[:, 0]

    @cached_property
    def _centroids(self) -> tuple[float, Any, Int[np.ndarray, " s"]]:
        """The largest distance of a corner to a centroid, the centroids of the triangles in a tree, and the triangle
        that each belongs to: those much larger than others are cut in four, again and again."""
        from scipy.spatial import cKDTree

        corners, parents, finished = self.corners, np.arange(len(self.corners)), []
        limit = 1.5 * float(np.median(_radii(corners)))
        for _ in range(_CUTS):
            large = _radii(corners) > limit
            finished.append((corners[~large], parents[~large]))
            a, b, c = np.moveaxis(corners[large], 1, 0)
            ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
            quarters = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
            corners = np.concatenate([np.stack(each, axis=1) for each in quarters])
            parents = np.tile(parents[large], 4)
        finished.append((corners, parents))
        all_corners, all_parents = (np.concatenate(each) for each in zip(*finished, strict=True))
        return float(_radii(all_corners).max()), cKDTree(all_corners.mean(axis=1)), all_parents

    def check_closed(self, what: str) -> None:
        """Raise unless every edge belongs to two triangles that run along it in opposite directions."""
        edges = np.concatenate([self.faces[:, [0, 1]], self.faces[:, [1, 2]], self.faces[:, [2, 0]]])
        forth = {tuple(edge) for edge in edges.tolist()}
        open_edges = sum((b, a) not in forth for a, b in forth)
        if open_edges or len(forth) < len(edges):
            raise DomainError(
                f"{what} is not a closed surface: {open_edges} of {len(edges)} edges belong to one triangle only, or "
                "triangles overlap. Close its holes in the program that made it."
            )


def _radii(corners: Float[np.ndarray, "n 3 3"]) -> Float[np.ndarray, " n"]:
    """The largest distance of a corner of each triangle to its centroid."""
    return np.linalg.norm(corners - corners.mean(axis=1, keepdims=True), axis=2).max(axis=1)


def _along_a_curve(points: Points) -> Int[np.ndarray, " n"]:
    """The order of points along a space-filling curve, by the interleaved bits of their coordinates."""
    low, high = points.min(axis=0), points.max(axis=0)
    cells = ((points - low) / np.maximum(high - low, 1e-300) * (2**_MORTON_BITS - 1)).astype(np.int64)
    code = np.zeros(len(points), dtype=np.int64)
    for bit in range(_MORTON_BITS):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")


def _squared_distance(x: Points, corners: Float[np.ndarray, "n 3 3"]) -> Vector:
    """The squared distance of each point to its triangle."""
    a, b, c = np.moveaxis(corners, 1, 0)
    best = np.full(len(x), np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        along = end - start
        t = np.sum((x - start) * along, axis=1) / np.sum(along**2, axis=1)
        best = np.minimum(best, np.sum((x - start - np.clip(t, 0, 1)[:, None] * along) ** 2, axis=1))
    cross = np.cross(b - a, c - a)
    normal = cross / np.linalg.norm(cross, axis=1, keepdims=True)
    height = np.sum((x - a) * normal, axis=1)
    foot = x - height[:, None] * normal
    above = np.ones(len(x), dtype=bool)
    for start, end in ((a, b), (b, c), (c, a)):
        above &= np.sum(np.cross(end - start, foot - start) * normal, axis=1) >= 0
    return np.where(above, height**2, best)


def _is_above(
    height: Vector, at: Float[np.ndarray, "n 2"], corners: Float[np.ndarray, "n 3 3"], normals: Normals
) -> Mask:
    """Whether a vertical line upwards from each point, at `at` and a height, crosses its triangle."""
    sides = []
    for i in range(3):
        start, end = corners[:, i, :2], corners[:, (i + 1) % 3, :2]
        along, away = end - start, at - start
        sides.append(along[:, 0] * away[:, 1] - along[:, 1] * away[:, 0])
    signs = np.stack(sides) > 0
    within = signs.all(axis=0) | ~signs.any(axis=0)
    upright = np.abs(normals[:, 2]) > 1e-14
    slope = np.sum(normals[:, :2] * (at - corners[:, 0, :2]), axis=1) / np.where(upright, normals[:, 2], 1.0)
    return within & upright & (corners[:, 0, 2] - slope > height)
