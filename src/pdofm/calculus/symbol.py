"""The symbol of a term: the coefficients of the derivatives of u in its left side, from the term alone.

A local left side depends on u at a point x only through its jet, the derivatives ∂^α u(x). So it is a function of x and
of finitely many numbers J_α, and its linearisation is

    v = lhs(J),      G_α = ∂ lhs / ∂ J_α,

whatever space u comes from. To compute it, the left side is applied to a function u that is defined by its jet alone:
the value u(y) is J₀, and a derivative of u picks the corresponding entries of J. Compiling that takes a tenth of a
second, once per term.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr
from jaxtyping import Float, Int

from pdofm._types import Points, SpaceNormals
from pdofm.calculus.formal import linearised, order_and_entries
from pdofm.calculus.jets import Index, up_to
from pdofm.calculus.terms import Layout, LeftSide
from pdofm.calculus.tracing import decides_by_point, followed, is_affine, looks_elsewhere
from pdofm.numerics.batches import POINTS_PER_CALL, in_batches
from pdofm.numerics.sampling import spread

PRUNING_THRESHOLD = 64
"""The largest number of derivatives that a symbol handles without asking which of them the left side has. All
derivatives of third order in five dimensions (56) stay below it; the second-order ones of a hundred dimensions do
not."""

LARGEST_TENSOR = 2**14
"""The largest number of entries that the tensor of all derivatives of the highest order may have for a symbol to be
computed. Beyond it, rows come from differentiation with respect to the coefficients (`pdofm.discrete.direct`)."""

PRUNING_POINTS = 64
"""Points per call while a symbol finds out which derivatives the left side has. The jets there have hundreds of entries
or more, hence the small batch."""

VALUE_POINTS = (POINTS_PER_CALL, 8 * POINTS_PER_CALL)
"""Points per call for values of a left side. An evolution asks for them at thousands of points, again and again, so a
second size, which takes a fifth of the time per point, is worth its compilation."""

PERTURBATIONS = (math.nan, 1e3, -1e3)
"""Numbers that are added to u at all other points, to find out whether a left side looks at them. NaN spreads to
everything that is computed from it; large numbers of both signs change the outcome of comparisons."""

POINT, NORMAL = 0, 1
"""The arguments of a compiled symbol that tell where it is evaluated."""

Jet = Float[np.ndarray, "a n C"]
"""Derivatives of all components at points; the first axis runs over multi-indices."""


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A left side at points: its values, and its partial derivatives with respect to the derivatives `indices` of each
    component of u."""

    indices: tuple[Index, ...]
    left: Float[np.ndarray, "n k"]
    coefficients: Float[np.ndarray, "n k a C"]
    is_constant: bool = False  # the same at all points


