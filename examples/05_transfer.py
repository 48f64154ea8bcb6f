"""One factorisation, a thousand sources: features that were learned on a square, used on an L-shaped domain.

    -Δu = f on (0, 2)² minus [1, 2]², u = g on the boundary

for 1000 pairs (f, g) whose solutions are random plane waves u = cos(k·x + φ) with |k| up to 6. The features come with
the package; `factor` assembles and factors the least-squares matrix once. About two seconds after compilation.
"""

import numpy as np

import pdofm as pf

DOMAIN = pf.Box([0, 0], [2, 2]) - pf.Box([1, 1], [2, 2])
PROBLEM = pf.Problem(DOMAIN, operator=lambda u, x: -pf.laplacian(u)(x), source=0.0, conditions=[pf.Dirichlet(0.0)])


def waves(points: np.ndarray, count: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Values (n, count) of random plane waves at points, and of their negative Laplacian."""
    rng = np.random.default_rng(0)
    k, phase = rng.uniform(-4, 4, (2, count)), rng.uniform(0, 2 * np.pi, count)
    u = np.cos(points @ k + phase)
    return u, np.sum(k**2, axis=0) * u


def main() -> float:
    """Solve for all of them; returns the median relative error."""
    solver = pf.factor(PROBLEM, pf.load("poisson-2d").on(DOMAIN))
    sources = waves(solver.points["equation"])[1]
    boundary = waves(solver.points["dirichlet"])[0]
    many = solver.solve(sources, boundary)
    test = DOMAIN.sample(1000)
    truth = waves(test)[0]
    errors = np.linalg.norm(many(test) - truth, axis=0) / np.linalg.norm(truth, axis=0)
    return float(np.median(errors))


if __name__ == "__main__":
    print(f"median relative error of 1000 solutions: {main():.1e}")
