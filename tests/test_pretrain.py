"""Pretraining on tiny networks: what it minimises, and that it can be repeated, interrupted and resumed."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pdofm as pf
from pdofm.errors import ConvergenceWarning, FeaturesError, ProblemError, UnknownNameError
from pdofm.features import Features
from pdofm.training import losses

SQUARE = pf.Box([-1, -1], [1, 1])
FEW = {
    "keep": "last",
    "optimiser": optax.adam(1e-2),
    "steps": 40,
    "points": 64,
    "boundary_points": 16,
    "tol": 0.0,
    "progress": False,
}


@cache
def poisson() -> pf.Problem:
    return pf.zoo.get("poisson-square")


@cache
def network(width: int = 20, key: int = 0) -> pf.NetworkFeatures:
    return pf.NetworkFeatures(SQUARE, width, key=key)


@cache
def trained() -> pf.Trained:
    """The run that others are compared with."""
    return pf.pretrain(poisson(), network(), **FEW)


def same(first: Features, second: Features) -> bool:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def is_finite(features: Features) -> bool:
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(features))


def gram_defect(features: Features) -> float:
    """‖UᵀU - I‖ over points of its own."""
    U = np.asarray(jax.vmap(features)(jnp.asarray(SQUARE.sample(64, "random", key=99))))
    return float(np.linalg.norm(U.T @ U - np.eye(U.shape[1])))


# ---- what it minimises


def test_the_loss_falls():
    history = pf.pretrain(poisson(), network(), orthogonality=1.0, **FEW).history
    assert len(history["loss"]) == 40
    assert np.mean(history["loss"][-5:]) < 0.9 * np.mean(history["loss"][:5])


def test_the_loss_is_physics_plus_lambda_times_orthogonality():
    run = pf.pretrain(poisson(), network(), orthogonality=3.0, **FEW)
    loss, physics, penalty = (np.array(run.history[name]) for name in ("loss", "physics", "orthogonality"))
    np.testing.assert_allclose(loss, physics + 3.0 * penalty, rtol=1e-5)


def test_with_a_penalty_features_are_nearer_to_orthogonal_than_without():
    """At a scale that gives full rank: 20 features of numerical rank 3 cannot come nearer than √17, whatever λ."""
    start = pf.NetworkFeatures(SQUARE, 20, scale=1.0)
    without, with_penalty = (pf.pretrain(poisson(), start, orthogonality=weight, **FEW) for weight in (0.0, 1.0))
    assert not np.any(without.history["orthogonality"])
    assert gram_defect(with_penalty.features) < 0.1 * gram_defect(without.features)
    assert gram_defect(with_penalty.features) < 0.1 * gram_defect(start)


def test_features_come_back_in_double_precision_with_the_same_box_and_size():
    run = trained()
    assert isinstance(run.features, pf.NetworkFeatures)
    assert {leaf.dtype for leaf in jax.tree.leaves(run.features)} == {np.dtype(np.float64)}
    assert run.features.size == 20
    assert np.array_equal(run.features.lower, SQUARE.lower)
    assert run.coefficients.shape == (20, 1)
    assert run.reason == "all 40 steps done"


def test_the_features_that_were_given_are_not_changed():
    given = pf.NetworkFeatures(SQUARE, 20)
    pf.pretrain(poisson(), given, **FEW)
    assert same(given, pf.NetworkFeatures(SQUARE, 20))


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_trained_features_solve_better_than_untrained_ones():
    start = pf.NetworkFeatures(SQUARE, 20, scale=1.0)
    learned = pf.pretrain(poisson(), start, **FEW).features
    before, after = (pf.solve(poisson(), features).errors().relative_l2 for features in (start, learned))
    assert after < 0.75 * before


def test_trained_features_may_be_trained_again():
    first = pf.pretrain(poisson(), pf.NetworkFeatures(SQUARE, 20, scale=1.0), physics="none", **FEW)
    again = pf.pretrain(poisson(), first.features, physics="none", **FEW)
    assert again.history["orthogonality"][0] < 0.1 * first.history["orthogonality"][0]


# ---- losses


def by_hand(problem: pf.Problem, features: Features, c: jax.Array, points: np.ndarray) -> np.ndarray:
    """The residual of the equation at points."""
    u = lambda x: features(x) @ c[:, 0]
    return np.asarray(jax.vmap(lambda x: problem.operator(u, x))(jnp.asarray(points)))


def batch_of(problem: pf.Problem, right: float = 0.0) -> losses.Batch:
    inside, (walls, normals) = SQUARE.sample(8), SQUARE.boundary.sample(8)
    made = lambda points, n: losses.Samples(
        jnp.asarray(points), jnp.asarray(n), jnp.full((len(points), 1), right, dtype=float)
    )
    samples = {"equation": made(inside, np.zeros_like(inside)), "dirichlet": made(walls, normals)}
    return losses.Batch(samples, tuple((term.name, term.lhs) for term in problem.terms), problem.layout)


def test_the_residual_loss_is_the_weighted_sum_of_mean_squares():
    batch, c = batch_of(poisson(), 0.5), jnp.ones((20, 1))
    inside = np.mean((by_hand(poisson(), network(), c, batch.interior) - 0.5) ** 2)
    values = np.asarray(jax.vmap(network())(batch.samples["dirichlet"].points)).sum(axis=1)
    wall = np.mean((values - 0.5) ** 2)
    assert float(losses.Residual()(network(), c, batch)) == pytest.approx(inside + wall, rel=1e-10)
    weighted = losses.Residual.weighted({"dirichlet": 10.0, "equation": 2.0})
    assert float(weighted(network(), c, batch)) == pytest.approx(2 * inside + 10 * wall, rel=1e-10)


def test_the_variational_loss_is_the_mean_energy_plus_the_conditions():
    batch, c = batch_of(poisson()), jnp.ones((20, 1))
    values = np.asarray(jax.vmap(network())(batch.samples["dirichlet"].points)).sum(axis=1)
    found = losses.Variational(lambda u, x: u(x) ** 2, boundary=7.0)(network(), c, batch)
    energy = np.mean(np.asarray(jax.vmap(network())(batch.interior)).sum(axis=1) ** 2)
    assert float(found) == pytest.approx(energy + 7 * np.mean(values**2), rel=1e-10)


def test_the_supervised_loss_vanishes_for_a_function_in_the_span():
    c = jnp.ones((20, 1))
    assert float(losses.Supervised(lambda x: jnp.sum(network()(x)))(network(), c, batch_of(poisson()))) < 1e-20
    assert float(losses.Supervised(lambda x: x[0] + 10)(network(), c, batch_of(poisson()))) > 1.0


@pytest.mark.parametrize("mean", [False, True])
def test_orthogonality_is_the_frobenius_norm_of_the_gram_matrix_minus_one(mean):
    batch, c = batch_of(poisson()), jnp.ones((20, 1))
    U = np.asarray(jax.vmap(network())(batch.interior))
    expected = np.linalg.norm(U.T @ U / (len(U) if mean else 1) - np.eye(20))
    assert float(losses.Orthogonality(mean=mean)(network(), c, batch)) == pytest.approx(expected, rel=1e-12)
    squared = losses.Orthogonality(squared=True, mean=mean)(network(), c, batch)
    assert float(squared) == pytest.approx(expected**2, rel=1e-12)


def near_one(features, coefficients, batch):
    """A loss of the user's own."""
    return jnp.mean((jax.vmap(features)(batch.interior) @ coefficients - 1.0) ** 2)


