"""Reduced families and orthonormal features: accuracy, honest estimates, files."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ConvergenceWarning, FeaturesError, ProblemError, UnknownNameError
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


def waves(seed: int, count: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Random plane waves with wave numbers of length 4, and their negative Laplacians."""
    rng = np.random.default_rng(seed)
    angle, phase = rng.uniform(0, 2 * np.pi, (2, count))
    u = np.cos(4 * points @ np.stack([np.cos(angle), np.sin(angle)]) + phase)
    return u, 16 * u


def poisson(domain: pf.Domain) -> pf.Problem:
    return pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), 0.0, [pf.Dirichlet(0.0)], name="waves")


def solved(features: pf.Features, seed: int, count: int, domain: pf.Domain = SQUARE) -> tuple[pf.Solutions, np.ndarray]:
    """Solutions of -Δu = f for plane waves, and their relative errors."""
    solver = pf.factor(poisson(domain), features)
    sources = waves(seed, count, solver.points["equation"])[1]
    with warnings.catch_warnings():  # few polynomials cannot represent these waves
        warnings.simplefilter("ignore", ConvergenceWarning)
        many = solver.solve(sources, waves(seed, count, solver.points["dirichlet"])[0])
    points = domain.sample(200)
    truth = waves(seed, count, points)[0]
    return many, np.linalg.norm(many(points) - truth, axis=0) / np.linalg.norm(truth, axis=0)


def typical(errors: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(errors))))


def test_features_learned_from_solutions_beat_polynomials_of_the_same_number_also_on_another_domain():
    many, _ = solved(pf.Chebyshev(SQUARE, 231), 0, 80)
    learned = pf.learn(many, 28)
    assert learned.size == 28
    assert np.all(np.diff(learned.importance) <= 0)
    # These waves are J_k(4r) cos kθ and J_k(4r) sin kθ: the 28 most important ones leave J₁₄(4r).
    assert typical(solved(learned, 1, 40)[1]) < 1e-4
    assert typical(solved(pf.Chebyshev(SQUARE, 28), 1, 40)[1]) > 1e-2
    disk = pf.Disk([0.2, 0.0], 0.7)
    there = pf.learn(many, 28, problem=poisson(disk))
    assert typical(solved(learned, 1, 40, disk)[1]) < 4 * typical(solved(there, 1, 40, disk)[1])


def test_what_cannot_be_learned_is_refused():
    many, _ = solved(pf.Chebyshev(SQUARE, 66), 0, 20)
    with pytest.raises(FeaturesError, match="20 functions at most"):
        pf.learn(many, 30)
    with pytest.raises(FeaturesError, match="takes the solutions of factor"):
        pf.learn(many[0], 3)
    with pytest.raises(UnknownNameError, match="target"):
        pf.learn(many, 3, target="median")
