"""Problems whose solutions vary fast in small places or are singular: peaks, fronts, layers, holes, corners and edges.

Where a problem has no exact solution, none is known in closed form. Functions with arguments make variants of their
problem.
"""

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.operators import div, grad, laplacian
from pdofm.domain import Annulus, Ball, Box, Disk, Domain, Polygon
from pdofm.problem.conditions import Condition, Dirichlet, Neumann
from pdofm.problem.problem import Problem
from pdofm.zoo.registry import group_of_problems

_register = group_of_problems("local")

UNIT_SQUARE = Box([0, 0], [1, 1])

HOLE_CENTERS, HOLE_RADIUS = [(-0.3, -0.3), (-0.3, 0.3), (0.3, -0.3), (0.3, 0.3)], 0.1
"""The centers and the radius of the round holes of `four_holes`."""

HOLE_WELLS = [(a + 0.03, b - 0.02) for a, b in HOLE_CENTERS]
"""Where the logarithms of `four_holes` are singular: in the holes, but off their centers, so that the solution is no
finite sum of multipoles around these."""

FRONT_CENTER = (-0.05, -0.05)
"""The center of the circles along which fronts lie."""

SLIT_WIDTH = 2e-9
"""The width of the slit at the side of the square where it is open; it is a wedge, since domains are sets of points
with two different sides. The angle at its tip differs from 2π by as much."""


def poisson(domain: Domain, exact: Callable[[Array], Array], source: float | None = None) -> Problem:
    """-Δu = f with the boundary values of an exact solution; f is that of the exact solution if it is not given."""
    return Problem(domain, lambda u, x: -laplacian(u)(x), source, [Dirichlet()], exact=exact)


# ---- a constant source: corners and edges


def torsion(domain: Domain) -> Problem:
    """-Δu = 1 with u = 0 on the boundary: the stress function of a twisted bar with this cross-section."""
    return Problem(domain, lambda u, x: -laplacian(u)(x), 1.0, [Dirichlet(0.0)])


@_register
def torsion_square() -> Problem:
    """-Δu = 1 on the unit square, u = 0 on its boundary; like r² log r at the corners."""
    return torsion(UNIT_SQUARE)


@_register
def torsion_triangle() -> Problem:
    """-Δu = 1 on the triangle (0, 0), (1, 0), (0.3, 0.8), u = 0 on its boundary."""
    return torsion(Polygon([[0, 0], [1, 0], [0.3, 0.8]]))


@_register
def torsion_pentagon(vertices: int = 5) -> Problem:
    """-Δu = 1 on the regular pentagon with vertices on the unit circle, u = 0 on its boundary; like r^(5/3) at them."""
    angle = 2 * np.pi * np.arange(vertices) / vertices + np.pi / 2
    return torsion(Polygon(np.stack([np.cos(angle), np.sin(angle)], axis=1)))


@_register
def torsion_lshape() -> Problem:
    """-Δu = 1 on the L-shaped domain (-1, 1)² minus [0, 1]², u = 0 on its boundary; like r^(2/3) at the corner."""
    return torsion(Box([-1, -1], [1, 1]) - Box([0, 0], [1, 1]))


@_register
def torsion_tshape() -> Problem:
    """-Δu = 1 on the T-shaped domain (0, 3) x (0, 1) with (1, 2) x (-2, 0] below, u = 0 on its boundary."""
    return torsion(Box([0, 0], [3, 1]) | Box([1, -2], [2, 0]))


@_register
def torsion_cube() -> Problem:
    """-Δu = 1 on the unit cube, u = 0 on its boundary; like r² log r along the edges."""
    return torsion(Box([0, 0, 0], [1, 1, 1]))


@_register
def fichera() -> Problem:
    """-Δu = 1 on Fichera's corner (-1, 1)³ minus [0, 1]³, u = 0 on its boundary."""
    return torsion(Box([-1, -1, -1], [1, 1, 1]) - Box([0, 0, 0], [1, 1, 1]))


# ---- peaks and fronts


def _peak(x: Array, center: Sequence[float], width: float) -> Array:
    return jnp.exp(-jnp.sum((x - jnp.array(center)) ** 2) / width**2)


def _front(x: Array, steepness: float, radius: float) -> Array:
    return jnp.arctan(steepness * (jnp.linalg.norm(x - jnp.array(FRONT_CENTER)) - radius))


@_register
def peak(width: float = 0.0316, center: Sequence[float] = (0.5, 0.5)) -> Problem:
    """-Δu = f on the unit square, u = exp(-|x - c|² / w²), w = 0.0316, in its center."""
    return poisson(UNIT_SQUARE, lambda x: _peak(x, center, width))


