"""Functions that decay away from round holes, as solutions of elliptic equations around a hole do.

Let a hole have the center c and the radius a, and r = |x - c|. The solutions of Laplace's equation that are singular at
c alone are the multipoles: in the plane log r and the real and imaginary parts of (a / (z - c))^k, in space the Kelvin
transforms of harmonic polynomials H of degree k,

    (a / r) H(y),      y = a (x - c) / r².

Outside the hole |y| < 1, so that the degree k behaves like the degree of a polynomial. Multipoles times powers of r²
account for sources and for operators with terms of lower order. In the plane the solutions of Δu = c u around a hole
are Bessel functions Y_k(r) times cos kθ and sin kθ. Their series have such terms and logarithms times r^(k + 2j), so
with more than one power these are functions, too.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index, Jet, closure, composition, highest_order, product, unit
from pdofm.domain import Domain, round_holes
from pdofm.errors import FeaturesError
from pdofm.features.base import LARGEST_DEGREE, Jets, Unmapped, check_count
from pdofm.features.box import Corner, box_of


class HoleFunctions(Unmapped):
    """Functions that are singular at the centers of the round holes of a domain, to be joined with a smooth basis:
    ``Concatenate(Chebyshev(domain, 300), HoleFunctions(domain))``.

    Args:
        domain: a domain in two or three dimensions with round holes, which are found from its boundary.
        degree: the highest degree of the multipoles; those that are multiplied by r² have half of it, those by r⁴ a
            third, and so on.
        powers: the highest power of r²; with more than one, in the plane, also log r times polynomials of that degree
            and less.
    """

    tied_to: ClassVar[str] = "the holes of its domain. Make them anew: HoleFunctions(domain)"

    centers: Float[Array | np.ndarray, "K d"]
    radii: Float[Array | np.ndarray, " K"]
    lower: Corner
    upper: Corner
    degree: int = eqx.field(static=True)
    powers: int = eqx.field(static=True, default=1)

    def __init__(self, domain: Domain, degree: int = 10, powers: int = 1):
        holes = round_holes(domain) if domain.dim in (2, 3) else []
        if not holes:
            raise FeaturesError(
                f"{domain!r} has no round hole in two or three dimensions: there is nothing singular to add. Use the "
                "smooth basis alone."
            )
        self.lower, self.upper = box_of(domain)
        self.centers = np.array([hole.center for hole in holes])
        self.radii = np.array([hole.radius for hole in holes])
        self.degree = check_count("degree", degree, least=0)
        self.powers = check_count("powers", powers, least=0)

    def __check_init__(self) -> None:
        check_count("degree", self.degree, least=0, most=LARGEST_DEGREE)

    def check_arrays(self) -> None:
        if self.centers.shape != (len(self.radii), self.dim) or not np.all(np.asarray(self.radii) > 0):
            raise FeaturesError("The arrays of HoleFunctions do not fit together: a hole has a center and a radius.")

    @property
    def size(self) -> int:
        return len(self.radii) * len(self._hole_degrees())

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.sort(np.tile(self._hole_degrees(), len(self.radii))) / (self.degree + 1)

    def _degrees(self) -> Int[np.ndarray, " k"]:
        """The degrees of the multipoles of a hole, in ascending order."""
        count = [1] + [2] * self.degree if self.dim == 2 else [2 * k + 1 for k in range(self.degree + 1)]
        return np.repeat(np.arange(self.degree + 1), count)

    def _hole_degrees(self) -> Float[np.ndarray, " k"]:
        """The degrees of the functions of a hole: of the multipoles, then of those that are multiplied by r², which are
        counted twice, so that coarser spaces have both kinds in the same proportion, by r⁴, and so on."""
        degrees = self._degrees().astype(float)
        every = [(j + 1) * degrees[: self._multiplied(j)] for j in range(self.powers + 1)]
        return np.concatenate([*every, *(np.full(2, k + 2.0 * j) for k, j in self._logarithmic())])

    def _logarithmic(self) -> list[tuple[int, int]]:
        """The exponents (k, j) of r^(k + 2j) cos kθ and r^(k + 2j) sin kθ that are multiplied by log r."""
        if self.dim != 2 or self.powers < 2:
            return []
        return [(k, j) for k in range(1, self.degree + 1) for j in range(self.powers + 1) if k + 2 * j <= self.degree]

    def _multiplied(self, power: int) -> int:
        """How many multipoles are multiplied by that power of r²."""
        return int(np.count_nonzero((power + 1) * self._degrees() <= self.degree))

    def _order(self) -> Int[np.ndarray, " m"]:
        """Functions of low degree first; they are made hole by hole."""
        return np.argsort(np.tile(self._hole_degrees(), len(self.radii)), kind="stable")

    def __call__(self, x: Point) -> FeatureValues:
        scale = jnp.max(jnp.asarray(self.upper) - jnp.asarray(self.lower))

        def at(center: Array, radius: Array) -> Array:
            offset = x - center
            square = offset @ offset
            if self.dim == 2:
                found = self._plane_values(offset, square, radius)
            else:
                y = radius * offset / square
                jets = solid_harmonics([{(): each} for each in y], self.degree, [()])
                found = radius / jnp.sqrt(square) * jnp.stack([each[()] for each in jets])
            factor = square / scale**2
            raised = [factor**j * found[: self._multiplied(j)] for j in range(self.powers + 1)]
            return jnp.concatenate([*raised, *self._plane_logarithms(offset / scale, factor, found[0])])

        return jax.vmap(at)(jnp.asarray(self.centers), jnp.asarray(self.radii)).reshape(-1)[self._order()]

    def _plane_logarithms(self, z: Array, square: Array, logarithm: Array) -> list[Array]:
        powers = [(jnp.ones(()), jnp.zeros(()))]
        for _ in range(self.degree):
            a, b = powers[-1]
            powers.append((a * z[0] - b * z[1], a * z[1] + b * z[0]))
        return [logarithm * square**j * jnp.stack(powers[k]) for k, j in self._logarithmic()]

    def _plane_values(self, offset: Array, square: Array, radius: Array) -> Array:
        real, imaginary = jnp.ones(()), jnp.zeros(())
        step = radius * offset / square
        found = [jnp.log(radius**2 / square) / 2]
        for _ in range(self.degree):
            real, imaginary = real * step[0] - imaginary * step[1], real * step[1] + imaginary * step[0]
            found += [real, imaginary]
        return jnp.stack(found)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        below = closure(tuple(which))
        found = np.empty((len(which), self.size, len(points)))
        count = len(self._hole_degrees())
        where = np.argsort(self._order())  # from functions hole by hole to those in the order of their degrees
        for k, (center, radius) in enumerate(zip(np.asarray(self.centers), np.asarray(self.radii), strict=True)):
            with np.errstate(divide="ignore", invalid="ignore"):  # at the center, which is outside of the domain
                jet = self._hole_jet(points - center, float(radius), which, below)
            for out, index in zip(found, which, strict=True):
                out[where[k * count : (k + 1) * count]] = jet[index]
        return np.swapaxes(found, 1, 2)

    def _hole_jet(
        self, offset: Points, radius: float, which: Sequence[Index], below: Sequence[Index]
    ) -> dict[Index, Float[np.ndarray, "k n"]]:
        """The derivatives `which` of the functions of one hole."""
        dim, zero = self.dim, (0,) * self.dim
        square: dict[Index, np.ndarray] = {zero: np.sum(offset**2, axis=1)}
        for axis in range(dim):
            square[unit(dim, axis)] = 2 * offset[:, axis]
            square[tuple(2 * k for k in unit(dim, axis))] = np.full(len(offset), 2.0)
        multipoles = (_plane_jet if dim == 2 else _space_jet)(offset, square, radius, self.degree, below)
        scale = float(np.max(np.asarray(self.upper) - np.asarray(self.lower)))
        factor = {index: each[None] / scale**2 for index, each in square.items()}
        raised = [multipoles]
        for j in range(1, self.powers + 1):
            count = self._multiplied(j)
            raised.append(product(factor, {index: each[:count] for index, each in raised[-1].items()}, below))
        exponents = self._logarithmic()
        if exponents:
            smooth = _harmonic_jet(offset / scale, 1 / scale, self.degree, below)
            logarithm, levels = {index: each[:1] for index, each in multipoles.items()}, [smooth]
            for _ in range(max(j for _, j in exponents)):
                levels.append(product(factor, levels[-1], below))
            rows = [(j, 2 * k + part) for k, j in exponents for part in (0, 1)]
            chosen = {index: np.stack([levels[j][index][row] for j, row in rows]) for index in below}
            raised.append(product(logarithm, chosen, below))
        return {index: np.concatenate([each[index] for each in raised]) for index in which}


def _plane_jet(
    offset: Points, square: Jet, radius: float, degree: int, which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, "k n"]]:
    """The derivatives of -log(r / a) and of the real and imaginary parts of w^-k, where w = (x₀ - i x₁) / a is the
    conjugate of z / a: with ∂w/∂x₀ = 1 / a and ∂w/∂x₁ = -i / a, each derivative of a function of w is one along w."""
    inverse = radius / (offset[:, 0] - 1j * offset[:, 1])
    powers = np.cumprod(np.repeat(inverse[None], degree + highest_order(which) + 1, axis=0), axis=0)
    orders, found = np.arange(1, degree + 1), {}
    for index in which:
        n, slope = sum(index), radius ** -sum(index) * (-1j) ** index[1]
        # The n-th derivative of w^-k is (-k) (-k - 1) … w^(-k-n), that of -log w is (-1)^n (n - 1)! w^-n.
        falling = np.prod(-orders[:, None] - np.arange(n), axis=1)
        each = slope * falling[:, None] * powers[n : n + degree]
        if n == 0:
            first = np.log(radius**2 / square[index]) / 2
        else:
            first = (slope * np.prod(-np.arange(1.0, n)) * -powers[n - 1]).real
        found[index] = np.concatenate([first[None], np.stack([each.real, each.imag], axis=1).reshape(2 * degree, -1)])
    return found


def _harmonic_jet(
    z: Points, slope: float, degree: int, which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, "k n"]]:
    """The derivatives of the real and imaginary parts of z^k for k = 0, 1, …, where z is a multiple of the point."""
    number, orders = z[:, 0] + 1j * z[:, 1], np.arange(degree + 1)
    found = {}
    for index in which:
        n = sum(index)
        falling = np.prod(orders[:, None] - np.arange(n), axis=1)  # 0 where the power is below n
        powers = number[None] ** np.maximum(orders - n, 0)[:, None]
        each = slope**n * 1j ** index[1] * falling[:, None] * powers
        found[index] = np.stack([each.real, each.imag], axis=1).reshape(2 * (degree + 1), -1)
    return found


def _space_jet(
    offset: Points, square: Jet, radius: float, degree: int, which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, "k n"]]:
    """The derivatives of the multipoles in space."""
    zero, order = (0, 0, 0), highest_order(which)
    inverse = composition(_power(square[zero], -1.0, order), square, which)
    strength = composition([radius * each for each in _power(square[zero], -0.5, order)], square, which)
    coordinates = [{zero: radius * offset[:, axis], unit(3, axis): np.full(len(offset), radius)} for axis in range(3)]
    harmonics = solid_harmonics([product(each, inverse, which) for each in coordinates], degree, which)
    nothing = np.zeros(len(offset))
    stacked = {index: np.stack([each.get(index, nothing) for each in harmonics]) for index in which}
    return product({index: each[None] for index, each in strength.items()}, stacked, which)


def _power(base: Vector, exponent: float, order: int) -> list[Vector]:
    """The derivatives of t ↦ t^exponent up to an order."""
    found, factor = [], 1.0
    for k in range(order + 1):
        found.append(factor * base ** (exponent - k))
        factor *= exponent - k
    return found


def solid_harmonics(y: Sequence[Jet], degree: int, which: Sequence[Index]) -> list[dict[Index, Any]]:
    """The derivatives of the harmonic polynomials of three functions y, ordered by their degree.

    They are the real and imaginary parts of (y₀ + i y₁)^m times polynomials A in y₂ and |y|², which follow from the
    recursion of Legendre's functions, (l - m + 1) A(l+1) = (2l + 1) y₂ A(l) - (l + m) |y|² A(l-1).
    """
    square = _sum([(1.0, product(each, each, which)) for each in y])
    zero = min(y[0])  # the multi-index of the function itself
    one = {zero: 0 * y[0][zero] + 1.0}
    real, imaginary = one, dict[Index, Any]()
    found: dict[tuple[int, int], list[dict[Index, Any]]] = {}
    for m in range(degree + 1):
        before, now = dict[Index, Any](), one
        for l in range(m, degree + 1):  # noqa: E741 (its name everywhere)
            found[l, m] = [product(now, part, which) for part in ((real, imaginary) if m else (real,))]
            up, down = product(y[2], now, which), product(square, before, which)
            before, now = now, _sum([((2 * l + 1) / (l - m + 1), up), (-(l + m) / (l - m + 1), down)])
        turned = [product(each, part, which) for part in (real, imaginary) for each in y[:2]]
        real, imaginary = _sum([(1.0, turned[0]), (-1.0, turned[3])]), _sum([(1.0, turned[1]), (1.0, turned[2])])
    return [each for l in range(degree + 1) for m in range(l + 1) for each in found[l, m]]  # noqa: E741


def _sum(terms: Sequence[tuple[float, Jet]]) -> dict[Index, Any]:
    """The jet of a linear combination."""
    total: dict[Index, Any] = {}
    for factor, jet in terms:
        for index, each in jet.items():
            total[index] = total[index] + factor * each if index in total else factor * each
    return total
