"""Problems whose solutions are local, and bodies of several materials: what contenders must know of them."""

from collections.abc import Callable

import pdofm as pf
from pdofm.zoo import local, materials
from pdofm.zoo.local import FRONT_CENTER
from pdofm.zoo.local import HOLE_CENTERS as CENTERS
from pdofm.zoo.local import HOLE_RADIUS as RADIUS
from pdofm.zoo.local import HOLE_WELLS as WELLS

__all__ = [
    "CENTERS",
    "DISK",
    "ELLIPSE",
    "FRONT",
    "LOCAL",
    "PEAK_CENTER",
    "PEAK_WIDTH",
    "QUARTER",
    "QUARTER_EXPONENT",
    "RADIUS",
    "WELLS",
    "stated",
]

PEAK_CENTER, PEAK_WIDTH = (0.5, 0.5), 0.02
"""Where the peak is, and its width: narrower than that of the zoo."""

FRONT = (50.0, FRONT_CENTER[0], 0.7)
"""Steepness of the front, both coordinates of the center of its circle, and the radius."""

DISK, ELLIPSE = (0.5, 400.0), (0.6, 0.25, 20.0)
"""The radius or the half-axes of an inclusion, and its conductivity in a plate of conductivity 1."""

QUARTER, QUARTER_EXPONENT = 50.0, materials.corner_exponent(50.0)
"""The conductivity of a quarter of a square, and the exponent of the solution at its corner."""

LOCAL: dict[str, Callable[[], pf.Problem]] = {
    "four-holes": local.four_holes,
    "peak": lambda: local.peak(PEAK_WIDTH, PEAK_CENTER),
    "front": lambda: local.front(FRONT[0], FRONT[2]),
    "round-inclusion": lambda: materials.round_inclusion(1.0, DISK[1], DISK[0]),
    "elliptic-inclusion": lambda: materials.elliptic_inclusion(*ELLIPSE),
    "interface-corner": lambda: materials.interface_corner(QUARTER),
    "corner-in-boxes": lambda: pf.zoo.get("poisson-corner"),
}
"""The problems by name. The last one is that of the zoo; there this package uses boxes instead of corner functions."""


def stated(name: str) -> pf.Problem:
    """A problem of this file, or of the zoo."""
    return LOCAL[name]() if name in LOCAL else pf.zoo.get(name)
