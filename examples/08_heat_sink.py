"""A heat sink on a chip, with a thin gap that resists the heat.

    -div(k grad u) = f      k = 1.5 in the chip, which produces the heat f, and 4 in the sink,

k ∂u/∂n is the same on both sides of the gap and proportional to the jump of the temperature: k ∂u/∂n = h (u_sink -
u_chip). The upper side of the sink is cooled by air, k ∂u/∂n = -a u, and no heat leaves elsewhere. A few seconds.
"""

from pathlib import Path
from typing import Any

import jax.numpy as jnp

import pdofm as pf

# Materials: conductivities in W / (cm K), and what else they need
CHIP, SINK = 1.5, 4.0
GAP = 20.0  # heat through the gap per difference of temperature
AIR = 0.05  # heat into the air per temperature
POWER = 10.0  # heat that a unit of volume of the chip produces on average, most of it at the sides


def operator(k: float):
    """The equation in a material."""
    return lambda u, x: -k * pf.laplacian(u)(x)


def contact(u: Any, x: Any, normal: Any):
    """What leaves the chip enters the sink, in proportion to the jump of the temperature."""
    out = CHIP * pf.normal_derivative(u.chip, normal)(x)
    into = SINK * pf.normal_derivative(u.sink, normal)(x)
    return out - into, out - GAP * (u.sink(x) - u.chip(x))


# Problem
def heat_sink() -> pf.Problem:
    """A sink of the same width lies on the chip."""
    regions = pf.Regions(chip=pf.Box([0, 0], [2, 0.5]), sink=pf.Box([0, 0.5], [2, 2.0]))
    return pf.Problem(
        regions,
        operator={"chip": operator(CHIP), "sink": operator(SINK)},
        source={"chip": lambda x: POWER * (1 + jnp.cos(jnp.pi * x[0])), "sink": 0.0},
        conditions=[
            pf.Neumann(0.0, on=regions.part("x0=lower", "x0=upper", "x1=lower")),
            pf.Robin(AIR, SINK, 0.0, on=regions.part("x1=upper")),
            pf.Condition(contact, on=regions.part("chip|sink")),
        ],
        name="heat sink",
    )


def main(tol: float = 1e-8) -> pf.Solution:
    """Solve the problem."""
    return pf.solve(heat_sink(), tol=tol)


def plot(solution: pf.Solution, path: str | Path) -> None:
    """The temperature, with the gap."""
    solution.plot(path)


if __name__ == "__main__":
    u = main()
    print(u)
    gap = u.problem.domain.part("chip|sink")
    print(f"  heat through the gap {-CHIP * float(u.side('chip').flux(gap)):.6f}, produced {2 * 0.5 * POWER:.6f}")
    Path("out").mkdir(exist_ok=True)
    plot(u, "out/heat-sink.png")
    print("  picture: out/heat-sink.png")
