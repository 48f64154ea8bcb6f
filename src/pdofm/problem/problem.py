"""A partial differential equation on a domain, with its conditions."""

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int

from pdofm.calculus.jumps import Jump, hidden_jump
from pdofm.calculus.parameters import Parameters, parametrised
from pdofm.calculus.steep import Transition, transitions
from pdofm.calculus.symbol import Symbol, symbol_of
from pdofm.calculus.terms import Layout, Realified, Term, distinct, in_layout, known_fields
from pdofm.domain import Domain, Part, Regions, SpaceTime
from pdofm.errors import ProblemError
from pdofm.problem import checks, example, replacing
from pdofm.problem.conditions import BaseCondition, Context, Periodic, Value
from pdofm.problem.data import Exact, ExactPair, Given, Manufactured, RightSide, in_time, remedy_for, values_at
from pdofm.problem.interface import check_interfaces, covered_pairs, layout_of, of_region, split
from pdofm.problem.operator import FrozenOperator, Operator
from pdofm.problem.trial import Trial
from pdofm.problem.unknown import Data, functions_of, parameters_of
from pdofm.shown import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Shown):
    """The equation ``operator(u, x) = source(x)`` in a domain, with conditions.

    Args:
        domain: where the equation holds; in a `SpaceTime`, user functions take ``(x, t)`` instead of ``(x)``. In
            `Regions`, operator, source and exact may be dictionaries with an entry for each region.
        operator: the left side ``operator(u, x)`` at one point, with u a function: differentiate it with `laplacian`,
            `grad`, … It returns a scalar, or for a system a vector with one entry per equation; a tuple of scalars and
            vectors is joined to one vector.
        source: the right side, a number or a function of the point, of the same shape. If omitted it is computed from
            `exact`, and is 0 if that is omitted too.
        conditions: at least one of `Dirichlet`, `Neumann`, `Robin`, `Periodic`, `Initial`, `Condition`; between regions
            that touch an `Interface`.
        unknowns: names and sizes in a system, such as ``{"v": 2, "p": 1}``: ``u.v(x)`` has shape (2,) and ``u.p(x)``
            is a scalar. Omit it for one scalar unknown. A `Number` is an unknown number.
        exact: the exact solution if it is known: a function, or in a system a dictionary of functions. Sources and
            boundary data that are omitted are computed from it.
        frozen_operator: for `Picard`, the operator with the last iterate w as an argument,
            ``frozen_operator(u, w, x)``: linear in u, and equal to ``operator(u, x)`` for w = u.
        dtype: `complex` for unknowns, sources and conditions with complex values; real by default.
        name: what messages and reports call the problem.
    """

    domain: Domain
    operator: Any
    source: Any = None
    conditions: Sequence[BaseCondition] | BaseCondition = ()
    unknowns: Mapping[str, Any] | None = None
    exact: Any = None
    frozen_operator: Callable[..., Any] | None = None
    name: str = "problem"
    dtype: Any = float

    @example.unless_like_an_example
    def __post_init__(self):
        if not isinstance(self.domain, Domain):
            raise ProblemError(
                f"domain must be a Domain such as Box([0, 0], [1, 1]); got {type(self.domain).__name__}."
            )
        for name in self.region_names:
            operator = self._of(self.operator, name, "The operator")
            if not callable(operator):
                raise ProblemError(
                    f"operator must be a function such as lambda u, x: -laplacian(u)(x); got {type(operator).__name__}."
                )
        if self.unknowns is not None:
            checks.check_unknowns(self.unknowns, self.regions)
        checks.check_dtype(self.dtype)
        if all(isinstance(condition, Data) for condition in self.stated):
            raise ProblemError(
                "The problem has no condition: its solution is not unique. Give for instance "
                "conditions=[Dirichlet(0.0)]."
            )
        for condition in self.stated:
            checks.check_condition(condition, functions_of(self.unknowns) or ())
        checks.check_parameters(self.stated, self.parameters)
        if self.exact is not None:
            for name in self.region_names:
                exact = self._exact_in(name)
                self._trial.check_exact(exact, self._known(exact))
        for equation in self.equations:  # first: conditions ask for the order of the operator
            self._check(equation)
        conditions = self.terms[len(self.equations) :]
        for term in (*conditions, *(term for _, term in self.measured)):
            self._check(term)
            checks.check_place(term, self.domain)
        checks.check_values(self.measured, self.domain)
        if self.regions is not None:
            check_interfaces(self.terms, self.regions, self.layout)
        if self.layout.has_time:
            checks.check_start(conditions, max(self.orders(None)))

    def __repr__(self) -> str:
        system = "" if self.unknowns is None else f"unknowns {dict(self.unknowns)}, "
        known = ", exact solution known" if self.exact is not None else ""
        return f"Problem({self.name!r} on {self.domain!r}, {system}conditions {list(self.stated)}{known})"

    @property
    def stated(self) -> tuple[BaseCondition, ...]:
        """The conditions as they were given, always a tuple."""
        return checks.listed(self.conditions)

    def replace(self, **changes: Any) -> "Problem":
        """A copy with other fields, for instance another `domain`, `source` or other `conditions`.

        If the exact solution does not solve the new problem, the copy has none; data that came from it stay.
        """
        if changes.keys() == {"name"}:
            # Nothing that was checked or derived depends on the name, so all of it is copied.
            named = copy.copy(self)
            object.__setattr__(named, "name", changes["name"])
            return named
        changed = changes.keys() & {"operator", "source", "conditions"}
        replaced = dataclasses.replace(self, **changes)
        if not changed or self.exact is None or "exact" in changes or replacing.still_exact(replaced, changed):
            return replaced
        return dataclasses.replace(replaced, **replacing.with_own_data(replaced, self, changed))

    @cached_property
    def layout(self) -> Layout:
        """How the values of the unknowns and the coordinates of a point are stored."""
        functions = functions_of(self.unknowns)
        unknowns = None if functions is None else tuple((name, int(size)) for name, size in functions.items())
        return Layout(unknowns, isinstance(self.domain, SpaceTime), is_complex=np.dtype(self.dtype).kind == "c")

    @property
    def component_names(self) -> list[str]:
        """The names of the scalar components, in the order of the columns of `exact_values`: ``["u"]``, or
        ``["v[0]", "v[1]", "p"]`` in a system."""
        return self.layout.component_names

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The equation and the conditions as terms of the least-squares problem, with distinct names."""
        terms, regions, context = list(self.equations), self.regions, self.context
        for condition in self.stated:
            if isinstance(condition, Data):
                continue
            stated = [self._placed(term) for term in condition.terms(context)]
            terms += stated if regions is None else [t for each in stated for t in split(each, condition, regions)]
        return tuple(distinct(terms))

    @cached_property
    def measured(self) -> tuple[tuple[Data, Term], ...]:
        """The data from which unknown numbers are found, with their left sides."""
        data = [condition for condition in self.stated if isinstance(condition, Data)]
        terms = distinct([self._placed(term) for each in data for term in each.terms(self.context)])
        return tuple(zip(data, terms, strict=True))

    @cached_property
    def parameters(self) -> Parameters:
        """The unknown numbers, at their starts or where they were fixed."""
        return parameters_of(self.unknowns)

    def at(self, parameters: Parameters) -> "Problem":
        """The problem with fixed parameters."""
        fixed = copy.copy(self)
        for name in ("terms", "equations", "measured"):
            fixed.__dict__.pop(name, None)
        fixed.__dict__["parameters"] = parameters
        return fixed

    def _placed(self, term: Term) -> Term:
        """A term with a left side of real numbers that knows the parameters, and data that take the time."""
        term = in_time(in_layout(term, self.layout), self.layout)
        return parametrised(term, self.parameters) if self.parameters.names else term

    @property
    def context(self) -> Context:
        """What conditions can learn about the problem."""
        covered = () if self.regions is None else covered_pairs(self.stated, self.regions)
        return Context(self.domain, self._boundary, self.layout, self.exact is not None, self.orders, covered)

    @property
    def regions(self) -> Regions | None:
        """The regions of the domain, if it consists of several."""
        return self.domain.materials

    @property
    def region_names(self) -> tuple[str | None, ...]:
        """The names of the regions; None alone if there is only one."""
        return (None,) if self.regions is None else self.regions.names

    @cached_property
    def equations(self) -> tuple[Term, ...]:
        """The equation, or those of the regions, as terms: the first ones of `terms`."""
        return tuple(self._placed(self._equation(name)) for name in self.region_names)

    def _equation(self, region: str | None) -> Term:
        name = "equation" if region is None else f"equation {region}"
        operator = Operator(self._of(self.operator, region, "The operator"))
        return Term(name, operator, self._of(self.source, region, "The source"), None, 1.0, region=region)

    def domain_of(self, term: Term) -> Domain:
        """The domain, or the region that a term belongs to."""
        return self.domain if self.regions is None or term.region is None else self.regions[term.region]

    def layout_of(self, term: Term) -> Layout:
        """How a term sees the unknowns: on an interface on both sides of it."""
        return layout_of(term, self.layout)

    def _of(self, given: Any, region: str | None, what: str) -> Any:
        return given if region is None else of_region(given, region, what)

    def _exact_in(self, region: str | None) -> Any:
        """The exact solution in a region, which may be given by region."""
        by_region = self.regions is not None and isinstance(self.exact, Mapping) and region in self.exact
        return self.exact[region] if by_region else self.exact

    def frozen_terms(self, operator: Callable[..., Any] | None = None) -> tuple[Term, ...]:
        """The terms with the operator in its frozen form, for `Picard`."""
        operator = self.frozen_operator if operator is None else operator
        if operator is None:
            raise ProblemError(
                "Picard needs an operator that says which part is taken from the last iterate w: give "
                "Picard(operator=lambda u, w, x: …) or Problem(frozen_operator=…), linear in u. For Navier-Stokes: "
                "grad(u.v)(x) @ w.v(x)."
            )
        if self.regions is not None:
            raise ProblemError("Picard does not solve problems with several regions. Leave method= out.")
        # The source still comes from the original operator: the two agree only at w = u.
        equation, *conditions = self.terms
        equation = dataclasses.replace(equation, lhs=FrozenOperator(operator))
        return (self._placed(equation), *conditions)

    @cached_property
    def exact_fields(self) -> Any:
        """The exact solution in the form in which user functions receive the unknowns, with several regions by region;
        None if it is not known."""
        if self.exact is None:
            return None
        each = {name: self._exact_in(name) for name in self.region_names}
        fields = {name: self._known(exact) for name, exact in each.items()}
        return fields if self.regions is not None else fields[None]

    def _known(self, exact: Any) -> Any:
        return known_fields(exact, self.layout) if isinstance(exact, Mapping) else exact

    def exact_values(self, points: np.ndarray, region: str | None = None) -> np.ndarray:
        """All components of the exact solution at points (n, d), shape (n, C), as a region sees it; by default the one
        that a point lies in. Complex ones are given by their real parts, then their imaginary parts."""
        if self.exact is None:
            raise ProblemError("The problem has no exact solution: give Problem(exact=…), or use error_estimate.")
        points = np.asarray(points, dtype=np.float64)
        value = Realified(Value(None), self.layout) if self.layout.is_complex else Value(None)
        normals = np.zeros((len(points), self.domain.dim - self.layout.has_time))
        found = np.empty((len(points), self.layout.components))
        which = np.zeros(len(points), dtype=int)
        if self.regions is not None:
            which = self.regions.which(points) if region is None else which + self.regions.names.index(region)
        for i in np.unique(which).tolist():
            # Evaluated like a Dirichlet value, whose compiled function is usually available already.
            values = Manufactured(value, self._exact_key(self.region_names[i]))
            found[which == i] = values_at(values, self.layout, points[which == i], normals[which == i])
        return found

    def _exact_key(self, region: str | None) -> Exact:
        """The exact solution in a hashable form: equal ones share compiled functions."""
        exact = self._exact_in(region)
        return Exact(exact if callable(exact) else tuple(exact.items()))

    def manufactured(self, term: Term) -> Manufactured:
        """The left side of a term for the exact solution, on an interface for that on both sides."""
        if term.pair is None:
            return Manufactured(term.lhs, self._exact_key(term.region))
        first, second = (self._exact_key(name) for name in term.pair)
        return Manufactured(term.lhs, ExactPair(term.pair, (first, second)))

    def right_side(self, term: Term) -> RightSide:
        """The right side of a term: its own data, or what the exact solution gives."""
        if term.rhs is None and self.exact is not None:
            return self.manufactured(term)
        value = 0.0 if term.rhs is None else term.rhs
        if callable(value):
            return Given(value)
        parts = value if isinstance(value, tuple | list) else (value,)
        is_complex = self.layout.is_complex
        dtype = np.complex128 if is_complex else np.float64
        try:
            numbers = np.concatenate([np.ravel(part).astype(dtype, casting="same_kind") for part in parts])
        except (TypeError, ValueError) as error:
            raise ProblemError(
                f"{term.name!r} has the data {value!r}; expected numbers or a function{remedy_for(value)}."
            ) from error
        if is_complex and (numbers.size > 1 or numbers[0] != 0):  # one zero may stand for all entries
            numbers = np.concatenate([numbers.real, numbers.imag])
        return Given(tuple(numbers.real.tolist()))

    def orders(self, axis: int | None) -> tuple[int, ...]:
        """The differential order of the operator in each unknown number, along an axis of space, or in time (None)."""
        column, numbers = self.domain.dim - 1 if axis is None else axis, self.layout.numbers
        # Of a complex unknown the real and the imaginary part count as one.
        return tuple(self._all_orders[:, column].reshape(-1, numbers).max(axis=0).tolist())

    @cached_property
    def hidden_jump(self) -> Jump | None:
        """Where a coefficient of the operator jumps inside a derivative, which differentiation does not see; None if no
        such place is found."""
        found = (hidden_jump(*each) for each in self._symbols)
        return next((jump for jump in found if jump is not None), None)

    @cached_property
    def transitions(self) -> tuple[Transition, ...]:
        """Where coefficients of the operator change steeply."""
        return tuple(place for each in self._symbols for place in transitions(*each))

    def check_data(self, term: Term, rows: int, data: str) -> None:
        """Raise unless the right side of a term has one value at a point, or one for each of the `rows`; messages call
        it `data`."""
        self._trial.check_data(term, self.right_side(term), rows, data)

    def given_points(self, term: Term) -> np.ndarray:
        """The points (n, d) of a condition that is stated at points instead of on a part."""
        return checks.given_points(term, self.domain)

    @cached_property
    def _boundary(self) -> Part:
        """Where conditions without on= hold: on the boundary, less the faces that a periodic condition joins."""
        periodic = {c.axis for c in self.stated if isinstance(c, Periodic)}
        joined_faces = {f"x{axis}={side}" for axis in periodic for side in ("lower", "upper")}
        pieces = tuple(piece for piece in self.domain.pieces if piece.name not in joined_faces)
        return Part(pieces, self.layout.has_time) if periodic else self.domain.boundary

    @property
    def _symbols(self) -> list[tuple[Symbol, Domain]]:
        """The symbols of the equations, each with where it holds."""
        dim, space_dim = self.domain.dim, self.domain.dim - self.layout.has_time
        return [(symbol_of(t.lhs, self.layout, dim, space_dim), self.domain_of(t)) for t in self.equations]

    @cached_property
    def _all_orders(self) -> Int[np.ndarray, "C d"]:
        return np.max([symbol.orders(domain.sample(5)) for symbol, domain in self._symbols], axis=0)

    @cached_property
    def _trial(self) -> Trial:
        return Trial(self.domain, self.layout)

    def _check(self, term: Term) -> None:
        trial = self._trial if term.pair is None else Trial(self.domain, self.layout_of(term))
        trial.check_term(term, self.right_side(term))
