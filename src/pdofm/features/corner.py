"""Functions that are singular at corners, as solutions of elliptic equations are.

At a corner of inner angle ω, the solution of a second-order equation behaves like r^α sin(αθ) and r^α cos(αθ). The
exponents α are the multiples of π/ω if values, or normal derivatives, are given on both sides, and of π/2ω if values
are given on one side and derivatives on the other. Where α is an integer j, the real and imaginary parts of z^j log z
take the place of these functions. Multiplied by polynomials, they account for lower-order terms of the operator and for
smooth factors (Grisvard, "Elliptic problems in nonsmooth domains", 1985).
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import product as pairs
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float, Int

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index, closure, highest_order, product
from pdofm.domain import Domain, corners
from pdofm.errors import FeaturesError
from pdofm.features.base import LARGEST_DEGREE, Jets, Unmapped, check_count
from pdofm.features.box import Corner, box_of

HIGHEST_MONOMIAL = 100
"""The highest degree of the monomials that singular functions are multiplied by."""


class CornerFunctions(Unmapped):
    """Singular functions at the corners of a plane domain, to be joined with a smooth basis:
    ``Concatenate(NetworkFeatures(domain), CornerFunctions(domain))``.

    Args:
        domain: a plane domain with corners, which are found from its outline.
        highest: the largest exponent; a smooth basis resolves functions with larger ones.
        degree: the degree of the polynomials that the functions are multiplied by.
        convex: whether to include convex corners, where singularities are weaker, such as r² log r at a right angle.
        mixed: whether to include the exponents for values on one side and derivatives on the other.
        radial: whether the polynomials are powers of r² only, and exponents that are integers are left out. That is all
            that eigenfunctions of the Laplacian have at a corner with straight sides, where they are series of Bessel
            functions J_α(kr) sin(αθ).
        first: the smallest exponent at every corner, of which the others are multiples; by default it follows from the
            angle. Where several materials meet, exponents depend on their coefficients, and multiples of a small
            number approximate all of them.
    """

    tied_to: ClassVar[str] = "the corners of its domain. Make them anew: CornerFunctions(domain)"

    apexes: Float[Array | np.ndarray, "K 2"]
    middles: Float[Array | np.ndarray, "K 2"]
    lower: Corner
    upper: Corner
    angles: tuple[float, ...] = eqx.field(static=True)
    highest: float = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    mixed: bool = eqx.field(static=True)
    radial: bool = eqx.field(static=True)
    first: float | None = eqx.field(static=True)

    def __init__(
        self,
        domain: Domain,
        *,
        highest: float = 4.0,
        degree: int = 2,
        convex: bool = False,
        mixed: bool = False,
        radial: bool = False,
        first: float | None = None,
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
        self.radial = radial
        if first is not None and not 0 < first <= highest:
            raise FeaturesError(f"first is an exponent between 0 and highest={highest}; got {first!r}.")
        self.first = None if first is None else float(first)
        if not self.size:
            raise FeaturesError(
                f"All exponents at the corners of {domain!r} are integers: there are no radial functions to add."
            )

    def __check_init__(self) -> None:
        check_count("degree", self.degree, least=0, most=HIGHEST_MONOMIAL)
        if not (0 < self.highest <= LARGEST_DEGREE and all(0 < angle <= 2 * math.pi + 1e-6 for angle in self.angles)):
            raise FeaturesError(
                f"Exponents must be positive and at most {LARGEST_DEGREE}, and angles between 0 and 2 pi; got highest="
                f"{self.highest}, angles {list(self.angles)[:3]}."
            )

    def check_arrays(self) -> None:
        if self.dim != 2 or not (self.apexes.shape == self.middles.shape == (len(self.angles), 2)):
            raise FeaturesError("The arrays of CornerFunctions do not fit together: a corner has an apex and a middle.")

    @property
    def size(self) -> int:
        return sum(2 * len(self._exponents(angle)) * len(self._powers()) for angle in self.angles)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.zeros(self.size)

    @property
    def owners(self) -> Int[np.ndarray, " m"]:
        """The number of the corner that each function belongs to."""
        each = [(np.flatnonzero(here), len(self._orders(angle))) for here, angle in self._groups()]
        return np.concatenate([np.repeat(numbers, count) for numbers, count in each])

    @property
    def orders(self) -> Float[np.ndarray, " m"]:
        """The power of the distance to the corner with which each function grows there, up to logarithms."""
        return np.concatenate([np.tile(self._orders(angle), np.sum(here)) for here, angle in self._groups()])

    def _orders(self, angle: float) -> Float[np.ndarray, " k"]:
        """The same for the functions at one corner."""
        exponents = np.tile(self._exponents(angle), 2)
        return np.add.outer([p + q for p, q in self._powers()], exponents).reshape(-1)

    def __call__(self, x: Point) -> FeatureValues:
        size = jnp.max(jnp.asarray(self.upper) - jnp.asarray(self.lower))
        found = []
        for here, at_angle in self._groups():

            def at(apex: Array, middle: Array, angle: float = at_angle) -> Array:
                offset = (x - apex) / size
                along = jnp.stack([offset @ middle, middle[0] * offset[1] - middle[1] * offset[0]])
                return self._with_factors(along, power_functions(along, self._exponents(angle)))

            found.append(jax.vmap(at)(jnp.asarray(self.apexes)[here], jnp.asarray(self.middles)[here]).reshape(-1))
        return jnp.concatenate(found)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        below, found = closure(tuple(which)), np.empty((len(which), self.size, len(points)))
        size, start = float(np.max(np.asarray(self.upper) - np.asarray(self.lower))), 0
        for here, angle in self._groups():
            for apex, (c, s) in zip(np.asarray(self.apexes)[here], np.asarray(self.middles)[here], strict=True):
                turn = np.array([[c, s], [-s, c]]) / size
                along = (points - apex) @ turn.T
                singular = singular_jet(along, turn, self._exponents(angle), below)
                singular = {index: each[None] for index, each in singular.items()}
                factors = (_radial if self.radial else monomials)(along, turn, self._powers(), below)
                jet = product(factors, singular, which)
                rows = len(self._powers()) * 2 * len(self._exponents(angle))
                for out, index in zip(found, which, strict=True):
                    out[start : start + rows] = jet[index].reshape(rows, -1)
                start += rows
        return np.swapaxes(found, 1, 2)

    def _groups(self) -> list[tuple[Bool[np.ndarray, " K"], float]]:
        """The corners grouped by their angle, which determines their functions."""
        angles = np.round(self.angles, 9)
        groups = [
            (angles == each, self.angles[int(np.argmax(angles == each))]) for each in dict.fromkeys(angles.tolist())
        ]
        return [(here, angle) for here, angle in groups if len(self._exponents(angle))]

    def _powers(self) -> list[tuple[int, int]]:
        """The exponents (p, q) of the monomials y₀^p y₁^q up to the degree, or (j, j) for the powers r^2j."""
        if self.radial:
            return [(j, j) for j in range(self.degree // 2 + 1)]
        return [(p, q) for p, q in pairs(range(self.degree + 1), repeat=2) if p + q <= self.degree]

    def _with_factors(self, along: Float[Array, " 2"], singular: Float[Array, " k"]) -> Float[Array, " n"]:
        """The singular functions times all monomials up to the degree."""
        powers = np.array(self._powers())
        if self.radial:
            factors = _powers(along @ along, self.degree // 2)
        else:
            factors = _powers(along[0], self.degree)[powers[:, 0]] * _powers(along[1], self.degree)[powers[:, 1]]
        return (factors[:, None] * singular[None, :]).reshape(-1)

    def _exponents(self, angle: float) -> Float[np.ndarray, " n"]:
        """The exponents α at a corner of that angle, up to the highest."""
        first = self.first or math.pi / angle / (2 if self.mixed else 1)
        found = first * np.arange(1, math.floor(self.highest / first + 1e-9) + 1)
        return found[~are_whole(found)] if self.radial else found


def power_functions(along: Float[Array, " 2"], exponents: Vector) -> Float[Array, " n"]:
    """The real parts and then the imaginary parts of z^α, or of z^α log z where α is an integer, at the point z =
    `along`, by differentiable operations. Where the functions are singular, at z = 0, they vanish, and so do their
    derivatives of an order below α; others are nan."""
    # z^j itself is a polynomial; its product with the logarithm takes its place.
    logarithmic = are_whole(exponents).astype(float)
    return _sums(along, tuple(zip(exponents.tolist(), logarithmic.tolist(), (1 - logarithmic).tolist(), strict=True)))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _sums(along: Float[Array, " 2"], terms: tuple[tuple[float, float, float], ...]) -> Float[Array, " n"]:
    """The real parts and then the imaginary parts of z^a (p log z + q) for each (a, p, q) of `terms`."""
    a, p, q = np.array(terms).T
    is_apex = along @ along == 0
    z = jnp.where(is_apex, jnp.ones_like(along), along)
    log, theta = jnp.log(z @ z) / 2, jnp.arctan2(z[1], z[0])
    size, factor = jnp.exp(a * log), p * log + q
    cosine, sine = size * jnp.cos(a * theta), size * jnp.sin(a * theta)
    values = jnp.concatenate([factor * cosine - p * theta * sine, factor * sine + p * theta * cosine])
    limit = np.where((a > 0) | ((p == 0) & (q == 0)), 0.0, np.nan)
    return jnp.where(is_apex, np.tile(limit, 2), values)


@_sums.defjvp
def _sums_jvp(
    terms: tuple[tuple[float, float, float], ...], primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    """The derivative of z^a (p log z + q) along z is z^(a-1) (a p log z + a q + p)."""
    slope = _sums(primals[0], tuple((a - 1, a * p, a * q + p) for a, p, q in terms))
    real, imaginary = jnp.split(slope, 2)
    dx, dy = tangents[0]
    turned = jnp.concatenate([real * dx - imaginary * dy, real * dy + imaginary * dx])
    return _sums(primals[0], terms), turned


def singular_jet(
    along: Points, turn: Float[np.ndarray, "2 2"], exponents: Vector, which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, "k n"]]:
    """The derivatives `which`, with respect to two coordinates x, of the real parts and then of the imaginary parts of
    z^α, or of z^α log z where α is an integer. The points z, in `along` as pairs, are an affine function of x with the
    matrix `turn`, a rotation times a factor.

    With ∂z/∂x₁ = i z₀ and z₀ = ∂z/∂x₀, ∂^α f(z) = f^(|α|) z₀^|α| i^α₁.
    """
    z, slope = along[:, 0] + 1j * along[:, 1], turn[0, 0] + 1j * turn[1, 0]
    is_apex = z == 0  # derivatives that are not bounded there are nan
    with np.errstate(divide="ignore", invalid="ignore"):  # at the corner itself
        size, angle = np.log(np.sum(along**2, axis=1)) / 2, np.arctan2(along[:, 1], along[:, 0])
        log, inverse, values = size + 1j * angle, 1 / z, _powers_of(size, angle, exponents)
        derivatives = []
        # The k-th derivatives of z^a and z^a log z are z^(a-k) times p and p log z + q.
        p, q = np.ones(len(exponents)), np.zeros(len(exponents))
        for order in range(highest_order(which) + 1):
            factor = np.where(are_whole(exponents)[:, None], p[:, None] * log + q[:, None], p[:, None])
            limit = np.where(exponents > order, 0.0, np.nan)[:, None]
            derivatives.append(np.where(is_apex, limit, factor * values))
            values = values * inverse
            p, q = p * (exponents - order), p + q * (exponents - order)
    found = {}
    for index in which:
        each = derivatives[sum(index)] * (slope ** sum(index) * 1j ** index[1])
        found[index] = np.concatenate([each.real, each.imag])
    return found


def _powers_of(
    log: Float[np.ndarray, " n"], angle: Float[np.ndarray, " n"], exponents: Float[np.ndarray, " k"]
) -> Complex[np.ndarray, "k n"]:
    """z^α from log |z| and the angle of z. Multiples of the first exponent are powers of one function."""
    multiples = np.round(exponents / exponents[0]).astype(int)
    if np.max(np.abs(multiples * exponents[0] - exponents)) > 1e-14 * exponents[-1]:
        return np.exp(exponents[:, None] * log) * np.exp(1j * (exponents[:, None] * angle))
    first = np.exp(exponents[0] * log) * np.exp(1j * (exponents[0] * angle))
    return np.cumprod(np.repeat(first[None], multiples[-1], axis=0), axis=0)[multiples - 1]


def are_whole(exponents: Vector) -> Bool[np.ndarray, " k"]:
    """Which exponents are integers, up to rounding."""
    return np.abs(exponents - np.round(exponents)) < 1e-9


def monomials(
    along: Points, turn: Float[np.ndarray, "2 2"], powers: Sequence[tuple[int, int]], which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, "f 1 n"]]:
    """The derivatives of y₀^p y₁^q with respect to x, where y = `along` is affine in x with matrix `turn`."""
    ones = np.ones(len(along))
    coordinates = [{(0, 0): along[:, r], (1, 0): turn[r, 0] * ones, (0, 1): turn[r, 1] * ones} for r in range(2)]
    known: dict[tuple[int, int], dict[Index, Vector]] = {(0, 0): {(0, 0): ones}}
    for p, q in powers:
        if (p, q) != (0, 0):
            r, before = (0, (p - 1, q)) if p > 0 else (1, (p, q - 1))
            known[p, q] = product(coordinates[r], known[before], which)
    zero = np.zeros(len(along))
    return {index: np.stack([known[power].get(index, zero) for power in powers])[:, None] for index in which}


def _radial(
    along: Points, turn: Float[np.ndarray, "2 2"], powers: Sequence[tuple[int, int]], which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, "f 1 n"]]:
    """The derivatives of the powers of |y|², where y = `along` is a rotation of x times a factor."""
    ones, scale = np.ones(len(along)), float(turn[0] @ turn[0])
    slopes = 2 * along @ turn
    square = {(0, 0): np.sum(along**2, axis=1), (1, 0): slopes[:, 0], (0, 1): slopes[:, 1]}
    square |= {(2, 0): 2 * scale * ones, (0, 2): 2 * scale * ones}
    known: list[dict[Index, Vector]] = [{(0, 0): ones}]
    for _ in powers[1:]:
        known.append(product(square, known[-1], which))
    zero = np.zeros(len(along))
    return {index: np.stack([each.get(index, zero) for each in known])[:, None] for index in which}


def _powers(x: Float[Array, ""], highest: int) -> Float[Array, " n"]:
    """1, x, x², …"""
    return jnp.cumprod(jnp.concatenate([jnp.ones(1, x.dtype), jnp.full(highest, x)]))
