"""Singular functions of corners, edges and holes: their derivatives, what they solve, and that a search uses them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from local_problems import torsion_cube_values

import pdofm as pf
from pdofm.domain import round_holes
from pdofm.domain.edges import straight_edges
from pdofm.domain.holes import round_bores
from pdofm.errors import FeaturesError
from pdofm.features.base import differentiated

CUBE = pf.Box([0, 0, 0], [1, 1, 1])
BRICK = pf.Box([-1, 0, 0.5], [1, 1.5, 2])
HOLED_BRICK = BRICK - pf.Ball([0.1, 0.7, 1.2], 0.3)
DRILLED = BRICK - pf.Cylinder([-0.7, 0.1, 0], [0.5, 1.0, 2.5], 0.25)  # askew
PIPE = pf.Cylinder([0, 0, 0], [0, 0, 1], 1) - pf.Cylinder([0.2, 0, -1], [0.2, 0, 2], 0.3)
PRISM = pf.Extrusion(pf.Polygon([(0, 0), (1, 0), (0.3, 0.8)]), 1)
FICHERA = pf.Box([-1, -1, -1], [1, 1, 1]) - pf.Box([0, 0, 0], [1, 1, 1])
TWO_HOLES = pf.Box([-1, -1], [2, 1]) - pf.Disk([-0.2, 0.1], 0.4) - pf.Disk([1.2, -0.2], 0.3)


def laplacian(features, points) -> np.ndarray:
    second = [tuple(2 * int(i == axis) for i in range(features.dim)) for axis in range(features.dim)]
    return features.jets(points, second).sum(axis=0)


# ---- holes


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (pf.Annulus([0.5, 1], 0.3, 1), [(0.5, 1, 0.3)]),
        (TWO_HOLES, [(-0.2, 0.1, 0.4), (1.2, -0.2, 0.3)]),
        (pf.Box([0, 0], [2, 1]) - pf.Disk([2, 1], 0.4), [(2, 1, 0.4)]),  # a notch
        (HOLED_BRICK, [(0.1, 0.7, 1.2, 0.3)]),
        (pf.Disk([0, 0], 1), []),
        (pf.Box([0, 0], [1, 1]) - pf.Box([0.3, 0.3], [0.5, 0.6]), []),
        (pf.Box([0, 0], [1, 1]) & pf.Disk([0, 0], 1.2), []),
        (pf.Interval(0, 1), []),
    ],
    ids=repr,
)
def test_round_holes_are_found_by_their_normals(domain, expected):
    found = [(*hole.center, hole.radius) for hole in round_holes(domain)]
    assert len(found) == len(expected)
    np.testing.assert_allclose(sorted(found), sorted(expected), atol=1e-12)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (DRILLED, [((-0.7, 0.1, 0), (1.2, 0.9, 2.5), 0.25)]),
        (CUBE - pf.Cylinder([0.5, 0.5, -1], [0.5, 0.5, 2], 0.2), [((0.5, 0.5, 0), (0, 0, 1), 0.2)]),
        (CUBE - pf.Cylinder([0.5, 0.5, 0.5], [0.5, 0.5, 2], 0.2), []),  # a blind hole: the axis enters the domain
        (CUBE - pf.Cylinder([0.5, 0.5, 1e-4], [0.5, 0.5, 2], 0.2), []),  # the same with a thin floor
        (PIPE, [((0.2, 0, 0), (0, 0, 1), 0.3)]),
        (HOLED_BRICK, []),
        (PRISM, []),
        (TWO_HOLES, []),
    ],
    ids=repr,
)
def test_bores_are_found_with_their_axes(domain, expected):
    found = round_bores(domain)
    assert len(found) == len(expected)
    for bore, (point, axis, radius) in zip(found, expected, strict=True):
        assert abs(bore.radius - radius) < 1e-12
        direction = np.array(axis) / np.linalg.norm(axis)
        np.testing.assert_allclose(abs(bore.frame[2] @ direction), 1.0, rtol=1e-12)
        np.testing.assert_allclose(np.cross(bore.start - point, direction), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "features",
    [
        pf.HoleFunctions(TWO_HOLES, 5),
        pf.HoleFunctions(TWO_HOLES, 6, powers=3),
        pf.HoleFunctions(HOLED_BRICK, 4),
        pf.EdgeFunctions(HOLED_BRICK, 2),
        pf.BoreFunctions(DRILLED, 4, powers=2),
        pf.EdgeFunctions(FICHERA, 1, near=pf.Box([-1, -1, 0], [0, 0, 1])),
    ],
    ids=[
        "holes in the plane",
        "more powers of r²",
        "a hole in space",
        "edges",
        "a bore",
        "edges near a re-entrant one",
    ],
)
def test_derivatives_agree_with_automatic_differentiation(features, seed):
    domain = TWO_HOLES if features.dim == 2 else HOLED_BRICK
    if features.dim == 3 and features.lower[2] == 0:
        domain = pf.Box([-1, -1, 0], [0, 0, 1])
    points = domain.sample(6, "random", key=seed)
    which = {2: [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)], 3: [(0, 0, 0), (0, 1, 0), (2, 0, 0), (0, 1, 1), (1, 0, 1)]}
    expected = differentiated(features, points, which[features.dim])
    found = features.jets(points, which[features.dim])
    assert found.shape == (5, 6, features.size)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.max(np.abs(expected)))


def test_third_derivatives_at_edges_are_there_too(seed):
    features = pf.EdgeFunctions(CUBE, 0)
    points, step = CUBE.sample(3, "random", key=seed), 1e-5
    ahead, behind = (features.jets(points + s * np.array([step, 0, 0]), [(0, 2, 0)]) for s in (1, -1))
    np.testing.assert_allclose(features.jets(points, [(1, 2, 0)]), (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("domain", [TWO_HOLES, HOLED_BRICK], ids=["plane", "space"])
def test_multipoles_are_harmonic_but_for_those_with_a_factor(domain, seed):
    features = pf.HoleFunctions(domain, 4)
    points = domain.sample(20, "random", key=seed)
    is_harmonic = np.max(np.abs(laplacian(features, points)), axis=0) < 1e-9
    each = 2 * 4 + 1 if domain.dim == 2 else 5**2
    assert np.count_nonzero(is_harmonic) >= each * len(round_holes(domain))
    assert not is_harmonic.all()


@pytest.mark.parametrize(
    ("domain", "angles"),
    [
        (BRICK, [90] * 12),
        (FICHERA, [90] * 18 + [270] * 3),
        (
            PRISM,
            [90] * 6
            + sorted(np.degrees([np.arctan2(8, 3), np.arctan2(8, 7), np.pi - np.arctan2(8, 3) - np.arctan2(8, 7)])),
        ),
        (pf.Ball([0, 0, 0], 1), []),
        (pf.Disk([0, 0], 1), []),
    ],
    ids=["brick", "Fichera's corner", "prism", "ball", "disk"],
)
def test_straight_edges_are_found_with_their_angles(domain, angles):
    found = sorted(np.degrees(edge.angle) for edge in straight_edges(domain))
    np.testing.assert_allclose(found, sorted(angles), rtol=1e-9)


def test_the_frame_of_an_edge_points_into_the_domain():
    for domain in (BRICK, FICHERA, PRISM):
        for edge in straight_edges(domain):
            middle = (edge.start + edge.end) / 2
            turn = np.linspace(0, edge.angle, 9) - (edge.angle / 2 if edge.angle > np.pi else 0.0)
            rays = np.cos(turn)[:, None] * edge.frame[0] + np.sin(turn)[:, None] * edge.frame[1]
            assert domain.contains(middle + 1e-3 * rays[1:-1]).all()
            assert np.max(np.abs(domain.level(middle + 1e-3 * rays[[0, -1]]))) < 1e-9


def test_edges_whose_line_enters_the_domain_again_are_used_in_boxes_only():
    assert [edge.ends_outside for edge in straight_edges(FICHERA) if edge.angle > np.pi] == [False] * 3
    near = pf.EdgeFunctions(FICHERA, 0, near=pf.Box([-0.1, -0.1, 0.3], [0.1, 0.1, 0.5]))
    assert np.degrees(near.angles) == pytest.approx([270])
    with pytest.raises(FeaturesError, match="no straight edges near Box"):  # it meets an edge in a point
        pf.EdgeFunctions(FICHERA, near=pf.Box([-0.1, -0.1, -0.1], [0, 0, 0]))


def test_functions_across_an_edge_are_harmonic_but_for_those_with_a_factor(seed):
    near = pf.Box([-0.5, -0.5, 0.2], [0, 0, 0.7])
    features = pf.EdgeFunctions(FICHERA, 0, near=near)
    size = np.max(np.abs(features.jets(near.sample(20, key=seed), [(2, 0, 0)])), axis=(0, 1))
    is_harmonic = np.max(np.abs(laplacian(features, near.sample(20, key=seed))), axis=0) < 1e-10 * size
    assert np.count_nonzero(is_harmonic) == 2 * 6  # the exponents 2/3, …, 4
    assert features.size == 2 * (6 + 3)


def test_the_function_of_a_vertex_solves_the_equation_and_vanishes_on_its_faces(seed):
    features = pf.EdgeFunctions(CUBE, 0)
    vertex = features.size - 4 * 8  # the first one is at the origin
    points = CUBE.sample(20, "random", key=seed)
    np.testing.assert_allclose(laplacian(features, points)[:, vertex], -np.pi / 2, rtol=1e-12)
    for axis in range(3):
        on_face = np.where(np.arange(3) == axis, 0.0, points)
        np.testing.assert_allclose(features.jets(on_face, [(0, 0, 0)])[0, :, vertex], 0.0, atol=1e-15)


def test_domains_without_edges_or_holes_are_refused():
    with pytest.raises(FeaturesError, match=r"Box.* has no round hole .* Use the smooth basis alone"):
        pf.HoleFunctions(pf.Box([0, 0], [1, 1]))
    with pytest.raises(FeaturesError, match=r"Ball.* has no straight edges .* Use the smooth basis alone"):
        pf.EdgeFunctions(pf.Ball([0, 0, 0], 1))
    with pytest.raises(FeaturesError, match=r"Box.* has no round bore .* Use the smooth basis alone"):
        pf.BoreFunctions(HOLED_BRICK)


def test_they_are_saved_and_refuse_to_move(tmp_path):
    for features in (pf.HoleFunctions(TWO_HOLES, 3, powers=2), pf.EdgeFunctions(CUBE, 1), pf.BoreFunctions(PIPE, 2)):
        pf.save(tmp_path / "f", features)
        points = np.full((1, features.dim), 0.7)
        assert np.array_equal(
            pf.load(tmp_path / "f").jets(points, [(0,) * features.dim]), features.jets(points, [(0,) * features.dim])
        )
        with pytest.raises(FeaturesError, match="Make them anew"):
            features.on(pf.Box([0] * features.dim, [1] * features.dim))


# ---- what a search does with them


def poisson(domain, source, exact=None) -> pf.Problem:
    condition = pf.Dirichlet(0.0) if exact is None else pf.Dirichlet()
    return pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), source, [condition], exact=exact)


def test_a_cube_with_a_constant_source_is_solved_in_spite_of_its_edges():
    u = pf.solve(poisson(CUBE, 1.0), tol=1e-8)
    assert u.converged
    assert u.space == "polynomials and singular functions"
    points = 0.2 + 0.6 * CUBE.sample(300, "random", key=1)  # where the series converges fast
    np.testing.assert_allclose(u(points), torsion_cube_values(points)[:, 0], rtol=3e-8)


def test_the_source_at_a_cube_may_vary():
    problem = poisson(CUBE, lambda x: jnp.exp(x[0] - 2 * x[1] + x[2]))
    u, finer = (pf.solve(problem, tol=tol) for tol in (1e-3, 1e-4))
    points = CUBE.sample(500, "random", key=1)
    assert u.converged
    assert np.linalg.norm(u(points) - finer(points)) <= 3e-3 * np.linalg.norm(finer(points))


@pytest.mark.parametrize("center", [(0.1, 0.7, 1.2), (0.0, 0.75, 1.25)])
def test_a_source_inside_a_round_hole_in_space_is_seen_from_outside(center):
    exact = lambda x: 1 / jnp.linalg.norm(x - jnp.array(center)) + x[0] * x[1]
    u = pf.solve(poisson(HOLED_BRICK, 0.0, exact), tol=1e-6)
    assert u.converged
    assert u.errors().relative_l2 <= 3e-6


def test_a_small_hole_off_the_center_of_a_ball_gets_points_enough():
    # Its surface is a fortieth of that of the ball, but more than half of the functions live there.
    domain = pf.Ball([0, 0, 0], 1) - pf.Ball([0.3, 0.1, 0.2], 0.15)
    problem = pf.Problem(
        domain,
        lambda u, x: -pf.laplacian(u)(x),
        source=0.0,
        conditions=[pf.Dirichlet()],
        exact=lambda x: 1 / jnp.linalg.norm(x - jnp.array([0.34, 0.1, 0.2])) + x[0],
    )
    for degree, largest in ((6, 1e-3), (12, 1e-7)):  # like (0.04 / 0.15)^degree
        features = pf.Concatenate(pf.Chebyshev(domain, degree=6), pf.HoleFunctions(domain, degree))
        solution = pf.solve(problem, features, tol=10 * largest)
        assert solution.converged
        assert solution.errors().relative_l2 < largest


def test_a_bore_through_a_solid_is_seen_from_outside():
    # Sources on lines inside the bore, with a strength that varies along them; both satisfy Laplace's equation.
    def exact(x):
        near, far = x[:2] - jnp.array([0.45, 0.5]), x[:2] - jnp.array([0.55, 0.52])
        square = far @ far
        return x[2] * jnp.log(near @ near) + far[0] / square + x[0] * x[1]

    domain = CUBE - pf.Cylinder([0.5, 0.5, -1], [0.5, 0.5, 2], 0.2)
    u = pf.solve(poisson(domain, 0.0, exact), tol=1e-5)
    assert u.converged
    assert u.space == "polynomials and singular functions"
    assert u.errors().relative_l2 <= 3e-5


def test_sources_inside_round_holes_in_the_plane_are_seen_from_outside():
    exact = lambda x: jnp.log(jnp.linalg.norm(x + jnp.array([0.25, -0.05]))) - 2 * x[0] / (x @ x + 0.1)
    domain = pf.Disk([0, 0], 1) - pf.Disk([-0.2, 0.0], 0.5)
    u = pf.solve(poisson(domain, None, exact), tol=1e-8)
    assert u.converged
    assert u.errors().relative_l2 <= 3e-8


@pytest.mark.parametrize("angles", [(0.0, 2.1, 4.0), (0.3, 1.2, 2.9, 4.4)])
def test_polygons_with_a_constant_source_are_solved_in_spite_of_their_corners(angles):
    """Two searches agree that use different spaces: singular functions, and boxes."""
    problem = poisson(pf.Polygon(np.stack([np.cos(angles), np.sin(angles)], axis=1)), 1.0)
    u = pf.solve(problem, tol=1e-9)
    assert u.converged
    assert u.space == "polynomials and singular functions"
    from pdofm.adaptive.boxes import solve_in_boxes

    boxes = solve_in_boxes(problem, 1e-9)
    points = problem.domain.sample(1000, "random", key=1)
    assert boxes.converged
    assert np.linalg.norm(u(points) - boxes(points)) <= 3e-9 * np.linalg.norm(u(points))


def test_where_nothing_is_singular_polynomials_are_not_held_up():
    u = pf.solve(pf.zoo.get("poisson-square"), tol=1e-10)
    assert {attempt.space for attempt in u.attempts} == {"polynomials"}


def test_corner_functions_take_exponents_that_do_not_follow_from_the_angle():
    square = pf.Box([0, 0], [1, 1])
    features = pf.CornerFunctions(square, convex=True, degree=0, first=0.4, highest=0.8)
    assert features.size == 4 * 2 * 2
    points = square.sample(200)
    # At the corner in the origin, whose bisector is the diagonal: r^0.8 cos 0.8(θ - π/4), a harmonic function.
    r, angle = np.hypot(*points.T), np.arctan2(points[:, 1], points[:, 0]) - np.pi / 4
    values, *second = features.jets(points, [(0, 0), (2, 0), (0, 2)])
    target = r**0.8 * np.cos(0.8 * angle)
    assert np.linalg.norm(values @ np.linalg.lstsq(values, target)[0] - target) < 1e-12 * np.linalg.norm(target)
    assert np.abs(sum(second)).max() < 1e-9 * np.abs(second).max()
    with pytest.raises(FeaturesError, match="an exponent between 0 and"):
        pf.CornerFunctions(square, convex=True, first=5.0, highest=1.0)


CORNERS = {
    "square": (pf.Box([0, 0], [1, 1]), [(0, 0), (1, 0), (1, 1)]),
    "triangle": (pf.Polygon([(0, 0), (1, 0), (0.2, 0.9)]), [(0, 0), (1, 0), (0.2, 0.9)]),
    "cube": (CUBE, [(0, 0, 0), (1, 1, 1), (0, 0, 0.5), (1, 0.3, 1)]),
    "brick": (BRICK, [(-1, 0, 0.5), (1, 1.5, 2), (-1, 1.0, 2), (0.3, 0, 0.5)]),
}
"""Domains with some of their vertices and points of their edges, where functions of corners are singular."""


@pytest.mark.parametrize("name", CORNERS)
def test_solutions_have_their_boundary_values_in_corners_and_on_edges(name):
    """Where all angles are convex, the gradient vanishes there, too."""
    domain, places = CORNERS[name]
    singular = pf.CornerFunctions(domain, convex=True) if domain.dim == 2 else pf.EdgeFunctions(domain)
    u = pf.solve(poisson(domain, 1.0), pf.Concatenate(pf.Chebyshev(domain, 200), singular), tol=0.5)
    at, scale = np.array(places, dtype=float), float(np.abs(u(domain.sample(500))).max())
    assert np.abs(u(at)).max() < 1e-2 * scale
    assert np.abs(u.gradient(at)).max() < 0.1 * scale
    compiled = np.asarray(jax.vmap(u.features)(jnp.asarray(at)))
    assert np.abs(compiled - u.features.jets(at, [(0,) * domain.dim])[0]).max() < 1e-12


def test_a_gradient_that_is_not_bounded_in_a_corner_is_not_a_number():
    lshape = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])
    corner, features = np.zeros((1, 2)), pf.CornerFunctions(lshape, degree=0)
    values, slope = features.jets(corner, [(0, 0), (1, 0)])
    assert np.array_equal(values, np.zeros((1, features.size)))
    assert np.array_equal(np.isnan(slope[0]), features.orders < 1)
    compiled = np.asarray(jax.jacfwd(features)(jnp.zeros(2)))[:, 0]
    assert np.array_equal(np.isnan(compiled), features.orders < 1)


def test_derivatives_by_differentiation_are_those_of_the_formulas_also_in_a_corner():
    square = pf.Box([0, 0], [1, 1])
    features = pf.CornerFunctions(square, convex=True, degree=0)
    at = np.array([[0.0, 0.0], [0.3, 0.4]])
    second = np.asarray(jax.vmap(jax.jacfwd(jax.jacfwd(features)))(jnp.asarray(at)))
    for (i, j), index in {(0, 0): (2, 0), (0, 1): (1, 1), (1, 1): (0, 2)}.items():
        closed = features.jets(at, [index])[0]
        assert np.array_equal(np.isnan(second[:, :, i, j]), np.isnan(closed))
        assert np.allclose(second[:, :, i, j], closed, rtol=1e-11, atol=1e-11, equal_nan=True)
