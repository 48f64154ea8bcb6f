"""Statements that leave their solution free, contradict themselves, or amplify errors without bound."""

import jax
import jax.numpy as jnp
import numpy as np
from collection import kind
from wellposed import SQUARE, in_time, waves

import pdofm as pf

PI = np.pi
DISK, LINE = pf.Disk([0, 0], 1.0), pf.Interval(0, 1)


def minus_laplacian(u, x):
    return -pf.laplacian(u)(x)


def harmonic(rng):
    """A random harmonic function."""
    k, phase = rng.uniform(0.5, 3.0, 3), rng.uniform(0, 2 * PI, 3)
    return lambda x: jnp.sum(jnp.exp(k * x[0]) * jnp.cos(k * x[1] + phase))


@kind(4, is_well_posed=False)
def part_of_a_circle(rng):
    """Data on a part of a circle."""
    at = rng.uniform(-0.95, 0.5)
    on = DISK.boundary.where(lambda x: x[0] > at)
    return pf.Problem(DISK, minus_laplacian, conditions=[pf.Dirichlet(on=on)], exact=harmonic(rng))


@kind(4, is_well_posed=False)
def one_sided(rng):
    """Cauchy data for Laplace's equation on one side."""
    on = SQUARE.face(1, 0)
    conditions = [pf.Dirichlet(on=on), pf.Neumann(on=on)]
    if rng.random() < 0.5:
        conditions.append(pf.Dirichlet(on=SQUARE.part("x0=lower", "x0=upper")))
    return pf.Problem(SQUARE, minus_laplacian, conditions=conditions, exact=harmonic(rng))


@kind(4, is_well_posed=False)
def backwards(rng):
    """The heat equation backwards in time."""
    rod = pf.SpaceTime(LINE, rng.uniform(0.05, 0.5))
    return pf.Problem(
        rod,
        lambda u, x, t: pf.dt(u)(x, t) + pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet()],
        exact=in_time(waves(rng, 2)),
    )


@kind(3, is_well_posed=False)
def final_values(rng):
    """The heat equation with values at the end."""
    rod = pf.SpaceTime(LINE, 0.3)
    return pf.Problem(
        rod,
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Dirichlet(on=rod.at(0.3)), pf.Dirichlet()],
        exact=in_time(waves(rng, 2)),
    )


@kind(4, is_well_posed=False)
def no_ends(rng):
    """The wave equation without conditions at one or both ends."""
    strip = pf.SpaceTime(LINE, 1.0)
    ends = [pf.Dirichlet(on=strip.face(0, 0))] if rng.random() < 0.5 else []
    return pf.Problem(
        strip,
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), *ends],
        exact=in_time(waves(rng, 2)),
    )


@kind(3, is_well_posed=False)
def closed_strings(rng):
    """The wave equation with values on all sides of space-time, whose sides are commensurable."""
    strip = pf.SpaceTime(LINE, float(rng.integers(1, 4)))
    end = float(strip.upper[-1])
    return pf.Problem(
        strip,
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Dirichlet(on=strip.at(0.0)), pf.Dirichlet(on=strip.at(end)), pf.Dirichlet()],
        exact=in_time(waves(rng, 2)),
    )


@kind(4, is_well_posed=False)
def resonances(rng):
    """Helmholtz's equation at an eigenvalue of the square: the eigenfunction is free."""
    n, m = rng.integers(1, 5, 2)
    k2 = float(PI**2 * (n**2 + m**2))
    return pf.Problem(
        SQUARE, lambda u, x: -pf.laplacian(u)(x) - k2 * u(x), conditions=[pf.Dirichlet()], exact=waves(rng, 2)
    )


@kind(4, is_well_posed=False)
def floating(rng):
    """∂u/∂n on the whole boundary, and nothing else."""
    domain = (SQUARE, DISK, pf.Box([0, 0, 0], [1, 1, 1]), LINE)[rng.integers(4)]
    return pf.Problem(domain, minus_laplacian, conditions=[pf.Neumann()], exact=waves(rng, domain.dim))


