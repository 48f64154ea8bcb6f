"""Right sides: the data of a problem at collocation points."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.calculus.terms import Layout, Term
from pdofm.discrete.collocate import Block
from pdofm.errors import ProblemError
from pdofm.numerics.batches import padded
from pdofm.problem.data import at_points, values_at

RightValues = Float[np.ndarray, "n k"]

LARGEST, SMALLEST = 1e100, 1e-100
"""Sizes of data whose squares, and products with the coefficients of an equation, are ordinary numbers."""

UNITS = (
    f"beyond what can be computed with: data must be between {SMALLEST:g} and {LARGEST:g}, or zero. State the problem "
    "in other units: divide all data by their size and multiply the solution by it."
)


def right_values(
    layout: Layout, block: Block, columns: int, *, what: str | None = None, compiled: bool = True
) -> RightValues:
    """The right side of a block at its points; `what` names it in messages.

    Compiling pays for a function that will be evaluated again, but not for one of a thousand that are evaluated once.
    """
    n, side = len(block.points), block.right_side
    if compiled or side.numbers is not None:
        values = values_at(side, layout, block.points, block.normals)
    else:
        size = _rounded(n)
        values = np.asarray(at_points(side, layout, padded(block.points, size), padded(block.normals, size)))[:n]
    check_finite(values, data_name(block.term) if what is None else what, block.points)
    return np.broadcast_to(values, (n, columns))


class RightSides:
    """Right sides at points, remembered: a growing space keeps the points of the smaller one and adds others."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Block, RightValues]] = {}

    def __call__(self, layout: Layout, block: Block, columns: int, role: str) -> RightValues:
        """The right side of a block; `role` tells apart sets of points of the same term."""
        self.learn(layout, {role: block}, columns)
        return self._known[role, block.term.name][1][: len(block.points)]

    def learn(self, layout: Layout, blocks: dict[str, Block], columns: int) -> None:
        """Evaluate the right side of one term in several roles where it is not known yet, in a single call."""
        known = {role: self._beginning(role, block) for role, block in blocks.items()}
        new = {role: block.part(slice(len(known[role]), None)) for role, block in blocks.items()}
        new = {role: block for role, block in new.items() if len(block.points) > 0}
        if not new:
            return
        points, normals = (np.concatenate([getattr(b, name) for b in new.values()]) for name in ("points", "normals"))
        values = right_values(layout, replace(next(iter(new.values())), points=points, normals=normals), columns)
        ends = np.cumsum([len(block.points) for block in new.values()])
        for role, part in zip(new, np.split(values, ends[:-1]), strict=True):
            whole = np.concatenate([known[role], part]) if len(known[role]) else part
            self._known[role, blocks[role].term.name] = blocks[role], whole

    def _beginning(self, role: str, block: Block) -> RightValues:
        """What is known of the right side at the first points of a block."""
        before, values = self._known.get((role, block.term.name), (None, np.empty((0, 0))))
        if before is block:
            return values
        if before is None or before.right_side != block.right_side:
            return values[:0]
        return values[: _common(before, block)]


def _common(a: Block, b: Block) -> int:
    """How many points two blocks have in common at their beginning."""
    n = min(len(a.points), len(b.points))
    equal = (a.points[:n] == b.points[:n]).all(axis=1) & (a.normals[:n] == b.normals[:n]).all(axis=1)
    return n if equal.all() else int(np.argmin(equal))


def _rounded(n: int) -> int:
    """n rounded up to one of four sizes per power of two. Code that is not compiled as a whole is compiled operation by
    operation, and again for every size."""
    step = max(1, 2 ** (max(n - 1, 1).bit_length() - 3))
    return -(-n // step) * step


def data_name(term: Term) -> str:
    """What the right side of a term is called in messages."""
    return "source" if term.on is None else f"value of condition {term.name!r}"


def check_size(right: Float[np.ndarray, " n"], name: str) -> None:
    """Refuse data that are so small, all of them, that their squares vanish."""
    largest = float(np.abs(right).max(initial=0.0))
    if 0 < largest < SMALLEST:
        raise ProblemError(f"The data of {name!r} are of size {largest:.0e}, {UNITS}")


def check_finite(
    values: Float[np.ndarray, "n k"],
    what: str,
    points: Points,
    remedy: str = "Check the function there, or use other points.",
) -> None:
    """Refuse data that are not finite, and say where."""
    largest = float(np.abs(values).max(initial=0.0))
    if LARGEST < largest < np.inf:
        raise ProblemError(f"The {what} is of size {largest:.0e}, {UNITS}")
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        raise ProblemError(
            f"The {what} is not finite at {len(bad)} of {len(values)} points, for instance {values[bad[0]].tolist()} "
            f"at {points[bad[0]].tolist()}. {remedy}"
        )
