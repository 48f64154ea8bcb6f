"""What is left of data when they are fitted: how much there is, whether it is like noise, and what would lower it."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from pdofm._types import Points, Vector
from pdofm.solving.forward import State
from pdofm.solving.statistics import Numbers

NEAR = 0.95
"""The fraction of the features in which a second solution shows how resolution changes the data and the parameters."""

EXACT = 1e-6
"""Data that are fitted as well as that, relative to how much they vary, are taken to be explained: other solvers and
rounded tables are not more exact."""

NUMERICAL = 10.0
"""What is left of the data matters if it is this many times what the resolution of the solution explains."""

PARTS, MOST, FEWEST = (1 / 4, 1 / 2, 2 / 3), 150, 8
"""Smooth functions that residuals are compared with: parts of the number of data, at most so many, and the fewest data
for which that says anything."""

FAR_OUT = 4.9
"""A number at a bound is held back if the misfit asks for one that lies so many standard deviations beyond it: normal
errors do that once in a million."""

AT_BOUND = 1e-3
"""A number is at a bound if it is nearer to it than this part of the step that is asked for."""

PENDING = 0.1
"""A search has ended if the step that is still asked for is no larger than this part of a standard deviation."""


def unexplained(state: State) -> float | None:
    """What is left of the data relative to how much they vary; None without data. One set of data may be left out
    where others are much larger. So each is looked at, too, less the noise that the best fitted set suggests."""
    data = state.forward.data
    if not data.blocks:
        return None
    sets = _by_set(state)
    noise = min(float(np.mean(each**2)) for each in sets)
    beyond = [
        max(float(np.sum(each**2)) - each.size * noise, 0.0) ** 0.5 / varied
        for each, varied in zip(sets, data.variations, strict=True)
    ]
    pooled = float(np.linalg.norm(state.residual * data.scales)) / data.variation
    return pooled if len(sets) == 1 else max(pooled, *beyond)


def numerical(state: State) -> float:
    """How much the data change if the last features are left out, relative to how much they vary."""
    data = state.forward.data
    return float(np.linalg.norm(coarser(state) * data.scales)) / data.variation if data.blocks else 0.0


def likeness(state: State) -> float:
    """How probable it is that white noise looks as smooth as what is left of the data; 1 where that is as small as the
    numerical error."""
    data, smallest = state.forward.data, 1.0
    for block, residual, change, varied in zip(
        data.blocks, _by_set(state), _by_set(state, coarser(state)), data.variations, strict=True
    ):
        if np.linalg.norm(residual) > max(EXACT * varied, NUMERICAL * float(np.linalg.norm(change))):
            columns = residual.reshape(len(block.points), -1)
            each = [smoothness(np.asarray(block.points), column) for column in columns.T]
            smallest = min(smallest, len(each) * min(each))
    return min(smallest * max(len(data.blocks), 1), 1.0)


def smoothness(points: Points, residual: Vector) -> float:
    """How probable it is that residuals that are independent and distributed alike look as smooth as these. They are
    replaced by the normal quantiles of their ranks, so that outliers do not matter. An F test tells how much of them
    polynomials explain."""
    from scipy.special import fdtrc, ndtri
    from scipy.stats import rankdata

    count, dim = points.shape
    if count < FEWEST or not np.ptp(residual) > 0:
        return 1.0
    lower, width = points.min(axis=0), np.ptp(points, axis=0)
    angles = np.arccos(np.clip(2 * (points - lower) / np.where(width > 0, width, 1.0) - 1, -1, 1))
    normal = ndtri(rankdata(residual) / (count + 1))
    normal = normal - np.mean(normal)
    total, found = float(np.sum(normal**2)), []
    for part in PARTS:
        exponents = _exponents(dim, min(int(part * count), MOST))
        left, singular, _ = np.linalg.svd(np.prod(np.cos(angles[:, None] * exponents), axis=2), full_matrices=False)
        left = left[:, singular > 1e-8 * singular[0]]
        functions, rest = left.shape[1] - 1, count - left.shape[1]
        if functions > 0 and rest > 0:
            seen = float(np.sum((left.T @ normal) ** 2))
            ratio = (seen / functions) / (max(total - seen, np.finfo(float).eps * total) / rest)
            found.append(float(fdtrc(functions, rest, ratio)))
    return min(len(found) * min(found), 1.0) if found else 1.0


def coarser(state: State) -> np.ndarray:
    """How the residual of the data changes if the last features are left out."""
    c, features = state.coefficients, state.discretisation.features
    kept = min(int(np.searchsorted(features.ranks, NEAR)), len(c) - 1)
    coarse = state.outcome.factorization.coarse(state.outcome.projected, kept * c.shape[1])
    return state.of_data @ (coarse - c.reshape(-1)) / state.forward.data.scales


def held_back(numbers: Numbers, q: Vector, step: Vector, deviations: Vector) -> str:
    """The numbers that are at a bound although the misfit asks for values beyond it, in words; empty if there are
    none. `step` is the one to the smallest misfit without bounds, `deviations` the standard deviations there."""
    (lower, upper), found = numbers.bounds, []
    for i, name in enumerate(numbers.names):
        bound, word = (lower[i], "less") if step[i] < 0 else (upper[i], "more")
        is_there = abs(q[i] - bound) <= AT_BOUND * abs(step[i])
        if is_there and abs(step[i]) > max(FAR_OUT * deviations[i], EXACT * (1 + abs(q[i]))):
            found.append(f"{name} is at its bound {numbers.outward_at(i, bound):g}, and the data ask for {word}")
    return "; ".join(found)


def is_pending(q: Vector, step: Vector, deviations: Vector) -> bool:
    """Whether a step within bounds that is still asked for is not small against the standard deviations."""
    return bool((np.abs(step) > np.maximum(PENDING * deviations, EXACT * (1 + np.abs(q)))).any())


def _by_set(state: State, residual: Vector | None = None) -> Sequence[np.ndarray]:
    """Residuals of the data in their own units, one array for each set of data."""
    data = state.forward.data
    values = (state.residual if residual is None else residual) * data.scales
    return np.split(values, np.cumsum([size for _, size in data.losses])[:-1])


def _exponents(dim: int, most: int) -> np.ndarray:
    """The degrees of polynomials in each variable, all of a total degree for which they are no more than that."""
    found: list[tuple[int, ...]] = []
    for degree in range(most + 1):
        more = [each for each in product(range(degree + 1), repeat=dim) if sum(each) == degree]
        if len(found) + len(more) > most:
            break
        found += more
    return np.array(found or [(0,) * dim], dtype=float)
