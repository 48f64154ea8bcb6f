"""Problems that have one solution, which depends on its data as it should."""

import jax.numpy as jnp
import numpy as np
from collection import kind

import pdofm as pf

PI = np.pi
SQUARE = pf.Box([0, 0], [1, 1])


def waves(rng, dim, highest=3.0, terms=3):
    """A smooth random function of the point."""
    k = rng.uniform(-highest, highest, (terms, dim))
    phase, size = rng.uniform(0, 2 * PI, terms), rng.uniform(0.3, 1.0, terms)
    return lambda x: jnp.sum(size * jnp.sin(jnp.asarray(k) @ x + phase))


def in_time(function):
    return lambda x, t: function(jnp.append(x, t))


def shape(rng):
    """A random domain in the plane."""
    side, turn = rng.uniform(0.5, 2.0), rng.uniform(0, PI)
    return (
        pf.Box([-1, 0], [0, side]),
        pf.Disk(rng.uniform(-1, 1, 2).tolist(), side),
        pf.Ellipse([0, 0], 1.0, side),
        pf.Polygon([[0, 0], [side, 0.2], [0.3, 1.2]]),
        pf.Annulus([0, 0], 0.4, 0.4 + side),
        pf.Box([0, 0], [1, side]).rotated(turn),
        pf.Box([-1, -1], [1, 1]) - pf.Disk([0.2, 0.1], 0.3),
        pf.Polygon([[-1, -1], [1, -1], [1, 0], [0, 0], [0, 1], [-1, 1]]),
    )[rng.integers(8)]


def dirichlet(domain, operator, exact, **more):
    return pf.Problem(domain, operator, conditions=[pf.Dirichlet()], exact=exact, **more)


@kind(8)
def shapes(rng):
    """Poisson's equation with a smooth solution on many shapes."""
    return dirichlet(shape(rng), lambda u, x: -pf.laplacian(u)(x), waves(rng, 2, 6.0))


@kind(5)
def screened(rng):
    """ε²Δu = u on a square: layers at the sides as wide as ε."""
    eps = 10 ** rng.uniform(-2.5, -0.5)
    exact = lambda x: jnp.exp(-x[0] / eps) + jnp.exp((x[1] - 1) / eps) + 0.3 * x[0]
    return dirichlet(SQUARE, lambda u, x: eps**2 * pf.laplacian(u)(x) - u(x), exact)


@kind(6)
def helmholtz(rng):
    """Waves on a square, with a condition that absorbs them."""
    k, angle = rng.uniform(3, 40), rng.uniform(0, PI)
    direction = jnp.array([np.cos(angle), np.sin(angle)])
    return pf.Problem(
        SQUARE,
        lambda u, x: -pf.laplacian(u)(x) - k**2 * u(x),
        conditions=[pf.Robin(-1j * k, 1.0)],
        exact=lambda x: jnp.exp(1j * k * (direction @ x)),
        dtype=complex,
    ), lambda p: np.stack([np.cos(k * p @ np.asarray(direction)), np.sin(k * p @ np.asarray(direction))], axis=1)


@kind(6)
def convection(rng):
    """-ε u'' + u' = f on an interval with its layer at the right end."""
    eps = 10 ** rng.uniform(-4, -1)
    exact = lambda x: jnp.exp((x[0] - 1) / eps) + jnp.sin(3 * x[0])
    return dirichlet(pf.Interval(0, 1), lambda u, x: -eps * pf.laplacian(u)(x) + pf.partial(u, 0)(x), exact)


@kind(4)
def convection_plane(rng):
    """Convection and diffusion on a square, across a slanted layer inside."""
    eps, angle = 10 ** rng.uniform(-2.3, -1), rng.uniform(0, PI)
    b = jnp.array([np.cos(angle), np.sin(angle)])
    across = jnp.array([-np.sin(angle), np.cos(angle)])
    exact = lambda x: jnp.tanh((across @ (x - 0.5)) / eps**0.5) + x[0]
    return dirichlet(SQUARE, lambda u, x: -eps * pf.laplacian(u)(x) + b @ pf.grad(u)(x), exact)


