"""Polynomials in boxes: trees, patches, evaluation, and solutions that need them."""

import jax
import jax.numpy as jnp
import local_problems as problems
import numpy as np
import pytest

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.adaptive.jumps import jumps_of_data
from pdofm.adaptive.lengths import lengths
from pdofm.adaptive.singular import singular_points
from pdofm.discrete.cover import Cover
from pdofm.domain.tree import BoxTree
from pdofm.zoo import local


def divided(lower, upper, seed: int, cuts: int) -> BoxTree:
    """A box, cut at random."""
    rng = np.random.default_rng(seed)
    tree = BoxTree(lower, upper)
    for _ in range(cuts):
        node = int(rng.choice(tree.leaves))
        axis = int(rng.integers(len(lower)))
        low, high = tree.box(node)
        tree.split(node, axis, float(low[axis] + (high[axis] - low[axis]) * rng.uniform(0.2, 0.8)))
    return tree


def covered(domain, tree: BoxTree, degree: int) -> Cover:
    return Cover(domain, tree, dict.fromkeys(tree.leaves.tolist(), (degree,) * domain.dim), {})


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_points_are_located_in_the_leaf_that_holds_them(dim, seed):
    tree = divided([0.0] * dim, [1.0] * dim, seed, 30)
    points = np.random.default_rng(seed).random((500, dim))
    lower, upper = tree.corners(tree.arrays().locate(points))
    assert np.all((lower <= points) & (points <= upper))


def test_points_on_a_cut_belong_to_the_side_that_they_are_sent_to():
    tree = BoxTree([0.0, 0.0], [1.0, 1.0])
    first, second = tree.split(0, 0, 0.3)
    points = np.array([[0.3, 0.5], [0.3, 0.5]])
    assert tree.arrays().locate(points, np.array([[-1.0, 0.0], [1.0, 0.0]])).tolist() == [first, second]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_faces_of_leaves_cover_all_that_is_inside_the_box(dim, seed):
    """Each leaf's surface is made of its faces and of the sides of the whole box."""
    tree = divided([0.0] * dim, [1.0] * dim, seed, 20)
    faces = tree.faces()
    sides = faces.upper - faces.lower
    areas = np.prod(np.where(np.arange(dim) == faces.axis[:, None], 1.0, sides), axis=1)
    lower, upper = tree.corners(tree.leaves)
    sides = upper - lower
    surface = sum(2 * np.prod(np.delete(sides, axis, axis=1), axis=1).sum() for axis in range(dim))
    np.testing.assert_allclose(2 * areas.sum() + 2 * dim, surface)


def test_functions_in_boxes_have_the_derivatives_of_their_jets(seed):
    domain = pf.Box([0, -1], [2, 1])
    features = covered(domain, divided(domain.lower, domain.upper, seed, 6), 3).features
    rng = np.random.default_rng(seed)
    points = domain.sample(50, "random", key=seed)
    c = rng.standard_normal((features.size, 2))
    which = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1)]
    expected = features.jets(points, which) @ c
    np.testing.assert_allclose(features.expand(points, which, c), expected, rtol=1e-9, atol=1e-9)
    many = np.tile(points, (40, 1))
    np.testing.assert_allclose(features.expand(many, which, c)[:, :50], expected, rtol=1e-9, atol=1e-9)
    values = jax.vmap(features)(jnp.asarray(points))
    np.testing.assert_allclose(np.asarray(values) @ c, expected[0], rtol=1e-9, atol=1e-9)
    slopes = jax.vmap(jax.jacfwd(features.__call__))(jnp.asarray(points))
    np.testing.assert_allclose(np.einsum("nmd,mc->dnc", np.asarray(slopes), c), expected[1:3], rtol=1e-8, atol=1e-8)


def test_boxes_with_little_inside_are_merged():
    domain = pf.Disk([0, 0], 1)
    tree = BoxTree(domain.lower, domain.upper)
    for _ in range(4):
        for axis in (0, 1):
            for node in tree.leaves.tolist():
                tree.split(node, axis)
    cover = covered(domain, tree, 4)
    held = np.array([sum(cover.known[n].fraction for n in members) for members in cover.members])
    assert held.min() > 0.29
    area = sum(cover.known[n].fraction for members in cover.members for n in members) * 4 / 256
    np.testing.assert_allclose(area, np.pi, rtol=1e-2)


