"""An unknown coefficient k(x) on the square from 400 noisy measurements.

    -div(k grad u) = 1 in (0, 1)², u = 0 on the boundary

with k = 1 + ½ exp(-20 |x - (0.4, 0.6)|²). The potential u is measured at 400 points with a noise of 0.1 % of its
maximum. The logarithm of k is found as smooth as the data allow, and the data choose how smooth that is.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pdofm as pf

SQUARE = pf.Box([0, 0], [1, 1])


def conductivity(x):
    return 1 + 0.5 * jnp.exp(-20 * ((x[0] - 0.4) ** 2 + (x[1] - 0.6) ** 2))


def flow(k):
    """The operator -div(k grad u)."""
    return lambda u, x: -pf.div(lambda y: k(y) * pf.grad(u)(y))(x)


def measured(seed: int = 0) -> tuple[np.ndarray, np.ndarray, float]:
    """Points, values and the standard deviation of their noise."""
    rng = np.random.default_rng(seed)
    truth = pf.solve(pf.Problem(SQUARE, flow(conductivity), 1.0, [pf.Dirichlet(0.0)]), pf.Chebyshev(SQUARE, 600))
    points = rng.random((400, 2))
    noise = 1e-3 * float(np.max(truth(points)))
    return points, truth(points) + noise * rng.standard_normal(400), noise


def main(seed: int = 0):
    """Find k together with u; returns the solution."""
    points, values, noise = measured(seed)
    problem = pf.Problem(
        SQUARE,
        operator=lambda u, x: flow(u.k)(u.u, x),
        source=1.0,
        unknowns={"u": 1, "k": pf.Field(1.0, positive=True)},
        conditions=[pf.Dirichlet(0.0), pf.Data(points, values, noise=noise, unknown="u")],
        name="conductivity",
    )
    return pf.solve(problem, pf.Chebyshev(SQUARE, 300))


def error(solution) -> float:
    """The relative error of k in L2."""
    points = SQUARE.sample(4000)
    exact = np.asarray(jax.vmap(conductivity)(points))
    return float(np.linalg.norm(solution.k(points) - exact) / np.linalg.norm(exact))


def plot(solution, path: str) -> None:
    """The coefficient that was found, and half the width of its band."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    x = (np.arange(120) + 0.5) / 120
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    shown = {"k": solution.k(points), "half width of the 95 % band": solution.k.band(points)}
    for axes, (title, values) in zip(figure.subplots(1, 2), shown.items(), strict=True):
        image = axes.imshow(values.reshape(120, 120), origin="lower", extent=(0, 1, 0, 1))
        axes.plot(*measured()[0].T, "w.", markersize=1)
        axes.set(title=title, xlabel="x", ylabel="y")
        figure.colorbar(image, ax=axes)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    found = main()
    print(found)
    print(f"relative error of k in L2: {error(found):.2%}")
    Path("out").mkdir(exist_ok=True)
    plot(found, "out/unknown-field.png")
