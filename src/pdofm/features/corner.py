"""Functions that are singular at corners, as solutions of elliptic equations are.

At a corner of inner angle ω the solution of a second-order equation behaves like r^α sin(αθ) and r^α cos(αθ) with α a
multiple of π/ω (values, or normal derivatives, given on both sides) or of π/2ω (one of each), and, where such a
multiple is an integer j, like the real and imaginary parts of z^j log z. Times polynomials they make up for lower-order
terms of the operator and for smooth factors (Grisvard, "Elliptic problems in nonsmooth domains", 1985).
"""

import math
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pdofm._types import FeatureValues, Point
from pdofm.domain import Domain, corners
from pdofm.errors import FeaturesError
from pdofm.features.base import Corner, Unmapped, box_of, check_count


class CornerFunctions(Unmapped):
    """Singular functions at the corners of a plane domain, to be joined with a smooth basis:
    ``Concatenate(NetworkFeatures(domain), CornerFunctions(domain))``.

    Args:
        domain: a plane domain with corners, which are found from its outline.
        highest: exponents up to this one (times polynomials) are taken; beyond, a smooth basis does as well.
        degree: of the polynomials that they are multiplied with.
        convex: at convex corners, too, where the singularities are weaker, such as r² log r at a right angle.
        mixed: also the exponents for values on one side and derivatives on the other.
    """

    apexes: Float[Array | np.ndarray, "K 2"]
    middles: Float[Array | np.ndarray, "K 2"]
    lower: Corner
    upper: Corner
    angles: tuple[float, ...] = eqx.field(static=True)
    highest: float = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    mixed: bool = eqx.field(static=True)

    def __init__(
        self, domain: Domain, *, highest: float = 4.0, degree: int = 2, convex: bool = False, mixed: bool = False
    ):
        found = [corner for corner in corners(domain) if convex or corner.angle > math.pi]
        if not found:
            raise FeaturesError(
                f"{domain!r} has no {'' if convex else 're-entrant '}corner: there is nothing singular to add. Use the "
                "smooth basis alone."
            )
        self.lower, self.upper = box_of(domain)
        self.apexes = np.array([corner.apex for corner in found])
        self.middles = np.array([corner.middle for corner in found])
        self.angles = tuple(corner.angle for corner in found)
        self.highest, self.degree, self.mixed = float(highest), check_count("degree", degree, least=0), mixed

    @property
    def size(self) -> int:
        factors = (self.degree + 1) * (self.degree + 2) // 2
        return sum(2 * len(self._exponents(angle)) * factors for angle in self.angles)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.zeros(self.size)

    def __call__(self, x: Point) -> FeatureValues:
        size = jnp.max(jnp.asarray(self.upper) - jnp.asarray(self.lower))
        angles, found = np.round(self.angles, 9), []
        for each in dict.fromkeys(angles):  # corners of the same angle have the same functions
            here = angles == each

            def at(apex: Array, middle: Array, angle: float = self.angles[int(np.argmax(here))]) -> Array:
                offset = (x - apex) / size
                along = jnp.stack([offset @ middle, middle[0] * offset[1] - middle[1] * offset[0]])
                return self._with_factors(along, angle)

            found.append(jax.vmap(at)(jnp.asarray(self.apexes)[here], jnp.asarray(self.middles)[here]).reshape(-1))
        return jnp.concatenate(found)

    def _with_factors(self, along: Float[Array, " 2"], angle: float) -> Float[Array, " n"]:
        """The singular functions times all monomials up to the degree."""
        powers = np.array([p for p in product(range(self.degree + 1), repeat=2) if sum(p) <= self.degree])
        factors = _powers(along[0], self.degree)[powers[:, 0]] * _powers(along[1], self.degree)[powers[:, 1]]
        return (factors[:, None] * self._singular(along, angle)[None, :]).reshape(-1)

    def _exponents(self, angle: float) -> Float[np.ndarray, " n"]:
        first = math.pi / angle / (2 if self.mixed else 1)
        return first * np.arange(1, math.floor(self.highest / first + 1e-9) + 1)

    def _singular(self, along: Float[Array, " 2"], angle: float) -> Float[Array, " n"]:
        """The singular functions in coordinates along the middle of the angle and across, the cut being outside."""
        exponents = self._exponents(angle)
        whole = jnp.asarray(np.abs(exponents - np.round(exponents)) < 1e-9)
        log, theta = jnp.log(along @ along) / 2, jnp.arctan2(along[1], along[0])
        size, phase = jnp.exp(exponents * log), exponents * theta
        cosine, sine = size * jnp.cos(phase), size * jnp.sin(phase)
        # z^j itself is a polynomial: its product with the logarithm takes its place.
        return jnp.concatenate(
            [
                jnp.where(whole, log * cosine - theta * sine, cosine),
                jnp.where(whole, log * sine + theta * cosine, sine),
            ]
        )


def _powers(x: Float[Array, ""], highest: int) -> Float[Array, " n"]:
    """1, x, x², …"""
    return jnp.cumprod(jnp.concatenate([jnp.ones(1, x.dtype), jnp.full(highest, x)]))
