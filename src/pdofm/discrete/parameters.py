"""Parameters in discretised terms: their values behind the normals of points, and the columns that belong to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Points
from pdofm.calculus.parameters import Parameters, extended
from pdofm.calculus.terms import Layout
from pdofm.discrete import direct
from pdofm.discrete.collocate import Block
from pdofm.discrete.evaluate import derivatives
from pdofm.discrete.leftsides import entries, local_sides
from pdofm.features import Features


@dataclass(frozen=True, eq=False)
class ParameterSpace:
    """Where parameters are looked for: a vector holds the numbers first, then for each unknown function of the
    coefficients its coefficients in one of `spaces`."""

    parameters: Parameters
    spaces: tuple[Features, ...] = ()

    @property
    def count(self) -> int:
        """The number of unknown numbers."""
        return len(self.parameters.numbers)

    @property
    def size(self) -> int:
        """The length of a vector."""
        return self.count + sum(space.size for space in self.spaces)

    def parts(self) -> Iterator[tuple[str, Features, slice]]:
        """Each function with its space and its place in a vector."""
        start = self.count
        for (name, _, _), space in zip(self.parameters.functions, self.spaces, strict=True):
            yield name, space, slice(start, start + space.size)
            start += space.size

    def entries(self, points: Points, vector: Float[np.ndarray, " p"]) -> Float[np.ndarray, "n e"]:
        """The values of the parameters at points, as left sides find them behind the normals."""
        found = [np.broadcast_to(vector[: self.count], (len(points), self.count))]
        indices = self.parameters.indices(points.shape[1])
        for name, space, at in self.parts():
            found.append(derivatives(space, vector[at][:, None], points, indices[name])[:, :, 0].T)
        return np.hstack(found)

    def columns(self, points: Points, slopes: Float[np.ndarray, "n k e"]) -> Float[np.ndarray, "n k p"]:
        """From derivatives with respect to the entries to those with respect to the vector."""
        found, start = [slopes[:, :, : self.count]], self.count
        indices = self.parameters.indices(points.shape[1])
        for name, space, _ in self.parts():
            stop = start + len(indices[name])
            found.append(np.einsum("nka,anm->nkm", slopes[:, :, start:stop], space.jets(points, indices[name])))
            start = stop
        return np.concatenate(found, axis=2)

    def on(self, blocks: Sequence[Block], vector: Float[np.ndarray, " p"]) -> list[Block]:
        """Blocks with these parameters."""
        return [replace(b, normals=extended(b.normals, self.entries(b.points, vector))) for b in blocks]

    def fixed(self, vector: Float[np.ndarray, " p"]) -> Parameters:
        """The parameters with the values of a vector."""
        names = [name for name, _ in self.parameters.numbers]
        values: dict[str, Any] = dict(zip(names, vector[: self.count].tolist(), strict=True))
        return self.parameters.replaced(values)


def sensitivities(
    layout: Layout, features: Features, block: Block, c: Coefficients, space: ParameterSpace
) -> Float[np.ndarray, "e k p"]:
    """The derivatives of the left sides of a block that has parameters, with respect to their vector."""
    slopes = _slopes(layout, features, block, c, space)
    columns = space.columns(block.points, slopes)
    n, k, p = columns.shape
    return block.averaged(columns.reshape(n, k * p)).reshape(-1, k, p)


def _slopes(
    layout: Layout, features: Features, block: Block, c: Coefficients, space: ParameterSpace
) -> Float[np.ndarray, "n k e"]:
    rows = len(block.points), entries(layout, block)
    total = np.zeros((*rows, block.normals.shape[1] - block.points.shape[1] + layout.has_time))
    for side in local_sides(layout, block):
        if not side.symbol.is_computable:
            return direct.sensitivities(block.term.lhs, layout, features, c, block.points, block.normals)
        which = side.symbol.indices(side.points, side.normals)
        jet = derivatives(features, c, side.points, which)
        total += side.sign * side.symbol.sensitivities(side.points, side.normals, jet)
    return total
