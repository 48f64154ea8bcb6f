"""Problems in unusual units."""

import jax.numpy as jnp
import numpy as np
from collection import kind
from wellposed import SQUARE, dirichlet, waves

import pdofm as pf


@kind(8)
def sizes(rng):
    """Solutions that are very large or very small."""
    size, exact = float(10.0 ** rng.choice([-300, -200, -100, -30, 30, 100, 200, 290])), waves(rng, 2)
    return dirichlet(SQUARE, lambda u, x: -pf.laplacian(u)(x), lambda x: size * exact(x))


@kind(6)
def offsets(rng):
    """A constant that hides the solution."""
    offset, exact = 10 ** rng.uniform(1, 8), waves(rng, 2)
    return dirichlet(SQUARE, lambda u, x: -pf.laplacian(u)(x), lambda x: offset + exact(x))


@kind(6)
def lengths(rng):
    """Domains in other units of length."""
    length, exact = 10 ** rng.uniform(-9, 9), waves(rng, 2)
    box = pf.Box([0, 0], [length, length])
    return dirichlet(box, lambda u, x: -pf.laplacian(u)(x), lambda x: exact(x / length))


@kind(6)
def far(rng):
    """Small domains far from the origin: the coordinates themselves have few digits left."""
    length = 10 ** rng.uniform(-9, -2)
    exact, at = waves(rng, 2), np.array([1.0, 1.0])
    box = pf.Box(at, at + length)
    return dirichlet(box, lambda u, x: -pf.laplacian(u)(x), lambda x: exact((x - at) / length))


@kind(5)
def slender(rng):
    """Boxes whose sides differ much."""
    ratio, exact = 10 ** rng.uniform(-5, -1), waves(rng, 2, 5.0)
    box = pf.Box([0, 0], [1, ratio])
    return dirichlet(box, lambda u, x: -pf.laplacian(u)(x), lambda x: exact(jnp.stack([x[0], x[1] / ratio])))


@kind(8)
def components(rng):
    """A system of two unknowns that differ by many orders of magnitude, and are coupled."""
    small = 10 ** rng.uniform(-15, -3)
    first, second = waves(rng, 2), waves(rng, 2)
    return pf.Problem(
        SQUARE,
        lambda u, x: (-pf.laplacian(u.a)(x) + u.b(x), -pf.laplacian(u.b)(x) + small * u.a(x)),
        conditions=[pf.Dirichlet()],
        unknowns={"a": 1, "b": 1},
        exact={"a": first, "b": lambda x: small * second(x)},
    )


@kind(5)
def coefficients(rng):
    """Equations multiplied by large or small numbers."""
    factor, exact = 10 ** rng.uniform(-12, 12), waves(rng, 2)
    return dirichlet(SQUARE, lambda u, x: factor * (-pf.laplacian(u)(x) + u(x)), exact)


@kind(4)
def times(rng):
    """Evolutions in other units of time."""
    end = 10 ** rng.uniform(-8, 6)
    rod, exact = pf.SpaceTime(pf.Interval(0, 1), end), waves(rng, 2, 4.0)
    return pf.Problem(
        rod,
        lambda u, x, t: end * pf.dt(u)(x, t) - 0.3 * pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet()],
        exact=lambda x, t: exact(jnp.append(x, t / end)),
    )
