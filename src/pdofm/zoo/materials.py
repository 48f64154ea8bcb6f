"""Bodies of several materials: the coefficients of their equations jump at interfaces.

Where a problem has no exact solution, none is known in closed form. Functions with arguments make variants of their
problem.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pdofm.calculus.operators import div, dt, grad, laplacian, normal_derivative
from pdofm.domain import Annulus, Ball, Box, Disk, Domain, Ellipse, Interval, Regions, SpaceTime
from pdofm.problem.conditions import Dirichlet, Initial, Neumann
from pdofm.problem.interface import Interface
from pdofm.problem.problem import Problem
from pdofm.zoo.registry import group_of_problems

_register = group_of_problems("materials")

PLATE = Box([-1, -1], [1, 1])

KELLOGG = 161.4476387975881
"""The ratio of the coefficients of a checkerboard whose solution behaves like r^0.1."""


def conduction(
    regions: Domain, k: Mapping[str, float], *conditions: Any, exact: Any = None, source: float | None = 0.0
) -> Problem:
    """-div(k grad u) = f with a number k for each region; u and k ∂u/∂n are continuous at interfaces."""

    def operator(k: float) -> Callable[..., Any]:
        return lambda u, x: -k * laplacian(u)(x)

    def flux(k: float) -> Callable[..., Any]:
        return lambda u, x, normal: k * normal_derivative(u, normal)(x)

    between = Interface(flux={name: flux(each) for name, each in k.items()})
    operators = {name: operator(each) for name, each in k.items()}
    return Problem(regions, operators, source, [*(conditions or [Dirichlet()]), between], exact=exact)


@_register
def straight_jump(k: float = 10.0) -> Problem:
    """-div(k grad u) = f on the unit square, k = 1 left of x = 0.4 and 10 right of it."""
    regions = Regions(left=Box([0, 0], [0.4, 1]), right=Box([0.4, 0], [1, 1]))
    exact = {
        "left": lambda x: jnp.sin(3 * x[1]) * (x[0] - 0.4) + jnp.cos(2 * x[1]),
        "right": lambda x: jnp.sin(3 * x[1]) * jnp.sin(x[0] - 0.4) / k + jnp.cos(2 * x[1]),
    }
    return conduction(regions, {"left": 1.0, "right": k}, exact=exact, source=None)


@_register
def straight_jump_strong() -> Problem:
    """-div(k grad u) = f on the unit square, k = 1 left of x = 0.4 and 10⁶ right of it."""
    return straight_jump(1e6)


@_register
def round_inclusion(outside: float = 1.0, inside: float = 400.0, radius: float = 0.5) -> Problem:
    """A disk of conductivity 400 in a square of conductivity 1, in a field that is uniform far away."""
    contrast = (outside - inside) / (outside + inside)
    disk = Disk([0, 0], radius)
    exact = {
        "plate": lambda x: x[0] * (1 + contrast * radius**2 / (x @ x)),
        "inclusion": lambda x: x[0] * (1 + contrast),
    }
    regions = Regions(plate=PLATE - disk, inclusion=disk)
    return conduction(regions, {"plate": outside, "inclusion": inside}, exact=exact)


@_register
def round_inclusion_weak() -> Problem:
    """A disk of conductivity 1 in a square of conductivity 400, in a field that is uniform far away."""
    return round_inclusion(400.0, 1.0)


@_register
def elliptic_inclusion(a: float = 0.6, b: float = 0.25, inside: float = 20.0) -> Problem:
    """An ellipse of conductivity 20 in a square of conductivity 1, in a field that is uniform far away."""
    # With z = c (w + 1/w) / 2 the ellipse is |w| = (a + b) / c. Outside u = Re(z + B / w), inside it is linear.
    c, field = math.sqrt(a**2 - b**2), 1 / (1 + b / (a + b) * (inside - 1))
    amplitude = (field - 1) * a * (a + b) / c

    def outside(x: Array) -> Array:
        z = lax.complex(x[0], x[1])
        inverse = (z - jnp.sqrt(z - c) * jnp.sqrt(z + c)) / c
        return x[0] + amplitude * jnp.real(inverse)

    ellipse = Ellipse([0, 0], a, b)
    regions = Regions(plate=PLATE - ellipse, inclusion=ellipse)
    exact = {"plate": outside, "inclusion": lambda x: field * x[0]}
    return conduction(regions, {"plate": 1.0, "inclusion": inside}, exact=exact)


@_register
def concentric_layers(
    k: Sequence[float] = (5.0, 50.0, 0.5, 1.0), radii: Sequence[float] = (0.25, 0.45, 0.7)
) -> Problem:
    """A disk in two rings in a square, conductivities 5, 50, 0.5 and 1, in a field that is uniform far away."""
    # u = (A r + B / r) cos θ in each layer, with B = 0 in the disk and A = 1 outside.
    n = len(radii)
    matrix, right = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
    for i, r in enumerate(radii):  # columns: A of the layers 0 to n - 1, then B of the layers 1 to n
        for row, (of_a, of_b) in enumerate(
            [(lambda k, r: r, lambda k, r: 1 / r), (lambda k, r: k, lambda k, r: -k / r**2)]
        ):
            matrix[2 * i + row, i] = of_a(k[i], r)
            if i > 0:
                matrix[2 * i + row, n + i - 1] = of_b(k[i], r)
            if i + 1 < n:
                matrix[2 * i + row, i + 1] = -of_a(k[i + 1], r)
            else:
                right[2 * i + row] = of_a(k[n], r)
            matrix[2 * i + row, n + i] = -of_b(k[i + 1], r)
    found = np.linalg.solve(matrix, right).tolist()
    pairs = list(zip([*found[:n], 1.0], [0.0, *found[n:]], strict=True))
    names = ["core", *(f"ring{i}" for i in range(1, n)), "plate"]
    rings = [Annulus([0, 0], inner, outer) for inner, outer in pairwise(radii)]
    shapes = [Disk([0, 0], radii[0]), *rings, PLATE - Disk([0, 0], radii[-1])]
    exact = {
        name: lambda x, a=a, b=b: x[0] * (a + (b / (x @ x) if b else 0.0))
        for name, (a, b) in zip(names, pairs, strict=True)
    }
    regions = Regions(**dict(zip(names, shapes, strict=True)))
    return conduction(regions, dict(zip(names, k, strict=True)), exact=exact)


@_register
def fibre_composite(count: int = 3, fibre: float = 400.0) -> Problem:
    """Nine fibres of conductivity 400 in a matrix of conductivity 1, u = x on the left and right, no flux elsewhere."""
    matrix, fibres = Box([0, 0], [count, count]), {}
    for i in range(count):
        for j in range(count):
            disk = Disk([i + 0.5 + 0.1 * (i * j % 2), j + 0.5], 0.3)
            fibres[f"fibre{i}{j}"], matrix = disk, matrix - disk
    regions = Regions(matrix=matrix, **fibres)
    conditions = [
        Dirichlet(lambda x: x[0], on=regions.part("x0=lower", "x0=upper")),
        Neumann(0.0, on=regions.part("x1=lower", "x1=upper")),
    ]
    return conduction(regions, {"matrix": 1.0, **dict.fromkeys(fibres, fibre)}, *conditions)


def _sector(middle: float, alpha: float, size: float) -> Callable[[Array], Array]:
    """size · r^α cos(α (θ - middle)), which is symmetric about a direction."""

    def function(x: Array) -> Array:
        angle = jnp.mod(jnp.arctan2(x[1], x[0]) - middle + math.pi, 2 * math.pi) - math.pi
        return size * jnp.sqrt(x @ x) ** alpha * jnp.cos(alpha * angle)

    return function


def corner_exponent(k: float) -> float:
    """The exponent α of r at the corner of a quarter of conductivity k in a plane of conductivity 1."""
    from scipy.optimize import brentq

    # Symmetric about the diagonal: k tan(απ/4) + tan(3απ/4) = 0 with α between 2/3 and 1.
    condition = lambda a: k * math.tan(a * math.pi / 4) + math.tan(3 * a * math.pi / 4)
    return float(brentq(condition, 2 / 3 + 1e-12, 1.0, xtol=1e-16))


@_register
def interface_corner(k: float = 50.0) -> Problem:
    """A quarter of conductivity 50 in a square of conductivity 1: an interface with a corner, u like r^0.68."""
    alpha = corner_exponent(k)
    inside, outside = math.cos(alpha * 3 * math.pi / 4), math.cos(alpha * math.pi / 4)
    corner = Box([0, 0], [1, 1])
    exact = {
        "corner": _sector(math.pi / 4, alpha, inside),
        "rest": _sector(5 * math.pi / 4, alpha, outside),
    }
    return conduction(Regions(corner=corner, rest=PLATE - corner), {"corner": k, "rest": 1.0}, exact=exact)


@_register
def kellogg_checkerboard() -> Problem:
    """A checkerboard of four squares with conductivities 161.4 and 1, u like r^0.1: Kellogg's problem."""
    alpha, sigma = 0.1, -14.92256510455152  # Morin, Nochetto and Siebert (2000)
    rho = math.pi / 4
    size = [
        (math.cos((math.pi / 2 - sigma) * alpha), math.pi / 2 - rho),
        (math.cos(rho * alpha), math.pi - sigma),
        (math.cos(sigma * alpha), math.pi + rho),
        (math.cos((math.pi / 2 - rho) * alpha), 3 * math.pi / 2 + sigma),
    ]

    def quarter(start: float, factor: float, middle: float) -> Callable[[Array], Array]:
        def function(x: Array) -> Array:
            turned = jnp.mod(jnp.arctan2(x[1], x[0]) - start + math.pi / 4, 2 * math.pi) - math.pi / 4 + start
            return jnp.sqrt(x @ x) ** alpha * factor * jnp.cos((turned - middle) * alpha)

        return function

    corners = {"first": (0, 0), "second": (-1, 0), "third": (-1, -1), "fourth": (0, -1)}
    regions = Regions(**{name: Box(list(c), [c[0] + 1, c[1] + 1]) for name, c in corners.items()})
    exact = {name: quarter(i * math.pi / 2, *each) for i, (name, each) in enumerate(zip(corners, size, strict=True))}
    k = dict(zip(corners, (KELLOGG, 1.0, KELLOGG, 1.0), strict=True))
    return conduction(regions, k, exact=exact)


