"""Details of data and solutions that may fall between the points."""

import jax
import jax.numpy as jnp
import numpy as np
from collection import kind
from scipy.special import erf, exp1
from wellposed import SQUARE, dirichlet, waves

import pdofm as pf

PI = np.pi
LINE = pf.Interval(0, 1)


def width_of(rng, finest=-3.5, widest=-1.0):
    return 10 ** rng.uniform(finest, widest)


@kind(8)
def peaks_line(rng):
    """A peak of the solution on a line."""
    at, width, rest = rng.uniform(0.1, 0.9), width_of(rng), waves(rng, 1, 6.0)
    exact = lambda x: rest(x) + jnp.exp(-(((x[0] - at) / width) ** 2))
    return dirichlet(LINE, lambda u, x: -pf.laplacian(u)(x), exact)


@kind(6)
def peaks(rng):
    """A peak of the solution on a square."""
    at, width, rest = rng.uniform(0.1, 0.9, 2), width_of(rng, -2.5), waves(rng, 2, 6.0)
    exact = lambda x: rest(x) + jnp.exp(-jnp.sum((x - at) ** 2) / width**2)
    return dirichlet(SQUARE, lambda u, x: -pf.laplacian(u)(x), exact)


@kind(8)
def bumps_line(rng):
    """A source of integral 1 in a narrow bump: missed, the solution is zero."""
    at, width = rng.uniform(0.1, 0.9), width_of(rng, -3.3)
    source = lambda x: jnp.exp(-(((x[0] - at) / width) ** 2)) / (width * PI**0.5)
    problem = pf.Problem(LINE, lambda u, x: -pf.laplacian(u)(x), source, [pf.Dirichlet(0.0)])

    def once(x):
        s = (x - at) / width
        return -0.5 * width * (s * erf(s) + np.exp(-(s**2)) / PI**0.5)

    return problem, lambda p: once(p[:, 0]) - once(0.0) * (1 - p[:, 0]) - once(1.0) * p[:, 0]


@kind(6)
def bumps(rng):
    """A source of integral 1 in a narrow bump on a disk, beside a smooth one."""
    at, width = rng.uniform(-0.4, 0.4, 2), width_of(rng, -2.7)
    source = lambda x: jnp.exp(-jnp.sum((x - at) ** 2) / width**2) / (PI * width**2) + 1.0
    image = at / (at @ at)

    def truth(p):
        s = np.sum((p - at) ** 2, axis=1)
        free = -(np.log(s) + exp1(np.maximum(s / width**2, 1e-300))) / (4 * PI)
        mirrored = np.log(np.sum((p - image) ** 2, axis=1) * (at @ at)) / (4 * PI)
        return free + mirrored + (1 - np.sum(p**2, axis=1)) / 4

    return pf.Problem(pf.Disk([0, 0], 1.0), lambda u, x: -pf.laplacian(u)(x), source, [pf.Dirichlet(0.0)]), truth


@kind(8)
def boundary_bumps(rng):
    """A harmonic function with a pole just outside: the boundary data are a narrow bump."""
    width, at = width_of(rng, -3.3), rng.uniform(0.2, 0.8)
    value = lambda x: width * (x[1] + width) / ((x[0] - at) ** 2 + (x[1] + width) ** 2) + x[0] * x[1]
    problem = pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x), 0.0, [pf.Dirichlet(value)])
    return problem, lambda p: np.asarray(jax.vmap(value)(jnp.asarray(p)))


@kind(5)
def disk_bumps(rng):
    """The same on a disk."""
    width, turn = width_of(rng, -3.0), rng.uniform(0, 2 * PI)
    pole = (1 + width) * np.array([np.cos(turn), np.sin(turn)])
    value = lambda x: 0.2 * jnp.log(jnp.sum((x - pole) ** 2)) + jnp.cos(3 * x[0])
    source = lambda x: 9 * jnp.cos(3 * x[0])
    problem = pf.Problem(pf.Disk([0, 0], 1.0), lambda u, x: -pf.laplacian(u)(x), source, [pf.Dirichlet(value)])
    return problem, lambda p: np.asarray(jax.vmap(value)(jnp.asarray(p)))