LOSSES = {
    "residual by name": "residual",
    "weighted residual": losses.Residual.weighted({"dirichlet": 10.0}),
    "variational": losses.Variational(lambda u, x: jnp.sum(pf.grad(u)(x) ** 2) / 2 - u(x)),
    "supervised": losses.Supervised(lambda x: jnp.sin(x[0])),
    "user's own": near_one,
}


@pytest.mark.parametrize("name", LOSSES)
def test_every_physics_loss_falls(name):
    run = pf.pretrain(
        poisson(),
        network(),
        physics=LOSSES[name],
        orthogonality=0.0,
        resample=False,
        **FEW | {"optimiser": optax.adam(3e-3)},
    )
    assert is_finite(run.features)
    assert run.history["physics"][-1] < run.history["physics"][0]
    assert not same(run.features, network())


@pytest.mark.parametrize("physics", ["none", losses.NoPhysics()])
def test_without_physics_orthogonality_alone_is_trained(physics):
    run = pf.pretrain(poisson(), network(), physics=physics, orthogonality=1.0, **FEW)
    assert not np.any(run.history["physics"])
    assert run.history["loss"] == run.history["orthogonality"]
    assert gram_defect(run.features) < gram_defect(network())


def test_another_penalty_may_be_weighted():
    run = pf.pretrain(
        poisson(), network(), physics="none", penalty=losses.Orthogonality(squared=True, mean=True), **FEW
    )
    assert run.history["orthogonality"][-1] < 0.9 * run.history["orthogonality"][0]