@kind(3, is_well_posed=False)
def incompatible(rng):
    """∂u/∂n on the whole boundary and a source of another mean: there is no solution."""
    problem = pf.Problem(SQUARE, minus_laplacian, rng.uniform(0.01, 1.0), [pf.Neumann(0.0), pf.Mean(0.0)])
    return problem, lambda p: np.full(len(p), np.inf)


@kind(4, is_well_posed=False)
def both(rng):
    """Values and slopes on the whole boundary that do not belong together."""
    size, on = 10 ** rng.uniform(-3, 0), SQUARE.boundary
    exact, other = waves(rng, 2), waves(rng, 2)
    wrong = lambda x: exact(x) + size * other(x)
    rows = lambda u, x, normal: pf.normal_derivative(u, normal)(x) - pf.grad(wrong)(x) @ normal
    problem = pf.Problem(
        SQUARE,
        minus_laplacian,
        lambda x: -pf.laplacian(exact)(x),
        [
            pf.Dirichlet(exact),
            pf.Condition(rows, on=on),
        ],
    )
    # The values alone determine it: what the slopes ask for beside that is the error.
    return problem, lambda p: np.asarray(jax.vmap(exact)(jnp.asarray(p)))


@kind(3, is_well_posed=False)
def both_ends(rng):
    """An equation of first order with values at both ends that do not belong together."""
    gap = 10 ** rng.uniform(-3, 0)
    ends = [pf.Dirichlet(1.0, on=LINE.face(0, 0)), pf.Dirichlet(float(np.exp(-1)) + gap, on=LINE.face(0, 1))]
    problem = pf.Problem(LINE, lambda u, x: pf.partial(u, 0)(x) + u(x), 0.0, ends)
    return problem, lambda p: np.full(len(p), np.inf)


@kind(3, is_well_posed=False)
def points_only(rng):
    """Values at a few points inside instead of conditions."""
    count = int(rng.integers(3, 30))
    points = SQUARE.sample(count, "random", key=int(rng.integers(1000)))
    return pf.Problem(SQUARE, minus_laplacian, conditions=[pf.Dirichlet(on=points)], exact=harmonic(rng))


@kind(3, is_well_posed=False)
def half_plates(rng):
    """A plate with one condition where it needs two."""
    return pf.Problem(
        SQUARE,
        lambda u, x: pf.laplacian(pf.laplacian(u))(x),
        conditions=[pf.Dirichlet(), pf.Neumann(on=SQUARE.part("x0=lower", "x0=upper"))],
        exact=waves(rng, 2),
    )


@kind(2, is_well_posed=False)
def free_pressure(rng):
    """Stokes flow whose pressure is free up to a constant."""
    stream = waves(rng, 2, 4.0)
    velocity = lambda x: jnp.stack([pf.partial(stream, 1)(x), -pf.partial(stream, 0)(x)])
    return pf.Problem(
        SQUARE,
        lambda u, x: (-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)),
        conditions=[pf.Dirichlet(unknown="v")],
        unknowns={"v": 2, "p": 1},
        exact={"v": velocity, "p": waves(rng, 2)},
    )


@kind(3, is_well_posed=False)
def beyond_the_fold(rng):
    """Bratu's equation with a parameter beyond which there is no solution."""
    strength = rng.uniform(3.6, 6.0)
    problem = pf.Problem(LINE, lambda u, x: -pf.laplacian(u)(x) - strength * jnp.exp(u(x)), 0.0, [pf.Dirichlet(0.0)])
    return problem, lambda p: np.full(len(p), np.inf)


@kind(3, is_well_posed=False)
def elliptic_in_time(rng):
    """Laplace's equation in space-time as an initial value problem."""
    strip = pf.SpaceTime(LINE, 1.0)
    return pf.Problem(
        strip,
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) + pf.laplacian(u)(x, t),
        conditions=[pf.Initial(), pf.Dirichlet()],
        exact=in_time(waves(rng, 2)),
    )
