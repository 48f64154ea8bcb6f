"""Pretraining: physics-driven features that are nearly orthogonal (PD-OFM), or not (PD-FM).

    minimise   physics(features, c) + λ · orthogonality(features)

over the weights of the network and its output layer c, by stochastic gradients. The output layer is then forgotten:
`solve` finds the coefficients by least squares.
"""

import dataclasses
import hashlib
import json
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from pdofm._types import Key
from pdofm.calculus.terms import Layout, LeftSide
from pdofm.discrete.assemble import entries
from pdofm.discrete.checks import check_fit, check_problem
from pdofm.discrete.collocate import collocate
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import evaluate
from pdofm.discrete.right import right_values
from pdofm.domain import Part
from pdofm.errors import ConvergenceWarning, FeaturesError, unknown_name
from pdofm.features import Features
from pdofm.numerics.sampling import generator
from pdofm.problem.problem import Problem
from pdofm.solving.fit import ACCEPTABLE, fit
from pdofm.solving.solution import Solution
from pdofm.training.losses import Batch, Loss, Orthogonality, Projected, Samples, physics_of

CHUNK = 20
"""Steps that are compiled into one loop; between chunks come progress, callbacks, checkpoints and interrupts."""


ADAM = optax.adam(1e-4)  # one object, so that runs share their compiled steps


@dataclass(frozen=True, eq=False)
class Trained:
    """What pretraining returns.

    Attributes:
        features: the trained features, in float64.
        coefficients: the output layer that was trained along, (m, C): with it the features are the network's own
            solution, see `network_solution`.
        history: a list per recorded quantity: "loss", "physics", "orthogonality", one entry per step.
        reason: why the training ended.
    """

    features: Features
    coefficients: np.ndarray
    history: dict[str, list[float]]
    reason: str

    def __repr__(self) -> str:
        loss = self.history["loss"]
        course = f", loss from {loss[0]:.1e} to {loss[-1]:.1e}" if loss else ""
        return f"Trained {self.features.size} features{course}: {self.reason}"

    def network_solution(self, problem: Problem) -> Solution:
        """The network's own solution, with the output layer as trained: what a physics-informed network would answer.

        Its error estimate is the distance to the least-squares solution in the same features, which is far closer to
        the truth.
        """
        better = fit(problem, self.features)
        points = problem.domain.sample(2048)
        own, reference = (evaluate(self.features, c, points) for c in (self.coefficients, better.coefficients))
        sizes = np.maximum(np.linalg.norm(reference, axis=0), np.finfo(float).tiny)
        distance = float(np.max(np.linalg.norm(own - reference, axis=0) / sizes))
        accurate = distance <= ACCEPTABLE
        reason = "output layer as trained" if accurate else f"the trained output layer is off by {distance:.1e}"
        return dataclasses.replace(
            better, coefficients=self.coefficients, error_estimate=distance, converged=accurate, reason=reason
        )


class _State(eqx.Module):
    """All that a training run carries from step to step."""

    parameters: Any  # (trainable arrays of the features, coefficients)
    optimiser: Any
    step: Array
    first: Array  # the physics loss at the first step
    stopped: Array  # 0 going on, 1 the loss is small enough, 2 the loss is no longer finite


