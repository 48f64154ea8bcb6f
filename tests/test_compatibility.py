"""Conditions of solvability: data whose integrals do not balance are named, and no others."""

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ConvergenceWarning
from pdofm.solving.compatibility import contradiction
from pdofm.solving.verdict import Status

LINE, SQUARE, DISK = pf.Interval(0, 1), pf.Box([0, 0], [1, 1]), pf.Disk()
LSHAPE = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])
CUBE = pf.Box([0, 0, 0], [1, 1, 1])
MEAN = pf.Mean(0.0)


def minus_laplacian(u, x):
    return -pf.laplacian(u)(x)


def neumann(domain, source, flux=0.0):
    return pf.Problem(domain, minus_laplacian, source, [pf.Neumann(flux), MEAN])


def singularly_perturbed(domain, epsilon):
    def operator(u, x):
        return -epsilon * pf.laplacian(u)(x) + pf.partial(u, 0)(x)

    return pf.Problem(domain, operator, 1.0, [pf.Dirichlet(0.0)])


def stress(u, x):
    gradient = pf.grad(u)(x)
    return gradient + gradient.T + jnp.trace(gradient) * jnp.eye(2)


def elastic(force):
    """An elastic body with a force along the first axis, and no traction."""
    return pf.Problem(
        SQUARE,
        lambda u, x: -pf.div(lambda y: stress(u.v, y))(x),
        force,
        [
            pf.Condition(lambda u, x, normal: stress(u.v, x) @ normal, SQUARE.boundary),
            pf.Dirichlet(jnp.zeros(2), on=[[0.0, 0.0]]),
            pf.Condition(lambda u, x: u.v(x)[1], [[1.0, 0.0]]),
        ],
        unknowns={"v": 2},
    )


def weighted(x):
    return 1 + x[0] ** 2


CONTRADICTORY = {
    "line": neumann(LINE, 1.0),
    "square": neumann(SQUARE, 1.0),
    "disk": neumann(DISK, lambda x: jnp.exp(x[0])),
    "boundary values": neumann(DISK, 0.0, 0.3),
    "reentrant corner": neumann(LSHAPE, 1.0),
    "hole": neumann(SQUARE - pf.Disk([0.5, 0.5], 0.2), 1.0),
    "cube": neumann(CUBE, 1.0),
    "small": neumann(pf.Box([0, 0], [1e-6, 1e-6]), 1.0),
    "periods": pf.Problem(SQUARE, minus_laplacian, 1.0, [pf.Periodic(0), pf.Periodic(1), MEAN]),
    "no balance of forces": elastic(jnp.array([1.0, 0.0])),
    "no balance of torques": elastic(lambda x: jnp.array([x[1] - 0.5, 0.0])),
}
CONTRADICTORY["coefficient"] = pf.Problem(
    SQUARE,
    lambda u, x: -pf.div(lambda y: weighted(y) * pf.grad(u)(y))(x),
    1.0,
    [pf.Condition(lambda u, x, normal: weighted(x) * pf.normal_derivative(u, normal)(x), SQUARE.boundary), MEAN],
)


@pytest.mark.parametrize("name", CONTRADICTORY)
def test_data_that_do_not_balance_are_found(name):
    assert contradiction(CONTRADICTORY[name]) > 0.3


@pytest.mark.parametrize("excess", [1e-2, 1e-4, 1e-6])
def test_the_violation_is_the_excess_of_one_side(excess):
    # ∫f = 4 + 4 excess, ∫g = -4
    assert contradiction(neumann(SQUARE, 4 + 4 * excess, -1.0)) == pytest.approx(excess / 2, rel=2 * excess + 1e-9)


def jump_on_boundary(x):
    return jnp.where(jnp.sum((x - 0.5) ** 2) < 1e-5, 1.0, 0.0)


ATTAINABLE = {
    "balanced": neumann(SQUARE, 4.0, -1.0),
    "odd": neumann(DISK, lambda x: x[0]),
    "jump": neumann(SQUARE, lambda x: jnp.where(x[0] < 1 / 3, 2.0, -1.0)),
    "needle": neumann(SQUARE, lambda x: 100 * jnp.exp(-jnp.sum((x - 0.31) ** 2) / 1e-6) - 100 * jnp.pi * 1e-6),
    "Dirichlet": pf.Problem(SQUARE, minus_laplacian, 1.0, [pf.Dirichlet(0.0)]),
    "small": pf.Problem(pf.Box([0, 0], [1e-8, 1e-8]), minus_laplacian, 1.0, [pf.Dirichlet(0.0)]),
    "corner": pf.Problem(LSHAPE, minus_laplacian, 1.0, [pf.Dirichlet(0.0)]),
    "jump on the boundary": pf.Problem(DISK, minus_laplacian, 0.0, [pf.Dirichlet(lambda x: jnp.sign(x[0]))]),
    "layer": singularly_perturbed(LINE, 1e-4),
    "narrow layer": singularly_perturbed(LINE, 1e-10),
    "layers of two kinds": singularly_perturbed(SQUARE, 1e-8),
    "layers all around": pf.Problem(SQUARE, lambda u, x: -1e-10 * pf.laplacian(u)(x) + u(x), 1.0, [pf.Dirichlet(0.0)]),
    "waves": pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x) - 9e4 * u(x), 1.0, [pf.Dirichlet(0.0)]),
    "reaction": pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x) + 1e-6 * u(x), 1.0, [pf.Neumann(0.0)]),
    "small hole": pf.Problem(
        SQUARE - pf.Disk([0.5, 0.5], 1e-3), minus_laplacian, 0.0, [pf.Dirichlet(jump_on_boundary)]
    ),
    "periods": pf.Problem(
        SQUARE, minus_laplacian, lambda x: jnp.sin(2 * jnp.pi * x[0]), [pf.Periodic(0), pf.Periodic(1), MEAN]
    ),
    "clamped": pf.Problem(
        SQUARE, lambda u, x: pf.laplacian(pf.laplacian(u))(x), 1.0, [pf.Dirichlet(0.0), pf.Neumann(0.0)]
    ),
    "balanced forces": elastic(lambda x: jnp.array([x[0] - 0.5, 0.0])),
}


@pytest.mark.parametrize("name", ATTAINABLE)
def test_what_is_merely_not_resolved_is_not_accused(name):
    assert contradiction(ATTAINABLE[name]) == 0


def test_oscillations_that_no_rule_resolves_are_not_accused(seed):
    # The mean of cos(2πkx) over a unit square is zero.
    waves = np.random.default_rng(seed).integers(60, 5000, 40)
    for k in waves:
        assert contradiction(neumann(SQUARE, lambda x, k=k: jnp.cos(2 * jnp.pi * float(k) * x[0]))) == 0


def test_a_search_ends_with_the_first_space_and_says_why():
    with pytest.warns(ConvergenceWarning, match="the data contradict each other.*100 % of the data.*∫f"):
        u = pf.solve(neumann(SQUARE, 1.0), tol=1e-6)
    assert u.verdict.status is Status.CONTRADICTORY
    assert len(u.attempts) == 1


def test_a_violation_below_the_tolerance_is_none():
    problem = neumann(SQUARE, 4 + 4e-5, -1.0)
    assert pf.solve(problem, tol=1e-3).converged
    with pytest.warns(ConvergenceWarning, match="contradict each other"):
        pf.solve(problem, tol=1e-8)
