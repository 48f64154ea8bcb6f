"""Figures: what they show, that they follow the domain, and that they leave nothing behind."""

import subprocess
import sys
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.colors import LogNorm
from matplotlib.path import Path

import pdofm as pf
from pdofm.errors import DomainError, UnknownNameError
from pdofm.output.parts import symbol
from pdofm.output.plot import (
    Section,
    error_limits,
    error_panel,
    line_panel,
    new_figure,
    outline,
    plot_solution,
    save,
    sections,
    solution_panel,
    title,
)

SQUARE = pf.Box([-1, -1], [1, 1])
LSHAPE = SQUARE - pf.Box([0, 0], [1, 1])
HOLE = pf.Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], holes=[[(1, 1), (2, 1), (2, 3)]])


def smooth(domain, **options) -> pf.Solution:
    """A smooth solution on any domain; features enough for two digits."""
    return pf.solve(
        pf.Problem(
            domain, lambda u, *z: u(*z), conditions=[pf.Dirichlet()], exact=lambda *z: jnp.sin(z[0][0]), **options
        ),
        80,
    )


def panels(figure) -> list:
    """The axes of the panels, without those of colour bars."""
    return list(figure.axes)


def bars(figure) -> list[str]:
    return [inset.get_title() for ax in figure.axes for inset in ax.child_axes]


def area(*loops: np.ndarray) -> float:
    """The signed area within closed curves: positive if what they enclose is on their left."""
    return sum(0.5 * float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) for x, y in (loop.T for loop in loops))


@pytest.mark.parametrize(
    "domain",
    [
        SQUARE,
        LSHAPE,
        HOLE,
        pf.Disk((1, 2), 3),
        pf.Annulus((0, 0), 0.25, 1),
        SQUARE | pf.Box([1, -1], [2, 0]),
        SQUARE - pf.Disk((1, 1), 0.5),
        (pf.Disk() | pf.Box([0, -0.5], [2, 0.5])) - pf.Disk((0.2, 0), 0.3),
        pf.SpaceTime(pf.Interval(0, 1), 2),
    ],
    ids=repr,
)
def test_the_outline_encloses_the_domain_with_its_holes(domain):
    section = Section(domain, resolution=60)
    assert area(*section.loops) == pytest.approx(domain.measure, rel=1e-4)
    points = section.lifted(*section.coordinates)
    # By the rule of all renderers, that loops around a point count with their sense: 1 inside, 0 outside.
    winding = sum(np.sign(area(loop)) * Path(loop).contains_points(points) for loop in section.loops)
    clear = abs(domain.level(points)) > 1e-3
    np.testing.assert_array_equal(winding[clear] == 1, section.inside.ravel()[clear])


def test_corners_of_the_outline_are_sharp():
    vertices = np.concatenate(Section(LSHAPE).loops)
    for corner in [(0, 0), (0, 1), (1, 0), (1, -1), (-1, -1), (-1, 1)]:
        assert np.abs(vertices - corner).max(axis=1).min() < 1e-12
    assert np.linalg.norm(np.concatenate(Section(pf.Disk()).loops), axis=1) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("domain", "areas"),
    [
        (pf.Ball() - pf.Ball((0, 0, 0), 0.6), [0.75 - 0.11, 1 - 0.36, 0.75 - 0.11]),
        (pf.SpaceTime(pf.Disk(), 2), [1, 1, 1]),
        (pf.Ball([0] * 5, 1), [1]),
    ],
    ids=repr,
)
def test_slices_have_the_shape_of_the_domain_there(domain, areas):
    found = sections(domain, 80)
    assert [area(*section.loops) / np.pi for section in found] == pytest.approx(areas, rel=5e-3)
    for section in found:
        assert domain.contains(section.points, tol=1e-12).all()


def test_slices_say_where_they_are():
    assert [s.title for s in sections(pf.Box([0, 0, 0], [1, 1, 4]), 4)] == ["$z = 1$", "$z = 2$", "$z = 3$"]
    assert [s.title for s in sections(pf.SpaceTime(SQUARE, 3), 4)] == ["$t = 0$", "$t = 1.5$", "$t = 3$"]
    assert [s.title for s in sections(pf.Box([0] * 4, [1] * 4), 4)] == ["$x_{2} = 0.5$, $x_{3} = 0.5$"]
    # A slab without its middle has two slices left; a cube around nothing has none in more dimensions.
    slab = pf.Box([0, 0, 0], [1, 1, 1]) - pf.Box([-1, -1, 0.4], [2, 2, 0.6])
    assert [s.title for s in sections(slab, 4)] == ["$z = 0.25$", "$z = 0.75$"]
    with pytest.raises(DomainError, match="None of the default planes meets"):
        sections(pf.Box([0] * 4, [1] * 4) - pf.Box([-1, -1, 0.4, 0.4], [2, 2, 0.6, 0.6]), 4)


