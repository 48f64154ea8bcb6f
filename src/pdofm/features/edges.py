"""Functions that are singular at the edges of a solid, and at the vertices of a box, as solutions of elliptic equations
are.

Across a straight edge with the inner angle ω, the solution of -Δu = f behaves as at a corner of the plane: like r^α
sin(αθ) and r^α cos(αθ), where α are the multiples of π/ω, or like the real and imaginary parts of z^j log z where α is
an integer j; with factors r², and others that vary smoothly along the edge. At a vertex of a box, where three edges
meet, the solution of -Δu = 1 with zero values on the three faces is known in closed form: it is the potential of
charges ±1 in the eight octants,

    V = Σ y z artanh(x / R) - ½ Σ x² arctan(y z / (x R)),      R = |x|,   -ΔV = π / 2,

each sum over the three cyclic permutations (W. D. MacMillan, "The theory of the potential", 1930, for a block).
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import product as combinations
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index, closure, highest_order, product, unit
from pdofm.domain import Box, Domain
from pdofm.domain.edges import straight_edges
from pdofm.errors import FeaturesError
from pdofm.features.base import LARGEST_DEGREE, Jets, Unmapped, check_count, differentiated
from pdofm.features.box import Corner, box_of
from pdofm.features.corner import power_functions, singular_jet
from pdofm.features.rotated import rotated
from pdofm.features.spectral import table

DEPTH = 1e-6
"""How far inside of the box its vertices are examined, relative to its sides."""

MOST_EXPONENT = 100.0
"""The largest exponent in a file; beyond it nothing is singular."""

Vertex = tuple[int, int, int]
"""The sides, 0 or 1, at which the three coordinates are."""


class EdgeFunctions(Unmapped):
    """Singular functions at the straight edges of a solid, and at those vertices that it shares with its bounding box,
    to be joined with a smooth basis: ``Concatenate(Chebyshev(domain, 500), EdgeFunctions(domain))``.

    Args:
        domain: a domain in three dimensions with plane faces that meet in edges, such as a box or a prism. Edges whose
            line enters the domain again, where the functions would be singular, too, are left out.
        degree: the degree of the polynomials along an edge that the functions are multiplied by.
        highest: the largest exponent across an edge, factors r² included; a smooth basis resolves functions with
            larger ones.
        near: a box: the functions are scaled to it, and belong to all edges of which a piece lies in it.
    """

    tied_to: ClassVar[str] = "the edges of its domain. Make them anew: EdgeFunctions(domain)"

    lower: Corner
    upper: Corner
    starts: Float[np.ndarray | Array, "E 3"]
    frames: Float[np.ndarray | Array, "E 3 3"]
    reach: Float[np.ndarray | Array, "E 2"]  # of the box along each edge
    angles: tuple[float, ...] = eqx.field(static=True)
    vertices: tuple[Vertex, ...] = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    highest: float = eqx.field(static=True)

    def __init__(self, domain: Domain, degree: int = 3, *, highest: float = 4.0, near: Box | None = None):
        self.lower, self.upper = box_of(domain if near is None else near)
        self.degree = check_count("degree", degree, least=0)
        self.highest = float(highest)
        edges = [
            edge
            for edge in straight_edges(domain)
            if (edge.ends_outside if near is None else edge.touches(near.lower, near.upper))
            and _exponents(edge.angle, self.highest)
        ]
        if not edges:
            where = "" if near is None else f" near {near!r}"
            raise FeaturesError(
                f"{domain!r} has no straight edges{where} in three dimensions whose line ends outside of it: there is "
                "nothing singular to add. Use the smooth basis alone."
            )
        edges.sort(key=lambda edge: round(edge.angle, 9))
        corners = np.stack(np.meshgrid(*np.stack([self.lower, self.upper], axis=1)), axis=-1).reshape(-1, 3)
        self.starts = np.array([edge.start for edge in edges])
        self.frames = np.array([edge.frame for edge in edges])
        along = np.array([(corners - edge.start) @ edge.frame[2] for edge in edges])
        self.reach = np.stack([along.min(axis=1), along.max(axis=1)], axis=1)
        self.angles = tuple(round(edge.angle, 12) for edge in edges)
        self.vertices = box_vertices(domain) if near is None else ()

    def __check_init__(self) -> None:
        check_count("degree", self.degree, least=0, most=LARGEST_DEGREE)
        vertices = set(combinations((0, 1), repeat=3))
        if self.dim != 3 or not vertices >= set(self.vertices):
            raise FeaturesError("EdgeFunctions belong to edges and vertices of a solid in three dimensions.")

    def check_arrays(self) -> None:
        shapes = [np.shape(each) for each in (self.starts, self.frames, self.reach)]
        count = len(self.angles)
        fit = shapes == [(count, 3), (count, 3, 3), (count, 2)]
        if (
            not fit
            or not all(0 < angle < 2 * math.pi for angle in self.angles)
            or not 0 < self.highest <= MOST_EXPONENT
        ):
            raise FeaturesError(
                "The arrays of EdgeFunctions do not fit together: an edge has a start, a frame, a reach and an angle."
            )

    @property
    def size(self) -> int:
        across = sum(2 * len(exponents) for angle in self.angles for exponents in _exponents(angle, self.highest))
        return across * (self.degree + 1) + 4 * len(self.vertices)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.zeros(self.size)

    @property
    def _scale(self) -> float:
        return float(np.max(np.asarray(self.upper) - np.asarray(self.lower)))

    def __call__(self, x: Point) -> FeatureValues:
        lower, upper = jnp.asarray(self.lower), jnp.asarray(self.upper)
        size, found = jnp.max(upper - lower), []
        arrays = [jnp.asarray(each) for each in (self.starts, self.frames, self.reach)]
        for angle in dict.fromkeys(self.angles):  # edges of one angle come one after the other
            first, count = self.angles.index(angle), self.angles.count(angle)
            one = jax.vmap(partial(self._across, x, size, _exponents(angle, self.highest)))
            found.append(one(*(each[first : first + count] for each in arrays)).reshape(-1))
        for vertex in self.vertices:
            y = jnp.stack([self._inward(x, i, side) for i, side in enumerate(vertex)]) / size
            found.append(_octant(y) * jnp.concatenate([jnp.ones(1), y]))
        return jnp.concatenate(found)

    def _across(
        self, x: Point, size: Array, exponents: Sequence[np.ndarray], start: Array, frame: Array, reach: Array
    ) -> Float[Array, " m"]:
        """The functions of an edge at a point."""
        a, b, c = frame @ (x - start)
        s = (2 * c - reach[0] - reach[1]) / (reach[1] - reach[0])
        columns = [jnp.ones_like(s), s]
        while len(columns) <= self.degree:
            columns.append(2 * s * columns[-1] - columns[-2])
        along, found = jnp.stack(columns)[: self.degree + 1], []
        square = (a**2 + b**2) / size**2
        for j, each in enumerate(exponents):
            across = power_functions(jnp.stack([a, b]) / size, each)
            found.append(jnp.outer(square**j * across, along).reshape(-1))
        return jnp.concatenate(found)

    def _edges(self) -> list[tuple[Float[np.ndarray, " 3"], Float[np.ndarray, "3 3"], Float[np.ndarray, " 2"], float]]:
        """The start, the frame, the coordinates along it, and the angle of each edge."""
        arrays = (np.asarray(each) for each in (self.starts, self.frames, self.reach))
        return list(zip(*arrays, self.angles, strict=True))

    def _inward(self, x: Array, axis: int, side: int) -> Array:
        """The distance from a face of the box."""
        return self.upper[axis] - x[axis] if side else x[axis] - self.lower[axis]

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        if self.vertices and highest_order(which) > 2:  # the closed form of the function at a vertex ends here
            return differentiated(self, points, which)
        size, found, first = self._scale, np.empty((len(which), self.size, len(points))), 0
        for start, frame, reach, angle in self._edges():
            turned, factors = rotated(frame, which)
            each = _edge_jet(
                (points - start) @ frame.T, size, reach, _exponents(angle, self.highest), self.degree, turned
            )
            rows = each.shape[1]
            found[:, first : first + rows] = np.tensordot(factors, each, 1)
            first += rows
        signs, lower, upper = np.array([1.0, -1.0]), np.asarray(self.lower), np.asarray(self.upper)
        for vertex in self.vertices:
            scale = signs[list(vertex)] / size
            inner = (points - np.where(vertex, upper, lower)) * scale
            jet = _vertex_jet(inner, scale, which)
            for out, index in zip(found, which, strict=True):
                out[first : first + 4] = jet[index]
            first += 4
        return np.swapaxes(found, 1, 2)


def _exponents(angle: float, highest: float) -> list[np.ndarray]:
    """The exponents of the functions across an edge of that angle, without the factor r², with r², with r⁴ and so
    on."""
    alpha = math.pi / angle
    found = alpha * np.arange(1, math.floor(highest / alpha + 1e-9) + 1)
    with_factors = [found[found + 2 * j <= highest + 1e-9] for j in range(math.ceil(highest / 2) + 1)]
    return [each for each in with_factors if len(each)]


def _edge_jet(
    y: Points,
    size: float,
    reach: Float[np.ndarray, " 2"],
    exponents: Sequence[np.ndarray],
    degree: int,
    which: Sequence[Index],
) -> Float[np.ndarray, "a m n"]:
    """The derivatives of the functions of an edge, in its own coordinates."""
    slope = 2 / float(reach[1] - reach[0])
    highest = max(index[2] for index in which)
    coordinate = [slope * (y[:, 2] - reach.mean()), slope * np.ones(len(y)), *[0.0] * max(highest - 1, 0)]
    along = table(coordinate[: highest + 1], degree)
    plane = tuple(dict.fromkeys(index[:2] for index in which))
    below, ones = closure(plane), np.ones(len(y))
    square: dict[Index, np.ndarray] = {(0, 0): np.sum(y[:, :2] ** 2, axis=1) / size**2}
    square |= {(1, 0): 2 * y[:, 0] / size**2, (0, 1): 2 * y[:, 1] / size**2}
    square |= {(2, 0): 2 / size**2 * ones, (0, 2): 2 / size**2 * ones}
    factor: dict[Index, np.ndarray] = {(0, 0): ones}
    groups = []
    for each in exponents:
        singular = singular_jet(y[:, :2] / size, np.eye(2) / size, each, below)
        groups.append(product({i: f[None] for i, f in factor.items()}, singular, plane))
        factor = product(square, factor, below)
    across = {index: np.concatenate([each[index] for each in groups]) for index in plane}
    each = [across[index[:2]][:, None] * along[index[2]][None] for index in which]
    return np.stack([one.reshape(-1, len(y)) for one in each])


def box_vertices(domain: Domain) -> tuple[Vertex, ...]:
    """The vertices of the bounding box that are vertices of a domain."""
    if domain.dim != 3 or domain.has_time:
        return ()
    sides = list(combinations((0, 1), (0, 1), (0, 1)))
    lower, upper = domain.lower, domain.upper
    found = []
    for vertex in sides:
        steps = DEPTH * (upper - lower) * np.where(vertex, -1.0, 1.0)
        # All points of a small cube inside of the vertex.
        cube = np.stack(np.meshgrid(*[np.linspace(0.2, 1, 3)] * 3), axis=-1).reshape(-1, 3)
        if np.all(domain.contains(np.where(vertex, upper, lower) + steps * cube)):
            found.append(vertex)
    return tuple(found)


def _octant(y: Float[Array, " 3"]) -> Float[Array, ""]:
    """The function of a vertex."""
    square = y @ y
    distance = jnp.sqrt(jnp.where(square == 0, 1.0, square))
    total = jnp.zeros(())
    for i in range(3):
        a, b, c = y[i], y[(i + 1) % 3], y[(i + 2) % 3]
        on_edge = b**2 + c**2 == 0
        off = jnp.where(on_edge, 1.0, b), jnp.where(on_edge, 1.0, c)
        # On the edge, where the logarithm is infinite, and its product with b c zero.
        total += b * c * _artanh(a, distance, *off)
        total -= a**2 / 2 * jnp.arctan2(b * c, jnp.where(square == 0, 1.0, a * distance))
    return total


def _artanh(a, distance, b, c):
    """artanh(a / R), by the distance from the line on which it is infinite."""
    xp = np if isinstance(a, np.ndarray) else jnp
    return xp.log((distance + a) / xp.sqrt(b**2 + c**2))


def _times(factor: Vector, logarithm: Vector) -> Vector:
    """A product whose limit is zero where the factor is, although the logarithm is infinite there."""
    return np.where(factor == 0, 0.0, factor * logarithm)


def _vertex_jet(inner: Points, scale: Vector, which: Sequence[Index]) -> dict[Index, Float[np.ndarray, "4 n"]]:
    """The derivatives up to order 2 of V and of its products with the coordinates. Those of V are ∂₀V = y₂ artanh(y₁/R)
    + y₁ artanh(y₂/R) - y₀ arctan(y₁ y₂ / y₀ R), ∂₀²V = -arctan(y₁ y₂ / y₀ R) and ∂₀∂₁V = artanh(y₂/R)."""
    y, distance, nothing = inner.T, np.linalg.norm(inner, axis=1), np.zeros(len(inner))
    turns = [np.arctan2(y[i - 2] * y[i - 1], y[i] * distance) for i in range(3)]
    with np.errstate(divide="ignore", invalid="ignore"):  # on an edge
        logs = [np.asarray(_artanh(y[i], distance, y[i - 2], y[i - 1])) for i in range(3)]
        parts = [_times(y[i - 2] * y[i - 1], logs[i]) - y[i] ** 2 / 2 * turns[i] for i in range(3)]
        jet: dict[Index, np.ndarray] = {(0, 0, 0): np.sum(parts, axis=0)}
        for i in range(3):
            j, k = i - 2, i - 1
            e = unit(3, i)
            jet[e] = scale[i] * (_times(y[k], logs[j]) + _times(y[j], logs[k]) - y[i] * turns[i])
            jet[tuple(2 * n for n in e)] = -(scale[i] ** 2) * turns[i]
            mixed = tuple(int(n in (i, (i + 1) % 3)) for n in range(3))
            jet[mixed] = scale[i] * scale[(i + 1) % 3] * logs[(i + 2) % 3]
        factors: dict[Index, np.ndarray] = {(0, 0, 0): np.stack([nothing + 1, *y])}
        for i in range(3):
            factors[unit(3, i)] = np.stack([nothing, *((nothing + scale[i]) * (n == i) for n in range(3))])
        below = closure(tuple(which))
        return product({index: jet[index][None] for index in below}, factors, which)
