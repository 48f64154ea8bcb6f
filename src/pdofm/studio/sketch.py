"""Domains as they are drawn: a list of shapes, each added to what is there or cut out of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pdofm.domain import Box, Difference, Disk, Domain, Ellipse, Polygon, Union
from pdofm.studio.formula import FormulaError
from pdofm.studio.meaning import int_or

MOST_SHAPES, MOST_VERTICES = 60, 300
"""Shapes of a domain and vertices of a polygon, at most."""

FARTHEST = 1e6
"""The largest coordinate that a shape may have."""


@dataclass(frozen=True)
class Sketch:
    """A domain, and the Python that makes it."""

    domain: Domain
    code: str


def sketched(shapes: Any) -> Sketch:
    """The domain of a list of shapes such as ``{"kind": "disk", "cut": False, "numbers": [0, 0, 1]}``."""
    if not isinstance(shapes, list) or not 0 < len(shapes) <= MOST_SHAPES:
        raise FormulaError(f"A domain consists of 1 to {MOST_SHAPES} shapes; draw one first.")
    domain: Domain | None = None
    lines = []
    for number, shape in enumerate(shapes):
        kind, cut, numbers = _fields(shape, number)
        made, code = _made(kind, numbers, number)
        if domain is None:
            if cut:
                raise FormulaError("The first shape must be added: there is nothing yet to cut it out of.")
            domain = made
            lines.append(f"domain = {code}")
        else:
            domain = Difference(domain, made) if cut else Union(domain, made)
            lines.append(f"domain = domain {'-' if cut else '|'} {code}")
    assert domain is not None  # there is at least one shape
    return Sketch(domain, "\n".join(lines))


def _fields(shape: Any, number: int) -> tuple[str, bool, list[float]]:
    if not isinstance(shape, dict):
        raise FormulaError(f"Shape {number + 1} is not an object with a kind and numbers.")
    numbers = shape.get("numbers")
    if not isinstance(numbers, list) or not all(_is_number(each) for each in numbers):
        raise FormulaError(f"Shape {number + 1} needs numbers between -{FARTHEST:g} and {FARTHEST:g}.")
    return str(shape.get("kind")), bool(shape.get("cut")), [float(each) for each in numbers]


def _is_number(given: Any) -> bool:
    return (
        isinstance(given, int | float)
        and not isinstance(given, bool)
        and math.isfinite(given)
        and abs(given) <= FARTHEST
    )


def _made(kind: str, numbers: Sequence[float], number: int) -> tuple[Domain, str]:
    match kind, *numbers:
        case "rectangle", x0, y0, x1, y1:
            low, high = [min(x0, x1), min(y0, y1)], [max(x0, x1), max(y0, y1)]
            return Box(low, high), f"pf.Box({_shown(low)}, {_shown(high)})"
        case "disk", x, y, radius:
            return Disk([x, y], radius), f"pf.Disk({_shown([x, y])}, {int_or(radius)!r})"
        case "ellipse", x, y, a, b:
            return Ellipse([x, y], a, b), f"pf.Ellipse({_shown([x, y])}, {int_or(a)!r}, {int_or(b)!r})"
        case "polygon", *each if 6 <= len(each) <= 2 * MOST_VERTICES and len(each) % 2 == 0:
            vertices = [list(pair) for pair in zip(each[::2], each[1::2], strict=True)]
            return Polygon(vertices), f"pf.Polygon([{', '.join(map(_shown, vertices))}])"
    raise FormulaError(
        f"Shape {number + 1} is {kind[:20]!r} with {len(numbers)} numbers; expected a rectangle (two corners), a disk "
        f"(center, radius), an ellipse (center, half axes) or a polygon with 3 to {MOST_VERTICES} vertices."
    )


def _shown(numbers: Sequence[float]) -> str:
    return f"[{', '.join(repr(int_or(each)) for each in numbers)}]"
