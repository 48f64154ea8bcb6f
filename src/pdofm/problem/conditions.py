"""Boundary, initial, periodic and general conditions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array, core

from pdofm.calculus.operators import dt, normal_derivative, partial
from pdofm.calculus.terms import CONDITION_WEIGHT, Difference, Layout, LeftSide, Term, Where, joined
from pdofm.domain import Domain, Part, SpaceTime
from pdofm.errors import ProblemError
from pdofm.problem.called import call, refuse_texts, takes_normal
from pdofm.problem.tabulated import shown, tabulated

JUST_INSIDE = 1e-7
"""How far points of the boundary are moved along the inward normal to test whether the domain lies there, in sizes of
the domain: far above rounding, far below any detail of a domain."""

FACE_PROBES = 64
"""Points at which the two faces of a periodic condition are compared."""

Data = Any
"""A number, a vector, or a function of (x) or (x, t); None where the exact solution provides the values."""

_NUMBERS = (int, float, complex, np.number, core.Tracer)
Coefficient = float | complex | Callable[..., Any]
"""A number, or a function of (x) or (x, t)."""


@dataclass(frozen=True)
class Context:
    """What a condition can learn about its problem.

    ``orders(axis)`` returns the differential order of the operator in each component, along an axis of space, or in
    time for None. `covered` are the interfaces between regions that other conditions name.
    """

    domain: Domain
    boundary: Part
    layout: Layout
    has_exact: bool
    orders: Callable[[int | None], tuple[int, ...]]
    covered: Collection[tuple[str, str]] = ()


def _select(u: Any, unknown: str | None) -> Callable[..., Array]:
    return u if unknown is None else getattr(u, unknown)


@dataclass(frozen=True)
class Residual:
    """The value of the user's function ``residual(u, x)``."""

    function: Callable[..., Any]

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        return joined(call(self.function, (u, *args), normal))


@dataclass(frozen=True)
class Value:
    """The value of u, or of one of the unknowns."""

    is_linear: ClassVar[bool] = True

    unknown: str | None

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        return joined(_select(u, self.unknown)(*args))


@dataclass(frozen=True)
class _Mixed:
    """The combination alpha u + beta ∂u/∂n."""

    is_linear: ClassVar[bool] = True

    alpha: Coefficient
    beta: Coefficient
    unknown: str | None

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        of_u = _select(u, self.unknown)
        alpha, beta = (call(c, args, normal) if callable(c) else c for c in (self.alpha, self.beta))
        slope = beta * joined(normal_derivative(of_u, normal)(*args))
        return slope if isinstance(alpha, float) and alpha == 0 else alpha * joined(of_u(*args)) + slope


@dataclass(frozen=True)
class _Velocity:
    """The derivative ∂u/∂t."""

    is_linear: ClassVar[bool] = True

    unknown: str | None

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        return joined(dt(_select(u, self.unknown))(*args))


@dataclass(frozen=True)
class _Derivatives:
    """The derivatives of orders 0 to derivatives[i] of each component i along an axis."""

    is_linear: ClassVar[bool] = True

    axis: int
    derivatives: tuple[int, ...]

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        def components(*a: Array) -> Array:
            return joined(u(*a))

        rows = []
        for order in range(max(self.derivatives) + 1):
            value = partial(components, *[self.axis] * order)(*args)
            rows += [value[i] for i, highest in enumerate(self.derivatives) if order <= highest]
        return jnp.stack(rows)


