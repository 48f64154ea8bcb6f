"""Evolution problems: fronts, waves, dispersion, chaos and flows, over short and long times.

Each has an exact solution, or a reference (`pdofm.zoo.reference`) that the scripts in tools/references have computed.
"""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.operators import div, dt, grad, laplacian, partial
from pdofm.domain import Box, Interval, SpaceTime
from pdofm.problem.conditions import Condition, Dirichlet, Initial, Periodic
from pdofm.problem.problem import Problem
from pdofm.zoo.registry import group_of_problems

_register = group_of_problems("evolution")

PI = math.pi


# ---- one unknown, nonlinear: fronts, dispersion, chaos


@_register
def burgers_sine(viscosity: float = 0.01 / PI) -> Problem:
    """u_t + u u_x = ν u_xx on (-1, 1), t ≤ 1, u(x, 0) = -sin πx, u(±1, t) = 0, ν = 0.01/π: a front forms at 0."""
    return Problem(
        SpaceTime(Interval(-1, 1), 1.0),
        lambda u, x, t: dt(u)(x, t) + u(x, t) * partial(u, 0)(x, t) - viscosity * partial(u, 0, 0)(x, t),
        source=0.0,
        conditions=[Dirichlet(0.0), Initial(lambda x, t: -jnp.sin(PI * x[0]))],
    )


@_register
def burgers_sine_1000() -> Problem:
    """burgers-sine with ν = 1/1000."""
    return burgers_sine(1e-3)


@_register
def burgers_sine_10000() -> Problem:
    """burgers-sine with ν = 1/10000."""
    return burgers_sine(1e-4)


@_register
def allen_cahn() -> Problem:
    """u_t = 1e-4 u_xx + 5u - 5u³ on (-1, 1), t ≤ 1, periodic, from x² cos πx, whose slope jumps at ±1."""
    return Problem(
        SpaceTime(Interval(-1, 1), 1.0),
        lambda u, x, t: dt(u)(x, t) - 1e-4 * partial(u, 0, 0)(x, t) - 5 * u(x, t) + 5 * u(x, t) ** 3,
        source=0.0,
        conditions=[Periodic(0), Initial(lambda x, t: x[0] ** 2 * jnp.cos(PI * x[0]))],
    )


@_register
def korteweg_de_vries() -> Problem:
    """u_t + u u_x + 0.022² u_xxx = 0 on (-1, 1), t ≤ 1, periodic, from cos πx: solitons form."""
    return Problem(
        SpaceTime(Interval(-1, 1), 1.0),
        lambda u, x, t: dt(u)(x, t) + u(x, t) * partial(u, 0)(x, t) + 0.022**2 * partial(u, 0, 0, 0)(x, t),
        source=0.0,
        conditions=[Periodic(0), Initial(lambda x, t: jnp.cos(PI * x[0]))],
    )


@_register
def kuramoto_sivashinsky(end: float = 1.0) -> Problem:
    """u_t + a u u_x + a²/100 u_xx + a⁴/10⁶ u_xxxx = 0 with a = 100/16 on (0, 2π), t ≤ 1, periodic: chaos."""
    a, b, c = 100 / 16, 100 / 16**2, 100 / 16**4

    def operator(u, x: Array, t: Array) -> Array:
        return (
            dt(u)(x, t)
            + a * u(x, t) * partial(u, 0)(x, t)
            + b * partial(u, 0, 0)(x, t)
            + c * partial(u, 0, 0, 0, 0)(x, t)
        )

    start = Initial(lambda x, t: jnp.cos(x[0]) * (1 + jnp.sin(x[0])))
    return Problem(SpaceTime(Interval(0, 2 * PI), end), operator, source=0.0, conditions=[Periodic(0), start])


@_register
def fisher_front(end: float = 50.0) -> Problem:
    """u_t = u_xx + u (1 - u) on (-20, 120), t ≤ 50: a front that travels into the unstable state u = 0."""
    speed = 5 / math.sqrt(6)
    return Problem(
        SpaceTime(Interval(-20, 120), end),
        lambda u, x, t: dt(u)(x, t) - partial(u, 0, 0)(x, t) - u(x, t) * (1 - u(x, t)),
        source=0.0,
        conditions=[Dirichlet(), Initial()],
        exact=lambda x, t: (1 + jnp.exp((x[0] - speed * t) / math.sqrt(6))) ** -2.0,
    )


@_register
def reaction_front(width: float = 0.05) -> Problem:
    """u_t = ε Δu + r u (1 - u) (u - 1/4) on the unit square, t ≤ 1/2: an oblique front of width 0.05 and speed 1."""
    # A front 1 / (1 + exp(s / √(2ε/r))) has the speed √(εr/2) / 2.
    diffusion, rate = 2 * width, 4 / width
    direction = np.array([math.cos(0.5), math.sin(0.5)])

    def operator(u, x: Array, t: Array) -> Array:
        here = u(x, t)
        return dt(u)(x, t) - diffusion * laplacian(u)(x, t) - rate * here * (1 - here) * (here - 0.25)

    return Problem(
        SpaceTime(Box([0, 0], [1, 1]), 0.5),
        operator,
        source=0.0,
        conditions=[Dirichlet(), Initial()],
        exact=lambda x, t: 1 / (1 + jnp.exp((direction @ x - 0.4 - t) / width)),
    )


