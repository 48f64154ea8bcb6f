"""Space in one dimension: polynomials in intervals that are halved and joined as the solution needs it.

In every interval the equation is tested with Legendre polynomials: an equation of order d with those up to degree
n - d, where n is the degree of the solution. Values and derivatives up to order d - 1 agree between neighbours, and the
conditions hold at the ends; together these are as many equations as unknowns. At the nodes of Radau's method in time
all of them are satisfied to rounding, so nothing grows by itself.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.sparse import csr_array

from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Term
from pdofm.domain import Part
from pdofm.domain.tree import BoxTree
from pdofm.errors import SolveError
from pdofm.features.boxes import BoxPolynomials, Patches
from pdofm.features.spectral import table
from pdofm.marching.arrays import Mask, Points, Vector
from pdofm.marching.band import BandFactors, BandPattern
from pdofm.marching.dyadic import Boxes, chebyshev_fit, halved, joined, local_sizes
from pdofm.marching.spaces import States, forget
from pdofm.marching.statement import PROBES, Statement
from pdofm.marching.termat import TermAt

FIRST_LEVEL = 5
"""The interval is first cut into 2^5 parts, to see details of the initial values; those not needed are joined again."""

DEEPEST = 40
"""The smallest interval is the whole divided by 2^40: rounding leaves four digits of positions inside it."""

State = Float[np.ndarray, "... _"]
"""Coefficients of functions, flattened from (boxes, components, degree + 1)."""


@lru_cache(maxsize=64)
def _tables(degree: int, orders: int) -> tuple[np.ndarray, np.ndarray, Vector, Vector]:
    """Derivatives of Chebyshev polynomials at Gauss points (order, point, polynomial) and at both ends, with the Gauss
    points and their weights."""
    points, weights = np.polynomial.legendre.leggauss(degree + 1)

    def at(y: Vector) -> np.ndarray:
        return np.swapaxes(table([y, 1.0, *[0.0] * orders][: orders + 1], degree), 1, 2)

    return at(points), at(np.array([-1.0, 1.0])), points, weights


@dataclass(frozen=True, eq=False)
class Linear:
    """The linearised terms: their entries by power of the time derivative, in the order of the pattern."""

    powers: tuple[Float[np.ndarray, " e"], ...]


class Intervals:
    """Polynomials of one degree in intervals. `boxes` are in ascending order. Down to `floor`, a fraction of the whole,
    what is small is represented relative to its own size."""

    kind = "polynomials in intervals"

    def __init__(self, statement: Statement, degree: int, boxes: Boxes, floor: float = 1.0):
        self.statement, self.degree, self.boxes, self.floor = statement, degree, boxes, floor
        domain, space = statement.domain, statement.domain.space
        whole = float(space.upper[0] - space.lower[0])
        self.low = np.array([space.lower[0] + whole * number / 2.0**level for level, number in boxes])
        self.width = np.array([whole / 2.0**level for level, _ in boxes])
        self.share = self.width / whole
        self.shape = (len(boxes), statement.components, degree + 1)
        self.size = int(np.prod(self.shape))
        self.orders = statement.orders(0)
        free = np.array([order == 0 for order in statement.time_orders])
        self.algebraic = np.broadcast_to(free[:, None], self.shape).reshape(-1)
        self._times = domain.t0 + (domain.t1 - domain.t0) * np.array([0.0, 0.3819, 1.0])
        highest = max(statement.equation_order, *self.orders)
        self._at_points, self._at_ends, self._points, self._weights = _tables(degree, highest)
        nodes = self.low[:, None] + self.width[:, None] * (self._points + 1) / 2
        self._equation = statement.placed(statement.equation, nodes.reshape(-1, 1))
        self._used = self._equation.used(self._times)
        self._tests = [self._test(self.orders[component]) for component in statement.matched]
        self._ends = [self._ending(term) for term in statement.lateral]
        self._check_count()

    @classmethod
    def first(cls, statement: Statement, degree: int, floor: float = 1.0) -> "Intervals":
        """The intervals to begin with."""
        return cls(statement, degree, tuple((FIRST_LEVEL, i) for i in range(2**FIRST_LEVEL)), floor)

    def forget(self) -> None:
        """Free the memory of tables."""
        forget(self, "_pattern", "_columns", "_seams")

    def _like(self, boxes: Boxes) -> "Intervals":
        return Intervals(self.statement, self.degree, boxes, self.floor)

    def _test(self, lost: int) -> Float[np.ndarray, "j g"]:
        """Legendre polynomials at the Gauss points, times weights; fewer by the order of an equation."""
        count = self.degree + 1 - lost
        if count < 1:
            raise SolveError(f"Polynomials of degree {self.degree} are too few for an equation of order {lost}.")
        values = np.polynomial.legendre.legvander(self._points, count - 1)
        return (values * np.sqrt(np.arange(count) + 0.5)).T * self._weights

    def _ending(self, term: Term) -> tuple[TermAt, tuple[Index, ...], np.ndarray]:
        """A condition at the ends where it holds, with the derivatives in it and those ends (0 or 1)."""
        assert isinstance(term.on, Part)
        normals = term.on.sample(PROBES)[1]
        space = self.statement.domain.space
        sides = np.flatnonzero([np.any(normals[:, 0] < 0), np.any(normals[:, 0] > 0)])
        at = self.statement.placed(
            term, np.array([[(space.lower[0], space.upper[0])[side]] for side in sides]), 2.0 * sides[:, None] - 1
        )
        return at, at.used(self._times), sides

    def _check_count(self) -> None:
        found = sum(at.entries * len(sides) for at, _, sides in self._ends)
        needed = 0 if self.statement.periodic else sum(self.orders)
        if found != needed:
            raise SolveError(
                f"march needs as many boundary conditions as the orders of the equation in space add up to, {needed}; "
                f"got {found}. State each of them at one end (on=domain.part('x0=lower')), or use "
                "solve(problem, features)."
            )

    # Functions: jets, norms, tails

    def _jet(self, states: list[State], index: Index) -> Float[np.ndarray, "p n C"]:
        """A derivative at the Gauss points of all intervals; states holds a function and its time derivatives."""
        order, in_time = index
        of = states[in_time].reshape(-1, *self.shape)
        found = np.einsum("gm,pbcm->pbgc", self._at_points[order], of, optimize=True)
        found *= ((2 / self.width) ** order)[:, None, None]
        return found.reshape(len(of), -1, self.shape[1])

    def _end_jet(self, states: list[State], sides: np.ndarray, index: Index) -> Float[np.ndarray, "p n C"]:
        order, in_time = index
        of = states[in_time].reshape(-1, *self.shape)
        box = np.where(sides == 0, 0, len(self.boxes) - 1)
        table = self._at_ends[order][sides] * ((2 / self.width[box]) ** order)[:, None]
        return np.einsum("nm,pncm->pnc", table, of[:, box])

    def quadrature(self) -> tuple[Points, Vector]:
        """The Gauss points of all intervals, and their weights."""
        return self._equation.points, np.outer(self.share, self._weights / 2).reshape(-1)

    def norms(self, state: State) -> Float[np.ndarray, "... C"]:
        """The root mean square of each component over space."""
        of = state.reshape(-1, *self.shape)
        values = np.einsum("gm,pbcm->pbgc", self._at_points[0], of, optimize=True)
        square = np.einsum("pbgc,g,b->pc", values**2, self._weights / 2, self.share)
        return np.sqrt(square).reshape(*state.shape[:-1], -1)

    def tails(self, state: State, scale: Vector) -> Float[np.ndarray, " b"]:
        """What the last two polynomials of each interval contribute to the norm, relative to the size of the solution;
        the largest over components and times."""
        of = state.reshape(-1, *self.shape)
        last = np.sqrt(np.sum(of[..., -2:] ** 2, axis=-1) / 2) / scale
        found = last / local_sizes(of, scale, self.floor) * np.sqrt(self.share)[:, None]
        return found.max(axis=(0, 2))

    # Rows

    def residual(self, states: list[State], times: Vector) -> Float[np.ndarray, "p _"]:
        """All equations at several times, of a function with its time derivatives."""
        p = len(times)
        equation = self._equation.residual(times, lambda index: self._jet(states, index), self._used)
        by_box = equation.reshape(p, len(self.boxes), len(self._points), -1)
        rows = [
            np.einsum("jg,pbg->pbj", test, by_box[..., k], optimize=True).reshape(p, -1)
            for k, test in enumerate(self._tests)
        ]
        rows.append((self._seams @ states[0].T).T)
        for at, used, sides in self._ends:
            found = at.residual(times, lambda index, s=sides: self._end_jet(states, s, index), used)
            rows.append(found.reshape(p, -1))
        return np.concatenate(rows, axis=1)

    def linearise(self, states: list[State], time: float) -> Linear:
        """All equations at one time, linearised at a function with its time derivatives."""
        parts: list[list[np.ndarray]] = [[] for _ in range(self.statement.order + 1)]

        def add(in_time: dict[int, np.ndarray], size: int) -> None:
            for power, into in enumerate(parts):
                into.append(in_time[power].reshape(-1) if power in in_time else np.zeros(size))

        G = self._equation.coefficients(time, lambda index: self._jet(states, index), self._used)
        G = G.reshape(len(self.boxes), len(self._points), -1, len(self._used), self.shape[1])
        for k, test in enumerate(self._tests):
            blocks: dict[int, np.ndarray] = {}
            for a, (order, in_time) in enumerate(self._used):
                weighted = np.einsum("jg,bgc->bjcg", test, G[:, :, k, a] * ((2 / self.width) ** order)[:, None, None])
                blocks[in_time] = blocks.get(in_time, 0.0) + weighted @ self._at_points[order]
            add(blocks, len(self.boxes) * len(test) * self.shape[1] * self.shape[2])
        add({0: self._seams.tocoo().data}, self._seams.nnz)
        for at, used, sides in self._ends:
            add(self._end_rows(at, used, sides, states, time), len(sides) * at.entries * self.shape[1] * self.shape[2])
        return Linear(tuple(np.concatenate(each) for each in parts))

    def _end_rows(
        self, at: TermAt, used: tuple[Index, ...], sides: np.ndarray, states: list[State], time: float
    ) -> dict[int, np.ndarray]:
        G = at.coefficients(time, lambda index: self._end_jet(states, sides, index), used)
        box = np.where(sides == 0, 0, len(self.boxes) - 1)
        found: dict[int, np.ndarray] = {}
        for a, (order, in_time) in enumerate(used):
            table = self._at_ends[order][sides] * ((2 / self.width[box]) ** order)[:, None]
            found[in_time] = found.get(in_time, 0.0) + np.einsum("nkc,nm->nkcm", G[:, :, a], table)
        return found

    def factor(self, linear: Linear, rates: Complex[np.ndarray, " k"]) -> BandFactors:
        """Factor the linearised equations for functions that grow as exp(rate t)."""
        found = []
        for rate in rates.tolist():
            own = rate.real if rate.imag == 0 else rate
            total = sum((own**power * entries for power, entries in enumerate(linear.powers)), np.zeros(()))
            found.append(self._pattern.factor(total))
        return BandFactors(tuple(found), self._columns.reshape(-1))

    @cached_property
    def _pattern(self) -> BandPattern:
        """The positions of the entries that `linearise` lists."""
        count = len(self.boxes)
        columns_of = self._columns
        rows, columns, start = [], [], 0
        for test in self._tests:
            numbers = start + np.arange(count * len(test)).reshape(count, len(test), 1, 1)
            each = np.broadcast_arrays(numbers, columns_of[:, None])
            rows.append(each[0].reshape(-1))
            columns.append(each[1].reshape(-1))
            start += count * len(test)
        seams = self._seams.tocoo()
        rows.append(start + seams.row)
        columns.append(columns_of.reshape(-1)[seams.col])
        start += seams.shape[0]
        for at, _, sides in self._ends:
            numbers = start + np.arange(len(sides) * at.entries).reshape(len(sides), at.entries, 1, 1)
            box = np.where(sides == 0, 0, count - 1)
            each = np.broadcast_arrays(numbers, columns_of[box][:, None])
            rows.append(each[0].reshape(-1))
            columns.append(each[1].reshape(-1))
            start += len(sides) * at.entries
        return BandPattern(np.concatenate(rows), np.concatenate(columns), self.size)

    @cached_property
    def _columns(self) -> Int[np.ndarray, "b C m"]:
        """The column of each coefficient. Intervals of a ring are numbered from both ends, so that neighbours stay
        near."""
        number = np.arange(len(self.boxes))
        place = np.minimum(2 * number, 2 * number[::-1] + 1) if self.statement.periodic else number
        inside = np.arange(self.shape[1] * self.shape[2]).reshape(1, *self.shape[1:])
        return place[:, None, None] * inside.size + inside

    @cached_property
    def _seams(self) -> csr_array:
        """The jumps of values and derivatives between neighbours, scaled by powers of the smaller width."""
        count, position = len(self.boxes), np.arange(self.size).reshape(self.shape)
        left = np.arange(count if self.statement.periodic else count - 1)
        right = (left + 1) % count
        narrow = np.minimum(self.width[left], self.width[right])
        rows, columns, entries, start = [], [], [], 0
        for component, highest in enumerate(self.orders):
            for order in range(highest):
                for box, end, sign in ((left, 1, 1.0), (right, 0, -1.0)):
                    factor = sign * (narrow / self.width[box]) ** order
                    entries.append((factor[:, None] * self._at_ends[order][end]).reshape(-1))
                    columns.append(position[box, component].reshape(-1))
                    rows.append(np.repeat(start + np.arange(len(left)), self.shape[2]))
                start += len(left)
        if not rows:
            return csr_array((0, self.size))
        where = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.concatenate(entries), where), shape=(start, self.size))

    # The answer

    @property
    def description(self) -> list:
        """The levels and numbers of the intervals, one after the other."""
        return [number for box in self.boxes for number in box]

    def described(self, description: list) -> "Intervals":
        """The intervals with this description, with the same degree."""
        boxes = tuple(zip(description[::2], description[1::2], strict=True))
        return self._like(boxes)

    @property
    def features(self) -> BoxPolynomials:
        """The space of these polynomials."""
        return self._features

    @cached_property
    def _features(self) -> BoxPolynomials:
        space = self.statement.domain.space
        tree, leaf = BoxTree(space.lower, space.upper), {(0, 0): 0}
        for level, number in self.boxes:
            for above in range(level):
                ancestor = (above, number >> (level - above))
                if ancestor in leaf:
                    node = leaf.pop(ancestor)
                    first, second = tree.split(node, 0)
                    leaf[above + 1, 2 * ancestor[1]], leaf[above + 1, 2 * ancestor[1] + 1] = first, second
        owners = np.full(len(tree.arrays().axis), -1)
        owners[[leaf[box] for box in self.boxes]] = np.arange(len(self.boxes))
        lower = self.low[:, None]
        degrees = np.full((len(self.boxes), 1), self.degree)
        patches = Patches(lower, lower + self.width[:, None], degrees)
        return BoxPolynomials(space.lower, space.upper, tree.arrays(), owners, patches)

    def coefficients(self, state: State) -> Float[np.ndarray, "q m C"]:
        """The coefficients of functions in `features`."""
        return np.swapaxes(state.reshape(-1, *self.shape), 2, 3).reshape(len(state), -1, self.shape[1])

    def fitted(self) -> list[State]:
        """The state at the start, interpolated at Chebyshev points."""
        nodes, fit = chebyshev_fit(self.degree)
        points = self.low[:, None] + self.width[:, None] * (nodes + 1) / 2
        values = self.statement.start(points.reshape(-1, 1))
        by_box = values.reshape(len(values), len(self.boxes), len(nodes), -1)
        return list(np.einsum("ij,objc->obci", fit, by_box).reshape(len(values), -1))

    # Refinement

    def marked(self, tails: Vector, tol: float) -> Mask | None:
        """The intervals to halve, such that together the others contribute less than `tol`; None if there are none."""
        shallow = np.array([level < DEEPEST for level, _ in self.boxes])
        found = (tails > tol / np.sqrt(len(tails))) & shallow
        return found if found.any() else None

    def refined(self, marks: Mask, states: States) -> "tuple[Intervals, States]":
        """Halve intervals."""
        boxes, found = halved(self.boxes, marks, [state.reshape(self.shape) for state in states])
        return self._like(boxes), [each.reshape(-1) for each in found]

    def coarsened(self, states: States, scales: list[Vector], tol: float) -> "tuple[Intervals, States]":
        """Join intervals; this space if there are none to join."""
        functions = [state.reshape(self.shape) for state in states]
        boxes, found = joined(self.boxes, self.share, functions, scales, tol, self.floor)
        if boxes == self.boxes:
            return self, states
        return self._like(boxes), [each.reshape(-1) for each in found]
