"""Functions that are singular at the edges and vertices of a box in space, as solutions of elliptic equations are.

Across an edge the solution of -Δu = f behaves as at the corner of a square, like the real and imaginary parts of
z² log z, z⁴ log z and so on, with factors that vary smoothly along the edge. At a vertex, where three edges meet, the
solution of -Δu = 1 with zero values on the three faces is known in closed form: it is the potential of charges ±1 in
the eight octants,

    V = Σ y z artanh(x / R) - ½ Σ x² arctan(y z / (x R)),      R = |x|,   -ΔV = π / 2,

each sum over the three cyclic permutations (W. D. MacMillan, "The theory of the potential", 1930, for a block).
"""

from collections.abc import Sequence
from itertools import product as combinations
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index, closure, highest_order, product, unit
from pdofm.domain import Domain
from pdofm.errors import FeaturesError
from pdofm.features.base import LARGEST_DEGREE, Jets, Unmapped, check_count, differentiated
from pdofm.features.box import Corner, box_of
from pdofm.features.corner import singular_jet
from pdofm.features.spectral import table

EXPONENTS = np.array([2.0, 4.0])
"""The exponents of the functions across an edge; a smooth basis resolves larger ones."""

PROBES, DEPTH = 33, 1e-6
"""Points along an edge that are examined, and how far inside of the box, relative to its sides."""

Edge = tuple[int, int, int]
"""The axis along an edge, and the sides, 0 or 1, at which the other two coordinates are."""

Vertex = tuple[int, int, int]
"""The sides, 0 or 1, at which the three coordinates are."""


class EdgeFunctions(Unmapped):
    """Singular functions at the edges and vertices of the box around a domain in space, to be joined with a smooth
    basis: ``Concatenate(Chebyshev(domain, 500), EdgeFunctions(domain))``.

    Args:
        domain: a domain in three dimensions of which edges of its bounding box are edges: a box, perhaps with holes.
        degree: the degree of the polynomials along an edge that the functions are multiplied by.
    """

    tied_to: ClassVar[str] = "the edges of its domain. Make them anew: EdgeFunctions(domain)"

    lower: Corner
    upper: Corner
    edges: tuple[Edge, ...] = eqx.field(static=True)
    vertices: tuple[Vertex, ...] = eqx.field(static=True)
    degree: int = eqx.field(static=True)

    def __init__(self, domain: Domain, degree: int = 3):
        self.lower, self.upper = box_of(domain)
        self.degree = check_count("degree", degree, least=0)
        self.edges, self.vertices = box_edges(domain), box_vertices(domain)
        if not self.edges:
            raise FeaturesError(
                f"{domain!r} has no edges that are edges of its bounding box in three dimensions: there is nothing "
                "singular to add. Use the smooth basis alone."
            )

    def __check_init__(self) -> None:
        check_count("degree", self.degree, least=0, most=LARGEST_DEGREE)
        edges, vertices = set(combinations((0, 1, 2), (0, 1), (0, 1))), set(combinations((0, 1), repeat=3))
        if self.dim != 3 or not (edges >= set(self.edges) and vertices >= set(self.vertices)):
            raise FeaturesError("EdgeFunctions belong to edges and vertices of a box in three dimensions.")

    def check_arrays(self) -> None:
        """There is no array but the corners of the box."""

    @property
    def size(self) -> int:
        return 2 * len(EXPONENTS) * (self.degree + 1) * len(self.edges) + 4 * len(self.vertices)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.zeros(self.size)

    def __call__(self, x: Point) -> FeatureValues:
        lower, upper = jnp.asarray(self.lower), jnp.asarray(self.upper)
        size, found = jnp.max(upper - lower), []
        columns = [jnp.ones_like(x), 2 * (x - lower) / (upper - lower) - 1]
        while len(columns) <= self.degree:
            columns.append(2 * columns[1] * columns[-1] - columns[-2])
        along = jnp.stack(columns)[: self.degree + 1]
        for axis, *sides in self.edges:
            a, b = (self._inward(x, i, side) / size for i, side in zip(_others(axis), sides, strict=True))
            log, angle = jnp.log(a**2 + b**2) / 2, jnp.arctan2(b, a)
            power = jnp.exp(EXPONENTS * log)
            cosine, sine = power * jnp.cos(EXPONENTS * angle), power * jnp.sin(EXPONENTS * angle)
            across = jnp.concatenate([log * cosine - angle * sine, log * sine + angle * cosine])
            found.append(jnp.outer(across, along[:, axis]).reshape(-1))
        for vertex in self.vertices:
            y = jnp.stack([self._inward(x, i, side) for i, side in enumerate(vertex)]) / size
            found.append(_octant(y) * jnp.concatenate([jnp.ones(1), y]))
        return jnp.concatenate(found)

    def _inward(self, x: Array, axis: int, side: int) -> Array:
        """The distance from a face of the box."""
        return self.upper[axis] - x[axis] if side else x[axis] - self.lower[axis]

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        if highest_order(which) > 2:  # the closed form of the function at a vertex ends here
            return differentiated(self, points, which)
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        size = float(np.max(upper - lower))
        found, start = np.empty((len(which), self.size, len(points))), 0
        slopes = 2 / (upper - lower)
        y = (points - (upper + lower) / 2) * slopes
        along = [table([y[:, i], slopes[i] * np.ones(len(y)), 0.0], self.degree) for i in range(3)]
        signs = np.array([1.0, -1.0])
        for axis, *sides in self.edges:
            others = _others(axis)
            scale = signs[sides] / size
            inner = (points[:, others] - np.where(sides, upper[others], lower[others])) * scale
            across = _across(inner, scale, tuple((index[others[0]], index[others[1]]) for index in which))
            rows = 2 * len(EXPONENTS) * (self.degree + 1)
            for out, index in zip(found, which, strict=True):
                values = across[index[others[0]], index[others[1]]]
                each = values[:, None] * along[axis][index[axis]][None]
                out[start : start + rows] = each.reshape(rows, -1)
            start += rows
        for vertex in self.vertices:
            scale = signs[list(vertex)] / size
            inner = (points - np.where(vertex, upper, lower)) * scale
            jet = _vertex_jet(inner, scale, which)
            for out, index in zip(found, which, strict=True):
                out[start : start + 4] = jet[index]
            start += 4
        return np.swapaxes(found, 1, 2)


