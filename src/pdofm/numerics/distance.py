"""Relative distances between functions with several components."""

import numpy as np
from jaxtyping import Float

VANISHING = 1e-6
"""A component smaller than this fraction of all components together has no relative size of its own, unless it is known
to be more than the error of the others."""


def relative_sizes(
    part: Float[np.ndarray, "n C"],
    whole: Float[np.ndarray, "n C"],
    vanishing: float | Float[np.ndarray, " C"] = VANISHING,
) -> Float[np.ndarray, " C"]:
    """‖part‖ / ‖whole‖ of each component, over n points; a component that is zero, or below the fraction `vanishing` of
    all of them (one fraction for each component, or for all), is measured against all. Where everything vanishes the
    ratio is 0, or infinite if the part does not."""
    sizes, all_sizes = np.linalg.norm(whole, axis=0), np.linalg.norm(whole)
    against = np.where((sizes == 0) | (sizes < vanishing * all_sizes), all_sizes, sizes)
    parts = np.linalg.norm(part, axis=0)
    # NaN is not 0: it stays NaN, which no tolerance accepts.
    return np.divide(parts, against, out=np.where(parts == 0, 0.0, np.inf), where=against != 0)


def distance(
    found: Float[np.ndarray, "n C"],
    reference: Float[np.ndarray, "n C"],
    vanishing: float | Float[np.ndarray, " C"] = VANISHING,
) -> float:
    """Relative L2 distance of two functions at n points; in a system that of the component that differs most."""
    return float(np.max(relative_sizes(found - reference, reference, vanishing)))
