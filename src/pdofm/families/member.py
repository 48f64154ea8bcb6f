"""The solution of one member of a family."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.jets import unit
from pdofm.domain import Part
from pdofm.domain.quadrature import over_part, quadrature_of
from pdofm.errors import ProblemError
from pdofm.solving.called import points_of
from pdofm.solving.solution import Solution

QUADRATURE = {1: 128, 2: 64, 3: 26}
"""Nodes along the longest side of a domain in the integrals of `Varied`, by dimension."""


@dataclass(frozen=True, eq=False, repr=False)
class FamilySolution(Solution):
    """A solution that knows the family it belongs to, and its parameters `mu`."""

    family: Any = None
    mu: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def sensitivity(self, of: Callable[[Any], Any]) -> np.ndarray:
        """The gradient of a number with respect to the parameters, of the shape of `mu`, by one adjoint solve.

        Args:
            of: the number as a function of the solution, ``of(u)``. In it, ``u(points)``, ``u.gradient(points)`` and
                ``u.integral()`` are arrays of JAX: compute with `jax.numpy` and operators.
        """
        if not callable(of):
            raise ProblemError(
                f"of= must be a function of the solution that returns a number, such as lambda u: u(points).mean(); "
                f"got {type(of).__name__}."
            )

        def number(mu: Array) -> Array:
            value = jnp.asarray(of(Varied(self.family, mu, self)))
            if value.shape != () or jnp.iscomplexobj(value):
                raise ProblemError(
                    f"of(u) has shape {value.shape} and type {value.dtype}; expected one real number, such as a "
                    "mean or a value at a point. For many numbers use jax.jacrev of family.values."
                )
            return value

        return np.asarray(jax.grad(number)(jnp.asarray(self.mu)))


class Varied:
    """A solution as a function of its parameters, for functions that JAX differentiates."""

    def __init__(self, family: Any, mu: Array, solution: Solution):
        self._family, self._mu, self._problem = family, mu, solution.problem

    def __call__(self, *points: Any) -> Array:
        """The values at points."""
        z, single = points_of(self._problem, points)
        return self._family.values(self._mu, z[0] if single else z)

    def gradient(self, *points: Any) -> Array:
        """The gradient in space at points."""
        z, single = points_of(self._problem, points)
        axes = range(self._problem.domain.dim - self._problem.layout.has_time)
        found = self._family.derivatives(self._mu, z, [unit(self._problem.domain.dim, axis) for axis in axes])
        moved = jnp.moveaxis(found, 0, -1)
        return moved[0] if single else moved

    def integral(self, of: Callable[[Array], Array] | None = None, on: Part | None = None) -> Array:
        """The integral over the domain, or a part, of the solution, or of a function ``of(values)`` of its values."""
        dim = self._problem.domain.dim
        order = QUADRATURE.get(dim if on is None else dim - 1, 26)
        rule = quadrature_of(self._problem.domain).whole(order) if on is None else over_part(on, order)
        values = self._family.values(self._mu, rule.points)
        return jnp.tensordot(jnp.asarray(rule.weights), values if of is None else of(values), 1)

    def __getattr__(self, name: str) -> Any:
        offsets = self._problem.layout.offsets
        if name not in offsets:
            raise AttributeError(
                f"The solution in of(u) has no attribute {name!r}; it has u(points), u.gradient(points), u.integral() "
                f"and the unknowns {list(offsets)}."
            )
        start, size = offsets[name]
        at = start if size == 1 else slice(start, start + size)
        return lambda *points: self(*points)[..., at]


def shown(mu: Any) -> str:
    """Parameters in a message: all of a few, the first and the last of many."""
    return np.array2string(np.asarray(mu, dtype=np.float64), threshold=8, edgeitems=2, separator=", ")
