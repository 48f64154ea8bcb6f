"""Kovasznay's flow: a system of nonlinear equations.

    (v·∇)v + ∇p - νΔv = 0,   ∇·v = 0   in (-1, 1)²,   ν = 1/40,

with the velocity given on the boundary and the pressure at one point. The unknowns are named; `u.v` is a vector
function and `u.p` a scalar one. Newton's method needs nothing but the operator; Picard's is told what to freeze by
`frozen_operator`. About six seconds.
"""

from pathlib import Path

import jax.numpy as jnp
from jax import Array

import pdofm as pf

NU = 1 / 40
RATE = float(1 / (2 * NU) - (1 / (4 * NU**2) + 4 * jnp.pi**2) ** 0.5)


def velocity(x: Array) -> Array:
    """The exact velocity, given on the boundary."""
    growth, phase = jnp.exp(RATE * x[0]), 2 * jnp.pi * x[1]
    return jnp.stack([1 - growth * jnp.cos(phase), RATE / (2 * jnp.pi) * growth * jnp.sin(phase)])


def pressure(x: Array) -> Array:
    """The exact pressure, given at the origin."""
    return (1 - jnp.exp(2 * RATE * x[0])) / 2


def navier_stokes(u, w, x: Array):
    """Momentum and mass; `w` carries the velocity that convects."""
    convection = pf.grad(u.v)(x) @ w.v(x)
    return convection + pf.grad(u.p)(x) - NU * pf.laplacian(u.v)(x), pf.div(u.v)(x)


problem = pf.Problem(
    pf.Box([-1, -1], [1, 1]),
    operator=lambda u, x: navier_stokes(u, u, x),
    source=0.0,
    conditions=[
        pf.Dirichlet(velocity, unknown="v", name="velocity"),
        pf.Condition(lambda u, x: u.p(x), on=[[0.0, 0.0]], name="pressure"),
    ],
    unknowns={"v": 2, "p": 1},
    exact={"v": velocity, "p": pressure},
    frozen_operator=navier_stokes,
    name="kovasznay",
)


def main() -> pf.Solution:
    """Solve by Newton's method, which is chosen because the operator is not linear."""
    return pf.solve(problem)


if __name__ == "__main__":
    u = main()
    print(u)
    for name, errors in u.errors().components.items():
        print(f"  {name}: relative L2 error {errors.relative_l2:.1e}")
    Path("out").mkdir(exist_ok=True)
    u.plot("out/kovasznay.png")
