"""One set of functions on the whole of space, of any family and on any domain.

They are made orthonormal in L2, and the equation is tested with those combinations of them that satisfy the conditions:
Galerkin's method among these functions, as far as there are any (`projected`). It is stable for the heat equation on
any domain, where least squares and collocation are not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float

from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Term
from pdofm.domain import Part
from pdofm.domain.quadrature import over_part
from pdofm.features import Chebyshev, Concatenate, CornerFunctions, Features
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.given import Basis, Given
from pdofm.marching.orthogonal import Orthonormal
from pdofm.marching.projected import Conditions, Linear, Modes, Projected
from pdofm.marching.singular import Row, compatible, joined, rule_at_corners, singular_corners
from pdofm.marching.spaces import Factors, FactorsByRate, States
from pdofm.marching.statement import Statement
from pdofm.marching.termat import JetOf, TermAt
from pdofm.marching.trees import part_in_space

PER_AXIS = 1.8
"""Nodes of quadrature along an axis, in units of the d-th root of the number of features."""

ON_BOUNDARY = 1.5
"""Nodes along each parameter of a piece of the boundary, in units of those along an axis of space."""

DEGREES = {2: (10, 4), 3: (6, 2)}
"""The first degree of polynomials and the step to the next, by dimension."""

HIGHEST = {2: (32, 42, 40), 3: (12, 16, 14)}
"""The highest degree in the first run, in the second, fourth, … and in the third, fifth, …, by dimension. What is finer
is left out, which the difference of the runs shows."""

GROWTH = 0.25
"""The step to the next degree in units of the degree, where that is more."""

State = Float[np.ndarray, "... _"]


@dataclass(frozen=True, eq=False)
class Rows:
    """A condition at points of the boundary: the term there, its derivatives, those of the functions, and weights."""

    at: TermAt
    used: tuple[Index, ...]
    tables: dict[Index, Float[np.ndarray, "n r"]]
    scale: Vector


def degrees(dim: int, number: int) -> tuple[int, int]:
    """The first degree in a run, and the highest."""
    low, step = DEGREES[dim]
    return low + (number % 2) * step // 2, HIGHEST[dim][0 if number == 0 else 2 - number % 2]


def next_degree(dim: int, degree: int, highest: int) -> int:
    """The degree after one that does not suffice."""
    return min(degree + max(DEGREES[dim][1], 2 * round(GROWTH * degree / 2)), highest)


class Whole:
    """Orthonormal combinations of features on the domain.

    Args:
        statement: the problem.
        features: of space.
        share: the part of the features that is used, those with the lowest ranks.
        degree: of polynomials, perhaps joined with singular functions. It may be raised; without it the features were
            given.
        highest: the degree above which it is not raised.
    """

    kind = "functions on the whole domain"

    def __init__(
        self,
        statement: Statement,
        features: Features,
        share: float = 1.0,
        degree: int | None = None,
        highest: int = 0,
    ):
        self.statement, self.features, self.degree, self.highest = statement, features, degree, highest
        self._share = share
        domain, space = statement.domain, statement.domain.space
        self.dim = space.dim
        self._order = int(np.ceil(PER_AXIS * features.size ** (1 / self.dim))) + 3
        rule = rule_at_corners(space, [] if degree is None else singular_corners(statement), self._order)
        self._points, self._weights = rule.points, rule.weights / rule.weights.sum()
        self._times = domain.t0 + (domain.t1 - domain.t0) * np.array([0.0, 0.3819, 1.0])
        self._equation = statement.placed(statement.equation, self._points)
        self._used = self._equation.used(self._times)
        in_space = list(dict.fromkeys([(0,) * self.dim, *(index[:-1] for index in self._used)]))
        self._basis = self._make_basis(share)
        self.rank = self._basis.matrix.shape[1]
        self._tables = dict(zip(in_space, self._basis.jets(self._points, in_space), strict=True))
        self.shape = (statement.components, self.rank)
        self.size = int(np.prod(self.shape))
        free = np.array([order == 0 for order in statement.time_orders])
        self._data: dict[bytes, np.ndarray] = {}
        self.algebraic = np.broadcast_to(free[:, None], self.shape).reshape(-1)

    @classmethod
    def first(cls, statement: Statement, number: int = 0) -> "Whole":
        """Polynomials of a low degree. Successive runs never have the same degree, or their difference would not
        show what the polynomials leave out."""
        space = statement.domain.space
        degree, highest = degrees(space.dim, number)
        return cls.of_degree(statement, degree, highest)

    @classmethod
    def of_degree(cls, statement: Statement, degree: int, highest: int) -> "Whole":
        """Polynomials up to a degree, with singular functions where there are any."""
        return cls(statement, joined(statement, degree), degree=degree, highest=highest)

    @property
    def is_fixed(self) -> bool:
        """Whether the features were given."""
        return self.degree is None

    def _make_basis(self, share: float) -> Basis:
        features, rule = self.features, (self._points, self._weights)
        if self.degree is None:
            return Given(features, share, *rule)
        if isinstance(features, Chebyshev):
            return Orthonormal(features, [], *rule)
        assert isinstance(features, Concatenate)
        (polynomials, _), *others = features.places()
        assert isinstance(polynomials, Chebyshev)
        used = []
        for family, _ in others:
            kept = np.ones(family.size, dtype=bool)
            if isinstance(family, CornerFunctions):
                kept = compatible(self.statement, family, self._at_sides(family))
            used.append((family, np.flatnonzero(kept)))
        found = Orthonormal(polynomials, used, *rule)
        order = np.concatenate([here for _, here in features.places()])
        found.matrix = found.matrix[np.argsort(order)]
        return found

    def _at_sides(self, functions: CornerFunctions) -> list[Row]:
        """The conditions for corner functions."""
        found = []
        for term in self.statement.lateral:
            at, used, _ = self._on_boundary(term)
            none = np.ones((1, len(at.points), self.statement.components))
            G = at.coefficients(self._times[1], lambda index, none=none: none, used)
            jets = functions.jets(at.points, [index[:-1] for index in used])
            found.append(
                (at.points, at.normals, np.einsum("nkac,anm->nkcm", G, jets).reshape(len(G), -1, functions.size))
            )
        return found

    def _on_boundary(self, term: Term) -> tuple[TermAt, tuple[Index, ...], Vector]:
        """A condition at nodes of quadrature, the derivatives in it, and the weights of the nodes."""
        assert isinstance(term.on, Part)
        rule = over_part(part_in_space(term.on), int(np.ceil(ON_BOUNDARY * self._order)))
        at = self.statement.placed(term, rule.points, rule.normals)
        return at, at.used(self._times), rule.weights

    @cached_property
    def _conditions(self) -> list[Rows]:
        return [self._condition(term) for term in self.statement.lateral]

    def _condition(self, term: Term) -> Rows:
        at, used, weights = self._on_boundary(term)
        which = list(dict.fromkeys(index[:-1] for index in used))
        tables = dict(zip(which, self._basis.jets(at.points, which), strict=True))
        size = max(float(np.max(np.abs(each))) for each in tables.values())
        own = float(np.max(np.abs(self._tables[(0,) * self.dim])))
        return Rows(at, used, tables, np.sqrt(weights / weights.sum()) * own / size)

    def forget(self) -> None:
        """Nothing: a run has few spaces of this kind."""

    # Functions

    def _jet_of(self, tables: dict[Index, np.ndarray], states: States) -> JetOf:
        def jet(index: Index) -> Float[np.ndarray, "p n C"]:
            return np.swapaxes(states[index[-1]].reshape(-1, *self.shape) @ tables[index[:-1]].T, 1, 2)

        return jet

    def quadrature(self) -> tuple[Points, Vector]:
        """The nodes and their weights."""
        return self._points, self._weights

    def norms(self, state: State) -> Float[np.ndarray, "... C"]:
        """The root mean square of each component: the functions are orthonormal."""
        return np.linalg.norm(state.reshape(*state.shape[:-1], *self.shape), axis=-1)

    def tails(self, state: State, scale: Vector) -> Vector:
        """The norm of the last functions, relative to the size of the solution."""
        last = state.reshape(-1, *self.shape) @ self._basis.last
        return np.max(np.linalg.norm(last, axis=-1) / scale, keepdims=True)[0]

    # Rows

    def residual(self, states: States, times: Vector) -> Float[np.ndarray, "p _"]:
        """The equation, tested, and all conditions, at several times."""
        if self._autonomous is None:
            return self._rows(lambda tables: self._jet_of(tables, states), times)
        linear, key = self._autonomous, times.tobytes()
        if key not in self._data:
            none = np.zeros((len(times), 1, self.shape[0]))
            self._data = {key: self._rows(lambda tables: lambda index: self._broadcast(none, tables), times)}
        rows = self._data[key].copy()
        for square, conditions, state in zip(linear.squares, linear.conditions, states, strict=True):
            rows[:, : self.size] += state @ square.T
            rows[:, self.size :] += state @ conditions.T
        return rows

    @staticmethod
    def _broadcast(none: np.ndarray, tables: dict[Index, np.ndarray]) -> np.ndarray:
        return np.broadcast_to(none, (len(none), len(next(iter(tables.values()))), none.shape[2]))

    def _rows(self, jets: Callable[[dict[Index, np.ndarray]], JetOf], times: Vector) -> Float[np.ndarray, "p _"]:
        """The residuals of a function whose derivatives are found from tables of those of the basis."""
        found = self._equation.residual(times, jets(self._tables), self._used)
        by_component = np.zeros((len(times), *self.shape))
        if found.any():
            tested = np.swapaxes(found * self._weights[:, None], 1, 2) @ self._tables[(0,) * self.dim]
            by_component[:, list(self.statement.matched)] = tested
        rows = [by_component.reshape(len(times), -1)]
        for each in self._conditions:
            found = each.at.residual(times, jets(each.tables), each.used)
            rows.append((found * each.scale[:, None]).reshape(len(times), -1))
        return np.concatenate(rows, axis=1)

    @cached_property
    def _autonomous(self) -> Linear | None:
        """The matrices of a linear problem whose coefficients are proved not to depend on time; None for others."""
        symbols = [at.symbol for at in (self._equation, *(each.at for each in self._conditions))]
        if not all(symbol.is_affine and symbol.is_autonomous for symbol in symbols):
            return None
        states = [np.zeros((1, self.size)) for _ in range(self.statement.order + 1)]
        return self._linearised(states, self._times[0])

    def linearise(self, states: States, time: float) -> Linear:
        """The tested equation and the conditions, linearised, by power of the time derivative."""
        return self._autonomous or self._linearised(states, time)

    def _linearised(self, states: States, time: float) -> Linear:
        jet, powers = self._jet_of(self._tables, states), range(self.statement.order + 1)
        G = self._equation.coefficients(time, jet, self._used)
        tests = (self._tables[(0,) * self.dim] * self._weights[:, None]).T
        squares = [np.zeros((*self.shape, *self.shape)) for _ in powers]
        for a, index in enumerate(self._used):
            for k, own in enumerate(self.statement.matched):
                for c in range(self.shape[0]):
                    if G[:, k, a, c].any():
                        squares[index[-1]][own, :, c] += (tests * G[:, k, a, c]) @ self._tables[index[:-1]]
        parts: list[list[np.ndarray]] = [[] for _ in powers]
        for each in self._conditions:
            G = each.at.coefficients(time, self._jet_of(each.tables, states), each.used)
            G = G * each.scale[:, None, None, None]
            blocks = [np.zeros((*G.shape[:2], *self.shape)) for _ in powers]
            for a, index in enumerate(each.used):
                blocks[index[-1]] += np.einsum("nkc,nr->nkcr", G[:, :, a], each.tables[index[:-1]])
            for part, block in zip(parts, blocks, strict=True):
                part.append(block.reshape(-1, self.size))
        none = np.zeros((0, self.size))
        return Linear(
            [square.reshape(self.size, self.size) for square in squares],
            [np.concatenate([none, *part]) for part in parts],
        )

    def factor(self, linear: Linear, rates: Complex[np.ndarray, " k"]) -> Factors:
        """Factor the equations among the functions that satisfy the conditions, for functions that grow as
        exp(rate t)."""
        if linear.modes is not None:
            return Modes(linear, rates)
        found = []
        for rate in rates.tolist():
            own = rate.real if rate.imag == 0 else rate
            square, conditions = (
                sum((own**power * each for power, each in enumerate(parts)), np.zeros(()))
                for parts in (linear.squares, linear.conditions)
            )
            found.append(Projected(square, linear.steady or Conditions(conditions)))
        return FactorsByRate(tuple(found))

    # The answer

    def coefficients(self, state: Float[np.ndarray, "q _"]) -> Float[np.ndarray, "q m C"]:
        """The coefficients of functions in `features`."""
        return np.swapaxes(state.reshape(-1, *self.shape) @ self._basis.matrix.T, 1, 2)

    def fitted(self) -> States:
        """The state at the start: the nearest function that satisfies the conditions, which a start may contradict."""
        states = [self._fit(each) for each in self.statement.start(self._points)]
        whole = [*(each[None] for each in states), np.zeros((1, self.size))]
        begin = self.statement.domain.t0
        linear = self.linearise(whole, begin)
        if linear.steady is not None:
            states[0] = states[0] - linear.steady.lift @ self.residual(whole, np.array([begin]))[0, self.size :]
        return states

    def _fit(self, values: Float[np.ndarray, "n C"]) -> Vector:
        """The coefficients of the function that is nearest to values at the nodes."""
        functions = self._tables[(0,) * self.dim]
        found = np.zeros((self.rank, values.shape[1]))
        for _ in range(2):  # the second time removes what the functions lack of being orthonormal
            found += functions.T @ (self._weights[:, None] * (values - functions @ found))
        return found.T.reshape(-1)

    # Refinement

    def marked(self, tails: Vector, tol: float) -> bool | None:
        """True if polynomials of a higher degree are needed, and there are any."""
        return True if self.degree is not None and self.degree < self.highest and tails[0] > tol else None

    def refined(self, marks: bool, states: States) -> "tuple[Whole, States]":
        """Polynomials of a higher degree."""
        assert self.degree is not None
        other = Whole.of_degree(self.statement, next_degree(self.dim, self.degree, self.highest), self.highest)
        none = [(0,) * self.dim]
        return other, [
            other._fit(self.features.expand(other._points, none, self.coefficients(state[None])[0])[0])
            for state in states
        ]

    def coarsened(self, states: States, scales: list[Vector], tol: float) -> "tuple[Whole, States]":
        """This space: a lower degree would save little."""
        return self, states

    @property
    def description(self) -> list:
        """The degree of polynomials, nothing if the features were given."""
        return [] if self.degree is None else [self.degree]

    def described(self, description: list) -> "Whole":
        """Polynomials of this degree, or the features that were given."""
        if not description:
            return Whole(self.statement, self.features, self._share)
        return Whole.of_degree(self.statement, description[0], self.highest)
