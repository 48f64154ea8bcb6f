"""Functions that decay away from the round bores of a solid, such as drilled holes.

Around a bore the functions are those around a round hole of the plane across its axis (`HoleFunctions`) times
polynomials along the axis. Together they have a total degree.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pdofm._types import FeatureValues, Point, Points
from pdofm.calculus.jets import Index
from pdofm.domain import Box, Disk, Domain
from pdofm.domain.holes import round_bores
from pdofm.errors import FeaturesError
from pdofm.features.base import LARGEST_DEGREE, Jets, Unmapped, check_count
from pdofm.features.box import Corner, box_of
from pdofm.features.holes import HoleFunctions
from pdofm.features.rotated import rotated
from pdofm.features.spectral import table


class BoreFunctions(Unmapped):
    """Functions that are singular on the axes of the round bores of a solid, to be joined with a smooth basis:
    ``Concatenate(Chebyshev(domain, 500), BoreFunctions(domain))``.

    Args:
        domain: a domain in three dimensions with cylindrical holes, which are found from its boundary. Those whose axis
            enters the domain, where the functions would be singular, too, are left out: a bore must go through.
        degree: the highest total degree of the functions.
        powers: as in `HoleFunctions`.
    """

    tied_to: ClassVar[str] = "the bores of its domain. Make them anew: BoreFunctions(domain)"

    lower: Corner
    upper: Corner
    starts: Float[np.ndarray | Array, "B 3"]
    frames: Float[np.ndarray | Array, "B 3 3"]
    reach: Float[np.ndarray | Array, "B 2"]  # of the box along each axis
    radii: tuple[float, ...] = eqx.field(static=True)
    extent: float = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    powers: int = eqx.field(static=True, default=1)

    def __init__(self, domain: Domain, degree: int = 8, powers: int = 1):
        bores = round_bores(domain)
        if not bores:
            raise FeaturesError(
                f"{domain!r} has no round bore that goes through a solid in three dimensions: there is nothing "
                "singular to add. Use the smooth basis alone."
            )
        self.lower, self.upper = box_of(domain)
        corners = np.stack(np.meshgrid(*np.stack([self.lower, self.upper], axis=1)), axis=-1).reshape(-1, 3)
        self.starts = np.array([bore.start for bore in bores])
        self.frames = np.array([bore.frame for bore in bores])
        along = np.array([(corners - bore.start) @ bore.frame[2] for bore in bores])
        self.reach = np.stack([along.min(axis=1), along.max(axis=1)], axis=1)
        self.extent = float(np.max(self.upper - self.lower))
        self.radii = tuple(float(f"{bore.radius:.12g}") for bore in bores)
        self.degree = check_count("degree", degree, least=0)
        self.powers = check_count("powers", powers, least=0)

    def __check_init__(self) -> None:
        check_count("degree", self.degree, least=0, most=LARGEST_DEGREE)

    def check_arrays(self) -> None:
        shapes, count = [np.shape(each) for each in (self.starts, self.frames, self.reach)], len(self.radii)
        fit = shapes == [(count, 3), (count, 3, 3), (count, 2)]
        if not fit or not all(0 < radius < self.extent < np.inf for radius in self.radii):
            raise FeaturesError(
                "The arrays of BoreFunctions do not fit together: a bore has a start, a frame, a reach and a radius."
            )

    @property
    def size(self) -> int:
        return len(self.radii) * len(self._pairs()[0])

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.sort(np.tile(self._pairs()[1], len(self.radii))) / (self.degree + 1)

    def _plane(self, radius: float) -> HoleFunctions:
        """The functions across a bore, in coordinates of its plane."""
        return _around(radius, self.extent, self.degree, self.powers)

    def _pairs(self) -> tuple[Int[np.ndarray, "m 2"], Float[np.ndarray, " m"]]:
        """The functions of a bore as pairs of a function across it and a degree along it, and their total degrees."""
        across = _around(1.0, 4.0, self.degree, self.powers).ranks * (self.degree + 1)
        total = across[:, None] + np.arange(self.degree + 1)
        pairs = np.argwhere(total <= self.degree + 1e-9)
        return pairs, total[tuple(pairs.T)]

    def _order(self) -> Int[np.ndarray, " m"]:
        """Functions of low degree first; they are made bore by bore."""
        return np.argsort(np.tile(self._pairs()[1], len(self.radii)), kind="stable")

    def __call__(self, x: Point) -> FeatureValues:
        pairs, found = self._pairs()[0], []
        for i, radius in enumerate(self.radii):
            y = jnp.asarray(self.frames[i]) @ (x - jnp.asarray(self.starts[i]))
            low, high = self.reach[i]
            s = (2 * y[2] - low - high) / (high - low)
            columns = [jnp.ones_like(s), s]
            while len(columns) <= self.degree:
                columns.append(2 * s * columns[-1] - columns[-2])
            found.append(self._plane(radius)(y[:2])[pairs[:, 0]] * jnp.stack(columns)[pairs[:, 1]])
        return jnp.concatenate(found)[self._order()]

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        found, pairs = np.empty((len(which), self.size, len(points))), self._pairs()[0]
        count, where = len(pairs), np.argsort(self._order())
        arrays = (np.asarray(each) for each in (self.starts, self.frames, self.reach))
        for k, (start, frame, reach, radius) in enumerate(zip(*arrays, self.radii, strict=True)):
            turned, factors = rotated(frame, which)
            y, slope = (points - start) @ frame.T, 2 / float(reach[1] - reach[0])
            highest = max(index[2] for index in turned)
            coordinate = [slope * (y[:, 2] - reach.mean()), slope * np.ones(len(y)), *[0.0] * max(highest - 1, 0)]
            along = table(coordinate[: highest + 1], self.degree)
            plane = tuple(dict.fromkeys(index[:2] for index in turned))
            across = dict(zip(plane, np.swapaxes(self._plane(radius).jets(y[:, :2], plane), 1, 2), strict=True))
            each = [across[index[:2]][pairs[:, 0]] * along[index[2]][pairs[:, 1]] for index in turned]
            found[:, where[k * count : (k + 1) * count]] = np.tensordot(factors, np.stack(each), 1)
        return np.swapaxes(found, 1, 2)


@lru_cache(maxsize=64)
def _around(radius: float, size: float, degree: int, powers: int) -> HoleFunctions:
    """The functions around a hole at the origin of the plane."""
    return HoleFunctions(Box([-size, -size], [size, size]) - Disk([0, 0], radius), degree, powers)
