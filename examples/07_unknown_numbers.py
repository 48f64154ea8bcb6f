"""Two unknown numbers from thirty noisy measurements: conductivity and strength of a source in a rod.

    -k u'' = 1 + s sin 3πx on (0, 1), u(0) = u(1) = 0

with k = 2 and s = 3. The temperature is measured at 30 points with a noise of 1 %. Gauss-Newton finds both numbers
together with u; the covariance gives 95 % intervals and a band around u. A few seconds, most of them to compile.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

import pdofm as pf

K, S = 2.0, 3.0
ROD = pf.Interval(0, 1)


def truth(x: np.ndarray) -> np.ndarray:
    return (0.5 * x * (1 - x) + S * np.sin(3 * np.pi * x) / (9 * np.pi**2)) / K


def measured() -> tuple[np.ndarray, np.ndarray, float]:
    """Points, values and the standard deviation of their noise."""
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 1, (30, 1))
    noise = 0.01 * float(np.max(truth(points[:, 0])))
    return points, truth(points[:, 0]) + noise * rng.standard_normal(30), noise


def main():
    """Find both numbers; returns the solution."""
    points, values, noise = measured()
    problem = pf.Problem(
        ROD,
        operator=lambda u, x: -u.k * pf.laplacian(u.u)(x) - u.s * jnp.sin(3 * jnp.pi * x[0]),
        source=1.0,
        unknowns={"u": 1, "k": pf.Number(1.0, positive=True), "s": pf.Number(1.0)},
        conditions=[pf.Dirichlet(0.0), pf.Data(points, values, noise=noise, unknown="u")],
        name="rod",
    )
    return pf.solve(problem, tol=1e-8)


def plot(solution, path: str) -> None:
    """Measurements with their noise, the solution and its band."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    x = np.linspace(0, 1, 301)[:, None]
    u, band = solution.u(x), solution.band(x)[:, 0]
    points, values, noise = measured()
    axes.fill_between(x[:, 0], u - band, u + band, alpha=0.3, label="95 % band")
    axes.plot(x[:, 0], u, label="solution")
    axes.errorbar(points[:, 0], values, 1.96 * noise, fmt="k.", label="measurements")
    low, high = solution.intervals["k"]
    axes.set(xlabel="x", ylabel="u", title=f"k = {solution.k:.3f} in [{low:.3f}, {high:.3f}]")
    axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    found = main()
    print(found)
    Path("out").mkdir(exist_ok=True)
    plot(found, "out/unknown-numbers.png")