class Symbol:
    """The symbol of a left side in `dim` coordinates with normals of length `space_dim`; `symbol_of` makes it."""

    def __init__(self, lhs: LeftSide, layout: Layout, dim: int, space_dim: int):
        self.lhs, self.layout, self.dim, self.space_dim = lhs, layout, dim, space_dim
        self.order, self.entries = order_and_entries(lhs, layout, dim, space_dim)
        self._looks_elsewhere = False
        self._pruned: _Compiled | None = None
        self._seen: set[int] = set()
        self._restricted: dict[tuple[Index, ...], _Compiled] = {}

    @property
    def is_small(self) -> bool:
        """Whether the derivatives are few enough for a symbol."""
        return self.dim**self.order <= LARGEST_TENSOR

    @property
    def is_computable(self) -> bool:
        """Whether the jet of u determines the left side, as far as is known."""
        return self.is_small and not self._looks_elsewhere

    @cached_property
    def is_affine(self) -> bool:
        """Whether the left side is affine in u: by the operations it consists of, or because it declares so."""
        of = (self.lhs, self.layout, self.dim, self.space_dim)
        return getattr(self.lhs, "is_linear", False) or is_affine(*of)

    @cached_property
    def decides(self) -> bool:
        """Whether the left side makes a decision that depends on the point. If not, its coefficients are continuous."""
        return decides_by_point(self.lhs, self.layout, self.dim, self.space_dim)

    @cached_property
    def has_constant_coefficients(self) -> bool:
        """Whether nothing in the left side is computed from the point, as far as the traced program shows."""
        return not self._full.depends_on(POINT, NORMAL)

    @cached_property
    def is_the_same_everywhere(self) -> bool:
        """Whether nothing in the left side is computed from the point, whatever is behind the normal."""
        return not self._full.depends_on(POINT)

    @cached_property
    def is_autonomous(self) -> bool:
        """Whether the coefficients of the derivatives of u are not computed from the time, as far as the traced program
        shows; terms without u may be."""
        indices = up_to(self.dim, self.order)
        one = linearised(self.lhs, self.layout, self.dim, self.order, indices)

        def slope(x: jax.Array, t: jax.Array, normal: jax.Array, J: jax.Array) -> jax.Array:
            return one((x, t), normal, J, jnp.zeros(()))[1]

        sizes = ((self.dim - 1,), (), (self.space_dim,), (len(indices), self.layout.components))
        traced = jax.make_jaxpr(slope)(*(jax.ShapeDtypeStruct(size, jnp.float64) for size in sizes)).jaxpr
        return not looks_elsewhere(traced) and not any(depends for _, depends in followed(traced, (1,)))

    @cached_property
    def _full(self) -> "_Compiled":
        return _Compiled(self, up_to(self.dim, self.order))

    def _compiled(self, points: Points, normals: SpaceNormals) -> "_Compiled":
        """The compiled symbol. If there are many derivatives, it is restricted to those that the left side has at the
        points seen so far, including these."""
        if len(up_to(self.dim, self.order)) <= PRUNING_THRESHOLD:
            return self._full
        seen = hash((points.tobytes(), normals.tobytes()))
        if self._pruned is None or seen not in self._seen:
            self._prune(points, normals)
            self._seen.add(seen)
        assert self._pruned is not None
        return self._pruned

    def _prune(self, points: Points, normals: SpaceNormals) -> None:
        """Add the derivatives that the left side has at these points and that are not kept yet.

        The test for completeness: the left side of a random jet must not change if all other derivatives in it are set
        to zero.
        """
        full, n = self._full, len(points)
        jet = np.random.default_rng(0).standard_normal((len(full.indices), n, self.layout.components))
        known = set() if self._pruned is None else set(self._pruned.indices)
        where = spread(n, PRUNING_POINTS) if self._pruned is None else np.arange(0)
        whole = full.values(points, normals, jet)
        while True:
            if len(where):
                found = full.run(points[where], normals[where], jet[:, where], 0.0, PRUNING_POINTS).coefficients
                known |= {full.indices[i] for i in np.flatnonzero(np.any(found != 0, axis=(0, 1, 3)))}
            kept = np.array([index in known for index in full.indices])
            part = full.values(points, normals, np.where(kept[:, None, None], jet, 0.0))
            differ = np.flatnonzero(np.any((part != whole) & ~(np.isnan(part) & np.isnan(whole)), axis=1))
            missed = differ[:PRUNING_POINTS]
            if len(missed) == 0 or np.array_equal(missed, where):
                break
            where = missed
        indices = tuple(index for index in full.indices if index in known)
        if self._pruned is None or indices != self._pruned.indices:
            self._pruned = _Compiled(self, indices)

    def indices(self, points: Points, normals: SpaceNormals) -> tuple[Index, ...]:
        """The derivatives of u that the left side may depend on, in the order in which `linearise` expects a jet."""
        return self._compiled(points, normals).indices

    def linearise(self, points: Points, normals: SpaceNormals, jet: Jet | None = None) -> Linearisation | None:
        """The left side and its coefficients at points, at the jet of a function (zero if omitted); None if the left
        side evaluates u at other points too, so that the jet does not determine it.

        If the traced program does not rule that out, it is tested: functions with the same jet must give the same
        values.
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
            others = [compiled.run(points, normals, jet, perturbation) for perturbation in PERTURBATIONS]
            same_left = all(np.array_equal(found.left, other.left, equal_nan=True) for other in others)
            same_slope = all(
                np.array_equal(found.coefficients, other.coefficients, equal_nan=True) for other in others[1:]
            )
            if not (same_left and same_slope):
                self._looks_elsewhere = True
                return None
        return found

    def values(
        self, points: Points, normals: SpaceNormals, jet: Jet, indices: tuple[Index, ...] | None = None
    ) -> Float[np.ndarray, "n k"]:
        """The left side at points at the jet of a function, without its coefficients. With `indices`, the jet has these
        derivatives, and all others are zero."""
        if indices is None:
            return self._compiled(points, normals).values(points, normals, jet, VALUE_POINTS)
        if indices not in self._restricted:
            self._restricted[indices] = _Compiled(self, indices)
        return self._restricted[indices].values(points, normals, jet, VALUE_POINTS)

    def sensitivities(self, points: Points, normals: SpaceNormals, jet: Jet) -> Float[np.ndarray, "n k e"]:
        """The derivatives of the left side at the jet of a function with respect to the entries of parameters behind
        the normals."""
        compiled = self._compiled(points, normals)
        by_point = np.ascontiguousarray(np.moveaxis(jet, 0, 1))
        return in_batches(compiled.by_entries, (points, normals, by_point), (POINTS_PER_CALL,))

    def coefficients(
        self, points: Points, jet: Jet | None = None, normals: SpaceNormals | None = None
    ) -> Linearisation:
        """The left side and its coefficients at a jet (a positive random one if omitted) with normals (zero if
        omitted), without the test whether the left side evaluates u elsewhere."""
        if normals is None:
            normals = np.zeros((len(points), self.space_dim))
        compiled = self._compiled(points, normals)
        if jet is None:
            jet = random_jet(len(compiled.indices), len(points), self.layout.components)
        return compiled.run(points, normals, jet, 0.0)

    def orders(self, points: Points) -> Int[np.ndarray, "C d"]:
        """The differential order in each component along each coordinate, judged by the coefficients at points."""
        if not self.is_small:
            return np.full((self.layout.components, self.dim), self.order)
        found = self.coefficients(points)
        sizes = np.abs(found.coefficients).max(axis=(0, 1))
        present = ~(sizes <= 1e-12 * np.max(sizes, axis=0, initial=0.0, keepdims=True))
        powers = np.array(found.indices, dtype=int).reshape(-1, self.dim)
        return np.max(present.T[:, :, None] * powers[None], axis=1, initial=0)


@lru_cache(maxsize=256)
def symbol_of(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> Symbol:
    """The symbol of a left side. Equal left sides share one."""
    return Symbol(lhs, layout, dim, space_dim)


def random_jet(indices: int, n: int, components: int) -> Jet:
    """A random jet with entries between 1 and 2: positive, so that roots and logarithms of u exist."""
    return np.random.default_rng(0).uniform(1, 2, (indices, n, components))


class _Compiled:
    """The symbol restricted to certain derivatives, as a compiled function."""

    def __init__(self, symbol: Symbol, indices: tuple[Index, ...]):
        self.indices, self._symbol = indices, symbol
        one = linearised(symbol.lhs, symbol.layout, symbol.dim, symbol.order, indices)
        at = jax.vmap(one, in_axes=(0, 0, 0, None))
        self._function = jax.jit(at)
        # The compiler leaves out the coefficients, which are not returned.
        self._left = jax.jit(lambda *args: at(*args, jnp.zeros(()))[0])
        space = symbol.dim - symbol.layout.has_time

        def slopes(z: jax.Array, normal: jax.Array, J: jax.Array) -> jax.Array:
            def left(entries: jax.Array) -> jax.Array:
                return one(z, jnp.concatenate([normal[:space], entries]), J, jnp.zeros(()))[0]

            return jax.jacfwd(left)(normal[space:])

        self.by_entries = jax.jit(jax.vmap(slopes))

    def run(
        self, points: Points, normals: SpaceNormals, jet: Jet, elsewhere: float, size: int = POINTS_PER_CALL
    ) -> Linearisation:
        """The left sides and coefficients at points; `elsewhere` is added to u at all other points than the one in
        question."""
        by_point = np.ascontiguousarray(np.moveaxis(jet, 0, 1))
        left, coefficients = in_batches(
            lambda *batch: self._function(*batch, elsewhere), (points, normals, by_point), (size,)
        )
        return Linearisation(self.indices, left, coefficients)

    def values(
        self, points: Points, normals: SpaceNormals, jet: Jet, sizes: tuple[int, ...] = (PRUNING_POINTS,)
    ) -> Float[np.ndarray, "n k"]:
        """The left sides alone."""
        return in_batches(self._left, (points, normals, np.ascontiguousarray(np.moveaxis(jet, 0, 1))), sizes)

    @cached_property
    def _program(self) -> Jaxpr:
        """The traced program, for the size that it is compiled for."""
        symbol = self._symbol
        per_point = ((symbol.dim,), (symbol.space_dim,), (len(self.indices), symbol.layout.components))
        shapes = (jax.ShapeDtypeStruct((POINTS_PER_CALL, *shape), jnp.float64) for shape in per_point)
        return self._function.trace(*shapes, 0.0).jaxpr.jaxpr

    @cached_property
    def may_look_elsewhere(self) -> bool:
        """Whether the program leaves it possible that u is evaluated at other points."""
        return looks_elsewhere(self._program)

    def depends_on(self, *arguments: int) -> bool:
        """Whether something may be computed from one of these arguments, or from u at other points."""
        return self.may_look_elsewhere or any(depends for _, depends in followed(self._program, arguments))

    @cached_property
    def constant(self) -> Linearisation | None:
        """The symbol at the zero jet at one point, if nothing in it is computed from the point or the normal: it is the
        same everywhere."""
        if self.depends_on(POINT, NORMAL):
            return None
        symbol = self._symbol
        point, normal = np.zeros((1, symbol.dim)), np.zeros((1, symbol.space_dim))
        return self.run(point, normal, np.zeros((len(self.indices), 1, symbol.layout.components)), 0.0)
