"""Meshes with data: read back what was written, and fill the domain."""

import meshio
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import DomainError, UnknownNameError
from pdofm.output.export import mesh, to_arrays, write_vtk
from pdofm.output.solid import surface

SQUARE = pf.Box([-1, -1], [1, 1])
PENTAGON = pf.Polygon(
    [(-1, -0.8), (0.9, -1), (1.2, 0.4), (0, 1.1), (-1.2, 0.5)], holes=[[(-0.3, -0.3), (0.4, -0.2), (0, 0.4)]]
)


def volumes(grid) -> np.ndarray:
    """Lengths, areas or volumes of cells; signed where VTK has an orientation."""
    corners = grid.points[grid.cells]
    edge = [corners[:, i] - corners[:, 0] for i in range(1, corners.shape[1])]
    match grid.kind:
        case "line":
            return edge[0][:, 0]
        case "triangle":
            return 0.5 * np.linalg.det(np.stack(edge, axis=1))
        case "quad":
            return np.linalg.det(np.stack([edge[0], edge[2]], axis=1))
        case "wedge":
            return 0.5 * np.linalg.det(np.stack([edge[1], edge[0], edge[2]], axis=1))
        case "tetra":
            return np.linalg.det(np.stack(edge, axis=1)) / 6
        case "hexahedron":
            return np.linalg.det(np.stack([edge[0], edge[2], edge[3]], axis=1))
    raise AssertionError(grid.kind)


@pytest.mark.parametrize("suffix", [".vtu", ".vtk", ".VTU"])
def test_a_file_gives_back_the_values_of_the_solution(annulus, tmp_path, suffix):
    path = tmp_path / f"u{suffix}"
    annulus.to_vtk(path, resolution=12)
    assert list(path.parent.iterdir()) == [path]
    read = meshio.read(path, file_format=suffix[1:].lower())
    points = read.points[:, :2].astype(np.float64)  # big-endian in .vtk files
    assert read.points.shape[1] == 3
    assert (read.points[:, 2] == 0).all()
    np.testing.assert_array_equal(read.point_data["u"].ravel(), annulus(points))
    errors = abs(annulus(points) - annulus.problem.exact_values(points)[:, 0])
    np.testing.assert_array_equal(read.point_data["error"].ravel(), errors)
    assert errors.max() < 0.05


def test_vectors_of_a_system_have_three_entries(system, tmp_path):
    write_vtk(system, tmp_path / "u.vtu", resolution=6)
    read = meshio.read(tmp_path / "u.vtu")
    points = read.points[:, :2]
    assert set(read.point_data) == {"v", "p", "error_v", "error_p"}
    np.testing.assert_array_equal(read.point_data["v"], np.pad(system.v(points), ((0, 0), (0, 1))))
    np.testing.assert_array_equal(read.point_data["p"], system.p(points))
    difference = system(points) - system.problem.exact_values(points)
    np.testing.assert_array_equal(read.point_data["error_v"], np.linalg.norm(difference[:, :2], axis=1))
    np.testing.assert_array_equal(read.point_data["error_p"], abs(difference[:, 2]))


def test_time_is_the_second_axis_of_a_space_time_and_no_error_is_written_without_an_exact_solution(tmp_path):
    u = pf.solve(pf.zoo.get("heat").replace(exact=None), 60)
    write_vtk(u, tmp_path / "u.vtu", resolution=5)
    read = meshio.read(tmp_path / "u.vtu")
    assert set(read.point_data) == {"u"}
    assert [(block.type, len(block.data)) for block in read.cells] == [("quad", 25)]
    np.testing.assert_array_equal(read.point_data["u"], u(read.points[:, :1], read.points[:, 1]))


@pytest.mark.parametrize(
    ("domain", "kind"),
    [
        (pf.Interval(0, 2), "line"),
        (pf.Interval(0, 2) - pf.Interval(0.51, 0.77), "line"),
        (pf.Interval(0, 2) - pf.Interval(1.23, 2), "line"),
        (SQUARE, "quad"),
        (pf.Box([0, 0], [3, 1]), "quad"),
        (pf.SpaceTime(pf.Interval(0, 1) | pf.Interval(2, 3), (1, 2)), "quad"),
        (pf.Box([0, 0, 0], [1, 2, 0.1]), "hexahedron"),
        (pf.SpaceTime(SQUARE, 2), "hexahedron"),
        (SQUARE - pf.Box([0, 0], [1, 1]), "triangle"),
        (SQUARE | pf.Box([1, -1], [2, 0]), "triangle"),
        (PENTAGON, "triangle"),
        (pf.SpaceTime(PENTAGON, 2), "wedge"),
        (SQUARE - pf.Disk((0, 0), 1e-3), "triangle"),
    ],
    ids=repr,
)
def test_straight_domains_are_filled_exactly_by_cells_of_positive_size(domain, kind):
    grid = mesh(domain, 10)
    assert grid.kind == kind
    assert np.unique(grid.cells).size == len(grid.points)
    assert domain.contains(grid.points, tol=1e-9).all()
    assert (volumes(grid) > 0).all()
    assert volumes(grid).sum() == pytest.approx(domain.measure, rel=1e-6)


