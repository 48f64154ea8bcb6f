"""The tones of an L-shaped drum: five eigenvalues of the Laplacian, and their eigenfunctions.

    -Δu = λ u on (-1, 1)² without the square (0, 1)², u = 0 on the boundary

The first eigenfunction behaves like r^(2/3) sin(2θ/3) at the re-entrant corner; polynomials are joined with functions
that do so, too. The results are compared with the digits that Trefethen and Betcke (2006) print; the third eigenvalue
is 2π². A few seconds.
"""

from pathlib import Path

import numpy as np

import pdofm as pf

DRUM = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])

TONES = (9.6397238440219, 15.197251926455, 2 * np.pi**2, 29.5214811142, 31.9126359571)
"""The first five eigenvalues."""


def main(k: int = 5, tol: float = 1e-10) -> pf.Modes:
    """The first k eigenvalues."""
    problem = pf.Problem(DRUM, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet(0.0)], name="drum")
    return pf.eigs(problem, k, tol=tol)


def error(modes: pf.Modes) -> float:
    """The largest relative error of up to five eigenvalues."""
    return float(np.max(np.abs(modes.values / TONES[: len(modes)] - 1)))


def plot(modes: pf.Modes, path: str) -> None:
    """The eigenfunctions side by side."""
    from matplotlib.figure import Figure

    axis = np.linspace(-1, 1, 161)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    inside = ~np.all(points > 0, axis=1)
    figure = Figure(figsize=(2 * len(modes), 2.3), layout="constrained")
    for i, mode in enumerate(modes):
        values = np.full(len(points), np.nan)
        values[inside] = mode(points[inside])
        axes = figure.add_subplot(1, len(modes), i + 1, aspect="equal")
        axes.set_title(f"λ = {mode.value:.10g}", fontsize=9)
        largest = np.nanmax(np.abs(values))
        axes.imshow(
            values.reshape(161, 161), extent=(-1, 1) * 2, origin="lower", cmap="RdBu", vmin=-largest, vmax=largest
        )
        axes.set_axis_off()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    found = main()
    print(found)
    print(f"largest relative error: {error(found):.1e}")
    Path("out").mkdir(exist_ok=True)
    plot(found, "out/drums.png")
