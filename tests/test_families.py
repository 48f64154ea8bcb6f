"""What each family of features promises beyond the properties that all of them share (test_features.py)."""

from functools import cache
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebder, chebval, chebvander

import pdofm as pf
from pdofm.discrete.collocate import collocate
from pdofm.errors import DomainError, FeaturesError, UnknownNameError
from pdofm.features.spectral import indices_below
from pdofm.features.transnet import gaussian_fields
from pdofm.features.windows import smooth_window, window_b

SQUARE = pf.Box([-1, -1], [1, 1])
INTERVAL = pf.Interval(0, 2)
LSHAPE = SQUARE - pf.Box([0, 0], [1, 1])
CUBE = pf.Box([0, 0, 0], [1, 2, 3])


def many(features: pf.Features, points: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(features))(jnp.asarray(points)))


def local(size: int, scale: float = 3.0):
    return lambda box, key: pf.RandomFeatures(box, size, key=key, initialisation="uniform", scale=scale)


# ---- windows


def constant(box: pf.Box, key: int) -> pf.Chebyshev:
    """One local feature, the function 1: the features of the partition are then its windows."""
    return pf.Chebyshev(box, degree=0)


CENTERS = np.array([[x, y] for x in (-0.8, 0.1, 0.7) for y in (-0.5, 0.6)])
PARTITIONS = {
    "interval": (INTERVAL, {"subdomains": 5}),
    "square": (SQUARE, {"subdomains": (3, 2)}),
    "cube": (CUBE, {"subdomains": (2, 1, 3)}),
    "one": (SQUARE, {"subdomains": 1}),
    "plain interval": (INTERVAL, {"subdomains": 4, "normalise": False}),
    "plain square": (SQUARE, {"subdomains": (2, 3), "normalise": False}),
    "plain cube": (CUBE, {"subdomains": 2, "normalise": False}),
    "indicators": (SQUARE, {"subdomains": (3, 2), "window": "a"}),
    "smooth": (SQUARE, {"subdomains": (3, 2), "window": "smooth"}),
    "centers": (SQUARE, {"centers": CENTERS, "radii": np.full(6, 0.6)}),
    "centers, sides": (SQUARE, {"centers": CENTERS, "radii": np.tile([0.5, 0.7], (6, 1))}),
    "centers on an interval": (INTERVAL, {"centers": [[0.2], [1.0], [1.7]], "radii": [0.4, 0.5, 0.4]}),
    "L, a quarter dropped": (LSHAPE, {"subdomains": 4}),
    "L, indicators": (LSHAPE, {"subdomains": 4, "window": "a"}),
    "annulus, the middle dropped": (pf.Annulus((0, 0), 0.6, 1.0), {"subdomains": 5}),
    "space-time": (pf.SpaceTime(pf.Interval(0, 1), 2), {"subdomains": (2, 3)}),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_windows_sum_to_one(name, seed):
    domain, options = PARTITIONS[name]
    partition = pf.PartitionOfUnity(constant, domain, **options)
    found = many(partition, domain.sample(500, "random", key=seed))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert found.min() >= 0
    assert (found.max(axis=0) > 0.2).all()


@pytest.mark.parametrize("name", [name for name in PARTITIONS if "centers" not in name])
def test_windows_sum_to_one_on_the_boundary_and_on_the_edges_of_cells(name):
    domain, options = PARTITIONS[name]
    partition = pf.PartitionOfUnity(constant, domain, **options)
    grid = domain.sample(400, "grid")
    edges = domain.lower + np.round((grid - domain.lower) * 4) / 4  # many of these lie on edges
    points = np.concatenate([domain.boundary.sample(50)[0], edges[domain.contains(edges, tol=1e-12)]])
    np.testing.assert_allclose(many(partition, points).sum(axis=1), 1, rtol=0, atol=1e-14)


def test_window_b_is_one_in_the_middle_a_half_at_the_edge_and_zero_outside():
    at = np.array([0.0, 0.5, 0.75, 1.0, 1.25, 1.5])
    expected = np.array([1, 1, 1, 0.5, 0, 0])
    np.testing.assert_allclose(window_b(jnp.asarray(at)), expected, atol=1e-15)
    np.testing.assert_allclose(window_b(jnp.asarray(-at)), expected, atol=1e-15)


def test_window_b_and_its_neighbour_sum_to_one_before_any_division(seed):
    y = jnp.asarray(np.random.default_rng(seed).uniform(0, 2, 100))
    np.testing.assert_allclose(window_b(y) + window_b(y - 2), 1, atol=1e-15)


@pytest.mark.parametrize("kink", [-1.25, -0.75, 0.75, 1.25])
def test_window_b_is_once_differentiable_and_no_more(kink):
    slope = jax.vmap(jax.grad(window_b))
    curvature = jax.vmap(jax.grad(jax.grad(window_b)))
    sides = jnp.asarray([kink - 1e-9, kink, kink + 1e-9])
    np.testing.assert_allclose(slope(sides), 0, atol=1e-6)
    assert abs(curvature(sides)[2] - curvature(sides)[0]) == pytest.approx(2 * np.pi**2, rel=1e-6)


def test_the_smooth_window_has_the_limits_of_b_and_three_derivatives():
    at = np.array([0.0, 0.75, 1.0, 1.25, 2.0])
    np.testing.assert_allclose(smooth_window(jnp.asarray(at)), [1, 1, 0.5, 0, 0], atol=1e-15)
    y = jnp.asarray(np.random.default_rng(0).uniform(0, 2, 50))
    np.testing.assert_allclose(smooth_window(y) + smooth_window(y - 2), 1, atol=1e-14)
    derivative, step = smooth_window, 1e-6
    for _ in range(3):
        derivative = jax.grad(derivative)
        for kink in (0.75, 1.25):
            below, above = derivative(jnp.asarray(kink - step)), derivative(jnp.asarray(kink + step))
            assert abs(below - above) < 1e5 * step  # the next derivative is bounded: no jump


def test_every_subdomain_gets_as_many_points_as_the_others():
    ends = np.array([-1, 0, 0.5, 0.75, 0.875, 0.9375, 0.96875, 1])
    centers, radii = ((ends[1:] + ends[:-1]) / 2)[:, None], ((ends[1:] - ends[:-1]) / 2)[:, None]
    partition = pf.PartitionOfUnity(local(5), pf.Interval(-1, 1), centers=centers, radii=radii)
    problem = pf.Problem(
        pf.Interval(-1, 1), lambda u, x: -pf.laplacian(u)(x), source=1.0, conditions=[pf.Dirichlet(0.0)]
    )
    points = collocate(problem, 1000, 2, features=partition)[0].points
    counts = [int((np.abs(points - c) <= r).sum()) for c, r in zip(centers, radii, strict=True)]
    np.testing.assert_allclose(counts, 1000 / 7, rtol=0.3)


def test_a_small_subdomain_is_not_taken_for_an_empty_one():
    radii = np.array([[0.5 - 5e-7], [1e-6], [0.5 - 5e-7]])
    centers = np.array([[-0.5 - 5e-7], [0.0], [0.5 + 5e-7]])
    assert pf.PartitionOfUnity(local(5), pf.Interval(-1, 1), centers=centers, radii=radii).count == 3


@pytest.mark.parametrize("window", ["a", "b", "smooth"])
def test_local_features_vanish_outside_their_window(window, seed):
    partition = pf.PartitionOfUnity(local(5), SQUARE, (3, 2), window=window)
    points = SQUARE.sample(200, "random", key=seed)
    found = many(partition, points).reshape(200, 5, 6)
    reach = 1.0 if window == "a" else 1.25
    distance = np.abs(points[:, None] - np.asarray(partition.centers)[None]) / np.asarray(partition.radii)[None]
    inside = (distance < reach).all(axis=2)
    assert not found.transpose(0, 2, 1)[~inside].any()
    assert found.transpose(0, 2, 1)[(distance < 0.7).all(axis=2)].all()


@pytest.mark.parametrize("key", [0, 3])
def test_a_partition_in_one_piece_is_its_inner_features(key):
    partition = pf.PartitionOfUnity(local(7), SQUARE, 1, key=key)
    points = SQUARE.sample(20, "random", key=1)
    inner = jax.tree.map(lambda leaf: leaf[0], partition.local)
    np.testing.assert_allclose(many(partition, points), many(inner, points), rtol=1e-14)


DROPPED = {
    "L in quarters": (LSHAPE, (2, 2), 3),
    "L in sixteen": (LSHAPE, (4, 4), 12),
    "square": (SQUARE, (2, 2), 4),
    "annulus": (pf.Annulus((0, 0), 0.6, 1.0), (5, 5), 24),
}


@pytest.mark.parametrize("name", DROPPED)
@pytest.mark.parametrize("window", ["a", "b"])
def test_subdomains_without_points_are_dropped_with_their_features(name, window):
    domain, grid, expected = DROPPED[name]
    partition = pf.PartitionOfUnity(local(5), domain, grid, window=window)
    assert partition.count == expected
    assert partition.size == 5 * expected


def test_leading_features_of_a_partition_span_a_coarser_space_in_every_subdomain():
    partition = pf.PartitionOfUnity(lambda box, key: pf.Chebyshev(box, degree=3), INTERVAL, 4)
    windows = pf.PartitionOfUnity(constant, INTERVAL, 4)
    points = INTERVAL.sample(50)
    np.testing.assert_allclose(many(partition, points)[:, :4], many(windows, points), atol=1e-15)


# ---- window a: interfaces


def test_window_a_adds_a_term_per_axis_with_interfaces():
    names = lambda grid, **options: [
        term.name for term in pf.PartitionOfUnity(local(5), SQUARE, grid, **options).extra_terms(SQUARE)
    ]
    assert names((2, 2), window="a") == ["interface-x0", "interface-x1"]
    assert names((1, 3), window="a") == ["interface-x1"]
    assert names(1, window="a") == []
    assert names((2, 2)) == []


def test_interfaces_lie_inside_the_domain_only():
    partition = pf.PartitionOfUnity(local(5), LSHAPE, (2, 2), window="a")
    for axis, term in enumerate(partition.extra_terms(LSHAPE)):
        points = term.on.sample(40)[0]
        assert not points[:, axis].any()
        assert (points[:, 1 - axis] <= 1e-12).all()


@cache
def solved(name: str, window: str) -> pf.Solution:
    problem = pf.zoo.get(name)
    grid, size, scale = {"helmholtz-1d": (2, 25, 6.0), "poisson-square": (2, 60, 2.0)}[name]
    return pf.solve(problem, pf.PartitionOfUnity(local(size, scale), problem.domain, grid, window=window))


@pytest.mark.parametrize("name", ["helmholtz-1d", "poisson-square"])
@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_both_windows_solve_about_as_well(name):
    a, b = (solved(name, window).errors().relative_l2 for window in "ab")
    assert max(a, b) < 1e-2
    assert 1e-2 < a / b < 1e2


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_a_solution_is_continuous_across_the_interfaces_with_its_derivative():
    u = solved("helmholtz-1d", "a")
    below, above = np.array([1 - 1e-9]), np.array([1 + 1e-9])
    scale = 1e-9 * 500 + 10 * u.errors().max
    assert abs(u(below) - u(above)) <= scale
    assert np.abs(u.gradient(below) - u.gradient(above)).max() <= 100 * scale


# ---- TransNet


def test_directions_are_unit_offsets_lie_in_range_and_the_first_feature_is_constant(seed):
    net = pf.TransNet(SQUARE, 100, shape=3.0, radius=1.5, key=seed)
    np.testing.assert_allclose(np.linalg.norm(net.weight, axis=1), 3.0 / 1.5, rtol=1e-13)
    assert net.bias.min() >= 0
    assert net.bias.max() <= 3.0
    assert net.size == 100
    assert (many(net, SQUARE.sample(10))[:, 0] == 1).all()


def test_transnet_is_the_formula():
    net = pf.TransNet(pf.Box([1, 1], [3, 5]), 6, shape=2.0)
    y = np.array([0.3, -0.4])
    x = jnp.asarray(np.array([2.0, 3.0]) + y * np.array([1.0, 2.0]))
    np.testing.assert_allclose(net(x)[1:], np.tanh(net.weight @ y + net.bias), rtol=1e-13)


SHAPES = [0.05, 1.5, 40.0]


@cache
def tuned(key: int = 0) -> pf.TransNet:
    return pf.TransNet.tune(SQUARE, 60, shapes=SHAPES, key=key)


def shape_of(net: pf.TransNet) -> float:
    return float(np.linalg.norm(net.weight[0])) * np.sqrt(2)


def test_tuning_picks_one_of_the_given_shapes_and_is_reproducible():
    assert shape_of(tuned()) == pytest.approx(1.5, rel=1e-12)
    again = pf.TransNet.tune(SQUARE, 60, shapes=SHAPES)
    assert np.array_equal(again.weight, tuned().weight)
    assert np.array_equal(again.bias, tuned().bias)
    assert not np.array_equal(tuned(1).weight, tuned().weight)


def test_a_tuned_net_fits_a_random_field_better_than_the_extremes():
    rng = np.random.default_rng(5)
    points = rng.uniform(-1, 1, (300, 2))
    field = gaussian_fields(points, 1.0, 1, rng)

    def misfit(net: pf.TransNet) -> float:
        values = many(net, points)
        return float(np.linalg.norm(values @ np.linalg.lstsq(values, field, rcond=1e-12)[0] - field))

    best = misfit(tuned())
    assert best < 0.1 * misfit(pf.TransNet(SQUARE, 60, shape=SHAPES[0]))
    assert best < 0.1 * misfit(pf.TransNet(SQUARE, 60, shape=SHAPES[-1]))


def test_random_fields_have_the_covariance_that_they_should(seed):
    """exp(-|x - x'|² / 2ℓ²), from 20000 fields at points ℓ and 2ℓ apart; five standard deviations are below 0.05."""
    points = 0.7 * np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    fields = gaussian_fields(points, 0.7, 20000, np.random.default_rng(seed))
    expected = np.exp(-np.array([[0.0, 1, 4], [1, 0, 1], [4, 1, 0]]) / 2)
    np.testing.assert_allclose(fields @ fields.T / 20000, expected, atol=0.05)
    np.testing.assert_allclose(fields.mean(axis=1), 0, atol=0.04)


# ---- spectral spaces


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 20])
def test_chebyshev_polynomials_in_one_dimension_are_those_of_numpy(degree):
    y = np.linspace(-1, 1, 33)
    found = many(pf.Chebyshev(INTERVAL, degree=degree), y[:, None] + 1)
    np.testing.assert_allclose(found, chebvander(y, degree), atol=1e-12)


