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
        terms = [(1 + 0.3 * i) * jnp.log(jnp.linalg.norm(x - jnp.array(c))) for i, c in enumerate(centers)]
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


def cubic():
    """Nonlinear: -Δu + u³ = f with a peak."""

    def exact(x):
        return 2 * jnp.exp(-200 * jnp.sum((x - jnp.array([0.4, 0.6])) ** 2)) + x[0]

    return pf.Problem(
        SQUARE, lambda u, x: -pf.laplacian(u)(x) + u(x) ** 3, conditions=[pf.Dirichlet()], exact=exact, name="cubic"
    )


def kovasznay():
    return pf.zoo.get("kovasznay")


def kirsch(radius=0.3):
    """Plane strain in a square plate with a round hole under tension: the solution of Kirsch, whose tractions are given
    on the hole, its displacements on the square."""
    mu, lam = 1.0, 1.5
    kappa = 1 + 2 * mu / (lam + mu)

    def displacement(x):
        r, t = jnp.linalg.norm(x), jnp.arctan2(x[1], x[0])
        a = radius
        radial = (
            1
            / (8 * mu)
            * (
                r * (kappa - 1 + 2 * jnp.cos(2 * t))
                + 2 * a**2 / r * (1 + (1 + kappa) * jnp.cos(2 * t))
                - 2 * a**4 / r**3 * jnp.cos(2 * t)
            )
        )
        around = 1 / (8 * mu) * (-2 * r - 2 * a**2 / r * (kappa - 1) - 2 * a**4 / r**3) * jnp.sin(2 * t)
        c, s = jnp.cos(t), jnp.sin(t)
        return jnp.stack([radial * c - around * s, radial * s + around * c])

    def stress(u, x):
        g = pf.grad(u)(x)
        return lam * jnp.trace(g) * jnp.eye(2) + mu * (g + g.T)

    def operator(u, x):
        return -pf.div(lambda y: stress(u.w, y))(x)

    domain = pf.Box([-1, -1], [1, 1]) - pf.Disk([0, 0], radius)
    hole = domain.part("circle")
    square = domain.part("x0=lower", "x0=upper", "x1=lower", "x1=upper")
    conditions = [
        pf.Dirichlet(None, square),
        pf.Condition(lambda u, x, normal: stress(u.w, x) @ normal, hole, name="traction"),
    ]
    return pf.Problem(domain, operator, 0.0, conditions, {"w": 2}, {"w": displacement}, name="kirsch")


def stokes_l():
    """Stokes flow in an L with the solution of Verfürth, singular at the re-entrant corner."""
    alpha, omega = 856399 / 1572864, 3 * np.pi / 2

    def psi(t):
        return (
            jnp.sin((1 + alpha) * t) * np.cos(alpha * omega) / (1 + alpha)
            - jnp.cos((1 + alpha) * t)
            - jnp.sin((1 - alpha) * t) * np.cos(alpha * omega) / (1 - alpha)
            + jnp.cos((1 - alpha) * t)
        )

    import jax

    first = jax.grad(psi)
    third = jax.grad(jax.grad(first))

    def angle(x):
        t = jnp.arctan2(x[1], x[0])
        return jnp.where(t < -1e-12, t + 2 * jnp.pi, t)

    def velocity(x):
        r, t = jnp.linalg.norm(x), angle(x)
        return r**alpha * jnp.stack(
            [
                (1 + alpha) * jnp.sin(t) * psi(t) + jnp.cos(t) * first(t),
                jnp.sin(t) * first(t) - (1 + alpha) * jnp.cos(t) * psi(t),
            ]
        )

    def pressure(x):
        r, t = jnp.linalg.norm(x), angle(x)
        return -(r ** (alpha - 1)) * ((1 + alpha) ** 2 * first(t) + third(t)) / (1 - alpha)

    def operator(u, x):
        return -pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)

    at = [[-0.5, 0.5]]
    value = float(pressure(jnp.array(at[0])))
    conditions = [
        pf.Dirichlet(None, unknown="v"),
        pf.Condition(lambda u, x: u.p(x) - value, at, name="pressure at a point"),
    ]
    return pf.Problem(
        l_shape(), operator, 0.0, conditions, {"v": 2, "p": 1}, {"v": velocity, "p": pressure}, name="stokes L"
    )


def stokes_smooth():
    """Manufactured Stokes flow with a velocity that is zero nowhere in particular."""

    def velocity(x):
        return jnp.stack([jnp.sin(2 * x[0]) * jnp.cos(2 * x[1]), -jnp.cos(2 * x[0]) * jnp.sin(2 * x[1])])

    def pressure(x):
        return jnp.exp(x[0] * x[1])

    def operator(u, x):
        return -0.1 * pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)

    at = [[0.25, 0.3]]
    conditions = [
        pf.Dirichlet(None, unknown="v"),
        pf.Condition(lambda u, x: u.p(x) - pressure(x), at, name="pressure at a point"),
    ]
    return pf.Problem(
        SQUARE, operator, None, conditions, {"v": 2, "p": 1}, {"v": velocity, "p": pressure}, name="stokes"
    )


def burgers(nu=0.01 / np.pi):
    """Burgers' equation in space-time, from -sin πx."""
    domain = pf.SpaceTime(pf.Interval(-1, 1), 1.0)
    return pf.Problem(
        domain,
        lambda u, x, t: pf.dt(u)(x, t) + u(x, t) * pf.grad(u)(x, t)[0] - nu * pf.laplacian(u)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(0.0), pf.Initial(lambda x, t: -jnp.sin(jnp.pi * x[0]))],
        name="burgers",
    )


def burgers_values(points, nu=0.01 / np.pi):
    """By the transform of Cole and Hopf."""
    z, w = np.polynomial.hermite.hermgauss(300)
    x, t = points[:, :1], np.maximum(points[:, 1:], 1e-12)
    y = x - np.sqrt(4 * nu * t) * z
    e = -np.cos(np.pi * y) / (2 * np.pi * nu)
    f = np.exp(e - e.max(axis=1, keepdims=True)) * w
    return (-(np.sin(np.pi * y) * f).sum(axis=1) / f.sum(axis=1))[:, None]


def wave_periodic():
    return pf.zoo.get("wave-periodic")


def layer_1d(eps=1e-5):
    """Convection and diffusion: a layer at the end."""
    return pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -eps * pf.laplacian(u)(x) + pf.grad(u)(x)[0],
        source=1.0,
        conditions=[pf.Dirichlet(0.0)],
        exact=lambda x: x[0] - jnp.exp((x[0] - 1) / eps),
        name="layer 1d",
    )


def shell_1_over_r():
    """1/r in a cube without a ball."""
    domain = pf.Box([-1, -1, -1], [1, 1, 1]) - pf.Ball([0, 0, 0], 0.5)
    return poisson(domain, lambda x: 1 / jnp.linalg.norm(x), 0.0, name="cube minus ball")


def torsion_cube():
    return torsion(pf.Box([0, 0, 0], [1, 1, 1]), "cube")


def smooth_cube():
    return poisson(pf.Box([0, 0, 0], [1, 1, 1]), lambda x: jnp.sin(3 * x[0] + x[1]) * jnp.exp(x[2]), name="smooth cube")
