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
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import Float, Int

from pdofm._types import Points, SpaceNormals
from pdofm.batches import padded, slices
from pdofm.jets import Index, up_to
from pdofm.terms import Layout, LeftSide

BATCH = 512
"""Points that a symbol is evaluated at in one go: one shape, one compilation."""

MOST_INDICES = 64
"""With more derivatives up to its order than this, a symbol is asked first which of them it has at all."""

LARGEST_JET = 2**14
"""With more derivatives up to its order than this, a symbol is not computed at all."""

PROBED = 64
"""Points at which a symbol is asked which derivatives it has."""

ROUNDING = ("sign", "floor", "ceil", "round")
"""Operations of JAX on real numbers that jump."""

Shape = jax.ShapeDtypeStruct

CALLS = ("jit", "custom_jvp_call")
"""Operations of JAX that do nothing but run the program inside them."""

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
        self._pruned: _Compiled | None = None

    @property
    def is_computable(self) -> bool:
        """Whether the jet is small enough to be handled at all."""
        return math.comb(self.dim + self.order, self.order) <= LARGEST_JET

    @cached_property
    def is_affine(self) -> bool:
        """Whether the left side is affine in u as it is written: by its own word, or because it consists of operations
        on real numbers that have a transpose."""
        return getattr(self.lhs, "is_linear", False) or _is_affine(self.lhs, self.layout, self.dim, self.space_dim)

    @cached_property
    def decides(self) -> bool:
        """Whether the left side decides anything by the point: compares, rounds, looks up in a table. Otherwise its
        coefficients are continuous."""
        traced = _traced(self.lhs, self.layout, self.dim, self.space_dim)
        return _decides(traced, traced.invars[:1])

    @cached_property
    def _full(self) -> "_Compiled":
        return _Compiled(self, up_to(self.dim, self.order))

    def _compiled(self, points: Points, normals: SpaceNormals) -> "_Compiled":
        """The compiled symbol, with those derivatives only that it has at some of the points it first meets."""
        if len(up_to(self.dim, self.order)) <= MOST_INDICES:
            return self._full
        if self._pruned is None:
            some = np.linspace(0, len(points) - 1, min(PROBED, len(points))).astype(int)
            full = self._full
            jet = random_jet(len(full.indices), len(some), self.layout.components)
            found = full.run(points[some], normals[some], jet, 0.0, PROBED)
            used = np.any(found.coefficients != 0, axis=(0, 1, 3))
            self._pruned = _Compiled(self, tuple(i for i, is_used in zip(full.indices, used, strict=True) if is_used))
            del self.__dict__["_full"]
        return self._pruned

    def indices(self, points: Points, normals: SpaceNormals) -> tuple[Index, ...]:
        """The derivatives of u that the left side may depend on: what `linearise` wants a jet of."""
        return self._compiled(points, normals).indices

    def linearise(self, points: Points, normals: SpaceNormals, jet: Jet | None = None) -> Linearisation | None:
        """The left side and its coefficients at points, at the jet of a function (zero if omitted); None if the left
        side looks at u elsewhere, so that the jet does not determine it.

        That is tried: u is not a number anywhere but at the point itself. Two functions with the same jet must give the
        same value.
        """
        compiled = self._compiled(points, normals)
        if jet is None and compiled.constant is not None:
            one, n = compiled.constant, len(points)
            left, coefficients = (np.broadcast_to(a, (n, *a.shape[1:])) for a in (one.left, one.coefficients))
            return Linearisation(one.indices, left, coefficients, is_constant=True)
        if jet is None:
            jet = np.zeros((len(compiled.indices), len(points), self.layout.components))
        found = compiled.run(points, normals, jet, math.nan)
        if np.isfinite(found.left).all():
            return found
        here = compiled.run(points, normals, jet, 0.0)
        return here if np.array_equal(np.isfinite(here.left), np.isfinite(found.left)) else None

    def orders(self, points: Points) -> Int[np.ndarray, "C d"]:
        """The differential order in each component along each coordinate, as seen at some points."""
        normals = np.zeros((len(points), self.space_dim))
        compiled = self._compiled(points, normals)
        jet = random_jet(len(compiled.indices), len(points), self.layout.components)
        sizes = np.abs(compiled.run(points, normals, jet, 0.0).coefficients).max(axis=(0, 1))
        present = ~(sizes <= 1e-12 * np.max(sizes, axis=0, initial=0.0, keepdims=True))
        powers = np.array(compiled.indices, dtype=int).reshape(-1, self.dim)
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
        self._function = jax.jit(jax.vmap(_at_a_point(symbol, indices), in_axes=(0, 0, 0, None)))

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

    @cached_property
    def constant(self) -> Linearisation | None:
        """The symbol at zero at one point, if it is the same at every point: known where nothing is computed from the
        point or the normal."""
        symbol = self._symbol
        shapes = ((BATCH, symbol.dim), (BATCH, symbol.space_dim), (BATCH, len(self.indices), symbol.layout.components))
        traced = self._function.trace(*(jax.ShapeDtypeStruct(s, jnp.float64) for s in shapes), 0.0)
        if _depends(traced.jaxpr, (0, 1)):
            return None
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
                layout.fields(lambda y, J=J: derivative(0)(y, J, (here, elsewhere)))
                for J in (J, jax.lax.stop_gradient(J))
            )
            v = lhs(u, last, layout.arguments(z), normal)
            return v, v

        coefficients, v = jax.jacrev(left, has_aux=True)(J)
        return v, coefficients

    return at


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
        u = layout.fields(derivative(0))
        return lhs(u, u, layout.arguments(z), normal)

    entries = jax.eval_shape(left, *(jax.ShapeDtypeStruct((n,), jnp.float64) for n in (dim, space_dim))).shape[0]
    return deepest, entries


