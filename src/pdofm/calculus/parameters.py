"""Parameters of an equation: unknown numbers and unknown fields, such as a coefficient k(x).

A left side with parameters is an ordinary left side as long as they are fixed. While they are being found, their values
travel behind the normal at a point: numbers as they are, fields by their derivatives there. So one compiled symbol
serves all values, and its derivative with respect to these entries says how the left side depends on the parameters.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.jets import Index, up_to
from pdofm.calculus.terms import Difference, LeftSide, Term, with_parameters

FIELD_ORDER = 2
"""The highest derivatives of an unknown field that a left side may contain."""


def stored(args: tuple[Any, ...]) -> Array:
    """The arguments of the user's functions, (x,) or (x, t), as a stored point."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(each)) for each in args])


@dataclass(frozen=True, eq=False)
class FieldValues:
    """An unknown field with certain values: its start plus a correction, or for a positive one its start times the
    exponential of a correction.

    Attributes:
        start: a number, or a function of the point.
        positive: whether the correction is one of the logarithm.
        correction: a function of a stored point; zero if omitted.
    """

    start: float | Callable[..., Any]
    positive: bool
    correction: Callable[[Array], Array] | None = None

    def __call__(self, *args: Array) -> Array:
        added = jnp.zeros(()) if self.correction is None else self.correction(stored(args))
        return self.with_correction(args, added)

    def with_correction(self, args: tuple[Any, ...], added: Any) -> Any:
        """The value at a point where the correction is known."""
        first = self.start(*args) if callable(self.start) else self.start
        return first * jnp.exp(added) if self.positive else first + added

    def slope(self, values: np.ndarray) -> np.ndarray:
        """The derivative of the values with respect to the correction."""
        return values if self.positive else np.ones_like(values)

    def expanded(self, at: Array, jet: Array) -> Callable[..., Array]:
        """The field near a stored point, from the derivatives of the correction there."""

        def near(*args: Array) -> Array:
            step = stored(args) - at
            return self.with_correction(args, jet @ jnp.stack([_monomial(step, a) for a in field_indices(len(at))]))

        return near


def field_indices(dim: int) -> tuple[Index, ...]:
    """The derivatives by which a field travels."""
    return up_to(dim, FIELD_ORDER)


def _monomial(step: Array, index: Index) -> Array:
    """step^α / α!, as a product, so that its derivatives exist where the step is zero."""
    product = jnp.ones((), step.dtype)
    for i, power in enumerate(index):
        for _ in range(power):
            product = product * step[i]
    return product / math.prod(math.factorial(power) for power in index)


@dataclass(frozen=True)
class Parameters:
    """The parameters of a problem: `numbers` and `fields`, each with a name and a value."""

    numbers: tuple[tuple[str, float], ...]
    fields: tuple[tuple[str, FieldValues], ...] = ()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in (*self.numbers, *self.fields)]

    @property
    def values(self) -> dict[str, Any]:
        """The fixed values, by name."""
        return dict((*self.numbers, *self.fields))

    def replaced(self, values: Mapping[str, Any]) -> "Parameters":
        """The same parameters with other fixed values."""
        numbers = tuple((name, float(values.get(name, value))) for name, value in self.numbers)
        return Parameters(numbers, tuple((name, values.get(name, value)) for name, value in self.fields))

    def at(self, entries: Array, point: Array) -> dict[str, Any]:
        """The parameters as left sides receive them, from their entries behind a normal at a stored point."""
        found: dict[str, Any] = {name: entries[i] for i, (name, _) in enumerate(self.numbers)}
        start, size = len(self.numbers), len(field_indices(len(point))) if self.fields else 0
        for name, field in self.fields:
            found[name] = field.expanded(point, entries[start : start + size])
            start += size
        return found


@dataclass(frozen=True)
class Parametrised:
    """A left side with parameters: those behind the normal, or the fixed ones if nothing is there."""

    lhs: LeftSide
    parameters: Parameters

    @property
    def is_linear(self) -> bool:
        """Whether the left side is linear in u by construction."""
        return getattr(self.lhs, "is_linear", False)

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        space = len(args[0])
        values = self.parameters.values if len(normal) == space else self.parameters.at(normal[space:], stored(args))
        return self.lhs(with_parameters(u, values), with_parameters(w, values), args, normal[:space])


def parametrised(term: Term, parameters: Parameters) -> Term:
    """The term with a left side that knows the parameters."""
    if isinstance(term.lhs, Difference):
        return replace(term, lhs=Difference(Parametrised(term.lhs.lhs, parameters), term.lhs.shifts))
    return replace(term, lhs=Parametrised(term.lhs, parameters))


def extended(normals: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Normals (n, s) with entries of the parameters, (n, e) or (e,), behind them."""
    return np.hstack([normals, np.broadcast_to(entries, (len(normals), entries.shape[-1]))])