def test_values_outside_the_domain_are_never_asked_for():
    section = Section(LSHAPE, resolution=50)
    assert LSHAPE.contains(section.points).all()
    image = section.image(np.arange(len(section.points), dtype=float))
    assert image.shape == section.inside.shape
    assert np.isfinite(image).all()
    np.testing.assert_array_equal(image[section.inside], np.arange(len(section.points)))
    assert np.isnan(section.image(np.full(len(section.points), np.nan))).all()


def test_a_plane_solution_is_drawn_beside_its_error(annulus):
    figure = annulus.plot(resolution=40)
    value, error = panels(figure)
    assert bars(figure) == ["$u$", "$|u - u^*|$"]
    assert (value.get_xlabel(), value.get_ylabel(), value.get_aspect()) == ("$x$", "$y$", 1.0)
    section = Section(annulus.problem.domain, resolution=40)
    np.testing.assert_array_equal(value.images[0].get_array()[section.inside], annulus(section.points))
    assert value.images[0].get_clip_path() is not None
    scale = error.images[0].norm
    assert isinstance(scale, LogNorm)
    errors = abs(annulus(section.points) - annulus.problem.exact_values(section.points)[:, 0])
    assert scale.vmax == errors.max()
    heading = figure.get_suptitle()
    assert heading == title(annulus)
    assert heading.startswith("poisson-annulus: 80 features, estimated relative error $")


def test_without_an_exact_solution_only_the_solution_is_drawn(annulus):
    problem = annulus.problem.replace(source=1.0, conditions=[pf.Dirichlet(0.0)], exact=None, name="50 $")
    figure = replace(annulus, problem=problem, verdict=pf.Verdict(pf.Status.OUT_OF_STEPS, "stopped")).plot(
        resolution=10
    )
    assert bars(figure) == ["$u$"]
    assert figure.get_suptitle().startswith(r"50 \$: ")
    assert figure.get_suptitle().endswith("not converged")


def test_a_system_has_a_row_per_component(system):
    figure = system.plot(resolution=10)
    symbols = ["v_{0}", "v_{1}", "p"]
    assert bars(figure) == [label for s in symbols for label in (f"${s}$", f"$|{s} - {s}^*|$")]
    assert "60 features per component" in figure.get_suptitle()
    assert len(panels(system.plot(unknown="v", resolution=10))) == 4
    assert bars(system.plot(unknown="v[1]", resolution=10))[0] == "$v_{1}$"
    with pytest.raises(UnknownNameError, match=r"Unknown unknown of the problem 'w'.*Known: p, v, v\[0\], v\[1\]"):
        system.plot(unknown="w")


def test_a_line_is_drawn_with_the_exact_one_and_its_error():
    u = smooth(pf.Interval(0, 1) | pf.Interval(1.5, 2))
    figure = u.plot(resolution=50)
    left, right = panels(figure)
    found, exact = left.lines
    x, y = found.get_data()
    assert (exact.get_label(), left.get_xlabel(), right.get_yscale()) == ("exact", "$x$", "log")
    gap = (x > 1) & (x < 1.5)
    assert gap.any()
    assert np.isnan(y[gap]).all()
    np.testing.assert_array_equal(y[~gap], u(x[~gap, None]))
    assert {1.0, 1.5} <= set(x)
    assert len(panels(smooth(pf.Interval(0, 1)).plot(resolution=20))) == 2


@pytest.mark.parametrize(
    ("domain", "count", "labels", "aspect"),
    [
        (pf.SpaceTime(pf.Interval(0, 1), 2), 2, ("$x$", "$t$"), "auto"),
        (pf.SpaceTime(pf.Disk(), 2), 6, ("", "$y$"), 1.0),
        (pf.Box([0, 0, 0], [1, 1, 1]), 6, ("", "$y$"), 1.0),
        (pf.Box([0] * 4, [1] * 4), 2, ("$x_{0}$", "$x_{1}$"), 1.0),
    ],
    ids=repr,
)
def test_every_dimension_has_its_figure(domain, count, labels, aspect, tmp_path):
    figure = smooth(domain).plot(tmp_path / "u.png", resolution=12)
    assert len(panels(figure)) == count
    assert bars(figure) == ["$u$", "$|u - u^*|$"]
    ax = panels(figure)[0]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_aspect()) == (*labels, aspect)
    if domain.dim == 4:
        assert "in the plane $x_{2} = 0.5$" in figure.get_suptitle()


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_files_are_saved_by_suffix(annulus, tmp_path, suffix, magic):
    path = tmp_path / f"u{suffix}"
    plot_solution(annulus, path, resolution=20)
    assert path.read_bytes().startswith(magic)