@_register
def front(steepness: float = 50.0, radius: float = 0.7) -> Problem:
    """-Δu = f on the unit square, u = arctan(50 (r - 0.7)), r the distance from (-0.05, -0.05)."""
    return poisson(UNIT_SQUARE, lambda x: _front(x, steepness, radius))


@_register
def front_steep() -> Problem:
    """-Δu = f on the unit square, u = arctan(1000 (r - 0.7)), r the distance from (-0.05, -0.05)."""
    return front(1000.0)


@_register
def peaks_and_front() -> Problem:
    """-Δu = f on the unit square, with peaks of width 0.032 and 0.014 and a front of width 1/30."""

    def exact(x: Array) -> Array:
        peaks = _peak(x, (0.3, 0.7), 1000**-0.5) + _peak(x, (0.8, 0.2), 5000**-0.5)
        return peaks + 0.5 * _front(x, 30.0, 0.9)

    return poisson(UNIT_SQUARE, exact)


# ---- round holes


@_register
def four_holes() -> Problem:
    """Δu = 0 on the square (-½, ½)² with four round holes of radius 0.1, and a well of log r in each."""

    def exact(x: Array) -> Array:
        wells = [(1 + 0.3 * i) * jnp.log(jnp.linalg.norm(x - jnp.array(c))) for i, c in enumerate(HOLE_WELLS)]
        return sum(wells, x[0] ** 2 - x[1] ** 2)

    domain: Domain = Box([-0.5, -0.5], [0.5, 0.5])
    for center in HOLE_CENTERS:
        domain = domain - Disk(center, HOLE_RADIUS)
    return poisson(domain, exact, 0.0)


@_register
def annulus_log(inner: float = 0.1) -> Problem:
    """Δu = 0 on the annulus 0.1 < r < 1, u = log r / log 0.1."""
    return poisson(Annulus((0, 0), inner, 1.0), lambda x: jnp.log(jnp.linalg.norm(x)) / math.log(inner), 0.0)


@_register
def annulus_eccentric(center: Sequence[float] = (0.3, 0.1), radius: float = 0.2) -> Problem:
    """Δu = 0 between the unit circle, u = 0, and a circle of radius 0.2 around (0.3, 0.1), u = 1."""
    c = np.array(center)
    distance = float(np.linalg.norm(c))
    # The two points that inversion in either circle exchanges: the circles are level lines of the ratio of distances.
    half = (1 + distance**2 - radius**2) / 2
    p = (half - math.sqrt(half**2 - distance**2)) / distance
    near, far = p * c / distance, c / distance / p

    def ratio(x: Array) -> Array:
        return jnp.log(jnp.linalg.norm(x - near) / jnp.linalg.norm(x - far))

    outer, inner = (float(ratio(jnp.array(z))) for z in (c / distance, c + radius * c / distance))
    domain = Disk([0, 0], 1) - Disk(center, radius)
    return poisson(domain, lambda x: (ratio(x) - outer) / (inner - outer), 0.0)


@_register
def cube_minus_ball() -> Problem:
    """Δu = 0 on the cube (-1, 1)³ minus the ball r < 0.5, u = 1 / r."""
    return poisson(Box([-1, -1, -1], [1, 1, 1]) - Ball([0, 0, 0], 0.5), lambda x: 1 / jnp.linalg.norm(x), 0.0)


# ---- singular points


def _root(x: Array) -> Array:
    """r^(1/2) sin(θ/2) with 0 ≤ θ < 2π."""
    return jnp.linalg.norm(x) ** 0.5 * jnp.sin(jnp.mod(jnp.arctan2(x[1], x[0]), 2 * jnp.pi) / 2)


@_register
def slit() -> Problem:
    """Δu = 0 on the square (-1, 1)² with a slit along y = 0 from the origin to x = 1, u = r^(1/2) sin(θ/2)."""
    half = SLIT_WIDTH / 2
    domain = Polygon([(0, 0), (1, half), (1, 1), (-1, 1), (-1, -1), (1, -1), (1, -half)])
    return poisson(domain, _root, 0.0)


@_register
def mixed_side() -> Problem:
    """Δu = 0 on (-1, 1) x (0, 1), u = 0 on one half of the lower side and u_n = 0 on the other: r^(1/2) sin(θ/2)."""
    domain = Box([-1, 0], [1, 1])
    bottom, others = domain.part("x1=lower"), domain.part("x0=lower", "x0=upper", "x1=upper")
    free, held = bottom.where(lambda x: x[0] < 0), bottom.where(lambda x: x[0] > 0)
    conditions = [Dirichlet(None, others), Dirichlet(0.0, held), Neumann(0.0, free)]
    return Problem(domain, lambda u, x: -laplacian(u)(x), 0.0, conditions, exact=_root)


# ---- layers and waves


