"""Spaces made from other spaces, and from functions of the user's own."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.domain import Domain
from pdofm.errors import FeaturesError
from pdofm.features.base import Corner, Features, HasBox, Unmapped, box_of
from pdofm.terms import Term


class Functions(Unmapped):
    """Plain functions as features: ``Functions(domain, [f, g])`` with ``f(x)`` a scalar at one point of the domain.

    For what is known about a solution, such as r^(2/3) sin(2θ/3) at a re-entrant corner, joined with a smooth basis by
    `Concatenate`. The functions see the coordinates of the domain (in space-time the time last), and must be
    differentiable by JAX wherever points lie.
    """

    lower: Corner
    upper: Corner
    functions: tuple[Callable[[Array], Array], ...] = eqx.field(static=True)

    def __init__(self, domain: HasBox, functions: Sequence[Callable[[Array], Array]]):
        self.lower, self.upper = box_of(domain)
        self.functions = tuple(functions)
        if not self.functions or not all(callable(f) for f in self.functions):
            raise FeaturesError(f"functions must be a list of functions of one point; got {functions!r}.")

    @property
    def size(self) -> int:
        return len(self.functions)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.zeros(self.size)

    def __call__(self, x: Point) -> FeatureValues:
        found = [jnp.asarray(f(x), dtype=x.dtype) for f in self.functions]
        for f, value in zip(self.functions, found, strict=True):
            if value.shape != ():
                raise FeaturesError(
                    f"The function {getattr(f, '__name__', f)!r} returned shape {value.shape} at a point; expected a "
                    "scalar. Return one number, or list several functions."
                )
        return jnp.stack(found)


class Concatenate(Unmapped):
    """All features of several spaces in one basis, for instance global and local ones, or smooth and singular ones."""

    parts: tuple[Features, ...]

    def __init__(self, *parts: Features):
        if not parts or not all(isinstance(part, Features) for part in parts):
            raise FeaturesError(f"Concatenate takes features, as in Concatenate(a, b); got {parts!r}.")
        dims = {part.dim for part in parts}
        if len(dims) > 1:
            raise FeaturesError(f"Features in one basis must have one dimension; got {sorted(dims)}.")
        if any(part.imposes == "value" for part in parts):
            raise FeaturesError("Features in one basis cannot impose conditions: use HardDirichlet(Concatenate(…), …).")
        self.parts = tuple(parts)

    @property
    def lower(self) -> Corner:
        """Corner of the box that all parts share."""
        return np.max([np.asarray(part.lower) for part in self.parts], axis=0)

    @property
    def upper(self) -> Corner:
        """Corner of the box that all parts share."""
        return np.min([np.asarray(part.upper) for part in self.parts], axis=0)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.sort(self._all_ranks())

    @property
    def imposes(self) -> str | None:
        """What all parts impose, if they do it on the same box."""
        boxes = {(*np.asarray(part.lower).tolist(), *np.asarray(part.upper).tolist()) for part in self.parts}
        imposed = {part.imposes for part in self.parts}
        return imposed.pop() if len(imposed) == len(boxes) == 1 else None

    @property
    def concentration(self) -> float:
        return max(part.concentration for part in self.parts)

    def density(self, points: Points) -> Vector:
        """The mean of what the parts want."""
        wanted = [part.density(points) for part in self.parts]
        return np.mean([each / each.sum() for each in wanted], axis=0)

    @property
    def working_bytes(self) -> int:
        return sum(part.working_bytes for part in self.parts)

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        return tuple(term for part in self.parts for term in part.extra_terms(domain))

    def rescaled(self, factor: float) -> Features:
        """Those parts rescaled that have a scale; at least one must."""
        parts, found = [], False
        for part in self.parts:
            try:
                parts.append(part.rescaled(factor))
                found = True
            except FeaturesError:
                parts.append(part)
        if not found:
            return super().rescaled(factor)
        return Concatenate(*parts)

    def __call__(self, x: Point) -> FeatureValues:
        order = np.argsort(self._all_ranks(), kind="stable")
        return jnp.concatenate([part(x) for part in self.parts])[order]

    def _all_ranks(self) -> np.ndarray:
        return np.concatenate([part.ranks for part in self.parts])


class HardDirichlet(Unmapped):
    """Features that satisfy ``u = value`` on the boundary exactly: u = value + d(x) Σ cⱼ φⱼ, with d = 0 on the
    boundary.

    `value` is the lifting, a number or a function on the whole domain that has the boundary values wanted. For domains
    that provide a smooth d: intervals, boxes, disks, balls, annuli, shells, and space-times over these.
    """

    inner: Features
    lower: Corner
    upper: Corner
    corners: tuple[Float[Array | np.ndarray, " s"], ...]
    value: Any = eqx.field(static=True)
    shape: str = eqx.field(static=True)
    has_time: bool = eqx.field(static=True)

    def __init__(self, inner: Features, domain: Domain, value: float | Callable[..., Array] = 0.0):
        if inner.dim != domain.dim:
            raise FeaturesError(f"The features have {inner.dim} dimensions, the domain {domain!r} has {domain.dim}.")
        if inner.imposes == "value":
            raise FeaturesError(
                f"The features, {type(inner).__name__}, impose values already. Use their inner features."
            )
        self.inner = inner
        self.lower, self.upper = np.asarray(inner.lower), np.asarray(inner.upper)
        self.shape, self.corners = domain.vanishing
        self.value = value if callable(value) else float(value)
        self.has_time = domain.has_time

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return self.inner.ranks

    @property
    def imposes(self) -> str | None:
        return "value"

    @property
    def boundary_key(self) -> Hashable:
        return self.shape, self.value, *(tuple(np.asarray(corner).tolist()) for corner in self.corners)

    @property
    def concentration(self) -> float:
        return self.inner.concentration

    def density(self, points: Points) -> Vector:
        return self.inner.density(points)

    @property
    def working_bytes(self) -> int:
        return self.inner.working_bytes

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        return self.inner.extra_terms(domain)

    def rescaled(self, factor: float) -> "HardDirichlet":
        return eqx.tree_at(lambda f: f.inner, self, self.inner.rescaled(factor))

    def distance(self, x: Point) -> Array:
        """The smooth function d, of size 1 inside and zero on the boundary (not at the ends of time)."""
        space = x[:-1] if self.has_time else x
        if self.shape == "box":
            lower, upper = self.corners
            return jnp.prod(4 * (space - lower) * (upper - space) / (upper - lower) ** 2)
        center, radii = self.corners
        square = jnp.sum((space - center) ** 2)
        outer = (radii[1] ** 2 - square) / radii[1] ** 2
        return outer * (square - radii[0] ** 2) / radii[1] ** 2 if self.shape == "shell" else outer

    def __call__(self, x: Point) -> FeatureValues:
        return self.distance(x) * self.inner(x)

    def combine(self, x: Point, coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
        return self(x) @ coefficients + self._lifting(x, coefficients.shape[1])

    def value_of(self, x: Point, coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
        return self.distance(x) * self.inner.value_of(x, coefficients) + self._lifting(x, coefficients.shape[1])

    def _lifting(self, x: Point, components: int) -> Float[Array, " C"]:
        args = (x[:-1], x[-1]) if self.has_time else (x,)
        lifting = self.value(*args) if callable(self.value) else self.value
        return jnp.broadcast_to(jnp.asarray(lifting, dtype=x.dtype), (components,))
