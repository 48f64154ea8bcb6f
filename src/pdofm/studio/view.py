"""What the page draws: the outline and the parts of a domain, values on a grid, and where features are."""

import base64
import math
from typing import Any

import numpy as np

from pdofm._types import Points
from pdofm.domain import Domain
from pdofm.features import BoxPolynomials, Concatenate, CornerFunctions, Features, HoleFunctions
from pdofm.features.slabs import Slabs
from pdofm.output.section import Section
from pdofm.solving.solution import Solution

FINE, COARSE = 240, 64
"""Points along the longest side of a picture, and of one that follows a handle."""

PART_POINTS = 60
"""Points of the polyline that shows a smooth piece of the boundary."""


class Grid:
    """The points of a picture of a plane domain, perhaps at one time."""

    def __init__(self, domain: Domain, resolution: int):
        self.section = Section(domain, resolution=resolution)

    def points(self, time: float | None) -> Points:
        """Points inside of the domain, with time if there is one."""
        inside = self.section.points
        return inside if time is None else np.column_stack([inside, np.full(len(inside), time)])

    def picture(self, values: np.ndarray) -> dict[str, Any]:
        """Values at the points as an image, whose rows are at ascending y."""
        x, y = self.section.coordinates
        image = self.section.image(values).astype("<f4")
        finite = image[np.isfinite(image)]
        return {
            "shape": [len(y), len(x)],
            "bounds": [list(each) for each in self.section.bounds],
            "limits": [float(finite.min()), float(finite.max())] if finite.size else [0.0, 1.0],
            "values": base64.b64encode(image.tobytes()).decode(),
        }


def drawn(domain: Domain) -> dict[str, Any]:
    """A plane domain: its outline as closed curves, and every part with polylines and a place for its name."""
    parts = []
    for name in domain.boundary.names:
        lines = []
        for piece in domain.part(name).pieces:
            points, _ = piece.chart(np.linspace(0.0, 1.0, PART_POINTS + 1)[:, None])
            lines.append(np.round(points, 6).tolist())
        longest = max(lines, key=_length)
        parts.append({"name": name, "lines": lines, "at": longest[len(longest) // 2]})
    section = Section(domain, resolution=COARSE)
    return {
        "bounds": [list(each) for each in section.bounds],
        "loops": [np.round(loop, 6).tolist() for loop in section.loops],
        "parts": parts,
    }


def _length(line: list[list[float]]) -> float:
    return float(np.linalg.norm(np.diff(np.asarray(line), axis=0), axis=1).sum())


def where(features: Features) -> dict[str, Any]:
    """Where features are, in the plane: boxes, and points that functions are singular at or expanded around."""
    boxes: list[list[float]] = []
    points: list[list[float]] = []

    def collect(each: Features) -> None:
        match each:
            case Concatenate():
                for part in each.parts:
                    collect(part)
            case CornerFunctions():
                points.extend(np.asarray(each.apexes).tolist())
            case HoleFunctions():
                points.extend(np.asarray(each.centers)[:, :2].tolist())
            case BoxPolynomials():
                corners = np.concatenate([each.patches.lower[:, :2], each.patches.upper[:, :2]], axis=1)
                boxes.extend(corners.tolist())
            case Slabs():
                collect(each.spaces[-1])
            case _:
                boxes.append([*np.asarray(each.lower)[:2].tolist(), *np.asarray(each.upper)[:2].tolist()])

    collect(features)
    return {"boxes": boxes, "points": points}


def summary(solution: Solution, parts: int) -> dict[str, Any]:
    """What is known of a solution, in a form that JSON has."""
    stats = solution.stats
    return {
        "converged": bool(solution.converged),
        "reason": solution.reason,
        "estimate": finite(solution.error_estimate),
        "space": solution.space or type(solution.features).__name__,
        "features": int(solution.features.size),
        "rows": int(stats.rows),
        "seconds": round(sum(stats.seconds.values()), 3),
        "where": where(solution.features),
        "components": parts,
    }


def finite(number: float) -> float | None:
    """A number, or None where JSON has none."""
    return float(number) if math.isfinite(number) else None
