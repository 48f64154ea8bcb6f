"""Point sets in the unit cube."""

import jax
import numpy as np
import pytest
from scipy.stats import qmc

from pdofm.errors import DomainError, UnknownNameError
from pdofm.numerics.sampling import SAMPLINGS, cluster, draw, generator, unit_points
from pdofm.numerics.sobol import Sobol


@pytest.mark.parametrize("kind", SAMPLINGS)
@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 7, 64, 243])
def test_points_lie_strictly_inside_the_cube_and_are_as_many_as_asked_for(kind, dim, n, seed):
    points = unit_points(n, dim, kind, generator(seed))
    assert points.dtype == np.float64
    assert points.shape[1] == dim
    assert len(points) >= n if kind == "grid" else len(points) == n
    assert (points > 0).all()
    assert (points < 1).all()


def test_a_grid_has_the_least_number_of_cells_that_suffices():
    # 243 ** (1 / 5) and 125 ** (1 / 3) are not integers in floating point.
    assert len(unit_points(243, 5, "grid", generator(0))) == 243
    assert len(unit_points(125, 3, "grid", generator(0))) == 125
    assert len(unit_points(126, 3, "grid", generator(0))) == 216


def test_a_grid_consists_of_the_midpoints_of_cells():
    np.testing.assert_array_equal(unit_points(4, 1, "grid", generator(0))[:, 0], [0.125, 0.375, 0.625, 0.875])


@pytest.mark.parametrize("kind", SAMPLINGS)
def test_a_point_set_without_dimensions_is_one_point(kind):
    assert unit_points(10, 0, kind, generator(0)).shape == (1, 0)


@pytest.mark.parametrize("kind", SAMPLINGS)
def test_the_same_key_gives_the_same_points_and_another_key_others(kind):
    first, again, other = (unit_points(20, 2, kind, generator(key)) for key in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.array_equal(first, other) == (kind == "grid")  # a grid has nothing random


@pytest.mark.parametrize("dim", range(1, 13))
def test_sobol_points_are_those_of_scipy(dim, seed):
    """Block after block, as rejection asks for them; beyond ten dimensions they come from there."""
    blocks = []
    draw(16, dim, "sobol", np.random.default_rng(seed), lambda u: (blocks.append(u) or u[:4],), "a quarter")
    assert [len(block) for block in blocks] == [16, 16, 32, 64]
    theirs = qmc.Sobol(dim, scramble=True, bits=30, rng=np.random.default_rng(seed))
    for block in blocks:
        np.testing.assert_array_equal(block, theirs.random(len(block)) + 2.0**-31)


def test_sobol_points_fill_every_dyadic_box():
    """Of 2^k points in two dimensions each of the 2^k boxes of the same size has one, whatever their shape."""
    points = unit_points(64, 2, "sobol", generator(5))
    for k in range(7):
        cells = np.floor(points * [2**k, 2 ** (6 - k)]).astype(int)
        assert len({tuple(cell) for cell in cells}) == 64


@pytest.mark.parametrize("n", [3, 8, 2**31])
def test_sobol_points_come_in_whole_blocks(n):
    sequence = Sobol(2, np.random.default_rng(0))
    sequence(4)
    with pytest.raises(ValueError, match=r"not a block of a sequence"):
        sequence(n)


def test_sobol_points_integrate_better_than_random_ones():
    error = {kind: abs(np.mean(unit_points(4096, 2, kind, generator(0)).prod(axis=1)) - 0.25) for kind in SAMPLINGS}
    assert error["sobol"] < 1e-4 < error["random"]


def test_clustered_points_have_the_chebyshev_density():
    points = unit_points(2**14, 1, "clustered", generator(0))[:, 0]
    # The distribution function of the density is 2 asin(sqrt(x)) / pi.
    for x in (1e-4, 0.1, 0.5, 0.9):
        assert np.mean(points < x) == pytest.approx(2 * np.arcsin(np.sqrt(x)) / np.pi, abs=1e-3)
    np.testing.assert_allclose(cluster(np.array([[0.0, 0.5, 1.0]])), [[0.0, 0.5, 1.0]], atol=1e-16)


def test_keys_can_be_integers_or_jax_keys_typed_or_raw():
    typed, raw = jax.random.key(7), jax.random.PRNGKey(7)
    assert generator(typed).random() == generator(raw).random() == generator(np.asarray(raw)).random()
    assert generator(typed).random() != generator(jax.random.key(8)).random()
    assert generator(np.int64(7)).random() == generator(7).random()


@pytest.mark.parametrize("key", [-1, 1.5, "seed", None, True, np.zeros(2), jax.random.split(jax.random.key(0), 3)])
def test_anything_else_is_no_key(key):
    with pytest.raises(DomainError, match="expected a non-negative integer or one JAX random key"):
        generator(key)


def test_unknown_kinds_are_refused_with_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"Unknown sampling 'sobel'. Did you mean 'sobol'"):
        unit_points(1, 1, "sobel", generator(0))


@pytest.mark.parametrize("n", [0, -3, True])
def test_numbers_of_points_are_positive_integers(n):
    with pytest.raises(DomainError, match="expected an integer of at least 1"):
        unit_points(n, 1, "sobol", generator(0))


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_rejection_continues_one_sequence_until_it_has_enough(kind):
    (kept,) = draw(100, 2, kind, generator(5), lambda u: (u[u[:, 0] < 0.05],), "a strip")
    everything = unit_points(2**13, 2, kind, generator(5))
    np.testing.assert_array_equal(kept, everything[everything[:, 0] < 0.05][:100])
    assert kept.shape == (100, 2)


@pytest.mark.parametrize("kind", ["grid", "random", "sobol", "clustered"])
def test_rejection_from_almost_nothing_is_an_error(kind):
    with pytest.raises(DomainError, match=r"candidates lie in the needle.*too thin"):
        draw(10, 2, kind, generator(0), lambda u: (u[:0],), "the needle")
