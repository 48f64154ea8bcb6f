"""Terms at points of patches, linearised; and where they join patches of two regions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Average, Term
from pdofm.discrete.skeleton import Placed
from pdofm.features.patches import grouped


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
        if not self.is_average:
            return values
        assert self.placed.weights is not None
        return np.tensordot(self.placed.weights[None], values, 1)

    @property
    def is_flux(self) -> bool:
        """Whether it is a term on an interface that sees derivatives alone."""
        return self.placed.beyond is not None and all(sum(index) > 0 for index in self.which)

    def sides(self) -> list[tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n k a C"]]]:
        """The patches that the term sees, with the coefficients of their unknowns: one, or on an interface two."""
        if self.placed.beyond is None:
            return [(self.placed.patch, self.coefficients)]
        first, second = np.split(self.coefficients, 2, axis=3)
        return [(self.placed.patch, first), (self.placed.beyond, second)]

    def amplitudes(self, rates: Float[np.ndarray, "P d"]) -> list[Float[np.ndarray, "n k C"]]:
        """How much larger than each unknown the left side can be, on each of its sides."""
        powers = np.array(self.which, dtype=float).reshape(len(self.which), -1)
        factors = (np.prod(rates[patch][:, None] ** powers, axis=2) for patch, _ in self.sides())
        return [np.einsum("nkac,na->nkc", np.abs(G), f) for (_, G), f in zip(self.sides(), factors, strict=True)]


@dataclass(frozen=True, eq=False)
class Joint:
    """A term on the interface between two patches of different regions, at the points `here` of the term.

    Its rows G₁ c₁ + G₂ c₂ = g become a link: the first patch has G₁ c₁ - λ = g, the second one -G₂ c₂ - λ = 0.
    """

    term: LocalTerm
    sides: tuple[int, int]
    here: Int[np.ndarray, " n"]


def joints(terms: Sequence[LocalTerm]) -> list[Joint]:
    """The pairs of patches that terms join."""
    found = []
    for term in terms:
        if term.placed.beyond is not None:
            first, second = term.placed.patch, term.placed.beyond
            width = int(second.max(initial=0)) + 1
            pairs = grouped(first * width + second)
            found += [Joint(term, (pair // width, pair % width), here) for pair, here in pairs]
    return found
