"""Whether small errors grow by themselves from slab to slab: the spectral radius of a slab."""

import math

import numpy as np

from pdofm.marching.projected import growth
from pdofm.marching.run import Run
from pdofm.marching.slab import after, linearised_at
from pdofm.marching.termat import Overlooked
from pdofm.marching.whole import Whole

CHANGE = 1e-5
"""The change of a start with which a nonlinear slab is linearised, relative to the solution."""

STEPS, NONLINEAR_STEPS = 2, 8
"""Steps of the iteration on a slab; in a linear problem the second one removes rounding errors only."""

BATCH = 64
"""Starts at a time."""

MOST = 1500
"""The largest number of coefficients of a state for which all eigenvalues are computed. Iterations for the largest one
do not converge where many are of nearly the same size, as those of waves are."""


def spectral_radius(run: Run) -> float:
    """The spectral radius of the linearised map from the start to the end of the last slab: the factor by which small
    changes grow from slab to slab in the long run. Above 1, errors grow from slab to slab, as the solution
    itself may do. NaN if it is not found."""
    try:
        return _radius(run)
    except Overlooked:
        return math.nan


def _radius(run: Run) -> float:
    space, scheme, start = run.space, run.scheme, run.states
    begin, end = run.ends_of(run.pieces[-1])
    if isinstance(space, Whole):
        linear = space.linearise([*(each[None] for each in start), np.zeros((1, space.size))], end)
        if linear.eigenvalues is not None and linear.multiples is not None:
            return growth(scheme, end - begin, linear.eigenvalues, linear.multiples)
    count, is_linear = space.size * len(start), space.statement.is_linear
    if count > MOST:
        return math.nan
    matrices = linearised_at(space, start, begin)
    usual, size = np.concatenate(start), float(run.scale.min()) * (1.0 if is_linear else CHANGE)

    def end_of(starts: np.ndarray) -> np.ndarray | None:
        states = np.split(starts, len(start), axis=1)
        found = after(matrices, scheme, states, begin, end - begin, STEPS if is_linear else NONLINEAR_STEPS)
        return None if found is None else np.concatenate(found, axis=1)

    unchanged = end_of(usual[None])
    columns = []
    for first in range(0, count, BATCH):
        changed = end_of(usual + size * np.eye(count)[first : first + BATCH])
        if changed is None or unchanged is None:
            return math.nan
        columns.append((changed - unchanged) / size)
    found = np.concatenate(columns)
    return float(np.max(np.abs(np.linalg.eigvals(found)))) if np.all(np.isfinite(found)) else math.nan