@_register
def reaction_layers(width: float = 1e-6) -> Problem:
    """-ε² Δu + 2 u = f on the unit square, ε = 1e-6, u = 0 on its boundary, with layers of width ε at all sides."""

    def one(s: Array) -> Array:
        return 1 - (jnp.exp(-s / width) + jnp.exp(-(1 - s) / width)) / (1 + math.exp(-1 / width))

    return Problem(
        UNIT_SQUARE,
        lambda u, x: -(width**2) * laplacian(u)(x) + 2 * u(x),
        source=lambda x: one(x[0]) + one(x[1]),
        conditions=[Dirichlet(0.0)],
        exact=lambda x: one(x[0]) * one(x[1]),
    )


@_register
def helmholtz_square(wave_number: float = 100.0, angle: float = 0.6) -> Problem:
    """-Δu - k² u = 0 on the unit square, k = 100, a plane wave."""
    direction = jnp.array([math.cos(angle), math.sin(angle)])
    return Problem(
        UNIT_SQUARE,
        lambda u, x: -laplacian(u)(x) - wave_number**2 * u(x),
        source=0.0,
        conditions=[Dirichlet()],
        exact=lambda x: jnp.cos(wave_number * (direction @ x) + 0.3),
    )


# ---- systems


@_register
def plate_with_hole(radius: float = 0.3) -> Problem:
    """Plane strain in the square (-1, 1)² with a free round hole of radius 0.3, under tension: Kirsch's solution."""
    mu, lam = 1.0, 1.5
    kappa = 1 + 2 * mu / (lam + mu)

    def displacement(x: Array) -> Array:
        r, t = jnp.linalg.norm(x), jnp.arctan2(x[1], x[0])
        near, cosine, sine = (radius / r) ** 2, jnp.cos(2 * t), jnp.sin(2 * t)
        radial = kappa - 1 + 2 * cosine + 2 * near * (1 + (1 + kappa) * cosine) - 2 * near**2 * cosine
        around = -(2 + 2 * near * (kappa - 1) + 2 * near**2) * sine
        c, s = jnp.cos(t), jnp.sin(t)
        return r / (8 * mu) * jnp.stack([radial * c - around * s, radial * s + around * c])

    def stress(v, x: Array) -> Array:
        gradient = grad(v)(x)
        return lam * jnp.trace(gradient) * jnp.eye(2) + mu * (gradient + gradient.T)

    domain = Box([-1, -1], [1, 1]) - Disk([0, 0], radius)
    hole, sides = domain.part("circle"), domain.part("x0=lower", "x0=upper", "x1=lower", "x1=upper")
    return Problem(
        domain,
        operator=lambda u, x: -div(lambda y: stress(u.d, y))(x),
        source=0.0,
        conditions=[
            Dirichlet(None, sides),
            Condition(lambda u, x, normal: stress(u.d, x) @ normal, hole, name="traction"),
        ],
        unknowns={"d": 2},
        exact={"d": displacement},
    )


@_register
def stokes_lshape() -> Problem:
    """Stokes flow in the L-shaped domain (-1, 1)² minus [0, 1] x [-1, 0]: Verfürth's solution, v = r^0.544 …."""
    exponent, omega = 856399 / 1572864, 1.5 * math.pi

    def psi(t: Array) -> Array:
        above, below, factor = 1 + exponent, 1 - exponent, math.cos(exponent * omega)
        sines = jnp.sin(above * t) / above - jnp.sin(below * t) / below
        return factor * sines - jnp.cos(above * t) + jnp.cos(below * t)

    slope = jax.grad(psi)
    third = jax.grad(jax.grad(slope))

    def polar(x: Array) -> tuple[Array, Array]:
        t = jnp.arctan2(x[1], x[0])
        return jnp.linalg.norm(x), jnp.where(t < -1e-12, t + 2 * jnp.pi, t)

    def velocity(x: Array) -> Array:
        r, t = polar(x)
        along, across = slope(t), (1 + exponent) * psi(t)
        turned = [jnp.sin(t) * across + jnp.cos(t) * along, jnp.sin(t) * along - jnp.cos(t) * across]
        return r**exponent * jnp.stack(turned)

    def pressure(x: Array) -> Array:
        r, t = polar(x)
        return -(r ** (exponent - 1)) * ((1 + exponent) ** 2 * slope(t) + third(t)) / (1 - exponent)

    return Problem(
        Box([-1, -1], [1, 1]) - Box([0, -1], [1, 0]),
        operator=lambda u, x: (-laplacian(u.v)(x) + grad(u.p)(x), div(u.v)(x)),
        source=0.0,
        conditions=[
            Dirichlet(None, unknown="v"),
            # The equations determine the pressure only up to a constant.
            Condition(lambda u, x: u.p(x) - pressure(x), [[-0.5, 0.5]], name="pressure at a point"),
        ],
        unknowns={"v": 2, "p": 1},
        exact={"v": velocity, "p": pressure},
    )
