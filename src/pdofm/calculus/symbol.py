"""The symbol of a term: the coefficients of the derivatives of u in its left side, from the term alone.

A local left side sees u at a point x only through its jet, the derivatives ∂^α u(x). So it is a function of x and of
finitely many numbers J_α, and its linearisation is

    v = lhs(J),      G_α = ∂ lhs / ∂ J_α,

whatever space u comes from. The left side is evaluated with a function u that knows nothing but its jet: u(y) is J₀,
and a derivative of u picks the next entries of J. Such a function is compiled in a tenth of a second, once per term.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Jaxpr
from jaxtyping import Float, Int

from pdofm._types import Points, SpaceNormals
from pdofm.calculus.jets import Index, up_to
from pdofm.calculus.terms import Layout, LeftSide
from pdofm.calculus.tracing import decides_by_point, followed, is_affine, looks_elsewhere
from pdofm.numerics.batches import padded, slices

BATCH = 512
"""Points that a symbol is evaluated at in one go: one shape, one compilation."""

MOST_INDICES = 64
"""With more derivatives up to its order than this, a symbol is asked first which of them it has at all."""

LARGEST_TENSOR = 2**14
"""If the tensor of all derivatives of its order is larger than this, a symbol is not computed at all."""

PROBED = 64
"""Points at which a symbol is asked which derivatives it has."""

ELSEWHERE = (math.nan, 1e3, -1e3)
"""What is added to u at other points, to see whether a left side looks at them: not a number shows in everything that
is computed from it, a large number in comparisons."""

Jet = Float[np.ndarray, "a n C"]
"""Derivatives of all components at points, one multi-index after the other."""


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A left side at points: its values, and its derivatives with respect to the derivatives `indices` of each
    component."""

    indices: tuple[Index, ...]
    left: Float[np.ndarray, "n k"]
    coefficients: Float[np.ndarray, "n k a C"]
    is_constant: bool = False  # the same at all points


class Symbol:
    """The symbol of a left side in `dim` coordinates with normals of length `space_dim`; `symbol_of` makes it."""

    def __init__(self, lhs: LeftSide, layout: Layout, dim: int, space_dim: int):
        self.lhs, self.layout, self.dim, self.space_dim = lhs, layout, dim, space_dim
        self.order, self.entries = _order_and_entries(lhs, layout, dim, space_dim)
        self._looks_elsewhere = False
        self._pruned: _Compiled | None = None
        self._seen: set[int] = set()

    @property
    def is_small(self) -> bool:
        """Whether the derivatives are few enough to be handled."""
        return self.dim**self.order <= LARGEST_TENSOR

    @property
    def is_computable(self) -> bool:
        """Whether the left side can be had from a jet, as far as is known."""
        return self.is_small and not self._looks_elsewhere

    @cached_property
    def is_affine(self) -> bool:
        """Whether the left side is affine in u as it is written, or says so of itself."""
        of = (self.lhs, self.layout, self.dim, self.space_dim)
        return getattr(self.lhs, "is_linear", False) or is_affine(*of)

    @cached_property
    def decides(self) -> bool:
        """Whether the left side decides anything by the point. Otherwise its coefficients are continuous."""
        return decides_by_point(self.lhs, self.layout, self.dim, self.space_dim)

    @cached_property
    def _full(self) -> "_Compiled":
        return _Compiled(self, up_to(self.dim, self.order))

    def _compiled(self, points: Points, normals: SpaceNormals) -> "_Compiled":
        """The compiled symbol; of many derivatives those only that it has at points met so far, these included."""
        if len(up_to(self.dim, self.order)) <= MOST_INDICES:
            return self._full
        seen = hash((points.tobytes(), normals.tobytes()))
        if self._pruned is None or seen not in self._seen:
            self._prune(points, normals)
            self._seen.add(seen)
        assert self._pruned is not None
        return self._pruned

    def _prune(self, points: Points, normals: SpaceNormals) -> None:
        """Make sure that no derivative is left out that the left side has at these points: with and without the others
        its value for some jet must be the same."""
        full, n = self._full, len(points)
        jet = np.random.default_rng(0).standard_normal((len(full.indices), n, self.layout.components))
        known = set() if self._pruned is None else set(self._pruned.indices)
        where = np.linspace(0, n - 1, min(PROBED, n)).astype(int) if self._pruned is None else np.arange(0)
        whole = full.values(points, normals, jet)
        while True:
            if len(where):
                found = full.run(points[where], normals[where], jet[:, where], 0.0, PROBED).coefficients
                known |= {full.indices[i] for i in np.flatnonzero(np.any(found != 0, axis=(0, 1, 3)))}
            kept = np.array([index in known for index in full.indices])
            part = full.values(points, normals, np.where(kept[:, None, None], jet, 0.0))
            differ = np.flatnonzero(np.any((part != whole) & ~(np.isnan(part) & np.isnan(whole)), axis=1))
            missed = differ[:PROBED]
            if len(missed) == 0 or np.array_equal(missed, where):
                break
            where = missed
        indices = tuple(index for index in full.indices if index in known)
        if self._pruned is None or indices != self._pruned.indices:
            self._pruned = _Compiled(self, indices)

    def indices(self, points: Points, normals: SpaceNormals) -> tuple[Index, ...]:
        """The derivatives of u that the left side may depend on: what `linearise` wants a jet of."""
        return self._compiled(points, normals).indices

    def linearise(self, points: Points, normals: SpaceNormals, jet: Jet | None = None) -> Linearisation | None:
        """The left side and its coefficients at points, at the jet of a function (zero if omitted); None if the left
        side looks at u elsewhere, so that the jet does not determine it.

        Where the traced program does not prove the contrary that is tried: two functions with the same jet must give
        the same value.
        """
        compiled = self._compiled(points, normals)
        if jet is None and compiled.constant is not None:
            one, n = compiled.constant, len(points)
            left, coefficients = (np.broadcast_to(a, (n, *a.shape[1:])) for a in (one.left, one.coefficients))
            return Linearisation(one.indices, left, coefficients, is_constant=True)
        if jet is None:
            jet = np.zeros((len(compiled.indices), len(points), self.layout.components))
        found = compiled.run(points, normals, jet, 0.0)
        if compiled.may_look_elsewhere:
            others = [compiled.run(points, normals, jet, elsewhere) for elsewhere in ELSEWHERE]
            same_left = all(np.array_equal(found.left, other.left, equal_nan=True) for other in others)
            same_slope = all(
                np.array_equal(found.coefficients, other.coefficients, equal_nan=True) for other in others[1:]
            )
            if not (same_left and same_slope):
                self._looks_elsewhere = True
                return None
        return found

    def coefficients(self, points: Points, jet: Jet | None = None) -> Linearisation:
        """The left side and its coefficients at a jet, some positive one if none is given, without a look elsewhere."""
        normals = np.zeros((len(points), self.space_dim))
        compiled = self._compiled(points, normals)
        if jet is None:
            jet = random_jet(len(compiled.indices), len(points), self.layout.components)
        return compiled.run(points, normals, jet, 0.0)

    def orders(self, points: Points) -> Int[np.ndarray, "C d"]:
        """The differential order in each component along each coordinate, as seen at some points."""
        if not self.is_small:
            return np.full((self.layout.components, self.dim), self.order)
        found = self.coefficients(points)
        sizes = np.abs(found.coefficients).max(axis=(0, 1))
        present = ~(sizes <= 1e-12 * np.max(sizes, axis=0, initial=0.0, keepdims=True))
        powers = np.array(found.indices, dtype=int).reshape(-1, self.dim)
        return np.max(present.T[:, :, None] * powers[None], axis=1, initial=0)


