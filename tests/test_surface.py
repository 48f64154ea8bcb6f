"""Pictures in three dimensions: what they show, and what a cut opens."""

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import pdofm as pf
from pdofm.errors import DomainError
from pdofm.output.surface import interactive, plot_surface, skin

CUBE = pf.Box([0, 0, 0], [1, 1, 1])


@pytest.fixture(scope="module", params=["cube", "hollow"])
def solution(request):
    domain = CUBE if request.param == "cube" else pf.Ball() - pf.Ball([0, 0, 0], 0.4)
    problem = pf.Problem(
        domain, lambda u, x: u(x), conditions=[pf.Dirichlet()], exact=lambda x: x[0] + 2 * x[1] - jnp.square(x[2])
    )
    return pf.solve(problem, pf.Chebyshev(domain, degree=2))


def faces(figure) -> list[np.ndarray]:
    """The triangles of all views, as matplotlib has them."""
    drawn = [each for ax in figure.axes for each in ax.collections if hasattr(each, "do_3d_projection")]
    return [np.asarray(each.get_facecolor()) for each in drawn]


def test_two_views_show_the_surface_and_what_lies_behind_a_cut(solution, tmp_path):
    figure = solution.plot_surface(tmp_path / "u.png", resolution=8)
    whole, opened = faces(figure)
    assert len(whole) > 100
    assert len(opened) > 100
    assert Image.open(tmp_path / "u.png").convert("L").getextrema()[0] < 100


def test_the_skin_of_a_domain_is_its_boundary(solution):
    domain = solution.problem.domain
    points, triangles = skin(domain, 16)
    assert abs(domain.level(points)).max() < 1e-6
    corners = points[triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum() / 2
    assert area == pytest.approx(domain.boundary.measure, rel=0.02)


def test_a_cut_that_removes_nothing_or_everything_leaves_one_view(solution):
    domain = solution.problem.domain
    assert len(faces(plot_surface(solution, cut=domain.upper, resolution=5))) == 1
    beyond = [domain.lower[0] - 1, domain.upper[1] + 1, domain.lower[2] - 1]
    assert len(faces(plot_surface(solution, cut=beyond, resolution=5))) == 1


def test_plotly_shows_the_values_on_the_surface_or_as_a_graph(solution):
    (drawn,) = interactive(solution, cut=True, resolution=8).data
    points = np.column_stack([drawn.x, drawn.y, drawn.z])
    np.testing.assert_allclose(drawn.intensity, solution(points))
    plane = pf.solve(pf.zoo.get("poisson-lshape"), pf.Chebyshev(pf.zoo.get("poisson-lshape").domain, degree=14))
    (graph,) = plane.show(resolution=12).data
    np.testing.assert_allclose(graph.z, plane(np.column_stack([graph.x, graph.y])))


def test_a_plane_has_no_surface_to_draw(annulus):
    with pytest.raises(DomainError, match=r"is no solid.*Use u.plot\(\)"):
        annulus.plot_surface()
