"""Ways to solve the same problems: this package and others that a user could take instead, each at its best.

Every module here has `PACKAGES`, whose versions are reported; `ENVIRONMENT`, the variables that its process starts
with; and ``levels(problem)``, from cheap to accurate. Some have ``sources()``, for many sources of one problem. The
other packages are an optional extra: ``pip install 'pdofm[peers]'``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from jaxtyping import Float
from numpy import ndarray

PROBLEMS = ("poisson-square", "poisson-lshape", "poisson-annulus", "poisson-cube", "kovasznay", "poisson-corner")
"""What is solved, by its name in the zoo."""

SEED = 2027
"""Of the points and the sources that contenders are judged by, which they do not know. What is random in themselves has
the seed that is their default, 0 in this package."""

VISCOSITY = 1 / 40
RATE = 1 / (2 * VISCOSITY) - sqrt(1 / (4 * VISCOSITY**2) + 4 * pi**2)
"""Of Kovasznay's flow, the second one along the stream."""

Evaluate = Callable[[Float[ndarray, "n d"]], Float[ndarray, " n"] | Float[ndarray, "n C"]]
"""The solution at points."""


Sources = Callable[[Float[ndarray, "k 2"]], Evaluate]
"""Solves for the sources of k frequencies, and returns the solution for the last one, until it is called again."""


@dataclass(frozen=True)
class Level:
    """One choice of parameters: ``solve()`` does all the work, from the mesh or the points to the solution."""

    name: str
    solve: Callable[[], Evaluate]
    repeats: int = 5


def coordinates(points: Float[ndarray, "n d"]) -> list[ndarray]:
    """One array per axis."""
    return [points[:, axis] for axis in range(points.shape[1])]


def swelling(points: Float[ndarray, "n 2"], frequencies: Float[ndarray, "k 2"]) -> Float[ndarray, "n k"]:
    """(1 - x²)(1 - y²) exp(ax + by), the exact solutions on the square for sources of frequencies (a, b)."""
    return np.prod(1 - points**2, axis=1)[:, None] * np.exp(points @ frequencies.T)


def kovasznay_velocity(x: ndarray, y: ndarray) -> tuple[ndarray, ndarray]:
    """Its exact values, given on the boundary; the exact pressure is zero at the origin."""
    growth = np.exp(RATE * x)
    return 1 - growth * np.cos(2 * pi * y), RATE / (2 * pi) * growth * np.sin(2 * pi * y)
