"""Parameters in discretised terms: their values behind the normals of points, and the columns that belong to them.

A vector of parameters has the numbers first, then the coefficients of each field in its features.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Points
from pdofm.calculus.parameters import extended, field_indices
from pdofm.calculus.terms import Layout
from pdofm.discrete import direct
from pdofm.discrete.collocate import Block
from pdofm.discrete.evaluate import derivatives
from pdofm.discrete.leftsides import entries, local_sides
from pdofm.features import Features


@dataclass(frozen=True, eq=False)
class ParameterSpace:
    """Where parameters are looked for: so many numbers, and for each field features."""

    numbers: int
    fields: tuple[Features, ...] = ()
    _jets: dict[int, tuple[Points, list[np.ndarray]]] = field(default_factory=dict, init=False, repr=False)

    @property
    def size(self) -> int:
        """The length of a vector of parameters."""
        return self.numbers + sum(features.size for features in self.fields)

    @property
    def parts(self) -> list[slice]:
        """Where the coefficients of each field are in a vector."""
        starts = self.numbers + np.cumsum([0, *(features.size for features in self.fields)])
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(starts)]

    def with_values(self, blocks: Sequence[Block], vector: Float[np.ndarray, " p"]) -> list[Block]:
        """Blocks with these values of the parameters."""
        return [replace(b, normals=extended(b.normals, self._entries(b.points, vector))) for b in blocks]

    def contracted(self, points: Points, slopes: Float[np.ndarray, "n k e"]) -> Float[np.ndarray, "n k p"]:
        """Derivatives with respect to the entries behind normals as those with respect to the parameters."""
        found = np.empty((*slopes.shape[:2], self.size))
        found[..., : self.numbers] = slopes[..., : self.numbers]
        start = self.numbers
        for part, jets in zip(self.parts, self._jets_at(points), strict=True):
            here = slopes[..., start : start + len(jets)]
            found[..., part] = np.einsum("nka,anm->nkm", here, jets, optimize=True)
            start += len(jets)
        return found

    def _entries(self, points: Points, vector: Float[np.ndarray, " p"]) -> np.ndarray:
        if not self.fields:
            return vector
        numbers = np.broadcast_to(vector[: self.numbers], (len(points), self.numbers))
        jets = zip(self.parts, self._jets_at(points), strict=True)
        return np.hstack([numbers, *((jet @ vector[part]).T for part, jet in jets)])

    def _jets_at(self, points: Points) -> list[np.ndarray]:
        """The derivatives of the features of all fields; those at points that were asked for before are kept."""
        known = self._jets.get(id(points))
        if known is None or known[0] is not points:
            which = field_indices(points.shape[1])
            known = points, [features.jets(points, which) for features in self.fields]
            self._jets[id(points)] = known
        return known[1]


def sensitivities(
    layout: Layout, features: Features, block: Block, c: Coefficients, space: ParameterSpace
) -> Float[np.ndarray, "e k p"]:
    """The derivatives of the left sides of a block that has parameters, with respect to these."""
    slopes = space.contracted(block.points, _slopes(layout, features, block, c))
    n, k, p = slopes.shape
    return block.averaged(slopes.reshape(n, k * p)).reshape(-1, k, p)


def _slopes(layout: Layout, features: Features, block: Block, c: Coefficients) -> Float[np.ndarray, "n k e"]:
    rows = len(block.points), entries(layout, block)
    total = np.zeros((*rows, block.normals.shape[1] - block.points.shape[1] + layout.has_time))
    for side in local_sides(layout, block):
        if not side.symbol.is_computable:
            return direct.sensitivities(block.term.lhs, layout, features, c, block.points, block.normals)
        which = side.symbol.indices(side.points, side.normals)
        jet = derivatives(features, c, side.points, which)
        total += side.sign * side.symbol.sensitivities(side.points, side.normals, jet)
    return total