def test_points_that_are_kept_make_the_loss_of_plain_gradient_descent_fall_in_every_step():
    run = pf.pretrain(poisson(), network(), resample=False, **FEW | {"optimiser": optax.sgd(1e-5)})
    assert (np.diff(run.history["loss"]) < 0).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_an_optimiser_that_searches_along_a_line_never_lets_the_loss_rise(precision):
    def history(optimiser):
        options = FEW | {"optimiser": optimiser, "steps": 20, "precision": precision}
        return pf.pretrain(poisson(), network(), resample=False, **options).history["loss"]

    loss = history(optax.lbfgs())
    assert (np.diff(loss) <= 0).all()
    assert loss[-1] < history(optax.sgd(1e-5))[-1] < loss[0]


def test_a_search_along_a_line_needs_the_same_points():
    with pytest.raises(FeaturesError, match=r"searches along a line.*Use resample=False"):
        pf.pretrain(poisson(), network(), **FEW | {"optimiser": optax.lbfgs()})
    run = pf.pretrain(poisson(), network(), **FEW | {"optimiser": optax.lbfgs(1e-4, linesearch=None), "steps": 1})
    assert run.reason == "all 1 steps done"


# ---- problems and families

PROBLEMS = {"system": "kovasznay", "space-time": "wave-periodic", "nonlinear": "burgers"}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_every_kind_of_problem_trains(kind):
    problem = pf.zoo.get(PROBLEMS[kind])
    run = pf.pretrain(problem, pf.NetworkFeatures(problem.domain, 20), **FEW | {"steps": 20})
    assert is_finite(run.features)
    assert np.mean(run.history["loss"][-5:]) < 0.9 * np.mean(run.history["loss"][:5])
    assert run.coefficients.shape == (20, problem.layout.components)


