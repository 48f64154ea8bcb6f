"""How large the left side of a term is for functions that vary over the size of the domain."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pdofm.calculus.jets import Index


def row_sizes(
    coefficients: Float[np.ndarray, "n k a C"],
    which: Sequence[Index],
    length: float,
    unknowns: Float[np.ndarray, " C"],
) -> Float[np.ndarray, " k"]:
    """Σ_α |G_α| |u| / L^|α| for unknowns of given sizes that vary over the length L, for each entry of a left side with
    the coefficients G_α of the derivatives `which` at n points."""
    # The median, for near a steep place the coefficients of lower order are derivatives of it.
    typical = np.median(np.abs(coefficients), axis=0)
    return np.einsum("kac,a,c->k", typical, length ** -np.sum(which, axis=1).astype(float), unknowns)
