"""A term of a problem at points of patches, linearised."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Average, Term
from pdofm.discrete.skeleton import Placed


@dataclass(frozen=True, eq=False)
class LocalTerm:
    """A term at points of the patches, linearised: Σ_α G_α ∂^α u = target. `left` is the left side of the function that
    it is linearised at, which is zero in a linear problem. Of a term that holds on average both are averages."""

    term: Term
    placed: Placed
    which: tuple[Index, ...]
    coefficients: Float[np.ndarray, "n k a C"]
    target: Float[np.ndarray, "e k"]
    left: Float[np.ndarray, "e k"]

    @property
    def is_average(self) -> bool:
        """Whether the term holds on average."""
        return isinstance(self.term.on, Average)

    def averaged(self, values: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "e ..."]:
        """What the term says from its values at the points: all of them, or their average."""
        return np.tensordot(self.placed.weights[None], values, 1) if self.is_average else values

    def amplitudes(self, rates: Float[np.ndarray, "P d"]) -> Float[np.ndarray, "n k C"]:
        """How much larger than each unknown the left side can be."""
        powers = np.array(self.which, dtype=float).reshape(len(self.which), -1)
        factors = np.prod(rates[self.placed.patch][:, None] ** powers, axis=2)
        return np.einsum("nkac,na->nkc", np.abs(self.coefficients), factors)
