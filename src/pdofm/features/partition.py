"""Local features under the windows of a partition of unity, the random feature method's way to resolve detail.

    u(x) = Σₙ ψₙ(x) Σⱼ cₙⱼ φₙⱼ((x - xₙ) / rₙ),      Σₙ ψₙ = 1.

(Chen et al., "Bridging traditional and machine learning-based algorithms for solving PDEs: the random feature method",
2022.)
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product as choices
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Float, Int

from pdofm._types import FeatureValues, Key, Mask, Point, Points, Vector
from pdofm.calculus.jets import Index, closure, product
from pdofm.calculus.terms import Term
from pdofm.domain import Box, Domain
from pdofm.errors import FeaturesError, unknown_name
from pdofm.features.base import Features, Jets
from pdofm.features.box import Corner, box_of
from pdofm.features.interfaces import interface_terms
from pdofm.features.windows import (
    OVERLAP,
    WINDOWS,
    Reached,
    equal_cells,
    given_subdomains,
    grid_of,
    most_overlaps,
    reached_by_centers,
    reached_on_grid,
    strides,
    window_jets,
)
from pdofm.features.wrapper import Wrapper
from pdofm.numerics.sampling import generator, unit_points

Inner = Callable[[Box, int], Features]
"""Builds the features of one subdomain from its box and a seed: ``lambda box, key: RandomFeatures(box, 100,
key=key)``."""

SIMILAR_VOLUMES = 4.0
"""The largest ratio of the mean volume of the subdomains to the smallest at which collocation points stay uniform.
Evenly spread points are then more accurate than equally many points in each subdomain."""

ELSEWHERE = 0.05
"""The density of collocation points where there is no subdomain, relative to that in a subdomain of mean volume."""

COVER_POINTS = 4096
"""Points of the domain by which the constructor judges which subdomains meet it, and whether they cover it."""


class PartitionOfUnity(Wrapper):
    """Local features on overlapping subdomains.

    Args:
        inner: builds the features of one subdomain from its box and a seed; all must have the same family and size.
        domain: where to solve. Subdomains that contain no points of it are dropped, with their features.
        subdomains: number of equal subdomains per axis; or give `centers` (P, d) and `radii` (P,) or (P, d).
        window: "b", overlapping windows, divided by their sum; "smooth", the same for equations of higher order; or
            "a", indicators of a grid of subdomains, with rows that make the value and the normal derivative continuous
            across the interfaces (for equations up to second order).
        normalise: if False, windows are not divided by their sum; those at the edge of the grid then stay 1 up to it.
        key: seed.

    Only the windows that reach a point are evaluated there (at most 2^d on a grid). If the subdomains differ much in
    volume, each of them asks for the same number of collocation points.
    """

    tied_to: ClassVar[str] = "its subdomains. Make the partition anew on the other domain"

    local: Features  # of all subdomains, stacked: every array has a leading axis
    centers: Float[Array | np.ndarray, "P d"]
    radii: Float[Array | np.ndarray, "P d"]
    lower: Corner
    upper: Corner
    table: Int[Array | np.ndarray, " cells"] | None  # the number of the subdomain in each cell; -1 where it was dropped
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
            self.grid = grid_of(subdomains, self.dim)
            self.centers, self.radii = equal_cells(self.lower, self.upper, self.grid)
        else:
            self.grid = None
            self.centers, self.radii = given_subdomains(centers, radii, self.dim)
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
        self.reach = 2**self.dim if self.grid is not None else most_overlaps(self.centers, OVERLAP * self.radii)
        seeds = generator(key).integers(2**31, size=len(self.centers))
        built = [
            inner(Box(center - radius, center + radius), int(seed))
            for center, radius, seed in zip(self.centers, self.radii, seeds, strict=True)
        ]
        self.local = _stacked(built)
        self._check(domain)

    def check_arrays(self) -> None:
        count, table = len(self.centers), self.table
        fits = self.centers.shape == self.radii.shape == (count, self.dim) and count > 0 and self.window in WINDOWS
        if table is not None:
            cells = np.asarray(table)
            has_grid = self.grid is not None and cells.shape == (int(np.prod(self.grid)),)
            fits = fits and has_grid and bool(np.all((cells >= -1) & (cells < count)))
        if not (fits and np.all(np.asarray(self.radii) > 0)):
            raise FeaturesError("The arrays of PartitionOfUnity do not fit together.")
        super().check_arrays()

    @property
    def count(self) -> int:
        """Number of subdomains."""
        return self.centers.shape[0]

    @property
    def _one(self) -> Features:
        """The features of the first subdomain."""
        # NumPy, because a slice of a JAX array would be compiled.
        return jax.tree.map(lambda leaf: (leaf if isinstance(leaf, Tracer) else np.asarray(leaf))[0], self.local)

    @property
    def size(self) -> int:
        return self.count * self._one.size

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.repeat(self._one.ranks, self.count)

    @property
    def wrapped(self) -> tuple[Features, ...]:
        return (self.local,)

    @property
    def imposes(self) -> str | None:
        """Nothing: a window does not keep what its features satisfy on the boundary of their subdomain."""
        return None

    @property
    def concentration(self) -> float:
        volumes = np.prod(np.asarray(self.radii), axis=1)
        found = float(volumes.mean() / volumes.min())
        return found if found > SIMILAR_VOLUMES else 1.0

    def density(self, points: Points) -> Vector:
        """The same number of points in each subdomain, and a few where there is no subdomain."""
        found = np.full(len(points), ELSEWHERE / float(np.prod(np.asarray(self.radii), axis=1).mean()))
        for center, radius in zip(np.asarray(self.centers), np.asarray(self.radii), strict=True):
            # The margin keeps points on the boundary of the domain inside, in spite of rounding.
            found += (np.abs(points - center) <= (1 + 1e-9) * radius).all(axis=1) / np.prod(radius)
        return found

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        """Continuity of the value and of the normal derivative across the interfaces of window "a"."""
        if self.window != "a" or self.grid is None:
            return ()
        return interface_terms(np.asarray(self.lower), np.asarray(self.upper), self.grid, domain)

    def __call__(self, x: Point) -> FeatureValues:
        which, weights = self.windows(x)
        chosen = jax.tree.map(lambda leaf: jnp.asarray(leaf)[which], self.local)
        local = weights[:, None] * jax.vmap(lambda features: features(x))(chosen)
        # A product with indicators puts the values in their places, because XLA does not vectorise a scatter. The
        # features of the subdomains alternate, so that leading ones span a coarser space in each subdomain.
        places = (which[:, None] == jnp.arange(self.count, dtype=which.dtype)[None, :]).astype(local.dtype)
        return (local.T @ places).reshape(-1)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        found = np.zeros((len(which), self._one.size, self.count, len(points)))
        reached = self._reached(points)
        for k, at, local, below, window in self._pieces(points, reached, which):
            inner = np.swapaxes(local.jets(points[at], below), 1, 2)
            jet = product(window, dict(zip(below, inner, strict=True)), which)
            for out, index in zip(found, which, strict=True):
                out[:, k, at] = jet[index]
        found[..., self._undefined(points, reached)] = np.nan
        return np.swapaxes(found.reshape(len(which), self.size, len(points)), 1, 2)

    def expand(
        self, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        found = np.zeros((len(which), len(points), coefficients.shape[1]))
        reached = self._reached(points)
        by_subdomain = coefficients.reshape(-1, self.count, coefficients.shape[1])
        for k, at, local, below, window in self._pieces(points, reached, which):
            inner = local.expand(points[at], below, by_subdomain[:, k])
            columns = {index: each[:, None] for index, each in window.items()}
            jet = product(columns, dict(zip(below, inner, strict=True)), which)
            for out, index in zip(found, which, strict=True):
                out[at] += jet[index]
        found[:, self._undefined(points, reached)] = np.nan
        return found

    def _pieces(
        self, points: Points, reached: Reached, which: Sequence[Index]
    ) -> Iterator[tuple[int, Int[np.ndarray, " p"], Features, tuple[Index, ...], dict[Index, Vector]]]:
        """For each subdomain that has points: its number, the numbers of its points, its features, the derivatives of
        these that are needed, and the derivatives of its window."""
        if self.window == "a":
            below, windows = tuple(which), {(0,) * self.dim: np.ones(len(reached.points))}
        else:
            below, count = closure(tuple(which)), len(points) if self.normalise else None
            windows = window_jets(self.window, reached, np.asarray(self.radii), count, below)
        leaves, structure = jax.tree.flatten(self.local)
        leaves = [np.asarray(leaf) for leaf in leaves]
        for k in range(self.count):
            here = reached.of(k)
            if here.start < here.stop:
                local = jax.tree.unflatten(structure, [leaf[k] for leaf in leaves])
                yield k, reached.points[here], local, below, {index: each[here] for index, each in windows.items()}

    def _reached(self, points: Points) -> Reached:
        """Which windows reach which points."""
        if self.grid is None:
            return reached_by_centers(points, np.asarray(self.centers), np.asarray(self.radii))
        return reached_on_grid(
            points,
            (np.asarray(self.lower), np.asarray(self.upper)),
            self.grid,
            np.asarray(self.table),
            indicators=self.window == "a",
            plain=not self.normalise,
        )

    def _undefined(self, points: Points, reached: Reached) -> Mask:
        """Which points no window reaches, so that there is no sum to divide by."""
        if self.window == "a" or not self.normalise:
            return np.zeros(len(points), dtype=bool)
        return np.bincount(reached.points, minlength=len(points)) == 0

    def windows(self, x: Point) -> tuple[Int[Array, " k"], Float[Array, " k"]]:
        """The subdomains whose windows may reach a point, and the values of these windows there, which sum to 1."""
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
        """The same for a grid, without normalisation."""
        cells = jnp.asarray(np.array(self.grid), dtype=x.dtype)
        at = (x - self.lower) / (self.upper - self.lower) * cells
        home = jnp.clip(jnp.floor(jax.lax.stop_gradient(at)), 0, cells - 1)
        near = jnp.where(jax.lax.stop_gradient(at) - home < 0.5, home - 1, home + 1)
        found, weights = [], []
        for choice in choices((0, 1), repeat=self.dim):
            cell = jnp.where(np.array(choice, dtype=bool), near, home)
            valid = jnp.all((cell >= 0) & (cell < cells))
            flat = jnp.asarray(np.array(strides(self.grid)), dtype=jnp.int64) @ cell.astype(jnp.int64)
            number = jnp.asarray(self.table)[jnp.where(valid, flat, 0)]
            kept = valid & (number >= 0)
            local = 2 * (at - cell) - 1
            each = WINDOWS[self.window](local)
            if not self.normalise:  # windows at the edge of the grid stay 1 up to it
                outer = ((cell == 0) & (local < 0)) | ((cell == cells - 1) & (local > 0))
                each = jnp.where(outer, 1.0, each)
            weight = jnp.where(kept, jnp.prod(each), 0.0)
            if self.window == "a":  # the cell of the point; if that was dropped, its neighbour
                weight = jnp.where(sum(weights, jnp.zeros_like(weight)) > 0, 0.0, weight)
            found.append(jnp.where(kept, number, 0))
            weights.append(weight)
        return jnp.stack(found), jnp.stack(weights)

    def _used(self, domain: Domain) -> np.ndarray:
        """Which subdomains contain points of the domain, among points of the whole domain and of the subdomain."""
        points = domain.sample(max(COVER_POINTS, 64 * len(self.centers)), key=0)
        unit = 2 * unit_points(64, self.dim, "sobol", np.random.default_rng(0)) - 1
        return np.array(
            [
                bool((np.abs(points - center) <= radius).all(axis=1).any())
                or bool(domain.contains(center + radius * unit).any())
                for center, radius in zip(self.centers, self.radii, strict=True)
            ]
        )

    def _check(self, domain: Domain) -> None:
        """Raise if the local features impose conditions, or if the windows do not cover the domain."""
        if self._one.imposes == "value":
            raise FeaturesError("Local features cannot impose conditions. Wrap the partition in HardDirichlet instead.")
        if self.grid is None:
            points = domain.sample(COVER_POINTS)
            near = np.abs(points[:, None] - self.centers[None]) < OVERLAP * self.radii[None]
            bare = np.count_nonzero(near.all(axis=2), axis=1) == 0
            if bare.any():
                raise FeaturesError(
                    f"The windows do not cover the domain, for instance not the point {points[bare][0].tolist()}. "
                    "Use larger radii or more centers."
                )


def _stacked(built: list[Features]) -> Features:
    """The features of all subdomains as one, with a leading axis on every array."""
    structures = {jax.tree.structure(features) for features in built}
    shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(features)) for features in built}
    if len(structures) > 1 or len(shapes) > 1:
        raise FeaturesError("inner must build features of one family and one size for all subdomains.")
    return jax.tree.map(lambda *leaves: jax.device_put(np.stack([np.asarray(leaf) for leaf in leaves])), *built)
