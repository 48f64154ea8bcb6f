"""Named problems with exact solutions: those of the paper, and others that are difficult in other ways.

The problems of Jia and Wang, "Physics informed learning of orthogonal features with applications in solving partial
differential equations" (2026), are helmholtz-1d, poisson-1d, poisson-square, poisson-lshape, poisson-annulus,
poisson-cube, wave-periodic and kovasznay.
"""

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import erf

from pdofm.calculus.operators import div, dt, grad, laplacian, partial
from pdofm.domain import Annulus, Box, Interval, Polygon, SpaceTime
from pdofm.problem.conditions import Condition, Dirichlet, Initial, Neumann, Periodic
from pdofm.problem.problem import Problem
from pdofm.zoo.registry import group_of_problems

_register = group_of_problems("basic")


def _negative_laplacian(u, x: Array) -> Array:
    return -laplacian(u)(x)


def _sines(x: Array) -> Array:
    return jnp.prod(jnp.sin(jnp.pi * x))


def _poisson(domain) -> Problem:
    return Problem(domain, _negative_laplacian, conditions=[Dirichlet()], exact=_sines)


@_register
def helmholtz_1d() -> Problem:
    """u'' - 10 u = f on (0, 2), u = sin(3πx + 3π/20) cos(2πx + π/10) + 2."""
    return Problem(
        Interval(0, 2),
        operator=lambda u, x: laplacian(u)(x) - 10 * u(x),
        conditions=[Dirichlet()],
        exact=lambda x: jnp.sin(3 * jnp.pi * x[0] + 3 * jnp.pi / 20) * jnp.cos(2 * jnp.pi * x[0] + jnp.pi / 10) + 2,
    )


@_register
def poisson_1d() -> Problem:
    """-u'' = 1 on (-1, 1), u = (1 - x²)/2."""
    return Problem(
        Interval(-1, 1),
        _negative_laplacian,
        source=1.0,
        conditions=[Dirichlet(0.0)],
        exact=lambda x: (1 - x[0] ** 2) / 2,
    )


@_register
def poisson_square() -> Problem:
    """-Δu = f on the square (-1, 1)², u = sin πx sin πy."""
    return _poisson(Box([-1, -1], [1, 1]))


@_register
def poisson_lshape() -> Problem:
    """-Δu = f on the L-shaped domain (-1, 1)² minus [0, 1]², u = sin πx sin πy."""
    return _poisson(Box([-1, -1], [1, 1]) - Box([0, 0], [1, 1]))


@_register
def poisson_annulus() -> Problem:
    """-Δu = f on the annulus 0.25 < r < 1, u = sin πx sin πy."""
    return _poisson(Annulus((0, 0), 0.25, 1.0))


@_register
def poisson_cube() -> Problem:
    """-Δu = f on the unit cube, u = sin πx sin πy sin πz."""
    return _poisson(Box([0, 0, 0], [1, 1, 1]))


@_register
def wave_periodic() -> Problem:
    """u_tt = u_xx / 16π² on (0, 1) x (0, 2), periodic in x, u = sin 4πx cos t."""
    return Problem(
        SpaceTime(Interval(0, 1), 2),
        operator=lambda u, x, t: dt(dt(u))(x, t) - laplacian(u)(x, t) / (16 * jnp.pi**2),
        source=0.0,
        conditions=[Periodic(axis=0), Initial(lambda x, t: jnp.sin(4 * jnp.pi * x[0]), velocity=0.0)],
        exact=lambda x, t: jnp.sin(4 * jnp.pi * x[0]) * jnp.cos(t),
    )


