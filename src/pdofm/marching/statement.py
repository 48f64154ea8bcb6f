"""A space-time problem, read as an evolution: what holds at the start, what holds on the boundary at all times, and how
its terms are evaluated at points of space and several times at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from pdofm.calculus.jets import Index
from pdofm.calculus.symbol import Linearisation, Symbol, random_jet, symbol_of
from pdofm.calculus.terms import Term
from pdofm.domain import Part, SpaceTime
from pdofm.errors import SolveError
from pdofm.marching.arrays import Points, Vector
from pdofm.problem.conditions import Periodic
from pdofm.problem.data import values_at
from pdofm.problem.problem import Problem

PROBES = 256
"""Points of a part of the boundary that tell when it holds."""

LARGEST_GAP = 0.1
"""The largest part of the time for which a condition may be missing among `PROBES` points. A condition that holds for
part of the time only leaves larger gaps."""

NOISE = 1e-12
"""Coefficients below this fraction of the largest count as rounding errors of terms that cancel, where they would raise
the order of the equation."""

JetOf = Callable[[Index], Float[np.ndarray, "p n C"]]
"""A derivative of the solution, in space and time, at points of space and p times."""


class Overlooked(Exception):
    """A term depends on derivatives that it did not depend on where `TermAt.used` looked."""


class TermAt:
    """A term of a problem at fixed points of space, to be evaluated at any times.

    Which derivatives the left side depends on is judged at some times. Wherever it is evaluated later, the others are
    checked; if there is one more, it is remembered in `more`, which all places of a term share, and `Overlooked` is
    raised. `highest` are the orders of the equation along each coordinate, which none may exceed.
    """

    def __init__(
        self, problem: Problem, term: Term, points: Points, normals: Points, more: set[Index], highest: Index | None
    ):
        layout = problem.layout
        self._more, self._highest = more, highest
        self.name, self.layout, self.points, self.normals = term.name, layout, points, normals
        self.symbol: Symbol = symbol_of(term.lhs, layout, problem.domain.dim, problem.domain.dim - 1)
        self.right_side = problem.right_side(term)
        self.entries = self.symbol.entries
        self._known: dict[bytes, np.ndarray] = {}

    def used(self, times: Vector) -> tuple[Index, ...]:
        """The derivatives that the left side depends on, judged at the points and some times."""
        z, normals = self.at(times)
        symbol = self.symbol
        if symbol.is_small:
            jet = random_jet(len(symbol.indices(z, normals)), len(z), self.layout.components)
            found = symbol.linearise(z, normals, None if symbol.is_affine else jet)
            if found is not None:
                present = np.any(found.coefficients != 0, axis=(0, 1, 3))
                known = {index for index, is_used in zip(found.indices, present, strict=True) if is_used} | self._more
                return tuple(index for index in found.indices if index in known)
        raise SolveError(
            f"The term {self.name!r} depends on u at other points too, or has too many derivatives; march needs local "
            "equations. Use solve(problem, features), which solves for all times at once."
        )

    def residual(self, times: Vector, jet_of: JetOf, used: Sequence[Index]) -> Float[np.ndarray, "p n k"]:
        """Left minus right side at all points and times, of a function with these derivatives."""
        z, normals = self.at(times)
        symbol, n = self.symbol, len(self.points)
        if symbol.is_affine:
            left, coefficients = self._affine(z, normals, used)
            jet = np.stack([jet_of(index).reshape(len(z), -1) for index in used])
            left = left + np.einsum("nkac,anc->nk", coefficients, jet)
        else:
            indices = symbol.indices(z, normals)
            jet = np.zeros((len(indices), len(z), self.layout.components))
            for row, index in zip(jet, indices, strict=True):
                if index in used:
                    row[...] = jet_of(index).reshape(len(z), -1)
            left = symbol.values(z, normals, jet)
            if z[::n, -1].tobytes() not in self._known:
                self._check_others(z, normals, jet, left, used)
        return (left - self._right(z, normals)).reshape(len(times), n, self.entries)

    def coefficients(self, time: float, jet_of: JetOf, used: Sequence[Index]) -> Float[np.ndarray, "n k a C"]:
        """The derivative of the left side at one time with respect to the derivatives `used` of a function."""
        z, normals = self.at(np.array([time]))
        symbol = self.symbol
        if symbol.is_affine:
            return self._affine(z, normals, used)[1]
        indices = symbol.indices(z, normals)
        jet = np.zeros((len(indices), len(z), self.layout.components))
        for row, index in zip(jet, indices, strict=True):
            if index in used:
                row[...] = jet_of(index)[0]
        found = symbol.linearise(z, normals, jet)
        assert found is not None, "used() has found the term to be local"
        self._check(found, used)
        return found.coefficients[:, :, [indices.index(index) for index in used]]

    def _affine(self, z: Points, normals: Points, used: Sequence[Index]) -> tuple[np.ndarray, np.ndarray]:
        found = self.symbol.linearise(z, normals)
        assert found is not None, "used() has found the term to be local"
        self._check(found, used)
        return found.left, found.coefficients[:, :, [found.indices.index(index) for index in used]]

    def _check(self, found: Linearisation, used: Sequence[Index]) -> None:
        """Raise `Overlooked` if coefficients of derivatives that are not in `used` are not zero."""
        rest = [] if found.is_constant else [i for i, index in enumerate(found.indices) if index not in used]
        if not rest or not found.coefficients[:, :, rest].any():
            return
        sizes = np.max(np.abs(np.nan_to_num(found.coefficients, nan=0.0, posinf=0.0)), axis=(0, 1, 3))
        new = set()
        for i in rest:
            index = found.indices[i]
            if self._highest is None or all(k <= most for k, most in zip(index, self._highest, strict=True)):
                new |= {index} if sizes[i] > 0 else set()
            elif sizes[i] > NOISE * sizes.max():
                raise SolveError(
                    f"The term {self.name!r} is of order {index} in its coordinates at some points and times only; "
                    "march needs an equation of the same order everywhere. Use solve(problem, features), which solves "
                    "for all times at once."
                )
        if new:
            self._more |= new
            raise Overlooked

    def _check_others(
        self, z: Points, normals: Points, jet: np.ndarray, left: np.ndarray, used: Sequence[Index]
    ) -> None:
        """The same for a nonlinear term: where random values of the other derivatives change its values."""
        indices = self.symbol.indices(z, normals)
        rest = [i for i, index in enumerate(indices) if index not in used]
        other = jet.copy()
        other[rest] = random_jet(len(rest), len(z), self.layout.components)
        with np.errstate(invalid="ignore"):
            differ = np.flatnonzero(np.any(np.abs(self.symbol.values(z, normals, other) - left) > 0, axis=1))
        if len(differ):
            found = self.symbol.linearise(z[differ], normals[differ], other[:, differ])
            assert found is not None, "used() has found the term to be local"
            self._check(found, used)

    def _right(self, z: Points, normals: Points) -> Float[np.ndarray, "n k"]:
        """The right side, remembered for the times of the last call: iterations on a slab ask for it again."""
        key = z[:: len(self.points), -1].tobytes()
        if key not in self._known:
            self._known = {key: values_at(self.right_side, self.layout, z, normals)}
        return self._known[key]

    def at(self, times: Vector) -> tuple[Points, Points]:
        """All points at all times, time by time, and their normals."""
        n, p = len(self.points), len(times)
        z = np.concatenate([np.tile(self.points, (p, 1)), np.repeat(times, n)[:, None]], axis=1)
        return z, np.tile(self.normals, (p, 1))


@dataclass(frozen=True, eq=False)
class Statement:
    """The parts of a space-time problem by their role: its equation, the terms at the start, those on the boundary, and
    the axes along which it is periodic."""

    problem: Problem

    def __post_init__(self):
        domain = self.problem.domain
        if not isinstance(domain, SpaceTime):
            raise SolveError(
                f"march needs a problem with time; got one on {domain!r}. State it on SpaceTime(space, T), or use "
                "solve."
            )
        if self.problem.regions is not None:
            raise SolveError(
                f"march solves problems with one region; got the regions {list(self.problem.regions.names)}. Use "
                "solve(problem, tol=…), which solves for all times at once."
            )
        if max(self.time_orders) == 0:
            raise SolveError("march needs an equation with a derivative in time, dt(u); use solve for this problem.")
        for condition in self.problem.stated:
            if isinstance(condition, Periodic) and condition.derivatives is not None:
                raise SolveError(
                    f"Condition {condition.name!r} matches derivatives up to {condition.derivatives}; march needs all "
                    "below the order of the operator. Leave out derivatives=."
                )
        self._roles  # noqa: B018 (refuses conditions without a role)

    @property
    def domain(self) -> SpaceTime:
        """The space-time."""
        assert isinstance(self.problem.domain, SpaceTime)
        return self.problem.domain

    @property
    def components(self) -> int:
        """Number of scalar unknowns."""
        return self.problem.layout.components

    @cached_property
    def time_orders(self) -> tuple[int, ...]:
        """The order in time of each component."""
        return self.orders(None)

    def orders(self, axis: int | None) -> tuple[int, ...]:
        """The order of the equation in each component, along an axis of space, or in time (None). The real and the
        imaginary part of a complex unknown are components of their own."""
        found = self.problem.orders(axis)
        return found * (self.components // len(found))

    @property
    def order(self) -> int:
        """The highest order in time: so many functions describe the state at one time."""
        return max(self.time_orders)

    @cached_property
    def periodic(self) -> frozenset[int]:
        """The axes along which the problem is periodic."""
        return frozenset(c.axis for c in self.problem.stated if isinstance(c, Periodic))

    @property
    def equation(self) -> Term:
        """The equation."""
        return self.problem.terms[0]

    @cached_property
    def equation_order(self) -> int:
        """The highest order of a derivative in the equation."""
        return symbol_of(self.equation.lhs, self.problem.layout, self.domain.dim, self.domain.dim - 1).order

    @cached_property
    def is_linear(self) -> bool:
        """Whether the equation is linear, as far as its operations show."""
        return symbol_of(self.equation.lhs, self.problem.layout, self.domain.dim, self.domain.dim - 1).is_affine

    @cached_property
    def matched(self) -> tuple[int, ...]:
        """For each equation of a system the component that it governs: one whose highest time derivative it contains
        or, where there is none, whose highest space derivative it contains."""
        at = self.placed(self.equation, self.domain.space.sample(5))
        if at.entries != self.components:
            raise SolveError(
                f"march needs as many equations as unknowns; got {at.entries} equations for {self.components} unknown "
                "components. Use solve(problem, features), which allows more equations."
            )
        times = np.array([self.domain.t0, self.domain.t1])
        symbol, (z, normals) = at.symbol, at.at(times)
        jet = random_jet(len(symbol.indices(z, normals)), len(z), self.components)
        found = symbol.linearise(z, normals, jet)
        if found is None:
            return tuple(range(self.components))
        present = np.any(found.coefficients != 0, axis=0)  # (equation, derivative, component)
        in_time = np.array([index[-1] for index in found.indices])[:, None]
        in_space = np.array([sum(index[:-1]) for index in found.indices])[:, None]
        highest_time = np.max(np.where(present.any(axis=0), in_time, 0), axis=0)
        highest_space = np.max(np.where(present.any(axis=0), in_space, 0), axis=0)
        by_time = np.any(present & (in_time == highest_time) & (in_time > 0), axis=1)
        by_space = np.any(present & (in_space == highest_space), axis=1)
        score = 4.0 * by_time + 2.0 * by_space + 0.1 * np.eye(self.components)
        from scipy.optimize import linear_sum_assignment  # slow to import

        return tuple(linear_sum_assignment(score, maximize=True)[1].tolist())

    @property
    def initial(self) -> list[Term]:
        """The terms at the start."""
        return self._roles[0]

    @property
    def lateral(self) -> list[Term]:
        """The terms on the boundary of space, at all times."""
        return self._roles[1]

    @cached_property
    def _roles(self) -> tuple[list[Term], list[Term]]:
        initial, lateral = [], []
        for term in self.problem.terms[1:]:
            if term.kind == "periodic":
                continue
            times = self._times(term)
            if np.all(times == self.domain.t0):
                initial.append(term)
                continue
            t0, t1 = self.domain.t0, self.domain.t1
            gaps = np.diff(np.sort(np.concatenate([[t0], times, [t1]])))
            if not isinstance(term.on, Part) or gaps.max() > LARGEST_GAP * (t1 - t0):
                raise SolveError(
                    f"Condition {term.name!r} holds neither at the start only nor on the boundary at all times; march "
                    "cannot use it. Use solve(problem, features), which solves for all times at once."
                )
            lateral.append(term)
        return initial, lateral

    def _times(self, term: Term) -> Vector:
        if isinstance(term.on, Part):
            return term.on.sample(PROBES)[0][:, -1]
        return self.problem.given_points(term)[:, -1]

    def placed(self, term: Term, points: Points, normals: Points | None = None) -> TermAt:
        """A term at points of space."""
        highest = None
        if term is self.equation:
            highest = tuple(max(self.orders(axis)) for axis in (*range(self.domain.space.dim), None))
        more = self._more.setdefault(term.name, set())
        return TermAt(self.problem, term, points, np.zeros_like(points) if normals is None else normals, more, highest)

    @cached_property
    def _more(self) -> dict[str, set[Index]]:
        """The derivatives that terms, by name, were found to depend on later."""
        return {}

    def start(self, points: Points) -> Float[np.ndarray, "order n C"]:
        """The state at the start at points of space: values and, where the equation is of higher order in time, time
        derivatives. Components that the initial conditions leave free, such as a pressure, are zero."""
        order, n, components = self.order, len(points), self.components
        rows, right = [], []
        for term in self.initial:
            at = self.placed(term, points)
            used = at.used(np.array([self.domain.t0]))
            if any(any(index[:-1]) or index[-1] >= order for index in used) or not at.symbol.is_affine:
                raise SolveError(
                    f"Condition {term.name!r} must give values of u, or of its first time derivatives, at the start; "
                    "it is nonlinear or has derivatives in space. Use Initial(value, velocity)."
                )
            none = np.zeros((1, n, components))
            right.append(-at.residual(np.array([self.domain.t0]), lambda index, none=none: none, used)[0])
            found = at.coefficients(self.domain.t0, lambda index, none=none: none, used)
            whole = np.zeros((n, at.entries, order, components))
            for i, index in enumerate(used):
                whole[:, :, index[-1]] = found[:, :, i]
            rows.append(whole.reshape(n, at.entries, -1))
        matrix = np.concatenate(rows, axis=1)
        needed = np.array([[k < own for own in self.time_orders] for k in range(order)]).reshape(-1)
        ranks = np.linalg.matrix_rank(matrix[:, :, needed])
        if np.any(ranks < needed.sum()):
            raise SolveError(
                f"The initial conditions give {int(ranks.min())} of the {int(needed.sum())} values and time "
                "derivatives that the equation needs at a point of the start. Add Initial(value, velocity, unknown=…)."
            )
        found = np.linalg.pinv(matrix) @ np.concatenate(right, axis=1)[:, :, None]
        return np.moveaxis(found.reshape(n, order, components), 1, 0)
