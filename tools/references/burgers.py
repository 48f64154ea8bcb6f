"""References for Burgers' equation u_t + u u_x = ν u_xx from -sin πx: ``python tools/references/burgers.py``, a minute.

With the substitution of Cole and Hopf, u = -2ν φ_x / φ, where φ solves the heat equation, so that

    u(x, t) = -∫ sin(πy) w ds / ∫ w ds,    w = exp(-cos(πy) / (2πν) - s²),    y = x - s √(4νt).

The integrand is analytic and vanishes at both ends, so that the trapezoidal rule converges geometrically. Exponents of
1/(πν) lose digits, so that everything is in extended precision.
"""

import numpy as np
from common import radau, write

TIMES, NODES = 16, 8


def cole_hopf(x: np.ndarray, t: float, nu: float, step: float) -> np.ndarray:
    """The solution at x."""
    wide = np.longdouble
    pi = np.arctan2(wide(0), wide(-1))
    most = np.sqrt(1 / (np.pi * nu) + 60.0)  # beyond, the integrand is below exp(-60) times its largest value
    s = wide(step) * np.arange(-int(most / step), int(most / step) + 1)
    found = []
    for part in np.array_split(x.astype(wide), 8):
        y = part[:, None] - s * np.sqrt(4 * wide(nu) * wide(t))
        exponent = -np.cos(pi * y) / (2 * pi * wide(nu)) - s**2
        weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        found.append(-(np.sin(pi * y) * weight).sum(axis=1) / weight.sum(axis=1))
    return np.concatenate(found)


def graded(nu: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes in intervals that become shorter towards the front at zero, and weights whose sum is 1."""
    edges = [0.0, *(0.5 ** np.arange(int(np.ceil(-np.log2(2 * nu))), -1, -1))]
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low, width = np.array(edges[:-1]), np.diff(edges)
    x = (low[:, None] + width[:, None] * (nodes + 1) / 2).reshape(-1)
    w = (width[:, None] * weights / 4).reshape(-1)
    return np.concatenate([-x[::-1], x]), np.concatenate([w[::-1], w])


if __name__ == "__main__":
    for name, nu in (("burgers-sine", 0.01 / np.pi), ("burgers-sine-1000", 1e-3), ("burgers-sine-10000", 1e-4)):
        times, weights = radau(TIMES, 1.0)
        x, x_weights = graded(nu)
        fine, coarse = (np.stack([cole_hopf(x, t, nu, step) for t in times]) for step in (0.01, 0.016))
        how = "Cole-Hopf transform, trapezoidal rule in extended precision; error: another step"
        write(name, times, np.tile(x, (TIMES, 1)), weights, x_weights, fine, coarse, how)