@lru_cache(maxsize=256)
def symbol_of(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> Symbol:
    """The symbol of a left side; equal left sides share it."""
    return Symbol(lhs, layout, dim, space_dim)


def random_jet(indices: int, n: int, components: int) -> Jet:
    """The jet of no function in particular: positive, so that roots and logarithms of u exist."""
    return np.random.default_rng(0).uniform(1, 2, (indices, n, components))


class _Compiled:
    """The symbol for certain derivatives: one compiled function."""

    def __init__(self, symbol: Symbol, indices: tuple[Index, ...]):
        self.indices, self._symbol = indices, symbol
        at = jax.vmap(_at_a_point(symbol, indices), in_axes=(0, 0, 0, None))
        self._function = jax.jit(at)
        self._left = jax.jit(lambda *args: at(*args, jnp.zeros(()))[0])  # what is not used is not computed

    def run(
        self, points: Points, normals: SpaceNormals, jet: Jet, elsewhere: float, batch: int = BATCH
    ) -> Linearisation:
        """Evaluate at points, in batches; `elsewhere` is added to u at all other points than the one in question."""
        n, k, components = len(points), self._symbol.entries, self._symbol.layout.components
        left, coefficients = np.empty((n, k)), np.empty((n, k, len(self.indices), components))
        by_point = np.ascontiguousarray(np.moveaxis(jet, 0, 1))
        for here in slices(n, batch):
            args = (padded(each[here], batch) for each in (points, normals, by_point))
            v, G = self._function(*args, elsewhere)
            count = here.stop - here.start
            left[here], coefficients[here] = np.asarray(v)[:count], np.asarray(G)[:count]
        return Linearisation(self.indices, left, coefficients)

    def values(self, points: Points, normals: SpaceNormals, jet: Jet) -> Float[np.ndarray, "n k"]:
        """The left sides alone."""
        by_point, parts = np.moveaxis(jet, 0, 1), []
        for here in slices(len(points), PROBED):
            args = (padded(np.ascontiguousarray(each[here]), PROBED) for each in (points, normals, by_point))
            parts.append(np.asarray(self._left(*args))[: here.stop - here.start])
        return np.concatenate(parts)

    @cached_property
    def _program(self) -> Jaxpr:
        symbol = self._symbol
        shapes = ((BATCH, symbol.dim), (BATCH, symbol.space_dim), (BATCH, len(self.indices), symbol.layout.components))
        return self._function.trace(*(jax.ShapeDtypeStruct(s, jnp.float64) for s in shapes), 0.0).jaxpr.jaxpr

    @cached_property
    def may_look_elsewhere(self) -> bool:
        """Whether it cannot be excluded that u is evaluated at other points, too."""
        return looks_elsewhere(self._program)

    @cached_property
    def constant(self) -> Linearisation | None:
        """The symbol at zero at one point, if it is the same at every point: known where nothing is computed from the
        point or the normal."""
        if self.may_look_elsewhere or any(depends for _, depends in followed(self._program, (0, 1))):
            return None
        symbol = self._symbol
        point, normal = np.zeros((1, symbol.dim)), np.zeros((1, symbol.space_dim))
        return self.run(point, normal, np.zeros((len(self.indices), 1, symbol.layout.components)), 0.0)


def _at_a_point(symbol: Symbol, indices: Sequence[Index]) -> Callable[..., tuple[Array, Array]]:
    """(point, normal, J, elsewhere) -> (left side, its derivative with respect to J)."""
    lhs, layout = symbol.lhs, symbol.layout
    rows = [_positions(symbol.dim, order, tuple(indices)) for order in range(symbol.order + 1)]

    def at(z: Array, normal: Array, J: Array, elsewhere: Array) -> tuple[Array, Array]:
        here = layout.point(layout.arguments(z))

        def picked(order: int, J: Array) -> Array:
            """All derivatives of an order, a tensor (d, …, d, C)."""
            if order > symbol.order:  # asked for only to be multiplied by zero
                return jnp.zeros((symbol.dim,) * order + (layout.components,))
            at = rows[order]
            if len(indices) > MOST_INDICES:
                return jnp.concatenate([J, jnp.zeros((1, layout.components))])[at]
            # A product with rows of the identity picks few entries, and is traced and compiled faster.
            picks = jnp.asarray(np.eye(len(indices) + 1, len(indices))[at.reshape(-1)])
            return (picks @ J).reshape(*at.shape, layout.components)

        def derivative(order: int) -> Callable[[Array, Array, tuple[Array, Array]], Array]:
            @jax.custom_jvp  # whose functions must not close over variables, hence the last argument
            def value(y: Array, J: Array, away: tuple[Array, Array]) -> Array:
                return picked(order, J) + _away(y, *away)

            @value.defjvp
            def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
                (y, J, away), (direction, change, _) = primals, tangents
                slope = jnp.tensordot(direction, derivative(order + 1)(y, J, away), 1)
                return value(y, J, away), slope + picked(order, change)

            return value

        def left(J: Array) -> tuple[Array, Array]:
            u, last = (
                layout.fields(lambda y, J=J: derivative(0)(_real(y), J, (here, elsewhere)))
                for J in (J, jax.lax.stop_gradient(J))
            )
            v = lhs(u, last, layout.arguments(z), normal)
            return v, v

        coefficients, v = jax.jacrev(left, has_aux=True)(J)
        return v, coefficients

    return at


def _real(y: Array) -> Array:
    """A point that may be given in integers."""
    return jnp.asarray(y, jnp.result_type(float))


@jax.jit
def _away(y: Array, here: Array, elsewhere: Array) -> Array:
    """What is added to u at y: nothing at the point in question."""
    return jnp.where(jnp.all(y == here), 0.0, elsewhere)


@lru_cache(maxsize=64)
def _positions(dim: int, order: int, indices: tuple[Index, ...]) -> Int[np.ndarray, "..."]:
    """Where the entries of the tensor of all derivatives of an order are in a jet; behind its end if they are not."""
    at = {index: position for position, index in enumerate(indices)}
    found = np.full((dim,) * order, len(indices))
    for axes in combinations_with_replacement(range(dim), order):
        index = [0] * dim
        for axis in axes:
            index[axis] += 1
        found[axes] = at.get(tuple(index), len(indices))
    # Derivatives commute: entries in another order of the axes are the same.
    return found if order < 2 else found[tuple(np.sort(np.indices(found.shape), axis=0))]


def _order_and_entries(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> tuple[int, int]:
    """How often the left side differentiates u, and how many entries it has: by abstract evaluation."""
    deepest = 0

    def derivative(order: int) -> Callable[[Array], Array]:
        nonlocal deepest
        deepest = max(deepest, order)

        @jax.custom_jvp
        def value(y: Array) -> Array:
            return jnp.zeros(layout.components, y.dtype)

        @value.defjvp
        def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
            (y,), (direction,) = primals, tangents
            return value(y), jnp.sum(direction) * derivative(order + 1)(y)

        return value

    def left(z: Array, normal: Array) -> Array:
        u = layout.fields(lambda y: derivative(0)(_real(y)))
        return lhs(u, u, layout.arguments(z), normal)

    entries = jax.eval_shape(left, *(jax.ShapeDtypeStruct((n,), jnp.float64) for n in (dim, space_dim))).shape[0]
    return deepest, entries
