"""Radau IIA collocation in time on one slab: nodes, differentiation, and the basis that decouples the stages.

On a slab of length τ a function is a polynomial of degree p in time. It has its known value at the start and satisfies
the equation at p nodes, of which the last is the end of the slab. Stiff components and algebraic equations are damped,
and the value at the end has order 2p - 1.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Complex, Float, Int
from numpy.polynomial import Legendre

from pdofm.marching.arrays import Vector


class Radau:
    """Collocation with p stages on the unit interval.

    Attributes:
        nodes: the p stages in (0, 1]; the last one is 1.
        slope: maps values at the stages, minus the value at the start, to derivatives at the stages.
        eigenvalues, basis, inverse: the eigenvalues and eigenvectors of `slope`, and the inverse of these.
        picked: one eigenvalue of each pair of conjugates, and the real one if there is one.
        weighted: the eigenvectors that are picked, twice those that stand for a pair.
        to_chebyshev: maps values at the start and at the stages to Chebyshev coefficients on the slab.
        back: extrapolates values at the stages to the start.
    """

    def __init__(self, stages: int):
        self.stages = stages
        self.nodes: Vector = _nodes(stages)
        all_nodes = np.concatenate([[0.0], self.nodes])
        values, slopes = chebyshev(2 * all_nodes - 1, stages)
        inverse = np.linalg.inv(values)
        derivative = 2 * slopes @ inverse
        self.slope: Float[np.ndarray, "p p"] = derivative[1:, 1:]
        self.to_chebyshev: Float[np.ndarray, "q q"] = inverse
        self.eigenvalues: Complex[np.ndarray, " p"]
        self.eigenvalues, self.basis = np.linalg.eig(self.slope)
        self.inverse: Complex[np.ndarray, "p p"] = np.linalg.inv(self.basis)
        self.picked: Int[np.ndarray, " k"] = np.flatnonzero(np.imag(self.eigenvalues) >= 0)
        pairs = np.where(np.imag(self.eigenvalues[self.picked]) > 0, 2.0, 1.0)
        self.weighted: Complex[np.ndarray, "p k"] = self.basis[:, self.picked] * pairs
        lower = np.linalg.inv(chebyshev(2 * self.nodes - 1, stages - 1)[0])
        self.back: Vector = chebyshev(np.array([-1.0]), stages - 1)[0][0] @ lower


@lru_cache(maxsize=32)
def radau(stages: int) -> Radau:
    """The collocation with so many stages."""
    return Radau(stages)


def chebyshev(y: Vector, degree: int) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n m"]]:
    """The Chebyshev polynomials up to a degree at points of [-1, 1], and their derivatives."""
    values, slopes = np.zeros((2, len(y), max(degree, 1) + 1))
    values[:, 0], values[:, 1], slopes[:, 1] = 1.0, y, 1.0
    for k in range(2, degree + 1):
        values[:, k] = 2 * y * values[:, k - 1] - values[:, k - 2]
        slopes[:, k] = 2 * values[:, k - 1] + 2 * y * slopes[:, k - 1] - slopes[:, k - 2]
    return values[:, : degree + 1], slopes[:, : degree + 1]


def _nodes(stages: int) -> Vector:
    """The zeros of P_p - P_{p-1}, mapped to (0, 1]; polished by Newton's method."""
    polynomial = Legendre([*[0.0] * (stages - 1), -1.0, 1.0])
    slope, roots = polynomial.deriv(), np.sort(polynomial.roots().real)
    for _ in range(3):
        roots = roots - polynomial(roots) / slope(roots)
    roots[-1] = 1.0
    return (roots + 1) / 2