def check(problem, tol=1e-8, *, allowed=3.0, reference=None, **options):
    """Solve to a tolerance: the true error is below `allowed` times that, and the estimate within 10 times of it."""
    solution = solve_in_boxes(problem, tol, **options)
    assert solution.converged, solution.reason
    points = problem.domain.sample(3000, "grid")
    truth = problem.exact_values(points) if reference is None else reference(points)
    found = np.asarray(solution(points)).reshape(truth.shape)
    error = np.max(np.linalg.norm(found - truth, axis=0) / np.linalg.norm(truth, axis=0))
    assert error <= allowed * tol
    assert solution.error_estimate >= error / 10
    return solution, error


@pytest.mark.parametrize(
    "make",
    [
        local.peak,
        local.annulus_log,
        local.annulus_eccentric,
        local.four_holes,
        problems.disk,
        problems.layer_1d,
        problems.corner_singularity,
        local.mixed_side,
        problems.cubic,
        problems.stokes_smooth,
        problems.kovasznay,
        problems.wave_periodic,
    ],
    ids=lambda make: make.__name__,
)
def test_solutions_are_as_accurate_as_required_and_the_estimate_knows(make):
    _, error = check(make())
    assert error > 0


def test_the_estimate_is_not_far_too_large():
    ratios = []
    for make in (local.peak, local.front, problems.corner_singularity, local.annulus_log):
        solution, error = check(make(), 1e-6)
        ratios.append(solution.error_estimate / error)
    assert np.median(ratios) < 10


def test_torsion_of_the_square_agrees_with_its_series():
    check(local.torsion_square(), reference=problems.torsion_values)


def test_peaks_elsewhere_and_narrower_are_found(seed):
    rng = np.random.default_rng(seed)
    center, width = rng.uniform(0.2, 0.8, 2), 10 ** rng.uniform(-2, -1)
    check(local.peak(float(width), tuple(center.tolist())), 1e-7, allowed=10)


@pytest.mark.parametrize(
    ("order", "thinnest", "key"),
    [*((order, 1e-3, key) for order in (1, 2) for key in range(3)), (4, 1e-2, 0)],  # fourth derivatives lose digits
)
def test_layers_that_disturb_the_rest_of_an_interval_are_resolved(order, thinnest, key, seed):
    """In an interval, the error that a residual causes is larger elsewhere than where it is."""
    rng = np.random.default_rng(seed)
    centers, widths = rng.uniform(0.1, 0.9, 2), thinnest * 10 ** rng.uniform(0, 1.5, 2)

    def exact(x):
        return jnp.sum(jnp.tanh((x[0] - centers) / widths)) + jnp.cos(3 * x[0])

    interval = pf.Interval(0, 1)
    conditions = [pf.Dirichlet(on=interval.part("x0=lower") if order == 1 else None)]
    problem = pf.Problem(
        interval,
        operator=lambda u, x: pf.partial(u, *[0] * order)(x) * (-1 if order == 2 else 1) + u(x),
        conditions=conditions + [pf.Neumann()] * (order == 4),
        exact=exact,
    )
    check(problem, 1e-7, key=key)


def test_a_cube_is_solved():
    check(problems.smooth_cube(), 1e-6)


def test_a_solution_in_boxes_has_gradients_errors_and_a_table_of_its_search():
    solution, _ = check(local.peak(), 1e-6)
    points = np.array([[0.51, 0.49], [0.3, 0.7]])
    gradient = jax.vmap(jax.grad(solution.problem.exact))(jnp.asarray(points))
    np.testing.assert_allclose(solution.gradient(points), gradient, atol=1e-3)
    assert solution.errors().relative_l2 < 1e-5
    assert "boxes" in solution.search
    assert solution.stats.rank == solution.features.size


def test_what_is_not_reached_is_said():
    solution = solve_in_boxes(local.front(1000.0), 1e-8, max_unknowns=5000)
    assert not solution.converged
    assert "max_unknowns" in solution.reason
    assert solution.error_estimate > 1e-8


