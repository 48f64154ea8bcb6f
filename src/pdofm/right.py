"""Right sides: the data of a problem at collocation points."""

from collections.abc import Callable

import jax
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Points
from pdofm.batches import padded, slices
from pdofm.collocate import Block
from pdofm.errors import ProblemError
from pdofm.problem import RightSide
from pdofm.terms import Layout, Term

BATCH = 512
"""Points that a right side is evaluated at in one go: one shape, one compilation."""

RightValues = Float[np.ndarray, "n k"]


def _right(right_side: RightSide, layout: Layout, points: Array | np.ndarray, normals: Array | np.ndarray) -> Array:
    return jax.vmap(lambda z, normal: right_side(layout, layout.arguments(z), normal))(points, normals)


_right_compiled: Callable[..., Array] = jax.jit(_right, static_argnames=("right_side", "layout"))


def right_values(
    layout: Layout, block: Block, columns: int, *, what: str | None = None, compiled: bool = True
) -> RightValues:
    """The right side of a block at its points; `what` names it in messages.

    To compile pays for a function that is met again, not for one of a thousand that are evaluated once.
    """
    n, numbers = len(block.points), block.right_side.numbers
    if numbers is not None:
        values = np.broadcast_to(np.array(numbers), (n, len(numbers)))
    elif compiled:
        parts = []
        for here in slices(n, BATCH):
            args = (padded(each[here], BATCH) for each in (block.points, block.normals))
            parts.append(np.asarray(_right_compiled(block.right_side, layout, *args))[: here.stop - here.start])
        values = np.concatenate(parts)
    else:
        size = _rounded(n)
        values = _right(block.right_side, layout, padded(block.points, size), padded(block.normals, size))
        values = np.asarray(values)[:n]
    check_finite(values, data_name(block.term) if what is None else what, block.points)
    return np.broadcast_to(values, (n, columns))


class RightSides:
    """Right sides at points, remembered: a search meets the same points again, and more of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Block, RightValues]] = {}

    def __call__(self, layout: Layout, block: Block, columns: int, role: str) -> RightValues:
        """The right side of a block; `role` tells apart sets of points of the same term."""
        key, n = (role, block.term.name), len(block.points)
        before, values = self._known.get(key, (None, None))
        same = 0 if before is None or before.right_side != block.right_side else _common(before, block)
        if values is None or same == 0:
            values = right_values(layout, block, columns)
        elif same == n:
            return values[:n]
        else:
            values = np.concatenate([values[:same], right_values(layout, block.part(slice(same, None)), columns)])
        self._known[key] = block, values
        return values


def _common(a: Block, b: Block) -> int:
    """How many points two blocks have in common at their beginning."""
    n = min(len(a.points), len(b.points))
    equal = (a.points[:n] == b.points[:n]).all(axis=1) & (a.normals[:n] == b.normals[:n]).all(axis=1)
    return n if equal.all() else int(np.argmin(equal))


def _rounded(n: int) -> int:
    """n rounded up to one of four sizes per power of two: what is not compiled as a whole is compiled operation by
    operation, for every size anew."""
    step = max(1, 2 ** (max(n - 1, 1).bit_length() - 3))
    return -(-n // step) * step


def data_name(term: Term) -> str:
    """What the right side of a term is called in messages."""
    return "source" if term.on is None else f"value of condition {term.name!r}"


def check_finite(
    values: Float[np.ndarray, "n k"],
    what: str,
    points: Points,
    remedy: str = "Check the function there, or use other points.",
) -> None:
    """Refuse data that are not finite, and say where."""
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        raise ProblemError(
            f"The {what} is not finite at {len(bad)} of {len(values)} points, for instance {values[bad[0]].tolist()} "
            f"at {points[bad[0]].tolist()}. {remedy}"
        )