# ---- waves


def advection(speed: float, end: float) -> Problem:
    """u_t + β u_x = 0 on (0, 2π), periodic, from sin x."""
    return Problem(
        SpaceTime(Interval(0, 2 * PI), end),
        lambda u, x, t: dt(u)(x, t) + speed * partial(u, 0)(x, t),
        source=0.0,
        conditions=[Periodic(0), Initial()],
        exact=lambda x, t: jnp.sin(x[0] - speed * t),
    )


@_register
def advection_40() -> Problem:
    """u_t + 40 u_x = 0 on (0, 2π), t ≤ 1, periodic, from sin x."""
    return advection(40.0, 1.0)


@_register
def advection_10000() -> Problem:
    """u_t + 10⁴ u_x = 0 on (0, 2π), t ≤ 1, periodic, from sin x."""
    return advection(1e4, 1.0)


@_register
def advection_long() -> Problem:
    """u_t + u_x = 0 on (0, 2π), t ≤ 1000, periodic, from sin x."""
    return advection(1.0, 1000.0)


@_register
def wave_modes(end: float = 1.0) -> Problem:
    """u_tt = 4 u_xx on (0, 1), t ≤ 1, u = sin πx cos 2πt + sin 4πx cos 8πt / 2."""
    return Problem(
        SpaceTime(Interval(0, 1), end),
        lambda u, x, t: dt(dt(u))(x, t) - 4 * partial(u, 0, 0)(x, t),
        source=0.0,
        conditions=[Dirichlet(0.0), Initial()],
        exact=lambda x, t: jnp.sin(PI * x[0]) * jnp.cos(2 * PI * t) + jnp.sin(4 * PI * x[0]) * jnp.cos(8 * PI * t) / 2,
    )


@_register
def wave_modes_long() -> Problem:
    """wave-modes up to t = 100."""
    return wave_modes(100.0)


@_register
def beam() -> Problem:
    """u_tt + u_xxxx = f on (0, π), t ≤ 1, hinged at both ends, u = sin x cos 4πt."""
    return Problem(
        SpaceTime(Interval(0, PI), 1.0),
        lambda u, x, t: dt(dt(u))(x, t) + partial(u, 0, 0, 0, 0)(x, t),
        source=lambda x, t: (1 - 16 * PI**2) * jnp.sin(x[0]) * jnp.cos(4 * PI * t),
        conditions=[Dirichlet(0.0), Condition(lambda u, x, t: partial(u, 0, 0)(x, t), name="moment"), Initial()],
        exact=lambda x, t: jnp.sin(x[0]) * jnp.cos(4 * PI * t),
    )


# ---- two dimensions


def bessel(order: float, z: Array) -> Array:
    """The Bessel function J of any order, by its series; to rounding for 0 ≤ z ≤ 3."""
    terms = [(-1) ** k / (math.factorial(k) * math.gamma(order + k + 1)) for k in range(17)]
    return (z / 2) ** order * jnp.polyval(jnp.array(terms[::-1]), (z / 2) ** 2, unroll=1)


@_register
def heat_corner() -> Problem:
    """u_t = Δu on the L-shaped domain, t ≤ 10, two decaying modes that are like r^(2/3) and r^(4/3) at the corner."""

    def exact(x: Array, t: Array) -> Array:
        # The angle is measured from the middle of the domain, so that it does not jump inside.
        along, across = -(x[0] + x[1]), x[0] - x[1]
        radius, angle = jnp.hypot(x[0], x[1]), jnp.arctan2(across, along) + 3 * PI / 4

        def mode(order: float, k: float) -> Array:
            return jnp.exp(-(k**2) * t) * bessel(order, k * radius) * jnp.sin(order * angle)

        return mode(2 / 3, 1.0) + mode(4 / 3, 1.5)

    return Problem(
        SpaceTime(Box([-1, -1], [1, 1]) - Box([0, 0], [1, 1]), 10.0),
        lambda u, x, t: dt(u)(x, t) - laplacian(u)(x, t),
        source=0.0,
        conditions=[Dirichlet(), Initial()],
        exact=exact,
    )


@_register
def taylor_green(viscosity: float = 0.01) -> Problem:
    """Navier-Stokes equations on (0, 2π)², t ≤ 10, periodic, Reynolds number 100: decaying vortices."""

    def operator(u, x: Array, t: Array) -> tuple[Array, Array]:
        momentum = dt(u.v)(x, t) + grad(u.v)(x, t) @ u.v(x, t) - viscosity * laplacian(u.v)(x, t)
        return momentum + grad(u.p)(x, t), div(u.v)(x, t)

    def velocity(x: Array, t: Array) -> Array:
        flow = jnp.stack([jnp.sin(x[0]) * jnp.cos(x[1]), -jnp.cos(x[0]) * jnp.sin(x[1])])
        return jnp.exp(-2 * viscosity * t) * flow

    return Problem(
        SpaceTime(Box([0, 0], [2 * PI, 2 * PI]), 10.0),
        operator,
        source=0.0,
        conditions=[Periodic(0), Periodic(1), Initial(unknown="v")],
        unknowns={"v": 2, "p": 1},
        exact={
            "v": velocity,
            "p": lambda x, t: jnp.exp(-4 * viscosity * t) * (jnp.cos(2 * x[0]) + jnp.cos(2 * x[1])) / 4,
        },
    )
