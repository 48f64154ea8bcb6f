"""Local left sides: linearised by their symbols, and contracted with the derivatives of features."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Points, SpaceNormals, Vector
from pdofm.calculus.jets import Index
from pdofm.calculus.symbol import Linearisation, Symbol, symbol_of
from pdofm.calculus.terms import Layout, LeftSide, sides
from pdofm.discrete.collocate import Block
from pdofm.discrete.memory import Memory
from pdofm.problem.interface import layout_of


def entries(layout: Layout, block: Block) -> int:
    """Number of rows per point."""
    return symbol_at(layout, block.term.lhs, block).entries


def symbol_at(layout: Layout, lhs: LeftSide, block: Block) -> Symbol:
    return symbol_of(lhs, layout_of(block.term, layout), block.points.shape[1], block.normals.shape[1])


JetOf = Callable[[tuple[Index, ...]], np.ndarray | None]
"""The derivatives of a function at the points of a side; None if they are all zero."""


@dataclass(frozen=True, eq=False)
class Side:
    """One of the local left sides that a term consists of, at some points."""

    sign: float
    symbol: Symbol
    points: Points
    normals: SpaceNormals

    def linearise(self, jet_of: JetOf, memory: Memory) -> "Local | None":
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
        local = Local(found, used, found.left)
        jet = jet_of(local.which) if symbol.is_affine else None
        if jet is None:
            return local
        return replace(local, left=found.left + np.einsum("nkac,anc->nk", found.coefficients[:, :, used], jet))


@dataclass(frozen=True, eq=False)
class Local:
    """A local left side, linearised: its symbol, the numbers of the derivatives in it, and its values."""

    symbol: Linearisation
    used: Int[np.ndarray, " a"]
    left: Float[np.ndarray, "n k"]

    @property
    def which(self) -> tuple[Index, ...]:
        """The derivatives that it depends on."""
        return tuple(self.symbol.indices[i] for i in self.used)


def local_sides(layout: Layout, block: Block) -> list[Side]:
    return [
        Side(sign, symbol_at(layout, lhs, block), block.points + shift, block.normals)
        for sign, shift, lhs in sides(block.term.lhs, block.points.shape[1])
    ]


class Gradients:
    """The derivatives of left sides at n points with respect to the coefficients, one (m, n) array per entry of the
    left side and component; None where nothing depends on that component."""

    def __init__(self, k: int, components: int):
        self.parts: list[list[np.ndarray | None]] = [[None] * components for _ in range(k)]

    def add(self, sign: float, local: Local, jets: Float[np.ndarray, "a n m"], side: int = 0) -> None:
        """Contract a symbol with the derivatives of the features, on an interface of those on one side."""
        by_feature = np.swapaxes(jets, 1, 2)
        buffer = np.empty(by_feature.shape[1:])
        symbol = sign * local.symbol.coefficients[: 1 if local.symbol.is_constant else None, :, local.used]
        for k, of_entry in enumerate(self.parts):
            for c in range(len(of_entry)):
                for derivative, factor in zip(by_feature, symbol[:, k, :, side * len(of_entry) + c].T, strict=True):
                    if not factor.any():
                        continue
                    total = of_entry[c]
                    if total is None:
                        of_entry[c] = derivative * factor
                    else:
                        np.multiply(derivative, factor, out=buffer)
                        total += buffer

    def norms(self, n: int, sizes: Vector | None = None) -> Float[np.ndarray, "n k"]:
        """The norm of each row, for components of these sizes, by default 1."""
        found = np.zeros((n, len(self.parts)))
        for k, of_entry in enumerate(self.parts):
            for c, part in enumerate(of_entry):
                if part is not None:
                    squares = np.einsum("mn,mn->n", part, part)
                    found[:, k] += squares if sizes is None else squares * sizes[c] ** 2
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
