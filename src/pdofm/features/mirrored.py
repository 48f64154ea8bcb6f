"""Functions together with their mirror images in the faces of a box.

A solution with zero values on a flat face continues beyond it as an odd function, one with zero normal derivatives as
an even one: the field of a hole or an inclusion has mirror images there. Sums over the nearest images nearly satisfy
such conditions, and what is left for other functions to do is smooth far beyond the box.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index
from pdofm.errors import FeaturesError
from pdofm.features.base import Features, Jets
from pdofm.features.box import Corner
from pdofm.features.wrapper import Wrapper

Signs = tuple[int, ...]


class Mirrored(Wrapper):
    """Features plus their mirror images in the faces of their box, Σ ± φ(image of x).

    Args:
        inner: features that are defined beyond their box.
        below, above: for each axis the sign of the images in the lower and in the upper face: -1 where values are zero,
            1 where normal derivatives are, 0 without an image.
    """

    tied_to: ClassVar[str] = "the faces of its box. Make it anew on the other domain"

    inner: Features
    lower: Corner
    upper: Corner
    below: Signs = eqx.field(static=True)
    above: Signs = eqx.field(static=True)

    def __init__(self, inner: Features, below: Sequence[int], above: Sequence[int]):
        self.inner, self.lower, self.upper = inner, inner.lower, inner.upper
        self.below, self.above = tuple(below), tuple(above)
        self.__check_init__()

    def __check_init__(self) -> None:
        """Refuse signs that are none; a file may hold anything."""
        if not (len(self.below) == len(self.above) == self.dim and {*self.below, *self.above} <= {-1, 0, 1}):
            raise FeaturesError(
                f"The signs of mirror images are -1, 0 or 1 for each of {self.dim} axes; got {self.below} and "
                f"{self.above}."
            )

    @property
    def wrapped(self) -> tuple[Features, ...]:
        return (self.inner,)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return self.inner.ranks

    def _images(self) -> Iterator[tuple[int, Vector, Vector]]:
        """Sign, slopes ±1 and offsets of each map of a point to an image: slopes * x + offsets."""
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        choices = [
            [(1, 1.0, 0.0), *([(a, -1.0, 2 * low)] if a else []), *([(b, -1.0, 2 * high)] if b else [])]
            for a, b, low, high in zip(self.below, self.above, lower.tolist(), upper.tolist(), strict=True)
        ]
        for each in product(*choices):
            signs, slopes, offsets = zip(*each, strict=True)
            yield prod(signs), np.array(slopes), np.array(offsets)

    def __call__(self, x: Point) -> FeatureValues:
        total: Array | float = 0.0
        for sign, slopes, offsets in self._images():
            total = total + sign * self.inner(jnp.asarray(slopes) * x + offsets)
        return jnp.asarray(total)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        powers = np.array(which).reshape(len(which), -1)
        found = np.zeros((len(which), self.size, len(points)))
        for sign, slopes, offsets in self._images():
            jet = np.swapaxes(self.inner.jets(slopes * points + offsets, which), 1, 2)
            for row, factor in enumerate(sign * np.prod(slopes**powers, axis=1)):
                found[row] += factor * jet[row]
        return np.swapaxes(found, 1, 2)