@_register
def kovasznay() -> Problem:
    """Steady Navier-Stokes equations at Reynolds number 40 on (-1, 1)²: Kovasznay's flow behind a grid."""
    nu = 1 / 40
    rate = 1 / (2 * nu) - (1 / (4 * nu**2) + 4 * jnp.pi**2) ** 0.5

    def momentum_and_mass(u, w, x: Array):
        return grad(u.v)(x) @ w.v(x) + grad(u.p)(x) - nu * laplacian(u.v)(x), div(u.v)(x)

    def velocity(x: Array) -> Array:
        growth, phase = jnp.exp(rate * x[0]), 2 * jnp.pi * x[1]
        return jnp.stack([1 - growth * jnp.cos(phase), rate / (2 * jnp.pi) * growth * jnp.sin(phase)])

    def pressure(x: Array) -> Array:
        return (1 - jnp.exp(2 * rate * x[0])) / 2

    return Problem(
        Box([-1, -1], [1, 1]),
        operator=lambda u, x: momentum_and_mass(u, u, x),
        source=0.0,
        conditions=[
            Dirichlet(velocity, unknown="v", name="velocity"),
            # The equations determine the pressure only up to a constant.
            Condition(lambda u, x: u.p(x) - pressure(x), on=jnp.array([[0.0, 0.0]]), name="pressure"),
        ],
        unknowns={"v": 2, "p": 1},
        exact={"v": velocity, "p": pressure},
        frozen_operator=momentum_and_mass,
    )


@_register
def heat() -> Problem:
    """u_t = u_xx / 10 on (0, 1) x (0, 1), u = exp(-π²t/10) sin πx."""
    return Problem(
        SpaceTime(Interval(0, 1), 1),
        operator=lambda u, x, t: dt(u)(x, t) - laplacian(u)(x, t) / 10,
        source=0.0,
        conditions=[Dirichlet(0.0), Initial(lambda x, t: jnp.sin(jnp.pi * x[0]))],
        exact=lambda x, t: jnp.exp(-(jnp.pi**2) * t / 10) * jnp.sin(jnp.pi * x[0]),
    )


@_register
def boundary_layer() -> Problem:
    """-ε Δu + u_x = f on the unit square, ε = 0.05, with a layer of width ε at x = 1."""
    width = 0.05

    def exact(x: Array) -> Array:
        layer = (jnp.exp((x[0] - 1) / width) - jnp.exp(-1 / width)) / (1 - jnp.exp(-1 / width))
        return (x[0] - layer) * jnp.sin(jnp.pi * x[1])

    return Problem(
        Box([0, 0], [1, 1]),
        operator=lambda u, x: -width * laplacian(u)(x) + partial(u, 0)(x),
        conditions=[Dirichlet()],
        exact=exact,
    )


@_register
def burgers() -> Problem:
    """Steady viscous Burgers' equation u u' = ν u'' on (-1, 1), ν = 0.1, u = -tanh(x / 2ν)."""
    viscosity = 0.1
    return Problem(
        Interval(-1, 1),
        operator=lambda u, x: u(x) * partial(u, 0)(x) - viscosity * laplacian(u)(x),
        source=0.0,
        conditions=[Dirichlet()],
        exact=lambda x: -jnp.tanh(x[0] / (2 * viscosity)),
        frozen_operator=lambda u, w, x: w(x) * partial(u, 0)(x) - viscosity * laplacian(u)(x),
    )


@_register
def biharmonic_plate() -> Problem:
    """ΔΔu = f on the unit square with clamped edges, u = sin²πx sin²πy."""
    return Problem(
        Box([0, 0], [1, 1]),
        operator=lambda u, x: laplacian(laplacian(u))(x),
        conditions=[Dirichlet(0.0), Neumann(0.0)],
        exact=lambda x: _sines(x) ** 2,
    )


@_register
def elasticity() -> Problem:
    """Plane linear elasticity on the square, with displacements given on three sides and a traction on the right."""
    mu, lam = 1.0, 1.5
    square = Box([-1, -1], [1, 1])
    right = square.face(0, 1)

    def stress(v):
        def of(x: Array) -> Array:
            gradient = grad(v)(x)
            return mu * (gradient + gradient.T) + lam * jnp.trace(gradient) * jnp.eye(2)

        return of

    def displacement(x: Array) -> Array:
        return jnp.stack([jnp.sin(jnp.pi * x[0]) * jnp.cos(x[1]), jnp.exp(x[0] / 2) * jnp.sin(2 * x[1])])

    return Problem(
        square,
        operator=lambda u, x: -div(stress(u.d))(x),
        conditions=[
            Dirichlet(displacement, on=square.boundary.where(lambda x: x[0] < 1), unknown="d"),
            Condition(
                lambda u, x, normal: (stress(u.d)(x) - stress(displacement)(x)) @ normal, on=right, name="traction"
            ),
        ],
        unknowns={"d": 2},
        exact={"d": displacement},
    )