def pretrain(
    problem: Problem,
    features: Features,
    *,
    orthogonality: float = 0.01,
    physics: str | Loss = "residual",
    penalty: Loss | None = None,
    steps: int = 200,
    tolerance: float = 1e-3,
    points: int = 1024,
    boundary_points: int = 128,
    resample: bool = True,
    optimiser: optax.GradientTransformation | None = None,
    precision: str = "float32",
    key: Key = 0,
    checkpoint: str | PathLike | None = None,
    record: Mapping[str, Callable[[Features], float]] | None = None,
    progress: bool = True,
) -> Trained:
    """Train features for a problem: PD-OFM with `orthogonality` > 0, PD-FM with 0.

    Args:
        problem: any problem, linear or not; its terms make the physics loss.
        features: `NetworkFeatures`, fresh or trained before; they are not changed, new ones are returned.
        orthogonality: weight λ of the penalty.
        physics: "residual" (the loss of physics-informed networks), "none", or a loss such as
            `losses.Projected()` (the residual that least squares leaves), `losses.Variational(energy)`,
            `losses.Supervised(function)`, `losses.Residual.weighted({"dirichlet": 10})` or one of your own.
        penalty: what is weighted by λ, by default `losses.Orthogonality()`, the Frobenius norm of UᵀU - I.
        steps: most steps.
        tolerance: stop when the physics loss falls below this fraction of its first value, if that is positive; 0 never
            stops early.
        points, boundary_points: points per step inside and on all conditions together.
        resample: new points in every step; False keeps the first ones.
        optimiser: any of optax, with schedules and weight decay as there, for instance
            ``optax.adamw(optax.cosine_decay_schedule(1e-3, 1000), weight_decay=1e-4)``, or ``optax.lbfgs()`` together
            with ``resample=False``; by default Adam with a step size of 1e-4, which improves features that are good to
            start with and does not lose what they have.
        precision: "float32" or "float64", of the training only; features come back in float64.
        key: seed of points and output layer; the same seed and settings give the same features on the same machine.
        checkpoint: a file to write every few steps and to resume from; a run that was killed goes on to the same
            result, bit for bit.
        record: more quantities for the history, as functions of the features, measured every 20 steps.
        progress: show a progress bar if standard error is a terminal.

    A loss that is no longer finite stops the training with a warning, and a keyboard interrupt stops it quietly; both
    return the last good features, and `reason` says so.
    """
    if precision not in ("float32", "float64"):
        raise unknown_name("precision", precision, ("float32", "float64"))
    if not isinstance(features, Features):
        raise FeaturesError(
            f"pretrain() takes features to start from, such as NetworkFeatures(problem.domain, 500); got "
            f"{type(features).__name__}."
        )
    check_problem("pretrain", problem)
    check_fit(problem, features)
    loss = physics_of(physics)
    if not orthogonality >= 0:
        raise FeaturesError(f"orthogonality is the weight of a penalty and must not be negative; got {orthogonality}.")
    if optimiser is not None and not isinstance(optimiser, optax.GradientTransformation):
        raise FeaturesError(
            f"optimiser must be one of optax, such as optax.adam(1e-3); got {type(optimiser).__name__}."
        )
    if resample and _searches_a_line(optimiser):
        raise FeaturesError(
            "This optimiser searches along a line and compares losses of several steps, which needs the same points in "
            "all of them. Use resample=False."
        )
    if not isinstance(steps, int | np.integer) or steps < 1 or points < 1:
        raise FeaturesError(f"steps and points must be at least 1; got steps={steps}, points={points}.")
    dtype = jnp.dtype(precision)
    seeds = [int(seed) for seed in generator(key).integers(2**31, size=2)]
    output = np.random.default_rng(seeds[0]).standard_normal((features.size, problem.layout.components))
    trainable, rest = eqx.partition(features, _trainable(features))
    parameters = _cast((trainable, output * np.sqrt(2 / sum(output.shape))), dtype)
    optimiser = ADAM if optimiser is None else optimiser
    recipe = _Recipe(
        loss,
        Orthogonality() if penalty is None else penalty,
        float(orthogonality),
        optimiser,
        float(tolerance),
        tuple((term.name, term.lhs) for term in problem.terms),
        problem.layout,
    )
    with jax.numpy_dtype_promotion("standard"):  # optax mixes types
        moments = optimiser.init(parameters)
    zero = jnp.zeros((), jnp.int32)
    state, history = _State(parameters, moments, zero, jnp.zeros((), dtype), zero), {}
    settings = {"steps": steps, "seeds": seeds, "points": [points, boundary_points], "precision": precision}
    settings |= {"resample": resample, "orthogonality": orthogonality, "tolerance": tolerance}
    settings["start"] = _fingerprint(problem, features)
    if checkpoint is not None:
        state, history = _resumed(Path(checkpoint), state, settings)

    def draw(count: int, seed: int) -> dict[str, Samples]:
        return _draw(problem, points, boundary_points, count, seed, dtype)

    if isinstance(loss, Projected):
        terms = draw(1, seeds[1]).values()
        rows, has_data = sum(term.right.size for term in terms), any(bool(jnp.any(term.right)) for term in terms)
        loss.check(precision, _nonlinear(problem, features), rows, output.size, has_data)

    def features_now() -> Features:
        return eqx.combine(_cast(state.parameters[0], jnp.dtype(float)), rest)

    fixed = None if resample else draw(1, seeds[1])
    rest_cast, reason = _cast(rest, dtype), f"all {steps} steps done"
    with _bar(steps, progress) as show:
        try:
            while int(state.step) < steps and int(state.stopped) == GOING:
                done = int(state.step)
                count = min(CHUNK, steps - done)
                samples = draw(count, seeds[1] + done) if fixed is None else fixed
                trained = _train(recipe, count, fixed is not None, rest_cast, state, samples)
                # An interrupt comes where the steps are waited for: what they changed is taken after that, at once.
                state, losses = jax.block_until_ready(trained)
                for name, values in losses.items():
                    taken = np.asarray(values, dtype=np.float64)[: int(state.step) - done]
                    history.setdefault(name, []).extend(taken.tolist())
                for name, measure in (record or {}).items():
                    history.setdefault(name, []).append(float(measure(features_now())))
                if checkpoint is not None:
                    _write(Path(checkpoint), state, history, settings)
                show(int(state.step), history["loss"][-1] if history["loss"] else float("nan"))
        except KeyboardInterrupt:
            reason = f"interrupted after {int(state.step)} of {steps} steps"
    if int(state.stopped) == SMALL:
        reason = f"the physics loss fell below {tolerance:g} of its first value after {int(state.step)} steps"
    if int(state.stopped) == BROKEN:
        reason = f"the loss is no longer finite after {int(state.step)} steps; the features are those before"
        message = f"Pretraining stopped: {reason}. Use a smaller step size, or precision='float64'."
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return Trained(features_now(), np.asarray(state.parameters[1], dtype=np.float64), history, reason)