@_register
def sphere_in_cube(outside: float = 1.0, inside: float = 10.0, radius: float = 0.5) -> Problem:
    """A ball of conductivity 10 in a cube of conductivity 1, in a field that is uniform far away."""
    contrast = (outside - inside) / (2 * outside + inside)
    ball, cube = Ball([0, 0, 0], radius), Box([-1, -1, -1], [1, 1, 1])
    exact = {
        "cube": lambda x: x[0] * (1 + contrast * radius**3 / (x @ x) ** 1.5),
        "ball": lambda x: x[0] * (1 + contrast),
    }
    return conduction(Regions(cube=cube - ball, ball=ball), {"cube": outside, "ball": inside}, exact=exact)


@_register
def ball_in_cube(inside: float = 10.0, radius: float = 0.5) -> Problem:
    """A ball of conductivity 10 in a cube of conductivity 1, u = x on the faces of the cube."""
    ball, cube = Ball([0, 0, 0], radius), Box([-1, -1, -1], [1, 1, 1])
    regions = Regions(cube=cube - ball, ball=ball)
    return conduction(regions, {"cube": 1.0, "ball": inside}, Dirichlet(lambda x: x[0]))


@_register
def elastic_inclusion(radius: float = 0.4) -> Problem:
    """A stiff fibre in an elastic matrix, in plane strain, under tension from all sides."""
    lame = {"matrix": (0.5769, 0.3846), "fibre": (2.7778, 4.1667)}
    (l1, m1), (l2, m2) = lame.values()
    system = [[radius, -1 / radius], [2 * (l2 + m2), 2 * m1 / radius**2]]
    inner, outer = np.linalg.solve(system, [radius, 2 * (l1 + m1)]).tolist()

    def stress(u: Any, x: Array, numbers: tuple[float, float]) -> Array:
        gradient = grad(u.v)(x)
        strain = (gradient + gradient.T) / 2
        return numbers[0] * jnp.trace(strain) * jnp.eye(2) + 2 * numbers[1] * strain

    disk = Disk([0, 0], radius)
    return Problem(
        Regions(matrix=PLATE - disk, fibre=disk),
        {n: lambda u, x, k=k: -div(lambda y: stress(u, y, k))(x) for n, k in lame.items()},
        0.0,
        [Dirichlet(), Interface(flux={n: lambda u, x, normal, k=k: stress(u, x, k) @ normal for n, k in lame.items()})],
        unknowns={"v": 2},
        exact={"matrix": {"v": lambda x: x * (1 + outer / (x @ x))}, "fibre": {"v": lambda x: inner * x}},
    )


@_register
def wave_in_two_media() -> Problem:
    """u_tt = (c² u_x)_x with c = 1 for x < 1 and 2 for x > 1: a pulse that is reflected and transmitted."""
    speeds = {"left": 1.0, "right": 2.0}

    def pulse(z: Array) -> Array:
        return jnp.exp(-40 * (z - 0.5) ** 2)

    def operator(c: float) -> Callable[..., Any]:
        return lambda u, x, t: dt(dt(u))(x, t) - c**2 * laplacian(u)(x, t)

    def stress(c: float) -> Callable[..., Any]:
        return lambda u, x, t, normal: c**2 * normal_derivative(u, normal)(x, t)

    exact = {
        "left": lambda x, t: pulse(t - (x[0] - 1)) - pulse(t + (x[0] - 1)) / 3,
        "right": lambda x, t: 2 / 3 * pulse(t - (x[0] - 1) / 2),
    }
    space = Regions(left=Interval(0, 1), right=Interval(1, 2.5))
    return Problem(
        SpaceTime(space, 1.0),
        {name: operator(c) for name, c in speeds.items()},
        0.0,
        [Dirichlet(), Initial(), Interface(flux={name: stress(c) for name, c in speeds.items()})],
        exact=exact,
    )