def test_saved_pictures_have_150_dots_per_inch_or_more_and_show_the_hole(annulus, tmp_path):
    from matplotlib.image import imread

    figure = annulus.plot(tmp_path / "u.png", resolution=40)
    pixels = imread(tmp_path / "u.png")
    assert pixels.shape[1] > 150 * 0.9 * figure.get_figwidth()
    figure.set_dpi(100)
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    ax = panels(figure)[0]

    def color(x: float, y: float) -> np.ndarray:
        column, row = ax.transData.transform((x, y))
        return drawn[len(drawn) - 1 - int(row), int(column)]

    white = np.array([255, 255, 255])
    for outside in [(0, 0), (0.1, 0.1), (0.9, 0.9), (-0.8, 0.8)]:
        np.testing.assert_array_equal(color(*outside), white)
    for inside in [(0.5, 0.5), (-0.4, 0.1), (0.6, -0.6)]:
        assert (color(*inside) != white).any()


def test_wrong_requests_are_refused_before_anything_is_drawn(annulus, tmp_path):
    with pytest.raises(UnknownNameError, match=r"figure 'u.jpg': '.jpg'.*Known: .pdf, .png, .svg"):
        annulus.plot(tmp_path / "u.jpg")
    with pytest.raises(UnknownNameError, match=r"figure 'u': ''.*Known: .pdf, .png, .svg"):
        annulus.plot(tmp_path / "u")
    with pytest.raises(DomainError, match="resolution is 1; expected at least 2"):
        annulus.plot(resolution=1)
    assert not list(tmp_path.iterdir())


def test_a_figure_shows_itself_in_a_notebook(annulus):
    assert annulus.plot(resolution=10)._repr_png_().startswith(b"\x89PNG")


def test_plotting_leaves_pyplot_and_settings_alone(tmp_path):
    code = """if True:
        import sys, matplotlib, pdofm as pf
        from pdofm.output.plot import Section, new_figure, save, solution_panel
        before = dict(matplotlib.rcParams)
        figure, axes = new_figure(1, 1)
        section = Section(pf.Disk(), resolution=9)
        solution_panel(axes[0, 0], section, section.points[:, 0])
        save(figure, sys.argv[1])
        assert dict(matplotlib.rcParams) == before
        assert "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "u.png")], check=True)
    assert (tmp_path / "u.png").exists()


def test_panels_compose_other_figures(tmp_path):
    figure, axes = new_figure(1, 3)
    section = Section(pf.Disk(), resolution=20)
    x = section.points[:, 0]
    solution_panel(axes[0, 0], section, x, label="speed")
    # Where the error is exactly 0 the map has no holes.
    error_panel(axes[0, 1], section, np.where(x > 0, 1e-3, 0.0))
    steps = np.array([1.0, 2.0, 4.0])
    line = line_panel(axes[0, 2], steps, 1 / steps, band=(0.5 / steps, 2 / steps), label="median")
    outline(axes[0, 2], pf.Disk((2, 1), 0.5))
    save(figure, tmp_path / "u.png")
    assert bars(figure) == ["speed", "error"]
    assert np.isfinite(np.asarray(axes[0, 1].images[0].get_array())).all()
    assert line.get_label() == "median"
    assert len(axes[0, 2].collections) == 1


@pytest.mark.parametrize(
    ("errors", "low", "high"),
    [
        ([1e-3, 2e-3, 5e-3], 1e-3, 5e-3),
        ([0.0, 1e-12, 1e-12, 1e-12, 5e-3], 1e-7, 5e-3),
        ([np.nan, np.inf, 3e-9], 1e-9, 3e-9),
        ([0.0, 0.0], 1e-17, 1e-16),
        ([np.nan], 1e-17, 1e-16),
    ],
)
def test_scales_of_errors_end_at_the_largest_and_start_at_a_power_of_ten(errors, low, high):
    assert error_limits(np.array(errors)) == pytest.approx((low, high), rel=1e-6, abs=0)


def test_names_become_mathematics():
    assert [symbol(name) for name in ("u", "v[0]", "T_in")] == ["u", "v_{0}", r"\mathit{T\_in}"]