@pytest.mark.parametrize(
    "domain",
    [pf.Disk((1, 2), 3), pf.Annulus((0, 0), 0.25, 1), SQUARE - pf.Disk((0, 0), 0.5), pf.Disk() & pf.Disk((0.8, 0.3))],
    ids=repr,
)
def test_the_area_of_curved_domains_converges_with_the_square_of_the_cell_size(domain):
    missing = [abs(volumes(mesh(domain, n)).sum() / domain.measure - 1) for n in (10, 20, 40)]
    assert missing[0] < 0.05
    assert missing[1] < missing[0] / 3
    assert missing[2] < missing[1] / 3


DRILLED = pf.Box([0, 0, 0], [2, 1, 1]) - pf.Cylinder([1, 0.5, -0.1], [1, 0.5, 1.1], 0.3)
SOLIDS = {
    "ball": (pf.Ball(), 4 * np.pi / 3, 4 * np.pi),
    "drilled": (DRILLED, 2 - 0.09 * np.pi, 10 - 2 * 0.09 * np.pi + 0.6 * np.pi),
    "cylinder": (pf.Cylinder([0, 0, 0], [0, 0, 2], 1), 2 * np.pi, 6 * np.pi),
    "turned": (pf.Box([0, 0, 0], [1, 1, 1]).rotated(0.5, axis=[1, 1, 0]), 1.0, None),
}


@pytest.mark.parametrize("name", SOLIDS)
def test_the_mesh_of_a_solid_follows_its_boundary(name):
    domain, volume, area = SOLIDS[name]
    missing = []
    for resolution in (10, 20, 40):
        grid = mesh(domain, resolution)
        faces = surface(grid.cells)
        assert (volumes(grid) > 0).all()
        assert np.unique(grid.cells).size == len(grid.points)
        assert domain.contains(grid.points, tol=1e-8).all()
        assert abs(domain.level(grid.points[np.unique(faces)])).max() < 1e-5  # no face is left inside
        corners = grid.points[faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2
        np.testing.assert_allclose(normals.sum(axis=0), 0, atol=1e-12)  # a closed surface
        inside = np.sum(corners.mean(axis=1) * normals) / 3  # the volume, by Gauss' theorem
        assert inside == pytest.approx(volumes(grid).sum(), rel=1e-10)
        missing.append((volumes(grid).sum() / volume - 1, np.linalg.norm(normals, axis=1).sum() / (area or 1) - 1))
    errors = np.abs(missing)
    assert (errors[1:, 0] < errors[:-1, 0] / 3).all()  # O(h²)
    if area is not None:
        assert errors[2, 1] < 1e-3


def test_no_cell_fills_a_notch_whose_corners_are_all_on_the_boundary():
    notched = pf.Box([-1, -1, -1], [1, 1, 1]) - pf.Box([0, 0, 0], [1, 1, 1])
    assert volumes(mesh(notched, 2)).sum() == pytest.approx(7)


def test_arrays_carry_points_unknowns_and_errors(system):
    points = np.array([[0.5, 0.25], [-0.5, 0.0]])
    arrays = to_arrays(system, points)
    assert set(arrays) == {"points", "v", "p", "error_v", "error_p"}
    np.testing.assert_array_equal(arrays["points"], points)
    np.testing.assert_array_equal(arrays["v"], system.v(points))
    assert SQUARE.contains(to_arrays(system)["points"]).all()
    with pytest.raises(DomainError, match=r"Points have shape \(2,\); expected \(n, 2\)"):
        to_arrays(system, [0.5, 0.25])


def test_wrong_requests_are_refused_before_anything_is_written(annulus, tmp_path):
    with pytest.raises(UnknownNameError, match=r"mesh 'u.stl': '.stl'.*Known: .vtk, .vtu"):
        annulus.to_vtk(tmp_path / "u.stl")
    with pytest.raises(DomainError, match="resolution is 0; expected at least 1"):
        annulus.to_vtk(tmp_path / "u.vtu", resolution=0)
    assert not list(tmp_path.iterdir())
    with pytest.raises(DomainError, match="has 5 dimensions; a mesh has at most 3"):
        mesh(pf.Box([0] * 5, [1] * 5))
    with pytest.raises(DomainError, match="A grid with resolution 1 has no cell inside"):
        mesh(pf.Ball(), 1)