FAMILIES = {
    "random": lambda: pf.RandomFeatures(SQUARE, 20),
    "transnet": lambda: pf.TransNet(SQUARE, 20),
    "concatenate": lambda: pf.Concatenate(pf.Chebyshev(SQUARE, 6), pf.RandomFeatures(SQUARE, 10)),
    "hard": lambda: pf.HardDirichlet(pf.RandomFeatures(SQUARE, 20), SQUARE),
    "partition": lambda: pf.PartitionOfUnity(lambda box, key: pf.RandomFeatures(box, 6, key=key), SQUARE, (2, 1)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_with_weights_trains(family):
    features = FAMILIES[family]()
    options = FEW | {"steps": 20, "optimiser": optax.adam(1e-3), "resample": False}
    run = pf.pretrain(poisson(), features, **options)
    assert run.history["loss"][-1] < run.history["loss"][0]
    assert is_finite(run.features)
    assert jax.tree.structure(run.features) == jax.tree.structure(features)
    assert not same(run.features, features)
    assert np.array_equal(run.features.lower, features.lower)


@pytest.mark.parametrize(
    "features", [pf.Chebyshev(SQUARE, 10), pf.Fourier(SQUARE, 9), pf.Functions(SQUARE, [jnp.sum])], ids=repr
)
def test_features_without_weights_are_refused(features):
    name = type(features).__name__
    with pytest.raises(FeaturesError, match=rf"{name} has nothing to train\. Use NetworkFeatures, or RandomFeatures"):
        pf.pretrain(poisson(), features, **FEW)


# ---- reproducible


def test_the_same_seed_gives_identical_features_and_another_seed_others():
    again = pf.pretrain(poisson(), network(), **FEW)
    assert same(again.features, trained().features)
    assert again.history == trained().history
    assert np.array_equal(again.coefficients, trained().coefficients)
    assert not same(pf.pretrain(poisson(), network(), key=1, **FEW).features, trained().features)


def test_both_precisions_start_alike():
    single, double = (pf.pretrain(poisson(), network(), precision=p, **FEW) for p in ("float32", "float64"))
    assert single.history["loss"][0] == pytest.approx(double.history["loss"][0], rel=1e-4)
    assert single.history["loss"][0] != double.history["loss"][0]
    weights = np.asarray(single.features.first)
    assert np.array_equal(weights, weights.astype(np.float32))


def test_a_record_is_measured_between_chunks_of_steps():
    seen = []
    run = pf.pretrain(poisson(), network(), record={"size": lambda f: seen.append(f) or gram_defect(f)}, **FEW)
    assert run.history["size"] == [gram_defect(f) for f in seen]
    assert len(seen) == 2
    assert same(seen[-1], run.features)
    assert same(run.features, trained().features)


# ---- stopping


def test_a_tolerance_stops_early():
    loss = losses.Supervised(lambda x: 0.0 * x[0])
    run = pf.pretrain(
        poisson(),
        network(),
        physics=loss,
        orthogonality=0.0,
        **FEW | {"optimiser": optax.adam(1e-2), "steps": 400, "tol": 0.1},
    )
    physics = np.array(run.history["physics"])
    assert len(physics) < 400
    assert physics[-1] < 0.1 * physics[0]
    assert (physics[:-1] >= 0.1 * physics[0]).all()
    assert run.reason == f"the physics loss fell below 0.1 of its first value after {len(physics)} steps"


def breaks(features, coefficients, batch):
    """A loss whose gradient is bounded until the coefficients have moved a little; then it is not a number."""
    distance = jnp.mean(coefficients)
    return jnp.where(distance < 0.2, -distance, jnp.nan)


def test_a_loss_that_is_not_finite_stops_with_the_last_good_features():
    with pytest.warns(
        ConvergenceWarning, match=r"loss is no longer finite after \d+ steps.*smaller step size, or prec"
    ):
        run = pf.pretrain(
            poisson(), network(), physics=breaks, orthogonality=1e-3, **FEW | {"optimiser": optax.adam(2e-2)}
        )
    steps = len(run.history["loss"])
    assert 0 < steps < 40
    assert is_finite(run.features)
    assert np.isfinite(run.coefficients).all()
    assert np.isfinite(run.history["loss"]).all()
    assert run.reason.startswith(
        f"the loss is no longer finite after {steps} steps; the features from before that step"
    )
    assert not same(run.features, network())


def interrupt(features: Features) -> float:
    raise KeyboardInterrupt


def test_an_interrupt_returns_what_was_learned():
    run = pf.pretrain(poisson(), network(), record={"nothing": interrupt}, **FEW)
    assert run.reason == "interrupted after 20 of 40 steps"
    assert run.history["loss"] == trained().history["loss"][:20]
    assert is_finite(run.features)
    assert not same(run.features, network())


def test_an_interrupt_while_steps_are_waited_for_leaves_them_out(monkeypatch):
    expected, ready, calls = trained().history["loss"][:20], jax.block_until_ready, iter(range(2))

    def wait(steps):
        if next(calls) == 1:
            raise KeyboardInterrupt
        return ready(steps)

    monkeypatch.setattr(jax, "block_until_ready", wait)
    run = pf.pretrain(poisson(), network(), **FEW)
    assert run.reason == "interrupted after 20 of 40 steps"
    assert run.history["loss"] == expected


def test_what_training_returns_fits_on_a_line():
    loss = trained().history["loss"]
    assert (
        repr(trained())
        == f"Trained {trained().features.size} features, loss from {loss[0]:.1e} to {loss[-1]:.1e}: all 40 steps done"
    )


# ---- checkpoints


class InterruptAt:
    """A recorded quantity that interrupts the run when it is measured for the n-th time."""

    def __init__(self, n: int):
        self.left = n

    def __call__(self, features: Features) -> float:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return 0.0


def test_a_killed_run_goes_on_to_the_same_result(tmp_path):
    path, settings = tmp_path / "run.npz", FEW | {"steps": 60}
    whole = pf.pretrain(poisson(), network(), **settings)
    killed = pf.pretrain(poisson(), network(), checkpoint=path, record={"r": InterruptAt(2)}, **settings)
    assert killed.reason == "interrupted after 40 of 60 steps"
    assert path.exists()
    resumed = pf.pretrain(poisson(), network(), checkpoint=path, **settings)
    assert same(resumed.features, whole.features)
    assert np.array_equal(resumed.coefficients, whole.coefficients)
    assert resumed.history["loss"] == whole.history["loss"]


@pytest.fixture
def checkpoint(tmp_path):
    """A finished run of 20 steps."""
    path = tmp_path / "run.npz"
    pf.pretrain(poisson(), network(), checkpoint=path, **FEW | {"steps": 20})
    return path


def test_a_finished_checkpoint_is_not_trained_further(checkpoint):
    first = pf.pretrain(poisson(), network(), **FEW | {"steps": 20})
    again = pf.pretrain(poisson(), network(), checkpoint=checkpoint, **FEW | {"steps": 20})
    assert same(again.features, first.features)
    assert again.history["loss"] == first.history["loss"]
    assert [entry.name for entry in checkpoint.parent.iterdir()] == [checkpoint.name]


OTHER_SETTINGS = {
    "steps": {"steps": 30},
    "seed": {"key": 1},
    "points": {"points": 32},
    "precision": {"precision": "float64"},
    "orthogonality": {"orthogonality": 2.0},
    "tol": {"tol": 0.5},
    "resample": {"resample": False},
}


@pytest.mark.parametrize("name", OTHER_SETTINGS)
def test_a_checkpoint_of_other_settings_is_refused(name, checkpoint):
    with pytest.raises(FeaturesError, match=r"belongs to another run \(its settings are .*Delete it, or name another"):
        pf.pretrain(poisson(), network(), checkpoint=checkpoint, **FEW | {"steps": 20} | OTHER_SETTINGS[name])


def test_a_checkpoint_of_a_network_of_another_size_is_refused(checkpoint):
    with pytest.raises(FeaturesError, match="belongs to another run"):
        pf.pretrain(poisson(), network(25), checkpoint=checkpoint, **FEW | {"steps": 20})


def test_a_checkpoint_of_other_features_or_of_another_problem_is_refused(checkpoint):
    """Of the same shapes: a run of another network must not silently return this one."""
    for problem, features in ((poisson(), network(key=5)), (poisson().replace(source=1.0, name="other"), network())):
        with pytest.raises(FeaturesError, match="belongs to another run"):
            pf.pretrain(problem, features, checkpoint=checkpoint, **FEW | {"steps": 20})


@pytest.mark.parametrize("content", ["text", "half", "empty", "foreign"])
def test_a_broken_checkpoint_is_refused(content, checkpoint):
    data = checkpoint.read_bytes()
    if content == "foreign":
        np.savez(checkpoint, a=np.ones(3))
    else:
        checkpoint.write_bytes({"text": b"no checkpoint", "half": data[: len(data) // 2], "empty": b""}[content])
    with pytest.raises(FeaturesError, match=r"is not a checkpoint of pretraining .*Delete it, or name another"):
        pf.pretrain(poisson(), network(), checkpoint=checkpoint, **FEW | {"steps": 20})


# ---- bad arguments

BAD = {
    "precision": ({"precision": "float46"}, UnknownNameError, r"Unknown precision 'float46'. Did you mean 'float64'"),
    "no steps": ({"steps": 0}, FeaturesError, r"steps and points must be at least 1; got steps=0, points=64"),
    "no points": ({"points": 0}, FeaturesError, r"steps and points must be at least 1; got steps=40, points=0"),
    "physics": (
        {"physics": "energy"},
        ProblemError,
        r"physics must be one of \['none', 'residual'\] or a loss.*'energy'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused(name):
    changes, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        pf.pretrain(poisson(), network(), **FEW | changes)


def test_features_of_another_dimension_are_refused():
    with pytest.raises(FeaturesError, match=r"1 dimensions"):
        pf.pretrain(poisson(), pf.NetworkFeatures(pf.Interval(0, 1), 20), **FEW)


# ---- variable projection


def projected_loss(problem, features, loss, points=200) -> float:
    run = pf.pretrain(
        *(problem, features),
        physics=loss,
        orthogonality=0.0,
        precision="float64",
        **(FEW | {"steps": 1, "points": points, "boundary_points": 60}),
    )
    return run.history["physics"][0]


def test_variable_projection_sees_rounding_where_the_solution_is_in_the_span():
    """x² + y² is a polynomial: ten Chebyshev polynomials contain it, the best coefficients leave no residual."""
    problem = pf.Problem(
        SQUARE, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=lambda x: jnp.sum(x**2)
    )
    mixed = pf.Concatenate(pf.Chebyshev(SQUARE, degree=3), network(5))
    assert projected_loss(problem, mixed, losses.Projected()) < -12
    assert projected_loss(poisson(), mixed, losses.Projected()) > -2


def test_variable_projection_counts_digits_of_the_least_squares_residual():
    """The loss is ½ log₁₀ of the relative squared residual of one's own least squares on the same rows."""
    features, x = network(12), jnp.asarray(SQUARE.sample(150, "random", key=3))
    edge = jnp.asarray(SQUARE.boundary.sample(40, "random", key=4)[0])
    rows = np.asarray(jax.vmap(lambda z: -pf.laplacian(features)(z))(x)), np.asarray(jax.vmap(features)(edge))
    sizes = [np.linalg.norm(A) / weight for A, weight in zip(rows, (1.0, 10.0), strict=True)]
    A = np.concatenate([A / size for A, size in zip(rows, sizes, strict=True)])
    exact = jax.vmap(lambda z: jnp.sin(jnp.pi * z[0]) * jnp.sin(jnp.pi * z[1]))
    right = 2 * np.pi**2 * np.asarray(exact(x)), np.asarray(exact(edge))
    b = np.concatenate([values / size for values, size in zip(right, sizes, strict=True)])
    residual = b - A @ np.linalg.lstsq(A, b, rcond=1e-14)[0]
    expected = np.log10(np.linalg.norm(residual) / np.linalg.norm(b))
    samples = {
        "equation": losses.Samples(x, jnp.zeros((150, 2)), jnp.asarray(right[0])[:, None]),
        "dirichlet": losses.Samples(edge, jnp.zeros((40, 2)), jnp.asarray(right[1])[:, None]),
    }
    terms = tuple((term.name, term.lhs) for term in poisson().terms)
    batch = losses.Batch(samples, terms, poisson().layout)
    found = losses.Projected()(features, jnp.zeros((12, 1)), batch)
    np.testing.assert_allclose(float(found), expected, rtol=1e-6)


def test_a_family_of_solutions_counts_the_mean_of_their_digits():
    both = lambda x: jnp.stack([jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]), jnp.exp(x[0])])
    mean, first, second = (
        projected_loss(poisson(), network(12), losses.Projected(family))
        for family in (both, lambda x: both(x)[:1], lambda x: both(x)[1:])
    )
    np.testing.assert_allclose(mean, (first + second) / 2, rtol=1e-8)
    np.testing.assert_allclose(first, projected_loss(poisson(), network(12), losses.Projected()), rtol=1e-6)


def test_training_by_variable_projection_gains_digits():
    start = pf.NetworkFeatures(SQUARE, 20, depth=1, residual=False, activation="tanh", scale=2.0)
    options = FEW | {"points": 200, "boundary_points": 60, "steps": 100, "optimiser": optax.adam(3e-2)}
    run = pf.pretrain(poisson(), start, physics=losses.Projected(), orthogonality=0.0, precision="float64", **options)
    assert run.history["loss"][-1] < run.history["loss"][0] - 0.3
    with pytest.warns(ConvergenceWarning, match="estimated relative error .* is above 0.01"):
        before, after = (pf.solve(poisson(), features).errors().relative_l2 for features in (start, run.features))
    assert after < before / 2


def test_variable_projection_refuses_float32_and_nonlinear_problems():
    with pytest.raises(ProblemError, match=r"needs precision='float64'; got 'float32'"):
        pf.pretrain(poisson(), network(), physics=losses.Projected(), **FEW)
    burgers = pf.zoo.get("burgers")
    features = pf.NetworkFeatures(burgers.domain, 10)
    with pytest.raises(ProblemError, match=r"needs a linear problem, but 'equation' is not linear.*physics='residual'"):
        pf.pretrain(burgers, features, physics=losses.Projected(), precision="float64", **FEW)


def test_a_family_is_projected_without_the_constant_part_of_the_problem():
    """An affine operator and an affine condition: x² + y² is in the span, so nothing is left."""
    problem = pf.Problem(
        SQUARE,
        operator=lambda u, x: -pf.laplacian(u)(x) - 100.0,
        source=0.0,
        conditions=[pf.Condition(lambda u, x: u(x) - jnp.exp(3 * x[0]), on=SQUARE.boundary)],
    )
    mixed = pf.Concatenate(pf.Chebyshev(SQUARE, degree=3), network(5))
    assert projected_loss(problem, mixed, losses.Projected(lambda x: jnp.sum(x**2)[None])) < -12


def test_variable_projection_goes_on_with_the_default_tolerance():
    options = {key: value for key, value in FEW.items() if key != "tol"}
    run = pf.pretrain(
        *(poisson(), network(12)), physics=losses.Projected(), orthogonality=0.0, precision="float64", **options
    )
    assert len(run.history["loss"]) == FEW["steps"]


BAD_PROJECTIONS = {
    "few points": ({"points": 10, "boundary_points": 8}, poisson, losses.Projected(), r"rows for 12 coefficients"),
    "zero data": (
        {"points": 100},
        lambda: poisson().replace(source=0.0, conditions=[pf.Dirichlet(0.0)], exact=None),
        losses.Projected(),
        r"needs data, but the source and all conditions are zero",
    ),
    "a single solution": (
        {"points": 100},
        poisson,
        losses.Projected(jnp.sum),
        r"returned shape \(\) at a point; expected \(k,\)",
    ),
}


@pytest.mark.parametrize("case", BAD_PROJECTIONS)
def test_what_cannot_be_projected_is_refused(case):
    options, problem, loss, message = BAD_PROJECTIONS[case]
    with pytest.raises(ProblemError, match=message):
        pf.pretrain(problem(), network(12), physics=loss, precision="float64", **(FEW | options))


def test_a_negative_weight_is_refused():
    problem = pf.zoo.get("poisson-1d")
    with pytest.raises(FeaturesError, match="must not be negative; got -1"):
        pf.pretrain(problem, pf.NetworkFeatures(problem.domain, 10), orthogonality=-1.0)


def test_functions_with_constants_in_double_precision_are_trained_in_single_precision():
    def operator(u, x):
        return -jnp.trace(pf.hessian(u)(x) @ jnp.eye(2))  # an array of float64

    problem = pf.Problem(SQUARE, operator, 1.0, [pf.Dirichlet(0.0)], name="double constants")
    with jax.numpy_dtype_promotion("standard"):
        run = pf.pretrain(problem, network(), **(FEW | {"steps": 3}))
    assert len(run.history["loss"]) == 3
    assert run.history["loss"][-1] < run.history["loss"][0]