@_register
def poisson_polygon() -> Problem:
    """-Δu + u = f on a pentagon with a triangular hole, u = exp(x) cos 3y."""
    pentagon = Polygon(
        [(-1, -0.8), (0.9, -1), (1.2, 0.4), (0, 1.1), (-1.2, 0.5)], holes=[[(-0.3, -0.3), (0.4, -0.2), (0, 0.4)]]
    )
    return Problem(
        pentagon,
        operator=lambda u, x: -laplacian(u)(x) + u(x),
        conditions=[Dirichlet()],
        exact=lambda x: jnp.exp(x[0]) * jnp.cos(3 * x[1]),
    )


@_register
def poisson_5d() -> Problem:
    """-Δu = f on the unit cube of five dimensions, u = cos(x₀ + … + x₄)."""
    return Problem(
        Box([0] * 5, [1] * 5), _negative_laplacian, conditions=[Dirichlet()], exact=lambda x: jnp.cos(jnp.sum(x))
    )


@_register
def interior_layer() -> Problem:
    """ε u'' + (x - 0.37) u' = f on (-1, 1), ε = 1e-4, with a layer of width 0.01 at x = 0.37."""
    epsilon, at = 1e-4, 0.37

    def exact(x: Array) -> Array:
        return erf((x[0] - at) / (2 * epsilon) ** 0.5) + jnp.sin(2 * x[0])

    return Problem(
        Interval(-1, 1),
        operator=lambda u, x: epsilon * laplacian(u)(x) + (x[0] - at) * partial(u, 0)(x),
        # The error function solves the homogeneous equation, so only the sine contributes.
        source=lambda x: -4 * epsilon * jnp.sin(2 * x[0]) + 2 * (x[0] - at) * jnp.cos(2 * x[0]),
        conditions=[Dirichlet()],
        exact=exact,
    )


@_register
def two_layers() -> Problem:
    """-u'' + u = f on (0, 1), with layers of width 0.001 at x = 0.3 and 0.003 at x = 0.72."""

    def exact(x: Array) -> Array:
        return jnp.tanh((x[0] - 0.3) / 0.001) + jnp.tanh((x[0] - 0.72) / 0.003) + jnp.cos(3 * x[0])

    return Problem(Interval(0, 1), operator=lambda u, x: -laplacian(u)(x) + u(x), conditions=[Dirichlet()], exact=exact)


@_register
def slanted_layer() -> Problem:
    """-Δu = f on the unit square, with a layer of width 0.02 along a slanted line."""
    direction = jnp.array([0.8, 0.6])

    def exact(x: Array) -> Array:
        return jnp.tanh((direction @ x - 0.65) / 0.02) * (1 + x[0] * x[1]) + jnp.sin(2 * x[0] + x[1])

    return Problem(Box([0, 0], [1, 1]), _negative_laplacian, conditions=[Dirichlet()], exact=exact)


@_register
def poisson_corner() -> Problem:
    """Δu = 0 on the L-shaped domain with a singularity at the corner, u = r^(2/3) sin(2θ/3)."""

    def exact(x: Array) -> Array:
        square, angle = jnp.sum(x**2), jnp.mod(jnp.arctan2(x[1], x[0]) - jnp.pi / 2, 2 * jnp.pi)
        return jnp.where(square > 0, square, 1.0) ** (1 / 3) * jnp.sin(2 * angle / 3) * jnp.where(square > 0, 1.0, 0.0)

    lshape = Box([-1, -1], [1, 1]) - Box([0, 0], [1, 1])
    return Problem(lshape, _negative_laplacian, source=0.0, conditions=[Dirichlet(exact)], exact=exact)
