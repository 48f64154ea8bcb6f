"""What holds between the boxes of a tree and on the boundary around them: no jumps, and the conditions."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_array, csc_array

from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Term
from pdofm.discrete.cover import Cover
from pdofm.discrete.skeleton import on_part, seams
from pdofm.domain import Part
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.spaces import States
from pdofm.marching.statement import Statement
from pdofm.marching.termat import JetOf, TermAt
from pdofm.marching.trees import part_in_space

MORE_POINTS = 2
"""Points along a seam beyond those of least squares: as many as there are polynomials on it, so that no function in the
space has a jump."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A condition at points: the term there, its derivatives, and what multiplies its rows."""

    at: TermAt
    used: tuple[Index, ...]
    patch: Int[np.ndarray, " n"]
    tables: dict[Index, Float[np.ndarray, "n q"]]
    scale: Float[np.ndarray, " n"]


class Joints:
    """The rows of the seams and conditions of a cover, for polynomials of one degree along each axis."""

    def __init__(self, statement: Statement, cover: Cover, degree: int, times: Vector):
        self.statement, self.cover, self.patches, self.degree = statement, cover, cover.patches, degree
        self.dim, self.q, self._times = cover.domain.dim, (degree + 1) ** cover.domain.dim, times
        self.shape = (len(self.patches), statement.components, self.q)
        self.size = int(np.prod(self.shape))

    def residual(self, states: States, times: Vector) -> Float[np.ndarray, "p _"]:
        """Jumps and violations of the conditions at several times."""
        rows = [(self._seams @ states[0].T).T]
        for each in self._conditions:
            found = each.at.residual(times, self._jet_of(each, states), each.used)
            rows.append((found * each.scale[:, None]).reshape(len(times), -1))
        return np.concatenate(rows, axis=1)

    def _jet_of(self, rows: Rows, states: States) -> JetOf:
        """The derivatives of a function at the points of a condition."""

        def jet(index: Index) -> Float[np.ndarray, "p n C"]:
            of = states[index[-1]].reshape(-1, *self.shape)
            return np.einsum("nq,pncq->pnc", rows.tables[index[:-1]], of[:, rows.patch], optimize=True)

        return jet

    def matrix(self, states: States, time: float, power: int) -> csc_array:
        """The seams and conditions, linearised, with this power of the time derivative."""
        position = np.arange(self.size).reshape(self.shape)
        seam = self._seams.tocoo()
        rows, columns, entries, start = [], [], [], seam.shape[0]
        if power == 0:
            rows, columns, entries = [seam.row], [seam.col], [seam.data]
        for each in self._conditions:
            G = each.at.coefficients(time, self._jet_of(each, states), each.used) * each.scale[:, None, None, None]
            n, k = G.shape[:2]
            for a, index in enumerate(each.used):
                if index[-1] == power:
                    block = np.einsum("nkc,nq->nkcq", G[:, :, a], each.tables[index[:-1]])
                    numbers = start + np.arange(n * k).reshape(n, k, 1, 1)
                    where = np.broadcast_arrays(numbers, position[each.patch][:, None])
                    rows.append(where[0].reshape(-1))
                    columns.append(where[1].reshape(-1))
                    entries.append(block.reshape(-1))
            start += n * k
        if not rows:
            return csc_array((start, self.size))
        where = np.concatenate(rows), np.concatenate(columns)
        return csc_array(coo_array((np.concatenate(entries), where), shape=(start, self.size)))

    @cached_property
    def _conditions(self) -> list[Rows]:
        return [self._condition(term) for term in self.statement.lateral]

    def _condition(self, term: Term) -> Rows:
        assert isinstance(term.on, Part)
        placed = on_part(self.cover, part_in_space(term.on))
        at = self.statement.placed(term, placed.points, placed.normals)
        used = at.used(self._times)
        order = max((sum(index[:-1]) for index in used), default=0)
        width = np.min(self.patches.upper - self.patches.lower, axis=1)[placed.patch]
        which = list(dict.fromkeys(index[:-1] for index in used))
        tables = dict(zip(which, self._at(placed.patch, placed.points, which), strict=True))
        return Rows(at, used, placed.patch, tables, (width / self.degree) ** order)

    def _at(self, patch: Int[np.ndarray, " n"], points: Points, which: list[Index]) -> Float[np.ndarray, "a n q"]:
        found = np.empty((len(which), len(points), self.q))
        for number in np.unique(patch).tolist():
            at = patch == number
            found[:, at] = self.patches.jets(number, points[at], which)
        return found

    @cached_property
    def _seams(self) -> csc_array:
        """The jumps between patches, scaled by powers of the width."""
        rows, columns, entries, start = [], [], [], 0
        orders = [self.statement.orders(axis) for axis in range(self.dim)]
        position = np.arange(self.size).reshape(self.shape)
        for seam in seams(self.cover, sorted(self.statement.periodic), more=MORE_POINTS):
            which = [tuple(j * (a == seam.axis) for a in range(self.dim)) for j in range(max(orders[seam.axis]))]
            if not which:
                continue
            sides = (seam.first, seam.second)
            width = min(float(self.patches.upper[s, seam.axis] - self.patches.lower[s, seam.axis]) for s in sides)
            n = len(seam.points)
            jets = [self.patches.jets(s, seam.points + k * seam.shift, which) for k, s in enumerate(sides)]
            for component, order in enumerate(orders[seam.axis]):
                for j in range(order):
                    for side, values, sign in zip(sides, jets, (1.0, -1.0), strict=True):
                        entries.append((sign * (width / self.degree) ** j * values[j]).reshape(-1))
                        columns.append(np.tile(position[side, component], n))
                        rows.append(np.repeat(start + np.arange(n), self.q))
                    start += n
        if not rows:
            return csc_array((0, self.size))
        where = np.concatenate(rows), np.concatenate(columns)
        return csc_array(coo_array((np.concatenate(entries), where), shape=(start, self.size)))
