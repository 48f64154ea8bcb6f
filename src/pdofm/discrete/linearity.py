"""Whether a problem is linear: proved from how it is written, or tried."""

from collections.abc import Sequence

import numpy as np

from pdofm._types import Coefficients
from pdofm.calculus.terms import Layout
from pdofm.discrete import direct
from pdofm.discrete.collocate import Block, thinned
from pdofm.discrete.leftsides import symbol_at
from pdofm.features import Features

TRIED_POINTS = 256
"""Points of each term at which a left side is tried for linearity."""


def is_affine(layout: Layout, block: Block) -> bool:
    """Whether the left side of a block is affine in the unknown as it is written."""
    return symbol_at(layout, block.term.lhs, block).is_affine


def nonlinear_terms(
    layout: Layout, features: Features, blocks: Sequence[Block], step: Coefficients | None = None
) -> list[str]:
    """The names of the terms that are not affine in the unknown: those that differ from their linearisation at zero
    after a step.

    `step` are the coefficients of a function, by default a random one; a nonlinearity may show only at the size and in
    the region of the solution. Left sides that are affine as they are written are not tried.
    """
    return [
        block.term.name
        for block in blocks
        if not is_affine(layout, block) and not _stays(layout, features, thinned(block, TRIED_POINTS), step)
    ]


def _stays(layout: Layout, features: Features, block: Block, step: Coefficients | None) -> bool:
    """Whether the left side after a step is what the linearisation says, up to rounding."""
    points, normals = block.points, block.normals
    symbol, spaces = symbol_at(layout, block.term.lhs, block), features.sides(block.term)
    zero = np.zeros((features.size, layout.components))
    start = None
    if symbol.is_computable:
        which = symbol.indices(points, normals)
        start = symbol.linearise(points, normals, features.lifting(points, which, layout.components))
    if start is None:  # the left side looks at u elsewhere, too
        tried = np.random.default_rng(0).standard_normal(zero.shape) / np.sqrt(len(zero)) if step is None else step
        left, slopes = direct.linearise(block.term.lhs, layout, features, zero, points, normals)
        moved = direct.left_sides(block.term.lhs, layout, features, tried, points, normals)
        slopes, moves = slopes.reshape(*left.shape, -1), tried.T.reshape(-1)
        change, size = slopes @ moves, np.abs(slopes) @ np.abs(moves)
    else:
        if step is None:
            size = (len(start.indices), len(points), start.coefficients.shape[3])
            jet = np.random.default_rng(0).standard_normal(size)
        else:
            jet = np.concatenate([each.expand(points, start.indices, step) for each in spaces], axis=2)
        lifting = features.lifting(points, start.indices, layout.components)
        there = symbol.linearise(points, normals, jet if lifting is None else jet + lifting)
        if there is None:
            return False
        left, moved = start.left, there.left
        change, size = (
            np.einsum("nkac,anc->nk", *pair)
            for pair in ((start.coefficients, jet), (np.abs(start.coefficients), np.abs(jet)))
        )
    rounding = np.max(np.abs(moved) + np.abs(left) + size)
    return bool(np.max(np.abs(moved - left - change)) <= 1e-10 * rounding)
