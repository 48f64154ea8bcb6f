"""Optimal control of Poisson's equation: which source makes the temperature follow a given one?

    minimise   mean over points of (u - target)² / s²  +  α |mu|² / 2      over 100 coefficients mu, s = 0.01
    where      -Δu = Σ mu_kl sin(kπx) sin(lπy) on the unit square,  u = 0 on the boundary.

The gradient in all 100 coefficients takes one adjoint solve. Less than a minute.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import pdofm as pf

WAVES = jnp.pi * jnp.arange(1, 11)
ALPHA, SCALE = 1e-8, 0.01

square = pf.Box([0, 0], [1, 1])
points = square.sample(400)


def control(mu):
    """The temperature for a source with coefficients mu (100,)."""

    def source(x):
        return jnp.sin(WAVES * x[0]) @ mu.reshape(10, 10) @ jnp.sin(WAVES * x[1])

    return pf.Problem(
        square, lambda u, x: -pf.laplacian(u)(x), source, conditions=[pf.Dirichlet(0.0)], name="optimal control"
    )


def target(x):
    """The temperature that is wanted: x(1-x)y(1-y), which no finite number of waves gives exactly."""
    return np.prod(x * (1 - x), axis=-1)


def main() -> pf.Solution:
    family = pf.Family(control, pf.Chebyshev(square, 1300), tol=1e-6)
    wanted = target(points)

    def objective(mu):
        misfit = jnp.mean(((family.values(mu, points) - wanted) / SCALE) ** 2)
        return misfit + ALPHA * jnp.sum(mu**2) / 2

    both = jax.value_and_grad(objective)
    found = minimize(
        lambda mu: tuple(np.asarray(each, dtype=float) for each in both(jnp.asarray(mu))),
        np.zeros(100),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 60, "ftol": 1e-12},
    )
    u = family(found.x)
    distance = np.linalg.norm(u(points) - wanted) / np.linalg.norm(wanted)
    print(f"{found.nit} steps, relative distance to the target {distance:.1e}")
    assert distance < 1e-2
    return u


def plot(u: pf.Solution, path: str | Path) -> None:
    """The temperature of the source that was found."""
    u.plot(path)


if __name__ == "__main__":
    Path("out").mkdir(exist_ok=True)
    plot(main(), "out/optimal-control.png")
