"""Pretraining: physics-driven features that are nearly orthogonal (PD-OFM), or not (PD-FM).

    minimise   physics(features, c) + λ · orthogonality(features)

over the weights of the network and its output layer c, by stochastic gradients. The output layer is then forgotten:
`solve` finds the coefficients by least squares.
"""

import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from pdofm._types import Key
from pdofm.deprecation import renamed
from pdofm.discrete.checks import check_fit, check_problem
from pdofm.discrete.collocate import collocate
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import evaluate
from pdofm.errors import ConvergenceWarning, FeaturesError, unknown_name
from pdofm.features import Features
from pdofm.numerics.distance import distance
from pdofm.numerics.sampling import generator
from pdofm.problem.problem import Problem
from pdofm.shown import Shown
from pdofm.solving.ending import judge_training
from pdofm.solving.fit import fit
from pdofm.solving.solution import Solution
from pdofm.solving.verdict import Evidence, Status, Verdict, judge
from pdofm.training.checkpoint import fingerprint, resume, write
from pdofm.training.keeping import best_of, check_keep
from pdofm.training.loop import BROKEN, GOING, SMALL, Recipe, State, cast, draw, train, trainable_mask
from pdofm.training.losses import Loss, Orthogonality, Projected, Samples, physics_of
from pdofm.training.optimisers import Optimiser, check_optimiser, default_optimiser

CHUNK = 20
"""Steps that are compiled into one loop; between chunks come progress, callbacks, checkpoints and interrupts."""

NETWORK_POINTS = 2048
"""Points at which the network's own solution is compared with the one by least squares."""


@dataclass(frozen=True, eq=False)
class Trained(Shown):
    """What pretraining returns.

    Attributes:
        features: the features that are best for least squares, in float64: the trained ones, the same rescaled, or,
            where training does not pay, those that were given; with ``keep="last"`` the trained ones.
        gain: how many times smaller the estimated error is in these than in those that were given.
        last: the trained features at the end.
        coefficients: the output layer, (m, C), which was trained together with the `last` features; see
            `network_solution`.
        history: a list per recorded quantity: "loss", "physics", "orthogonality", one entry per step.
        verdict: how the training ended; `reason` is a view of it.
    """

    features: Features
    coefficients: np.ndarray
    history: dict[str, list[float]]
    verdict: Verdict
    last: Features | None = None
    gain: float = 1.0
    kept: str = "trained"

    @property
    def reason(self) -> str:
        """Why the training ended."""
        return self.verdict.reason

    def __repr__(self) -> str:
        loss = self.history.get("loss")
        course = f", loss from {loss[0]:.1e} to {loss[-1]:.1e}" if loss else ""
        gained = f"; kept: {self.kept}, estimated error smaller {self.gain:.3g} times" if self.gain != 1.0 else ""
        given = "; training did not pay, the given features are kept" if self.kept == "given" else gained
        return f"Trained {self.features.size} features{course}: {self.reason}{given}"

    def network_solution(self, problem: Problem) -> Solution:
        """The network's own solution, with the output layer as trained: what a physics-informed network would answer.

        Its error estimate is the distance to the least-squares solution in the same features, which is far closer to
        the truth.
        """
        trained_with = self.features if self.last is None else self.last
        better = fit(problem, trained_with)
        points = problem.domain.sample(NETWORK_POINTS)
        own, reference = (evaluate(trained_with, c, points) for c in (self.coefficients, better.coefficients))
        estimate = distance(own, reference)
        trained = Verdict(Status.CONVERGED, "output layer as trained")
        verdict = judge(
            Evidence(iteration=trained, estimate=estimate),
            "use solve() with the trained features, which finds better coefficients than the trained output layer",
        )
        return dataclasses.replace(better, coefficients=self.coefficients, error_estimate=estimate, verdict=verdict)


