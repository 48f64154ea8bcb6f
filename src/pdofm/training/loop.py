"""The training loop: what a run carries from step to step, the points of a step, and the steps, compiled."""

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.terms import Layout, LeftSide
from pdofm.discrete.collocate import collocate
from pdofm.discrete.leftsides import entries
from pdofm.discrete.right import right_values
from pdofm.domain import Part
from pdofm.errors import FeaturesError
from pdofm.features import Features
from pdofm.problem.problem import Problem
from pdofm.training.losses import Batch, Loss, Samples
from pdofm.training.optimisers import Optimiser

GOING, SMALL, BROKEN = 0, 1, 2
"""States of a run, as numbers that compiled code can carry: it goes on, its physics loss is small enough, or its loss
is no longer finite."""


class State(eqx.Module):
    """All that a training run carries from step to step."""

    parameters: Any  # (trainable arrays of the features, coefficients)
    optimiser: Any
    step: Array
    first: Array  # the physics loss at the first step
    stopped: Array  # 0 going on, 1 the loss is small enough, 2 the loss is no longer finite


@dataclass(frozen=True)
class Recipe:
    """What does not change in a run; compiled code is shared between runs with equal recipes."""

    physics: Loss
    penalty: Loss
    orthogonality: float
    optimiser: Optimiser
    tol: float
    left_sides: tuple[tuple[str, LeftSide], ...]
    layout: Layout


def trainable_mask(features: Features) -> Any:
    """A tree of booleans: which arrays are trained."""

    def is_trained(path: Any, leaf: Any) -> bool:
        owner: Any = features
        for key in path[:-1]:
            owner = getattr(owner, key.name) if hasattr(key, "name") else owner[key.idx]
        return isinstance(owner, Features) and getattr(path[-1], "name", None) in owner.trained

    mask = jax.tree_util.tree_map_with_path(is_trained, features)
    if not any(jax.tree.leaves(mask)):
        raise FeaturesError(
            f"{type(features).__name__} has nothing to train. Use NetworkFeatures, or RandomFeatures, or a combination "
            "with one of them."
        )
    return mask


def cast(tree: Any, dtype: Any) -> Any:
    """The tree with its real arrays in another precision."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, dtype) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf, tree
    )


def draw(problem: Problem, interior: int, boundary: int, count: int, seed: int, dtype: Any) -> dict[str, Samples]:
    """Random points for `count` steps: every array has that leading axis."""
    rng = np.random.default_rng(seed)
    samples = {}
    for block in collocate(problem, count * interior, max(count * boundary, 1), sampling="random", key=seed):
        if block.weights is not None:  # of a mean: one equation for all points, which training leaves to the solve
            continue
        right = right_values(problem.layout, block, entries(problem.layout, block))
        arrays = (block.points, block.normals, right)
        isolated = not isinstance(block.term.on, Part | None) or (
            block.term.on is not None and all(piece.dim == 0 for piece in block.term.on.pieces)
        )
        each = len(block.points) // count
        if isolated or each == 0:  # a few points that belong to every step
            stacked = [np.broadcast_to(array, (count, *array.shape)) for array in arrays]
        else:
            order = rng.permutation(len(block.points))[: each * count]
            stacked = [array[order].reshape(count, each, array.shape[1]) for array in arrays]
        samples[block.term.name] = Samples(*(jnp.asarray(array, dtype) for array in stacked))
    return samples


@partial(jax.jit, static_argnames=("recipe", "count", "fixed"))
def train(recipe: Recipe, count: int, fixed: bool, rest: Any, state: State, samples: dict[str, Samples]):
    """`count` steps in one compiled loop; once stopped, the state no longer changes."""
    import optax

    def total(parameters: Any, batch: Batch):
        trainable, coefficients = parameters
        features = eqx.combine(trainable, rest)
        # The functions of a problem may contain arrays in double precision, such as jnp.eye(2).
        physics = jnp.asarray(recipe.physics(features, coefficients, batch), coefficients.dtype)
        penalty = jnp.zeros_like(physics)
        if recipe.orthogonality != 0:
            penalty = jnp.asarray(recipe.penalty(features, coefficients, batch), coefficients.dtype)
        loss = physics + recipe.orthogonality * penalty
        return loss, {"loss": loss, "physics": physics, "orthogonality": penalty}

    def step(state: State, drawn: dict[str, Samples]):
        batch = Batch(drawn, recipe.left_sides, recipe.layout)
        gradient, losses = jax.grad(total, has_aux=True)(state.parameters, batch)
        with jax.numpy_dtype_promotion("standard"):
            # The keywords are for optimisers that search along a line; the others ignore them.
            updates, moments = optax.with_extra_args_support(recipe.optimiser).update(
                *(gradient, state.optimiser, state.parameters),
                value=losses["loss"],
                grad=gradient,
                value_fn=lambda parameters: total(parameters, batch)[0],
            )
            parameters = optax.apply_updates(state.parameters, updates)
        finite = jnp.isfinite(losses["loss"]) & jnp.all(
            jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(parameters)])
        )
        first = jnp.where(state.step == 0, losses["physics"], state.first)
        # A fraction of the first value means nothing where that is negative: a logarithm, or an energy.
        small = (losses["physics"] < recipe.tol * first) & (recipe.tol > 0) & (first > 0)
        stopped = jnp.where(finite, jnp.where(small, SMALL, GOING), BROKEN).astype(state.stopped.dtype)
        moved = State(parameters, moments, state.step + 1, first, stopped)
        kept = dataclasses.replace(state, stopped=stopped)
        return jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, kept), losses

    def body(state: State, drawn: Any):
        batch = jax.tree.map(lambda a: a[0], samples) if fixed else drawn
        unchanged = {name: jnp.full((), jnp.nan, state.first.dtype) for name in ("loss", "physics", "orthogonality")}
        return jax.lax.cond(state.stopped == GOING, lambda: step(state, batch), lambda: (state, unchanged))

    return jax.lax.scan(body, state, None if fixed else samples, length=count)
