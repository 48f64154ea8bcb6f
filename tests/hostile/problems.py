"""Families of problems with known truth, from which a number makes members: well-posed, ill-posed, under- and
over-determined, badly scaled and narrow ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import pdofm as pf

WELL, ILL = "well-posed", "ill-posed"
"""Kinds of problems. An ill-posed one has no solution or many, or one that does not depend continuously on the data."""


@dataclass(frozen=True)
class Hostile:
    """A member of a family. `make` states the problem, with its exact solution if it is well-posed."""

    name: str
    kind: str
    make: Callable[[], pf.Problem]


Family = Callable[[np.random.Generator], tuple[str, Callable[[], pf.Problem]]]

FAMILIES: list[Family] = []


def family(make: Family) -> Family:
    FAMILIES.append(make)
    return make


def members(each: int, seed: int = 0) -> Iterator[Hostile]:
    """So many members of every family."""
    for make in FAMILIES:
        for number in range(each):
            rng = np.random.default_rng([seed, number, len(make.__name__), *map(ord, make.__name__)])
            kind, problem = make(rng)
            yield Hostile(f"{make.__name__}-{number}", kind, problem)


def minus_laplacian(u, x):
    return -pf.laplacian(u)(x)


def waves(rng, dim=2, highest=4.0):
    """A smooth random function: a product of exponentials and sines."""
    k, phase, a = rng.uniform(0.5, highest, dim), rng.uniform(0, 6, dim), rng.uniform(-1, 1, dim)

    def exact(x, *t):
        z = jnp.concatenate([x, jnp.stack(t)]) if t else x
        return jnp.sum(jnp.sin(k * z + phase)) * jnp.exp(jnp.dot(a, z)) + jnp.prod(jnp.cos(k * z))

    return exact


def shape(rng):
    a, b = rng.uniform(0.5, 2, 2)
    return [
        pf.Box([0, 0], [a, b]),
        pf.Disk([a, b], a),
        pf.Box([-a, -b], [a, b]) - pf.Box([0, 0], [a, b]),
        pf.Annulus([0, 0], a, a + b),
        pf.Ellipse([0, 0], a, b),
    ][rng.integers(5)]


def half(domain, rng, share):
    """The part of the boundary that is left when a share of its extent along an axis is cut off."""
    axis, lower, upper = int(rng.integers(2)), domain.lower, domain.upper
    at = upper[axis] - share * (upper[axis] - lower[axis])
    return domain.boundary.where(lambda x: x[axis] < at)


@family
def poisson(rng):
    domain, exact = shape(rng), waves(rng)
    return WELL, lambda: pf.Problem(domain, minus_laplacian, conditions=[pf.Dirichlet()], exact=exact)


@family
def varying(rng):
    domain, exact, c = shape(rng), waves(rng), rng.uniform(0.1, 0.9)

    def operator(u, x):
        return -pf.div(lambda y: (1 + c * jnp.sin(3 * y[0] + y[1])) * pf.grad(u)(y))(x) + u(x)

    return WELL, lambda: pf.Problem(domain, operator, conditions=[pf.Robin(1.0, 1.0)], exact=exact)


@family
def ordinary(rng):
    domain, exact, c = pf.Interval(0, rng.uniform(0.5, 3)), waves(rng, 1), rng.uniform(-3, 3)

    def operator(u, x):
        return pf.laplacian(u)(x) + c * pf.partial(u, 0)(x) + jnp.sin(x[0]) * u(x)

    start = domain.face(0, 0)
    return WELL, lambda: pf.Problem(
        domain, operator, conditions=[pf.Dirichlet(on=start), pf.Neumann(on=start)], exact=exact
    )


@family
def nonlinear(rng):
    domain, exact, c = shape(rng), waves(rng), rng.uniform(0.1, 2)
    return WELL, lambda: pf.Problem(
        domain, lambda u, x: -pf.laplacian(u)(x) + c * u(x) ** 3, conditions=[pf.Dirichlet()], exact=exact
    )


@family
def heat(rng):
    domain = pf.SpaceTime(pf.Interval(0, rng.uniform(0.5, 2)), rng.uniform(0.2, 1))
    exact, nu = waves(rng), rng.uniform(0.05, 1)
    return WELL, lambda: pf.Problem(
        domain,
        lambda u, x, t: pf.dt(u)(x, t) - nu * pf.laplacian(u)(x, t),
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=exact,
    )


@family
def wave(rng):
    domain = pf.SpaceTime(pf.Interval(0, rng.uniform(0.5, 2)), rng.uniform(0.2, 1))
    exact = waves(rng)
    return WELL, lambda: pf.Problem(
        domain,
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=exact,
    )


@family
def plate(rng):
    exact = waves(rng, highest=2.0)
    side = rng.uniform(0.5, 2)
    return WELL, lambda: pf.Problem(
        pf.Box([0, 0], [side, 1]),
        lambda u, x: pf.laplacian(pf.laplacian(u))(x),
        conditions=[pf.Dirichlet(), pf.Neumann()],
        exact=exact,
    )


@family
def near_resonance(rng):
    off = 10.0 ** rng.uniform(-5, -1)

    def operator(u, x):
        return pf.laplacian(u)(x) + (np.pi**2 + off) * u(x)

    exact = waves(rng, 1, 2.0)
    return WELL, lambda: pf.Problem(pf.Interval(0, 1), operator, conditions=[pf.Dirichlet()], exact=exact)


@family
def large_and_small(rng):
    """Units: domains, sources and values of any size, anywhere."""
    size, value = 10.0 ** rng.uniform(-7, 7), 10.0 ** rng.uniform(-80, 80)
    at, smooth = size * rng.uniform(-3, 3, 2), waves(rng)
    domain = pf.Box(at, at + size)
    return WELL, lambda: pf.Problem(
        domain,
        minus_laplacian,
        conditions=[pf.Dirichlet()],
        exact=lambda x: value * smooth((x - at) / size),
    )


@family
def unequal_components(rng):
    """Two equations whose unknowns differ in size."""
    small, first, second = 10.0 ** rng.uniform(-12, -1), waves(rng), waves(rng)
    coupling = rng.uniform(0, 1)

    def operator(u, x):
        return jnp.stack([-pf.laplacian(u.a)(x) + coupling * u.b(x), -pf.laplacian(u.b)(x)])

    return WELL, lambda: pf.Problem(
        pf.Box([0, 0], [1, 1]),
        operator,
        conditions=[pf.Dirichlet()],
        unknowns={"a": 1, "b": 1},
        exact={"a": first, "b": lambda x: small * second(x)},
    )


def bump(center, width):
    return lambda x: jnp.exp(-jnp.sum((x - center) ** 2) / width**2)


@family
def narrow_in_the_source(rng):
    width, center = 10.0 ** rng.uniform(-4, -0.5), rng.uniform(0.1, 0.9, 1)
    narrow, smooth = bump(center, width), waves(rng, 1)
    return WELL, lambda: pf.Problem(
        pf.Interval(0, 1), minus_laplacian, conditions=[pf.Dirichlet()], exact=lambda x: smooth(x) + narrow(x)
    )


@family
def narrow_on_the_boundary(rng):
    """A harmonic function with a pole at a small distance to the boundary."""
    distance, where = 10.0 ** rng.uniform(-3, -0.5), rng.uniform(0.2, 0.8)

    def exact(x):
        return distance * (x[1] + distance) / ((x[0] - where) ** 2 + (x[1] + distance) ** 2)

    return WELL, lambda: pf.Problem(pf.Box([0, 0], [1, 1]), minus_laplacian, 0.0, [pf.Dirichlet(exact)], exact=exact)


@family
def layer(rng):
    width = 10.0 ** rng.uniform(-4, -1)

    def exact(x):
        return x[0] - jnp.exp((x[0] - 1) / width)

    return WELL, lambda: pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -width * pf.laplacian(u)(x) + pf.partial(u, 0)(x),
        1.0,
        [pf.Dirichlet(exact)],
        exact=exact,
    )


@family
def part_without_condition(rng):
    domain, value = shape(rng), waves(rng)
    part = half(domain, rng, 10.0 ** rng.uniform(-2, -0.3))
    return ILL, lambda: pf.Problem(domain, minus_laplacian, 1.0, [pf.Dirichlet(value, on=part)])


@family
def cauchy_data(rng):
    value, slope = waves(rng), waves(rng)
    square = pf.Box([0, 0], [1, rng.uniform(0.5, 2)])
    sides = [pf.Dirichlet(0.0, on=square.face(0, side)) for side in (0, 1)] if rng.random() < 0.5 else []
    below = square.face(1, 0)
    return ILL, lambda: pf.Problem(
        square, minus_laplacian, 0.0, [pf.Dirichlet(value, on=below), pf.Neumann(slope, on=below), *sides]
    )


@family
def backward_heat(rng):
    nu, value = rng.uniform(0.05, 1), waves(rng)
    domain = pf.SpaceTime(pf.Interval(0, 1), rng.uniform(0.2, 1))
    return ILL, lambda: pf.Problem(
        domain,
        lambda u, x, t: pf.dt(u)(x, t) + nu * pf.laplacian(u)(x, t),
        0.0,
        [pf.Dirichlet(0.0), pf.Initial(lambda x, t: value(jnp.append(x, 0.0)) * x[0] * (1 - x[0]))],
    )


@family
def wave_without_ends(rng):
    value, long = waves(rng, 1), rng.uniform(0.3, 1)
    return ILL, lambda: pf.Problem(
        pf.SpaceTime(pf.Interval(0, 1), long),
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t),
        0.0,
        [pf.Initial(lambda x, t: value(x), 0.0)],
    )


@family
def inflow_without_condition(rng):
    square, direction, value = pf.Box([0, 0], [1, 1]), rng.uniform(0.3, 1, 2), waves(rng)
    return ILL, lambda: pf.Problem(
        square,
        lambda u, x: jnp.dot(jnp.asarray(direction), pf.grad(u)(x)),
        1.0,
        [pf.Dirichlet(value, on=square.face(int(direction[0] > 0.6), 0))],
    )


@family
def slopes_alone(rng):
    domain, slope = shape(rng), waves(rng)
    source = float(rng.uniform(0.5, 2))
    return ILL, lambda: pf.Problem(domain, minus_laplacian, source, [pf.Neumann(slope)])


@family
def too_few_for_the_order(rng):
    domain, value = pf.Box([0, 0], [1, rng.uniform(0.5, 2)]), waves(rng)
    operator = [lambda u, x: pf.laplacian(pf.laplacian(u))(x), lambda u, x: pf.laplacian(pf.laplacian(u))(x) + u(x)]
    chosen = operator[rng.integers(2)]
    return ILL, lambda: pf.Problem(domain, chosen, 1.0, [pf.Dirichlet(value)])


@family
def at_resonance(rng):
    n, source = int(rng.integers(1, 5)), waves(rng, 1)
    return ILL, lambda: pf.Problem(
        pf.Interval(0, 1), lambda u, x: pf.laplacian(u)(x) + (n * np.pi) ** 2 * u(x), source, [pf.Dirichlet(0.0)]
    )


@family
def two_values(rng):
    """Two conditions at the same place that differ by little."""
    gap, value, domain = 10.0 ** rng.uniform(-7, 0), waves(rng), shape(rng)
    return ILL, lambda: pf.Problem(
        domain, minus_laplacian, 1.0, [pf.Dirichlet(value), pf.Dirichlet(lambda x: value(x) + gap)]
    )


@family
def two_values_at_an_end(rng):
    gap, domain = 10.0 ** rng.uniform(-7, 0), pf.Interval(0, 1)
    return ILL, lambda: pf.Problem(
        domain, minus_laplacian, 1.0, [pf.Dirichlet(0.0), pf.Dirichlet(gap, on=domain.face(0, int(rng.integers(2))))]
    )


@family
def values_that_jump_at_a_corner(rng):
    gap, value, square = 10.0 ** rng.uniform(-6, 0), waves(rng), pf.Box([0, 0], [1, 1])
    first, second = square.face(0, 0), square.boundary.where(lambda x: x[0] > 1e-9)
    return ILL, lambda: pf.Problem(
        square,
        minus_laplacian,
        1.0,
        [pf.Dirichlet(value, on=first), pf.Dirichlet(lambda x: value(x) + gap, on=second)],
    )


@family
def a_source_that_is_not_that_of_exact(rng):
    domain, exact, off = shape(rng), waves(rng), 10.0 ** rng.uniform(-6, 0)
    value = exact
    return ILL, lambda: pf.Problem(
        domain,
        minus_laplacian,
        lambda x: -pf.laplacian(exact)(x) + off,
        [pf.Dirichlet(value)],
        exact=exact,
    )