@kind(6)
def contrasts(rng):
    """div(a grad u) with a smooth coefficient of high contrast."""
    size, field = rng.uniform(1, 5), waves(rng, 2, 5.0)
    flux = lambda u: lambda x: jnp.exp(size * field(x)) * pf.grad(u)(x)
    return dirichlet(SQUARE, lambda u, x: -pf.div(flux(u))(x), waves(rng, 2))


@kind(6)
def growth(rng):
    """An ordinary equation whose solutions grow or decay."""
    rate, length = rng.uniform(-8, 8), rng.uniform(1, 4)
    line = pf.Interval(0, length)
    return pf.Problem(
        line,
        lambda u, x: pf.partial(u, 0)(x) - rate * u(x),
        conditions=[pf.Dirichlet(on=line.face(0, 0))],
        exact=lambda x: jnp.exp(rate * x[0]) + jnp.sin(5 * x[0]),
    )


@kind(5)
def oscillations(rng):
    """u'' + k² u = f from one end: many periods."""
    k, line = rng.uniform(5, 120), pf.Interval(0, 1)
    start = line.face(0, 0)
    return pf.Problem(
        line,
        lambda u, x: pf.laplacian(u)(x) + k**2 * u(x),
        conditions=[pf.Dirichlet(on=start), pf.Neumann(on=start)],
        exact=lambda x: jnp.cos(k * x[0]) + x[0],
    )


@kind(6)
def heat(rng):
    """The heat equation in one dimension, with mixed conditions."""
    a, rod = rng.uniform(0.05, 2.0), pf.SpaceTime(pf.Interval(0, 1), rng.uniform(0.1, 1.0))
    return pf.Problem(
        rod,
        lambda u, x, t: pf.dt(u)(x, t) - a * pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet(on=rod.face(0, 0)), pf.Neumann(on=rod.face(0, 1))],
        exact=in_time(waves(rng, 2, 6.0)),
    )


@kind(5)
def strings(rng):
    """The wave equation with ends that move."""
    c, strip = rng.uniform(0.5, 3.0), pf.SpaceTime(pf.Interval(0, 1), 1.0)
    return pf.Problem(
        strip,
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - c**2 * pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet()],
        exact=in_time(waves(rng, 2, 5.0)),
    )


@kind(4)
def transport(rng):
    """Transport along a line."""
    c, width, strip = rng.uniform(0.3, 1.0), 10 ** rng.uniform(-1.5, -0.5), pf.SpaceTime(pf.Interval(0, 1), 1.0)
    return pf.Problem(
        strip,
        lambda u, x, t: pf.dt(u)(x, t) + c * pf.partial(u, 0)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet(on=strip.face(0, 0))],
        exact=lambda x, t: jnp.exp(-(((x[0] - c * t - 0.2) / width) ** 2)),
    )


@kind(5)
def plates(rng):
    """A clamped plate."""
    domain = (SQUARE, pf.Disk([0, 0], 1.0), pf.Ellipse([0, 0], 1.0, 0.7))[rng.integers(3)]
    return pf.Problem(
        domain,
        lambda u, x: pf.laplacian(pf.laplacian(u))(x),
        conditions=[pf.Dirichlet(), pf.Neumann()],
        exact=waves(rng, 2, 4.0),
    )


@kind(6)
def reactions(rng):
    """-Δu + λ u³ = f, which has one solution."""
    strength = 10 ** rng.uniform(-1, 3)
    return dirichlet(shape(rng), lambda u, x: -pf.laplacian(u)(x) + strength * u(x) ** 3, waves(rng, 2, 4.0))


@kind(4)
def shocks(rng):
    """Burgers' equation with a steep front that travels."""
    nu, strip = 10 ** rng.uniform(-2.3, -1), pf.SpaceTime(pf.Interval(0, 1), 1.0)
    return pf.Problem(
        strip,
        lambda u, x, t: pf.dt(u)(x, t) + u(x, t) * pf.partial(u, 0)(x, t) - nu * pf.partial(u, 0, 0)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet()],
        exact=lambda x, t: 0.5 - 0.5 * jnp.tanh((x[0] - 0.3 - 0.5 * t) / (4 * nu)),
    )