def _searches_a_line(optimiser: optax.GradientTransformation | None) -> bool:
    """Whether the optimiser evaluates the loss by itself."""
    if not isinstance(optimiser, optax.GradientTransformationExtraArgs):
        return False
    some = jnp.zeros(1)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes types
        state = optimiser.init(some)
        try:
            optimiser.update(some, state, some)
        except TypeError:  # value, grad or value_fn is missing
            return True
    return False


GOING, SMALL, BROKEN = 0, 1, 2


@dataclass(frozen=True)
class _Recipe:
    """What does not change in a run; compiled code is shared between runs with equal recipes."""

    physics: Loss
    penalty: Loss
    orthogonality: float
    optimiser: optax.GradientTransformation
    tolerance: float
    left_sides: tuple[tuple[str, LeftSide], ...]
    layout: Layout


def _trainable(features: Features) -> Any:
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


def _nonlinear(problem: Problem, features: Features) -> list[str]:
    """The terms that are not linear in the unknown."""
    return Discretisation(problem, features, collocate(problem, 64, 64, features=features)).nonlinear_terms()


def _cast(tree: Any, dtype: Any) -> Any:
    """The tree with its real arrays in another precision."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, dtype) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf, tree
    )


def _draw(problem: Problem, interior: int, boundary: int, count: int, seed: int, dtype: Any) -> dict[str, Samples]:
    """Random points for `count` steps: every array has that leading axis."""
    rng = np.random.default_rng(seed)
    samples = {}
    for block in collocate(problem, count * interior, max(count * boundary, 1), sampling="random", key=seed):
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
def _train(recipe: _Recipe, count: int, fixed: bool, rest: Any, state: _State, samples: dict[str, Samples]):
    """`count` steps in one compiled loop; once stopped, the state no longer changes."""

    def total(parameters: Any, batch: Batch):
        trainable, coefficients = parameters
        features = eqx.combine(trainable, rest)
        physics = recipe.physics(features, coefficients, batch)
        penalty = jnp.zeros_like(physics)
        if recipe.orthogonality != 0:
            penalty = recipe.penalty(features, coefficients, batch)
        loss = physics + recipe.orthogonality * penalty
        return loss, {"loss": loss, "physics": physics, "orthogonality": penalty}

    def step(state: _State, drawn: dict[str, Samples]):
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
        small = (losses["physics"] < recipe.tolerance * first) & (recipe.tolerance > 0) & (first > 0)
        stopped = jnp.where(finite, jnp.where(small, SMALL, GOING), BROKEN).astype(state.stopped.dtype)
        moved = _State(parameters, moments, state.step + 1, first, stopped)
        kept = dataclasses.replace(state, stopped=stopped)
        return jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, kept), losses

    def body(state: _State, drawn: Any):
        batch = jax.tree.map(lambda a: a[0], samples) if fixed else drawn
        unchanged = {name: jnp.full((), jnp.nan, state.first.dtype) for name in ("loss", "physics", "orthogonality")}
        return jax.lax.cond(state.stopped == GOING, lambda: step(state, batch), lambda: (state, unchanged))

    return jax.lax.scan(body, state, None if fixed else samples, length=count)


@contextmanager
def _bar(steps: int, wanted: bool) -> Iterator[Callable[[int, float], None]]:
    """A progress bar on standard error, if that is a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda step, loss: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("pretraining", total=steps)
        yield lambda step, loss: bar.update(task, completed=step, description=f"pretraining, loss {loss:.2e}")


