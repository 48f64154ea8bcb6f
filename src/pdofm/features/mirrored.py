"""Functions together with their mirror images in the faces of a box.

A solution with zero values on a flat face continues beyond it as an odd function, one with zero normal derivatives as
an even one: the field of a hole or an inclusion has mirror images there. Sums over the nearest images nearly satisfy
such conditions, and what is left for other functions to do is smooth far beyond the box.
"""

from collections.abc import Iterator, Sequence
from itertools import product as combinations
from math import prod
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
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

    def _images(self) -> Iterator[tuple[int, Vector, Vector, Vector]]:
        """The sign of each image, and the map of a point to it: slopes * x + below * lower + above * upper."""
        choices = [[(1, 0), *([(a, -1)] if a else []), *([(b, 1)] if b else [])] for a, b in self._signs()]
        for each in combinations(*choices):
            signs, faces = zip(*each, strict=True)
            face = np.array(faces, dtype=float)
            yield prod(signs), 1 - 2 * np.abs(face), 2.0 * (face < 0), 2.0 * (face > 0)

    def _signs(self) -> Iterator[tuple[int, int]]:
        return zip(self.below, self.above, strict=True)

    def __call__(self, x: Point) -> FeatureValues:
        lower, upper, values = jnp.asarray(self.lower), jnp.asarray(self.upper), []
        for sign, slopes, below, above in self._images():
            image = jnp.asarray(slopes) * x + jnp.asarray(below) * lower + jnp.asarray(above) * upper
            values.append(sign * self.inner(image))
        return jnp.sum(jnp.stack(values), axis=0)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        powers = np.array(which).reshape(len(which), -1)
        found = np.zeros((len(which), self.size, len(points)))
        for sign, slopes, below, above in self._images():
            jet = np.swapaxes(self.inner.jets(slopes * points + below * lower + above * upper, which), 1, 2)
            for row, factor in enumerate(sign * np.prod(slopes**powers, axis=1)):
                found[row] += factor * jet[row]
        return np.swapaxes(found, 1, 2)
