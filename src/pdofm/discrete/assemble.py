"""From a problem, features and points to a least-squares system.

One mechanism serves linear and nonlinear problems. At coefficients c the left side of a term, linearised, is

    lhs(c + δ) ≈ lhs(c) + J δ,      J = d lhs / d c,

one row of J per point and entry. Two things that know nothing of each other meet in a row: the symbol of the term,
G_α = ∂ lhs / ∂(∂^α u), and the derivatives of the features,

    J[(i, k), (j, c)] = Σ_α G[i, k, α, c] ∂^α φ_j(x_i).

Left sides that look at u at other points, too, are differentiated with respect to the coefficients (see `direct`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Points, SpaceNormals, Vector
from pdofm.calculus.jets import Index
from pdofm.calculus.symbol import Linearisation, Symbol, symbol_of
from pdofm.calculus.terms import Layout, LeftSide, sides
from pdofm.discrete import direct
from pdofm.discrete.collocate import Block
from pdofm.discrete.direct import Coefficients
from pdofm.discrete.evaluate import derivatives
from pdofm.discrete.right import RightSides
from pdofm.errors import ProblemError
from pdofm.features import Features
from pdofm.numerics.batches import slices
from pdofm.numerics.lstsq import Folding

LARGEST_MATRIX = 2**28
"""Bytes. Larger matrices are not kept in memory where the triangle will do."""

CHUNK_BYTES = 2**24
"""Size of the derivatives of features that are contracted at once: small against the matrix, and large enough for the
batches of compiled features to be full."""

LEFT_SIDES = 4096
"""Points at which left sides alone are evaluated at once."""

REMEMBERED = 2**28
"""Bytes of derivatives of features that are kept for the next step of an iteration."""


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


def entries(layout: Layout, block: Block) -> int:
    """Number of rows per point."""
    return _symbol(layout, block.term.lhs, block).entries


def _symbol(layout: Layout, lhs: LeftSide, block: Block) -> Symbol:
    return symbol_of(lhs, layout, block.points.shape[1], block.normals.shape[1])


@dataclass
class Memory:
    """What does not change while a problem is solved again: right sides at points and, in an iteration, the derivatives
    of the features and the symbols of affine terms."""

    right_sides: RightSides = field(default_factory=RightSides)
    jets: dict[Any, np.ndarray] | None = None
    symbols: dict[Any, Linearisation | None] = field(default_factory=dict)
    bytes: int = 0

    def iterating(self) -> "Memory":
        """The same for an iteration in one space."""
        return Memory(self.right_sides, {})

    def linearised(self, symbol: Symbol, points: Points, normals: SpaceNormals) -> Linearisation | None:
        """The symbol of an affine left side at points."""
        if self.jets is None:
            return symbol.linearise(points, normals)
        key = (symbol, points.tobytes())
        if key not in self.symbols:
            self.symbols[key] = symbol.linearise(points, normals)
        return self.symbols[key]

    def derivatives(self, features: Features, points: Points, which: tuple[Index, ...]) -> np.ndarray:
        """The derivatives of the features at points."""
        if self.jets is None:
            return features.jets(points, which)
        found = self.known(points, which)
        if found is None:
            found = features.jets(points, which)
            if self.bytes + found.nbytes <= REMEMBERED:
                self.jets[points.tobytes(), which], self.bytes = found, self.bytes + found.nbytes
        return found

    def known(self, points: Points, which: tuple[Index, ...]) -> np.ndarray | None:
        """The derivatives of the features at points, if they are remembered."""
        return None if self.jets is None else self.jets.get((points.tobytes(), which))


JetOf = Callable[[tuple[Index, ...]], np.ndarray | None]
"""The derivatives of a function at the points of a side; None if they are all zero."""


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the local left sides that a term consists of, at some points."""

    sign: float
    symbol: Symbol
    points: Points
    normals: SpaceNormals

    def linearise(self, jet_of: JetOf, memory: Memory) -> "_Local | None":
        """The left side of a function, linearised; None if its jet does not determine it."""
        symbol, at = self.symbol, (self.points, self.normals)
        if not symbol.is_computable:
            return None
        if symbol.is_affine:
            found = memory.linearised(symbol, *at)
        else:
            found = symbol.linearise(*at, jet_of(symbol.indices(*at)))
        if found is None:
            return None
        # The derivatives whose coefficient is not zero everywhere.
        used = np.flatnonzero(np.any(found.coefficients[: 1 if found.is_constant else None] != 0, axis=(0, 1, 3)))
        local = _Local(found, used, found.left)
        jet = jet_of(local.which) if symbol.is_affine else None
        if jet is None:
            return local
        return replace(local, left=found.left + np.einsum("nkac,anc->nk", found.coefficients[:, :, used], jet))


