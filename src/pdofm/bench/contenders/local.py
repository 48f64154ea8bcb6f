"""Problems whose solutions are local: what contenders must know of them."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

import pdofm as pf

CENTERS = [(a, b) for a in (-0.3, 0.3) for b in (-0.3, 0.3)]
RADIUS = 0.1
"""Centers and radius of the round holes in a square."""

WELLS = [(a + 0.03, b - 0.02) for a, b in CENTERS]
"""Where the sources are in the holes: off their centers, so that the solution is in no contender's space."""

PEAK_CENTER, PEAK_WIDTH = (0.5, 0.5), 0.02
"""Where the peak is, and its width."""

FRONT = (50.0, -0.05, 0.7)
"""Steepness of the front, both coordinates of the center of its circle, and the radius."""


def _poisson(domain: pf.Domain, exact: Callable[[Array], Array], source: float | None = None) -> pf.Problem:
    return pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), source=source, conditions=[pf.Dirichlet()], exact=exact)


def _holes() -> pf.Problem:
    def exact(x: Array) -> Array:
        wells = [(1 + 0.3 * i) * jnp.log(jnp.linalg.norm(x - jnp.array(c))) for i, c in enumerate(WELLS)]
        return sum(wells, x[0] ** 2 - x[1] ** 2)

    domain: pf.Domain = pf.Box([-0.5, -0.5], [0.5, 0.5])
    for center in CENTERS:
        domain = domain - pf.Disk(center, RADIUS)
    return _poisson(domain, exact, 0.0)


def _peak() -> pf.Problem:
    def exact(x: Array) -> Array:
        return jnp.exp(-jnp.sum((x - jnp.array(PEAK_CENTER)) ** 2) / PEAK_WIDTH**2)

    return _poisson(pf.Box([0, 0], [1, 1]), exact)


def _front() -> pf.Problem:
    steepness, center, radius = FRONT

    def exact(x: Array) -> Array:
        return jnp.arctan(steepness * (jnp.linalg.norm(x - center) - radius))

    return _poisson(pf.Box([0, 0], [1, 1]), exact)


LOCAL: dict[str, Callable[[], pf.Problem]] = {
    "four-holes": _holes,
    "peak": _peak,
    "front": _front,
    "corner-in-boxes": lambda: pf.zoo.get("poisson-corner"),
}
"""The problems by name. The last one is that of the zoo; there this package uses boxes instead of corner functions."""


def stated(name: str) -> pf.Problem:
    """A problem of this file, or of the zoo."""
    return LOCAL[name]() if name in LOCAL else pf.zoo.get(name)
