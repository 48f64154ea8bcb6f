"""Corners are found from the outline, and the functions that belong to them solve what they are made for."""

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.domain import corners
from pdofm.errors import FeaturesError

SQUARE = pf.Box([-1, -1], [1, 1])
LSHAPE = SQUARE - pf.Box([0, 0], [1, 1])


@pytest.mark.parametrize(
    ("domain", "angles"),
    [
        (SQUARE, [90] * 4),
        (LSHAPE, [90] * 5 + [270]),
        (SQUARE - pf.Box([-0.5, -0.5], [0.5, 0.5]), [90] * 4 + [270] * 4),
        (pf.Polygon([[0, 0], [2, 0], [2, 1], [1, 0.5], [0, 1]]), [63.43, 63.43, 90, 90, 233.13]),
        (SQUARE - pf.Disk((1, 1), 0.5), [90] * 5),
        (pf.Disk() | pf.Disk((1, 0), 1), [240, 240]),
        (pf.Disk(), []),
        (pf.Annulus((0, 0), 0.2, 1), []),
        (pf.Box([0, 0, 0], [1, 1, 1]), []),
        (pf.SpaceTime(pf.Interval(0, 1), 1), []),
    ],
    ids=repr,
)
def test_corners_have_their_angles(domain, angles):
    found = sorted(np.degrees(corner.angle) for corner in corners(domain))
    np.testing.assert_allclose(found, angles, atol=0.6)  # curves are drawn with short straight lines


@pytest.mark.parametrize("domain", [SQUARE, LSHAPE, pf.Polygon([[0, 0], [2, 0], [2, 1], [1, 0.5], [0, 1]])], ids=repr)
def test_the_middle_of_a_corner_points_inside(domain):
    for apex, middle, angle in corners(domain):
        assert domain.contains((apex + 0.01 * middle)[None]).all()
        turned = angle / 2 + 0.1
        sides = [np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) @ middle for t in (turned, -turned)]
        assert not domain.contains(apex + 0.01 * np.array(sides)).any()


def exact(x):
    """The leading singular function of the L times a smooth one; zero on both sides of the corner."""
    angle = jnp.arctan2(x[0] - x[1], -x[0] - x[1])
    return (x[0] ** 2 + x[1] ** 2) ** (1 / 3) * jnp.cos(2 / 3 * angle) * (1 - x[0] * x[1])


def test_a_corner_is_solved_without_a_word_about_it():
    problem = pf.Problem(LSHAPE, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=exact)
    smooth = pf.Chebyshev(LSHAPE, degree=8)
    with pytest.warns(pf.errors.ConvergenceWarning, match="has not converged"):
        assert pf.solve(problem, smooth, sampling="clustered").errors().relative_l2 > 1e-3
    both = pf.Concatenate(smooth, pf.CornerFunctions(LSHAPE))
    assert pf.solve(problem, both, sampling="clustered").errors().relative_l2 < 1e-11


def test_a_constant_source_needs_the_convex_corners_too():
    """-Δu = 1 has r² log r at right angles: two spaces that know it agree, and agree better the larger they are."""
    problem = pf.Problem(LSHAPE, lambda u, x: -pf.laplacian(u)(x), 1.0, [pf.Dirichlet(0.0)])
    points = LSHAPE.sample(500)

    def solved(degree: int, **options) -> np.ndarray:
        features = pf.Concatenate(pf.Chebyshev(LSHAPE, degree=degree), pf.CornerFunctions(LSHAPE, **options))
        return pf.solve(problem, features, sampling="clustered")(points)

    fine = solved(16, convex=True)
    size = np.linalg.norm(fine)
    assert np.linalg.norm(solved(10, convex=True) - fine) < 1e-6 * size
    with pytest.warns(pf.errors.ConvergenceWarning, match="estimated relative error .* is above 0.01"):
        assert np.linalg.norm(solved(10) - fine) > 1e-5 * size


def test_without_corners_there_is_nothing_to_add():
    with pytest.raises(FeaturesError, match=r"no re-entrant corner.*Use the smooth basis alone"):
        pf.CornerFunctions(SQUARE)
    with pytest.raises(FeaturesError, match="no corner"):
        pf.CornerFunctions(pf.Disk(), convex=True)


def test_corner_functions_are_saved(tmp_path):
    features = pf.CornerFunctions(LSHAPE, highest=3.0, degree=1, mixed=True)
    pf.save(tmp_path / "corner.safetensors", features)
    x = jnp.array([-0.3, 0.2])
    np.testing.assert_array_equal(pf.load(tmp_path / "corner.safetensors")(x), features(x))