@dataclass(frozen=True, eq=False)
class _Local:
    """A local left side, linearised: its symbol, the numbers of the derivatives in it, and its values."""

    symbol: Linearisation
    used: Int[np.ndarray, " a"]
    left: Float[np.ndarray, "n k"]

    @property
    def which(self) -> tuple[Index, ...]:
        """The derivatives that it depends on."""
        return tuple(self.symbol.indices[i] for i in self.used)


def _sides(layout: Layout, block: Block) -> list[_Side]:
    return [
        _Side(sign, _symbol(layout, lhs, block), block.points + shift, block.normals)
        for sign, shift, lhs in sides(block.term.lhs, block.points.shape[1])
    ]


class _Gradients:
    """The derivatives of left sides at n points with respect to the coefficients, one (m, n) array per entry of the
    left side and component; None where nothing depends on that component."""

    def __init__(self, k: int, components: int):
        self.parts: list[list[np.ndarray | None]] = [[None] * components for _ in range(k)]

    def add(self, sign: float, local: _Local, jets: Float[np.ndarray, "a n m"]) -> None:
        """Contract a symbol with the derivatives of the features."""
        by_feature = np.swapaxes(jets, 1, 2)
        buffer = np.empty(by_feature.shape[1:])
        symbol = sign * local.symbol.coefficients[: 1 if local.symbol.is_constant else None, :, local.used]
        for k, of_entry in enumerate(self.parts):
            for c in range(len(of_entry)):
                for derivative, factor in zip(by_feature, symbol[:, k, :, c].T, strict=True):
                    if not factor.any():
                        continue
                    total = of_entry[c]
                    if total is None:
                        of_entry[c] = derivative * factor
                    else:
                        np.multiply(derivative, factor, out=buffer)
                        total += buffer

    def norms(self, n: int) -> Float[np.ndarray, "n k"]:
        """The norm of each row."""
        found = np.zeros((n, len(self.parts)))
        for k, of_entry in enumerate(self.parts):
            for part in of_entry:
                if part is not None:
                    found[:, k] += np.einsum("mn,mn->n", part, part)
        return np.sqrt(found)

    def write(self, out: Float[np.ndarray, "rows columns"], scales: Float[np.ndarray, "n k"]) -> None:
        """The scaled rows, into an array in Fortran order: in its columns the points run fastest, as they do here."""
        n, components = len(scales), len(self.parts[0])
        by_feature = out.T.reshape(-1, components, n, len(self.parts))
        for k, of_entry in enumerate(self.parts):
            for c, part in enumerate(of_entry):
                if part is None:
                    by_feature[:, c, :, k] = 0.0
                else:
                    np.multiply(part, scales[:, k], out=by_feature[:, c, :, k])


def _jet(
    features: Features, jets: np.ndarray, points: Points, which: tuple[Index, ...], c: Coefficients
) -> np.ndarray | None:
    """The derivatives of a function from those of the features; None if they are all zero."""
    lifting = features.lifting(points, which, c.shape[1])
    if lifting is None:
        return jets @ c if c.any() else None
    return jets @ c + lifting


def _locally(
    layout: Layout, features: Features, block: Block, c: Coefficients, memory: Memory
) -> tuple[Float[np.ndarray, "n k"], _Gradients] | None:
    """Left sides and their gradients at the points of a block, from symbols and jets; None if the jet of u does not
    determine them."""
    k = entries(layout, block)
    left, gradients = np.zeros((len(block.points), k)), _Gradients(k, c.shape[1])
    for side in _sides(layout, block):
        jets: dict[tuple[Index, ...], np.ndarray] = {}

        def jet_of(which: tuple[Index, ...], side: _Side = side, jets: dict = jets) -> np.ndarray | None:
            jets[which] = memory.derivatives(features, side.points, which)
            return _jet(features, jets[which], side.points, which, c)

        local = side.linearise(jet_of, memory)
        if local is None:
            return None
        left += side.sign * local.left
        if not jets:
            jet_of(local.which)
        ((which, found),) = jets.items()
        gradients.add(side.sign, local, found if which == local.which else found[local.used])
    return left, gradients


def _directly(
    layout: Layout, features: Features, block: Block, c: Coefficients
) -> tuple[Float[np.ndarray, "n k"], _Gradients]:
    """The same by differentiation with respect to the coefficients."""
    left, found = direct.linearise(block.term.lhs, layout, features, c, block.points, block.normals)
    gradients = _Gradients(left.shape[1], c.shape[1])
    gradients.parts = [[found[:, k, j].T for j in range(c.shape[1])] for k in range(left.shape[1])]
    return left, gradients


