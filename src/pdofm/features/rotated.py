"""Derivatives in rotated coordinates."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pdofm.calculus.jets import Index, unit


def rotated(
    axes: Float[np.ndarray, "d d"], which: Sequence[Index]
) -> tuple[tuple[Index, ...], Float[np.ndarray, "a b"]]:
    """The derivatives `which` as linear combinations of derivatives along the rows of `axes`: the multi-indices of the
    latter, and a row of factors for each of `which`. With ∂ᵢ = Σᵣ axes[r, i] ∂ᵣ, powers and products are expanded."""
    dim = len(axes)
    combinations = []
    for index in which:
        terms: dict[Index, float] = {(0,) * dim: 1.0}
        for axis in (axis for axis, k in enumerate(index) for _ in range(k)):
            new: dict[Index, float] = {}
            for term, factor in terms.items():
                for r in np.flatnonzero(axes[:, axis]).tolist():
                    higher = tuple(a + b for a, b in zip(term, unit(dim, r), strict=True))
                    new[higher] = new.get(higher, 0.0) + factor * float(axes[r, axis])
            terms = new
        combinations.append(terms)
    found = tuple(dict.fromkeys(term for terms in combinations for term in terms))
    return found, np.array([[terms.get(term, 0.0) for term in found] for terms in combinations]).reshape(
        len(which), len(found)
    )