@kind(5)
def needles(rng):
    """Boundary data that are zero but in a needle."""
    width, at = width_of(rng, -3.0, -2.0), rng.uniform(0.2, 0.8)
    value = lambda x: jnp.where(x[1] < 1e-12, jnp.exp(-(((x[0] - at) / width) ** 2)), 0.0)
    problem = pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x), lambda x: jnp.sin(PI * x[0]), [pf.Dirichlet(value)])
    n = np.arange(1, int(12 / width) + 1)
    weights = 2 * width * PI**0.5 * np.exp(-((n * PI * width / 2) ** 2)) * np.sin(n * PI * at)
    smooth = lambda p: np.sin(PI * p[:, 0]) * (1 - np.cosh(PI * (p[:, 1] - 0.5)) / np.cosh(PI / 2)) / PI**2

    def truth(p):
        found = smooth(p)
        for i in range(0, len(p), 100):
            x, y = p[i : i + 100, :1], p[i : i + 100, 1:]
            falls = np.exp(-n * PI * y) * (1 - np.exp(-2 * n * PI * (1 - y))) / (1 - np.exp(-2 * n * PI))
            found[i : i + 100] += (np.sin(n * PI * x) * falls) @ weights
        return found

    return problem, truth


@kind(6)
def fast(rng):
    """Sources that oscillate so fast that the points may all see the same phase."""
    k = rng.integers(50, 2000)
    exact = lambda x: jnp.sin(2 * PI * k * x[0]) / k + jnp.sin(3 * x[0])
    return dirichlet(LINE, lambda u, x: -pf.laplacian(u)(x), exact)


@kind(5)
def resonators(rng):
    """A coefficient that differs from 1 in a narrow place only: -(a u')' = 0 there is a steep slope."""
    at, width, depth = rng.uniform(0.2, 0.8), width_of(rng, -3.3, -1.5), 10 ** rng.uniform(1, 3)
    inverse = lambda x: 1 + depth * jnp.exp(-(((x[0] - at) / width) ** 2))
    flux = lambda u: lambda x: pf.grad(u)(x) / inverse(x)
    ends = [pf.Dirichlet(0.0, on=LINE.face(0, 0)), pf.Dirichlet(1.0, on=LINE.face(0, 1))]
    problem = pf.Problem(LINE, lambda u, x: -pf.div(flux(u))(x), 0.0, ends)
    through = lambda x: x + depth * width * PI**0.5 / 2 * (erf((x - at) / width) + erf(at / width))
    return problem, lambda p: through(p[:, 0]) / through(1.0)


@kind(5)
def wells(rng):
    """A narrow well of a reaction: -u'' + q(x) u = f, with a q that is seen in few places."""
    at, width, rest = rng.uniform(0.2, 0.8), width_of(rng, -3.3, -1.5), waves(rng, 1, 4.0)
    well = lambda x: 3 / width * jnp.exp(-(((x[0] - at) / width) ** 2))
    # The solution is rest + a kink that is as wide as the well.
    kink = lambda x: jnp.sqrt((x[0] - at) ** 2 + width**2)
    return dirichlet(LINE, lambda u, x: -pf.laplacian(u)(x) + well(x) * u(x), lambda x: rest(x) + kink(x))


@kind(4)
def fronts(rng):
    """A travelling front in space-time, narrow."""
    width, strip = width_of(rng, -2.5), pf.SpaceTime(LINE, 1.0)
    return pf.Problem(
        strip,
        lambda u, x, t: pf.dt(u)(x, t) - 0.1 * pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet()],
        exact=lambda x, t: jnp.tanh((x[0] - 0.3 - 0.4 * t) / width),
    )


@kind(4)
def sparks(rng):
    """A source that acts for a short time only."""
    when, width, rod = rng.uniform(0.2, 0.8), width_of(rng, -3.0, -1.5), pf.SpaceTime(LINE, 1.0)
    exact = lambda x, t: jnp.sin(PI * x[0]) * (1 + jax.scipy.special.erf((t - when) / width) * x[0])
    return pf.Problem(
        rod,
        lambda u, x, t: pf.dt(u)(x, t) - 0.05 * pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet()],
        exact=exact,
    )
