"""Shapes in use: problems solved on them, names of their parts, files, pictures."""

import json
import math

import jax.numpy as jnp
import meshio
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import pdofm as pf
from pdofm.errors import DomainError, UnknownNameError


def blob(x):
    return x[0] ** 2 + x[1] ** 2 - 1 - 0.3 * jnp.sin(4 * x[0] + 1) * jnp.cos(5 * x[1])


PLANE = {
    "ellipse": lambda: pf.Ellipse([1, 2], 0.5, 1.5, angle=0.3),
    "curve": lambda: pf.Curve([[math.cos(k / 2), math.sin(k / 2) + 0.2 * math.cos(k)] for k in range(12)]),
    "implicit": lambda: pf.Implicit(blob, [-2, -1.8], [2, 1.8]),
    "elliptic hole": lambda: pf.Box([-1, -1], [1, 1]) - pf.Ellipse([0, 0], 0.75, 0.25),
    "turned": lambda: (pf.Box([-1, -1], [1, 1]) - pf.Disk([0.2, 0], 0.3)).rotated(0.3),
}
SOLID = {
    "cylinder": lambda: pf.Cylinder([1, 0, 0], [1, 2, 0], 0.5),
    "cone": lambda: pf.Cone([0, 0, 0], [0, 0, 2], 1),
    "torus": lambda: pf.Torus([0, 0, 0], 1, 0.4, axis=[1, 0, 1]),
    "extrusion": lambda: pf.Extrusion(pf.Ellipse([0, 0], 1, 0.5), 1),
    "implicit": lambda: pf.Implicit(lambda x: jnp.sum(x**2) - 1 + 0.3 * x[0] * x[1] * x[2], [-1.5] * 3, [1.5] * 3),
    "mesh": lambda: sphere_mesh(100),
}


def sphere_mesh(count: int) -> pf.Mesh:
    """The convex hull of points of the unit sphere, spread along a spiral."""
    k = np.arange(count) + 0.5
    z, angle = 1 - 2 * k / count, math.pi * (1 + math.sqrt(5)) * k
    points = np.stack([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z], axis=1)
    faces = ConvexHull(points).simplices
    a, b, c = np.moveaxis(points[faces], 1, 0)
    inward = np.sum(np.cross(b - a, c - a) * a, axis=1) < 0
    return pf.Mesh(vertices=points, faces=np.where(inward[:, None], faces[:, ::-1], faces))


def laplace(domain: pf.Domain) -> pf.Problem:
    """Laplace's equation with a known solution: a source outside of the domain, and an entire function."""
    source = np.asarray(domain.lower) - 0.3 * domain.size

    def exact(x):
        square = jnp.sum((x - source) ** 2)
        return (jnp.log(square) if domain.dim == 2 else square**-0.5) + jnp.exp(x[0]) * jnp.cos(x[1])

    return pf.Problem(
        domain, lambda u, x: pf.laplacian(u)(x), source=0.0, exact=exact, conditions=[pf.Dirichlet()], name="laplace"
    )


@pytest.mark.parametrize("name", PLANE)
def test_laplace_is_solved_to_a_tolerance_in_the_plane(name):
    u = pf.solve(laplace(PLANE[name]()), tol=1e-8)
    assert u.converged
    assert u.errors().relative_l2 < 1e-8


@pytest.mark.parametrize("name", SOLID)
def test_laplace_is_solved_to_a_tolerance_in_space(name):
    u = pf.solve(laplace(SOLID[name]()), tol=1e-5)
    assert u.converged
    assert u.errors().relative_l2 < 1e-5


# ---- names ----


def test_given_names_are_shared_by_several_domains():
    holes = [pf.Disk([x, 0], 0.2).named("holes") for x in (-1, 0, 1)]
    plate = pf.Box([-2, -1], [2, 1]).named({"x0=lower": "clamp"}) - holes[0] - holes[1] - holes[2]
    assert plate.boundary.names == ("clamp", "x0=upper", "x1=lower", "x1=upper", "holes")
    assert plate.part("holes").measure == pytest.approx(1.2 * math.pi, rel=1e-13)
    assert plate.part("clamp").measure == pytest.approx(2.0)
    for changed in (plate.rotated(0.2), pf.SpaceTime(plate, 1)):
        assert changed.boundary.names == plate.boundary.names
    assert plate.named({"holes": "rims"}).part("rims").measure == plate.part("holes").measure


