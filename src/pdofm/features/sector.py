"""Functions that are singular where several regions meet in a point, as seen by one of them.

Around such a point a region is a sector, in which solutions of -div(k grad u) = f behave like r^α cos(αθ) and
r^α sin(αθ). The exponents α depend on the angles and coefficients of all sectors that meet there.
"""

from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index, closure, product
from pdofm.features.base import Jets, Unmapped
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.corner import monomials, power_functions, singular_jet


class SectorFunctions(Unmapped):
    """The functions r^α cos(αθ) and r^α sin(αθ) about a point, times monomials, to be joined with a smooth basis. Where
    α is an integer j, the real and imaginary parts of z^j log z take their place.

    Args:
        domain: a plane domain; its box and its size are used.
        apex: the point.
        middle: the unit vector that points into the middle of the sector: the functions jump on the opposite side.
        exponents: α, in ascending order.
        degree: the degree of the monomials.
    """

    tied_to: ClassVar[str] = "a point where regions meet. Solve on the other domain to find its own"

    lower: Corner
    upper: Corner
    apex: Float[Array | np.ndarray, " 2"]
    middle: Float[Array | np.ndarray, " 2"]
    exponents: tuple[float, ...] = eqx.field(static=True)
    degree: int = eqx.field(static=True)

    def __init__(self, domain: HasBox, apex: Vector, middle: Vector, exponents: Sequence[float], degree: int = 0):
        self.lower, self.upper = box_of(domain)
        self.apex, self.middle = np.array(apex, dtype=float), np.array(middle, dtype=float)
        self.exponents, self.degree = tuple(float(each) for each in exponents), degree

    @property
    def size(self) -> int:
        return 2 * len(self.exponents) * len(self._powers())

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.zeros(self.size)

    def equals(self, other: "SectorFunctions") -> bool:
        """Whether these are the same functions."""
        numbers = (self.apex, self.middle, self.lower, self.upper)
        same = zip(numbers, (other.apex, other.middle, other.lower, other.upper), strict=True)
        fixed = (self.exponents, self.degree) == (other.exponents, other.degree)
        return fixed and all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in same)

    def _powers(self) -> list[tuple[int, int]]:
        """The exponents of the monomials."""
        return [(p, n - p) for n in range(self.degree + 1) for p in range(n + 1)]

    def _turn(self) -> Float[np.ndarray, "2 2"]:
        """The map to coordinates along and across the middle, in sizes of the domain."""
        c, s = np.asarray(self.middle)
        return np.array([[c, s], [-s, c]]) / float(np.max(np.asarray(self.upper) - np.asarray(self.lower)))

    def __call__(self, x: Point) -> FeatureValues:
        offset = (x - self.apex) / jnp.max(jnp.asarray(self.upper) - jnp.asarray(self.lower))
        c, s = jnp.asarray(self.middle)
        along = jnp.stack([c * offset[0] + s * offset[1], c * offset[1] - s * offset[0]])
        singular = power_functions(along, np.array(self.exponents))
        return jnp.concatenate([along[0] ** p * along[1] ** q * singular for p, q in self._powers()])

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        below, turn, powers = closure(tuple(which)), self._turn(), self._powers()
        along = (points - np.asarray(self.apex)) @ turn.T
        singular = singular_jet(along, turn, np.array(self.exponents), below)
        jet = product(
            monomials(along, turn, powers, below), {index: each[None] for index, each in singular.items()}, which
        )
        found = np.stack([jet[index].reshape(self.size, -1) for index in which])
        return np.swapaxes(found, 1, 2)
