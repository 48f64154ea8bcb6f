"""Spaces made from other spaces, and from functions of the user's own."""

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index, closure, product, unit
from pdofm.calculus.terms import Term, joined
from pdofm.domain import Domain
from pdofm.errors import FeaturesError
from pdofm.features.base import Corner, Features, HasBox, Jets, Unmapped, all_derivatives, box_of
from pdofm.numerics.batches import batches, padded

Lifting = Any
"""A number, several of them, or a function of a point that returns one or several."""

LIFTING_POINTS = 256
"""How many points the lifting of hard conditions is differentiated at at once."""


class Functions(Unmapped):
    """Plain functions as features: ``Functions(domain, [f, g])`` with ``f(x)`` a scalar at one point of the domain.

    For what is known about a solution, such as r^(2/3) sin(2θ/3) at a re-entrant corner, joined with a smooth basis by
    `Concatenate`. The functions see the coordinates of the domain (in space-time the time last), and must be
    differentiable by JAX wherever points lie.
    """

    tied_to: ClassVar[str] = "the coordinates that its functions are written in. State them anew for the other domain"

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

    tied_to: ClassVar[str] = "its boxes. Move its parts with on(), and combine them again"

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

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        found = np.empty((len(which), self.size, len(points)))
        for part, here in self._places():
            found[:, here] = np.swapaxes(part.jets(points, which), 1, 2)
        return np.swapaxes(found, 1, 2)

    def expand(
        self, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        found = np.zeros((len(which), len(points), coefficients.shape[1]))
        for part, here in self._places():
            found += part.expand(points, which, coefficients[here])
        return found

    def _places(self) -> list[tuple[Features, np.ndarray]]:
        """Each part with the numbers that its features have in the basis."""
        places = np.argsort(np.argsort(self._all_ranks(), kind="stable"))
        ends = np.cumsum([part.size for part in self.parts])
        return list(zip(self.parts, np.split(places, ends[:-1]), strict=True))

    def _all_ranks(self) -> np.ndarray:
        return np.concatenate([part.ranks for part in self.parts])


class HardDirichlet(Unmapped):
    """Features that satisfy ``u = value`` on the boundary exactly: u = value + d(x) Σ cⱼ φⱼ, with d = 0 on the
    boundary.

    `value` is the lifting: a number, or a function on the whole domain that has the boundary values wanted; for a
    system several numbers, one per component, or a function that returns them. For domains that provide a smooth d:
    intervals, boxes, disks, balls, annuli, shells, and space-times over these.
    """

    inner: Features
    lower: Corner
    upper: Corner
    corners: tuple[Float[Array | np.ndarray, " s"], ...]
    value: Any = eqx.field(static=True)
    shape: str = eqx.field(static=True)
    has_time: bool = eqx.field(static=True)

    def __init__(self, inner: Features, domain: Domain, value: Lifting = 0.0):
        if inner.dim != domain.dim:
            raise FeaturesError(f"The features have {inner.dim} dimensions, the domain {domain!r} has {domain.dim}.")
        if inner.imposes == "value":
            raise FeaturesError(
                f"The features, {type(inner).__name__}, impose values already. Use their inner features."
            )
        self.inner = inner
        self.lower, self.upper = np.asarray(inner.lower), np.asarray(inner.upper)
        self.shape, self.corners = domain.vanishing
        self.value = value if callable(value) else _numbers(value)
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
    def concentration(self) -> float:
        return self.inner.concentration

    def density(self, points: Points) -> Vector:
        return self.inner.density(points)

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        return self.inner.extra_terms(domain)

    def on(self, domain: HasBox) -> "HardDirichlet":
        """The inner features on the box of another domain, zero on its boundary; the lifting stays what it is."""
        if not isinstance(domain, Domain):
            raise FeaturesError(
                f"HardDirichlet vanishes on the boundary of a domain, which {type(domain).__name__} does not have. "
                "Give a domain."
            )
        return HardDirichlet(self.inner.on(domain), domain, self.value)

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

    def _lifting(self, x: Point, components: int) -> Float[Array, " C"]:
        return jnp.broadcast_to(_fitting(_lifting_at(self.value, x, self.has_time), components), (components,))

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        below = closure(tuple(which))
        inner = np.swapaxes(self.inner.jets(points, below), 1, 2)
        jet = product(self._distance_jet(points, below), dict(zip(below, inner, strict=True)), which)
        found = np.empty((len(which), self.size, len(points)))
        for a, index in enumerate(which):
            found[a] = jet[index]
        return np.swapaxes(found, 1, 2)

    def expand(
        self, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        below = closure(tuple(which))
        inner = self.inner.expand(points, below, coefficients)
        distance = {index: each[:, None] for index, each in self._distance_jet(points, below).items()}
        jet = product(distance, dict(zip(below, inner, strict=True)), which)
        found = np.empty((len(which), *inner.shape[1:]))
        for a, index in enumerate(which):
            found[a] = jet[index]
        return found

    def _distance_jet(self, points: Points, which: Sequence[Index]) -> dict[Index, Vector]:
        """The derivatives of `distance` at points, without those that are zero everywhere."""
        space, time = (points[:, :-1], (0,)) if self.has_time else (points, ())
        dim = space.shape[1]
        within = [index[:dim] for index in which if index[dim:] == time]
        corners = tuple(np.asarray(corner) for corner in self.corners)
        of_shape = _box_distance if self.shape == "box" else _ball_distance
        return {(*index, *time): values for index, values in of_shape(space, corners, within).items()}

    def lifting(self, points: Points, which: Sequence[Index], components: int) -> Float[np.ndarray, "a n C"] | None:
        if self.value == 0.0:
            return None
        if not callable(self.value) or not which or not len(points):
            value = np.atleast_1d(0.0 if callable(self.value) else self.value)
            found = np.zeros((len(which), len(points), len(value)))
            found[[not any(index) for index in which]] = value
            return np.broadcast_to(_fitting(found, components), (len(which), len(points), components))
        parts = []
        for here, size in batches(len(points), LIFTING_POINTS):
            values = _lifting_derivatives(padded(points[here], size), self.value, tuple(which), self.has_time)
            parts.append(np.asarray(values)[:, : here.stop - here.start])
        found = _fitting(np.concatenate(parts, axis=1), components)
        return np.broadcast_to(found, (len(which), len(points), components))


def _numbers(value: Any) -> float | tuple[float, ...]:
    """A number, or several of them, as something that can be compared."""
    found = np.asarray(value, dtype=np.float64)
    return float(found) if found.ndim == 0 else tuple(found.ravel().tolist())


def _fitting(lifting: Any, components: int) -> Any:
    """A lifting, if its last axis has one entry or as many as there are components."""
    if lifting.shape[-1] not in (1, components):
        raise FeaturesError(
            f"The lifting of HardDirichlet has {lifting.shape[-1]} components, the unknowns have {components}. "
            "Give one number, or one per component."
        )
    return lifting


def _lifting_at(value: Any, x: Point, has_time: bool) -> Float[Array, " C"]:
    """A lifting at one point, one number or one per component."""
    arguments = (x[:-1], x[-1]) if has_time else (x,)
    return joined(value(*arguments) if callable(value) else value).astype(x.dtype)


@partial(jax.jit, static_argnames=("value", "which", "has_time"))
def _lifting_derivatives(points: Array, value: Callable[..., Any], which: tuple[Index, ...], has_time: bool) -> Array:
    """The derivatives in the order (a, n, C)."""
    at = all_derivatives(lambda x: _lifting_at(value, x, has_time), which)
    return jnp.moveaxis(jax.vmap(at)(points), 0, 1)


def _box_distance(
    points: Points, corners: tuple[np.ndarray, ...], which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, " n"]]:
    """The derivatives of Π 4 (xᵢ - aᵢ) (bᵢ - xᵢ) / (bᵢ - aᵢ)², a product of parabolas."""
    lower, upper = corners
    scale = 4 / (upper - lower) ** 2
    slopes, curvatures = scale * (lower + upper - 2 * points), np.broadcast_to(-2 * scale, points.shape)
    parabolas = (scale * (points - lower) * (upper - points), slopes, curvatures)
    return {
        index: reduce(operator.mul, (parabolas[k][:, axis] for axis, k in enumerate(index)))
        for index in which
        if max(index) < len(parabolas)
    }


def _ball_distance(
    points: Points, corners: tuple[np.ndarray, ...], which: Sequence[Index]
) -> dict[Index, Float[np.ndarray, " n"]]:
    """The derivatives of 1 - q, q = |x - c|² / R², in a ball; in a shell of inner radius r times q - r² / R²."""
    center, (inner, outer) = corners[0], corners[1].tolist()
    dim, offset = points.shape[1], (points - center) / outer
    value, square = (0,) * dim, np.sum(offset**2, axis=1)
    rising, falling = {value: square - (inner / outer) ** 2}, {value: 1 - square}
    for axis in range(dim):
        once = unit(dim, axis)
        rising[once] = 2 * offset[:, axis] / outer
        rising[tuple(2 * k for k in once)] = np.full(len(points), 2 / outer**2)
    falling |= {index: -each for index, each in rising.items() if any(index)}
    if inner > 0:
        return product(falling, rising, which)
    return {index: falling[index] for index in which if index in falling}
