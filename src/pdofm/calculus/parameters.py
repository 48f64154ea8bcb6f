"""Parameters of an equation: unknown numbers.

A left side with parameters is an ordinary left side as long as they are fixed. While they are being found, their values
travel behind the normal at a point. So one compiled symbol serves all values, and its derivative with respect to these
entries says how the left side depends on the parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax import Array

from pdofm.calculus.terms import Difference, LeftSide, Term, with_parameters


@dataclass(frozen=True)
class Parameters:
    """The parameters of a problem: `numbers` with a value each."""

    numbers: tuple[tuple[str, float], ...]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.numbers]

    @property
    def values(self) -> dict[str, Any]:
        """The fixed values, by name."""
        return dict(self.numbers)

    def replaced(self, values: Mapping[str, Any]) -> "Parameters":
        """The same parameters with other fixed values."""
        return Parameters(tuple((name, float(values.get(name, value))) for name, value in self.numbers))

    def at(self, entries: Array) -> dict[str, Any]:
        """The parameters as left sides receive them, from their entries behind a normal."""
        return {name: entries[i] for i, name in enumerate(self.names)}


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
        values = self.parameters.values if len(normal) == space else self.parameters.at(normal[space:])
        return self.lhs(with_parameters(u, values), with_parameters(w, values), args, normal[:space])


def parametrised(term: Term, parameters: Parameters) -> Term:
    """The term with a left side that knows the parameters."""
    if isinstance(term.lhs, Difference):
        return replace(term, lhs=Difference(Parametrised(term.lhs.lhs, parameters), term.lhs.shifts))
    return replace(term, lhs=Parametrised(term.lhs, parameters))


def extended(normals: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Normals (n, s) with entries of the parameters, (n, e) or (e,), behind them."""
    return np.hstack([normals, np.broadcast_to(entries, (len(normals), entries.shape[-1]))])