# The signature and its documentation take more lines than a function should have; the work is done in `_Run`.
@renamed(tolerance="tol")
def pretrain(
    problem: Problem,
    features: Features,
    *,
    orthogonality: float = 0.01,
    physics: str | Loss = "residual",
    penalty: Loss | None = None,
    steps: int = 200,
    tol: float = 1e-3,
    points: int = 1024,
    boundary_points: int = 128,
    resample: bool = True,
    optimiser: Optimiser | None = None,
    precision: str = "float32",
    key: Key = 0,
    checkpoint: str | PathLike | None = None,
    record: Mapping[str, Callable[[Features], float]] | None = None,
    progress: bool = True,
    keep: str = "best",
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
        steps: the largest number of steps.
        tol: stop when the physics loss falls below this fraction of its first value, if that is positive; 0 never
            stops early.
        points, boundary_points: the number of points in each step, inside the domain and for all conditions together.
        resample: whether every step draws new points; False keeps the first ones.
        optimiser: any of optax, with schedules and weight decay as there, for instance
            ``optax.adamw(optax.cosine_decay_schedule(1e-3, 1000), weight_decay=1e-4)``, or ``optax.lbfgs()`` together
            with ``resample=False``; by default Adam with a step size of 1e-4, which improves good features without
            spoiling them.
        precision: "float32" or "float64", for the training alone; the trained features are in float64.
        key: seed of points and output layer; the same seed and settings give the same features on the same machine.
        checkpoint: a file that is written every few steps and from which a run resumes; a run that was killed and
            resumed gives the same result, bit for bit.
        record: further quantities for the history, as functions of the features, measured every 20 steps.
        progress: show a progress bar if standard error is a terminal.
        keep: "best" returns the trained features, or the same rescaled, only if least squares is more accurate in them
            than in the given ones, at points that are not fitted; `gain` says by how much. "last" returns the trained
            ones, as they are.

    A loss that is no longer finite stops the training with a warning, and a keyboard interrupt stops it quietly; both
    return the last good features, and the verdict says so.
    """
    check_problem("pretrain", problem)
    _check_features(problem, features)
    _check_settings(precision, orthogonality, steps, points)
    check_keep(keep)
    optimiser = default_optimiser() if optimiser is None else optimiser
    check_optimiser(optimiser, resample)
    recipe = Recipe(
        physics_of(physics),
        Orthogonality() if penalty is None else penalty,
        float(orthogonality),
        optimiser,
        float(tol),
        tuple((term.name, term.lhs) for term in problem.terms),
        problem.layout,
    )
    run = _Run(problem, features, recipe, steps, (points, boundary_points), resample, precision, key)
    if checkpoint is not None:
        run.resume(Path(checkpoint))
    verdict = run.finish(record or {}, progress)
    if verdict.status is Status.DIVERGED:
        warnings.warn(f"Pretraining stopped: {verdict.reason}.", ConvergenceWarning, stacklevel=3)
    last, output = run.features, np.asarray(run.state.parameters[1], dtype=np.float64)
    best = best_of(problem, features, last, key) if keep == "best" else (last, 1.0, "trained")
    return Trained(best[0], output, run.history, verdict, last, *best[1:])


class _Run:
    """A training run: its recipe, where it stands, and the points that it draws."""

    def __init__(
        self,
        problem: Problem,
        features: Features,
        recipe: Recipe,
        steps: int,
        counts: tuple[int, int],
        resample: bool,
        precision: str,
        key: Key,
    ):
        self.problem, self.recipe, self.steps, self.counts = problem, recipe, steps, counts
        self.dtype = jnp.dtype(precision)
        seeds = [int(seed) for seed in generator(key).integers(2**31, size=2)]
        self.seed = seeds[1]
        output = np.random.default_rng(seeds[0]).standard_normal((features.size, problem.layout.components))
        trainable, self.rest = eqx.partition(features, trainable_mask(features))
        self.rest_for_training = cast(self.rest, self.dtype)
        parameters = cast((trainable, output * np.sqrt(2 / sum(output.shape))), self.dtype)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types
            moments = recipe.optimiser.init(parameters)
        zero = jnp.zeros((), jnp.int32)
        self.state = State(parameters, moments, zero, jnp.zeros((), self.dtype), zero)
        self.history: dict[str, list[float]] = {}
        self.fixed = None if resample else self.draw(1, self.seed)
        self.checkpoint: Path | None = None
        self.settings = {
            "steps": steps,
            "seeds": seeds,
            "points": list(counts),
            "precision": precision,
            "resample": resample,
            "orthogonality": recipe.orthogonality,
            "tol": recipe.tol,
            "start": fingerprint(problem, features),
        }
        if isinstance(recipe.physics, Projected):
            samples = self.draw(1, self.seed).values()
            rows, has_data = sum(each.right.size for each in samples), any(bool(jnp.any(s.right)) for s in samples)
            recipe.physics.check(precision, _nonlinear(problem, features), rows, output.size, has_data)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint, if there is one, and write to it from now on."""
        self.checkpoint = path
        self.state, self.history = resume(path, self.state, self.settings)

    def draw(self, count: int, seed: int) -> dict[str, Samples]:
        """Points for `count` steps."""
        return draw(self.problem, *self.counts, count, seed, self.dtype)

    @property
    def features(self) -> Features:
        """The features as they are now, in float64."""
        return eqx.combine(cast(self.state.parameters[0], jnp.dtype(float)), self.rest)

    @property
    def done(self) -> int:
        """The number of steps done."""
        return int(self.state.step)

    def finish(self, record: Mapping[str, Callable[[Features], float]], progress: bool) -> Verdict:
        """Train until all steps are done, the loss is small enough or broken, or the user interrupts."""
        interrupted = False
        with _bar(self.steps, progress) as show:
            try:
                while self.done < self.steps and int(self.state.stopped) == GOING:
                    self._advance(record)
                    if self.checkpoint is not None:
                        write(self.checkpoint, self.state, self.history, self.settings)
                    show(self.done, self.history["loss"][-1] if self.history["loss"] else float("nan"))
            except KeyboardInterrupt:
                interrupted = True
        stopped = int(self.state.stopped)
        return judge_training(
            self.done,
            self.steps,
            self.recipe.tol,
            interrupted=interrupted,
            is_small=stopped == SMALL,
            is_finite=stopped != BROKEN,
        )

    def _advance(self, record: Mapping[str, Callable[[Features], float]]) -> None:
        """Some steps in one compiled loop."""
        done = self.done
        count = min(CHUNK, self.steps - done)
        is_fixed = self.fixed is not None
        samples = self.fixed if is_fixed else self.draw(count, self.seed + done)
        trained = train(self.recipe, count, is_fixed, self.rest_for_training, self.state, samples)
        # An interrupt comes where the steps are waited for: what they changed is taken after that, at once.
        self.state, losses = jax.block_until_ready(trained)
        for name, values in losses.items():
            taken = np.asarray(values, dtype=np.float64)[: self.done - done]
            self.history.setdefault(name, []).extend(taken.tolist())
        for name, measure in record.items():
            self.history.setdefault(name, []).append(float(measure(self.features)))


def _check_features(problem: Problem, features: Features) -> None:
    if not isinstance(features, Features):
        raise FeaturesError(
            f"pretrain() takes features to start from, such as NetworkFeatures(problem.domain, 500); got "
            f"{type(features).__name__}."
        )
    check_fit(problem, features)


def _check_settings(precision: str, orthogonality: float, steps: int, points: int) -> None:
    if precision not in ("float32", "float64"):
        raise unknown_name("precision", precision, ("float32", "float64"))
    if not orthogonality >= 0:
        raise FeaturesError(f"orthogonality is the weight of a penalty and must not be negative; got {orthogonality}.")
    if not isinstance(steps, int | np.integer) or steps < 1 or points < 1:
        raise FeaturesError(f"steps and points must be at least 1; got steps={steps}, points={points}.")


def _nonlinear(problem: Problem, features: Features) -> list[str]:
    """The terms that are not linear in the unknown."""
    return Discretisation(problem, features, collocate(problem, 64, 64, features=features)).nonlinear_terms()


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
