"""Details that are small beside the rest of the data, in all kinds of terms, and units of length."""

import jax
import jax.numpy as jnp
import numpy as np
from collection import kind
from narrow import LINE, PI, width_of
from scipy.special import erf
from wellposed import SQUARE, dirichlet, waves

import pdofm as pf


def minus_laplacian(u, x):
    return -pf.laplacian(u)(x)


def twice(x, at, width):
    """The function whose negative second derivative is a bump of integral 1."""
    s = (x - at) / width
    return -0.5 * width * (s * erf(s) + np.exp(-(s**2)) / PI**0.5)


@kind(6)
def small_bumps_line(rng):
    """A smooth source with a bump whose integral is small."""
    at, width, size, k = rng.uniform(0.1, 0.9), width_of(rng, -3.3, -1.5), 10 ** rng.uniform(-6, -1), rng.uniform(1, 9)
    bump = lambda x: jnp.exp(-(((x[0] - at) / width) ** 2)) / (width * PI**0.5)
    source = lambda x: k**2 * jnp.sin(k * x[0]) + size * bump(x)
    once = lambda x: size * twice(x, at, width) + np.sin(k * x)
    problem = pf.Problem(LINE, minus_laplacian, source, [pf.Dirichlet(0.0)])
    return problem, lambda p: once(p[:, 0]) - once(0.0) * (1 - p[:, 0]) - once(1.0) * p[:, 0]


@kind(5)
def small_needles(rng):
    """Boundary data that are smooth but for a small needle."""
    width, at, size = width_of(rng, -2.7, -1.5), rng.uniform(0.2, 0.8), 10 ** rng.uniform(-4, -1)
    smooth = lambda x: jnp.exp(x[0]) * jnp.sin(x[1] + 1)
    needle = lambda x: jnp.where(x[1] < 1e-12, size * jnp.exp(-(((x[0] - at) / width) ** 2)), 0.0)
    value = lambda x: smooth(x) + needle(x)
    problem = pf.Problem(SQUARE, minus_laplacian, 0.0, [pf.Dirichlet(value)])
    n = np.arange(1, int(12 / width) + 1)
    weights = size * 2 * width * PI**0.5 * np.exp(-((n * PI * width / 2) ** 2)) * np.sin(n * PI * at)

    def truth(p):
        found = np.array(jax.vmap(smooth)(jnp.asarray(p)))
        for i in range(0, len(p), 100):
            x, y = p[i : i + 100, :1], p[i : i + 100, 1:]
            falls = np.exp(-n * PI * y) * (1 - np.exp(-2 * n * PI * (1 - y))) / (1 - np.exp(-2 * n * PI))
            found[i : i + 100] += (np.sin(n * PI * x) * falls) @ weights
        return found

    return problem, truth


@kind(4)
def robin_needles(rng):
    """A pole beside a disk, seen by Robin's data."""
    width, turn, size = 10 ** rng.uniform(-3, -1), rng.uniform(0, 2 * PI), 10 ** rng.uniform(-4, 0)
    pole = (1 + width) * np.array([np.cos(turn), np.sin(turn)])
    exact = lambda x: size * jnp.log(jnp.sum((x - pole) ** 2)) + x[0] * x[1]
    return pf.Problem(pf.Disk([0, 0], 1.0), minus_laplacian, conditions=[pf.Robin(2.0, 1.0)], exact=exact)


@kind(4)
def hot_spots(rng):
    """Heat that starts in a narrow spot."""
    a, start, at = rng.uniform(0.05, 1), 10 ** rng.uniform(-6, -2), rng.uniform(0.3, 0.7)
    spot = lambda x, t: jnp.exp(-((x[0] - at) ** 2) / (4 * a * (t + start))) * jnp.sqrt(start / (t + start))
    return pf.Problem(
        pf.SpaceTime(LINE, 0.2),
        lambda u, x, t: pf.dt(u)(x, t) - a * pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet()],
        exact=lambda x, t: spot(x, t) + x[0],
    )


@kind(5)
def weak_resonators(rng):
    """A coefficient that dips a little in a narrow place."""
    at, width, depth = rng.uniform(0.2, 0.8), width_of(rng, -3.3, -1.5), 10 ** rng.uniform(-2, 1)
    inverse = lambda x: 1 + depth * jnp.exp(-(((x[0] - at) / width) ** 2))
    flux = lambda u: lambda x: pf.grad(u)(x) / inverse(x)
    ends = [pf.Dirichlet(0.0, on=LINE.face(0, 0)), pf.Dirichlet(1.0, on=LINE.face(0, 1))]
    problem = pf.Problem(LINE, lambda u, x: -pf.div(flux(u))(x), 0.0, ends)
    through = lambda x: x + depth * width * PI**0.5 / 2 * (erf((x - at) / width) + erf(at / width))
    return problem, lambda p: through(p[:, 0]) / through(1.0)


@kind(4)
def kicks(rng):
    """u' = λ u and a kick."""
    rate, at, width, size = rng.uniform(-3, 3), rng.uniform(0.2, 0.8), width_of(rng, -3.5, -1.5), rng.uniform(-5, 0)
    return pf.Problem(
        LINE,
        lambda u, x: pf.partial(u, 0)(x) - rate * u(x),
        conditions=[pf.Dirichlet(on=LINE.face(0, 0))],
        exact=lambda x: jnp.exp(rate * x[0]) * (1 + 10**size * jax.scipy.special.erf((x[0] - at) / width)),
    )


@kind(4)
def local_bumps(rng):
    """ε²u'' - u = f: the solution is as narrow as its source, and its integral says nothing."""
    eps, at = 10 ** rng.uniform(-5, -3.5), rng.uniform(0.2, 0.8)
    width, size = 10 ** rng.uniform(-2.7, -1.5), 10 ** rng.uniform(-3, 0)
    exact = lambda x: jnp.cos(2 * x[0]) + size * jnp.exp(-(((x[0] - at) / width) ** 2))
    return dirichlet(LINE, lambda u, x: eps**2 * pf.laplacian(u)(x) - u(x), exact)


@kind(3)
def small_holes(rng):
    """A hole that is small beside the square."""
    radius, at = 10 ** rng.uniform(-3.5, -1), rng.uniform(0.3, 0.7, 2)
    exact = lambda x: jnp.log(jnp.sum((x - at) ** 2)) / np.log(radius) + x[0]
    return dirichlet(SQUARE - pf.Disk(at.tolist(), radius), minus_laplacian, exact)


@kind(3)
def large_boxes(rng):
    """Large units of length: the equation is small beside the values on the boundary."""
    length, exact = 10 ** rng.uniform(2, 8), waves(rng, 2)
    return dirichlet(pf.Box([0, 0], [length, length]), minus_laplacian, lambda x: exact(x / length))


@kind(4, is_well_posed=False)
def cauchy_lengths(rng):
    """Cauchy data for Laplace's equation in other units of length."""
    length, k = 10 ** rng.uniform(-4, 4), rng.uniform(1, 4)
    box = pf.Box([0, 0], [length, length])
    below, sides = box.face(1, 0), box.part("x0=lower", "x0=upper")
    return pf.Problem(
        box,
        minus_laplacian,
        conditions=[pf.Dirichlet(on=below), pf.Neumann(on=below), pf.Dirichlet(on=sides)],
        exact=lambda x: jnp.exp(k * x[0] / length) * jnp.cos(k * x[1] / length),
    )
