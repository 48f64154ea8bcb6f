"""The first eigenvalues of the L-shaped membrane: ``python tools/references/membrane.py``, some seconds.

The method of particular solutions of Betcke and Trefethen (2005): sums of the functions J_a(√λ r) sin aθ with a = 2k/3
around the re-entrant corner solve -Δu = λu and vanish on the two sides there. An eigenvalue is a λ for which such a sum
is small on the other sides, relative to its size inside. The smallest singular value of its orthonormal basis on the
boundary, σ(λ), is nearly linear on either side of an eigenvalue, which is where the two lines meet. The last column is
the distance to the value that two thirds of the functions give.
"""

from itertools import pairwise

import numpy as np
import scipy.special as special

NEAR = (9.64, 15.197, 19.739, 29.521, 31.913)
FUNCTIONS, ON_SIDE, INSIDE = 90, 200, 1500


def points() -> tuple[np.ndarray, int]:
    """Points on the four outer sides, dense at their ends, then points inside, and the number of the former."""
    s = (1 - np.cos(np.pi * (np.arange(ON_SIDE) + 0.5) / ON_SIDE))[:, None] / 2
    corners = np.array([(0, 1), (-1, 1), (-1, -1), (1, -1), (1, 0)])
    sides = np.concatenate([(1 - s) * p + s * q for p, q in pairwise(corners)])
    inside = np.random.default_rng(0).uniform(-1, 1, (INSIDE, 2))
    return np.concatenate([sides, inside[(inside <= 0).any(axis=1)]]), len(sides)


def tension(value: float, count: int) -> float:
    """σ(λ): how small a solution that is of size one inside can be on the boundary."""
    x, outer = points()
    r, angle = np.hypot(*x.T)[:, None], np.mod(np.arctan2(x[:, 1], x[:, 0]) - np.pi / 2, 2 * np.pi)[:, None]
    order = 2 / 3 * np.arange(1, count + 1)
    table = special.jv(order, np.sqrt(value) * r) * np.sin(order * angle)
    basis, _ = np.linalg.qr(table / np.linalg.norm(table, axis=0))
    return np.linalg.svd(basis[:outer], compute_uv=False)[-1]


def eigenvalue(near: float, count: int) -> float:
    """The place where the lines on both sides of the minimum meet."""
    value = near
    for step in (1e-3, 1e-5, 1e-6):
        places = value + step * np.array([-2, -1, 1, 2])
        left, inner_left, inner_right, right = (tension(each, count) for each in places)
        slopes = (inner_left - left) / step, (right - inner_right) / step
        value += (inner_right - inner_left - step * (slopes[0] + slopes[1])) / (slopes[0] - slopes[1])
    return value


if __name__ == "__main__":
    for near in NEAR:
        found = eigenvalue(near, FUNCTIONS)
        print(f"{found:.15g}  {abs(found - eigenvalue(near, 2 * FUNCTIONS // 3)) / found:.1e}")
