"""A stiff fibre in an elastic matrix that is pulled to the right.

    div σ = 0,      σ = λ tr(ε) I + 2 μ ε,      ε = (grad v + grad vᵀ) / 2,

in plane strain, with λ and μ of two materials. All sides are moved as in a uniform tension, v = (0.01 x, 0); between
the materials v and σ n are continuous. About half a minute.
"""

from pathlib import Path
from typing import Any

import jax.numpy as jnp

import pdofm as pf

# Materials: Lamé's numbers λ and μ
LAME = {"matrix": (0.58, 0.38), "fibre": (2.8, 4.2)}


def stress(u: Any, x: Any, lame: tuple[float, float]):
    """The stress tensor."""
    gradient = pf.grad(u.v)(x)
    strain = (gradient + gradient.T) / 2
    return lame[0] * jnp.trace(strain) * jnp.eye(2) + 2 * lame[1] * strain


def operator(lame: tuple[float, float]):
    """The equation in a material."""
    return lambda u, x: -pf.div(lambda y: stress(u, y, lame))(x)


def traction(lame: tuple[float, float]):
    """The force through a surface."""
    return lambda u, x, normal: stress(u, x, lame) @ normal


# Problem
def fibre() -> pf.Problem:
    """A round fibre in a square."""
    disk = pf.Disk([0.0, 0.0], 0.4)
    regions = pf.Regions(matrix=pf.Box([-1, -1], [1, 1]) - disk, fibre=disk)
    return pf.Problem(
        regions,
        operator={name: operator(lame) for name, lame in LAME.items()},
        source=0.0,
        conditions=[
            pf.Dirichlet(lambda x: jnp.stack([0.01 * x[0], 0.0 * x[1]])),
            pf.Interface(flux={name: traction(lame) for name, lame in LAME.items()}),
        ],
        unknowns={"v": 2},
        name="elastic fibre",
    )


def main(tol: float = 1e-4) -> pf.Solution:
    """Solve the problem."""
    return pf.solve(fibre(), tol=tol)


def force(u: pf.Solution, part: str) -> float:
    """The force at a side, along x."""
    through = traction(LAME["matrix"])
    return float(u.integral(lambda u, x, normal: through(u, x, normal)[0], on=u.problem.domain.part(part)))


def plot(solution: pf.Solution, path: str | Path) -> None:
    """The displacement, with the fibre."""
    solution.plot(path)


if __name__ == "__main__":
    u = main()
    print(u)
    print(f"  force at the right side {force(u, 'x0=upper'):.6f}, at the left side {force(u, 'x0=lower'):.6f}")
    Path("out").mkdir(exist_ok=True)
    plot(u, "out/elastic-fibre.png")
    print("  picture: out/elastic-fibre.png")
