"""Relative distances between functions with several components."""

import numpy as np
from jaxtyping import Float

VANISHING = 1e-6
"""A component smaller than this fraction of all components together has no relative size of its own."""


def relative_sizes(part: Float[np.ndarray, "n C"], whole: Float[np.ndarray, "n C"]) -> Float[np.ndarray, " C"]:
    """‖part‖ / ‖whole‖ of each component, over n points; a component that vanishes is measured against all of them.
    Where everything vanishes the ratio is 0, or infinite if the part does not."""
    sizes, all_sizes = np.linalg.norm(whole, axis=0), np.linalg.norm(whole)
    against = np.where(sizes < VANISHING * all_sizes, all_sizes, sizes)
    parts = np.linalg.norm(part, axis=0)
    return np.divide(parts, against, out=np.where(parts > 0, np.inf, 0.0), where=against > 0)


def distance(found: Float[np.ndarray, "n C"], reference: Float[np.ndarray, "n C"]) -> float:
    """Relative L2 distance of two functions at n points; in a system that of the component that differs most."""
    return float(np.max(relative_sizes(found - reference, reference)))