def _write(path: Path, state: _State, history: dict[str, list[float]], settings: dict[str, Any]) -> None:
    """Write a checkpoint; a killed writer leaves the old one."""
    arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
    text = np.frombuffer(json.dumps({"settings": settings, "history": history}).encode(), dtype=np.uint8)
    partial_path = path.with_name(path.name + ".part")
    with partial_path.open("wb") as file:
        np.savez(file, header=text, **arrays)  # type: ignore[arg-type]
    partial_path.replace(path)


def _fingerprint(problem: Problem, features: Features) -> str:
    """What the features are at the start, and what the problem asks at a few points."""
    digest = hashlib.sha256(problem.name.encode())
    for leaf in jax.tree.leaves(features):
        digest.update(np.asarray(leaf).tobytes())
    for block in collocate(problem, 16, 16):
        digest.update(block.term.name.encode())
        digest.update(right_values(problem.layout, block, entries(problem.layout, block)).tobytes())
    return digest.hexdigest()[:16]


def _resumed(path: Path, state: _State, settings: dict[str, Any]) -> tuple[_State, dict[str, list[float]]]:
    """The state and history of a checkpoint; the given ones if there is none yet."""
    if not path.exists():
        return state, {}
    leaves, structure = jax.tree.flatten(state)
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            stored = [file[f"leaf{i}"] for i in range(len(leaves))]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise FeaturesError(
            f"{str(path)!r} is not a checkpoint of pretraining ({error}). Delete it, or name another."
        ) from error
    if header["settings"] != settings or any(a.shape != b.shape for a, b in zip(leaves, stored, strict=True)):
        raise FeaturesError(
            f"The checkpoint {str(path)!r} belongs to another run (its settings are {header['settings']}, these are "
            f"{settings}). Delete it, or name another. To train longer, go on from the features of the finished run."
        )
    arrays = [jnp.asarray(new, old.dtype) for new, old in zip(stored, leaves, strict=True)]
    return jax.tree.unflatten(structure, arrays), header["history"]
