"""Plane domains from files: polygons in GeoJSON, outlines in SVG."""

from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from pdofm.domain.base import Domain
from pdofm.domain.polygon import Polygon
from pdofm.errors import DomainError


def read_geojson(path: str | PathLike) -> Domain:
    """The polygons of a GeoJSON file, holes included; several of them become a union. Coordinates are taken for those
    of a plane."""
    import shapely

    text = _text(path, "GeoJSON")
    try:
        found = shapely.from_geojson(text)
    except shapely.errors.ShapelyError as error:
        raise DomainError(f"{str(path)!r} is not valid GeoJSON: {error}. Export polygons as GeoJSON.") from error
    return _domain(found, path)


def read_svg(path: str | PathLike, *, segments: int = 64) -> Domain:
    """The inside of the closed paths of an SVG file, in its units, with the second axis upwards. Paths inside of others
    bound holes.

    Args:
        path: the file; the elements `path`, `rect`, `circle`, `ellipse` and `polygon` are read.
        segments: sides of the polygon that stands for each curve of a path. Its distance from the curve is about
            1/segments² of its size, which limits the digits of a solution; draw circles by `Disk` instead.
    """
    import shapely
    from fontTools.pens.recordingPen import RecordingPen
    from fontTools.svgLib.path import SVGPath

    try:
        pen = RecordingPen()
        SVGPath.fromstring(_text(path, "SVG").encode()).draw(pen)
    except (ElementTree.ParseError, ValueError, KeyError, TypeError) as error:
        raise DomainError(f"{str(path)!r} cannot be read as SVG: {error}. Save it as plain SVG.") from error
    rings = [ring for ring in _rings(pen.value, segments) if len(ring) >= 3]
    # Even-odd: a point inside of two paths lies in a hole.
    return _domain(reduce(shapely.symmetric_difference, map(shapely.Polygon, rings), shapely.Polygon()), path)


def _rings(commands: list[tuple[str, tuple[Any, ...]]], segments: int) -> list[np.ndarray]:
    """The subpaths of recorded commands of a pen, as polygons with the second axis upwards."""
    rings: list[list[tuple[float, float]]] = []
    for name, points in commands:
        if name == "moveTo":
            rings.append([points[0]])
        elif name == "lineTo":
            rings[-1].append(points[0])
        elif name in ("curveTo", "qCurveTo"):
            rings[-1] += _bezier(np.array([rings[-1][-1], *points]), segments)
    found = []
    for ring in rings:
        vertices = np.array(ring, dtype=np.float64) * [1.0, -1.0]
        distinct = np.any(vertices != np.roll(vertices, 1, axis=0), axis=1)
        found.append(vertices[distinct])
    return found


def _bezier(control: np.ndarray, segments: int) -> list[tuple[float, float]]:
    """Points of a Bézier curve after its start, by de Casteljau's algorithm."""
    t = np.linspace(0.0, 1.0, segments + 1)[1:, None, None]
    points = np.broadcast_to(control, (segments, *control.shape))
    while points.shape[1] > 1:
        points = (1 - t) * points[:, :-1] + t * points[:, 1:]
    return [(float(x), float(y)) for x, y in points[:, 0]]


def _domain(geometry: Any, path: str | PathLike) -> Domain:
    import shapely

    parts = [
        part
        for each in np.ravel(shapely.get_parts(geometry))
        for part in np.ravel(shapely.get_parts(each))
        if part.geom_type == "Polygon" and not part.is_empty
    ]
    if not parts:
        raise DomainError(f"{str(path)!r} has no polygon; expected at least one closed outline.")
    polygons = [
        Polygon(shapely.get_coordinates(part.exterior), [shapely.get_coordinates(ring) for ring in part.interiors])
        for part in parts
    ]
    return reduce(lambda first, second: first | second, polygons)


def _text(path: str | PathLike, kind: str) -> str:
    if not Path(path).is_file():
        raise DomainError(f"There is no file {str(path)!r}. Give the path of a {kind} file.")
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DomainError(f"{str(path)!r} is not a text; expected {kind}.") from error