def test_a_degree_per_axis_resolves_the_axes_differently():
    total, tensor = (pf.Chebyshev(SQUARE, degree=(2, 4), kind=kind) for kind in ("total", "tensor"))
    assert total.size == 5 + 3 + 1  # j ≤ 4 - 2 i
    assert tensor.size == 3 * 5
    y = SQUARE.sample(7)
    i, j = np.array([(0, 0), (0, 1), (0, 2), (1, 0), (0, 3), (1, 1), (0, 4), (1, 2), (2, 0)]).T
    expected = chebvander(y[:, 0], 2)[:, i] * chebvander(y[:, 1], 4)[:, j]
    np.testing.assert_allclose(many(total, y), expected, rtol=1e-13, atol=1e-14)
    assert pf.Chebyshev(SQUARE, degree=(0, 3)).size == 4
    assert pf.Chebyshev(SQUARE, degree=(0, 0)).size == 1
    assert pf.Chebyshev(SQUARE, degree=(6, 6)).size == pf.Chebyshev(SQUARE, degree=6).size


@pytest.mark.parametrize("options", [{"degree": (3, 4, 5)}, {"degree": (3, 4), "size": 10}, {"degree": (3, -1)}])
def test_degrees_that_do_not_fit_are_refused(options):
    with pytest.raises(FeaturesError, match=r"degree must be"):
        pf.Chebyshev(SQUARE, **options)


