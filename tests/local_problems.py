"""Problems whose solutions are local: peaks, fronts, layers, holes and corners."""

import jax.numpy as jnp
import numpy as np

import pdofm as pf


def poisson(domain, exact=None, source=None, conditions=None, name="problem"):
    return pf.Problem(
        domain,
        lambda u, x: -pf.laplacian(u)(x),
        source=source,
        conditions=[pf.Dirichlet()] if conditions is None else conditions,
        exact=exact,
        name=name,
    )


SQUARE = pf.Box([0, 0], [1, 1])


def peak(width=0.0316, center=(0.5, 0.5)):
    def exact(x):
        return jnp.exp(-jnp.sum((x - jnp.array(center)) ** 2) / width**2)

    return poisson(SQUARE, exact, name="peak")


def front(steepness=50.0):
    def exact(x):
        return jnp.arctan(steepness * (jnp.linalg.norm(x + 0.05) - 0.7))

    return poisson(SQUARE, exact, name="front")


def two_peaks_and_a_front():
    def exact(x):
        first = jnp.exp(-1000 * jnp.sum((x - jnp.array([0.3, 0.7])) ** 2))
        second = jnp.exp(-5000 * jnp.sum((x - jnp.array([0.8, 0.2])) ** 2))
        return first + second + 0.5 * jnp.arctan(30 * (jnp.linalg.norm(x + 0.05) - 0.9))

    return poisson(SQUARE, exact, name="two peaks and a front")


def torsion_values(points):
    """-Δu = 1 on the unit square with zero values, by its Fourier series."""
    x, y = points.T - 0.5
    found = (1 - 4 * y**2) / 8
    for k in range(1, 4000, 2):
        sign = (-1) ** ((k - 1) // 2)
        a = k * np.pi
        ratio = np.exp(a * (np.abs(x) - 0.5)) * (1 + np.exp(-2 * a * np.abs(x))) / (1 + np.exp(-a))
        found -= 4 * sign / a**3 * np.cos(a * y) * ratio
    return found[:, None]


def torsion_square():
    return poisson(SQUARE, None, 1.0, [pf.Dirichlet(0.0)], name="torsion square")


def regular_polygon(n):
    angle = 2 * np.pi * np.arange(n) / n + np.pi / 2
    return pf.Polygon(np.stack([np.cos(angle), np.sin(angle)], axis=1))


def torsion(domain, name):
    return poisson(domain, None, 1.0, [pf.Dirichlet(0.0)], name=name)


def l_shape():
    return pf.Box([-1, -1], [1, 1]) - pf.Box([0, -1], [1, 0])


def corner_singularity():
    def exact(x):
        angle = jnp.arctan2(x[1], x[0])
        angle = jnp.where(angle < -1e-12, angle + 2 * jnp.pi, angle)
        return jnp.linalg.norm(x) ** (2 / 3) * jnp.sin(2 / 3 * angle)

    return poisson(l_shape(), exact, 0.0, name="corner")


def mixed_side():
    """r^(1/2): values are given on one half of a side, normal derivatives on the other."""

    def exact(x):
        return jnp.linalg.norm(x) ** 0.5 * jnp.sin(jnp.arctan2(x[1], x[0]) / 2)

    domain = pf.Box([-1, 0], [1, 1])
    bottom = domain.part("x1=lower")
    free, held = bottom.where(lambda x: x[0] < 0), bottom.where(lambda x: x[0] > 0)
    others = domain.part("x0=lower", "x0=upper", "x1=upper")
    conditions = [pf.Dirichlet(None, others), pf.Dirichlet(0.0, held), pf.Neumann(0.0, free)]
    return poisson(domain, exact, 0.0, conditions, name="mixed")


def annulus(inner=0.1):
    return poisson(
        pf.Annulus([0, 0], inner, 1), lambda x: jnp.log(jnp.linalg.norm(x)) / np.log(inner), 0.0, name="annulus"
    )


def eccentric_annulus(center=(0.3, 0.1), radius=0.2):
    """Harmonic, 0 on the unit circle and 1 on a circle in it, by a conformal map."""
    c = np.array(center)
    d = float(np.linalg.norm(c))
    # The two points that are inverse to each other in both circles.
    b = 1 + d**2 - radius**2
    p = (b - np.sqrt(b**2 - 4 * d**2)) / (2 * d)
    near, far = p * c / d, c / d / p

    def raw(x):
        return jnp.log(jnp.linalg.norm(x - near) / jnp.linalg.norm(x - far))

    outer, inner = (float(raw(jnp.array(z))) for z in (c / d, c + radius * c / d))

    def exact(x):
        return (raw(x) - outer) / (inner - outer)

    domain = pf.Disk([0, 0], 1) - pf.Disk(center, radius)
    return poisson(domain, exact, 0.0, name="eccentric annulus")


def four_holes():
    """Harmonic in a square with four holes: sources in the holes."""
    centers = [(a, b) for a in (-0.3, 0.3) for b in (-0.3, 0.3)]

    def exact(x):
        terms = [
            (1 + 0.3 * i) * jnp.log(jnp.linalg.norm(x - jnp.array(c))) for i, c in enumerate(centers)
        ]
        return sum(terms) + x[0] ** 2 - x[1] ** 2

    domain = pf.Box([-0.5, -0.5], [0.5, 0.5])
    for center in centers:
        domain = domain - pf.Disk(center, 0.1)
    return poisson(domain, exact, 0.0, name="four holes")


def helmholtz(k=100.0, angle=0.6):
    direction = jnp.array([np.cos(angle), np.sin(angle)])
    return pf.Problem(
        SQUARE,
        lambda u, x: -pf.laplacian(u)(x) - k**2 * u(x),
        source=0.0,
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.cos(k * (direction @ x) + 0.3),
        name="helmholtz",
    )


def layers(eps=1e-6):
    """Reaction and diffusion: boundary layers of width eps at all sides; exact in each coordinate."""

    def one(s):
        e = jnp.exp(-s / eps) + jnp.exp(-(1 - s) / eps)
        return 1 - e / (1 + np.exp(-1 / eps))

    return pf.Problem(
        SQUARE,
        lambda u, x: -(eps**2) * pf.laplacian(u)(x) + 2 * u(x),
        source=lambda x: one(x[0]) + one(x[1]),
        conditions=[pf.Dirichlet(0.0)],
        exact=lambda x: one(x[0]) * one(x[1]),
        name="layers",
    )


def t_shape():
    return pf.Box([0, 0], [3, 1]) | pf.Box([1, -2], [2, 0])


def triangle():
    return torsion(pf.Polygon([[0, 0], [1, 0], [0.3, 0.8]]), "triangle")


def pentagon():
    return torsion(regular_polygon(5), "pentagon")


def l_torsion():
    return torsion(l_shape(), "L")


def t_torsion():
    return torsion(t_shape(), "T")


def equilateral():
    """-Δu = 1 on an equilateral triangle: a cubic polynomial."""
    height = np.sqrt(3) / 2

    def exact(x):
        y = x[1]
        return y * (3 * (x[0] - 0.5) ** 2 - (y - height) ** 2) / (-4 * height) * -1.0

    return exact, pf.Polygon([[0, 0], [1, 0], [0.5, height]])


def disk():
    return poisson(pf.Disk([0.2, 0.1], 1.3), lambda x: jnp.exp(x[0]) * jnp.sin(2 * x[1]) + x[0] ** 4, name="disk")
