"""Functions at very many points: interpolated where that changes nothing but rounding."""

import jax.numpy as jnp
import numpy as np

import pdofm as pf
from pdofm.discrete.evaluate import evaluate
from pdofm.discrete.interpolated import MANY, interpolated

LINE = pf.Interval(0, 1)
AT = np.random.default_rng(0).random((MANY, 1))


def both(features, coefficients):
    """The same function at many points, and at some of them."""
    some = slice(0, 2000)
    return evaluate(features, coefficients, AT)[some], evaluate(features, coefficients, AT[some])


def is_interpolated(features, coefficients, points=AT):
    direct = lambda x: evaluate(features, coefficients, x)
    return interpolated(features, coefficients, points, direct) is not None


def test_a_smooth_function_is_interpolated_to_rounding(seed):
    features = pf.RandomFeatures(LINE, 60, key=seed)
    coefficients = np.random.default_rng(seed).standard_normal((60, 2))
    many, few = both(features, coefficients)
    assert is_interpolated(features, coefficients)
    np.testing.assert_allclose(many, few, rtol=0, atol=1e-12 * np.abs(few).max())


def test_a_function_that_is_not_smooth_is_evaluated_directly():
    features = pf.Functions(LINE, [lambda x: jnp.abs(x[0] - 0.3), lambda x: jnp.sin(x[0])])
    coefficients = np.ones((2, 1))
    many, few = both(features, coefficients)
    assert not is_interpolated(features, coefficients)
    assert np.array_equal(many, few)


def test_points_outside_of_the_box_are_not_interpolated(seed):
    features = pf.RandomFeatures(LINE, 10, key=seed)
    assert not is_interpolated(features, np.ones((10, 1)), 2 * AT)
