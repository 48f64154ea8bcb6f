"""Parameters of an equation: unknown numbers, and unknown functions in its coefficients.

A left side with parameters is an ordinary left side as long as they are fixed. While they are being found, their values
at a point travel behind the normal there: first the numbers, then for each function its derivatives up to the order
that the equation asks for. So one compiled symbol serves all values, and its derivative with respect to these entries
says how the left side depends on the parameters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.formal import function_of_jet, order_and_entries
from pdofm.calculus.jets import Index, up_to
from pdofm.calculus.terms import Difference, Layout, LeftSide, Term, with_parameters


@dataclass(frozen=True)
class Parameters:
    """The parameters of a problem: `numbers` with a value each, and `functions` of the point with a value each (a
    function) and the highest order to which left sides differentiate them."""

    numbers: tuple[tuple[str, float], ...]
    functions: tuple[tuple[str, Callable[..., Any], int], ...] = ()

    @property
    def names(self) -> list[str]:
        return [each[0] for each in (*self.numbers, *self.functions)]

    @property
    def values(self) -> dict[str, Any]:
        """The fixed values, by name."""
        return dict(self.numbers) | {name: value for name, value, _ in self.functions}

    def replaced(self, values: Mapping[str, Any]) -> "Parameters":
        """The same parameters with other fixed values."""
        return Parameters(
            tuple((name, float(values.get(name, value))) for name, value in self.numbers),
            tuple((name, values.get(name, value), order) for name, value, order in self.functions),
        )

    def indices(self, dim: int) -> dict[str, tuple[Index, ...]]:
        """The derivatives of each function that left sides may ask for."""
        return {name: up_to(dim, order) for name, _, order in self.functions}

    def at(self, entries: Array, z: Array, layout: Layout) -> dict[str, Any]:
        """The parameters as left sides receive them, from their entries behind a normal at the point z."""
        found: dict[str, Any] = {name: entries[i] for i, (name, _) in enumerate(self.numbers)}
        start = len(self.numbers)
        for name, _, order in self.functions:
            which = up_to(len(z), order)
            jet = entries[start : start + len(which)][:, None]
            found[name] = _function(function_of_jet(len(z), order, which, 1), jet, z, layout)
            start += len(which)
        return found


def _function(of_jet: Callable[..., Array], jet: Array, z: Array, layout: Layout) -> Callable[..., Array]:
    def value(*args: Array) -> Array:
        y = jnp.asarray(layout.point(args), jnp.result_type(float))
        return of_jet(y, jet, (z, jnp.zeros(())))[0]

    return value


@dataclass(frozen=True)
class Parametrised:
    """A left side with parameters: those behind the normal, or the fixed ones if nothing is there."""

    lhs: LeftSide
    parameters: Parameters
    layout: Layout

    @property
    def is_linear(self) -> bool:
        """Whether the left side is linear in u by construction."""
        return getattr(self.lhs, "is_linear", False)

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        space = len(args[0])
        if len(normal) == space:
            values = self.parameters.values
        else:
            values = self.parameters.at(normal[space:], self.layout.point(args), self.layout)
        return self.lhs(with_parameters(u, values), with_parameters(w, values), args, normal[:space])


def parametrised(term: Term, parameters: Parameters, layout: Layout) -> Term:
    """The term with a left side that knows the parameters."""
    if isinstance(term.lhs, Difference):
        return replace(term, lhs=Difference(Parametrised(term.lhs.lhs, parameters, layout), term.lhs.shifts))
    return replace(term, lhs=Parametrised(term.lhs, parameters, layout))


@dataclass(frozen=True)
class _InFunction:
    """A left side as one of a function among the parameters, with everything else fixed."""

    lhs: LeftSide
    name: str
    values: Mapping[str, Any]
    layout: Layout

    def __call__(self, k: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        values = {**self.values, self.name: k}
        u = with_parameters(self.layout.fields(_some_function(self.layout)), values)
        return self.lhs(u, u, args, normal)


def _some_function(layout: Layout) -> Callable[[Array], Array]:
    return lambda y: jnp.exp(jnp.mean(y)) * jnp.ones(layout.components)


def order_in(lhs: LeftSide, name: str, values: Mapping[str, Any], layout: Layout, dim: int) -> int:
    """The highest order to which a left side differentiates the function `name` among its parameters."""
    inner = lhs.lhs if isinstance(lhs, Difference) else lhs
    alone = Layout(None, layout.has_time)
    return order_and_entries(_InFunction(inner, name, values, layout), alone, dim, dim - layout.has_time)[0]


def extended(normals: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Normals (n, s) with entries of the parameters, (n, e) or (e,), behind them."""
    return np.hstack([normals, np.broadcast_to(entries, (len(normals), entries.shape[-1]))])
