"""Point sets in the unit cube (grid, random, Sobol' and Chebyshev-clustered), and rejection from them.

All points lie strictly inside the cube, so that no chart is evaluated at its ends.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Points
from pdofm.errors import DomainError, unknown_name
from pdofm.numerics.sobol import BITS, MOST_DIMENSIONS, Sobol

UnitPoints = Float[np.ndarray, "_ _"]
"""Points of the unit cube. Their number, and that of their coordinates, may differ from those of the points that they
are mapped to."""

SAMPLINGS = ("grid", "random", "sobol", "clustered")
"""The ways to place points."""

_LARGEST_BATCH = 2**20
"""The largest number of candidates that are drawn at once; more would not be faster, but take more memory."""

_LEAST_YIELD = 1e-6
"""The smallest fraction of candidates that a rejection must keep; with less it would run for minutes."""

_CANDIDATES_BEFORE_CHECK = 2**22
"""Candidates that are drawn before the yield is checked. At the least yield, about four of them are kept."""


def generator(key: Any) -> np.random.Generator:
    """The NumPy generator for a key, which is a non-negative integer or one JAX random key (typed, or raw uint32)."""
    expected = "expected a non-negative integer or one JAX random key; pass e.g. key=0 or key=jax.random.key(0)"
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if key < 0:
            raise DomainError(f"The key is {key}; {expected}.")
        return np.random.default_rng(int(key))
    dtype = getattr(key, "dtype", None)
    if dtype is None:
        raise DomainError(f"The key is {key!r} of type {type(key).__name__}; {expected}.")
    import jax

    data = np.asarray(jax.random.key_data(key) if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key) else key)
    if data.dtype != np.uint32 or data.ndim != 1 or data.size < 2:
        raise DomainError(f"The key is an array of type {dtype} and shape {np.shape(key)}; {expected}.")
    return np.random.default_rng([int(word) for word in data])


def spread(n: int, count: int) -> Int[np.ndarray, " p"]:
    """`count` of the numbers 0 … n - 1, evenly spaced; all of them if there are no more than that."""
    return np.linspace(0, n - 1, min(count, n)).astype(int)


def unit_points(n: int, dim: int, sampling: str, rng: np.random.Generator) -> Points:
    """Points of the open unit cube, of shape `(n', dim)`: n' is n, or, for a grid of k cells a side, the smallest
    k**dim that is at least n.

    `"clustered"` points have the Chebyshev density along each axis. For `dim = 0`, the result is the single point of
    that space, of shape (1, 0).
    """
    check_request(n, sampling)
    if dim == 0:
        return np.zeros((1, 0))
    if sampling == "grid":
        return _grid(_cells_per_axis(n, dim), dim)
    points = _source(dim, sampling, rng)(_power_of_two(n))[:n]
    return cluster(points) if sampling == "clustered" else points


def cluster(u: Points) -> Points:
    """The map (1 - cos(πu)) / 2 of the unit cube, which turns the uniform density into the Chebyshev density."""
    # The half-angle form does not cancel near u = 0.
    return np.sin(0.5 * np.pi * u) ** 2


def draw(
    n: int,
    dim: int,
    sampling: str,
    rng: np.random.Generator,
    place: Callable[[UnitPoints], tuple[UnitPoints, ...]],
    what: str,
) -> tuple[UnitPoints, ...]:
    """n points by rejection. (A grid is refined until at least n of its points are kept.)

    `place` maps points `(m, dim)` of the unit cube to arrays with one row for each point that it keeps. Batches
    continue one Sobol' sequence; for `"clustered"` points, `place` does the clustering itself. `what` names the target
    in errors."""
    check_request(n, sampling)
    if dim == 0:
        return place(np.zeros((1, 0)))
    if sampling == "grid":
        return _draw_grid(n, dim, place, what)
    source = _source(dim, sampling, rng)
    batch = min(_power_of_two(n), _LARGEST_BATCH)
    batches, kept, tried = [], 0, 0
    while kept < n:
        batches.append(place(source(batch)))
        kept += len(batches[-1][0])
        tried += batch
        _check_yield(kept, tried, what)
        # Each batch doubles the total, which keeps the sequence balanced.
        batch = min(tried, _LARGEST_BATCH)
    return tuple(np.concatenate(columns)[:n] for columns in zip(*batches, strict=True))


def _draw_grid(
    n: int, dim: int, place: Callable[[UnitPoints], tuple[UnitPoints, ...]], what: str
) -> tuple[UnitPoints, ...]:
    cells = _cells_per_axis(n, dim)
    while True:
        rows = place(_grid(cells, dim))
        kept, tried = len(rows[0]), cells**dim
        if kept >= n:
            return rows
        _check_yield(kept, tried, what)
        needed = n * tried / kept if kept else 2.0**dim * tried
        cells = max(cells + 1, int(needed ** (1 / dim)))


MOST_POINTS = 10**8
"""The most points that are placed at once: in three dimensions they take 2.4 GB."""


def check_request(n: Any, sampling: str) -> None:
    """Raise unless n is a positive integer and `sampling` a known name."""
    if sampling not in SAMPLINGS:
        raise unknown_name("sampling", sampling, SAMPLINGS)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        got = repr(n) if np.ndim(n) == 0 else f"an array of shape {np.shape(n)}"
        hint = "" if np.ndim(n) == 0 else " Points are placed by the library; give their number."
        raise DomainError(f"The number of points is {got}; expected an integer of at least 1.{hint}")
    if n > MOST_POINTS:
        raise DomainError(f"The number of points is {n}; at most {MOST_POINTS} are placed at once. Ask for fewer.")


def _check_yield(kept: int, tried: int, what: str) -> None:
    if tried >= _CANDIDATES_BEFORE_CHECK and kept < _LEAST_YIELD * tried:
        raise DomainError(
            f"Only {kept} of {tried} candidates lie in {what}; expected at least one in a million. "
            "It is too thin for rejection from its bounding box: split it, or use a simpler domain."
        )


def _source(dim: int, sampling: str, rng: np.random.Generator) -> Callable[[int], Points]:
    """A function that returns the next n points of the cube. n must be a power of two that divides the number of points
    drawn before."""
    if sampling == "random":
        return lambda n: np.maximum(rng.random((n, dim)), 2.0**-54)
    # The points are multiples of 2**-30. Half of that is added to move them off the faces of the cube.
    sobol = Sobol(dim, rng) if dim <= MOST_DIMENSIONS else _sobol_of_scipy(dim, rng)
    return lambda n: sobol(n) + 2.0 ** -(BITS + 1)


def _sobol_of_scipy(dim: int, rng: np.random.Generator) -> Callable[[int], Points]:
    from scipy.stats import qmc  # slow to import

    return qmc.Sobol(dim, scramble=True, bits=BITS, rng=rng).random


def _grid(cells: int, dim: int) -> Points:
    midpoints = (np.arange(cells) + 0.5) / cells
    return np.stack(np.meshgrid(*[midpoints] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


def _cells_per_axis(n: int, dim: int) -> int:
    # Counted in integers, because 243 ** (1 / 5) is a little more than 3 in floating point.
    cells = max(1, round(n ** (1 / dim)) - 1)
    while cells**dim < n:
        cells += 1
    return cells


def _power_of_two(n: int) -> int:
    return 1 << (int(n) - 1).bit_length()
