"""Whether a problem is linear: as it is written, or as far as a trial shows."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr

from pdofm.assemble import System, left_values
from pdofm.collocate import Block
from pdofm.evaluate import Coefficients
from pdofm.features import Features
from pdofm.terms import Layout, LeftSide


def nonlinear_terms(
    layout: Layout,
    features: Features,
    blocks: Sequence[Block],
    system: System,
    coefficients: Coefficients,
    step: Coefficients | None = None,
) -> list[str]:
    """The names of the terms that are not affine in the unknown: a step from `coefficients` leaves the linearisation.

    A random step if none is given; tried where the system was probed. Left sides that say of themselves that they are
    linear are believed.
    """
    tried = _random_step(*coefficients.shape) if step is None else step
    moves = tried.T.reshape(-1)
    found = []
    for block in blocks:
        if block.term.is_linear:
            continue
        probe = system.probes[block.term.name]
        points, k = probe.points, probe.gradients.shape[1]
        here = replace(block, points=block.points[points], normals=block.normals[points])
        moved = left_values(layout, features, here, coefficients + tried).reshape(-1)
        at = (system.rows[block.term.name].start + points[:, None] * k + np.arange(k)).reshape(-1)
        slope = probe.gradients.reshape(len(at), -1)
        expected = system.left[at] + slope @ moves
        rounding = np.abs(moved) + np.abs(system.left[at]) + np.abs(slope) @ np.abs(moves)
        if not np.max(np.abs(moved - expected)) <= 1e-10 * np.max(rounding):
            found.append(block.term.name)
    return found


def is_affine(layout: Layout, block: Block) -> bool:
    """Whether the left side of a block is affine in the unknown as it is written: it consists of operations on real
    numbers that have a transpose."""
    return block.term.is_linear or _is_affine(block.term.lhs, layout, block.points.shape[1], block.normals.shape[1])


@lru_cache(maxsize=256)
def _is_affine(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> bool:
    z, normal, c = (jax.ShapeDtypeStruct(s, jnp.float64) for s in ((dim,), (space_dim,), (2, layout.components)))

    def left(z: Array, normal: Array, c: Array) -> Array:
        u = layout.fields(lambda y: jnp.sin(jnp.sum(y) + jnp.arange(2.0)) @ c)
        return lhs(u, u, layout.arguments(z), normal)

    def transposed(z: Array, normal: Array, side: Array) -> Any:
        return jax.linear_transpose(partial(left, z, normal), c)(side)

    traced = jax.make_jaxpr(left)(z, normal, c).jaxpr
    if _decides(traced, traced.invars[2:]):
        return False
    try:
        jax.eval_shape(transposed, z, normal, jax.eval_shape(left, z, normal, c))
    except (AssertionError, NotImplementedError, TypeError, ValueError):  # how JAX says that there is no transpose
        return False
    return True


def _decides(traced: Jaxpr, variables: Sequence[Any]) -> bool:
    """Whether something that depends on these variables becomes a truth value or an integer, which transposition does
    not see."""
    dependent = {id(variable) for variable in variables}
    for equation in traced.eqns:
        if not any(id(variable) in dependent for variable in equation.invars):
            continue
        dependent |= {id(variable) for variable in equation.outvars}
        parts = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda part: isinstance(part, ClosedJaxpr))
        inner = [part for part in (getattr(part, "jaxpr", part) for part in parts) if isinstance(part, Jaxpr)]
        # Inside, all real arguments count as dependent: at worst a linear problem is tried once more.
        if any(_decides(part, _real(part.invars)) for part in inner):
            return True
        if not inner and len(_real(equation.outvars)) < len(equation.outvars):
            return True
    return False


def _real(variables: Sequence[Any]) -> list[Any]:
    return [variable for variable in variables if jnp.issubdtype(variable.aval.dtype, jnp.inexact)]


def _random_step(size: int, components: int) -> Coefficients:
    return np.random.default_rng(0).standard_normal((size, components)) / np.sqrt(size)
