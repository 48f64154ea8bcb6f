"""Coefficients that jump where differentiation does not see it are refused; all others are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ProblemError

BOX = pf.Box([0, 0], [1, 1])


def step(y):
    return jnp.where(y[0] < 0.5, 1.0, 10.0)


def table(y):
    return jnp.array([1.0, 2.0, 5.0, 3.0])[jnp.floor(4 * y[0]).astype(int)]


def inclusion(y):
    return jnp.where(jnp.sum((y - 0.6) ** 2) < 0.01, 400.0, 1.0)


def flux_of(coefficient):
    return lambda u, x: -pf.div(lambda y: coefficient(y) * pf.grad(u)(y))(x)


HIDDEN = {
    "a step": flux_of(step),
    "a sign": flux_of(lambda y: 2 + jnp.sign(y[0] - y[1])),
    "a table": flux_of(table),
    "a small inclusion": flux_of(inclusion),
    "a tiny inclusion": flux_of(lambda y: jnp.where(jnp.sum((y - 0.3) ** 2) < 0.02**2, 5.0, 1.0)),
    "a thin layer": flux_of(lambda y: jnp.where(jnp.abs(y[1] - 0.71) < 0.001, 5.0, 1.0)),
    "a branch": flux_of(lambda y: jax.lax.cond(y[1] > 0.3, lambda: 1.0, lambda: 2.0)),
    "a small step on a large slope": flux_of(lambda y: 0.01 * step(y) + jnp.exp(3 * y[1])),
    "partial derivatives": lambda u, x: (
        -pf.partial(lambda y: step(y) * pf.partial(u, 0)(y), 0)(x) - step(x) * pf.partial(u, 1, 1)(x)
    ),
    "a velocity": lambda u, x: pf.partial(lambda y: step(y) * u(y), 0)(x) - pf.laplacian(u)(x),
    "a nonlinear flux": lambda u, x: -pf.div(lambda y: step(y) * (1 + u(y) ** 2) * pf.grad(u)(y))(x),
    "a stiffness": lambda u, x: pf.laplacian(lambda y: step(y) * pf.laplacian(u)(y))(x),
    "a remainder": flux_of(lambda y: 1 + jnp.fmod(4 * y[0], 1.0)),
    "an angle across its cut": flux_of(lambda y: 4 + jnp.arctan2(y[1] - 0.5, y[0] - 0.5)),
    "a flux beside a value elsewhere": lambda u, x: flux_of(step)(u, x) + u(jnp.zeros(2)),
}

LEGITIMATE = {
    "outside of the derivatives": lambda u, x: -step(x) * pf.laplacian(u)(x),
    "a reaction": lambda u, x: -pf.laplacian(u)(x) + step(x) * u(x),
    "a kink": flux_of(lambda y: 1 + jnp.abs(y[0] - 0.5)),
    "a maximum": flux_of(lambda y: jnp.maximum(1.0, 2 * y[0])),
    "an interpolated table": flux_of(lambda y: jnp.interp(y[0], jnp.linspace(0, 1, 5), jnp.array([1.0, 2, 3, 2, 1]))),
    "a steep but smooth transition": flux_of(lambda y: 1.1 + jnp.tanh(200 * (y[0] - 0.5))),
    "a smooth function of a remainder": flux_of(lambda y: 1.1 + jnp.sin(2 * jnp.pi * jnp.mod(3 * y[0], 1.0)) ** 2),
    "a guarded root": flux_of(lambda y: 1 + jnp.sqrt(jnp.where(y @ y > 0, y @ y, 1.0))),
    "a decision about the unknown": lambda u, x: -pf.laplacian(u)(x) + jnp.where(u(x) > 0, u(x), 0.0),
}


def problem(operator) -> pf.Problem:
    return pf.Problem(BOX, operator, 1.0, [pf.Dirichlet(0.0)])


@pytest.mark.parametrize("name", HIDDEN)
def test_a_jump_inside_of_a_derivative_is_found(name):
    found = problem(HIDDEN[name]).hidden_jump
    assert found is not None
    assert found.is_certain


@pytest.mark.parametrize(
    "operator",
    [
        lambda u, x: -jnp.trace(jax.jacfwd(lambda y: step(y) * jax.grad(u)(y))(x)),
        lambda u, x: -step(x) * jnp.trace(jax.hessian(u)(x)),
    ],
    ids=["inside", "outside"],
)
def test_with_derivatives_of_jax_it_cannot_be_told_where_a_jump_is(operator):
    stated = problem(operator)
    assert not stated.hidden_jump.is_certain
    with pytest.raises(ProblemError, match=r"cannot be told.*Write them with the operators of pdofm"):
        pf.solve(stated, 20)


def test_derivatives_of_jax_are_welcome_where_nothing_jumps():
    assert problem(lambda u, x: -jnp.trace(jax.hessian(u)(x))).hidden_jump is None


@pytest.mark.parametrize("name", LEGITIMATE)
def test_what_differentiation_sees_or_need_not_see_is_allowed(name):
    assert problem(LEGITIMATE[name]).hidden_jump is None


def test_the_place_of_the_jump_is_found_to_the_last_digits():
    found = problem(HIDDEN["a step"]).hidden_jump
    assert found.point[0] == pytest.approx(0.5, abs=1e-14)
    found = problem(HIDDEN["a small inclusion"]).hidden_jump
    assert np.sum((found.point - 0.6) ** 2) == pytest.approx(0.01, abs=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda p: pf.solve(p, tol=1e-6),
        lambda p: pf.solve(p, 50),
        lambda p: pf.factor(p, 50),
        lambda p: pf.pretrain(p, pf.NetworkFeatures(BOX, 20)),
    ],
    ids=["search", "solve", "factor", "pretrain"],
)
def test_a_problem_with_a_hidden_jump_is_refused_with_the_remedy(call):
    with pytest.raises(ProblemError, match=r"jumps near \[0\.5.*inside a derivative.*Regions.*Interface"):
        call(problem(HIDDEN["a step"]))


def test_a_discontinuous_source_is_legitimate():
    source = lambda x: jnp.where(x[0] < 0.5, 0.0, 1.0)
    stated = pf.Problem(BOX, lambda u, x: -pf.laplacian(u)(x), source, [pf.Dirichlet(0.0)])
    assert stated.hidden_jump is None


def test_a_jump_of_conductivity_in_one_dimension_and_in_time_is_found():
    layered = lambda u, x, t: pf.dt(u)(x, t) - pf.div(lambda y, t: step(y) * pf.grad(u)(y, t))(x, t)
    stated = pf.Problem(
        pf.SpaceTime(pf.Interval(0, 1), 1.0), layered, 0.0, [pf.Dirichlet(0.0), pf.Initial(lambda x, t: x[0])]
    )
    assert stated.hidden_jump.point[0] == pytest.approx(0.5, abs=1e-12)