class _Rows:
    """The rows of some blocks, all stacked, as they come."""

    def __init__(self, blocks: Sequence[Block], counts: Sequence[int], columns: int, *, fold: bool):
        total = sum(len(block.points) * k for block, k in zip(blocks, counts, strict=True))
        worthwhile = 8 * total * columns > LARGEST_MATRIX and total > 2 * Folding.rows_held(columns)
        self.folding = Folding(columns) if fold and worthwhile else None
        # Fortran order, so that LAPACK factors it in place.
        self.A = np.empty((total if self.folding is None else 0, columns), order="F")
        self.left, self.right, self.scales = (np.empty(total) for _ in range(3))
        self.rows: dict[str, slice] = {}
        start = 0
        for block, k in zip(blocks, counts, strict=True):
            self.rows[block.term.name] = slice(start, start + len(block.points) * k)
            start += len(block.points) * k

    def take(
        self, block: Block, here: slice, left: np.ndarray, gradients: _Gradients, right: np.ndarray, *, check: bool
    ) -> None:
        """Enter some points of a block."""
        n, k = left.shape
        start = self.rows[block.term.name].start
        at = slice(start + here.start * k, start + here.stop * k)
        norms = gradients.norms(n)
        scales = block.term.weight / np.where(norms == 0, 1.0, norms)
        self.left[at], self.right[at], self.scales[at] = left.reshape(-1), right.reshape(-1), scales.reshape(-1)
        if check:
            _check_rows(block, here, norms.reshape(-1), self.left[at], self.right[at])
        with np.errstate(invalid="ignore"):  # what is not finite is reported by those who use it
            if self.folding is None:
                gradients.write(self.A[at], scales)
            else:
                rows = np.empty((n * k, self.folding.columns), order="F")
                gradients.write(rows, scales)
                self.folding.add(rows, self.scales[at] * (self.right[at] - self.left[at]))

    def system(self) -> System:
        """The assembled system."""
        A, folded = (self.A, None) if self.folding is None else self.folding.reduced()
        return System(A, self.left, self.right, self.scales, self.rows, folded)


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
) -> System:
    """The linearised system at `coefficients`, all blocks stacked, in chunks of points.

    With `check` left sides that are not finite, and conditions that say nothing about the unknown, are errors. With
    `fold` a matrix above `LARGEST_MATRIX` with many more rows than columns is not kept: its rows are folded into a
    triangle as they come. `memory` is what is known from before, `role` what these points are called in it.
    """
    memory = Memory() if memory is None else memory
    counts = [entries(layout, block) for block in blocks]
    filled = _Rows(blocks, counts, coefficients.size, fold=fold)
    for block, k in zip(blocks, counts, strict=True):
        right = memory.right_sides(layout, block, k, role)
        for here in slices(len(block.points), _chunk_size(layout, features, block)):
            part = block.part(here)
            found = _locally(layout, features, part, coefficients, memory)
            left, gradients = _directly(layout, features, part, coefficients) if found is None else found
            filled.take(block, here, left, gradients, right[here], check=check)
    return filled.system()


def _chunk_size(layout: Layout, features: Features, block: Block) -> int:
    """The number of points of a block whose derivatives of features fill `CHUNK_BYTES`, a power of two."""
    order = _symbol(layout, block.term.lhs, block).order
    each = 8 * features.size * (1 + order * block.points.shape[1] + layout.components)
    return max(64, 2 ** ((CHUNK_BYTES // each).bit_length() - 1))


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


def left_values(
    layout: Layout, features: Features, block: Block, coefficients: Coefficients, memory: Memory | None = None
) -> Float[np.ndarray, "n k"]:
    """The left side of a block at its points; `memory` is what is known from assembling its system."""
    memory = Memory() if memory is None else memory
    size = _chunk_size(layout, features, block) if memory.jets else LEFT_SIDES
    parts = [
        _left(layout, features, block.part(here), coefficients, memory) for here in slices(len(block.points), size)
    ]
    return np.concatenate(parts)


def _left(
    layout: Layout, features: Features, block: Block, c: Coefficients, memory: Memory
) -> Float[np.ndarray, "n k"]:
    total = np.zeros((len(block.points), entries(layout, block)))
    for side in _sides(layout, block):

        def jet_of(which: tuple[Index, ...], side: _Side = side) -> np.ndarray | None:
            known = memory.known(side.points, which)
            if known is None:
                return derivatives(features, c, side.points, which)
            return _jet(features, known, side.points, which, c)

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
