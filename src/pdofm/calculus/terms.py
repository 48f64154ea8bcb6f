"""The terms that a problem consists of, and how the user's functions receive points and unknowns.

A point is stored as one vector ``z``; the user's functions receive it as ``(x,)``, or as ``(x, t)`` in space-time. The
values of all unknowns are stored as one vector of components; the user's functions receive a function ``u(x)``, or in a
system functions ``u.v(x)`` and ``u.p(x)``.

A complex unknown is stored as two real ones, its real parts followed by its imaginary parts, and a complex equation is
two real ones. This happens here and nowhere else: the user's functions receive and return complex numbers, and all that
is computed from terms is real.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.domain import Domain, Part
from pdofm.errors import ProblemError, unknown_name

CONDITION_WEIGHT = 10.0
"""Default weight of the rows of a condition, relative to those of the equation; all rows have unit norm before.

The rows of the equation outnumber those of a condition, and an error on the boundary spreads over the whole domain. On
elliptic problems weights from 10 to 100 make the error 2 to 5 times smaller than a weight of 1 does; on the wave
equation weights from 3 to 30 are best. 10 is close to the best on all of them."""

Evaluate = Callable[[Array], Array]
"""A function from a stored point (d,) to all components (C,)."""


class Fields:
    """The unknowns of a system as functions. ``u.v(x)`` has shape (2,) for ``unknowns={"v": 2}``; ``u(x)`` is the
    vector of all components. Unknown numbers, and functions that belong to the coefficients, are `parameters`: they are
    found by name only."""

    def __init__(self, functions: Mapping[str, Callable[..., Array]], parameters: Mapping[str, Any] | None = None):
        self._functions, self._parameters = dict(functions), dict(parameters or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = self._functions | self._parameters
        if name not in known:
            raise AttributeError(str(unknown_name("unknown of the problem", name, known)))
        return known[name]

    def __call__(self, *args: Array) -> Array:
        return jnp.concatenate([jnp.atleast_1d(f(*args)) for f in self._functions.values()])


def with_parameters(fields: Fields, parameters: Mapping[str, Any]) -> Fields:
    """The same unknowns with parameters, where these are not known yet."""
    return Fields(fields._functions, {**parameters, **fields._parameters})


def known_fields(known: Mapping[str, Any], layout: "Layout") -> Fields:
    """A solution that is given by name as left sides receive it; what the layout does not know is a parameter."""
    names = [name for name, _ in layout.unknowns or ()]
    parameters = {name: value for name, value in known.items() if name not in names}
    return Fields({name: value for name, value in known.items() if name in names}, parameters)


@dataclass(frozen=True)
class Layout:
    """The names and sizes of the unknowns, whether the last coordinate is a time, and whether values are complex."""

    unknowns: tuple[tuple[str, int], ...] | None
    has_time: bool
    is_complex: bool = field(default=False, kw_only=True)

    @property
    def numbers(self) -> int:
        """How many numbers, real or complex, all unknowns together have at a point."""
        return 1 if self.unknowns is None else sum(size for _, size in self.unknowns)

    @property
    def components(self) -> int:
        """Number of real components of all unknowns together."""
        return 2 * self.numbers if self.is_complex else self.numbers

    @property
    def names(self) -> list[str]:
        """A name for each number that the unknowns have at a point: ``u``, or ``v[0], v[1], p``."""
        if self.unknowns is None:
            return ["u"]
        return [n if size == 1 else f"{n}[{i}]" for n, size in self.unknowns for i in range(size)]

    @property
    def component_names(self) -> list[str]:
        """A name per real component: ``u``, or ``v[0], v[1], p``; of complex unknowns ``Re u, Im u``."""
        return [f"{part} {n}" for part in ("Re", "Im") for n in self.names] if self.is_complex else self.names

    def gathered(self, components: Any) -> Any:
        """The values of the unknowns from real components, along the last axis."""
        if not self.is_complex:
            return components
        re, im = components[..., : self.numbers], components[..., self.numbers :]
        return re + 1j * im if isinstance(re, np.ndarray) else jax.lax.complex(re, im)

    def realified(self, value: Array) -> Array:
        """The value of a user's function at a point as real numbers: real parts, then imaginary parts."""
        return jnp.concatenate([jnp.real(value), jnp.imag(value)]) if self.is_complex else value

    @property
    def offsets(self) -> dict[str, tuple[int, int]]:
        """First component and number of components of each unknown of a system."""
        found, at = {}, 0
        for name, size in self.unknowns or ():
            found[name] = (at, size)
            at += size
        return found

    def arguments(self, z: Array) -> tuple[Array, ...]:
        """A stored point as the arguments of the user's functions."""
        return (z[:-1], z[-1]) if self.has_time else (z,)

    def point(self, args: tuple[Array, ...]) -> Array:
        """The arguments of the user's functions as a stored point."""
        return jnp.concatenate([args[0], jnp.reshape(args[1], (1,))]) if self.has_time else args[0]

    def fields(self, evaluate: Evaluate) -> Any:
        """The unknowns as the user's functions receive them."""

        def values(args: tuple[Array, ...]) -> Array:
            return self.gathered(evaluate(self.point(args)))

        if self.unknowns is None:
            return lambda *args: values(args)[0]

        def function(start: int, size: int) -> Callable[..., Array]:
            if size == 1:
                return lambda *args: values(args)[start]
            return lambda *args: values(args)[start : start + size]

        return Fields({name: function(*at) for name, at in self.offsets.items()})


