"""Sources that are concentrated along curves or jump across planes, and layers along curves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from numpy.polynomial import Chebyshev

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.adaptive.curves import find_curve
from pdofm.adaptive.cuts import cuts_of, source_cuts
from pdofm.adaptive.layer import find_curved_layer
from pdofm.adaptive.search import Search
from pdofm.errors import FeaturesError

SQUARE = pf.Box([0, 0], [1, 1])


def squared_source(u):
    source = jax.jit(jax.vmap(lambda x: -jnp.trace(jax.hessian(u)(x))))
    return lambda points: np.asarray(source(jnp.asarray(points))) ** 2


def curve_of(u, domain=SQUARE):
    strength, points = squared_source(u), domain.sample(20_000, "random", key=3)
    return find_curve(domain, strength, points, strength(points))


def distance(x: Array, center: tuple[float, float]) -> Array:
    return jnp.linalg.norm(x - jnp.array(center))


# ---- curves


@pytest.mark.parametrize(
    ("level", "steepness"),
    [
        (lambda x: distance(x, (-0.05, -0.05)) - 0.7, 1000.0),
        (lambda x: x[1] - 0.5 - 0.1 * jnp.sin(5 * x[0]), 400.0),
        (lambda x: x[0] + 0.3 * x[1] - 0.5, 2000.0),
    ],
    ids=["circle", "wave", "line"],
)
def test_a_thin_front_is_followed(level, steepness):
    """On the curve that is found, the function whose arctan has the front is zero to a fifth of its width."""
    curve = curve_of(lambda x: jnp.arctan(steepness * level(x)))
    assert curve is not None
    assert curve.width == pytest.approx(1 / steepness, rel=0.6)
    along = np.array([curve.direction[1], -curve.direction[0]])
    box = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) @ along
    t = np.linspace(box.min(), box.max(), 400)
    center = Chebyshev(curve.center, [box.min(), box.max()])(t)
    points = center[:, None] * curve.direction + t[:, None] * along
    points = points[SQUARE.contains(points)]
    assert len(points) > 100
    off = np.asarray(jax.vmap(level)(jnp.asarray(points)))
    assert np.quantile(np.abs(off), 0.95) < 0.2 / steepness


@pytest.mark.parametrize(
    "u",
    [
        lambda x: jnp.sin(3 * x[0]) * x[1],
        lambda x: jnp.exp(-1e5 * jnp.sum((x - 0.5) ** 2)),
        lambda x: jnp.tanh(500 * (distance(x, (0.5, 0.5)) - 0.3)),  # no graph over any direction
        lambda x: jnp.tanh(500 * (x[0] - 0.3)) + jnp.tanh(500 * (x[0] - 0.6)),
        lambda x: jnp.zeros(()),
    ],
    ids=["smooth", "a peak", "a loop", "two lines", "nothing"],
)
def test_other_sources_have_no_curve(u):
    assert curve_of(u) is None


def test_polynomials_along_a_curved_layer_contain_its_coordinates():
    features = pf.StretchedPolynomials(SQUARE, degree=8, direction=[3, 4], center=[0.7, 0.1, -0.05], width=0.1)
    points = SQUARE.sample(200)
    U = np.stack([np.asarray(features(jnp.asarray(x))) for x in points])
    across, along = points @ [0.6, 0.8], points @ [0.8, -0.6]  # the latter from -0.6 to 0.8
    center = Chebyshev([0.7, 0.1, -0.05], [-0.6, 0.8])(along)
    stretched = np.arcsinh((across - center) / 0.1)
    for function in (stretched, stretched**4, along, along**2, stretched**2 * along):
        c = np.linalg.lstsq(U, function, rcond=None)[0]
        np.testing.assert_allclose(U @ c, function, atol=1e-12)


def test_a_curved_layer_has_coefficients_in_the_plane_only():
    with pytest.raises(FeaturesError, match=r"center has 2 coefficients, but .* two dimensions only"):
        pf.StretchedPolynomials(pf.Interval(0, 1), 9, direction=[1.0], center=[0.5, 0.1], width=0.1)
    with pytest.raises(FeaturesError, match=r"a list of Chebyshev coefficients; got .*nan"):
        pf.StretchedPolynomials(SQUARE, 9, direction=[1.0, 0.0], center=[0.5, np.nan], width=0.1)


def test_points_gather_along_the_curve():
    features = pf.StretchedPolynomials(SQUARE, 50, direction=[1, 0], center=[0.5, 0.0, 0.1], width=0.001)
    x = 0.5 + 0.1 * (2 * 0.8**2 - 1)  # t = -y, from -1 to 0, is scaled to [-1, 1]
    near, far = features.density(np.array([[x, 0.1], [x + 0.1, 0.1]]))
    assert near > 2 * far


def test_a_front_of_a_thousandth_is_resolved_by_few_polynomials():
    """Two hundred thousand unknowns in boxes do not resolve it."""
    problem = pf.zoo.get("front-steep")
    search = Search(problem, 1e-8, None, 0, 2000, 600.0)
    layer = find_curved_layer(search)
    assert layer is not None
    u = pf.solve(problem, layer.polynomials(450), sampling="clustered", tol=np.inf)
    error = u.errors().relative_l2
    assert error < 0.05
    assert error < 10 * u.error_estimate


# ---- jumps


def test_planes_on_which_a_source_jumps_are_found_exactly():
    def source(points):
        x, y = points.T
        return np.where((x > 0.3) & (y < 0.61), 1.0, 0.0) + np.exp(x)

    assert sorted(source_cuts(SQUARE, source)) == [
        (0, pytest.approx(0.3, abs=1e-13)),
        (1, pytest.approx(0.61, abs=1e-13)),
    ]


@pytest.mark.parametrize(
    "source",
    [
        lambda p: np.exp(3 * p[:, 0]),
        lambda p: np.arctan(1e4 * (p[:, 0] - 0.4)),  # steep, but smooth
        lambda p: np.where(p[:, 0] + 0.4 * p[:, 1] > 0.6, 1.0, 0.0),  # across no axis
        lambda p: np.where(np.linalg.norm(p - 0.5, axis=1) < 0.3, 1.0, 0.0),
    ],
    ids=["smooth", "steep", "slanted", "round"],
)
def test_other_sources_are_not_cut(source):
    assert source_cuts(SQUARE, source) == []


def test_a_jump_of_the_source_is_no_obstacle_to_boxes():
    """u'' = -1 for y > 0.3 and 0 below: pieces of polynomials in y."""

    def exact(x: Array) -> Array:
        a = 0.7**2 / 2  # u(1) = 0 with u = a y - (y - 0.3)²₊ / 2
        return a * x[1] - jnp.where(x[1] > 0.3, (x[1] - 0.3) ** 2 / 2, 0.0)

    problem = pf.Problem(
        SQUARE,
        lambda u, x: -pf.laplacian(u)(x),
        lambda x: jnp.where(x[1] > 0.3, 1.0, 0.0),
        conditions=[pf.Dirichlet(exact)],
        exact=exact,
    )
    ((axis, at),) = cuts_of(problem)
    assert (axis, at) == (1, pytest.approx(0.3, abs=1e-13))
    u = solve_in_boxes(problem, 1e-8)
    assert u.converged
    assert u.errors().relative_l2 < 1e-9
    assert pf.solve(problem, tol=1e-8).converged  # although the residual at a point on the cut may be anything


def test_the_estimate_knows_a_jump_along_a_circle():
    """-Δu = 1 for r < 0.3 and 0 beyond: u = (0.3² - r²) / 4 inside and -0.3² log(r / 0.3) / 2 outside."""

    def exact(x: Array) -> Array:
        square = jnp.sum((x - 0.5) ** 2)
        return jnp.where(square < 0.09, (0.09 - square) / 4, -0.09 * jnp.log(jnp.maximum(square, 0.01) / 0.09) / 4)

    problem = pf.Problem(
        SQUARE,
        lambda u, x: -pf.laplacian(u)(x),
        lambda x: jnp.where(jnp.sum((x - 0.5) ** 2) < 0.09, 1.0, 0.0),
        conditions=[pf.Dirichlet(exact)],
        exact=exact,
    )
    u = solve_in_boxes(problem, 1e-8, max_unknowns=20_000)
    assert not u.converged
    error = u.errors().relative_l2
    assert error < 2e-2
    assert 0.1 * error < u.error_estimate < 10 * error
