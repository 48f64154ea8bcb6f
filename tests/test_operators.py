"""The operators against derivatives done by hand, against finite differences, composed, and under jax's transforms."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ProblemError

A = np.array([0.7, -1.3, 0.4])
RATE = 0.9
POINTS = np.random.default_rng(0).uniform(-1, 1, (4, 3))
TIME = 0.3


@dataclass
class Case:
    """A function of three variables with its derivatives, written out by hand in NumPy."""

    u: Callable[..., Any]
    grad: Callable[..., Any]
    hessian: Callable[..., Any]
    biharmonic: Callable[..., Any]


def outer(*vectors: Any) -> np.ndarray:
    return np.multiply.outer(*vectors)


CASES = {
    "constant": Case(
        lambda x: jnp.asarray(3.0) + 0 * x[0],
        lambda x: np.zeros(3),
        lambda x: np.zeros((3, 3)),
        lambda x: 0.0,
    ),
    "polynomial": Case(
        lambda x: x[0] ** 4 * x[1] ** 2 + x[2] ** 3 - 2 * x[0] * x[1] * x[2],
        lambda x: np.array(
            [
                4 * x[0] ** 3 * x[1] ** 2 - 2 * x[1] * x[2],
                2 * x[0] ** 4 * x[1] - 2 * x[0] * x[2],
                3 * x[2] ** 2 - 2 * x[0] * x[1],
            ]
        ),
        lambda x: np.array(
            [
                [12 * x[0] ** 2 * x[1] ** 2, 8 * x[0] ** 3 * x[1] - 2 * x[2], -2 * x[1]],
                [8 * x[0] ** 3 * x[1] - 2 * x[2], 2 * x[0] ** 4, -2 * x[0]],
                [-2 * x[1], -2 * x[0], 6 * x[2]],
            ]
        ),
        lambda x: 24 * x[1] ** 2 + 48 * x[0] ** 2,
    ),
    "exponential": Case(
        lambda x: jnp.exp(x @ A),
        lambda x: A * np.exp(x @ A),
        lambda x: outer(A, A) * np.exp(x @ A),
        lambda x: (A @ A) ** 2 * np.exp(x @ A),
    ),
    "vector": Case(
        lambda x: jnp.stack([x[0] ** 2 * x[1], jnp.exp(x @ A)]),
        lambda x: np.array([[2 * x[0] * x[1], x[0] ** 2, 0.0], A * np.exp(x @ A)]),
        lambda x: np.array(
            [
                [[2 * x[1], 2 * x[0], 0.0], [2 * x[0], 0.0, 0.0], [0.0, 0.0, 0.0]],
                outer(A, A) * np.exp(x @ A),
            ]
        ),
        lambda x: np.array([0.0, (A @ A) ** 2 * np.exp(x @ A)]),
    ),
}


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


def at_points() -> Any:
    return pytest.mark.parametrize("x", list(POINTS), ids=range(len(POINTS)))


@pytest.fixture(params=CASES)
def case(request) -> Case:
    return CASES[request.param]


@at_points()
def test_the_gradient_is_the_exact_one(case, x):
    close(pf.grad(case.u)(jnp.asarray(x)), case.grad(x))


@at_points()
def test_the_hessian_is_the_exact_one(case, x):
    close(pf.hessian(case.u)(jnp.asarray(x)), case.hessian(x))


@at_points()
def test_the_laplacian_is_the_trace_of_the_exact_hessian(case, x):
    close(pf.laplacian(case.u)(jnp.asarray(x)), np.trace(case.hessian(x), axis1=-2, axis2=-1))


@at_points()
def test_the_laplacian_of_the_laplacian_is_the_biharmonic_operator(case, x):
    close(pf.laplacian(pf.laplacian(case.u))(jnp.asarray(x)), case.biharmonic(x))


def test_partial_picks_entries_of_gradient_and_hessian_in_any_order(case):
    x = POINTS[0]
    z, first, second = jnp.asarray(x), case.grad(x), case.hessian(x)
    for i in range(3):
        close(pf.partial(case.u, i)(z), first[..., i])
        for j in range(3):
            close(pf.partial(case.u, i, j)(z), second[..., i, j])


def test_partial_without_axes_is_the_function(case):
    close(pf.partial(case.u)(jnp.asarray(POINTS[0])), np.asarray(case.u(jnp.asarray(POINTS[0]))))


def test_partial_along_one_axis_six_times():
    assert float(pf.partial(lambda x: x[1] ** 6, *[1] * 6)(jnp.ones(2))) == pytest.approx(720, rel=1e-14)


def test_without_time_there_is_no_derivative_in_time():
    with pytest.raises(ProblemError, match=r"dt\(u\)\(x\) has no time. Make the problem on SpaceTime"):
        pf.dt(lambda x: x[0])(jnp.ones(2))


def test_the_normal_derivative_is_the_gradient_along_the_normal(case):
    x, normal = POINTS[1], np.array([2.0, -1.0, 2.0]) / 3
    close(pf.normal_derivative(case.u, jnp.asarray(normal))(jnp.asarray(x)), case.grad(x) @ normal)


def test_the_divergence_of_a_vector_is_the_sum_of_its_own_derivatives():
    x = POINTS[2]
    u = lambda x: jnp.stack([x[0] ** 2 * x[1], x[1] * x[2], jnp.exp(2 * x[2])])
    close(pf.div(u)(jnp.asarray(x)), 2 * x[0] * x[1] + x[2] + 2 * np.exp(2 * x[2]))


def test_the_divergence_of_a_matrix_goes_row_by_row():
    x = POINTS[2]
    u = lambda x: jnp.stack([jnp.stack([x[0] ** 2, x[0] * x[1]]), jnp.stack([x[1], x[1] ** 3])])
    close(pf.div(u)(jnp.asarray(x[:2])), [3 * x[0], 3 * x[1] ** 2])


def test_divergence_of_gradient_and_trace_of_hessian_are_the_laplacian(case):
    x = jnp.asarray(POINTS[3])
    close(pf.div(pf.grad(case.u))(x), np.asarray(pf.laplacian(case.u)(x)))


def test_the_divergence_of_a_curl_vanishes():
    potential = lambda x: jnp.sin(x[0]) * jnp.exp(x[1])
    curl = lambda x: jnp.stack([pf.partial(potential, 1)(x), -pf.partial(potential, 0)(x)])
    close(pf.div(curl)(jnp.asarray(POINTS[0, :2])), 0.0)


def test_operators_are_linear_in_the_function():
    u, v = CASES["polynomial"].u, CASES["exponential"].u
    x = jnp.asarray(POINTS[0])
    for operator in (pf.grad, pf.hessian, pf.laplacian):
        both = operator(lambda y: 2 * u(y) - 3 * v(y))(x)
        close(both, np.asarray(2 * operator(u)(x) - 3 * operator(v)(x)))


# ---- space-time: exp(a·x - rate t) in space-time has every derivative in closed form


def wave(x, t):
    return jnp.exp(x @ A - RATE * t)


def vector_wave(x, t):
    return jnp.stack([x[0] * t**2, wave(x, t)])


VALUE = float(np.exp(POINTS[0] @ A - RATE * TIME))
SPACE_TIME = {
    "dt": (pf.dt(wave), -RATE * VALUE),
    "second dt": (pf.dt(pf.dt(wave)), RATE**2 * VALUE),
    "grad": (pf.grad(wave), A * VALUE),
    "laplacian": (pf.laplacian(wave), A @ A * VALUE),
    "hessian": (pf.hessian(wave), np.outer(A, A) * VALUE),
    "dt of laplacian": (pf.dt(pf.laplacian(wave)), -RATE * (A @ A) * VALUE),
    "gradient of dt": (pf.grad(pf.dt(wave)), -RATE * A * VALUE),
    "partial": (pf.partial(wave, 2, 0), A[2] * A[0] * VALUE),
    "normal derivative": (pf.normal_derivative(wave, jnp.array([0.0, 1.0, 0.0])), A[1] * VALUE),
    "dt of a vector": (pf.dt(vector_wave), [2 * POINTS[0, 0] * TIME, -RATE * VALUE]),
    "div in space": (pf.div(lambda x, t: t * x**2), 2 * TIME * POINTS[0].sum()),
}


@pytest.mark.parametrize("name", SPACE_TIME)
def test_in_space_time_space_operators_act_on_x_and_dt_on_t(name):
    function, expected = SPACE_TIME[name]
    close(function(jnp.asarray(POINTS[0]), jnp.asarray(TIME)), expected)


# ---- against finite differences, for a function nobody differentiates by hand


def network(x):
    rng = np.random.default_rng(1)
    W, V, b = rng.standard_normal((6, 3)), rng.standard_normal((6, 6)), rng.standard_normal(6)
    return jnp.sum(jnp.tanh(V @ jnp.tanh(W @ x + b)) ** 3)


def central(u: Callable[[np.ndarray], Any], x: np.ndarray, axis: int, h: float) -> np.ndarray:
    """The central difference of fourth order along an axis."""
    e = h * np.eye(3)[axis]
    return (8 * (u(x + e) - u(x - e)) - (u(x + 2 * e) - u(x - 2 * e))) / (12 * h)


@at_points()
def test_derivatives_of_a_network_match_finite_differences(x):
    value = lambda y: np.asarray(network(jnp.asarray(y)))
    slope = lambda y: np.asarray(pf.grad(network)(jnp.asarray(y)))
    h = 1e-3  # truncation h⁴ · u⁽⁵⁾ ≈ 1e-12 · 1e4, rounding 1e-16 / h
    gradient = np.stack([central(value, x, i, h) for i in range(3)])
    hessian = np.stack([central(slope, x, i, h) for i in range(3)], axis=-1)
    close(pf.grad(network)(jnp.asarray(x)), gradient, 1e-6)
    close(pf.hessian(network)(jnp.asarray(x)), hessian, 1e-5)
    close(pf.laplacian(network)(jnp.asarray(x)), np.trace(hessian), 1e-5)


# ---- under jax's own transforms

OPERATORS = {
    "grad": pf.grad,
    "hessian": pf.hessian,
    "laplacian": pf.laplacian,
    "biharmonic": lambda u: pf.laplacian(pf.laplacian(u)),
    "partial": lambda u: pf.partial(u, 0, 1),
    "normal": lambda u: pf.normal_derivative(u, jnp.array([0.6, 0.8, 0.0])),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_jit_and_vmap_change_nothing(name):
    function = OPERATORS[name](CASES["exponential"].u)
    points = jnp.asarray(POINTS)
    one_by_one = np.stack([np.asarray(function(x)) for x in points])
    close(jax.vmap(function)(points), one_by_one)
    close(jax.jit(jax.vmap(function))(points), one_by_one)


def test_reverse_mode_goes_through_the_laplacian():
    x = POINTS[0]
    found = jax.grad(pf.laplacian(CASES["exponential"].u))(jnp.asarray(x))
    close(found, (A @ A) * A * np.exp(x @ A))


def test_reverse_mode_over_coefficients_gives_the_operator_of_every_basis_function():
    basis = lambda x: jnp.stack([x[0] ** 2, x[0] * x[1], x[1] ** 3, jnp.exp(x[0])])
    x = jnp.asarray([0.5, -0.7])
    row = jax.jacrev(lambda c: pf.laplacian(lambda y: basis(y) @ c)(x))(jnp.zeros(4))
    close(row, [2.0, 0.0, 6 * -0.7, np.exp(0.5)])


def test_operators_keep_the_precision_of_the_point():
    x = jnp.asarray(POINTS[0], dtype=jnp.float32)
    assert pf.laplacian(lambda x: jnp.sum(x**2))(x).dtype == jnp.float32


def test_a_divergence_needs_a_vector():
    x = jnp.array([0.3, 0.4])
    with pytest.raises(ProblemError, match=r"div\(\) takes a vector function .*, 2; got a scalar"):
        pf.div(jnp.sum)(x)
    with pytest.raises(ProblemError, match=r"div\(\) takes a vector function .*, 2; got 3 entries"):
        pf.div(lambda y: jnp.stack([y[0], y[1], y[0]]))(x)


def test_a_point_may_be_a_list():
    assert pf.laplacian(lambda x: x[0] ** 2 + x[1] ** 3)([1.0, 2.0]) == 14.0