def _left_side(lhs: LeftSide, layout: Layout) -> tuple[Callable[[Array, Array, Array], Array], Shape]:
    """A left side as a function of the point, the normal and two coefficients of u, and the shape of these."""

    def left(z: Array, normal: Array, c: Array) -> Array:
        u = layout.fields(lambda y: jnp.sin(jnp.sum(y) + jnp.arange(2.0)) @ c)
        return lhs(u, u, layout.arguments(z), normal)

    return left, jax.ShapeDtypeStruct((2, layout.components), jnp.float64)


def _traced(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> Jaxpr:
    left, c = _left_side(lhs, layout)
    return jax.make_jaxpr(left)(*(jax.ShapeDtypeStruct((n,), jnp.float64) for n in (dim, space_dim)), c).jaxpr


def _is_affine(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> bool:
    left, c = _left_side(lhs, layout)
    z, normal = (jax.ShapeDtypeStruct((n,), jnp.float64) for n in (dim, space_dim))

    def transposed(z: Array, normal: Array, side: Array) -> Any:
        return jax.linear_transpose(lambda c: left(z, normal, c), c)(side)

    traced = _traced(lhs, layout, dim, space_dim)
    if _decides(traced, traced.invars[2:]):
        return False
    try:
        jax.eval_shape(transposed, z, normal, jax.eval_shape(left, z, normal, c))
    except (
        AssertionError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
    ):  # how JAX says that there is no transpose
        return False
    return True


def _decides(traced: Jaxpr, variables: Sequence[Any]) -> bool:
    """Whether something that depends on these variables becomes a truth value or an integer, or is rounded: neither
    differentiation nor transposition sees that."""
    dependent = {id(variable) for variable in variables}
    for equation in traced.eqns:
        if not any(id(variable) in dependent for variable in equation.invars):
            continue
        dependent |= {id(variable) for variable in equation.outvars}
        # Inside, all real arguments count as dependent: at worst a linear problem is tried once more.
        inner = inner_jaxprs(equation)
        if any(_decides(part, _real(part.invars)) for part in inner):
            return True
        rounds = equation.primitive.name in ROUNDING
        if not inner and (rounds or len(_real(equation.outvars)) < len(equation.outvars)):
            return True
    return False


def inner_jaxprs(equation: Any) -> list[Jaxpr]:
    """The programs inside an equation of a traced program: of a loop, a branch, a compiled function."""
    parts = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda part: isinstance(part, ClosedJaxpr))
    return [part for part in (getattr(part, "jaxpr", part) for part in parts) if isinstance(part, Jaxpr)]


def _real(variables: Sequence[Any]) -> list[Any]:
    return [variable for variable in variables if jnp.issubdtype(variable.aval.dtype, jnp.inexact)]


def _depends(traced: ClosedJaxpr, arguments: Sequence[int]) -> bool:
    """Whether the outputs of a traced symbol depend on those arguments other than by asking whether u is evaluated at
    the point itself, where it is."""
    inputs = [(i, i in arguments) for i in range(len(traced.jaxpr.invars))]
    return any(dependent for _, dependent in _followed(traced.jaxpr, inputs))


_Followed = tuple[Any, bool]
"""How a variable of a traced program is computed, and whether it depends on what is followed."""


def _followed(jaxpr: Jaxpr, inputs: Sequence[_Followed]) -> list[_Followed]:
    """The outputs of a traced program. Variables that are computed in the same way are the same: a point in space-time
    is taken apart and put together again each time."""
    known: dict[int, _Followed] = {id(v): each for v, each in zip(jaxpr.invars, inputs, strict=True)}
    known |= {id(variable): (id(variable), False) for variable in jaxpr.constvars}

    def of(variable: Any) -> _Followed:
        return (repr(variable.val), False) if isinstance(variable, Literal) else known[id(variable)]

    for equation in jaxpr.eqns:
        given = [of(variable) for variable in equation.invars]
        how = [each for each, _ in given]
        inner = inner_jaxprs(equation)
        if equation.params.get("name") == "_away" and how[0] == how[1]:
            found = [(("here",), False)]
        elif equation.primitive.name in CALLS and len(inner) == 1:
            found = _followed(inner[0], given)
        else:
            computed = hash((equation.primitive.name, str(equation.params), *how))
            found = [((computed, i), any(d for _, d in given)) for i in range(len(equation.outvars))]
        known |= {id(variable): each for variable, each in zip(equation.outvars, found, strict=True)}
    return [of(variable) for variable in jaxpr.outvars]
