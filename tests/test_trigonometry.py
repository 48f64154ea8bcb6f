"""Sine and cosine: to the last digit of either precision, with all derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdofm.features.trigonometry import cos, sin

PAIRS = {"sin": (sin, np.sin), "cos": (cos, np.cos)}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(
    ("dtype", "reach"),
    [(np.float32, 0.5), (np.float32, 1e3), (np.float64, 0.5), (np.float64, 100.0), (np.float64, 1e6)],
)
def test_values_are_right_to_the_last_digit(name, dtype, reach):
    ours, exact = PAIRS[name]
    x = np.linspace(-reach, reach, 20001).astype(dtype)
    found = np.asarray(ours(jnp.asarray(x)))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact(x.astype(np.longdouble)), atol=0.8 * np.finfo(dtype).eps, rtol=0)


@pytest.mark.parametrize("name", PAIRS)
def test_near_its_zeros_it_keeps_its_relative_accuracy(name):
    ours, exact = PAIRS[name]
    x = np.arange(-50, 51) * np.pi / 2 + 1e-9
    np.testing.assert_allclose(ours(jnp.asarray(x)), exact(x.astype(np.longdouble)).astype(float), rtol=4e-16)


@given(st.floats(-1e3, 1e3))
def test_derivatives_follow_each_other(x):
    for ours, chain in ((sin, (jnp.cos, lambda x: -jnp.sin(x))), (cos, (lambda x: -jnp.sin(x), lambda x: -jnp.cos(x)))):
        first, second = jax.jacfwd(ours), jax.grad(jax.grad(ours))
        at = jnp.asarray(x)
        np.testing.assert_allclose([first(at), second(at)], [f(at) for f in chain], rtol=0, atol=1e-15)


@pytest.mark.parametrize("x", [np.nan, np.inf, -np.inf])
def test_what_has_no_sine_is_not_a_number(x):
    assert np.isnan(sin(jnp.asarray(x)))
    assert np.isnan(cos(jnp.asarray(x)))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_huge_argument_has_a_sine_all_the_same(dtype):
    x = jnp.asarray(np.array([1e8, -1e12, 1e18, 1e30], dtype))
    np.testing.assert_allclose(sin(x) ** 2 + cos(x) ** 2, 1, rtol=4 * np.finfo(dtype).eps)


def test_whole_numbers_are_fine():
    np.testing.assert_allclose(sin(jnp.arange(5)), np.sin(np.arange(5)), rtol=0, atol=2e-16)
