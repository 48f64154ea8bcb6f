"""Polynomials for many dimensions: products of Chebyshev polynomials in few of the coordinates.

All polynomials up to a degree are too many in high dimensions: in ten, those of degree 6 are 8008. Many functions of
many variables are sums of functions of few of them, or nearly so, and then products in few coordinates suffice.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from pdofm._types import FeatureValues, Point, Points
from pdofm.calculus.jets import Index
from pdofm.errors import FeaturesError
from pdofm.features.base import Features, Jets, check_count
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.spectral import chosen_degree, column, indices_below, table


def _count(dim: int, variables: int, degree: int) -> int:
    """The number of products of at most `variables` polynomials of different coordinates, up to a total degree."""
    return sum(comb(dim, s) * comb(degree, s) for s in range(variables + 1))


@lru_cache(maxsize=64)
def _factors(dim: int, variables: int, degree: int) -> tuple[Int[np.ndarray, "m v"], Int[np.ndarray, "m v"]]:
    """The coordinates and the degrees of the factors of every product, by total degree. Products with fewer factors are
    filled up with T₀ of coordinate 0."""
    check_count("The number of polynomials", _count(dim, variables, degree))
    axes, degrees = [np.zeros((1, variables), np.int64)], [np.zeros((1, variables), np.int64)]
    for s in range(1, variables + 1):
        chosen = np.array(list(combinations(range(dim), s)), np.int64)
        powers = indices_below((1,) * s, degree - s) + 1 if degree >= s else np.zeros((0, s), np.int64)
        filling = ((0, 0), (0, variables - s))
        axes.append(np.pad(np.repeat(chosen, len(powers), axis=0), filling))
        degrees.append(np.pad(np.tile(powers, (len(chosen), 1)), filling))
    every = np.concatenate(degrees)
    order = np.argsort(every.sum(axis=1), kind="stable")
    return np.concatenate(axes)[order], every[order]


class SparsePolynomials(Features):
    """Products of Chebyshev polynomials in at most `variables` of the coordinates of a box, up to a total degree.

    In d dimensions there are Σ C(d, s) C(degree, s) of them, for s from 0 to `variables`. With ``variables=1`` they are
    sums of functions of one coordinate; with ``variables=2`` pairs of coordinates interact. Give `degree`, or `size`
    for the largest degree with at most that many functions.
    """

    lower: Corner
    upper: Corner
    degree: int = eqx.field(static=True)
    variables: int = eqx.field(static=True)

    def __init__(self, domain: HasBox, size: int | None = None, *, degree: int | None = None, variables: int = 2):
        self.lower, self.upper = box_of(domain)
        self.variables = check_count("variables", variables)
        if self.variables > self.dim:
            raise FeaturesError(f"variables is {variables}, but the domain has {self.dim} dimensions only.")
        self.degree = chosen_degree(size, degree, lambda k: _count(self.dim, self.variables, k))

    def __check_init__(self) -> None:
        check_count("variables", self.variables, most=self.dim)
        check_count("degree", self.degree, least=0)

    @property
    def size(self) -> int:
        return _count(self.dim, self.variables, self.degree)

    @property
    def ranks(self) -> np.ndarray:
        # By degrees, as those of `Chebyshev`.
        return super().ranks ** (1 / self.variables)

    def values(self, y: Point) -> FeatureValues:
        axes, degrees = _factors(self.dim, self.variables, self.degree)
        return jnp.prod(column(y, self.degree)[degrees, axes], axis=1)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        axes, degrees = _factors(self.dim, self.variables, self.degree)
        on_cube, slopes = self.to_cube(points)
        highest = max((max(index) for index in which), default=0)
        coordinates = zip(on_cube.T, slopes, strict=True)
        along = [table([y, slope, *[0.0] * highest][: highest + 1], self.degree) for y, slope in coordinates]
        every = np.stack(along)  # by coordinate, order of derivative, degree, point
        found = np.zeros((len(which), self.size, len(points)))
        for out, index in zip(found, which, strict=True):
            # A derivative along a coordinate that is not among the factors is zero.
            orders = np.where(degrees > 0, np.array(index)[axes], 0)
            rows = np.flatnonzero(orders.sum(axis=1) == sum(index))
            value = every[axes[rows, 0], orders[rows, 0], degrees[rows, 0]]
            for j in range(1, self.variables):
                value *= every[axes[rows, j], orders[rows, j], degrees[rows, j]]
            out[rows] = value
        return np.swapaxes(found, 1, 2)
