"""Heat through a composite of nine fibres.

    -div(k grad u) = 0   in (0, 3)²,      k = 400 in nine disks, k = 1 around them,

u = x on the left and right side, no flux through the other two; between the materials u and k ∂u/∂n are continuous. The
flux per temperature difference is the effective conductivity of the composite. About half a minute.
"""

from pathlib import Path

import numpy as np

import pdofm as pf

# Materials
CONDUCTIVITY = {"matrix": 1.0, "fibre": 400.0}


def operator(k: float):
    """The equation in a material."""
    return lambda u, x: -k * pf.laplacian(u)(x)


def flux(k: float):
    """The flux through an interface."""
    return lambda u, x, normal: k * pf.normal_derivative(u, normal)(x)


operators, fluxes = ({name: make(k) for name, k in CONDUCTIVITY.items()} for make in (operator, flux))


# Problem
def composite(count: int = 3) -> pf.Problem:
    """`count` x `count` fibres of radius 0.3 in unit cells, every other one a little off its centre."""
    matrix, fibres = pf.Box([0, 0], [count, count]), {}
    for i in range(count):
        for j in range(count):
            disk = pf.Disk([i + 0.5 + 0.1 * (i * j % 2), j + 0.5], 0.3)
            fibres[f"fibre{i}{j}"], matrix = disk, matrix - disk
    regions = pf.Regions(matrix=matrix, **fibres)
    kinds = {name: name[:5] if name != "matrix" else name for name in regions.names}
    return pf.Problem(
        regions,
        operator={name: operators[kind] for name, kind in kinds.items()},
        source=0.0,
        conditions=[
            pf.Dirichlet(lambda x: x[0], on=regions.part("x0=lower", "x0=upper")),
            pf.Neumann(0.0, on=regions.part("x1=lower", "x1=upper")),
            pf.Interface(flux={name: fluxes[kind] for name, kind in kinds.items()}),
        ],
        name="fibre composite",
    )


def main(count: int = 3, tol: float = 1e-6) -> pf.Solution:
    """Solve the problem."""
    return pf.solve(composite(count), tol=tol)


def conductivity(u: pf.Solution, x: float) -> float:
    """The flux through the line at x, which must not meet a fibre, per temperature difference and height."""
    height = float(u.problem.domain.upper[1])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    points = np.stack([np.full(200, x), height * (nodes + 1) / 2], axis=1)
    return float(weights @ u.gradient(points)[:, 0]) / 2


def plot(solution: pf.Solution, path: str | Path) -> None:
    """The temperature, with the fibres."""
    solution.plot(path)


if __name__ == "__main__":
    u = main()
    print(u)
    print(f"  effective conductivity {conductivity(u, 0.05):.6f}, from another line {conductivity(u, 2.97):.6f}")
    Path("out").mkdir(exist_ok=True)
    plot(u, "out/composite.png")
    print("  picture: out/composite.png")