@pytest.mark.parametrize("orders", [(0, 0), (1, 0), (0, 2), (1, 1), (2, 2), (0, 4), (3, 1)])
def test_derivatives_of_chebyshev_polynomials_are_those_of_numpy(orders, seed):
    """Of all orders, in forward mode; on the square the reference coordinates are the coordinates."""
    features, degree = pf.Chebyshev(SQUARE, degree=9, kind="tensor"), 9
    points = SQUARE.sample(50, key=seed)
    axes = (0,) * orders[0] + (1,) * orders[1]
    found = many(pf.partial(features, *axes), points)

    def of_axis(axis: int) -> np.ndarray:
        derivatives = np.array(
            [chebval(points[:, axis], chebder(np.eye(degree + 1)[k], orders[axis])) for k in range(degree + 1)]
        )
        return derivatives.T

    expected = np.einsum("ni,nj->nij", of_axis(0), of_axis(1)).reshape(len(points), -1)
    flat = [i * (degree + 1) + j for i, j in indices_below((1, 1), degree, "tensor")]
    np.testing.assert_allclose(found, expected[:, flat], rtol=1e-11, atol=1e-13 * np.abs(expected).max())


def test_derivatives_of_polynomials_of_high_degree_keep_their_digits():
    """At the end points T_n'(1) = n² and T_n''(1) = n² (n² - 1) / 3."""
    features, end, n = pf.Chebyshev(pf.Interval(-1, 1), degree=200), np.array([[1.0]]), np.arange(201.0)
    for order, expected in ((1, n**2), (2, n**2 * (n**2 - 1) / 3)):
        found = many(pf.partial(features, *(0,) * order), end)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_chebyshev_features_follow_the_precision_of_the_point():
    features = pf.Chebyshev(SQUARE, degree=3)
    assert features.values(jnp.zeros(2, jnp.float32)).dtype == jnp.float32


