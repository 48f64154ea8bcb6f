"""The pressure that drives a given flow through a pipe with a rod in it: a condition on a mean, and an unknown number.

    -Δw = g in the cross-section, w = 0 on its walls, mean of w = 1

w is the velocity along the pipe. How much flows is given, and the pressure gradient g that it takes is an unknown
number, which the condition on the mean determines. The rod touches nothing, but it is not in the middle. For a rod in
the middle, with the radii R and r, g = 8 / (R² + r² - (R² - r²) / log(R / r)). A few seconds.
"""

from pathlib import Path

import numpy as np

import pdofm as pf

RADIUS = 0.3


def main(offset: float = 0.4, tol: float = 1e-8) -> pf.Solution:
    """Find velocity and pressure gradient for a rod at this distance from the middle."""
    section = pf.Disk() - pf.Disk([offset, 0], RADIUS).named("rod")
    problem = pf.Problem(
        section,
        operator=lambda u, x: -pf.laplacian(u.w)(x) - u.g,
        source=0.0,
        unknowns={"w": 1, "g": pf.Number(1.0)},
        conditions=[pf.Dirichlet(0.0), pf.Mean(1.0, unknown="w")],
        name="pipe",
    )
    return pf.solve(problem, tol=tol)


def concentric() -> float:
    """The pressure gradient for a rod in the middle."""
    return 8 / (1 + RADIUS**2 + (1 - RADIUS**2) / np.log(RADIUS))


def drag_on_rod(solution: pf.Solution) -> float:
    """The part of the force on all walls that the rod feels; together they balance the pressure, g times the area."""
    section = solution.problem.domain
    slope = solution.integral(of=lambda u, x, normal: pf.normal_derivative(u.w, normal)(x), on=section.part("rod"))
    return -float(slope) / (solution.numbers["g"] * section.measure)


def plot(solution: pf.Solution, path: str) -> None:
    """The velocity, with the pressure gradient."""
    solution.plot(path, unknown="w")


if __name__ == "__main__":
    found = main()
    print(found)
    print(f"a rod in the middle needs {concentric():.10g}")
    print(f"{drag_on_rod(found):.1%} of the force on the walls is on the rod")
    Path("out").mkdir(exist_ok=True)
    plot(found, "out/flow-rate.png")