def test_only_parts_that_exist_are_named():
    with pytest.raises(UnknownNameError, match="Unknown part 'edge'"):
        pf.Disk().named({"edge": "rim"})
    with pytest.raises(DomainError, match="expected a word"):
        pf.Disk().named("")


# ---- files ----


def test_a_mesh_is_read_from_stl_and_says_how_many_digits_it_allows(tmp_path):
    coarse, fine = sphere_mesh(100), sphere_mesh(1600)
    assert 1.0 < coarse.digits < 2.0
    assert fine.digits - coarse.digits == pytest.approx(math.log10(16), abs=0.2)  # 16 times as many triangles
    farthest = 1 - np.linalg.norm(fine.surface.corners.mean(axis=1), axis=1).min()
    assert farthest / 3 < fine.deviation < 3 * farthest
    path = tmp_path / "a part.stl"
    meshio.Mesh(coarse.surface.vertices, [("triangle", coarse.surface.faces)]).write(path)
    again = pf.Mesh(path)
    assert again.measure == pytest.approx(coarse.measure, rel=1e-6)  # STL has single precision
    assert "a part.stl" in repr(again)
    assert "digits" in repr(again)


def test_polygons_are_read_from_geojson(tmp_path):
    path = tmp_path / "land.geojson"
    square, hole = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]], [[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]]
    far = [[5, 0], [6, 0], [6, 1], [5, 0]]
    path.write_text(json.dumps({"type": "MultiPolygon", "coordinates": [[square, hole], [far]]}))
    assert pf.read_geojson(path).measure == pytest.approx(15.5)
    path.write_text(
        json.dumps({"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [square]}})
    )
    assert pf.read_geojson(path).measure == pytest.approx(16)
    path.write_text("no json")
    with pytest.raises(DomainError, match="not valid GeoJSON"):
        pf.read_geojson(path)
    path.write_text(json.dumps({"type": "Point", "coordinates": [1, 2]}))
    with pytest.raises(DomainError, match="has no polygon"):
        pf.read_geojson(path)
    with pytest.raises(DomainError, match="There is no file"):
        pf.read_geojson(tmp_path / "nowhere")


def test_paths_are_read_from_svg(tmp_path):
    path = tmp_path / "outline.svg"
    circle = "M -1,0 A 1,1 0 1,1 1,0 A 1,1 0 1,1 -1,0 Z"
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg"><path d="M -4 -2 H 4 V 6 H -4 Z"/><path d="{circle}"/></svg>'
    )
    domain = pf.read_svg(path)
    assert domain.measure == pytest.approx(64 - math.pi, rel=1e-3)
    np.testing.assert_allclose([domain.lower, domain.upper], [[-4, -6], [4, 2]])  # the second axis points upwards
    path.write_text("<svg")
    with pytest.raises(DomainError, match="cannot be read as SVG"):
        pf.read_svg(path)


# ---- pictures ----


@pytest.mark.parametrize(
    "domain",
    [pf.Interval(0, 1), pf.Disk() - pf.Ellipse(b=0.2, a=0.3), pf.Cylinder(), pf.SpaceTime(pf.Disk(), 1)],
    ids=repr,
)
def test_domains_are_drawn_with_the_names_of_their_parts(domain, tmp_path):
    figure = domain.plot(tmp_path / "domain.png")
    space = domain.space if isinstance(domain, pf.SpaceTime) else domain
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert shown == list(space.boundary.names)
    assert (tmp_path / "domain.png").stat().st_size > 5000


def test_a_domain_of_four_dimensions_is_not_drawn():
    with pytest.raises(DomainError, match="a picture shows at most 3"):
        pf.Box([0] * 4, [1] * 4).plot()