def test_corners_and_changes_of_condition_are_known():
    exponents = sorted(point.exponent for point in singular_points(problems.corner_singularity()))
    np.testing.assert_allclose(exponents, [2 / 3, 2, 2, 2, 2, 2])
    strong = [point for point in singular_points(local.mixed_side()) if point.is_strong]
    assert len(strong) == 1
    np.testing.assert_allclose(strong[0].point, 0.0, atol=1e-9)


def test_lengths_follow_from_coefficients():
    np.testing.assert_allclose(lengths(local.helmholtz_square(100.0)).waves, 100.0)
    np.testing.assert_allclose(lengths(local.reaction_layers(1e-3)).layers, 1e-3 / np.sqrt(2))
    np.testing.assert_allclose(lengths(problems.layer_1d(1e-5)).layers, 1e-5)
    assert np.isinf(lengths(local.peak()).layers).all()


@pytest.mark.parametrize("domain", [problems.SQUARE, pf.Disk([0.1, 0], 0.7)], ids=["square", "disk"])
def test_normal_derivatives_alone_leave_a_constant_free(domain):
    def exact(x):
        return jnp.cos(2 * x[0]) * jnp.cos(3 * x[1])

    slopes = problems.poisson(domain, exact, conditions=[pf.Neumann()])
    solution = solve_in_boxes(slopes, 1e-8)
    assert not solution.converged
    assert "not unique" in solution.reason
    assert "add a condition" in solution.reason
    point = pf.Condition(lambda u, x: u(x) - exact(x), [[0.3, 0.4]], name="value at a point")
    check(problems.poisson(domain, exact, conditions=[pf.Neumann(), point]))


def test_a_term_of_order_zero_determines_the_constant():
    problem = pf.Problem(
        problems.SQUARE,
        lambda u, x: -pf.laplacian(u)(x) + u(x) ** 3,
        conditions=[pf.Neumann()],
        exact=lambda x: 2 + jnp.cos(2 * x[0]) * jnp.cos(3 * x[1]),
    )
    check(problem)


def test_jumps_of_boundary_data_are_found():
    at_lid = {(0.0, 1.0), (1.0, 1.0)}
    for name, expected in (("cavity-100", at_lid), ("cavity-regular", set()), ("poisson-corner", set())):
        assert {tuple(point) for point in jumps_of_data(pf.zoo.get(name), 1e-9)} == expected


def test_boxes_are_graded_towards_jumps_of_boundary_data():
    square = pf.Box([0, 0], [1, 1])
    angle = lambda x: 2 / jnp.pi * jnp.arctan2(x[1], x[0])  # harmonic, 0 below and 1 at the left
    problem = pf.Problem(
        square,
        lambda u, x: -pf.laplacian(u)(x),
        source=0.0,
        conditions=[
            pf.Dirichlet(0.0, on=square.part("x1=lower")),
            pf.Dirichlet(1.0, on=square.part("x0=lower")),
            pf.Dirichlet(angle, on=square.part("x0=upper", "x1=upper")),
        ],
    )
    found = solve_in_boxes(problem, 1e-6)
    x = square.sample(4000)
    exact = 2 / np.pi * np.arctan2(x[:, 1], x[:, 0])
    error = np.linalg.norm(found(x) - exact) / np.linalg.norm(exact)
    assert found.converged
    assert error < 1e-6
    assert found.error_estimate > error / 3


def test_values_and_gradients_on_a_boundary_come_from_boxes_of_the_domain():
    """The boundary of the L-shape lies on cuts, beyond which boxes are outside."""
    lshape = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])
    exact = lambda x: jnp.exp(2 * x[0]) * jnp.cos(2 * x[1]) + jnp.arctan(20 * (x[0] + 0.5))
    problem = pf.Problem(lshape, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=exact)
    u = solve_in_boxes(problem, 1e-6)
    points, _ = lshape.boundary.sample(500)
    truth = np.asarray(jax.vmap(exact)(points))
    assert np.abs(u(points) - truth).max() < 1e-5
    assert np.abs(np.asarray(jax.vmap(u)(points)) - truth).max() < 1e-5
    slopes = np.asarray(jax.vmap(jax.grad(exact))(points))
    assert np.abs(u.gradient(points) - slopes).max() < 1e-4 * np.abs(slopes).max()
    flux = u.flux(lshape.boundary)
    assert float(flux) == pytest.approx(-0.1758223, abs=2e-4)