class BaseCondition(ABC):
    """A condition: where it holds (`on`, the whole boundary if omitted), its name in messages, and its weight."""

    on: Where
    name: str
    weight: float

    def __post_init__(self):
        refuse_texts(self, self.name)

    @abstractmethod
    def terms(self, problem: Context) -> list[Term]:
        """The terms of the least-squares problem that state this condition."""

    def _term(self, problem: Context, lhs: LeftSide, rhs: Any, suffix: str = "") -> Term:
        on = problem.boundary if self.on is None else self.on
        if isinstance(on, Part) and not on.pieces:
            raise ProblemError(
                f"Condition {self.name!r} has no boundary left to hold on, because periodic conditions join all faces. "
                "Leave it out."
            )
        needs_normal = isinstance(lhs, _Mixed) or (isinstance(lhs, Residual) and takes_normal(lhs.function))
        if needs_normal and not isinstance(on, Part):
            raise ProblemError(
                f"Condition {self.name!r} needs a normal, which given points do not have. State it on a part of the "
                "boundary: domain.part(name) or domain.boundary.where(predicate)."
            )
        layout, unknown = problem.layout, getattr(self, "unknown", None)
        components = layout.numbers if unknown is None else layout.offsets[unknown][1]
        return Term(self.name + suffix, lhs, tabulated(rhs, self.on, self.name, components), on, self.weight)

    def __repr__(self) -> str:
        """The constructor with the arguments that differ from the defaults."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not f.default}  # type: ignore[arg-type]
        arguments = ", ".join(f"{name}={shown(value)}" for name, value in given.items() if value is not None)
        return f"{type(self).__name__}({arguments})"


@dataclass(frozen=True, eq=False, repr=False)
class Condition(BaseCondition):
    """A general condition, ``residual(u, x) = 0``, on a part of the domain or at given points of shape (n, d).

    In space-time the residual is called as ``residual(u, x, t)``. A parameter called ``normal`` receives the outward
    normal: ``Condition(lambda u, x, normal: pf.normal_derivative(u, normal)(x) + u(x) ** 4, on=wall)``.
    """

    residual: Callable[..., Any]
    on: Where = None
    _: KW_ONLY
    name: str = "condition"
    weight: float = CONDITION_WEIGHT

    def terms(self, problem: Context) -> list[Term]:
        return [self._term(problem, Residual(self.residual), 0.0)]


@dataclass(frozen=True, eq=False, repr=False)
class Dirichlet(BaseCondition):
    """The condition ``u = value``. In a system, `unknown` names the unknown that is given (all of them if omitted).

    Values that were measured are given with their points: ``Dirichlet(values, on=points)``, of shapes (n,) and (n, d).
    """

    value: Data = None
    on: Where = None
    _: KW_ONLY
    unknown: str | None = None
    name: str = "dirichlet"
    weight: float = CONDITION_WEIGHT

    def terms(self, problem: Context) -> list[Term]:
        term = self._term(problem, Value(self.unknown), self.value)
        return [replace(term, kind="value") if self.on is None and self.unknown is None else term]


@dataclass(frozen=True, eq=False, repr=False)
class Neumann(BaseCondition):
    """The condition ``∂u/∂n = value``, with n the outward normal."""

    value: Data = None
    on: Where = None
    _: KW_ONLY
    unknown: str | None = None
    name: str = "neumann"
    weight: float = CONDITION_WEIGHT

    def terms(self, problem: Context) -> list[Term]:
        return [self._term(problem, _Mixed(0.0, 1.0, self.unknown), self.value)]


@dataclass(frozen=True, eq=False, repr=False)
class Robin(BaseCondition):
    """The condition ``alpha u + beta ∂u/∂n = value``, with n the outward normal; alpha and beta are numbers, or
    functions of the point."""

    alpha: Any
    beta: Any
    value: Data = None
    on: Where = None
    _: KW_ONLY
    unknown: str | None = None
    name: str = "robin"
    weight: float = CONDITION_WEIGHT

    def __post_init__(self):
        super().__post_init__()
        for c in (self.alpha, self.beta):
            if not (callable(c) or (isinstance(c, _NUMBERS) and (isinstance(c, core.Tracer) or np.isfinite(c)))):
                raise ProblemError(
                    f"Condition {self.name!r}: alpha and beta must be numbers or functions of the point; got "
                    f"{shown(self.alpha)}, {shown(self.beta)}."
                )

    def terms(self, problem: Context) -> list[Term]:
        if not problem.layout.is_complex and any(map(np.iscomplexobj, (self.alpha, self.beta))):
            raise ProblemError(
                f"Condition {self.name!r} has complex coefficients, but the unknowns are real. Give dtype=complex."
            )
        # Numbers as floats, so that equal conditions share compiled functions.
        alpha, beta = (c if callable(c) else 1.0 * c for c in (self.alpha, self.beta))
        return [self._term(problem, _Mixed(alpha, beta, self.unknown), self.value)]


@dataclass(frozen=True, eq=False, repr=False)
class Periodic(BaseCondition):
    """The solution agrees on the two faces of a box across `axis`: its values, and its normal derivatives up to the
    order of the operator minus one.

    The derivatives matter: with the values alone, the wave equation is under-determined. ``derivatives=0`` matches the
    values only.
    """

    axis: int = 0
    derivatives: int | None = None
    _: KW_ONLY
    name: str = "periodic"
    weight: float = CONDITION_WEIGHT
    on: Where = None

    def terms(self, problem: Context) -> list[Term]:
        domain = problem.domain
        space_dim = domain.dim - problem.layout.has_time
        if not 0 <= self.axis < space_dim:
            raise ProblemError(
                f"Condition {self.name!r}: axis must be 0 to {space_dim - 1} in {domain!r}; got {self.axis}."
            )
        if self.on is not None:
            raise ProblemError(
                f"Condition {self.name!r}: a periodic condition chooses its faces by axis=; leave out on=."
            )
        period = float(domain.upper[self.axis] - domain.lower[self.axis])
        self._check_faces(domain, period)
        opposite = tuple(period * (axis == self.axis) for axis in range(domain.dim))
        lhs = Difference(_Derivatives(self.axis, self._matched(problem)), ((0.0,) * domain.dim, opposite))
        return [Term(self.name, lhs, 0.0, domain.face(self.axis, 0), self.weight, "periodic")]

    def _matched(self, problem: Context) -> tuple[int, ...]:
        """The highest derivative that is matched, for each component."""
        if self.derivatives is None:
            return tuple(max(order - 1, 0) for order in problem.orders(self.axis))
        if not isinstance(self.derivatives, int) or self.derivatives < 0:
            raise ProblemError(
                f"Condition {self.name!r}: derivatives must be an integer of at least 0; got {self.derivatives!r}."
            )
        return (self.derivatives,) * problem.layout.numbers

    def _check_faces(self, domain: Domain, period: float) -> None:
        """Raise unless each of the two faces, shifted by the period, lies on the other one."""
        step = period * np.eye(domain.dim)[self.axis]
        for side, shift in ((0, step), (1, -step)):
            points, normals = domain.face(self.axis, side).sample(FACE_PROBES)
            # The outward normal of one face is the inward normal of the other.
            if not domain.contains(points + shift + JUST_INSIDE * domain.size * normals).all():
                raise ProblemError(
                    f"Condition {self.name!r}: the faces of {domain!r} across axis {self.axis} do not match. A "
                    "periodic condition needs two opposite faces that are translates of each other."
                )


@dataclass(frozen=True, eq=False, repr=False)
class Initial(BaseCondition):
    """The condition ``u = value`` at the initial time and, if the equation is of second order in time,
    ``∂u/∂t = velocity``."""

    value: Data = None
    velocity: Data = None
    _: KW_ONLY
    unknown: str | None = None
    name: str = "initial"
    weight: float = CONDITION_WEIGHT
    on: Where = None

    def terms(self, problem: Context) -> list[Term]:
        if not isinstance(problem.domain, SpaceTime):
            raise ProblemError(
                f"Condition {self.name!r} needs a domain with time; got {problem.domain!r}. Use SpaceTime(space, T)."
            )
        on = problem.domain.initial if self.on is None else self.on
        terms = [Term(self.name, Value(self.unknown), self.value, on, self.weight)]
        orders = problem.orders(None)
        if self.unknown is not None:
            start, size = problem.layout.offsets[self.unknown]
            orders = orders[start : start + size]
        order = max(orders)
        if order < 2:
            if self.velocity is not None:
                raise ProblemError(
                    f"Condition {self.name!r}: a velocity is given, but the equation is of order {order} in time. "
                    "Leave the velocity out."
                )
            return terms
        if self.velocity is None and not problem.has_exact:
            raise ProblemError(
                f"Condition {self.name!r}: the equation is of second order in time, but no velocity is given. "
                "Write Initial(value, velocity)."
            )
        return [*terms, Term(f"{self.name}-velocity", _Velocity(self.unknown), self.velocity, on, self.weight)]