def _others(axis: int) -> list[int]:
    return [i for i in range(3) if i != axis]


def box_edges(domain: Domain) -> tuple[Edge, ...]:
    """The edges of the bounding box near which there are points of a domain; none in other than three dimensions."""
    if domain.dim != 3 or domain.has_time:
        return ()
    found = []
    for axis, first, second in combinations(range(3), (0, 1), (0, 1)):
        at = np.empty((PROBES, 3))
        at[:, axis] = np.linspace(0, 1, PROBES + 2)[1:-1]
        at[:, _others(axis)] = np.where([first, second], 1 - DEPTH, DEPTH)
        if np.any(domain.contains(domain.lower + at * (domain.upper - domain.lower))):
            found.append((axis, first, second))
    return tuple(found)


def box_vertices(domain: Domain) -> tuple[Vertex, ...]:
    """The vertices of the bounding box that are vertices of a domain."""
    if domain.dim != 3 or domain.has_time:
        return ()
    sides = list(combinations((0, 1), (0, 1), (0, 1)))
    at = np.where(sides, 1 - DEPTH, DEPTH)
    inside = domain.contains(domain.lower + at * (domain.upper - domain.lower))
    return tuple(vertex for vertex, is_inside in zip(sides, inside, strict=True) if is_inside)


def _across(inner: Points, scale: Vector, which: Sequence[Index]) -> dict[Index, Float[np.ndarray, "k n"]]:
    """The derivatives of the functions across an edge, of coordinates that are multiplied by `scale`."""
    plain = singular_jet(inner, np.eye(2), EXPONENTS, tuple(dict.fromkeys(which)))
    return {index: each * scale[0] ** index[0] * scale[1] ** index[1] for index, each in plain.items()}


def _octant(y: Float[Array, " 3"]) -> Float[Array, ""]:
    """The function of a vertex."""
    distance = jnp.sqrt(y @ y)
    total = jnp.zeros(())
    for i in range(3):
        a, b, c = y[i], y[(i + 1) % 3], y[(i + 2) % 3]
        total += b * c * _artanh(a, distance, b, c) - a**2 / 2 * jnp.arctan2(b * c, a * distance)
    return total


def _artanh(a, distance, b, c):
    """artanh(a / R), by the distance from the line on which it is infinite."""
    xp = np if isinstance(a, np.ndarray) else jnp
    return xp.log((distance + a) / xp.sqrt(b**2 + c**2))


def _vertex_jet(inner: Points, scale: Vector, which: Sequence[Index]) -> dict[Index, Float[np.ndarray, "4 n"]]:
    """The derivatives up to order 2 of V and of its products with the coordinates. Those of V are ∂₀V = y₂ artanh(y₁/R)
    + y₁ artanh(y₂/R) - y₀ arctan(y₁ y₂ / y₀ R), ∂₀²V = -arctan(y₁ y₂ / y₀ R) and ∂₀∂₁V = artanh(y₂/R)."""
    y, distance, nothing = inner.T, np.linalg.norm(inner, axis=1), np.zeros(len(inner))
    turns = [np.arctan2(y[i - 2] * y[i - 1], y[i] * distance) for i in range(3)]
    with np.errstate(divide="ignore", invalid="ignore"):  # on an edge
        logs = [_artanh(y[i], distance, y[i - 2], y[i - 1]) for i in range(3)]
        parts = [y[i - 2] * y[i - 1] * logs[i] - y[i] ** 2 / 2 * turns[i] for i in range(3)]
        jet: dict[Index, np.ndarray] = {(0, 0, 0): np.sum(parts, axis=0)}
        for i in range(3):
            j, k = i - 2, i - 1
            e = unit(3, i)
            jet[e] = scale[i] * (y[k] * logs[j] + y[j] * logs[k] - y[i] * turns[i])
            jet[tuple(2 * n for n in e)] = -(scale[i] ** 2) * turns[i]
            mixed = tuple(int(n in (i, (i + 1) % 3)) for n in range(3))
            jet[mixed] = scale[i] * scale[(i + 1) % 3] * logs[(i + 2) % 3]
        factors: dict[Index, np.ndarray] = {(0, 0, 0): np.stack([nothing + 1, *y])}
        for i in range(3):
            factors[unit(3, i)] = np.stack([nothing, *((nothing + scale[i]) * (n == i) for n in range(3))])
        below = closure(tuple(which))
        return product({index: jet[index][None] for index in below}, factors, which)
