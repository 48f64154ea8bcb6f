"""Every domain: interior points, boundary points with normals, measures, names; and the errors."""

import json
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipe

from pdofm.domain import (
    Annulus,
    Ball,
    Box,
    Cone,
    Curve,
    Cylinder,
    Disk,
    Domain,
    Ellipse,
    Extrusion,
    Implicit,
    Interval,
    Mesh,
    Polygon,
    Revolution,
    Shell,
    SpaceTime,
    Torus,
)
from pdofm.domain.files import describe, restored
from pdofm.errors import DomainError, PdofmError, UnknownNameError
from pdofm.numerics.sampling import SAMPLINGS

PI = math.pi
LENS = 2 * PI / 3 - math.sqrt(3) / 2  # two unit disks whose centers are 1 apart
TURN = PI / 6
ELLIPSE = 4 * 1.5 * ellipe(1 - 1 / 9)  # the circumference for half-axes 1.5 and 0.5
TRIANGLE = [[0, 0], [2, 0], [0, 1]]
SQUARE = Box([-1, -1], [1, 1])


def turned(center, side, angle) -> Polygon:
    corners = side / 2 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return Polygon(np.asarray(center) + corners @ rotation.T)


def cube_mesh() -> Mesh:
    corners = [[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return Mesh(vertices=corners, faces=[[q[0], q[i], q[i + 1]] for q in quads for i in (1, 2)])


def flower(s):
    """The curve r = 1 + 0.2 cos(3 φ)."""
    radius, angle = 1 + 0.2 * jnp.cos(6 * PI * s), 2 * PI * s
    return radius * jnp.cos(angle), radius * jnp.sin(angle)


def flower_length() -> float:
    angle = np.arange(400) * 2 * PI / 400  # the trapezoidal rule: exact up to rounding for periodic functions
    return 2 * PI * float(np.mean(np.hypot(1 + 0.2 * np.cos(3 * angle), 0.6 * np.sin(3 * angle))))


@dataclass
class Case:
    build: Callable[[], Domain]
    measure: float
    boundary: float
    accuracy: float = 1e-13  # relative, of both measures


CASES = {
    "interval": Case(lambda: Interval(-1, 2), 3, 2),
    "rectangle": Case(lambda: Box([-1, 0], [1, 3]), 6, 10),
    "cube": Case(lambda: Box([0, 0, 0], [1, 2, 3]), 6, 22),
    "box-4d": Case(lambda: Box([0] * 4, [1] * 4), 1, 8),
    "far-box": Case(lambda: Box([1e3, -1e3], [1e3 + 1, -1e3 + 1]), 1, 4),
    "disk": Case(lambda: Disk([1, 2], 0.5), PI / 4, PI),
    "unit-disk": Case(Disk, PI, 2 * PI),
    "ball": Case(lambda: Ball([1, 0, -1], 2), 32 * PI / 3, 16 * PI),
    "ball-2d": Case(lambda: Ball([0, 0], 1), PI, 2 * PI),
    "ball-10d": Case(lambda: Ball([0] * 10, 1), PI**5 / 120, PI**5 / 12),
    "annulus": Case(Annulus, 0.75 * PI, 3 * PI),
    "shell": Case(Shell, 4 / 3 * PI * 7 / 8, 5 * PI),
    "shell-5d": Case(lambda: Shell([0] * 5, 1, 2), 8 * PI**2 / 15 * 31, 8 * PI**2 / 3 * 17),
    "triangle": Case(lambda: Polygon(TRIANGLE), 1, 3 + math.sqrt(5)),
    "clockwise-triangle": Case(lambda: Polygon(TRIANGLE[::-1]), 1, 3 + math.sqrt(5)),
    "polygon-with-holes": Case(
        lambda: Polygon(
            [[0, 0], [4, 0], [4, 4], [2, 1], [0, 4], [0, 0]],
            [[[1, 0.5], [1, 1], [0.5, 1]], [[3, 0.5], [3.5, 1], [3, 1]]],
        ),
        9.75,
        12 + 2 * math.sqrt(13) + 2 * (1 + math.sqrt(0.5)),
    ),
    "ellipse": Case(lambda: Ellipse([1, 2], 0.5, 1.5), 0.75 * PI, ELLIPSE),
    "turned-ellipse": Case(lambda: Ellipse([0, 1], 1.5, 0.5, angle=0.7), 0.75 * PI, ELLIPSE),
    "round-ellipse": Case(lambda: Ellipse([0, 0], 1, 1), PI, 2 * PI),
    "flower": Case(lambda: Curve(flower), 1.02 * PI, flower_length()),
    "clockwise-flower": Case(lambda: Curve(lambda s: flower(-s)), 1.02 * PI, flower_length()),
    "circle-through-points": Case(
        lambda: Curve([[math.cos(2 * PI * k / 8), math.sin(2 * PI * k / 8)] for k in range(8)]), PI, 2 * PI
    ),
    "half-ellipse": Case(lambda: Ellipse([0, 0], 1.5, 0.5) & Box([-2, 0], [2, 2]), 0.375 * PI, ELLIPSE / 2 + 3),
    "square-with-elliptic-hole": Case(lambda: SQUARE - Ellipse([0, 0], 0.75, 0.25), 4 - 3 * PI / 16, 8 + ELLIPSE / 2),
    "cylinder": Case(lambda: Cylinder([1, 0, 0], [1, 2, 0], 0.5), PI / 2, 2.5 * PI),
    "oblique-cylinder": Case(lambda: Cylinder([0, 0, 1], [1, 2, 3], 0.5), 0.75 * PI, 3.5 * PI),
    "cone": Case(lambda: Cone([0, 0, 0], [0, 0, 2], 1), 2 * PI / 3, PI * (1 + math.sqrt(5))),
    "truncated-cone": Case(lambda: Cone([0, 0, 0], [2, 0, 0], 1, 0.5), 7 * PI / 6, PI * (1.25 + 1.5 * math.sqrt(4.25))),
    "torus": Case(lambda: Torus([0, 0, 1], 1, 0.4), 0.32 * PI**2, 1.6 * PI**2),
    "oblique-torus": Case(lambda: Torus([1, 0, 0], 1, 0.4, axis=[1, 1, 0]), 0.32 * PI**2, 1.6 * PI**2),
    "extruded-l-shape": Case(lambda: Extrusion(SQUARE - Box([0, 0], [1, 1]), (1, 3)), 6, 22),
    "extruded-ellipse": Case(lambda: Extrusion(Ellipse([0, 0], 1.5, 0.5), 2), 1.5 * PI, 1.5 * PI + 2 * ELLIPSE),
    "ball-by-revolution": Case(lambda: Revolution(Disk([0, 1], 2)), 32 * PI / 3, 16 * PI),
    "ring-by-revolution": Case(lambda: Revolution(Box([1, 0], [2, 1])), 3 * PI, 12 * PI),
    "pipe-by-revolution": Case(lambda: Revolution(Box([0, 0], [2, 1])), 4 * PI, 12 * PI),
    "cube-with-a-drilled-hole": Case(
        lambda: Box([-1, -1, -1], [1, 1, 1]) - Cylinder([0, 0, -2], [0, 0, 2], 0.5),
        8 - PI / 2,
        24 - PI / 2 + 2 * PI,
        accuracy=1e-3,
    ),
    "moved-disk": Case(lambda: Disk().scaled(2).translated([1, 2]), 4 * PI, 4 * PI),
    "turned-box": Case(lambda: Box([0, 0], [1, 2]).rotated(0.4), 2, 6),
    "turned-l-shape": Case(lambda: (SQUARE - Box([0, 0], [1, 1])).rotated(0.3, about=[1, 1]).scaled(0.5), 0.75, 4),
    "turned-flower": Case(lambda: Curve(flower).rotated(0.3).scaled(3, about=[1, 0]), 9.18 * PI, 3 * flower_length()),
    "turned-polygon": Case(lambda: Polygon(TRIANGLE).rotated(1).translated([5, 0]), 1, 3 + math.sqrt(5)),
    "turned-ellipse-by-method": Case(lambda: Ellipse([1, 0], 0.5, 1.5).rotated(0.7), 0.75 * PI, ELLIPSE),
    "turned-cube": Case(lambda: Box([0] * 3, [1, 2, 3]).rotated(0.5, axis=[1, 2, 2]).scaled(2), 48, 88),
    "turned-torus": Case(
        lambda: Torus([1, 0, 0], 1, 0.4).rotated(0.5, axis=[1, 0, 0]).rotated(0.4), 0.32 * PI**2, 1.6 * PI**2
    ),
    "moved-interval": Case(lambda: Interval(0, 1).scaled(3).translated([2]), 3, 2),
    "implicit-ellipse": Case(
        lambda: Implicit(lambda x: (x[0] / 1.5) ** 2 + (x[1] / 0.5) ** 2 - 1, [-2, -1], [2, 1]), 0.75 * PI, ELLIPSE
    ),
    "implicit-ring": Case(
        lambda: Implicit(lambda x: (jnp.sum(x**2) - 1) * (jnp.sum(x**2) - 0.25), [-2, -2], [2, 2]), 0.75 * PI, 3 * PI
    ),
    "two-implicit-disks": Case(
        lambda: Implicit(
            lambda x: jnp.minimum((x[0] - 1) ** 2 + x[1] ** 2, (x[0] + 1) ** 2 + x[1] ** 2) - 0.25, [-2, -2], [2, 2]
        ),
        0.5 * PI,
        2 * PI,
    ),
    "implicit-disk-minus-box": Case(
        lambda: Implicit(lambda x: jnp.sum(x**2) - 1, [-2, -2], [2, 2]) - Box([-2, -2], [2, 0]), PI / 2, PI + 2
    ),
    "implicit-ball": Case(
        lambda: Implicit(lambda x: jnp.sum((x - 1) ** 2) - 1, [-0.3] * 3, [2.3] * 3), 4 / 3 * PI, 4 * PI, accuracy=1e-6
    ),
    "implicit-torus": Case(
        lambda: Implicit(lambda x: (jnp.hypot(x[0], x[1]) - 1) ** 2 + x[2] ** 2 - 0.16, [-2, -2, -1], [2, 2, 1]),
        0.32 * PI**2,
        1.6 * PI**2,
        accuracy=1e-4,
    ),
    "mesh-of-a-cube": Case(cube_mesh, 1, 6),
    "mesh-of-an-octahedron": Case(
        lambda: Mesh(
            vertices=[[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]],
            faces=[[i, (i + 1) % 4, 4] for i in range(4)] + [[(i + 1) % 4, i, 5] for i in range(4)],
        ),
        4 / 3,
        4 * math.sqrt(3),
    ),
    "mesh-minus-ball": Case(
        lambda: cube_mesh() - Ball([0, 0, 0], 0.5), 1 - PI / 48, 6 - 3 * PI / 16 + PI / 8, accuracy=1e-3
    ),
    "two-intervals": Case(lambda: Interval(0, 1) | Interval(2, 3), 2, 4),
    "touching-intervals": Case(lambda: Interval(0, 1) | Interval(1, 3), 3, 2),
    "interval-minus-middle": Case(lambda: Interval(0, 3) - Interval(1, 2), 2, 4),
    "l-shape": Case(lambda: SQUARE - Box([0, 0], [1, 1]), 3, 8),
    "disk-with-square-hole": Case(lambda: Disk() - Box([-0.2, -0.2], [0.2, 0.3]), PI - 0.2, 2 * PI + 1.8),
    "disk-with-disk-hole": Case(lambda: Disk() - Disk([0.3, 0.2], 0.1), 0.99 * PI, 2.2 * PI),
    "two-disks": Case(lambda: Disk() | Disk([1, 0]), 2 * PI - LENS, 8 * PI / 3),
    "lens": Case(lambda: Disk() & Disk([1, 0]), LENS, 4 * PI / 3),
    "moon": Case(lambda: Disk() - Disk([1, 0]), PI - LENS, 2 * PI),
    "half-disk": Case(lambda: Disk() & Box([-2, 0], [2, 2]), PI / 2, PI + 2),
    "half-disk-by-an-oblique-cut": Case(
        lambda: Disk([3, 1]) - turned([3 + math.cos(TURN), 1 + math.sin(TURN)], 2, TURN), PI / 2, PI + 2
    ),
    "touching-boxes": Case(lambda: Box([0, 0], [1, 1]) | Box([1, 0], [2, 1]), 2, 6),
    "boxes-that-touch-in-part": Case(lambda: Box([0, 0], [1, 1]) | Box([1, 0.5], [2, 2]), 2.5, 8),
    "triangles-with-a-common-edge": Case(
        lambda: Polygon([[0, 0], [3, 0], [2, 1]]) | Polygon([[0, 0], [2, 1], [0, 3]]), 4.5, 6 + 3 * math.sqrt(2)
    ),
    "difference-with-a-touching-box": Case(lambda: Box([0, 0], [1, 1]) - Box([1, 0], [2, 1]), 1, 4),
    "square-minus-inscribed-disk": Case(lambda: SQUARE - Disk(), 4 - PI, 8 + 2 * PI),
    "disks-that-touch-inside": Case(lambda: Disk() - Disk([0.5, 0], 0.5), 0.75 * PI, 3 * PI),
    "disks-that-touch-outside": Case(lambda: Disk() | Disk([2, 0]), 2 * PI, 4 * PI),
    "shallow-cut": Case(
        lambda: Disk() & Box([-2, -2], [2, 1 - 1e-6]),
        PI - math.acos(1 - 1e-6) + (1 - 1e-6) * math.sin(math.acos(1 - 1e-6)),
        2 * PI - 2 * math.acos(1 - 1e-6) + 2 * math.sin(math.acos(1 - 1e-6)),
    ),
    "union-with-itself": Case(lambda: Disk() | Disk(), PI, 2 * PI),
    "intersection-with-itself": Case(lambda: SQUARE & Box([-1, -1], [1, 1]), 4, 8),
    "star": Case(lambda: SQUARE | turned([0, 0], 2, PI / 4), 4 + 4 * (math.sqrt(2) - 1) ** 2, 16 * (2 - math.sqrt(2))),
    "small-notch": Case(lambda: SQUARE - Disk([1, 0.12345], 1e-4), 4 - PI / 2 * 1e-8, 8 + (PI - 2) * 1e-4),
    "notched-twice": Case(
        lambda: ((Box([0, 0], [1, 1]) | Box([1, 0], [2, 1])) - Disk([1, 0.5], 0.25)) - Box([0, 0], [0.3, 0.3]),
        2 - PI / 16 - 0.09,
        6 + PI / 2,
    ),
    "nested": Case(
        lambda: SQUARE - (Disk() - Disk([0, 0], 0.5)) - Box([0, -2], [2, 2]), 2 - 3 * PI / 8, 4 + 1 + PI + PI / 2
    ),
    "cube-minus-ball": Case(
        lambda: Box([0] * 3, [1] * 3) - Ball([0, 0, 0], 0.5), 1 - PI / 48, 6 - 3 * PI / 16 + PI / 8, accuracy=1e-3
    ),
    "cube-minus-cube": Case(lambda: Box([-1] * 3, [1] * 3) - Box([0] * 3, [1] * 3), 7, 24, accuracy=1e-3),
    "carved-cube": Case(
        lambda: (Box([0] * 3, [1] * 3) - Ball([0, 0, 0], 0.5)) - Ball([1, 1, 1], 0.5),
        1 - PI / 24,
        6 - 3 * PI / 8 + PI / 4,
        accuracy=1e-3,
    ),
    "interval-in-time": Case(lambda: SpaceTime(Interval(0, 2), 3), 6, 6),
    "disk-in-time": Case(lambda: SpaceTime(Disk(), (1, 2.5)), 1.5 * PI, 3 * PI),
    "l-shape-in-time": Case(lambda: SpaceTime(SQUARE - Box([0, 0], [1, 1]), (-1, 1)), 6, 16),
    "carved-cube-in-time": Case(
        lambda: SpaceTime(Box([0] * 3, [1] * 3) - Ball([0, 0, 0], 0.5), 2),
        2 - PI / 24,
        12 - 3 * PI / 8 + PI / 4,
        accuracy=1e-3,
    ),
}


@pytest.fixture(params=CASES, scope="module")
def case(request) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def domain(case) -> Domain:
    return case.build()


def space_of(domain: Domain) -> Domain:
    return domain.space if isinstance(domain, SpaceTime) else domain


@pytest.mark.parametrize("kind", SAMPLINGS)
def test_interior_points_are_strictly_inside_and_as_many_as_asked_for(domain, kind):
    points = domain.sample(100, kind)
    assert points.dtype == np.float64
    assert len(points) >= 100 if kind == "grid" else len(points) == 100
    assert points.shape[1] == domain.dim
    assert (domain.level(points) > 1e-12 * domain.size).all()
    assert domain.contains(points).all()
    assert (points > domain.lower).all()
    assert (points < domain.upper).all()


@pytest.mark.parametrize("kind", ["random", "sobol", "clustered"])
def test_points_are_reproduced_by_their_key(domain, kind):
    np.testing.assert_array_equal(domain.sample(20, kind, key=3), domain.sample(20, kind, key=3))
    assert not np.array_equal(domain.sample(20, kind, key=3), domain.sample(20, kind, key=4))
    for first, again in zip(
        domain.boundary.sample(20, kind, key=3), domain.boundary.sample(20, kind, key=3), strict=True
    ):
        np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("kind", SAMPLINGS)
def test_boundary_points_are_on_the_boundary_with_unit_outward_normals(domain, kind):
    points, normals = domain.boundary.sample(200, kind)
    space = space_of(domain)
    assert points.shape == normals.shape
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-15)
    x, n = points[:, : space.dim], normals[:, : space.dim]
    rounding = 1e-15 * max(space.size, np.abs(space.lower).max(), np.abs(space.upper).max())
    assert np.abs(space.level(x)).max() <= 4 * rounding
    step = 1e-9 * space.size
    # Half a step of tolerance: the level is 0 also on the face that touching domains share.
    good = space.contains(x - step * n, tol=0.5 * step) & ~space.contains(x + step * n, tol=-0.5 * step)
    assert good.mean() > 0.98
    # Only in a corner or a cusp, where boundaries of other directions are next to it, may a step lead elsewhere.
    others, other_normals = space.boundary.sample(4000, "grid")
    for point, normal in zip(x[~good], n[~good], strict=True):
        near = np.linalg.norm(others - point, axis=1) < 2e-3 * space.size
        assert (other_normals[near] @ normal).min() < 0.9


def test_the_boundary_gives_the_number_of_points_asked_for(domain):
    points, _ = domain.boundary.sample(200)
    if domain.dim > 1:
        assert len(points) == 200
    else:
        assert len(points) == len(domain.pieces)
    assert len(domain.boundary.sample(1)[0]) == len(domain.pieces)
    if domain.dim > 1:
        assert len(domain.boundary.sample(200, "grid")[0]) >= 200


def test_measures_are_exact(case, domain):
    assert domain.measure == pytest.approx(case.measure, rel=case.accuracy)
    assert domain.boundary.measure == pytest.approx(case.boundary, rel=case.accuracy)


def test_the_divergence_theorem_holds(domain):
    """The integral of (x - center).n over the boundary is dim times the measure, if nothing is missing or doubled."""
    if domain.has_time:
        pytest.skip("the lateral boundary is not closed")
    center = 0.5 * (domain.lower + domain.upper)
    total = 0.0
    for piece in domain.pieces:
        points, normals = piece.sample(4096, "sobol", np.random.default_rng(0))
        total += piece.measure * np.mean(np.sum((points - center) * normals, axis=1))
    assert total == pytest.approx(domain.dim * domain.measure, rel=3e-3)


def test_the_level_is_no_more_than_the_distance_to_the_boundary(domain):
    points, surface = domain.sample(50), domain.boundary.sample(500)[0]
    distances = np.linalg.norm(points[:, None] - surface[None], axis=-1).min(axis=1)
    assert (domain.level(points) <= distances + 1e-12).all()


def test_the_bounding_box_contains_the_boundary(domain):
    points, _ = domain.boundary.sample(500)
    assert (points >= domain.lower - 1e-15 * domain.size).all()
    assert (points <= domain.upper + 1e-15 * domain.size).all()
    assert domain.size == (domain.upper - domain.lower).max()


def test_parts_are_found_by_name_and_make_up_the_boundary(domain):
    names = domain.boundary.names
    assert sum(domain.part(name).measure for name in names) == pytest.approx(domain.boundary.measure, rel=1e-14)
    assert domain.part(*names).measure == pytest.approx(domain.boundary.measure, rel=1e-14)
    with pytest.raises(UnknownNameError, match=r"Unknown part 'nowhere'.*Known: "):
        domain.part("nowhere")


def test_domains_show_what_they_are_and_cannot_be_changed(domain):
    symbol = getattr(domain, "symbol", None)
    assert repr(domain).startswith(f"{type(domain).__name__}(") if symbol is None else f" {symbol} " in repr(domain)
    assert "measure" in repr(domain.boundary)
    with pytest.raises(AttributeError, match="immutable"):
        domain.lower = np.zeros(domain.dim)
    with pytest.raises(AttributeError, match="immutable"):
        domain.measure = 1.0
    with pytest.raises(ValueError, match="read-only"):
        domain.lower[0] = 5.0
    assert domain != CASES["disk"].build()
    assert len({domain, domain}) == 1


def test_where_cuts_every_boundary_into_two_parts(domain):
    middle = 0.01 * domain.size + np.mean(domain.boundary.sample(100)[0][:, 0])
    if domain.has_time:
        left = domain.boundary.where(lambda x, t: x[0] < middle)
        right = domain.boundary.where(lambda x, t: x[0] >= middle)
    else:
        left = domain.boundary.where(lambda x: x[0] < middle)
        right = domain.boundary.where(lambda x: x[0] >= middle)
    exact = all(piece.dim < 2 for piece in domain.pieces)
    assert left.measure + right.measure == pytest.approx(domain.boundary.measure, rel=1e-13 if exact else 1e-3)
    points, normals = left.sample(100)
    assert (points[:, 0] < middle + 1e-14 * domain.size).all()
    assert points.shape == normals.shape
    assert set(left.names) | set(right.names) == set(domain.boundary.names)
    assert (left | right).names == tuple(dict.fromkeys(left.names + right.names))


def test_domains_are_restored_from_numbers_and_by_pickle(domain):
    if domain.arguments is None:
        with pytest.raises(pickle.PicklingError, match="given by a function"):
            pickle.dumps(domain)
        return
    points, normals = domain.boundary.sample(30)
    for again in (restored(json.loads(json.dumps(describe(domain)))), pickle.loads(pickle.dumps(domain))):
        assert (type(again), repr(again)) == (type(domain), repr(domain))
        np.testing.assert_array_equal(again.boundary.sample(30), (points, normals))
        np.testing.assert_array_equal(
            again.level(domain.candidates(np.full((1, domain.dim), 0.3))),
            domain.level(domain.candidates(np.full((1, domain.dim), 0.3))),
        )


# ---- parts ----


def test_box_faces_have_their_coordinate_exactly():
    box = Box([-0.1, 0.3], [0.2, 0.7])
    for axis in (0, 1):
        for side, corner in enumerate((box.lower, box.upper)):
            points, normals = box.face(axis, side).sample(50)
            assert (points[:, axis] == corner[axis]).all()
            assert (normals[:, axis] == (-1, 1)[side]).all()


def test_grids_on_curves_are_equispaced():
    points, _ = Disk().boundary.sample(8, "grid")
    gaps = np.linalg.norm(points - np.roll(points, -1, axis=0), axis=1)
    np.testing.assert_allclose(gaps, 2 * np.sin(PI / 8), rtol=1e-14)
    np.testing.assert_allclose(
        np.sort(Box([0, 0], [1, 1]).face(0, 1).sample(4, "grid")[0][:, 1]), [1 / 8, 3 / 8, 5 / 8, 7 / 8]
    )


def test_an_arc_that_crosses_the_start_of_the_circle_is_one_piece():
    right = Disk().boundary.where(lambda x: x[0] > 0)
    assert len(right.pieces) == 1
    assert right.measure == pytest.approx(PI, rel=1e-14)
    assert (right.sample(100, "random")[0][:, 0] > -1e-15).all()


def test_points_are_shared_in_proportion_to_measure():
    points, _ = Box([0, 0], [3, 1]).boundary.sample(80)
    assert [int(np.sum(points[:, axis] == value)) for axis, value in [(0, 0), (0, 3), (1, 0), (1, 1)]] == [
        10,
        10,
        30,
        30,
    ]


def test_clustered_points_are_denser_at_the_boundary():
    for domain in (Disk(), SQUARE - Box([0, 0], [1, 1]), SQUARE):
        uniform, clustered = (
            np.mean(domain.level(domain.sample(4000, kind)) < 0.02) for kind in ("sobol", "clustered")
        )
        assert clustered > 1.8 * uniform
    points, _ = SQUARE.face(0, 0).sample(1000, "clustered")
    assert np.mean(np.abs(points[:, 1]) > 0.98) > 0.1
    around, _ = Disk().boundary.sample(1000, "clustered")
    assert np.linalg.norm(around.mean(axis=0)) < 1e-2  # a circle has no ends to cluster at


def test_spheres_are_sampled_uniformly_in_any_dimension():
    for dim in (2, 3, 4, 7):
        _, normals = Ball([0] * dim).boundary.sample(2**13)
        np.testing.assert_allclose(normals.mean(axis=0), 0, atol=2e-3)
        np.testing.assert_allclose(normals.T @ normals / len(normals), np.eye(dim) / dim, atol=2e-3)


def test_balls_are_sampled_uniformly_in_high_dimension():
    radii = np.linalg.norm(Ball([0] * 12).sample(2**13), axis=1)
    assert np.mean(radii**12 < 0.5) == pytest.approx(0.5, abs=0.01)
    radii = np.linalg.norm(Shell([0] * 6, 1, 2).sample(2**13), axis=1)
    assert np.mean(radii**6 < 32.5) == pytest.approx(0.5, abs=0.01)


def test_annulus_names_its_circles():
    annulus = Annulus()
    assert annulus.boundary.names == ("inner", "outer")
    points, normals = annulus.part("inner").sample(10)
    np.testing.assert_allclose(normals, -2 * points, rtol=1e-14)


def test_polygon_edges_are_named_in_the_order_of_the_vertices():
    points, normals = Polygon(TRIANGLE).part("edge1").sample(10)
    np.testing.assert_allclose(points @ [1, 2], 2, rtol=1e-15)
    np.testing.assert_allclose(normals, np.tile([1, 2] / np.sqrt(5), (10, 1)), rtol=1e-15)
    domain = CASES["polygon-with-holes"].build()
    assert domain.boundary.names[-3:] == ("hole1-edge0", "hole1-edge1", "hole1-edge2")


# ---- combinations ----


def test_nothing_is_left_of_removed_faces():
    lshape = SQUARE - Box([0, 0], [1, 1])
    points, _ = lshape.boundary.sample(1000)
    assert not ((points[:, 0] == 1) & (points[:, 1] > 0)).any()
    assert not ((points[:, 1] == 1) & (points[:, 0] > 0)).any()
    both = Box([0, 0], [1, 1]) | Box([1, 0], [2, 1])
    assert not (both.boundary.sample(1000)[0][:, 0] == 1).any()


def test_names_are_kept_and_numbered_where_they_clash():
    lshape = SQUARE - Box([0, 0], [1, 1])
    assert lshape.boundary.names == ("x0=lower", "x0=upper", "x1=lower", "x1=upper", "x0=lower#2", "x1=lower#2")
    assert (lshape - Box([-1, -1], [-0.5, -0.5])).boundary.names[-2:] == ("x0=upper#2", "x1=upper#2")
    assert (SQUARE - Disk([0, 0], 0.5)).boundary.names[-1] == "circle"
    inner = SQUARE - Box([0, 0], [0.5, 0.5]) - Box([-0.5, -0.5], [-0.1, -0.1])
    assert "x0=lower#3" in inner.boundary.names
    assert lshape.face(0, 1).measure == 1.0
    assert lshape.part("x0=lower#2").sample(5)[0][:, 0].tolist() == [0.0] * 5


def test_cuts_are_exact_at_oblique_crossings():
    lens = Disk() & Disk([1, 0])
    ends = np.concatenate([piece.chart(np.array([[0.0], [1.0]]))[0] for piece in lens.pieces])
    np.testing.assert_allclose(np.abs(ends), np.tile([0.5, math.sqrt(0.75)], (4, 1)), rtol=1e-14)


def test_trimming_composes():
    quarter = (Disk() & Box([-2, 0], [2, 2])).boundary.where(lambda x: x[0] > 0).where(lambda x: x[1] > 0.6)
    assert quarter.measure == pytest.approx(math.acos(0.6), rel=1e-14)
    cap = Ball().boundary.where(lambda x: x[2] > 0).where(lambda x: x[0] > 0)
    assert cap.measure == pytest.approx(PI, rel=2e-3)
    assert cap.where(lambda x: x[0] > -5).measure == cap.measure


# ---- space-time ----


def test_space_time_has_its_lateral_boundary_and_slices():
    domain = SpaceTime(Disk(), (1, 2))
    assert (domain.has_time, domain.dim, domain.t0, domain.t1) == (True, 3, 1.0, 2.0)
    points, normals = domain.boundary.sample(64)
    assert (normals[:, -1] == 0).all()
    assert ((points[:, -1] > 1) & (points[:, -1] < 2)).all()
    for time, sign in [(1.0, -1), (1.5, 1), (2.0, 1)]:
        part = domain.at(time)
        points, normals = part.sample(50)
        assert points.shape == (50, 3)
        assert (points[:, -1] == time).all()
        assert Disk().contains(points[:, :-1]).all()
        assert (normals == [0, 0, sign]).all()
        assert part.measure == PI
    assert (domain.initial.sample(5)[0][:, -1] == 1).all()


@pytest.mark.parametrize("kind", SAMPLINGS)
@pytest.mark.parametrize(
    "space", [Interval(0, 2), SQUARE, Disk(), Interval(0, 1) | Interval(2, 3), SQUARE - Disk()], ids=repr
)
def test_slices_are_sampled_like_the_space(space, kind):
    points, _ = SpaceTime(space, 1).initial.sample(64, kind, key=3)
    if kind == "clustered" and not space.is_box:
        assert len(points) == 64
    np.testing.assert_allclose(points[:, :-1], space.sample(64, kind, key=3), rtol=1e-15)


def test_parts_of_a_space_time_are_cut_by_space_and_time():
    domain = SpaceTime(Interval(0, 1), 2)
    assert domain.face(0, 1).where(lambda x, t: t < 0.3).measure == pytest.approx(0.3, rel=1e-14)
    assert domain.initial.where(lambda x, t: x[0] < 1 / 3).measure == pytest.approx(1 / 3, rel=1e-14)
    points, _ = SpaceTime(Disk(), 1).initial.where(lambda x, t: (x[0] > 0) & (t < 1)).sample(40)
    assert points.shape == (40, 3)
    assert (points[:, 0] > 0).all()


# ---- errors ----

ERRORS = {
    "upside-down box": (lambda: Box([0, 1], [1, 0]), "expected lower < upper along every axis"),
    "box of two shapes": (
        lambda: Box([0, 0], [1, 1, 1]),
        r"upper corner of a box has shape \(3,\); expected 2 numbers",
    ),
    "scalar box": (lambda: Box(0, 1), r"lower corner of a box has shape \(\); expected a list of numbers"),
    "infinite box": (lambda: Box([0, 0], [1, np.inf]), "expected finite numbers"),
    "words": (lambda: Box(["a"], ["b"]), "expected a list of numbers"),
    "empty interval": (lambda: Interval(1, 1), "expected lower < upper"),
    "nan interval": (lambda: Interval(0, np.nan), "end of an interval is .*expected finite numbers"),
    "no radius": (lambda: Disk(radius=0), "radius of Disk is 0; expected a positive number"),
    "negative radius": (lambda: Ball(radius=-1), "radius of Ball is -1; expected a positive number"),
    "nan radius": (lambda: Ball(radius=np.nan), "radius of Ball is .*expected finite numbers"),
    "disk in space": (lambda: Disk([0, 0, 0]), r"center of Disk has shape \(3,\); expected 2 numbers"),
    "ball on a line": (lambda: Ball([0]), "expected 2 or more. In one dimension use Interval"),
    "inside out": (lambda: Annulus(inner=1, outer=1), "radii of Annulus are inner=1, outer=1; expected inner < outer"),
    "shell without hole": (lambda: Shell(inner=0), "inner radius of Shell is 0; expected a positive number"),
    "flat ellipse": (lambda: Ellipse(a=1, b=0), "half-axes of Ellipse are a=1, b=0; expected positive numbers"),
    "open curve": (lambda: Curve(lambda s: (s, s**2)), "not resolved by 8192 points.*Check that it closes"),
    "cornered curve": (lambda: Curve(lambda s: (jnp.abs(s - 0.5), jnp.sin(2 * PI * s))), "has no corner"),
    "eight": (
        lambda: Curve(lambda s: (jnp.sin(4 * PI * s), jnp.sin(2 * PI * s) + 0.1 * jnp.cos(2 * PI * s))),
        "crosses itself; expected a simple closed curve",
    ),
    "curve of one number": (lambda: Curve(lambda s: (s, s, s)), "expected 2 coordinates"),
    "curve through two points": (lambda: Curve([[0, 0], [1, 0]]), "A curve through 2 points encloses nothing"),
    "flat cylinder": (lambda: Cylinder([1, 1, 1], [1, 1, 1]), "starts and ends at .1, 1, 1.; expected two different"),
    "inverted cone": (lambda: Cone(end_radius=-1), "end radius of Cone is -1; expected 0 or a positive number"),
    "thick torus": (lambda: Torus(radius=1, tube=1), "expected tube < radius"),
    "extruded cube": (lambda: Extrusion(Ball(), 1), "Extrusion was given Ball.*expected a domain in the plane"),
    "flat extrusion": (lambda: Extrusion(Disk(), 0), "expected a positive number or a pair z0 < z1"),
    "lopsided profile": (lambda: Revolution(Disk([0.5, 0])), "crosses the axis but is not symmetric"),
    "half a disk": (lambda: Revolution(Disk() & Box([0, -2], [2, 2])), "touches the axis; expected it together with"),
    "turned interval": (lambda: Interval(0, 1).rotated(1), "a rotation needs a plane, or three dimensions"),
    "moved evolution": (lambda: SpaceTime(Disk(), 1).translated([1, 1, 0]), "includes time; move its space first"),
    "shrunk to nothing": (lambda: Disk().scaled(0), "factor is 0; expected a positive number"),
    "no axis": (lambda: Ball().rotated(1, axis=[0, 0, 0]), "axis has length 0"),
    "implicit nothing": (lambda: Implicit(lambda x: 1 + x[0] ** 2, [0, 0], [1, 1]), "nowhere negative on a grid"),
    "implicit cut off": (
        lambda: Implicit(lambda x: jnp.sum(x**2) - 1, [0, -2], [2, 2]),
        "negative on a side of its box",
    ),
    "implicit corner": (
        lambda: Implicit(lambda x: jnp.abs(x).max() - 1, [-2, -2], [2, 2]),
        "not resolved|gradient other",
    ),
    "implicit vector": (lambda: Implicit(lambda x: x, [0, 0], [1, 1]), "expected one number at a point"),
    "implicit numpy": (lambda: Implicit(lambda x: np.sin(x)[0], [0, 0], [1, 1]), "write it with jax.numpy"),
    "implicit line": (lambda: Implicit(lambda x: x[0], [0], [1]), "expected lower < upper in 2 or 3 dimensions"),
    "open mesh": (
        lambda: Mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], faces=[[0, 1, 2]]),
        "not a closed surface: 3 of 3 edges",
    ),
    "mesh of nothing": (lambda: Mesh("nowhere.stl"), "There is no file 'nowhere.stl'"),
    "mesh of both": (Mesh, "takes the path of a file, or vertices= and faces="),
    "no such vertex": (lambda: Mesh(vertices=np.eye(3), faces=[[0, 1, 7]]), "names vertex 7; expected indices from 0"),
    "bow tie": (lambda: Polygon([[0, 0], [1, 1], [1, 0], [0, 1]]), "not valid: Self-intersection"),
    "two vertices": (lambda: Polygon([[0, 0], [1, 1]]), "has 2 distinct vertices; expected at least 3"),
    "closed segment": (lambda: Polygon([[0, 0], [1, 1], [0, 0]]), "has 2 distinct vertices"),
    "flat polygon": (lambda: Polygon([[0, 0], [1, 1], [2, 2]]), "not valid|area 0"),
    "repeated vertex": (lambda: Polygon([[0, 0], [1, 0], [1, 0], [0, 1]]), "Vertex 1 of the polygon is repeated"),
    "polygon in space": (lambda: Polygon(np.eye(3)), r"shape \(3, 3\); expected \(n, 2\)"),
    "ragged polygon": (lambda: Polygon([[0, 0], [1], [1, 1]]), r"not numbers; expected shape \(n, 2\)"),
    "nan polygon": (lambda: Polygon([[0, 0], [1, 0], [1, np.nan]]), "infinite or NaN"),
    "hole outside": (lambda: Polygon(TRIANGLE, [[[5, 5], [6, 5], [5, 6]]]), "Hole lies outside shell"),
    "hole across": (lambda: Polygon(TRIANGLE, [[[0.1, 0.1], [5, 0.2], [0.1, 0.2]]]), "not valid: Self-intersection"),
    "flat hole": (lambda: Polygon(TRIANGLE, [[[0.1, 0.1], [0.2, 0.1]]]), "hole 0 of the polygon has 2"),
    "mixed dimensions": (lambda: Disk() - Ball(), "dimension 2 and .*dimension 3; expected equal dimensions"),
    "nothing left": (lambda: Disk() - Disk(radius=2), "is empty: none of 16384 points"),
    "nothing in common": (lambda: Disk() & Disk([3, 0]), "is empty.*Expected domains that overlap"),
    "nothing but a face": (lambda: Box([0, 0], [1, 1]) & Box([1, 0], [2, 1]), "is empty"),
    "too far out": (lambda: Box([1e9, 0], [1e9 + 1, 1]) - Disk([1e9, 0], 0.5), "Move it closer to the origin"),
    "difference of space-times": (lambda: SpaceTime(Disk(), 1) - Ball(), "Combine the spaces first"),
    "union with a space-time": (lambda: Ball() | SpaceTime(Disk(), 1), "Combine the spaces first"),
    "space-time of a space-time": (lambda: SpaceTime(SpaceTime(Disk(), 1), 1), "already includes time"),
    "no time": (lambda: SpaceTime(Disk(), 0), "time of SpaceTime is 0; expected a positive number or a pair t0 < t1"),
    "time backwards": (lambda: SpaceTime(Disk(), (1, 0)), "expected a positive number or a pair"),
    "three times": (lambda: SpaceTime(Disk(), (0, 1, 2)), r"shape \(3,\); expected 2 numbers"),
    "too late": (lambda: SpaceTime(Disk(), 1).at(2), "time is 2; expected a number between t0=0 and t1=1"),
    "no such side": (lambda: SQUARE.face(0, 2), "side of a face is 2; expected 0"),
    "no such axis": (lambda: SQUARE.face(2, 0), "has no face 'x2=lower'; its parts are x0=lower"),
    "face of a disk": (lambda: Disk().face(0, 0), "has no face 'x0=lower'; its parts are circle"),
    "unnamed part": (SQUARE.part, "was given no name; expected at least one of x0=lower"),
    "one point": (lambda: SQUARE.level([0.0, 0.0]), r"shape \(2,\) given to Box.*expected \(n, 2\), one point per row"),
    "wrong points": (lambda: SQUARE.contains(np.zeros((4, 3))), r"shape \(4, 3\)"),
    "no points": (lambda: SQUARE.sample(0), "expected an integer of at least 1"),
    "no boundary points": (lambda: SQUARE.boundary.sample(0), "expected an integer of at least 1"),
    "strange key": (lambda: SQUARE.sample(1, key="a"), "expected a non-negative integer or one JAX random key"),
    "nowhere": (lambda: Disk().boundary.where(lambda x: x[0] > 2), "predicate holds nowhere on Part.circle"),
    "and": (lambda: Disk().boundary.where(lambda x: x[0] > 0 and x[1] > 0), "Write & . ~ instead of and"),
    "if": (lambda: Disk().boundary.where(lambda x: True if x[0] > 0 else False), "jnp.where instead of if"),  # noqa: SIM210
    "numpy": (lambda: Disk().boundary.where(lambda x: np.asarray(x)[0] > 0), "jnp instead of np"),
    "no comparison": (lambda: Disk().boundary.where(lambda x: x[0]), "returned float64 of shape .. at a point"),
    "vector": (
        lambda: Disk().boundary.where(lambda x: x > 0),
        r"returned bool of shape \(2,\) at a point; expected a single bool",
    ),
    "no time in predicate": (
        lambda: SpaceTime(Disk(), 1).boundary.where(lambda x: x[0] > 0),
        r"cannot be called as predicate\(x, t\)",
    ),
    "parts of two dimensions": (lambda: Disk().boundary | Ball().boundary, "expected two parts of one domain"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_mistakes_are_explained(name):
    mistake, message = ERRORS[name]
    with pytest.raises(PdofmError, match=message) as caught:
        mistake()
    assert isinstance(caught.value, DomainError)


def test_unknown_sampling_is_refused():
    with pytest.raises(UnknownNameError, match="Unknown sampling 'halton'"):
        SQUARE.sample(10, "halton")
    with pytest.raises(UnknownNameError, match="Unknown sampling 'halton'"):
        SQUARE.boundary.sample(10, "halton")


def test_only_domains_combine_with_domains():
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = SQUARE - 1  # pyright: ignore[reportOperatorIssue]
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = SQUARE.boundary | SQUARE  # pyright: ignore[reportOperatorIssue]


def test_predicates_may_use_jax_functions():
    part = Disk().boundary.where(lambda x: jnp.where(x[1] > 0, x[0] > 0, x[0] < 0))
    assert part.measure == pytest.approx(PI, rel=1e-14)
    assert len(part.pieces) == 2
