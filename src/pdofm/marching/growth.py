"""Whether small errors grow by themselves from slab to slab: the spectral radius of a slab."""

import math

import numpy as np

from pdofm.marching.arrays import Vector
from pdofm.marching.run import Run
from pdofm.marching.slab import after, linearised_at
from pdofm.marching.spaces import States

CHANGE = 1e-5
"""The change of a start with which a nonlinear slab is linearised, relative to the solution."""

ACCURACY = 1e-6
"""The relative accuracy of the spectral radius."""

STEPS, NONLINEAR_STEPS = 3, 8
"""Steps of the iteration on a slab; in a linear problem all but the first remove rounding errors only. Starts that vary
fast, whose rounding errors are large, would not let it converge."""


def spectral_radius(run: Run) -> float:
    """The spectral radius of the linearised map from the start to the end of the last slab: the factor by which small
    changes grow from slab to slab in the long run. Above 1, errors grow from slab to slab, as the solution
    itself may do. NaN if it is not found."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs  # slow to import

    space, scheme, start = run.space, run.scheme, run.states
    begin, end = run.ends_of(run.pieces[-1])
    matrices, is_linear = linearised_at(space, start, begin), space.statement.is_linear

    def end_of(states: States) -> Vector:
        found = after(matrices, scheme, states, begin, end - begin, STEPS if is_linear else NONLINEAR_STEPS)
        if found is None:
            raise ArithmeticError
        return np.concatenate(found)

    def changed(change: Vector) -> Vector:
        parts = np.split(size * change.reshape(-1), len(start))
        return (end_of([a + b for a, b in zip(start, parts, strict=True)]) - usual) / size

    size = float(run.scale.min()) * (1.0 if is_linear else CHANGE)
    count = space.size * len(start)
    try:
        usual = end_of(start)
        map_of_changes = LinearOperator((count, count), matvec=changed, dtype=np.float64)
        first = np.random.default_rng(0).standard_normal(count)
        found = eigs(map_of_changes, k=1, v0=first, tol=ACCURACY, return_eigenvectors=False)
    except (ArithmeticError, ArpackError):
        return math.nan
    return float(np.abs(found[0]))
