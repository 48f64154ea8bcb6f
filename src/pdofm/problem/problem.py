"""A partial differential equation on a domain, with its conditions."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from pdofm.calculus.jumps import Jump, hidden_jump
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Fields, Layout, Term, distinct, joined
from pdofm.domain import Domain, Part, SpaceTime
from pdofm.errors import PdofmError, ProblemError
from pdofm.problem.conditions import BaseCondition, Context, Periodic, Value, takes_normal
from pdofm.problem.data import Exact, Given, Manufactured, RightSide, values_at

RESERVED = {"problem", "features", "coefficients", "error_estimate", "converged", "reason", "stats", "attempts"} | {
    *("space", "search"),
    *("gradient", "errors", "plot", "plot_search", "to_vtk", "residual"),
}
"""Attributes of a Solution, or of one of many, which unknowns must not hide behind."""


@dataclass(frozen=True)
class _Operator:
    function: Callable[..., Any]

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        return joined(self.function(u, *args))


@dataclass(frozen=True)
class _FrozenOperator:
    function: Callable[..., Any]

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        return joined(self.function(u, w, *args))


@dataclass(frozen=True, eq=False)
class Problem:
    """``operator(u, x) = source(x)`` in a domain, with conditions.

    Args:
        domain: where the equation holds; `SpaceTime` makes every user function take ``(x, t)``.
        operator: ``operator(u, x)`` at one point; returns a scalar, or for a system a vector (or a tuple of scalars
            and vectors, which are joined) with one entry per equation. u is a function: differentiate it with
            `laplacian`, `grad`, …
        source: a number or a function of the point, of the same shape. If omitted it follows from `exact`, and is 0
            without that.
        conditions: at least one of `Dirichlet`, `Neumann`, `Robin`, `Periodic`, `Initial`, `Condition`.
        unknowns: names and sizes in a system, ``{"v": 2, "p": 1}``: ``u.v(x)`` has shape (2,), ``u.p(x)`` is a scalar.
        exact: the exact solution if it is known, as a function, in a system as a dictionary of functions. Sources and
            data that are omitted are computed from it.
        frozen_operator: for `Picard`, the operator with the last iterate made explicit: ``frozen_operator(u, w, x)``,
            linear in u and equal to ``operator(u, x)`` for w = u.
        name: how the problem is called in messages.
    """

    domain: Domain
    operator: Callable[..., Any]
    source: Any = None
    conditions: Sequence[BaseCondition] | BaseCondition = ()
    unknowns: Mapping[str, int] | None = None
    exact: Any = None
    frozen_operator: Callable[..., Any] | None = None
    name: str = "problem"

    def __post_init__(self):
        if not isinstance(self.domain, Domain):
            raise ProblemError(
                f"domain must be a Domain such as Box([0, 0], [1, 1]); got {type(self.domain).__name__}."
            )
        if not callable(self.operator):
            raise ProblemError(
                "operator must be a function such as lambda u, x: -laplacian(u)(x); got "
                f"{type(self.operator).__name__}."
            )
        if self.unknowns is not None:
            _check_unknowns(self.unknowns)
        stated = self.stated
        if not stated:
            raise ProblemError(
                "The problem has no condition: its solution is not unique. Give for instance "
                "conditions=[Dirichlet(0.0)]."
            )
        for condition in stated:
            self._check_condition(condition)
        self._check_exact()
        self._check_shapes(self._equation)  # before conditions ask for the order of the operator
        for term in self.terms:
            self._check_shapes(term)
            self._check_part(term)
        self._check_start()

    @property
    def stated(self) -> tuple[BaseCondition, ...]:
        """The conditions as they were given, always a tuple."""
        return (self.conditions,) if isinstance(self.conditions, BaseCondition) else tuple(self.conditions)

    def replace(self, **changes: Any) -> "Problem":
        """A copy with other fields, for instance another `domain`, `source` or other `conditions`."""
        return dataclasses.replace(self, **changes)

    @cached_property
    def layout(self) -> Layout:
        """How unknowns and points are stored."""
        unknowns = None if self.unknowns is None else tuple((name, int(size)) for name, size in self.unknowns.items())
        return Layout(unknowns, isinstance(self.domain, SpaceTime))

    @cached_property
    def _equation(self) -> Term:
        return Term("equation", _Operator(self.operator), self.source, None, 1.0)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The equation and the conditions, with distinct names."""
        terms = [self._equation]
        context = Context(self.domain, self._boundary, self.layout, self.exact is not None, self.orders)
        for condition in self.stated:
            terms += condition.terms(context)
        return tuple(distinct(terms))

    @cached_property
    def _boundary(self) -> Part:
        """What conditions without on= hold on: the boundary without faces that a periodic condition joins."""
        periodic = {c.axis for c in self.stated if isinstance(c, Periodic)}
        joined_faces = {f"x{axis}={side}" for axis in periodic for side in ("lower", "upper")}
        pieces = tuple(piece for piece in self.domain.pieces if piece.name not in joined_faces)
        return Part(pieces, self.layout.has_time) if periodic else self.domain.boundary

    def frozen_terms(self, operator: Callable[..., Any] | None = None) -> tuple[Term, ...]:
        """The terms with the operator in its frozen form, for Picard."""
        operator = self.frozen_operator if operator is None else operator
        if operator is None:
            raise ProblemError(
                "Picard needs to know what is frozen: give Picard(operator=lambda u, w, x: …) or "
                "Problem(frozen_operator=…), "
                "linear in u, with w the last iterate. For Navier-Stokes: grad(u.v)(x) @ w.v(x)."
            )
        # The source comes from the original operator: they agree only at w = u.
        equation, *conditions = self.terms
        equation = dataclasses.replace(equation, lhs=_FrozenOperator(operator))
        return (equation, *conditions)

    @cached_property
    def exact_fields(self) -> Any:
        """The exact solution as user functions see an unknown."""
        if self.exact is None:
            return None
        return Fields(self.exact) if isinstance(self.exact, Mapping) else self.exact

    def exact_values(self, points: np.ndarray) -> np.ndarray:
        """All components of the exact solution at points (n, d), shape (n, C)."""
        if self.exact is None:
            raise ProblemError("The problem has no exact solution: give Problem(exact=…), or use error_estimate.")
        # In the guise of a boundary value, whose compiled function is at hand.
        values = Manufactured(Value(None), self.exact_fields_key)
        normals = np.zeros((len(points), self.domain.dim - self.layout.has_time))
        return values_at(values, self.layout, np.asarray(points, dtype=np.float64), normals)

    @property
    def exact_fields_key(self) -> Exact:
        return Exact(self.exact if callable(self.exact) else tuple(self.exact.items()))

    def right_side(self, term: Term) -> RightSide:
        """The right side of a term: its own data, or what the exact solution gives."""
        if term.rhs is None and self.exact is not None:
            return Manufactured(term.lhs, self.exact_fields_key)
        value = 0.0 if term.rhs is None else term.rhs
        if callable(value):
            return Given(value)
        parts = value if isinstance(value, tuple | list) else (value,)
        try:
            numbers = np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in parts])
        except (TypeError, ValueError) as error:
            raise ProblemError(f"{term.name!r} has the data {value!r}; expected numbers or a function.") from error
        return Given(tuple(numbers.tolist()))

    def orders(self, axis: int | None) -> tuple[int, ...]:
        """The differential order of the operator in each component, along an axis of space, or in time (None)."""
        column = self.domain.dim - 1 if axis is None else axis
        return tuple(self._all_orders[:, column].tolist())

    @cached_property
    def _all_orders(self) -> Int[np.ndarray, "C d"]:
        dim, has_time = self.domain.dim, self.layout.has_time
        return symbol_of(self._equation.lhs, self.layout, dim, dim - has_time).orders(self.domain.sample(5))

    @cached_property
    def hidden_jump(self) -> Jump | None:
        """Where a coefficient of the operator jumps inside a derivative, so that differentiation does not see it; None
        if no such place is found."""
        dim, has_time = self.domain.dim, self.layout.has_time
        return hidden_jump(symbol_of(self._equation.lhs, self.layout, dim, dim - has_time), self.domain)

    def _check_condition(self, condition: Any) -> None:
        if not isinstance(condition, BaseCondition):
            raise ProblemError(f"conditions must be Dirichlet, Neumann, … objects; got {type(condition).__name__}.")
        unknown = getattr(condition, "unknown", None)
        if unknown is not None and unknown not in (self.unknowns or {}):
            raise ProblemError(
                f"Condition {condition.name!r} is about the unknown {unknown!r}; this problem's unknowns are "
                f"{list(self.unknowns or {}) or 'one scalar (leave unknown= out)'}."
            )
        if not (np.isfinite(condition.weight) and condition.weight > 0):
            raise ProblemError(
                f"Condition {condition.name!r} has the weight {condition.weight}; expected a positive number."
            )
        if condition.on is not None and not isinstance(condition.on, Part | list | np.ndarray | Array):
            raise ProblemError(
                f"Condition {condition.name!r}: on= must be a part of the domain, such as domain.part(name), or "
                "points; "
                f"got {type(condition.on).__name__}."
            )

    def _check_start(self) -> None:
        """An equation with time derivatives needs something at one of its times."""
        if not self.layout.has_time or not any(self.orders(None)):
            return
        for term in self.terms[1:]:
            if not isinstance(term.on, Part) or np.ptp(term.on.sample(8)[0][:, -1]) == 0:
                return
        raise ProblemError(
            f"The equation is of order {max(self.orders(None))} in time, but no condition holds at the start: its "
            "solution is not unique. Add Initial(value)."
        )

    def _check_exact(self) -> None:
        if self.exact is None:
            return
        names = None if self.unknowns is None else list(self.unknowns)
        given = list(self.exact) if isinstance(self.exact, Mapping) else None
        if (names is None and not callable(self.exact)) or (names is not None and sorted(given or []) != sorted(names)):
            expected = (
                "a function of the point" if names is None else f"a dictionary with a function for each of {names}"
            )
            raise ProblemError(f"exact must be {expected}; got {given or type(self.exact).__name__}.")
        layout = self.layout
        point = jax.ShapeDtypeStruct((self.domain.dim,), jnp.float64)
        found = jax.eval_shape(lambda z: joined(self.exact_fields(*layout.arguments(z))), point).shape[0]
        if found != layout.components:
            raise ProblemError(
                f"exact has {found} values at a point; expected {layout.components}, one per component of the unknowns."
            )

    def _check_shapes(self, term: Term) -> None:
        """Evaluate the term abstractly at one point: no arithmetic, but every shape error shows."""
        layout = self.layout

        def left(z: Array, normal: Array) -> Array:
            u = layout.fields(lambda y: jnp.sum(y) * jnp.ones(layout.components))
            return term.lhs(u, u, layout.arguments(z), normal)

        what = "operator" if term.name == "equation" else f"condition {term.name!r}"
        data = "source" if term.name == "equation" else f"value of condition {term.name!r}"
        rows = self._shape(left, what, "u, ")
        self._check_indices(what, getattr(term.lhs, "function", None), with_unknown=True)
        if term.name == "equation" and layout.unknowns is None and rows != 1:
            raise ProblemError(
                f"The operator returned {rows} values at a point; expected a scalar for one unknown. "
                "Index the vector, or name the unknowns of a system with unknowns={'v': 2, …}."
            )
        self.check_data(term, rows, data)

    def check_data(self, term: Term, rows: int, data: str) -> None:
        """Refuse a right side that has not one value, or one for each of the `rows`, at a point; `data` is its name."""
        layout = self.layout

        def right(z: Array, normal: Array) -> Array:
            return self.right_side(term)(layout, layout.arguments(z), normal)

        found = self._shape(right, data, "")
        self._check_indices(data, term.rhs)
        if found not in (1, rows):
            raise ProblemError(
                f"The {data} has {found} entries at a point; expected {rows}, as many as the left side has, or one "
                "number."
            )

    def _shape(self, function: Callable[..., Array], what: str, first: str) -> int:
        """Number of values that a function returns at a point; what goes wrong in it is explained."""
        dim, has_time = self.domain.dim, self.layout.has_time
        point, space = (jax.ShapeDtypeStruct((n,), jnp.float64) for n in (dim, dim - has_time))
        try:
            return jax.eval_shape(function, point, space).shape[0]
        except PdofmError:
            raise
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ProblemError(
                f"The {what} cannot be evaluated at a point: {reason}. It is called as "
                f"({first}x{', t' if has_time else ''}) with x of shape ({dim - has_time},) and must return numbers. "
                "Use jax.numpy (jnp) instead of numpy and math, jnp.where instead of if, and apply operators to a "
                "point: laplacian(u)(x)."
            ) from error

    def _check_indices(self, what: str, function: Any, with_unknown: bool = False) -> None:
        """JAX clamps an index that is out of range, NumPy does not: trace the function at one point of NumPy's."""
        if not callable(function):
            return
        layout, z = self.layout, self._some_point
        args: tuple[Any, ...] = (z[:-1], z[-1]) if layout.has_time else (z,)
        extra = {"normal": np.zeros(len(args[0]))} if takes_normal(function) else {}

        def traced(values: Array) -> Any:
            return function(*((layout.fields(lambda y: values),) if with_unknown else ()), *args, **extra)

        try:
            with np.errstate(all="ignore"):
                jax.eval_shape(traced, jax.ShapeDtypeStruct((layout.components,), jnp.float64))
        except IndexError as error:
            raise ProblemError(
                f"The {what} uses a coordinate that does not exist: {error}. x has {len(args[0])} coordinates."
            ) from error
        except Exception:  # noqa: BLE001 (everything else shows when it is traced)
            pass

    @cached_property
    def _some_point(self) -> np.ndarray:
        return self.domain.sample(1)[0]

    def _check_part(self, term: Term) -> None:
        """Points of a condition must lie in the closed domain."""
        if term.on is None:
            return
        if isinstance(term.on, Part):
            # Just inside, along the normal: a face of a primitive that a combination removed is not on its boundary.
            points, normals = term.on.sample(64)
            outside = ~self.domain.contains(points - 1e-7 * self.domain.size * normals)
        else:
            points = self.given_points(term)
            outside = ~self.domain.contains(points, tol=1e-9 * self.domain.size)
        if outside.any():
            raise ProblemError(
                f"Condition {term.name!r}: {outside.sum()} of {len(points)} points, for instance "
                f"{points[outside][0].tolist()}, lie "
                f"outside {self.domain!r}. Take the part from this domain: domain.boundary, domain.part(name) or "
                "domain.boundary.where(predicate)."
            )

    def given_points(self, term: Term) -> np.ndarray:
        """The points of a condition that is stated at points."""
        points = np.asarray(term.on, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.domain.dim or len(points) == 0:
            raise ProblemError(
                f"Condition {term.name!r}: on= must be a part of the domain or points of shape (n, {self.domain.dim}); "
                f"got an array of shape {points.shape}."
            )
        return points


def _check_unknowns(unknowns: Mapping[str, int]) -> None:
    for name, size in unknowns.items():
        if not (isinstance(name, str) and name.isidentifier() and not name.startswith("_") and name not in RESERVED):
            raise ProblemError(
                f"{name!r} cannot name an unknown; expected a Python name that is not one of {sorted(RESERVED)}."
            )
        if not isinstance(size, int) or size < 1:
            raise ProblemError(f"The unknown {name!r} has the size {size!r}; expected an integer of at least 1.")
    if not unknowns:
        raise ProblemError("unknowns is empty; name them with their sizes, as in {'v': 2, 'p': 1}, or leave it out.")