@kind(4)
def flows(rng):
    """Stokes flow with the pressure given at a point."""
    stream = waves(rng, 2, 4.0)
    velocity = lambda x: jnp.stack([pf.partial(stream, 1)(x), -pf.partial(stream, 0)(x)])
    pressure = waves(rng, 2)
    return pf.Problem(
        SQUARE,
        lambda u, x: (-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)),
        conditions=[pf.Dirichlet(unknown="v"), pf.Dirichlet(unknown="p", on=[[0.5, 0.5]])],
        unknowns={"v": 2, "p": 1},
        exact={"v": velocity, "p": pressure},
    )


@kind(4)
def means(rng):
    """∂u/∂n on the whole boundary, and the mean."""
    exact = waves(rng, 2)
    return pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Neumann(), pf.Mean(None)], exact=exact)


@kind(4)
def robin(rng):
    """Robin's condition with a coefficient that may be large."""
    alpha = 10 ** rng.uniform(-2, 4)
    return pf.Problem(
        pf.Disk([0, 0], 1.0), lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Robin(alpha, 1.0)], exact=waves(rng, 2)
    )


@kind(4)
def periodic(rng):
    """A square with periodic sides."""
    n, m = rng.integers(1, 6, 2).tolist()
    exact = lambda x: jnp.sin(2 * PI * n * x[0]) * jnp.cos(2 * PI * m * x[1]) + jnp.exp(jnp.sin(2 * PI * x[0]))
    return pf.Problem(
        SQUARE,
        lambda u, x: -pf.laplacian(u)(x) + u(x),
        conditions=[pf.Periodic(0), pf.Periodic(1)],
        exact=exact,
    )


@kind(3)
def solids(rng):
    """Poisson's equation in three dimensions."""
    domain = (pf.Box([0, 0, 0], [1, 1, 1]), pf.Ball([0, 0, 0], 1.0), pf.Cylinder([0, 0, 0], [0, 0, 1], 0.7))
    return dirichlet(domain[rng.integers(3)], lambda u, x: -pf.laplacian(u)(x), waves(rng, 3))


@kind(5)
def corners(rng):
    """Singular solutions at a corner of an L: r^(2/3) and its higher powers."""
    domain, power = pf.Polygon([[-1, -1], [1, -1], [1, 0], [0, 0], [0, 1], [-1, 1]]), 2 / 3 * rng.integers(1, 3)
    size = rng.uniform(0.2, 3.0)

    def exact(x):
        # The angle from the side along x > 0, clockwise through the domain.
        phi = jnp.mod(-jnp.arctan2(x[1], x[0]), 2 * PI)
        return size * jnp.hypot(x[0], x[1]) ** power * jnp.sin(power * phi) + x[0]

    problem = pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), 0.0, [pf.Dirichlet(exact)])
    phi = lambda p: np.mod(-np.arctan2(p[:, 1], p[:, 0]), 2 * PI)
    return problem, lambda p: size * np.hypot(*p.T) ** power * np.sin(power * phi(p)) + p[:, 0]


@kind(4)
def roots(rng):
    """A solution like x^α at an end, with α between 1.2 and 2.6, which is known where it is singular only."""
    power = rng.uniform(1.2, 2.6)
    source = lambda x: -power * (power - 1) * jnp.maximum(x[0], 1e-300) ** (power - 2)
    problem = pf.Problem(
        pf.Interval(0, 1), lambda u, x: -pf.laplacian(u)(x), source, [pf.Dirichlet(lambda x: x[0] ** power)]
    )
    return problem, lambda p: p[:, 0] ** power


@kind(4)
def steps(rng):
    """A source that jumps inside of an interval."""
    at, size = rng.uniform(0.2, 0.8), rng.uniform(1, 10)
    problem = pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: pf.laplacian(u)(x),
        lambda x: jnp.where(x[0] < at, size, 0.0),
        [pf.Dirichlet(0.0)],
    )
    slope = -size * (at - at**2 / 2)

    def truth(p):
        x = p[:, 0]
        return np.where(x < at, size * x**2 / 2, size * at**2 / 2 + size * at * (x - at)) + slope * x

    return problem, truth
