"""Evolutions in a box whose derivatives in space separate: ∂u/∂t = Σ_j a_j ∂²u/∂x_j² + f(x, t, u), or of second order
in time, with conditions of one kind on each face."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pdofm.calculus.jets import Index
from pdofm.calculus.symbol import Linearisation, random_jet
from pdofm.calculus.terms import Term
from pdofm.domain import Part
from pdofm.domain.boundary import Piece
from pdofm.marching.arrays import Vector
from pdofm.marching.statement import Statement
from pdofm.marching.termat import SAME, Matrix, TermAt
from pdofm.marching.trees import in_space
from pdofm.numerics.nodes import gauss, tensor

PROBES = 24
"""Points at which the coefficients of the equation are compared; wherever it is evaluated later they are again."""

DENSE = 4096
"""Points of a face at which the coefficients of a condition are compared, if they may depend on the place."""


@dataclass(frozen=True, eq=False)
class Face:
    """A face of the box and what holds on it: entry by entry of a term the component, and the factors of its value and
    of its slope along the axis."""

    axis: int
    side: int
    term: Term
    entries: tuple[tuple[int, float, float], ...]

    def coefficients(self, dim: int, components: int) -> dict[Index, Matrix]:
        """The coefficients of the value and of the slope, by derivative, in a box with `dim` axes."""
        found = {index: np.zeros((len(self.entries), components)) for index in _value_and_slope(dim, self.axis)}
        for row, (component, *factors) in enumerate(self.entries):
            for matrix, factor in zip(found.values(), factors, strict=True):
                matrix[row, component] = factor
        return found


@dataclass(frozen=True, eq=False)
class Separated:
    """The constant coefficients of an equation that separates, (C,) by derivative, and the conditions on its faces."""

    constant: dict[Index, Vector]
    faces: tuple[Face, ...]


def separated(statement: Statement) -> Separated | None:
    """The parts of an equation that separates; None if it does not, or its conditions do not."""
    space = statement.domain.space
    if not space.is_box or statement.periodic or len(set(statement.time_orders)) > 1:
        return None
    if any(set(statement.orders(axis)) != {2} for axis in range(space.dim)):
        return None
    constant = _constant(statement)
    faces = _faces(statement)
    return None if constant is None or faces is None else Separated(constant, faces)


def _looked_at(statement: Statement, at: TermAt) -> Linearisation | None:
    """A term linearised at random values, at some times."""
    domain = statement.domain
    z, normals = at.at(domain.t0 + (domain.t1 - domain.t0) * np.array([0.0, 0.3819, 1.0]))
    return at.symbol.linearise(z, normals, random_jet(len(at.symbol.indices(z, normals)), len(z), statement.components))


def _constant(statement: Statement) -> dict[Index, Vector] | None:
    """The derivatives with constant coefficients, of one component in each equation. These must be all in space, of
    second order and not mixed, and the highest in time; u itself, and its other time derivatives, may have any."""
    at = statement.placed(statement.equation, statement.domain.space.sample(PROBES))
    found = _looked_at(statement, at)
    if found is None:
        return None
    constant: dict[Index, Vector] = {}
    for a, index in enumerate(found.indices):
        G = found.coefficients[:, :, a]  # (points, equation, component)
        *orders, in_time = index
        if not G.any():
            continue
        own = np.eye(statement.components, dtype=bool)[list(statement.matched)]
        steady = _is_constant(G) and not G[:, ~own].any()
        may_vary = not any(orders) and in_time < statement.order
        if steady and (not may_vary or (at.symbol.is_affine and at.symbol.has_constant_coefficients)):
            constant[index] = np.array([G[0, list(statement.matched).index(c), c] for c in range(len(own))])
        elif not may_vary:
            return None
        if any(orders) and (in_time or sorted(orders)[-1] != sum(orders) or sum(orders) != 2):
            return None
    return constant


def _is_constant(coefficients: Float[np.ndarray, "n k C"]) -> bool:
    """Whether coefficients are the same at all points."""
    return bool(np.all(np.ptp(coefficients, axis=0) <= SAME * np.abs(coefficients).max(axis=0)))


def _faces(statement: Statement) -> tuple[Face, ...] | None:
    """What holds on each face: one condition for each component, with constant coefficients on the whole of it."""
    found, kept = [], set[tuple[int, int, int]]()
    for term in statement.lateral:
        assert isinstance(term.on, Part)
        for piece in map(in_space, term.on.pieces):
            place = _whole_face(statement, piece)
            entries = None if place is None else _entries(statement, term, piece, place[0])
            if place is None or entries is None:
                return None
            found.append(Face(*place, term, entries))
            kept |= {(*place, c) for c, _, _ in entries}
    count = sum(len(face.entries) for face in found)
    needed = 2 * statement.domain.space.dim * statement.components
    return tuple(found) if len(kept) == count == needed else None


def _whole_face(statement: Statement, piece: Piece) -> tuple[int, int] | None:
    """The axis and the side of a piece that is a whole face of the box."""
    space = statement.domain.space
    if piece.keep is not None:
        return None
    ends = piece.chart(np.array([[0.0] * piece.dim, [1.0] * piece.dim]))[0]
    for axis in range(space.dim):
        for side, bound in enumerate((space.lower, space.upper)):
            corners = np.stack([space.lower, space.upper])
            corners[:, axis] = bound[axis]
            if np.array_equal(ends, corners) or np.array_equal(ends[::-1], corners):
                return axis, side
    return None


def _value_and_slope(dim: int, axis: int) -> tuple[Index, Index]:
    """The derivatives that a condition may contain."""
    return (0,) * (dim + 1), tuple(int(a == axis) for a in range(dim + 1))


def _entries(statement: Statement, term: Term, piece: Piece, axis: int) -> tuple[tuple[int, float, float], ...] | None:
    """The entries of a condition on a face; None if one does not have constant coefficients or several components."""
    at = statement.placed(term, *piece.chart(tensor([gauss(5)] * piece.dim)))
    if not at.symbol.has_constant_coefficients:
        count = math.ceil(DENSE ** (1 / max(piece.dim, 1)))
        at = statement.placed(term, *piece.chart(tensor([(np.arange(count) + 0.5) / count] * piece.dim)))
    found = _looked_at(statement, at) if at.symbol.is_affine and at.symbol.is_autonomous else None
    if found is None:
        return None
    dim, components = statement.domain.space.dim, statement.components
    value, slope = _value_and_slope(dim, axis)
    G = {
        index: found.coefficients[:, :, a] for a, index in enumerate(found.indices) if found.coefficients[:, :, a].any()
    }
    if not (set(G) <= {value, slope} and all(map(_is_constant, G.values()))):
        return None
    none = np.zeros((at.entries, components))
    values, slopes = (G[index][0] if index in G else none for index in (value, slope))
    entries = []
    for row, other in zip(values, slopes, strict=True):
        own = np.flatnonzero((row != 0) | (other != 0))
        if len(own) != 1:
            return None
        entries.append((int(own[0]), float(row[own[0]]), float(other[own[0]])))
    return tuple(entries)
