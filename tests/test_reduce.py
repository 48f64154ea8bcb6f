"""Reduced families and orthonormal features: accuracy, honest estimates, files."""

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ProblemError, SolveError
from pdofm.families.basis import principal

SQUARE = pf.Box([-1, -1], [1, 1])
POINTS = SQUARE.sample(200)


def diffusion(mu) -> pf.Problem:
    """-div((1 + mu₀ x + mu₁ y) grad u) = a wide bump, with a value on the boundary that is a parameter, too."""

    def flux(u):
        return lambda y: (1 + mu[0] * y[0] + mu[1] * y[1]) * pf.grad(u)(y)

    return pf.Problem(
        SQUARE,
        operator=lambda u, x: -pf.div(flux(u))(x),
        source=lambda x: jnp.cos(jnp.pi / 2 * x[0]) * jnp.cos(jnp.pi / 2 * x[1]),
        conditions=[pf.Dirichlet(mu[2])],
        name="diffusion",
    )


def drawn(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform([-0.4, -0.4, 0], [0.4, 0.4, 1], (count, 3))


@pytest.fixture(scope="module")
def family() -> pf.Family:
    return pf.Family(diffusion, pf.Chebyshev(SQUARE, 231), tol=1e-4)


@pytest.fixture(scope="module")
def small(family):
    return family.reduce(drawn(0, 80), tol=1e-5)


def errors(small, family, mus) -> np.ndarray:
    pairs = ((small(mu)(POINTS), family(mu)(POINTS)) for mu in mus)
    return np.array([np.linalg.norm(found - truth) / np.linalg.norm(truth) for found, truth in pairs])


def test_new_members_are_as_accurate_as_their_estimates_say(small, family):
    mus = drawn(1, 20)
    found, estimates = errors(small, family, mus), np.array([small(mu).error_estimate for mu in mus])
    assert small.size < 60
    assert found.max() < 1e-4
    assert np.all(estimates > 0.3 * found)
    assert np.median(estimates) < 1e-3


def test_a_member_outside_of_what_was_learned_says_so(small):
    u = small([0.1, 0.9, 0.5])
    assert not u.converged
    assert "parameter 1 is 0.9, outside of what was learned" in u.reason
    with pytest.raises(ProblemError, match="have shape"):
        small([0.1, 0.2])


def test_a_reduced_family_is_restored_from_a_file_to_the_same_bits(small, tmp_path):
    pf.save(tmp_path / "small.pdofm", small)
    again, mu = pf.load(tmp_path / "small.pdofm"), drawn(2, 1)[0]
    assert np.array_equal(again(mu).coefficients, small(mu).coefficients)
    assert again(mu).reason == small(mu).reason
    assert repr(again) == repr(small)


def test_a_sweep_has_a_value_for_each_member(small, tmp_path):
    sweep = small.sweep(drawn(3, 10), of=lambda u: u([0.0, 0.0]))
    assert sweep.values.shape == (10,)
    assert sweep.converged.all()
    sweep.plot(tmp_path / "sweep.png", parameter=2)
    assert (tmp_path / "sweep.png").stat().st_size > 1000


def test_near_a_resonance_nothing_is_claimed():
    interval = pf.Interval(0, np.pi)
    family = pf.Family(
        lambda k: pf.Problem(interval, lambda u, x: pf.laplacian(u)(x) + k**2 * u(x), 1.0, pf.Dirichlet(1.0)),
        pf.Chebyshev(interval, 40),
    )
    small = family.reduce(np.random.default_rng(0).uniform(0.5, 4.5, 60), tol=1e-6)
    usual, near = small(2.5), small(3.0 + 1e-6)
    exact = lambda k, x: (1 - 1 / k**2) * np.cos(k * (x - np.pi / 2)) / np.cos(k * np.pi / 2) + 1 / k**2
    assert usual.converged
    assert abs(usual([1.0]) - exact(2.5, 1.0)) < 1e-5
    assert not near.converged
    assert "resonance" in near.reason or near.error_estimate > 1e-6


def test_a_family_that_is_not_linear_is_interpolated():
    interval = pf.Interval(0, 1)

    def reaction(mu):
        return pf.Problem(interval, lambda u, x: -pf.laplacian(u)(x) + mu * u(x) ** 3, 1.0, pf.Dirichlet(1.0))

    family = pf.Family(reaction, pf.Chebyshev(interval, 25))
    small = family.reduce(np.linspace(1, 5, 25), tol=1e-7)
    truth = family(np.array(2.345))
    found = small(2.345)
    x = interval.sample(20)
    assert np.max(np.abs(found(x) - truth(x))) < 1e-6
    assert found.error_estimate < 1e-5


def test_what_cannot_be_reduced_is_refused(family):
    with pytest.raises(SolveError, match="at least 5 members"):
        family.reduce(drawn(0, 3))
    ellipses = pf.Family(
        lambda mu: pf.Problem(pf.Ellipse([0, 0], mu, 1.0), lambda u, x: -pf.laplacian(u)(x), 1.0, pf.Dirichlet(0.0))
    )
    with pytest.raises(SolveError, match="share no points"):
        ellipses.reduce(np.linspace(1, 2, 6))


def test_principal_functions_are_orthonormal_and_weights_favour_the_typical_member():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((80, 60)) @ np.diag(0.7 ** np.arange(60)) @ rng.standard_normal((60, 60))
    rows[:, :3] = rng.standard_normal((80, 3))  # members unlike the others
    rows /= np.linalg.norm(rows, axis=0)
    typical = {}
    for target in ("worst", "mean"):
        basis = rows @ principal(rows, 12, target)[0]
        assert np.abs(basis.T @ basis - np.eye(12)).max() < 1e-10
        q = np.linalg.qr(basis)[0]
        typical[target] = np.exp(np.mean(np.log(np.linalg.norm(rows - q @ (q.T @ rows), axis=0) + 1e-16)))
    assert typical["mean"] < typical["worst"]


@pytest.mark.parametrize("features", [pf.Chebyshev(SQUARE, 100), pf.NetworkFeatures(SQUARE, 60)])
def test_orthonormal_features_have_the_identity_as_gram_matrix(features, tmp_path):
    basis = features.orthonormal(SQUARE)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    points = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    values = basis.jets(points, [(0, 0)])[0] * np.sqrt(np.outer(weights, weights)).reshape(-1, 1)
    assert np.abs(values.T @ values - np.eye(basis.size)).max() < 1e-10
    assert 1 <= basis.effective_rank <= features.size
    pf.save(tmp_path / "basis.safetensors", basis.truncated(5))
    again = pf.load(tmp_path / "basis.safetensors")
    assert np.array_equal(again.jets(points, [(1, 0)]), basis.truncated(5).jets(points, [(1, 0)]))


def test_orthonormal_features_of_a_problem_make_it_perfectly_conditioned_and_move():
    problem = pf.zoo.get("poisson-square")
    features = pf.Chebyshev(problem.domain, 200)
    basis = features.orthonormal(problem)
    assert basis.size == features.size
    assert pf.solve(problem, basis).stats.condition < 0.1 * pf.solve(problem, features).stats.condition
    disk = pf.Disk([0, 0], 0.5)
    moved = features.orthonormal(problem.domain).truncated(40).on(disk).orthonormal(disk)
    assert moved.size == 40
    assert type(moved.inner) is pf.Chebyshev
