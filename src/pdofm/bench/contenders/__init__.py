"""Contenders: this package and others that a user could choose, each used as well as possible on the same problems.

Every module defines `PACKAGES`, whose versions are reported; `ENVIRONMENT`, the environment variables of its process;
and ``levels(problem)``, which returns choices of parameters from cheap to accurate. Some define ``sources()``, which
solves one problem for many sources. The other packages are an optional extra: ``pip install 'pdofm[peers]'``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from jaxtyping import Float
from numpy import ndarray

PROBLEMS = (
    *("poisson-square", "poisson-lshape", "poisson-annulus", "poisson-cube", "kovasznay", "poisson-corner"),
    *("four-holes", "peak", "front", "corner-in-boxes"),
    *("round-inclusion", "elliptic-inclusion", "interface-corner"),
)
"""The problems that are solved, by their names in the zoo, and those of `pdofm.bench.contenders.local`."""

SEED = 2027
"""The seed of the points at which errors are measured, and of further sources; contenders do not know them. What is
random in a contender has its own default seed, which is 0 in this package."""

VISCOSITY = 1 / 40
RATE = 1 / (2 * VISCOSITY) - sqrt(1 / (4 * VISCOSITY**2) + 4 * pi**2)
"""Viscosity of Kovasznay's flow, and the rate at which it decays along the stream."""

NEWTON_STEPS = 20
"""The largest number of Newton steps for Kovasznay's flow; fewer are needed."""

LAST_STEP = 1e-9
"""Newton's iteration ends after a step of this size, relative to the solution. The error is then far smaller: about the
square of the step, or, if the Jacobian is kept, a small fraction of it."""

Evaluate = Callable[[Float[ndarray, "n d"]], Float[ndarray, " n"] | Float[ndarray, "n C"]]
"""Evaluates a solution at points."""


Sources = Callable[[Float[ndarray, "k 2"]], Evaluate]
"""Solves for the sources of k frequencies and returns the last solution, which is valid until the next call."""


@dataclass(frozen=True)
class Level:
    """A choice of parameters. ``solve()`` does all the work, from the mesh or the points to the solution."""

    name: str
    solve: Callable[[], Evaluate]
    repeats: int = 5


def coordinates(points: Float[ndarray, "n d"]) -> list[ndarray]:
    """The coordinates of points, as one array for each axis."""
    return [points[:, axis] for axis in range(points.shape[1])]


def swelling(points: Float[ndarray, "n 2"], frequencies: Float[ndarray, "k 2"]) -> Float[ndarray, "n k"]:
    """The exact solutions (1 - x²)(1 - y²) exp(ax + by) on the square, for sources of frequencies (a, b)."""
    return np.prod(1 - points**2, axis=1)[:, None] * np.exp(points @ frequencies.T)


def kovasznay_velocity(x: ndarray, y: ndarray) -> tuple[ndarray, ndarray]:
    """The exact velocity of Kovasznay's flow, which is given on the boundary; the pressure vanishes at the origin."""
    growth = np.exp(RATE * x)
    return 1 - growth * np.cos(2 * pi * y), RATE / (2 * pi) * growth * np.sin(2 * pi * y)
