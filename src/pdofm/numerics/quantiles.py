"""Quantiles of a density: where given fractions of its integral are reached."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from pdofm._types import Vector
from pdofm.errors import DomainError

NODES = 16
"""Gauss nodes in a panel; polynomials of this degree stand for the density there."""

FEWEST, MOST = 8, 4096
"""The number of panels begins with the first and is doubled up to the second."""

SMOOTH = 1e-13
"""The density is resolved when its last two Legendre coefficients in every panel are smaller than this, relative to its
largest value."""

STEPS = 100
"""The most steps of the inversion. Newton's method takes about five; where the density vanishes it is as slow as
bisection."""


PANELS = 64
"""Panels of the composite Gauss rule: with `NODES` points in each, 1024 in all, it integrates up to rounding along
lines, circles and all but the most intricate smooth curves."""


def composite_gauss() -> tuple[Vector, Vector]:
    """Nodes and weights of a composite Gauss rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    at = (np.arange(PANELS)[:, None] + 0.5 + 0.5 * nodes) / PANELS
    return at.ravel(), np.tile(0.5 * weights / PANELS, PANELS)


class Quantiles:
    """The inverse of the cumulative integral of a density on [0, 1], accurate to rounding.

    `total` is the integral. Called with fractions v `(n,)` it returns t with ∫₀ᵗ density = v · total.

    Args:
        density: a smooth function `(n,) -> (n,)` that is positive inside (0, 1).
        what: what the density belongs to, for the error if it is not smooth.
    """

    total: float

    def __init__(self, density: Callable[[Vector], Vector], what: str):
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        degrees = np.arange(NODES)
        # Coefficients by discrete orthogonality: the Gauss rule integrates products of degree 2 NODES - 1 exactly.
        transform = (np.polynomial.legendre.legvander(nodes, NODES - 1) * weights[:, None]) * (degrees + 0.5)
        panels = FEWEST
        while True:
            width = 1.0 / panels
            values = density(((np.arange(panels)[:, None] + 0.5 + 0.5 * nodes) * width).ravel()).reshape(panels, NODES)
            series = values @ transform
            if np.abs(series[:, -2:]).max() <= SMOOTH * np.abs(values).max():
                break
            panels *= 2
            if panels > MOST:
                raise DomainError(f"{what} is not smooth, or too intricate; expected a smooth curve.")
        self._panels = panels
        self._density: Float[np.ndarray, "k p"] = series.T
        self._integral = np.polynomial.legendre.legint(series, lbnd=-1, axis=1).T * (0.5 * width)
        self._ends = np.concatenate([[0.0], np.cumsum(self._integral.sum(axis=0))])  # P_k(1) = 1 for all k
        self.total = float(self._ends[-1])

    def __call__(self, v: Vector) -> Vector:
        target = np.asarray(v) * self.total
        panel = np.clip(np.searchsorted(self._ends, target, side="right") - 1, 0, self._panels - 1)
        target = target - self._ends[panel]
        share = target / (self._ends[panel + 1] - self._ends[panel])
        low, high, at = np.full(len(target), -1.0), np.full(len(target), 1.0), 2 * share - 1
        integral, density = self._integral[:, panel], self._density[:, panel] * (0.5 / self._panels)
        for _ in range(STEPS):
            excess = np.polynomial.legendre.legval(at, integral, tensor=False) - target
            low, high = np.where(excess < 0, at, low), np.where(excess < 0, high, at)
            slope = np.polynomial.legendre.legval(at, density, tensor=False)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = at - excess / slope
            new = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
            moved = np.abs(new - at).max(initial=0.0)
            at = new
            if moved < 4e-16:
                break
        return (panel + 0.5 + 0.5 * at) / self._panels
