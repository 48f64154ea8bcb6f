"""Problems whose solutions are local: what contenders must know of them."""

from collections.abc import Callable

import pdofm as pf
from pdofm.zoo import local
from pdofm.zoo.local import FRONT_CENTER
from pdofm.zoo.local import HOLE_CENTERS as CENTERS
from pdofm.zoo.local import HOLE_RADIUS as RADIUS
from pdofm.zoo.local import HOLE_WELLS as WELLS

__all__ = ["CENTERS", "FRONT", "LOCAL", "PEAK_CENTER", "PEAK_WIDTH", "RADIUS", "WELLS", "stated"]

PEAK_CENTER, PEAK_WIDTH = (0.5, 0.5), 0.02
"""Where the peak is, and its width: narrower than that of the zoo."""

FRONT = (50.0, FRONT_CENTER[0], 0.7)
"""Steepness of the front, both coordinates of the center of its circle, and the radius."""

LOCAL: dict[str, Callable[[], pf.Problem]] = {
    "four-holes": local.four_holes,
    "peak": lambda: local.peak(PEAK_WIDTH, PEAK_CENTER),
    "front": lambda: local.front(FRONT[0], FRONT[2]),
    "corner-in-boxes": lambda: pf.zoo.get("poisson-corner"),
}
"""The problems by name. The last one is that of the zoo; there this package uses boxes instead of corner functions."""


def stated(name: str) -> pf.Problem:
    """A problem of this file, or of the zoo."""
    return LOCAL[name]() if name in LOCAL else pf.zoo.get(name)
