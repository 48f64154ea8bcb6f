"""Poisson's equation on an L-shaped domain.

    -Δu = 2π² sin(πx) sin(πy)   in (-1, 1)² minus [0, 1]²,      u = 0 on the boundary,

solved by collocation and least squares over 500 untrained features of a residual network. The exact solution,
sin(πx) sin(πy), is only used to tell the true error. About two seconds, most of which is compilation.
"""

from pathlib import Path

import jax.numpy as jnp

import pdofm as pf

# Problem
square = pf.Box([-1, -1], [1, 1])
lshape = square - pf.Box([0, 0], [1, 1])
problem = pf.Problem(
    lshape,
    operator=lambda u, x: -pf.laplacian(u)(x),
    source=lambda x: 2 * jnp.pi**2 * jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]),
    conditions=[pf.Dirichlet(0.0)],
    exact=lambda x: jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]),
    name="poisson-lshape",
)


def main() -> pf.Solution:
    """Solve the problem."""
    return pf.solve(problem)


def plot(solution: pf.Solution, path: str | Path) -> None:
    """The solution and its error."""
    solution.plot(path)


if __name__ == "__main__":
    u = main()
    print(u)
    print(f"  true relative L2 error {u.errors().relative_l2:.1e}, maximum error {u.errors().max:.1e}")
    print(f"  u(0.25, -0.5) = {u([0.25, -0.5]):.12f}, exactly {-(0.5**0.5):.12f}")
    Path("out").mkdir(exist_ok=True)
    plot(u, "out/poisson-lshape.png")
    print("  picture: out/poisson-lshape.png")
