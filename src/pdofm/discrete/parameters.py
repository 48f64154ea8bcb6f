"""Parameters in discretised terms: their values behind the normals of points, and the columns that belong to them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients
from pdofm.calculus.parameters import extended
from pdofm.calculus.terms import Layout
from pdofm.discrete import direct
from pdofm.discrete.collocate import Block
from pdofm.discrete.evaluate import derivatives
from pdofm.discrete.leftsides import entries, local_sides
from pdofm.features import Features


def with_numbers(blocks: Sequence[Block], vector: Float[np.ndarray, " p"]) -> list[Block]:
    """Blocks with these values of the parameters."""
    return [replace(block, normals=extended(block.normals, vector)) for block in blocks]


def sensitivities(layout: Layout, features: Features, block: Block, c: Coefficients) -> Float[np.ndarray, "e k p"]:
    """The derivatives of the left sides of a block that has parameters, with respect to these."""
    slopes = _slopes(layout, features, block, c)
    n, k, p = slopes.shape
    return block.averaged(slopes.reshape(n, k * p)).reshape(-1, k, p)


def _slopes(layout: Layout, features: Features, block: Block, c: Coefficients) -> Float[np.ndarray, "n k p"]:
    rows = len(block.points), entries(layout, block)
    total = np.zeros((*rows, block.normals.shape[1] - block.points.shape[1] + layout.has_time))
    for side in local_sides(layout, block):
        if not side.symbol.is_computable:
            return direct.sensitivities(block.term.lhs, layout, features, c, block.points, block.normals)
        which = side.symbol.indices(side.points, side.normals)
        jet = derivatives(features, c, side.points, which)
        total += side.sign * side.symbol.sensitivities(side.points, side.normals, jet)
    return total
