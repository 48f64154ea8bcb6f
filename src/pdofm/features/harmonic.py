"""Harmonic polynomials: of all polynomials those that satisfy Laplace's equation.

There are 2k + 1 of degree up to k in the plane and (k + 1)² in space, against k² / 2 and k³ / 6 polynomials, so that
much higher degrees can be afforded.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from pdofm._types import FeatureValues, Point, Points
from pdofm.calculus.jets import Index, Jet, closure, highest_order, product, unit
from pdofm.errors import FeaturesError
from pdofm.features.base import LARGEST_DEGREE, Jets, Unmapped, check_count
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.holes import solid_harmonics


class HarmonicPolynomials(Unmapped):
    """The harmonic polynomials about the center of a domain in two or three dimensions, to be joined with other
    features: ``Concatenate(Chebyshev(domain, 60), HarmonicPolynomials(domain, 30))``.

    In the plane they are the real and imaginary parts of (z / R)^k, in space solid harmonics of x / R, where R is half
    the diagonal of the box.

    Args:
        domain: a domain in two or three dimensions.
        degree: the highest degree.
        lowest: the lowest degree; polynomials of lower degrees are left to other features.
        raised: whether to add r² and r² times each coordinate, which are not harmonic: a constant source takes r².
    """

    lower: Corner
    upper: Corner
    degree: int = eqx.field(static=True)
    lowest: int = eqx.field(static=True)
    raised: bool = eqx.field(static=True)

    def __init__(self, domain: HasBox, degree: int, lowest: int = 0, *, raised: bool = False):
        self.lower, self.upper = box_of(domain)
        if len(self.lower) not in (2, 3):
            raise FeaturesError(
                f"Harmonic polynomials are made in two and three dimensions; the domain has {len(self.lower)}. Use "
                "Chebyshev."
            )
        self.lowest = check_count("lowest", lowest, least=0)
        self.degree, self.raised = check_count("degree", degree, least=self.lowest), raised

    def __check_init__(self) -> None:
        check_count("degree", self.degree, least=check_count("lowest", self.lowest, least=0), most=LARGEST_DEGREE)

    def check_arrays(self) -> None:
        """There is no array but the corners of the box."""

    @property
    def size(self) -> int:
        return self._more + len(self._degrees())

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.concatenate([np.zeros(self._more), self._degrees() / (self.degree + 1)])

    @property
    def _more(self) -> int:
        """How many functions are not harmonic; they come first."""
        return self.dim + 1 if self.raised else 0

    def _degrees(self) -> Int[np.ndarray, " m"]:
        """The degree of each polynomial, in ascending order."""
        degrees = np.arange(self.lowest, self.degree + 1)
        return np.repeat(degrees, np.where(degrees == 0, 1, 2) if self.dim == 2 else 2 * degrees + 1)

    @property
    def _first(self) -> int:
        """How many polynomials of lower degrees there are."""
        return max(2 * self.lowest - 1, 0) if self.dim == 2 else self.lowest**2

    def __call__(self, x: Point) -> FeatureValues:
        lower, upper = jnp.asarray(self.lower), jnp.asarray(self.upper)
        y = (x - (lower + upper) / 2) * (2 / jnp.linalg.norm(upper - lower))
        more = (y @ y) * jnp.concatenate([jnp.ones(1), y])[: self._more]
        if self.dim == 3:
            found = [each[()] for each in solid_harmonics([{(): c} for c in y], self.degree, [()])]
            return jnp.concatenate([more, jnp.stack(found)[self._first :]])
        real, imaginary, found = jnp.ones(()), jnp.zeros(()), [jnp.ones(())]
        for _ in range(self.degree):
            real, imaginary = real * y[0] - imaginary * y[1], real * y[1] + imaginary * y[0]
            found += [real, imaginary]
        return jnp.concatenate([more, jnp.stack(found)[self._first :]])

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        scale = float(2 / np.linalg.norm(upper - lower))
        y = (points - (lower + upper) / 2) * scale
        found = np.empty((len(which), self.size, len(points)))
        for out, each in zip(found, (_plane if self.dim == 2 else _space)(y, scale, self.degree, which), strict=True):
            out[self._more :] = each[self._first :]
        if self.raised:
            jet = _raised(y, scale, which)
            for out, index in zip(found, which, strict=True):
                out[: self._more] = jet[index]
        return np.swapaxes(found, 1, 2)


def _raised(y: Points, scale: float, which: Sequence[Index]) -> dict[Index, Float[np.ndarray, "k n"]]:
    """The derivatives of |y|² and of its products with each coordinate."""
    dim, ones = y.shape[1], np.ones(len(y))
    zero = (0,) * dim
    square: Jet = {zero: np.sum(y**2, axis=1)[None]}
    linear: Jet = {zero: np.concatenate([ones[None], y.T])}
    for axis in range(dim):
        first = unit(dim, axis)
        square[first] = 2 * scale * y[None, :, axis]
        square[tuple(2 * k for k in first)] = 2 * scale**2 * ones[None]
        linear[first] = scale * (np.arange(dim + 1) == axis + 1)[:, None] * ones
    found, nothing = product(square, linear, which), np.zeros((dim + 1, len(y)))
    return {index: found.get(index, nothing) for index in which}


def _plane(y: Points, scale: float, degree: int, which: Sequence[Index]) -> list[np.ndarray]:
    """The derivatives of the real and imaginary parts of z^k: with ∂z/∂x₁ = i, each is one of a function of z."""
    z = y[:, 0] + 1j * y[:, 1]
    powers = np.cumprod(np.concatenate([np.ones((1, len(z))), np.repeat(z[None], degree, axis=0)]), axis=0)
    orders, found = np.arange(degree + 1), []
    for index in which:
        n = sum(index)
        falling = np.prod(orders[:, None] - np.arange(n), axis=1)  # zero for the orders below n
        each = np.zeros_like(powers)
        each[n:] = powers[: degree + 1 - n]
        each *= (scale**n * 1j ** index[1] * falling)[:, None]
        found.append(
            np.stack([each.real, each.imag], axis=1).reshape(2 * degree + 2, -1)[np.arange(2 * degree + 2) != 1]
        )
    return found


def _space(y: Points, scale: float, degree: int, which: Sequence[Index]) -> list[np.ndarray]:
    """The derivatives of solid harmonics."""
    below, zero = closure(tuple(which)), (0, 0, 0)
    linear = highest_order(which) > 0
    jets = [{zero: y[:, axis], **({unit(3, axis): np.full(len(y), scale)} if linear else {})} for axis in range(3)]
    nothing = np.zeros(len(y))
    found = solid_harmonics(jets, degree, below)
    return [np.stack([each.get(index, nothing) for each in found]) for index in which]
