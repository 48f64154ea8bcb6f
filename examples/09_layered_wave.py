"""A pulse in a layered medium.

    u_tt = c² u_xx   in (0, 3) x (0, 2.2),      c = 1, 2 and 1 in layers that meet at x = 1 and x = 2,

with a pulse that enters from the left side, u = g(t) at x = 0, and u and c² u_x continuous between the layers. A part
of it is reflected at each interface. About half a minute.
"""

from pathlib import Path

import jax.numpy as jnp

import pdofm as pf

# Medium
SPEEDS = {"left": 1.0, "middle": 2.0, "right": 1.0}
END = 2.2


def pulse(t):
    """The value at the left side."""
    return jnp.exp(-20 * (t - 0.9) ** 2)


def operator(c: float):
    """The wave equation in a layer."""
    return lambda u, x, t: pf.dt(pf.dt(u))(x, t) - c**2 * pf.laplacian(u)(x, t)


def stress(c: float):
    """What is continuous between layers, beside the values."""
    return lambda u, x, t, normal: c**2 * pf.normal_derivative(u, normal)(x, t)


# Problem
def layered() -> pf.Problem:
    """Three layers. Until the pulse comes back from the second interface, a third of it, reversed, runs to the left."""
    layers = pf.Regions(left=pf.Interval(0, 1), middle=pf.Interval(1, 2), right=pf.Interval(2, 3))
    domain = pf.SpaceTime(layers, END)
    return pf.Problem(
        domain,
        operator={name: operator(c) for name, c in SPEEDS.items()},
        source=0.0,
        conditions=[
            pf.Dirichlet(lambda x, t: jnp.where(x[0] < 1.5, pulse(t), 0.0)),
            pf.Initial(0.0, velocity=0.0),
            pf.Interface(flux={name: stress(c) for name, c in SPEEDS.items()}),
        ],
        name="layered medium",
    )


def main(tol: float = 1e-4) -> pf.Solution:
    """Solve the problem."""
    return pf.solve(layered(), tol=tol)


def plot(solution: pf.Solution, path: str | Path) -> None:
    """The wave over space and time, with the interfaces."""
    solution.plot(path)


if __name__ == "__main__":
    u = main()
    print(u)
    Path("out").mkdir(exist_ok=True)
    plot(u, "out/layered-wave.png")
    print("  picture: out/layered-wave.png")
