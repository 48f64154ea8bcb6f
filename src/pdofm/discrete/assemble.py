"""From a problem, features and points to a least-squares system.

One mechanism serves linear and nonlinear problems. At coefficients c the left side of a term, linearised, is

    lhs(c + δ) ≈ lhs(c) + J δ,      J = d lhs / d c,

one row of J per point and entry. A row combines the symbol of the term, G_α = ∂ lhs / ∂(∂^α u), which does not depend
on the features, with the derivatives of the features, which do not depend on the problem:

    J[(i, k), (j, c)] = Σ_α G[i, k, α, c] ∂^α φ_j(x_i).

Left sides that also depend on u at other points are differentiated with respect to the coefficients (see `direct`).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Points, Vector
from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Layout
from pdofm.discrete import direct
from pdofm.discrete.collocate import Block
from pdofm.discrete.evaluate import derivatives
from pdofm.discrete.leftsides import Gradients, Side, entries, local_sides, symbol_at
from pdofm.discrete.memory import Memory
from pdofm.discrete.system import Rows, Sink, System
from pdofm.features import Features
from pdofm.numerics.batches import slices

CHUNK_BYTES = 2**24
"""Size of the derivatives of features that are contracted at once: small against the matrix, and large enough for the
batches of compiled features to be full."""

LEFT_SIDES = 4096
"""Points at which left sides alone are evaluated at once."""


def _jet(
    spaces: Sequence[Features], jets: Sequence[np.ndarray], points: Points, which: tuple[Index, ...], c: Coefficients
) -> np.ndarray | None:
    """The derivatives of a function from those of the features, on an interface on one side after the other; None if
    they are all zero."""
    lifting = spaces[0].lifting(points, which, c.shape[1])
    if lifting is None:
        return np.concatenate([each @ c for each in jets], axis=2) if c.any() else None
    return jets[0] @ c + lifting


def _locally(
    layout: Layout, features: Features, block: Block, c: Coefficients, memory: Memory
) -> tuple[Float[np.ndarray, "n k"], Gradients] | None:
    """Left sides and their gradients at the points of a block, from symbols and jets; None if the jet of u does not
    determine them."""
    k = entries(layout, block)
    left, gradients = np.zeros((len(block.points), k)), Gradients(k, c.shape[1])
    spaces = features.sides(block.term)
    for side in local_sides(layout, block):
        jets: dict[tuple[Index, ...], list[np.ndarray]] = {}

        def jet_of(which: tuple[Index, ...], side: Side = side, jets: dict = jets) -> np.ndarray | None:
            jets[which] = [memory.derivatives(space, side.points, which) for space in spaces]
            return _jet(spaces, jets[which], side.points, which, c)

        local = side.linearise(jet_of, memory)
        if local is None:
            return None
        left += side.sign * local.left
        if not jets:
            jet_of(local.which)
        ((which, found),) = jets.items()
        for number, each in enumerate(found):
            gradients.add(side.sign, local, each if which == local.which else each[local.used], number)
    return left, gradients


def _directly(
    layout: Layout, features: Features, block: Block, c: Coefficients
) -> tuple[Float[np.ndarray, "n k"], Gradients]:
    """The same by differentiation with respect to the coefficients."""
    left, found = direct.linearise(block.term.lhs, layout, features, c, block.points, block.normals)
    gradients = Gradients(left.shape[1], c.shape[1])
    gradients.parts = [[found[:, k, j].T for j in range(c.shape[1])] for k in range(left.shape[1])]
    return left, gradients


def assemble(
    layout: Layout,
    features: Features,
    blocks: Sequence[Block],
    coefficients: Coefficients,
    *,
    check: bool = True,
    fold: bool = False,
    memory: Memory | None = None,
    role: str = "fitted",
    sink: Sink | None = None,
    sizes: Vector | None = None,
) -> System:
    """The linearised system at `coefficients`, all blocks stacked, in chunks of points.

    With `check` left sides that are not finite, and conditions that say nothing about the unknown, are errors. With
    `fold` a matrix above `LARGEST_MATRIX` with many more rows than columns is not kept: its rows are folded into a
    triangle as they come; with a `sink` they go there. `memory` is what is known from before, `role` what these points
    are called in it. Rows are scaled for components of these `sizes`, by default 1.
    """
    memory = Memory() if memory is None else memory
    counts = [entries(layout, block) for block in blocks]
    filled = Rows(blocks, counts, coefficients.size, fold=fold, sink=sink, sizes=sizes)
    for block, k in zip(blocks, counts, strict=True):
        right = memory.right_sides(layout, block, k, role)
        average = _Average(k, coefficients.shape[1])
        for here in slices(len(block.points), _chunk_size(layout, features, block)):
            part = block.part(here)
            found = _locally(layout, features, part, coefficients, memory)
            left, gradients = _directly(layout, features, part, coefficients) if found is None else found
            if block.weights is None:
                filled.take(block, here, left, gradients, right[here], check=check)
            else:
                average.add(part, left, gradients)
        if block.weights is not None:
            filled.take(block, slice(0, 1), average.left, average.gradients, block.averaged(right), check=check)
    return filled.system()


class _Average:
    """The average of the left sides of a block and of their gradients, as the points come."""

    def __init__(self, k: int, components: int):
        self.left, self.gradients = np.zeros((1, k)), Gradients(k, components)

    def add(self, part: Block, left: Float[np.ndarray, "n k"], gradients: Gradients) -> None:
        self.left += part.averaged(left)
        for total, of_entry in zip(self.gradients.parts, gradients.parts, strict=True):
            for c, each in enumerate(of_entry):
                if each is not None:
                    more, before = (each @ part.weights)[:, None], total[c]
                    total[c] = more if before is None else before + more


def _chunk_size(layout: Layout, features: Features, block: Block) -> int:
    """The number of points of a block whose derivatives of features fill `CHUNK_BYTES`, a power of two."""
    order = symbol_at(layout, block.term.lhs, block).order
    each = 8 * features.size * (1 + order * block.points.shape[1] + layout.components)
    return max(64, 2 ** ((CHUNK_BYTES // each).bit_length() - 1))


def left_values(
    layout: Layout, features: Features, block: Block, coefficients: Coefficients, memory: Memory | None = None
) -> Float[np.ndarray, "e k"]:
    """The left side of a block at its points, or its average; `memory` is what is known from assembling its system."""
    memory = Memory() if memory is None else memory
    size = _chunk_size(layout, features, block) if memory.jets else LEFT_SIDES
    parts = [
        _left(layout, features, block.part(here), coefficients, memory) for here in slices(len(block.points), size)
    ]
    return block.averaged(np.concatenate(parts))


def _left(
    layout: Layout, features: Features, block: Block, c: Coefficients, memory: Memory
) -> Float[np.ndarray, "n k"]:
    total = np.zeros((len(block.points), entries(layout, block)))
    spaces = features.sides(block.term)
    for side in local_sides(layout, block):

        def jet_of(which: tuple[Index, ...], side: Side = side) -> np.ndarray | None:
            known = [memory.known(space, side.points, which) for space in spaces]
            found = [each for each in known if each is not None]
            if len(found) == len(spaces):
                return _jet(spaces, found, side.points, which, c)
            return np.concatenate([derivatives(space, c, side.points, which) for space in spaces], axis=2)

        local = side.linearise(jet_of, memory)
        if local is None:
            return direct.left_sides(block.term.lhs, layout, features, c, block.points, block.normals)
        total += side.sign * local.left
    return total


def all_left_values(
    layout: Layout,
    features: Features,
    blocks: Sequence[Block],
    coefficients: Coefficients,
    memory: Memory | None = None,
) -> Vector:
    """The left sides of blocks, stacked as in a system."""
    return np.concatenate([left_values(layout, features, b, coefficients, memory).reshape(-1) for b in blocks])


def residuals(
    layout: Layout, features: Features, blocks: Sequence[Block], system: System, coefficients: Coefficients
) -> Vector:
    """Left minus right side of a linear problem; `system` was made at zero."""
    if system.folded is None:
        return system.moved(coefficients).left - system.right
    return all_left_values(layout, features, blocks, coefficients) - system.right
