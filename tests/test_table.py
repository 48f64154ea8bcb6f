"""Tabulated data: accuracy, derivatives, use in problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ProblemError

SQUARE = pf.Box([0, 0], [1, 1])


def wavy(x):
    return np.sin(3 * x[..., 0]) * np.exp(x[..., 1])


def grid(n: int) -> tuple[list[np.ndarray], np.ndarray]:
    axes = [np.linspace(0, 1, n), np.linspace(0, 1, n + 3)]
    return axes, wavy(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1))


def test_a_table_on_a_grid_converges_with_sixth_order():
    points = SQUARE.sample(200, "random", key=0)
    tables = [pf.Table(*grid(n)) for n in (12, 24)]
    errors = [np.max(np.abs(table(points) - wavy(points))) for table in tables]
    assert errors[1] < errors[0] / 2**5
    for table, error in zip(tables, errors, strict=True):
        assert error < 3 * table.error_estimate
        assert table.error_estimate < 1e-3


def test_a_table_passes_through_its_values():
    axes, values = grid(9)
    table = pf.Table(axes, values)
    corners = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(table(corners), values.reshape(-1), atol=1e-13)


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_few_values_are_interpolated_by_a_lower_degree(n):
    x = np.linspace(-1, 1, n)
    table = pf.Table([x], 1 + 2 * x - x**3)
    assert table([0.3]) == pytest.approx(1 + 0.6 - 0.027, abs=1e-12)


def test_derivatives_of_a_table_are_those_of_the_function():
    table = pf.Table(*grid(40))
    point = jnp.array([0.37, 0.61])
    slope = jax.grad(table)(point)
    expected = np.array([3 * np.cos(1.11) * np.exp(0.61), np.sin(1.11) * np.exp(0.61)])
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


def test_scattered_values_of_a_smooth_function_carry_many_digits():
    points = SQUARE.sample(400, "random", key=2)
    table = pf.Table(points, wavy(points))
    others = SQUARE.sample(200, "random", key=3)
    error = np.sqrt(np.mean((table(others) - wavy(others)) ** 2))
    assert error < 1e-8
    assert error < 10 * table.error_estimate


def test_noise_is_seen_in_the_estimate_and_not_followed():
    points = SQUARE.sample(400, "random", key=2)
    noise = 0.01 * np.random.default_rng(0).standard_normal(400)
    table = pf.Table(points, wavy(points) + noise)
    size = np.sqrt(np.mean(wavy(points) ** 2))
    assert table.error_estimate == pytest.approx(0.01 / size, rel=0.2)
    assert np.sqrt(np.mean((table(points) - wavy(points)) ** 2)) < 0.005


def test_a_table_serves_as_source_coefficient_and_value():
    """u = wavy solves -div(k grad u) + 8 k u = 0 for k = 1, since Δ wavy = -8 wavy: with a tabulated k, and values."""
    axes, values = grid(60)
    one, data = pf.Table(axes, np.ones_like(values)), pf.Table(axes, values)
    problem = pf.Problem(
        SQUARE,
        operator=lambda u, x: pf.div(lambda y: one(y) * pf.grad(u)(y))(x),
        source=lambda x: -8 * data(x),
        conditions=[pf.Dirichlet(data)],
    )
    u = pf.solve(problem, pf.Chebyshev(SQUARE, 200))
    points = SQUARE.sample(100, "random", key=5)
    np.testing.assert_allclose(u(points), wavy(points), atol=1e-7)


@pytest.mark.parametrize(
    ("points", "values", "message"),
    [
        ([[0.0, 1, 2, 3]], [1.0, 2, 3], r"values of shape \(3,\) on a grid with \[4\]"),
        ([[0.0, 2, 1, 3]], [1.0, 2, 3, 4], "must be at least 4 increasing numbers"),
        (np.zeros((3, 2)), np.zeros(3), "expected at least 4 points"),
        (np.zeros((5, 2)), np.zeros(5), "not lie on a line along an axis"),
        (np.random.default_rng(0).random((5, 2)), np.full(5, np.nan), "infinite or NaN"),
        (np.random.default_rng(0).random((5, 2)), 1j * np.ones(5), "takes real values"),
    ],
)
def test_values_that_do_not_fit_are_refused(points, values, message):
    with pytest.raises(ProblemError, match=message):
        pf.Table(points, values)


def test_a_table_of_other_dimension_says_how_to_call_it():
    with pytest.raises(ProblemError, match="2 dimensions was called at a point with 1 coordinates"):
        pf.Table(*grid(8))([0.5])


def test_an_array_as_a_source_is_pointed_to_a_table():
    with pytest.raises(ProblemError, match="Table"):
        pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x), np.ones(7), pf.Dirichlet(0.0))
