"""The windows of a partition of unity: their values and derivatives, and which points they reach."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as choices
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pdofm._types import Points, Vector
from pdofm.calculus.jets import Index, composition, highest_order, product
from pdofm.errors import FeaturesError
from pdofm.features.trigonometry import sin

FLAT, OVERLAP = 0.75, 1.25
"""Where windows begin to fall, and where they reach zero, in coordinates in which the subdomain is [-1, 1]^d. Halfway,
at the edge of the subdomain, neighbouring windows are equal; these values are those of the random feature method."""


def window_b(y: Array) -> Array:
    """1 for |y| ≤ 3/4, 0 for |y| ≥ 5/4, and (1 - sin 2π|y|) / 2 in between. The second derivative jumps."""
    size = jnp.abs(y)
    falling = (1 - sin(2 * jnp.pi * jnp.clip(size, FLAT, OVERLAP))) / 2
    return jnp.where(size <= FLAT, 1.0, jnp.where(size >= OVERLAP, 0.0, falling))


def smooth_window(y: Array) -> Array:
    """A window with the same limits that is three times continuously differentiable."""
    t = jnp.clip(2 * jnp.abs(y) - 1.5, 0.0, 1.0)
    return 1 - t**4 * (35 - 84 * t + 70 * t**2 - 20 * t**3)


MOST_COUNTED = 2**22
"""The largest number of candidate points at which windows are counted. Beyond it, `most_overlaps` returns a bound."""

WINDOWS = {"a": jnp.ones_like, "b": window_b, "smooth": smooth_window}

SMOOTH = np.polynomial.Polynomial([1, 0, 0, 0, -35, 84, -70, 20])
"""The falling part of the smooth window, as a polynomial in 2|y| - 3/2."""


def window_derivatives(window: str, y: Float[np.ndarray, "..."], orders: int) -> list[Float[np.ndarray, "..."]]:
    """A window of one coordinate, and its derivatives up to an order. Where a derivative jumps, it is that of the flat
    side."""
    if window == "a":
        return [np.ones_like(y), *(np.zeros_like(y) for _ in range(orders))]
    size, sign = np.abs(y), np.sign(y)
    falls = (size > FLAT) & (size < OVERLAP)
    if window == "b":
        sine, cosine = np.sin(2 * np.pi * size), np.cos(2 * np.pi * size)
        falling = [(1 - sine) / 2]
        falling += [-((2 * np.pi) ** k) / 2 * (sine, cosine, -sine, -cosine)[k % 4] for k in range(1, orders + 1)]
    else:
        falling = [2**k * SMOOTH.deriv(k)(2 * size - 1.5) for k in range(orders + 1)]
    found = [np.where(falls, falling[0], (size <= FLAT).astype(y.dtype))]
    return found + [np.where(falls, sign**k * falling[k], 0.0) for k in range(1, orders + 1)]


@dataclass(frozen=True)
class Reached:
    """Which windows reach which points: one entry per pair, ordered by subdomain and then by point."""

    points: Int[np.ndarray, " p"]
    subdomains: Int[np.ndarray, " p"]
    local: Float[np.ndarray, "p d"]  # the point, in coordinates in which the subdomain is [-1, 1]^d
    flat: Bool[np.ndarray, "p d"]  # the axes along which the window is 1 there

    def of(self, subdomain: int) -> slice:
        """The entries of one subdomain."""
        start, stop = np.searchsorted(self.subdomains, [subdomain, subdomain + 1]).tolist()
        return slice(start, stop)


def reached_by_centers(points: Points, centers: Float[np.ndarray, "P d"], radii: Float[np.ndarray, "P d"]) -> Reached:
    """The pairs for subdomains with arbitrary centers and radii."""
    found = []
    for center, radius in zip(centers, radii, strict=True):
        local = (points - center) / radius
        inside = np.flatnonzero((np.abs(local) < OVERLAP).all(axis=1))
        found.append((inside, local[inside]))
    which = np.repeat(np.arange(len(centers)), [len(inside) for inside, _ in found])
    local = np.concatenate([local for _, local in found])
    return Reached(np.concatenate([inside for inside, _ in found]), which, local, np.zeros(local.shape, dtype=bool))


def reached_on_grid(
    points: Points,
    box: tuple[Vector, Vector],
    grid: tuple[int, ...],
    table: Int[np.ndarray, " cells"],
    *,
    indicators: bool,
    plain: bool,
) -> Reached:
    """The pairs for the cells of a grid. A point is reached by the windows of its cell and of the neighbours across the
    nearest faces.

    `table` holds the number of the subdomain of each cell, -1 for none. With `indicators`, a point belongs to a single
    subdomain: that of its cell, or, if this has none, that of a neighbour. With `plain` windows, those at the edge of
    the grid stay 1 up to it.
    """
    (lower, upper), cells = box, np.array(grid)
    at = (points - lower) / (upper - lower) * cells
    home = np.clip(np.floor(at), 0, cells - 1)
    near = np.where(at - home < 0.5, home - 1, home + 1)
    taken = np.zeros(len(points), dtype=bool)
    found = []
    for choice in choices((False, True), repeat=len(grid)):
        cell = np.where(choice, near, home)
        valid = ((cell >= 0) & (cell < cells)).all(axis=1)
        existing = np.clip(cell, 0, cells - 1).astype(np.int64)
        number, local = table[np.ravel_multi_index(tuple(existing.T), grid)], 2 * (at - cell) - 1
        flat = ((cell == 0) & (local < 0)) | ((cell == cells - 1) & (local > 0)) if plain else np.zeros_like(at, bool)
        kept = valid & (number >= 0)
        if indicators:
            kept &= ~taken
            taken |= kept
        else:
            kept &= ((np.abs(local) < OVERLAP) | flat).all(axis=1)
        found.append((np.flatnonzero(kept), number[kept], local[kept], flat[kept]))
    which, number, local, flat = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((which, number))
    return Reached(which[order], number[order], local[order], flat[order])


def window_jets(
    window: str, reached: Reached, radii: Float[np.ndarray, "P d"], count: int | None, which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, " p"]]:
    """The derivatives `which` of the windows for all pairs; `which` must contain its closure. If the `count` of points
    is given, the windows are divided by their sum at each point."""
    slopes = 1 / radii[reached.subdomains]
    along = window_derivatives(window, reached.local, highest_order(which))
    along = [np.where(reached.flat, float(k == 0), each) * slopes**k for k, each in enumerate(along)]
    found = {index: np.prod([along[k][:, axis] for axis, k in enumerate(index)], axis=0) for index in which}
    if count is None or not found:
        return found
    sums = {index: np.bincount(reached.points, each, count) for index, each in found.items()}
    total = sums[(0,) * radii.shape[1]]
    total = np.where(total > 0, total, np.nan)  # no window reaches the point
    reciprocals = [(-1) ** k * math.factorial(k) / total ** (k + 1) for k in range(len(along))]
    inverse = composition(reciprocals, sums, which)
    return product(found, {index: each[reached.points] for index, each in inverse.items()}, which)


def grid_of(subdomains: Sequence[int] | int | None, dim: int) -> tuple[int, ...]:
    """The number of subdomains along each axis."""
    counts = (subdomains,) * dim if isinstance(subdomains, int) else tuple(subdomains or ())
    if len(counts) != dim or any(not isinstance(n, int) or n < 1 for n in counts):
        raise FeaturesError(f"subdomains must be {dim} positive integers, one per axis; got {subdomains!r}.")
    return counts


def equal_cells(lower: np.ndarray, upper: np.ndarray, grid: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The centers and the radii of the cells of a grid on a box."""
    radius = (upper - lower) / np.array(grid) / 2
    steps = np.array(list(choices(*(range(n) for n in grid))), dtype=np.float64)
    return lower + (2 * steps + 1) * radius, np.broadcast_to(radius, steps.shape).copy()


def strides(grid: tuple[int, ...] | None) -> list[int]:
    """The difference of the flat indices of neighbouring cells, along each axis."""
    return [int(np.prod((grid or ())[axis + 1 :])) for axis in range(len(grid or ()))]


def given_subdomains(centers: Any, radii: Any, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The user's centers and radii as arrays of shape (P, dim); an error if they are not suitable."""
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


def most_overlaps(centers: np.ndarray, halves: np.ndarray) -> int:
    """The largest number of windows that reach one point, or an upper bound of it."""
    lower, upper = centers - halves, centers + halves
    meet = ((lower[:, None] < upper[None]) & (lower[None] < upper[:, None])).all(axis=2)
    most = 0
    for mine in np.asarray(meet):
        # The set of points in most windows has a corner where along each axis some window begins. Those of the windows
        # that meet this one are tried.
        low, high = lower[mine], upper[mine]
        if low.size ** low.shape[1] > MOST_COUNTED:
            most = max(most, len(low))
            continue
        sides = (np.unique(low[:, axis]) for axis in range(low.shape[1]))
        corners = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 1, low.shape[1])
        over = ((low[None] <= corners) & (corners < high[None])).all(axis=2)
        most = max(most, int(np.count_nonzero(over, axis=1).max()))
    return most
