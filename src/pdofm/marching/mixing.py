"""Anderson's acceleration of an iteration: the next iterate is combined from the last ones."""

from itertools import pairwise

import numpy as np
from jaxtyping import Float

MEMORY = 6
"""Steps that are remembered."""

DEPENDENT = 1e-10
"""Changes of steps that are dependent to this fraction are not told apart."""


class Mixing:
    """The last iterates of x → x + s(x), and their steps s.

    If s were linear, s(x + Σ γ_k Δx_k) = s + Σ γ_k Δs_k with the differences Δ of iterates and steps. The weights γ
    make this as small as possible, and the next iterate is the point where it is, plus the step there. Only products of
    the differences are needed: the weights need few digits, since the next step shows what is left.
    """

    def __init__(self):
        self._x: list[np.ndarray] = []
        self._s: list[np.ndarray] = []

    def after(self, x: Float[np.ndarray, "..."], step: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The next iterate."""
        self._x, self._s = [*self._x[-MEMORY:], x], [*self._s[-MEMORY:], step]
        if len(self._x) == 1:
            return x + step
        of_x, of_s = ([b - a for a, b in pairwise(each)] for each in (self._x, self._s))
        sizes = np.array([max(float(np.linalg.norm(each)), 1e-300) for each in of_s])
        products = np.array([[np.vdot(a, b) for b in of_s] for a in of_s]) / np.outer(sizes, sizes)
        right = np.array([np.vdot(a, step) for a in of_s]) / sizes
        weights = np.linalg.lstsq(products, right, rcond=DEPENDENT)[0] / sizes
        found = x + step
        for weight, dx, ds in zip(weights, of_x, of_s, strict=True):
            found = found - weight * (dx + ds)
        return found
