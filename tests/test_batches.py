"""Functions of many rows, evaluated batch by batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pdofm.numerics.batches import batch_size, in_batches, two_sizes

ROWS = [0, 1, 3, 4, 5, 8, 9, 31, 32, 33]


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 3)), rng.standard_normal(n)


@pytest.mark.parametrize("n", ROWS)
def test_batches_give_what_the_function_gives_on_all_rows(n):
    function = jax.jit(lambda a, b: jnp.sin(a) * b[:, None])
    found = in_batches(function, rows(n), (4, 8))
    assert found.shape == (n, 3)
    np.testing.assert_array_equal(found, np.asarray(function(*rows(n))))


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("axis", [1, -1])
def test_a_function_may_return_several_arrays_with_the_rows_along_any_axis(n, axis):
    def function(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 2 * a.T, jnp.stack([b, -b])

    twice, both = in_batches(function, rows(n), (8,), axis=axis)
    a, b = rows(n)
    np.testing.assert_array_equal(twice, 2 * a.T)
    np.testing.assert_array_equal(both, np.stack([b, -b]))


@pytest.mark.parametrize("n", ROWS)
def test_a_function_is_only_called_with_the_given_sizes(n):
    sizes = []

    def function(a: np.ndarray) -> np.ndarray:
        sizes.append(len(a))
        return a

    in_batches(function, rows(n)[:1], two_sizes(16))
    assert set(sizes) <= {2, 16}
    assert sum(sizes) < n + 16 or n == 0


def test_a_full_batch_fills_the_budget_with_a_power_of_two_of_points():
    assert batch_size(2**12) == 2**9
    assert batch_size(2**12 - 1) == 2**9
    assert batch_size(2**12 + 1) == 2**8
    assert batch_size(2**30) == 64
    assert batch_size(2**30, least=256) == 256
