"""A plane wave meets a disk: the scattered wave outside of a sound-soft obstacle, with a perfectly matched layer.

    Δu + k² u = 0 outside of the unit disk, u = -exp(ikx) on its boundary, and u leaves: u ~ exp(ikr) / sqrt(r)

with k = 10. The layer around the box (-1.5, 1.5)² has the width 1; in it the equation is the same one in complex
coordinates, where waves that leave decay. Polynomials in boxes whose sides lie where the layer begins solve it. With
Hankel functions the solution is -Σ iⁿ J_n(k) / H_n(k) H_n(kr) exp(inθ), which the result is compared with. About half
a minute.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
from scipy.special import hankel1, jv

import pdofm as pf

INSIDE = pf.Box([-1.5, -1.5], [1.5, 1.5])
WIDTH = 1.0


def scattered(points: np.ndarray, k: float) -> np.ndarray:
    """The exact scattered wave."""
    r, angle = np.hypot(*points.T), np.arctan2(points[:, 1], points[:, 0])
    n = np.arange(-int(2 * k) - 20, int(2 * k) + 21)
    coefficients = -(1j**n) * jv(n, k) / hankel1(n, k)
    return (hankel1(n, k * r[:, None]) * np.exp(1j * n * angle[:, None])) @ coefficients


def main(k: float = 10.0, boxes: int = 10, degree: int = 20, reflection: float = 1e-10) -> pf.Solution:
    """Solve with so many boxes along each side."""
    layer = pf.PML(INSIDE, WIDTH, k, reflection=reflection)
    domain = layer.domain - pf.Disk().named("obstacle")
    problem = pf.Problem(
        domain,
        operator=lambda u, x: layer.laplacian(u)(x) + k**2 * u(x),
        source=0.0,
        conditions=[
            pf.Dirichlet(lambda x: -jnp.exp(1j * k * x[0]), on=domain.part("obstacle"), name="obstacle"),
            pf.Dirichlet(0.0, on=domain.part("x0=lower", "x0=upper", "x1=lower", "x1=upper"), name="end of the layer"),
        ],
        dtype=complex,
        name="scattering",
    )
    return pf.solve(problem, pf.BoxPolynomials.grid(domain, boxes, degree))


def error(u: pf.Solution, k: float = 10.0) -> float:
    """The relative L2 error outside of the layer."""
    points = (INSIDE - pf.Disk()).sample(2000)
    exact = scattered(points, k)
    return float(np.linalg.norm(u(points) - exact) / np.linalg.norm(exact))


def plot(u: pf.Solution, path: str, k: float = 10.0) -> None:
    """The whole wave outside of the layer, and the scattered one with its layer."""
    from matplotlib.figure import Figure

    axis = np.linspace(-2.5, 2.5, 401)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    wave = np.full(len(points), np.nan, dtype=complex)
    outside = np.hypot(*points.T) > 1
    wave[outside] = u(points[outside])
    in_layer = np.max(np.abs(points), axis=1) > 1.5
    whole = np.where(in_layer, np.nan, wave + np.exp(1j * k * points[:, 0]))
    figure = Figure(figsize=(8, 4), layout="constrained")
    shown = {"whole wave, real part": whole, "scattered wave and its layer, real part": wave}
    for i, (title, values) in enumerate(shown.items()):
        axes = figure.add_subplot(1, 2, i + 1, aspect="equal")
        axes.set_title(title, fontsize=10)
        axes.imshow(values.real.reshape(401, 401), extent=(-2.5, 2.5) * 2, origin="lower", cmap="RdBu", vmin=-2, vmax=2)
        axes.plot(*np.array([[-1, 1, 1, -1, -1], [-1, -1, 1, 1, -1]]) * 1.5, "k:", lw=1)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    found = main()
    print(found)
    print(f"relative L2 error outside of the layer: {error(found):.1e}")
    print(f"with a smaller reflection: {error(main(reflection=1e-12)):.1e}")
    Path("out").mkdir(exist_ok=True)
    plot(found, "out/scattering.png")
