"""Problems for tests of boxes that are not in the zoo, and the truth about -Δu = 1 on the square and the cube."""

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


def torsion_cube_values(points: np.ndarray, terms: int = 40) -> np.ndarray:
    """-Δu = 1 on the unit cube with zero values, away from the faces: sines in x and y, hyperbolic cosines in z."""
    k = np.arange(1, 2 * terms, 2)
    x, y, z = (points - 0.5).T
    rate = np.pi * np.hypot(k[:, None], k)[..., None]
    # Subtracting the largest exponent keeps the hyperbolic cosines finite.
    falling = (np.exp(rate * (np.abs(z) - 0.5)) + np.exp(-rate * (np.abs(z) + 0.5))) / (1 + np.exp(-rate))
    sines = np.sin(np.pi * k[:, None] * (x + 0.5))[:, None] * np.sin(np.pi * k[:, None] * (y + 0.5))[None]
    weights = 16 / (np.pi**2 * k[:, None] * k)[..., None] / rate**2
    plane = torsion_values(points[:, :2])[:, 0]
    return (plane - np.sum(weights * sines * falling, axis=(0, 1)))[:, None]


def l_shape():
    return pf.Box([-1, -1], [1, 1]) - pf.Box([0, -1], [1, 0])


def corner_singularity():
    def exact(x):
        angle = jnp.arctan2(x[1], x[0])
        angle = jnp.where(angle < -1e-12, angle + 2 * jnp.pi, angle)
        return jnp.linalg.norm(x) ** (2 / 3) * jnp.sin(2 / 3 * angle)

    return poisson(l_shape(), exact, 0.0, name="corner")


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


def smooth_cube():
    return poisson(pf.Box([0, 0, 0], [1, 1, 1]), lambda x: jnp.sin(3 * x[0] + x[1]) * jnp.exp(x[2]), name="smooth cube")
