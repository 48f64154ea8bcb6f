"""Problems that solvers are compared with in publications: many dimensions, holes, scales, flows.

Where a problem has no exact solution, the values or quantities that it is compared with are those of `pdofm challenge`.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.operators import div, dt, grad, laplacian, normal_derivative
from pdofm.domain import Ball, Box, Disk, Domain, SpaceTime
from pdofm.problem.conditions import Condition, Dirichlet, Initial, Neumann
from pdofm.problem.problem import Problem
from pdofm.zoo.local import HOLE_CENTERS
from pdofm.zoo.registry import group_of_problems

_register = group_of_problems("published")

PI = np.pi

CHANNEL, CYLINDER, RADIUS = Box([0, 0], [2.2, 0.41]), (0.2, 0.2), 0.05
"""The channel and the cylinder of `cylinder_flow`."""

CYLINDER_VISCOSITY = 1e-3


# ---- many dimensions


@_register
def sines_5d(dim: int = 5) -> Problem:
    """-Δu = f on the unit cube of five dimensions, u = Σ sin(π xᵢ / 2) (PINNacle)."""
    return Problem(
        Box([0] * dim, [1] * dim),
        lambda u, x: -laplacian(u)(x),
        lambda x: PI**2 / 4 * jnp.sum(jnp.sin(PI / 2 * x)),
        [Dirichlet()],
        exact=lambda x: jnp.sum(jnp.sin(PI / 2 * x)),
    )


@_register
def sines_10d() -> Problem:
    """-Δu = f on the unit cube of ten dimensions, u = Σ sin(π xᵢ / 2)."""
    return sines_5d(10)


@_register
def heat_ball_5d(dim: int = 5) -> Problem:
    """u_t = Δu / 5 + f in the unit ball of five dimensions, t ≤ 1, u = exp(|x|² / 2 + t), u_n given (PINNacle)."""

    def exact(x: Array, t: Array) -> Array:
        return jnp.exp(jnp.sum(x**2) / 2 + t)

    return Problem(
        SpaceTime(Ball([0.0] * dim, 1.0), 1.0),
        lambda u, x, t: dt(u)(x, t) - laplacian(u)(x, t) / dim,
        lambda x, t: -jnp.sum(x**2) / dim * exact(x, t),
        [Neumann(lambda x, t, normal: (x @ normal) * exact(x, t)), Initial()],
        exact=exact,
    )


@_register
def heat_ball_100d(dim: int = 100) -> Problem:
    """u_t = Δu in the unit ball of a hundred dimensions, t ≤ 1, u = t + |x|² / 200."""
    return Problem(
        SpaceTime(Ball([0.0] * dim, 1.0), 1.0),
        lambda u, x, t: dt(u)(x, t) - laplacian(u)(x, t),
        0.0,
        [Dirichlet(), Initial()],
        exact=lambda x, t: t + jnp.sum(x**2) / (2 * dim),
    )


# ---- holes and scales


@_register
def holes_laplace(radius: float = 0.1) -> Problem:
    """Δu = 0 on the square (-½, ½)² with round holes of radius 0.1 at (±0.3, ±0.3), u = 1 outside, 0 at the holes."""
    domain: Domain = Box([-0.5, -0.5], [0.5, 0.5])
    for center in HOLE_CENTERS:
        domain = domain - Disk(center, radius)
    outside = domain.part("x0=lower", "x0=upper", "x1=lower", "x1=upper")
    holes = domain.part("circle", "circle#2", "circle#3", "circle#4")
    return Problem(domain, lambda u, x: -laplacian(u)(x), 0.0, [Dirichlet(1.0, outside), Dirichlet(0.0, holes)])


@_register
def heat_scales() -> Problem:
    """u_t = u_xx / (500π)² + u_yy / π² on the unit square, t ≤ 5, from sin 20πx sin πy, u = 0 at the sides."""
    slow, fast = 1 / (500 * PI) ** 2, 1 / PI**2

    def operator(u, x: Array, t: Array) -> Array:
        second = grad(grad(u))(x, t)
        return dt(u)(x, t) - slow * second[0, 0] - fast * second[1, 1]

    return Problem(
        SpaceTime(Box([0, 0], [1, 1]), 5.0),
        operator,
        0.0,
        [Dirichlet(0.0), Initial()],
        exact=lambda x, t: jnp.sin(20 * PI * x[0]) * jnp.sin(PI * x[1]) * jnp.exp(-(0.04**2 + 1) * t),
    )


@_register
def heat_nonlinear(end: float = 100.0) -> Problem:
    """u_t = 0.001 Δu + 5 sin(u²) (1 + 2 sin(πt/4)) sin 4πx sin 2πy, t ≤ 100, from sin 4πx sin 3πy."""

    def operator(u, x: Array, t: Array) -> Array:
        force = 5 * (1 + 2 * jnp.sin(PI * t / 4)) * jnp.sin(4 * PI * x[0]) * jnp.sin(2 * PI * x[1])
        return dt(u)(x, t) - 0.001 * laplacian(u)(x, t) - force * jnp.sin(u(x, t) ** 2)

    start = Initial(lambda x, t: jnp.sin(4 * PI * x[0]) * jnp.sin(3 * PI * x[1]))
    return Problem(SpaceTime(Box([0, 0], [1, 1]), end), operator, 0.0, [Dirichlet(0.0), start])


# ---- flows


def _steady(viscosity: float):
    """The steady Navier-Stokes equations."""

    def operator(u, x: Array) -> tuple[Array, Array]:
        momentum = -viscosity * laplacian(u.v)(x) + grad(u.v)(x) @ u.v(x) + grad(u.p)(x)
        return momentum, div(u.v)(x)

    return operator


def cavity(reynolds: float, regular: bool) -> Problem:
    """Steady flow in the unit square, driven by its upper side: at the speed 4x(1 - x), or at 1 up to the corners."""
    square = Box([0, 0], [1, 1])

    def lid(x: Array) -> Array:
        return jnp.stack([4 * x[0] * (1 - x[0]) if regular else jnp.ones_like(x[0]), jnp.zeros_like(x[0])])

    return Problem(
        square,
        _steady(1 / reynolds),
        0.0,
        [
            Dirichlet(lid, square.part("x1=upper"), unknown="v"),
            Dirichlet(0.0, square.part("x0=lower", "x0=upper", "x1=lower"), unknown="v"),
            # The equations determine the pressure only up to a constant.
            Condition(lambda u, x: u.p(x), [[0.5, 0.5]], name="pressure at a point"),
        ],
        unknowns={"v": 2, "p": 1},
    )


@_register
def cavity_regular() -> Problem:
    """Steady flow at Re = 100 in the unit square, driven by its upper side at the speed 4x(1 - x) (PINNacle)."""
    return cavity(100.0, regular=True)


@_register
def cavity_100() -> Problem:
    """The lid-driven cavity at Re = 100: the lid has the speed 1 up to the corners, where the velocity jumps."""
    return cavity(100.0, regular=False)


@_register
def cavity_400() -> Problem:
    """The lid-driven cavity at Re = 400."""
    return cavity(400.0, regular=False)


@_register
def cavity_1000() -> Problem:
    """The lid-driven cavity at Re = 1000."""
    return cavity(1000.0, regular=False)


@_register
def cylinder_flow() -> Problem:
    """Steady flow at Re = 20 around a cylinder in a channel (Schäfer and Turek 1996, problem 2D-1)."""
    domain = CHANNEL - Disk(CYLINDER, RADIUS)
    height = 0.41

    def inflow(x: Array) -> Array:
        return jnp.stack([4 * 0.3 * x[1] * (height - x[1]) / height**2, jnp.zeros_like(x[0])])

    return Problem(
        domain,
        _steady(CYLINDER_VISCOSITY),
        0.0,
        [
            Dirichlet(inflow, domain.part("x0=lower"), unknown="v"),
            Dirichlet(0.0, domain.part("x1=lower", "x1=upper", "circle"), unknown="v"),
            Condition(cylinder_stress, domain.part("x0=upper"), name="outflow"),
        ],
        unknowns={"v": 2, "p": 1},
    )


def cylinder_stress(u, x: Array, normal: Array) -> Array:
    """The pseudo-stress ν ∂v/∂n - p n, which vanishes at the outflow and whose integral is the force on a no-slip
    cylinder."""
    return CYLINDER_VISCOSITY * normal_derivative(u.v, normal)(x) - u.p(x) * normal
