"""Components of very different sizes: rows are scaled again, by the sizes of what was found.

The rounding error of a least-squares solution is relative to the largest scaled data. Where one component is 1e-9 times
as large as another, its equations have data of 1e-9, and 9 digits are lost. With rows that are scaled for components of
the sizes that were found, all data are of size 1.

A component that is small because it is nothing but the error of the others, as a velocity that vanishes, must not be
scaled up. It is told from a small one by a solution in fewer features, which does not agree with it.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from pdofm._types import Vector
from pdofm.discrete.discretisation import Discretisation
from pdofm.numerics.distance import relative_sizes
from pdofm.solving.estimate import CONFIRMED, NEAR, coarse_solution
from pdofm.solving.methods import Linear, Method, Outcome, run

DISPARATE = 1e-3
"""Components below this fraction of the largest are scaled by their sizes."""

NOISE = 1e-17
"""Components below this fraction are zero up to rounding."""

SETTLED = 4.0
"""The sizes are known if they change by less than this factor."""

MOST_TRIES = 3


def balanced(method: Method | None, discretisation: Discretisation, outcome: Outcome) -> tuple[Discretisation, Outcome]:
    """The same solve with rows that are scaled by the sizes of the components, if these differ much."""
    # A single component needs no scale, and shares of a cluster keep their rows.
    if discretisation.problem.layout.components == 1 or type(discretisation) is not Discretisation:
        return discretisation, outcome
    sizes = _sizes(discretisation, outcome)
    for _ in range(MOST_TRIES):
        if not sizes.min() < DISPARATE * sizes.max():
            break
        scaled = replace(discretisation, sizes=sizes / sizes.max())
        found = run(method, scaled, (method or Linear()).system(scaled))
        after = _sizes(scaled, found)
        change = float(np.max(np.maximum(after / sizes, sizes / after)))
        if change <= SETTLED:
            is_small = after < DISPARATE * after.max()
            return (scaled, found) if _is_confirmed(scaled, found, is_small) else (discretisation, outcome)
        sizes = after
    return discretisation, outcome


def _is_confirmed(discretisation: Discretisation, outcome: Outcome, components: Bool[np.ndarray, " C"]) -> bool:
    """Whether a solution in fewer features has the same components."""
    fine = discretisation.values(outcome.coefficients)
    coarse = discretisation.values(coarse_solution(discretisation.features, outcome, NEAR))
    apart = relative_sizes(coarse - fine, fine, vanishing=0.0)
    return bool(np.all(apart[components] < CONFIRMED))


def _sizes(discretisation: Discretisation, outcome: Outcome) -> Vector:
    """The root mean square of each component; of one that is zero that of the largest."""
    values = discretisation.values(outcome.coefficients)
    largest = float(np.max(np.abs(values), initial=0.0))
    if not (np.isfinite(largest) and largest > 0):
        return np.ones(values.shape[1])
    found = np.sqrt(np.mean((values / largest) ** 2, axis=0))
    return np.where(found < NOISE * found.max(), found.max(), found)
