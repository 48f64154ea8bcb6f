"""From a problem, features and points to a least-squares system.

One mechanism serves linear and nonlinear problems. At coefficients c the left side of a term, linearised, is

    lhs(c + δ) ≈ lhs(c) + J δ,      J = d lhs / d c,

one row of J per point and entry. Reverse mode over c, forward mode inside the operators: with u(z) = Σ cⱼ φⱼ(z) every
derivative of u is a contraction of c with the same derivative of all features, so that J costs one forward pass of the
features, whatever their number.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pdofm._types import Points, Vector
from pdofm.collocate import Block, spread
from pdofm.errors import ProblemError
from pdofm.evaluate import Coefficients, bucket, chunks, largest_chunk, padded, pieces
from pdofm.features import Features
from pdofm.lstsq import Folding
from pdofm.problem import RightSide
from pdofm.terms import Layout, LeftSide, Term

LARGEST_MATRIX = 2**28
"""Bytes. Larger matrices are not kept in memory where the triangle will do."""

PROBED = 256
"""At so many points of every term it is tried whether the problem is linear; left sides are evaluated as many at a
time."""

AHEAD = 2
"""Evaluations that are begun before the results of one are used."""

TILE = 64
"""Rows that are transposed at once."""


@dataclass(frozen=True, eq=False)
class Probe:
    """Some points of a block and the gradients of the left side there, component by component."""

    points: Int[np.ndarray, " p"]
    gradients: Float[np.ndarray, "p k C m"]

    @classmethod
    def of(cls, count: int, n: int, k: int, components: int, size: int) -> "Probe":
        """Up to `count` points that are spread over a block of n, their gradients still unknown."""
        points = spread(n, count)
        return cls(points, np.empty((len(points), k, components, size)))

    def take(self, here: slice, gradient: Float[np.ndarray, "n k C m"]) -> None:
        """Keep the gradients of a chunk that belong to it."""
        mine = slice(*np.searchsorted(self.points, (here.start, here.stop)))
        self.gradients[mine] = gradient[self.points[mine] - here.start]


@dataclass(frozen=True, eq=False)
class System:
    """The scaled system A δ ≈ b of all blocks, and what it was made from.

    Row i of A is `scales[i]` times the gradient of the left side with respect to the coefficients, of norm equal to the
    weight of its term; ``b = scales * (right - left)``. Columns run over features first: entry ``f * C + j`` is
    component j of feature f, so that the leading columns are the space of the first features.

    Of very many rows only the triangle of [A b] is there, and `folded` has its last column. `unseen` is the system at
    points that are not fitted, if there are any.
    """

    A: Float[np.ndarray, "n columns"]
    left: Vector
    right: Vector
    scales: Vector
    rows: dict[str, slice]
    probes: dict[str, Probe]
    folded: Float[np.ndarray, " n"] | None = None
    unseen: "System | None" = None

    @property
    def b(self) -> Vector:
        """The scaled right-hand side of all rows: minus the residual."""
        return self.scales * (self.right - self.left)

    def moved(self, coefficients: Coefficients) -> "System":
        """The system of a linear problem at other coefficients, this one being at zero."""
        return replace(self, left=self.left + (self.A @ coefficients.reshape(-1)) / self.scales)

    @property
    def target(self) -> Float[np.ndarray, " n"]:
        """The right-hand side that belongs to the rows of A: b unless they are folded."""
        return self.b if self.folded is None else self.folded


@partial(jax.jit, static_argnames=("lhs", "layout"))
def _linearise(lhs: LeftSide, layout: Layout, features, coefficients: Array, points: Array, normals: Array):
    """Left sides (n, k), their gradients (n, k, C, m), component by component so that the long axis comes last, and
    the norms of these (n, k)."""

    def at(z: Array, normal: Array):
        def left(c: Array):
            u = layout.fields(lambda y: features.combine(y, c.T))
            last = layout.fields(lambda y: features.combine(y, jax.lax.stop_gradient(c.T)))
            value = lhs(u, last, layout.arguments(z), normal)
            return value, value

        gradient, value = jax.jacrev(left, has_aux=True)(coefficients.T)
        return value, gradient, jnp.sqrt(jnp.sum(gradient**2, axis=(1, 2)))

    return jax.vmap(at)(points, normals)


def entries(layout: Layout, block: Block) -> int:
    """Number of rows per point."""
    return _entries(block.term.lhs, layout, block.points.shape[1], block.normals.shape[1])


@lru_cache(maxsize=256)
def _entries(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> int:
    def left(z: Array, normal: Array) -> Array:
        u = layout.fields(lambda y: jnp.sum(y) * jnp.ones(layout.components))
        return lhs(u, u, layout.arguments(z), normal)

    shapes = [jax.ShapeDtypeStruct((n,), jnp.float64) for n in (dim, space_dim)]
    return jax.eval_shape(left, *shapes).shape[0]


def _right(right_side: RightSide, layout: Layout, points: Array | np.ndarray, normals: Array | np.ndarray) -> Array:
    return jax.vmap(lambda z, normal: right_side(layout, layout.arguments(z), normal))(points, normals)


_right_compiled = jax.jit(_right, static_argnames=("right_side", "layout"))


def right_values(
    layout: Layout, block: Block, columns: int, *, what: str | None = None, compiled: bool = True
) -> Float[np.ndarray, "n k"]:
    """The right side of a block at its points; `what` names it in messages.

    To compile pays for a function that is met again, not for one of a thousand that are evaluated once.
    """
    size = bucket(len(block.points))
    values = (_right_compiled if compiled else _right)(
        block.right_side, layout, padded(block.points, size), padded(block.normals, size)
    )
    values = np.asarray(values)[: len(block.points)]
    check_finite(values, data_name(block.term) if what is None else what, block.points)
    return np.broadcast_to(values, (len(values), columns))


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


class _Rows:
    """The rows of some blocks, all stacked, as they come."""

    def __init__(
        self, blocks: Sequence[Block], counts: Sequence[int], shape: tuple[int, int], *, fold: bool, probed: int
    ):
        size, components = shape
        total, columns = sum(len(block.points) * k for block, k in zip(blocks, counts, strict=True)), size * components
        worthwhile = 8 * total * columns > LARGEST_MATRIX and total > 2 * Folding.rows_held(columns)
        self.folding = Folding(columns) if fold and worthwhile else None
        # Fortran order, so that LAPACK factors it in place.
        self.A = np.empty((total if self.folding is None else 0, columns), order="F")
        self.left, self.right, self.scales = (np.empty(total) for _ in range(3))
        self.rows: dict[str, slice] = {}
        self.probes: dict[str, Probe] = {}
        start = 0
        for block, k in zip(blocks, counts, strict=True):
            name = block.term.name
            self.rows[name] = slice(start, start + len(block.points) * k)
            if probed > 0 and not block.term.is_linear:
                self.probes[name] = Probe.of(probed, len(block.points), k, components, size)
            start = self.rows[name].stop

    def take(
        self,
        block: Block,
        here: slice,
        value: Float[np.ndarray, "n k"],
        gradient: Float[np.ndarray, "n k C m"],
        norm: Float[np.ndarray, "n k"],
        right: Float[np.ndarray, "n k"],
    ) -> slice:
        """Enter some points of a block; returns their rows."""
        name, weight, k = block.term.name, block.term.weight, value.shape[1]
        at = slice(self.rows[name].start + here.start * k, self.rows[name].start + here.stop * k)
        by_component = gradient.reshape(-1, *gradient.shape[2:])
        self.left[at], self.right[at] = value.reshape(-1), right.reshape(-1)
        self.scales[at] = scale = weight / np.where(norm == 0, 1.0, norm).reshape(-1)
        if name in self.probes:
            self.probes[name].take(here, gradient)
        with np.errstate(invalid="ignore"):  # what is not finite is reported by those who use it
            if self.folding is None:
                components = by_component.shape[1]
                for j in range(components):
                    _scale_rows(by_component[:, j], scale, out=self.A[at, j::components])
            else:
                flat = np.swapaxes(by_component, 1, 2).reshape(len(scale), -1)
                self.folding.add(scale[:, None] * flat, scale * (self.right[at] - self.left[at]))
        return at

    def system(self) -> System:
        """What has come."""
        A, folded = (self.A, None) if self.folding is None else self.folding.reduced()
        return System(A, self.left, self.right, self.scales, self.rows, self.probes, folded)


def _scale_rows(rows: Float[np.ndarray, "n m"], scale: Vector, out: Float[np.ndarray, "n m"]) -> None:
    """Each row times its scale, from C to Fortran order: in tiles that stay in the cache while they are transposed."""
    for start in range(0, len(rows), TILE):
        tile = slice(start, start + TILE)
        np.multiply(rows[tile].T, scale[tile], out=out[tile].T)


@dataclass(frozen=True, eq=False)
class _Joint:
    """The same term in several sets of blocks; `whole` has the points of all of them, one set after the other."""

    blocks: Sequence[Block]
    whole: Block

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> "_Joint":
        points, normals = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("points", "normals"))
        return cls(blocks, replace(blocks[0], points=points, normals=normals))

    def padded(self, here: slice, size: int) -> tuple[Points, Float[np.ndarray, "n s"]]:
        """Some of the points and their normals, in the size that they are evaluated at."""
        return padded(self.whole.points[here], size), padded(self.whole.normals[here], size)

    def shares(self, here: slice) -> Iterator[tuple[int, slice, slice]]:
        """For each set that some of the points belong to: its number, which of its own points they are, and which of
        those here."""
        first = 0
        for i, block in enumerate(self.blocks):
            start, stop = max(here.start, first), min(here.stop, first + len(block.points))
            if start < stop:
                yield i, slice(start - first, stop - first), slice(start - here.start, stop - here.start)
            first += len(block.points)


def _ahead(begun: Iterator[Any]) -> Iterator[Any]:
    """The same results, each after the next few have been begun: they are computed while this one is used. What is
    wrong with those is found first."""
    waiting: deque[Any] = deque()
    for one in begun:
        waiting.append(one)
        if len(waiting) > AHEAD:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def assemble(
    layout: Layout,
    features: Features,
    blocks: Sequence[Block],
    coefficients: Coefficients,
    *,
    check: bool = True,
    fold: bool = False,
    probed: int = 0,
) -> System:
    """The linearised system at `coefficients`, all blocks stacked, in chunks of points.

    With `check` left sides that are not finite, and conditions that say nothing about the unknown, are errors. With
    `fold` a matrix above `LARGEST_MATRIX` with many more rows than columns is not kept: its rows are folded into a
    triangle as they come. It can be tried for linearity at `probed` points of every term.
    """
    return assemble_together(layout, features, [blocks], coefficients, check=check, fold=fold, probed=probed)[0]


def assemble_together(
    layout: Layout,
    features: Features,
    sets: Sequence[Sequence[Block]],
    coefficients: Coefficients,
    *,
    check: bool = True,
    fold: bool = False,
    probed: int = 0,
) -> list[System]:
    """One system for each of several sets of blocks, which have the same terms at other points: each term is evaluated
    at all of them in one go, and compiled once. Only the first set may be folded or probed."""
    shape, counts = coefficients.shape, [entries(layout, block) for block in sets[0]]
    filled = [
        _Rows(blocks, counts, shape, fold=fold and i == 0, probed=probed if i == 0 else 0)
        for i, blocks in enumerate(sets)
    ]

    def begun() -> Iterator[tuple[_Joint, slice, Float[np.ndarray, "n k"], tuple[Array, Array, Array]]]:
        for k, *blocks in zip(counts, *sets, strict=True):
            joint = _Joint.of(blocks)
            right = right_values(layout, joint.whole, k)
            for here, size in chunks(len(right), 8 * k * coefficients.size + features.working_bytes):
                args = joint.padded(here, size)
                yield joint, here, right, _linearise(joint.whole.term.lhs, layout, features, coefficients, *args)

    for joint, here, right, found in _ahead(begun()):
        value, gradient, norm = (np.asarray(array) for array in found)
        for i, own, mine in joint.shares(here):
            block, rows = joint.blocks[i], filled[i]
            at = rows.take(block, own, value[mine], gradient[mine], norm[mine], right[here][mine])
            if check:
                _check_rows(block, own, norm[mine].reshape(-1), rows.left[at], rows.right[at])
    return [rows.system() for rows in filled]


def _check_rows(block: Block, here: slice, norm: Vector, left: Vector, right: Vector) -> None:
    """Left sides must be finite; and a row of zeros can only hold if its data happen to be met."""
    name = block.term.name
    if not (np.isfinite(left).all() and np.isfinite(norm).all()):
        raise ProblemError(
            f"The left side of {name!r} is not finite at some of its points. "
            "Check the operator for divisions by zero or roots of negative numbers there."
        )
    failed = (norm == 0) & (np.abs(right - left) > 1e-12 * np.maximum(1.0, np.abs(right)))
    if block.term.on is not None and failed.any():
        points = block.points[here]
        at = points[np.flatnonzero(failed)[0] * len(points) // len(failed)].tolist()
        raise ProblemError(
            f"Condition {name!r} does not depend on the unknown at {failed.sum()} of {len(failed)} rows, for instance "
            f"at {at}, yet asks for a value. Check its part: a Neumann condition needs a normal in space."
        )


@partial(jax.jit, static_argnames=("lhs", "layout"))
def _left(lhs: LeftSide, layout: Layout, features, coefficients: Array, points: Array, normals: Array) -> Array:
    """Left sides alone, (n, k)."""
    u = layout.fields(lambda y: features.value_of(y, coefficients))
    return jax.vmap(lambda z, normal: lhs(u, u, layout.arguments(z), normal))(points, normals)


def left_values(
    layout: Layout, features: Features, block: Block, coefficients: Coefficients
) -> Float[np.ndarray, "n k"]:
    """The left side of a block at its points."""
    (found,) = all_left_values(layout, features, [[block]], coefficients)
    return found.reshape(len(block.points), -1)


def all_left_values(
    layout: Layout, features: Features, sets: Sequence[Sequence[Block]], coefficients: Coefficients
) -> list[Vector]:
    """The left sides of each of several sets of blocks, which have the same terms, stacked as in a system; in pieces of
    the shape in which linearity is first tried."""
    most = min(PROBED, largest_chunk(8 * coefficients.size + features.working_bytes))

    def begun() -> Iterator[tuple[_Joint, slice, Array]]:
        for blocks in zip(*sets, strict=True):
            joint = _Joint.of(blocks)
            n = len(joint.whole.points)
            for here, size in pieces(n, min(most, bucket(n))):
                args = joint.padded(here, size)
                yield joint, here, _left(joint.whole.term.lhs, layout, features, coefficients, *args)

    found: list[list[np.ndarray]] = [[] for _ in sets]
    for joint, here, values in _ahead(begun()):
        for i, _, mine in joint.shares(here):
            found[i].append(np.asarray(values)[mine].reshape(-1))
    return [np.concatenate(each) for each in found]


def residuals(
    layout: Layout, features: Features, blocks: Sequence[Block], system: System, coefficients: Coefficients
) -> Vector:
    """Left minus right side of a linear problem; `system` was made at zero."""
    if system.folded is None:
        return system.moved(coefficients).left - system.right
    (left,) = all_left_values(layout, features, [blocks], coefficients)
    return left - system.right
