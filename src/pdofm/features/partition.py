"""Local features under the windows of a partition of unity, the random feature method's way to resolve detail.

    u(x) = Σₙ ψₙ(x) Σⱼ cₙⱼ φₙⱼ((x - xₙ) / rₙ),      Σₙ ψₙ = 1.

(Chen et al., "Bridging traditional and machine learning-based algorithms for solving PDEs: the random feature method",
2022.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pdofm._types import FeatureValues, Key, Point, Points, Vector
from pdofm.domain import Box, Domain, Part, Piece, trim
from pdofm.errors import FeaturesError, unknown_name
from pdofm.features.base import Corner, Features, Unmapped, box_of
from pdofm.features.trigonometry import sin
from pdofm.operators import dt, partial
from pdofm.sampling import generator, unit_points
from pdofm.terms import Term, joined

Inner = Callable[[Box, int], Features]
"""Builds the features of one subdomain from its box and a seed: ``lambda box, key: RandomFeatures(box, 100,
key=key)``."""

OVERLAP = 1.25
"""Window b reaches to 5/4 of the radius of its subdomain."""

INTERFACE_WEIGHT = 10.0

SIMILAR = 4.0
"""Up to this ratio of the mean volume of the subdomains to the smallest, even points are worth more than as many in
each of them."""


def window_b(y: Array) -> Array:
    """1 for |y| ≤ 3/4, 0 for |y| ≥ 5/4, (1 - sin 2π|y|) / 2 between: once differentiable, the second derivative
    jumps."""
    size = jnp.abs(y)
    falling = (1 - sin(2 * jnp.pi * jnp.clip(size, 0.75, 1.25))) / 2
    return jnp.where(size <= 0.75, 1.0, jnp.where(size >= 1.25, 0.0, falling))


def smooth_window(y: Array) -> Array:
    """The same between the same limits, but three times differentiable."""
    t = jnp.clip(2 * jnp.abs(y) - 1.5, 0.0, 1.0)
    return 1 - t**4 * (35 - 84 * t + 70 * t**2 - 20 * t**3)


WINDOWS = {"a": jnp.ones_like, "b": window_b, "smooth": smooth_window}


class PartitionOfUnity(Unmapped):
    """Local features on overlapping subdomains.

    Args:
        inner: builds the features of one subdomain from its box and a seed; all must have the same family and size.
        domain: where to solve. Subdomains without points of it are dropped, with their features.
        subdomains: number of equal subdomains per axis; or give `centers` (P, d) and `radii` (P,) or (P, d).
        window: "b", overlapping windows, divided by their sum; "smooth", the same for equations of higher order; or
            "a", indicators of a grid of subdomains, with rows that make value and normal derivative continuous across
            the interfaces (for equations up to second order).
        normalise: False leaves windows undivided, with outer ones that do not fall off at the edge of the grid.
        key: seed.

    Only the windows that reach a point are evaluated there (at most 2^d of a grid). Where subdomains differ much,
    each asks for as many collocation points as the others, however small it is.
    """

    local: Features  # all subdomains stacked: a leading axis on every array
    centers: Float[Array | np.ndarray, "P d"]
    radii: Float[Array | np.ndarray, "P d"]
    lower: Corner
    upper: Corner
    table: Int[Array | np.ndarray, " cells"] | None  # number of the subdomain in each cell, -1 where dropped
    grid: tuple[int, ...] | None = eqx.field(static=True)
    window: str = eqx.field(static=True)
    normalise: bool = eqx.field(static=True)
    reach: int = eqx.field(static=True)

    def __init__(
        self,
        inner: Inner,
        domain: Domain,
        subdomains: Sequence[int] | int | None = None,
        *,
        centers: Any = None,
        radii: Any = None,
        window: str = "b",
        normalise: bool = True,
        key: Key = 0,
    ):
        if window not in WINDOWS:
            raise unknown_name("window", window, tuple(WINDOWS))
        self.lower, self.upper = box_of(domain)
        self.window, self.normalise = window, normalise
        if (subdomains is None) == (centers is None):
            raise FeaturesError("Give either a grid of subdomains, as in subdomains=(2, 2), or centers and radii.")
        if centers is None:
            self.grid = _grid(subdomains, self.dim)
            self.centers, self.radii = _cells(self.lower, self.upper, self.grid)
        else:
            self.grid = None
            self.centers, self.radii = _given(centers, radii, self.dim)
            if window == "a" or not normalise:
                raise FeaturesError("Window 'a' and normalise=False need a grid: give subdomains= instead of centers.")
        used = self._used(domain)
        if not normalise and not used.all():
            raise FeaturesError(
                f"{(~used).sum()} of {len(used)} subdomains lie outside the domain; the windows next to them would not "
                "sum to 1. Use normalise=True."
            )
        self.table = None
        if self.grid is not None:
            self.table = np.where(used, np.cumsum(used) - 1, -1)
        self.centers, self.radii = self.centers[used], self.radii[used]
        self.reach = 2**self.dim if self.grid is not None else _most_overlaps(self.centers, OVERLAP * self.radii)
        seeds = generator(key).integers(2**31, size=len(self.centers))
        built = [
            inner(Box(center - radius, center + radius), int(seed))
            for center, radius, seed in zip(self.centers, self.radii, seeds, strict=True)
        ]
        self.local = _stacked(built)
        self._check(domain)

    @property
    def count(self) -> int:
        """Number of subdomains."""
        return self.centers.shape[0]

    @property
    def _one(self) -> Features:
        return jax.tree.map(lambda leaf: leaf[0], self.local)

    @property
    def size(self) -> int:
        return self.count * self._one.size

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.repeat(self._one.ranks, self.count)

    @property
    def concentration(self) -> float:
        volumes = np.prod(np.asarray(self.radii), axis=1)
        found = float(volumes.mean() / volumes.min())
        return found if found > SIMILAR else 1.0

    def density(self, points: Points) -> Vector:
        """The same number of points in each subdomain, and a few where there is none."""
        found = np.full(len(points), 0.05 / float(np.prod(np.asarray(self.radii), axis=1).mean()))
        for center, radius in zip(np.asarray(self.centers), np.asarray(self.radii), strict=True):
            # A point on the boundary of the domain must not be lost to rounding.
            found += (np.abs(points - center) <= (1 + 1e-9) * radius).all(axis=1) / np.prod(radius)
        return found

    def rescaled(self, factor: float) -> "PartitionOfUnity":
        return eqx.tree_at(lambda f: f.local, self, jax.vmap(lambda local: local.rescaled(factor))(self.local))

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        """Continuity of value and normal derivative across the interfaces of window a."""
        if self.window != "a":
            return ()
        terms = []
        for axis in range(self.dim):
            pieces = tuple(piece for plane in self._planes(axis) for piece in trim(plane, _inside(domain)))
            if pieces:
                lhs = _Continuity(
                    axis, 8 * float(np.finfo(float).eps) * float(np.max(np.abs([self.lower, self.upper])))
                )
                on = Part(pieces, domain.has_time)
                terms.append(Term(f"interface-x{axis}", lhs, 0.0, on, INTERFACE_WEIGHT))
        return tuple(terms)

    def __call__(self, x: Point) -> FeatureValues:
        which, weights = self.windows(x)
        chosen = jax.tree.map(lambda leaf: jnp.asarray(leaf)[which], self.local)
        local = weights[:, None] * jax.vmap(lambda features: features(x))(chosen)
        # A product with indicators puts them in their places (XLA does not vectorise a scatter). Features of all
        # subdomains alternate, so that leading ones span a coarser space in each of them.
        places = (which[:, None] == jnp.arange(self.count, dtype=which.dtype)[None, :]).astype(local.dtype)
        return (local.T @ places).reshape(-1)

    def windows(self, x: Point) -> tuple[Int[Array, " k"], Float[Array, " k"]]:
        """The subdomains whose windows may reach a point, and the values of their windows there, which sum to 1."""
        if self.grid is None:
            weights = jnp.prod(WINDOWS[self.window]((x[None, :] - self.centers) / self.radii), axis=1)
            which = jax.lax.top_k(jax.lax.stop_gradient(weights), self.reach)[1]
            weights = weights[which]
        else:
            which, weights = self._on_grid(x)
        if self.normalise and self.window != "a":
            weights = weights / jnp.sum(weights)
        return which, weights

    def _on_grid(self, x: Point) -> tuple[Array, Array]:
        cells = jnp.asarray(np.array(self.grid), dtype=x.dtype)
        at = (x - self.lower) / (self.upper - self.lower) * cells
        home = jnp.clip(jnp.floor(jax.lax.stop_gradient(at)), 0, cells - 1)
        near = jnp.where(jax.lax.stop_gradient(at) - home < 0.5, home - 1, home + 1)
        found, weights = [], []
        for choice in product((0, 1), repeat=self.dim):
            cell = jnp.where(np.array(choice, dtype=bool), near, home)
            valid = jnp.all((cell >= 0) & (cell < cells))
            flat = jnp.asarray(np.array(_strides(self.grid)), dtype=jnp.int64) @ cell.astype(jnp.int64)
            number = jnp.asarray(self.table)[jnp.where(valid, flat, 0)]
            kept = valid & (number >= 0)
            local = 2 * (at - cell) - 1
            each = WINDOWS[self.window](local)
            if not self.normalise:  # the outer halves of outer windows do not fall off
                outer = ((cell == 0) & (local < 0)) | ((cell == cells - 1) & (local > 0))
                each = jnp.where(outer, 1.0, each)
            weight = jnp.where(kept, jnp.prod(each), 0.0)
            if self.window == "a":  # the cell itself; at the edge of a cell that was dropped, its neighbour
                weight = jnp.where(sum(weights, jnp.zeros_like(weight)) > 0, 0.0, weight)
            found.append(jnp.where(kept, number, 0))
            weights.append(weight)
        return jnp.stack(found), jnp.stack(weights)

    def _used(self, domain: Domain) -> np.ndarray:
        """Which subdomains contain points of the domain: of many all over it, or of some in the subdomain itself."""
        points = domain.sample(max(4096, 64 * len(self.centers)), key=0)
        unit = 2 * unit_points(64, self.dim, "sobol", np.random.default_rng(0)) - 1
        return np.array(
            [
                bool((np.abs(points - center) <= radius).all(axis=1).any())
                or bool(domain.contains(center + radius * unit).any())
                for center, radius in zip(self.centers, self.radii, strict=True)
            ]
        )

    def _check(self, domain: Domain) -> None:
        if self._one.imposes == "value":
            raise FeaturesError("Local features cannot impose conditions: wrap the partition in HardDirichlet instead.")
        if self.grid is None:
            points = domain.sample(4096)
            near = np.abs(points[:, None] - self.centers[None]) < OVERLAP * self.radii[None]
            bare = np.count_nonzero(near.all(axis=2), axis=1) == 0
            if bare.any():
                raise FeaturesError(
                    f"The windows do not cover the domain, for instance not {points[bare][0].tolist()}. "
                    "Use larger radii or more centers."
                )

    @property
    def working_bytes(self) -> int:
        return self.reach * sum(leaf.nbytes for leaf in jax.tree.leaves(self.local)) // self.count

    def _planes(self, axis: int) -> list[Piece]:
        """The planes between the cells of the grid across an axis."""
        grid = self.grid or ()
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        sides = np.delete(upper - lower, axis)

        def plane(i: int) -> Piece:
            height = lower[axis] + (upper[axis] - lower[axis]) * i / grid[axis]
            normal = np.eye(self.dim)[axis]

            def chart(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                points = np.insert(np.delete(lower, axis) + sides * u, axis, height, axis=1)
                return points, np.broadcast_to(normal, points.shape).copy()

            return Piece(f"interface x{axis} {i}", float(np.prod(sides)), (True,) * (self.dim - 1), chart)

        return [plane(i) for i in range(1, grid[axis])]


@dataclass(frozen=True)
class _Continuity:
    """Jumps of value and of the derivative across a plane.

    Each side is reached by a shift of a few rounding units, which decides the subdomain and moves nothing else.
    """

    is_linear: ClassVar[bool] = True

    axis: int
    shift: float

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        in_time = self.axis == args[0].size

        def components(*a: Array) -> Array:
            return joined(u(*a))

        def moved(by: float) -> tuple[Array, ...]:
            if in_time:
                return args[0], args[1] + by
            return (args[0] + by * jnp.eye(args[0].size, dtype=args[0].dtype)[self.axis], *args[1:])

        above, below = moved(self.shift), moved(-self.shift)
        slope = dt(components) if in_time else partial(components, self.axis)
        return jnp.concatenate([components(*above) - components(*below), slope(*above) - slope(*below)])


def _inside(domain: Domain) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda points, normals: domain.contains(points)


def _grid(subdomains: Sequence[int] | int | None, dim: int) -> tuple[int, ...]:
    counts = (subdomains,) * dim if isinstance(subdomains, int) else tuple(subdomains or ())
    if len(counts) != dim or any(not isinstance(n, int) or n < 1 for n in counts):
        raise FeaturesError(f"subdomains must be {dim} positive integers, one per axis; got {subdomains!r}.")
    return counts


def _cells(lower: np.ndarray, upper: np.ndarray, grid: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    radius = (upper - lower) / np.array(grid) / 2
    steps = np.array(list(product(*(range(n) for n in grid))), dtype=np.float64)
    return lower + (2 * steps + 1) * radius, np.broadcast_to(radius, steps.shape).copy()


def _strides(grid: tuple[int, ...] | None) -> list[int]:
    return [int(np.prod((grid or ())[axis + 1 :])) for axis in range(len(grid or ()))]


def _given(centers: Any, radii: Any, dim: int) -> tuple[np.ndarray, np.ndarray]:
    centers = np.asarray(centers, dtype=np.float64)
    if centers.ndim != 2 or centers.shape[1] != dim or radii is None:
        raise FeaturesError(f"centers must have shape (P, {dim}) and come with radii; got shape {centers.shape}.")
    radii = np.asarray(radii, dtype=np.float64)
    radii = radii[:, None] if radii.ndim == 1 else radii
    if radii.ndim > 2 or (radii.ndim == 2 and radii.shape not in ((len(centers), 1), centers.shape)):
        raise FeaturesError(f"radii must have shape (P,) or (P, {dim}) for {len(centers)} centers; got {radii.shape}.")
    radii = np.broadcast_to(radii, centers.shape).copy()
    if not (radii > 0).all():
        raise FeaturesError("radii must be positive.")
    return centers, radii


def _most_overlaps(centers: np.ndarray, halves: np.ndarray) -> int:
    """How many windows reach one point at most, or an upper bound of it."""
    lower, upper = centers - halves, centers + halves
    meet = ((lower[:, None] < upper[None]) & (lower[None] < upper[:, None])).all(axis=2)
    most = 0
    for mine in np.asarray(meet):
        # Where most of them meet, one begins along each axis: look there, among its neighbours.
        low, high = lower[mine], upper[mine]
        if low.size ** low.shape[1] > 2**22:
            most = max(most, len(low))
            continue
        sides = (np.unique(low[:, axis]) for axis in range(low.shape[1]))
        corners = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 1, low.shape[1])
        over = ((low[None] <= corners) & (corners < high[None])).all(axis=2)
        most = max(most, int(np.count_nonzero(over, axis=1).max()))
    return most


def _stacked(built: list[Features]) -> Features:
    """Features of all subdomains as one, with a leading axis on every array."""
    structures = {jax.tree.structure(features) for features in built}
    shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(features)) for features in built}
    if len(structures) > 1 or len(shapes) > 1:
        raise FeaturesError("inner must build features of one family and one size for all subdomains.")
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *built)