def test_chebyshev_polynomials_in_more_dimensions_are_products(seed):
    y = np.random.default_rng(seed).uniform(-1, 1, (20, 2))
    products = chebvander(y[:, 0], 4)[:, :, None] * chebvander(y[:, 1], 4)[:, None, :]
    total = many(pf.Chebyshev(SQUARE, degree=4), y)
    tensor = many(pf.Chebyshev(SQUARE, degree=4, kind="tensor"), y)
    lower = np.array([(i, j) for i in range(5) for j in range(5) if i + j <= 4])
    expected = products[:, lower[:, 0], lower[:, 1]]
    by_value = lambda columns: columns[:, np.lexsort(columns.round(9))]
    np.testing.assert_allclose(by_value(total), by_value(expected), atol=1e-12)
    np.testing.assert_allclose(by_value(tensor), by_value(products.reshape(20, -1)), atol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("degree", [0, 1, 4])
def test_spectral_spaces_have_as_many_functions_as_they_should(dim, degree):
    box = pf.Box([0] * dim, [1] * dim)
    assert pf.Chebyshev(box, degree=degree).size == comb(degree + dim, dim)
    assert pf.Chebyshev(box, degree=degree, kind="tensor").size == (degree + 1) ** dim
    assert pf.Fourier(box, degree=degree, kind="tensor").size == (2 * degree + 1) ** dim
    lattice = np.stack(np.meshgrid(*[np.arange(-degree, degree + 1)] * dim), axis=-1).reshape(-1, dim)
    assert pf.Fourier(box, degree=degree).size == (np.abs(lattice).sum(axis=1) <= degree).sum()


@pytest.mark.parametrize("family", [pf.Chebyshev, pf.Fourier])
@pytest.mark.parametrize("kind", ["total", "tensor"])
def test_a_size_gives_the_largest_degree_with_at_most_that_many(family, kind):
    found = family(SQUARE, 50, kind=kind)
    assert found.size <= 50 < family(SQUARE, degree=found.degree + 1, kind=kind).size


@pytest.mark.parametrize("family", [pf.Chebyshev, pf.Fourier])
@pytest.mark.parametrize("kind", ["total", "tensor"])
def test_spectral_functions_are_independent_and_begin_with_those_of_lower_degree(family, kind):
    fine, coarse = family(SQUARE, degree=5, kind=kind), family(SQUARE, degree=3, kind=kind)
    points = SQUARE.sample(300)
    values = many(fine, points)
    assert np.linalg.matrix_rank(values) == fine.size
    np.testing.assert_allclose(values[:, : coarse.size], many(coarse, points), rtol=0, atol=1e-14)


@pytest.mark.parametrize("extension", [1.0, 1.5])
def test_fourier_functions_have_the_period_of_the_extended_box(extension):
    waves = pf.Fourier(SQUARE, degree=4, extension=extension)
    points = SQUARE.sample(20, "random", key=1)
    for axis in range(2):
        shifted = points + 2 * extension * np.eye(2)[axis]
        np.testing.assert_allclose(many(waves, shifted), many(waves, points), atol=1e-12)
    if extension > 1:
        assert np.abs(many(waves, points + np.array([2.0, 0.0])) - many(waves, points)).max() > 0.1


POLYNOMIALS = {
    "square": (SQUARE, lambda x: x[0] ** 3 * x[1] - 2 * x[1] ** 2 + x[0]),
    "disk": (pf.Disk((0.5, 0), 2), lambda x: x[0] ** 2 * x[1] ** 2 + 1),
    "cube": (CUBE, lambda x: x[0] * x[1] * x[2] - x[2] ** 3),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_are_solved_exactly(name):
    domain, exact = POLYNOMIALS[name]
    problem = pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=exact)
    assert pf.solve(problem, pf.Chebyshev(domain, degree=6)).errors().relative_l2 <= 1e-12


# ---- functions of the user's own, and several spaces in one


def singular(x):
    """r^(2/3) sin(2θ/3) at the re-entrant corner of the L, which is harmonic and zero on both edges that meet there."""
    r2 = x[0] ** 2 + x[1] ** 2
    theta = jnp.mod(jnp.arctan2(x[1], x[0]) - jnp.pi / 2, 2 * jnp.pi)
    safe = jnp.where(r2 > 0, r2, 1.0)
    return jnp.where(r2 > 0, safe ** (1 / 3) * jnp.sin(2 * theta / 3), 0.0)


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_the_singular_function_of_a_corner_makes_a_smooth_basis_exact():
    problem = pf.Problem(
        LSHAPE, lambda u, x: -pf.laplacian(u)(x), source=0.0, conditions=[pf.Dirichlet()], exact=singular
    )
    smooth = pf.NetworkFeatures(LSHAPE, 60)
    alone = pf.solve(problem, smooth).errors().relative_l2
    both = pf.solve(problem, pf.Concatenate(smooth, pf.Functions(LSHAPE, [singular]))).errors().relative_l2
    assert 1e-3 <= alone <= 1e-1
    assert both <= 1e-12


def test_functions_of_the_user_lead_a_concatenation_wherever_they_are_named():
    smooth, own = pf.Chebyshev(SQUARE, degree=3), pf.Functions(SQUARE, [lambda x: x[0] ** 9, lambda x: x[1] ** 9])
    points = SQUARE.sample(20)
    for parts in ((smooth, own), (own, smooth)):
        joint = pf.Concatenate(*parts)
        assert joint.size == smooth.size + 2
        assert joint.ranks[:2].tolist() == [0.0, 0.0]
        np.testing.assert_allclose(many(joint, points)[:, :2], points**9, rtol=1e-13)


def test_a_concatenation_lives_on_the_box_that_its_parts_share():
    joint = pf.Concatenate(pf.Chebyshev(SQUARE, 3), pf.Chebyshev(pf.Box([-2, 0], [0.5, 2]), 3))
    assert (joint.lower.tolist(), joint.upper.tolist()) == ([-1.0, 0.0], [0.5, 1.0])


def test_a_function_with_a_vector_value_is_named():
    def both(x):
        return x

    features = pf.Functions(SQUARE, [both])
    with pytest.raises(FeaturesError, match=r"function 'both' returned shape \(2,\) at a point; expected a scalar"):
        features(jnp.zeros(2))


# ---- hard conditions

HARD = {
    "interval": INTERVAL,
    "box": SQUARE,
    "disk": pf.Disk((1, 2), 0.5),
    "annulus": pf.Annulus((0, 1), 0.5, 2.0),
    "ball": pf.Ball((0, 0, 1), 2),
    "space-time": pf.SpaceTime(SQUARE, 2),
    "space-time over a disk": pf.SpaceTime(pf.Disk(), 2),
}


@pytest.mark.parametrize("name", HARD)
def test_boundary_values_hold_exactly_whatever_the_coefficients(name):
    domain = HARD[name]
    lifting = (lambda x, t: x[0] + t) if domain.has_time else (lambda x: x[0] + 1.0)
    hard = pf.HardDirichlet(pf.NetworkFeatures(domain, 10), domain, lifting)
    walls, inside = domain.boundary.sample(60)[0], domain.sample(60)
    c = jnp.asarray(np.random.default_rng(0).standard_normal((10, 1)))
    found = np.asarray(jax.vmap(lambda x: hard.combine(x, c))(jnp.asarray(walls)))[:, 0]
    expected = walls[:, 0] + (walls[:, -1] if domain.has_time else 1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    distances = np.asarray(jax.vmap(hard.distance)(jnp.asarray(inside)))
    assert (distances > 0).all()
    assert distances.max() <= 1


def test_hard_conditions_solve():
    exact = lambda x: jnp.exp(x[0]) * jnp.cos(x[1])
    problem = pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=exact)
    lifting = lambda x: exact(x) + jnp.prod(1 - x**2) * x[0]
    u = pf.solve(problem, pf.HardDirichlet(pf.Chebyshev(SQUARE, 100), SQUARE, lifting))
    assert u.errors().relative_l2 <= 1e-11
    walls = SQUARE.boundary.sample(50)[0]
    np.testing.assert_allclose(u(walls), np.exp(walls[:, 0]) * np.cos(walls[:, 1]), atol=1e-14)


def test_hard_conditions_are_refused_on_a_domain_without_a_smooth_distance():
    with pytest.raises(
        DomainError, match=r"no simple function that vanishes on its boundary.*State the condition with"
    ):
        pf.HardDirichlet(pf.Chebyshev(SQUARE, 5), pf.Polygon([(-1, -1), (1, -1), (0, 1)]))


def test_a_lifting_that_disagrees_with_the_problem_is_refused():
    problem = pf.zoo.get("poisson-square")
    hard = pf.HardDirichlet(pf.Chebyshev(problem.domain, 20), problem.domain, 1.0)
    with pytest.raises(
        FeaturesError, match=r"lifting of HardDirichlet differs .* by 1\.0e\+00.*agrees with the condition"
    ):
        pf.solve(problem, hard)


def test_hard_values_are_refused_where_the_problem_does_not_give_them():
    domain = SQUARE
    problem = pf.Problem(domain, lambda u, x: u(x) - pf.laplacian(u)(x), 1.0, [pf.Neumann(0.0)], name="insulated")
    hard = pf.HardDirichlet(pf.Chebyshev(domain, 20), domain)
    with pytest.raises(FeaturesError, match=r"imposes values on the whole boundary, but no condition of 'insulated'"):
        pf.solve(problem, hard)


# ---- scale selection


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
@pytest.mark.parametrize("factor", [1 / 8, 8.0])
def test_tuning_the_scale_improves_a_badly_scaled_family_without_an_exact_solution(factor):
    known = pf.zoo.get("helmholtz-1d")
    truth = known.exact
    hidden = known.replace(source=lambda x: known.operator(truth, x), conditions=[pf.Dirichlet(truth)], exact=None)
    bad = pf.NetworkFeatures(known.domain, 60).rescaled(factor)
    good = pf.tune_scale(hidden, bad)
    before, after = (pf.solve(known, features).errors().relative_l2 for features in (bad, good))
    assert after <= 1e-2 * before


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_the_scale_is_chosen_among_the_given_factors():
    problem = pf.zoo.get("helmholtz-1d")
    features = pf.NetworkFeatures(problem.domain, 40)
    found = pf.tune_scale(problem, features, factors=[0.01, 1.0])
    assert np.array_equal(found.first, features.first)


def test_a_family_without_a_scale_cannot_be_tuned():
    problem = pf.zoo.get("poisson-1d")
    with pytest.raises(FeaturesError, match=r"Chebyshev has no scale\. Choose among NetworkFeatures"):
        pf.tune_scale(problem, pf.Chebyshev(problem.domain, 10))


# ---- bad arguments

BAD = {
    "window": (lambda: pf.PartitionOfUnity(local(5), SQUARE, 2, window="c"), r"Unknown window 'c'.*Known: a, b"),
    "neither grid nor centers": (lambda: pf.PartitionOfUnity(local(5), SQUARE), r"Give either a grid of subdomains"),
    "grid and centers": (
        lambda: pf.PartitionOfUnity(local(5), SQUARE, 2, centers=CENTERS, radii=np.ones(6)),
        r"Give either a grid of subdomains",
    ),
    "grid of another dimension": (
        lambda: pf.PartitionOfUnity(local(5), SQUARE, (2, 2, 2)),
        r"subdomains must be 2 positive integers, one per axis; got \(2, 2, 2\)",
    ),
    "no subdomains": (lambda: pf.PartitionOfUnity(local(5), SQUARE, (2, 0)), r"2 positive integers.*got \(2, 0\)"),
    "centers of another dimension": (
        lambda: pf.PartitionOfUnity(local(5), SQUARE, centers=[[0.0]], radii=[1.0]),
        r"centers must have shape \(P, 2\) and come with radii; got shape \(1, 1\)",
    ),
    "centers without radii": (lambda: pf.PartitionOfUnity(local(5), SQUARE, centers=CENTERS), r"come with radii"),
    "radii": (
        lambda: pf.PartitionOfUnity(local(5), SQUARE, centers=CENTERS, radii=np.zeros(6)),
        r"radii must be positive",
    ),
    "number of radii": (
        lambda: pf.PartitionOfUnity(local(5), SQUARE, centers=CENTERS, radii=np.ones(4)),
        r"radii must have shape \(P,\) or \(P, 2\) for 6 centers; got \(4, 1\)",
    ),
    "centers that leave gaps": (
        lambda: pf.PartitionOfUnity(local(5), SQUARE, centers=[[0.0, 0.0]], radii=[0.3]),
        r"windows do not cover the domain, for instance not .*Use larger radii or more centers",
    ),
    "centers with window a": (
        lambda: pf.PartitionOfUnity(local(5), SQUARE, centers=CENTERS, radii=np.ones(6), window="a"),
        r"Window 'a' and normalise=False need a grid",
    ),
    "plain windows with dropped subdomains": (
        lambda: pf.PartitionOfUnity(local(5), LSHAPE, 2, normalise=False),
        r"1 of 4 subdomains lie outside the domain; .*Use normalise=True",
    ),
    "inner of several sizes": (
        lambda: pf.PartitionOfUnity(lambda box, key: pf.RandomFeatures(box, 3 + key % 7), SQUARE, (3, 3)),
        r"inner must build features of one family and one size",
    ),
    "transnet shape": (
        lambda: pf.TransNet(SQUARE, 10, shape=-1.0),
        r"shape of TransNet must be above 0, .*got -1",
    ),
    "transnet radius": (
        lambda: pf.TransNet(SQUARE, 10, radius=0.0),
        r"radius of TransNet must be .*; got 0.0",
    ),
    "transnet size": (lambda: pf.TransNet(SQUARE, 1), r"size must be an integer of at least 2; got 1"),
    "transnet activation": (lambda: pf.TransNet(SQUARE, 9, activation="tahn"), r"Unknown activation 'tahn'"),
    "transnet without shapes": (lambda: pf.TransNet.tune(SQUARE, 9, shapes=[]), r"shapes is empty; give the values"),
    "size and degree": (lambda: pf.Chebyshev(SQUARE, 5, degree=2), r"Give either size or degree; got size=5, degree=2"),
    "neither size nor degree": (lambda: pf.Fourier(SQUARE), r"Give either size or degree; got size=None, degree=None"),
    "negative degree": (lambda: pf.Chebyshev(SQUARE, degree=-1), r"degree must be an integer of at least 0; got -1"),
    "no size": (lambda: pf.Fourier(SQUARE, 0), r"size must be an integer of at least 1; got 0"),
    "kind": (lambda: pf.Chebyshev(SQUARE, 5, kind="totl"), r"Unknown kind of degree 'totl'. Did you mean 'total'"),
    "extension": (lambda: pf.Fourier(SQUARE, 9, extension=0.5), r"extension must be at least 1.*; got 0.5"),
    "nan extension": (
        lambda: pf.Fourier(SQUARE, 9, extension=float("nan")),
        r"extension must be at least 1.*; got nan",
    ),
    "no functions": (lambda: pf.Functions(SQUARE, []), r"functions must be a list of functions of one point; got \[\]"),
    "nothing to join": (pf.Concatenate, r"Concatenate takes features, as in Concatenate\(a, b\); got \(\)"),
    "dimensions": (
        lambda: pf.Concatenate(pf.Chebyshev(SQUARE, 3), pf.Chebyshev(CUBE, 3)),
        r"Features in one basis must have one dimension; got \[2, 3\]",
    ),
    "no part with a scale": (
        lambda: pf.Concatenate(pf.Chebyshev(SQUARE, 3), pf.Fourier(SQUARE, 3)).rescaled(2.0),
        r"Concatenate has no scale",
    ),
    "hard conditions of another dimension": (
        lambda: pf.HardDirichlet(pf.Chebyshev(CUBE, 3), SQUARE),
        r"The features have 3 dimensions, the domain Box.* has 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused_with_the_reason(name):
    build, message = BAD[name]
    with pytest.raises((FeaturesError, UnknownNameError), match=message):
        build()
