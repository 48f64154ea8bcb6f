"""A space-time problem, read as an evolution: what holds at the start, and what holds on the boundary at all times."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from pdofm.calculus.jets import Index
from pdofm.calculus.symbol import random_jet, symbol_of
from pdofm.calculus.terms import Term
from pdofm.domain import Part, SpaceTime
from pdofm.errors import SolveError
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.termat import TermAt
from pdofm.problem.conditions import Periodic
from pdofm.problem.problem import Problem

PROBES = 256
"""Points of a part of the boundary that tell when it holds."""

LARGEST_GAP = 0.1
"""The largest part of the time for which a condition may be missing among `PROBES` points: one that holds for part of
the time only leaves larger gaps."""


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