@dataclass(frozen=True)
class PairLayout(Layout):
    """The unknowns on both sides of an interface between two regions: ``u.plate(x)`` and ``u.inclusion(x)``, in a
    system ``u.plate.v(x)``. Components are those of the first region, then those of the second."""

    regions: tuple[str, str]

    @property
    def one(self) -> Layout:
        """The unknowns on one side."""
        return Layout(self.unknowns, self.has_time, is_complex=self.is_complex)

    @property
    def components(self) -> int:
        return 2 * self.one.components

    def fields(self, evaluate: Evaluate) -> Any:
        size = self.one.components

        def side(start: int) -> Any:
            return self.one.fields(lambda z: evaluate(z)[start : start + size])

        return Fields({name: side(i * size) for i, name in enumerate(self.regions)})


def joined(value: Any) -> Array:
    """The value of a user's function at a point (a scalar, a vector, or a tuple of these) as one vector."""
    parts = [jnp.ravel(jnp.asarray(part)) for part in (value if isinstance(value, tuple | list) else (value,))]
    is_complex = any(jnp.issubdtype(part.dtype, jnp.complexfloating) for part in parts)
    if is_complex:
        return jnp.concatenate([part.astype(jnp.result_type(complex)) for part in parts])
    return jnp.concatenate(
        [part if jnp.issubdtype(part.dtype, jnp.floating) else part.astype(jnp.result_type(float)) for part in parts]
    )


def check_real(value: Any) -> None:
    """Raise if the value of a user's function is complex, in a problem with real unknowns."""
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise ProblemError(
            "A function of the problem returned a complex value at a point; expected real ones. For complex unknowns, "
            "sources and conditions give Problem(…, dtype=complex)."
        )


@dataclass(frozen=True, eq=False)
class Average:
    """Where a term holds that only the mean of its left side over a domain, or over a part of one, must satisfy."""

    over: Domain | Part


Where = Part | Average | np.ndarray | Array | list | None
"""Where a term holds: on a part of the domain, on average over something, at given points (n, d), or, if None, in the
whole interior."""

LeftSide = Callable[[Any, Any, tuple[Array, ...], Array], Array]
"""A function ``lhs(u, w, args, normal) -> (k,)`` of the unknown u, the last iterate w (held fixed by Picard), the
point, given as args = (x,) or (x, t), and the normal there.

Equal left sides share one compiled function. One that is linear by construction may declare so by an attribute
`is_linear`; its linearity is then not tested."""


@dataclass(frozen=True)
class Realified:
    """A complex left side as twice as many real ones."""

    lhs: LeftSide
    layout: Layout

    @property
    def is_linear(self) -> bool:
        """Whether the left side is linear by construction."""
        return getattr(self.lhs, "is_linear", False)

    @property
    def function(self) -> Any:
        """The user's function, if there is one."""
        return getattr(self.lhs, "function", None)

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        return self.layout.realified(self.lhs(u, w, args, normal))


def in_layout(term: "Term", layout: Layout) -> "Term":
    """The term with a left side of real numbers, as the layout stores them."""
    if not layout.is_complex:
        return term
    if isinstance(term.lhs, Difference):
        return replace(term, lhs=Difference(Realified(term.lhs.lhs, layout), term.lhs.shifts))
    return replace(term, lhs=Realified(term.lhs, layout))


@dataclass(frozen=True)
class Difference:
    """A left side at one point minus the same left side at another. Each is the point of the term plus a shift."""

    lhs: LeftSide
    shifts: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def is_linear(self) -> bool:
        """Whether the left side is linear by construction."""
        return getattr(self.lhs, "is_linear", False)

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        def shifted(by: tuple[float, ...]) -> Array:
            parts = (by,) if len(args) == 1 else (by[:-1], by[-1])
            return self.lhs(u, w, tuple(a + jnp.array(b, a.dtype) for a, b in zip(args, parts, strict=True)), normal)

        return shifted(self.shifts[0]) - shifted(self.shifts[1])


def sides(lhs: LeftSide, dim: int) -> list[tuple[float, np.ndarray, LeftSide]]:
    """A left side as a sum of others, each with its sign and the shift of the point where it is evaluated."""
    if not isinstance(lhs, Difference):
        return [(1.0, np.zeros(dim), lhs)]
    above, below = (np.array(shift) for shift in lhs.shifts)
    return [(1.0, above, lhs.lhs), (-1.0, below, lhs.lhs)]


@dataclass(frozen=True, eq=False)
class Term:
    """The equations ``lhs(u) = rhs`` at the points of a part of the domain; their rows are multiplied by `weight`.

    Where the domain consists of several regions, a term belongs to one of them, or to a `pair` on an interface."""

    name: str
    lhs: LeftSide
    rhs: Any
    on: Where
    weight: float
    kind: str = "other"  # "value": prescribes all unknowns on the whole boundary; "periodic": opposite faces agree
    region: str | None = None
    pair: tuple[str, str] | None = None


def distinct(terms: list[Term]) -> list[Term]:
    """The terms with unique names: a number is appended to each name that occurred before."""
    taken: set[str] = set()
    for i, term in enumerate(terms):
        name, count = term.name, 1
        while name in taken:
            count += 1
            name = f"{term.name}-{count}"
        taken.add(name)
        terms[i] = replace(term, name=name)
    return terms
