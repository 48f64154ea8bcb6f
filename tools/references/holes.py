"""The reference for Laplace's equation around four round holes: ``python tools/references/holes.py``, seconds.

The solution is the real part of an analytic function: by the symmetries of the square it consists of the harmonic
polynomials Re z^4k, and of the logarithm and the poles of every hole. Their coefficients are the least-squares fit of
the boundary values. By the maximum principle the solution is nowhere wrong by more than it is on the boundary.
"""

import numpy as np
from common import save

CENTER, RADIUS, DEGREE, POLES = 0.3, 0.1, 30, 44
"""The centers are (±0.3, ±0.3). Polynomials up to degree 4 · 30, poles up to order 44."""


def columns(x: np.ndarray) -> np.ndarray:
    """The functions at points (n, 2): invariant under the eight symmetries of the square."""
    z = x[:, 0] + 1j * x[:, 1]
    found = [np.real((z / 0.72) ** (4 * k)) for k in range(DEGREE + 1)]
    diagonals = [(a + 1j * b) / np.sqrt(2) for a in (-1, 1) for b in (-1, 1)]
    # Turned so that the diagonal of the square is the real axis.
    around = [z / turn - np.sqrt(2) * CENTER for turn in diagonals]
    found.append(sum(np.log(np.abs(each)) for each in around))
    found += [sum(np.real((RADIUS / each) ** k) for each in around) for k in range(1, POLES + 1)]
    return np.stack(found, axis=1)


def boundary(count: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Points of the boundary that are not equivalent by symmetry, and the values there."""
    s = (np.arange(count) + shift) / count
    side = np.stack([np.full(count, 0.5), 0.5 * np.sin(np.pi * s / 2)], axis=1)
    angle = np.pi / 4 + np.pi * s
    circle = CENTER + RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate([side, circle]), np.concatenate([np.ones(count), np.zeros(count)])


def main() -> None:
    points, values = boundary(600, 0.5)
    matrix = columns(points)
    size = np.linalg.norm(matrix, axis=0)
    coefficients = np.linalg.lstsq(matrix / size, values, rcond=1e-15)[0] / size
    points, values = boundary(7001, 0.0)
    error = np.abs(columns(points) @ coefficients - values).max()
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.5, 0.5, (6000, 2))
    x = x[np.min([np.hypot(x[:, 0] - a, x[:, 1] - b) for a in (-0.3, 0.3) for b in (-0.3, 0.3)], axis=0) > RADIUS][
        :3000
    ]
    found = columns(x) @ coefficients
    relative = error / np.sqrt(np.mean(found**2))
    how = "harmonic functions fitted on the boundary; the error is bounded by the maximum principle"
    save("holes-laplace", x, np.full(len(x), 1 / len(x)), found[:, None], relative, how)


if __name__ == "__main__":
    main()
