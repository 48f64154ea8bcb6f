"""Figures of solutions and errors, clipped to the true shape of the domain.

The panels draw on any axes, so that other figures can be composed from them:

    figure, axes = new_figure(1, 2)
    section = Section(domain)
    solution_panel(axes[0, 0], section, u(section.points))
    error_panel(axes[0, 1], section, abs(u(section.points) - v(section.points)))
    save(figure, "comparison.pdf")

Nothing here uses pyplot: no window opens, no figure stays in memory, and the user's settings do not change.
"""

import io
import math
from functools import partial
from itertools import cycle
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Points, Vector
from pdofm.archives import in_folder
from pdofm.domain import Domain
from pdofm.errors import DomainError, SolveError, unknown_name
from pdofm.output.parts import View, views
from pdofm.output.section import Limits, Section, axis_names, sections
from pdofm.solving.arithmetic import Arithmetic as Function
from pdofm.solving.solution import Solution

FORMATS = (".pdf", ".png", ".svg")
"""Suffixes of the figures that can be saved."""

DPI = 200
"""Default resolution of figures, in pixels per inch."""

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "mathtext.fontset": "cm",
    "axes.linewidth": 0.6,
    "legend.frameon": False,
}
STYLE |= {"xtick.major.width": 0.6, "ytick.major.width": 0.6, "pdf.fonttype": 42}  # 42: fonts that journals can embed
"""Settings of matplotlib for all figures."""

VALUE_COLORS, ERROR_COLORS, PHASE_COLORS = "viridis", "magma", "twilight"
"""Colour maps of values and of errors: perceptually uniform, and readable in grey, since lightness is monotone; and of
phases, where it is periodic."""

LINE_RESOLUTION = 1000
"""Default number of points of a line."""

_DECADES = 4
"""How far the scale of an error reaches below its maximum, in powers of ten. An error vanishes where it changes its
sign, and smaller values only show these places."""


def plot_solution(
    solution: Function,
    path: str | PathLike | None = None,
    *,
    unknown: str | None = None,
    part: str | None = None,
    resolution: int | None = None,
) -> Any:
    """Draw a solution and, if the exact solution is known, its absolute error; returns the matplotlib figure.

    Args:
        solution: the solution to draw; on a domain of more than two dimensions, in the planes that `sections` chooses.
        path: the file in which to save it, ending in .pdf, .png or .svg. Its folder must exist.
        unknown: in a system, the unknown or component to draw, such as "v" or "v[0]"; by default all components, one in
            each row.
        part: of a complex solution "real", "imaginary", "modulus" or "phase"; by default real and imaginary part.
        resolution: number of points along the longest side.
    """
    import matplotlib

    if path is not None:
        _checked(path)  # an error should not come after the work
    if resolution is not None and resolution < 2:
        raise DomainError(f"The resolution is {resolution}; expected at least 2 points along the longest side.")
    shown = views(solution.problem.layout, unknown, part)
    with matplotlib.rc_context(STYLE):
        draw = _line_figure if solution.problem.domain.dim == 1 else _map_figure
        figure = draw(solution, shown, resolution)
    if path is not None:
        save(figure, path)
    return figure


def plot_search(solution: Solution, path: str | PathLike | None = None) -> Any:
    """Draw the attempts of a search for a tolerance: estimated error against number of features, with a line for each
    space; returns the matplotlib figure.

    Attempts that only look for a feature of the solution, such as a layer, have no error and are left out.
    """
    import matplotlib

    if path is not None:
        _checked(path)
    solved = [attempt for attempt in solution.attempts if attempt.rows > 0]
    if not solved:
        raise SolveError("The solution has no attempts, because it was not searched for. Use solve(problem, tol=1e-8).")
    with matplotlib.rc_context(STYLE):
        figure, axes = new_figure(1, 1, panel=(4.2, 2.8))
        panel = axes[0, 0]
        for space, marker in zip(dict.fromkeys(attempt.space for attempt in solved), cycle("os^Dv*"), strict=False):
            sizes, estimates = zip(*((a.features, a.estimate) for a in solved if a.space == space), strict=True)
            panel.loglog(sizes, estimates, f"{marker}-", label=space)
        panel.set(xlabel="features", ylabel="estimated relative error", title=solution.problem.name)
        panel.legend()
    if path is not None:
        save(figure, path)
    return figure


def new_figure(
    rows: int, columns: int, *, panel: Limits = (2.4, 2.0), gap: Limits = (0.9, 0.65), title: str = ""
) -> tuple[Any, Any]:
    """A figure outside pyplot, and its axes `(rows, columns)`, of the size `panel` and `gap` apart, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Sizes are fixed rather than fitted, so that a colour bar is as high as its panel and all figures look alike.
    (width, height), (beside, below) = panel, gap
    left, right, bottom, top = 0.6, 0.7, 0.5, 0.55 + 0.15 * title.count("\n")
    total = left + columns * (width + beside) - beside + right, bottom + rows * (height + below) - below + top
    figure = Figure(figsize=total)
    FigureCanvasAgg(figure)
    figure.suptitle(title, y=1 - 0.1 / total[1], va="top", fontsize=10)
    # Notebooks show figures of pyplot by themselves; any other object must provide its picture.
    figure._repr_png_ = partial(_png, figure)  # pyright: ignore[reportAttributeAccessIssue]
    places = {"left": left / total[0], "right": 1 - right / total[0], "wspace": beside / width}
    places |= {"bottom": bottom / total[1], "top": 1 - top / total[1], "hspace": below / height}
    return figure, figure.subplots(rows, columns, squeeze=False, gridspec_kw=places)


def save(figure: Any, path: str | PathLike, *, dpi: int = DPI) -> None:
    """Save a figure as .pdf, .png or .svg, with `dpi` pixels per inch. Its folder must exist."""
    import matplotlib

    target = _checked(path)
    with matplotlib.rc_context(STYLE):
        figure.savefig(target, dpi=dpi, bbox_inches="tight", pad_inches=0.05)


def solution_panel(
    ax: Any, section: Section, values: Vector, *, label: str = "$u$", limits: Limits | None = None, bar: bool = True
) -> Any:
    """Draw a map of the values at `section.points`, with a colour bar; returns the image."""
    from matplotlib.colors import Normalize

    image = _map(ax, section, values, norm=Normalize(*(limits or value_limits(values))), cmap=VALUE_COLORS)
    if bar:
        _color_bar(image, label, extend="neither")
    return image


def phase_panel(
    ax: Any, section: Section, values: Vector, *, label: str = "phase", limits: Limits | None = None, bar: bool = True
) -> Any:
    """Draw a map of angles at `section.points` between -π and π, whose colours agree at both ends; returns the
    image."""
    from matplotlib.colors import Normalize

    del limits  # all angles have the same scale
    # Between pixels on both sides of ±π there is no value to interpolate.
    image = _map(ax, section, values, norm=Normalize(-np.pi, np.pi), cmap=PHASE_COLORS, interpolation="nearest")
    if bar:
        _color_bar(image, label, extend="neither")
    return image


def error_panel(
    ax: Any, section: Section, errors: Vector, *, label: str = "error", limits: Limits | None = None, bar: bool = True
) -> Any:
    """Draw a map of absolute errors at `section.points`, with a logarithmic colour bar; returns the image."""
    from matplotlib.colors import LogNorm

    low, high = limits or error_limits(errors)
    # The logarithm of zero would leave holes in the map.
    image = _map(ax, section, np.maximum(errors, 0.1 * low), norm=LogNorm(low, high), cmap=ERROR_COLORS)
    if bar:
        _color_bar(image, label, extend="min")
    return image


def line_panel(ax: Any, x: Vector, values: Vector, *, band: tuple[Vector, Vector] | None = None, **line: Any) -> Any:
    """Draw a line, with a shaded `band` (low, high) if given; it is interrupted at NaN. Returns the line."""
    (drawn,) = ax.plot(x, values, **line)
    if band is not None:
        ax.fill_between(x, *band, color=drawn.get_color(), alpha=0.2, linewidth=0)
    ax.spines[["top", "right"]].set_visible(False)
    return drawn


def outline(ax: Any, section: Section | Domain) -> Any:
    """Draw the boundary of a plane domain, or of a section of another domain; returns the patch."""
    from matplotlib.patches import PathPatch

    path = _path(Section(section) if isinstance(section, Domain) else section)
    return ax.add_patch(PathPatch(path, fill=False, linewidth=0.8, joinstyle="miter", clip_on=False, zorder=3))


def value_limits(values: Vector) -> Limits:
    """The smallest and the largest finite value."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def error_limits(errors: Vector) -> Limits:
    """The limits of a logarithmic scale for errors: from a power of ten to the largest error, at most five decades."""
    positive = errors[np.isfinite(errors) & (errors > 1e-200)]
    if not positive.size:
        return 1e-17, 1e-16
    high = float(positive.max())
    low = max(float(np.percentile(positive, 1)), high * 10.0**-_DECADES)
    return 10.0 ** math.floor(math.log10(low) - 1e-9), high


def title(solution: Function) -> str:
    """A title with the name of the problem, the number of features and the estimated error of a solution; for other
    functions, such as differences of solutions, the name alone."""
    if not isinstance(solution, Solution):
        return solution.problem.name.replace("$", r"\$")
    stats, estimate = solution.stats, f"{solution.error_estimate:.1e}"
    if math.isfinite(solution.error_estimate):
        mantissa, exponent = estimate.split("e")
        estimate = rf"${mantissa} \times 10^{{{int(exponent)}}}$"
    features = f"{stats.features} features" + (" per component" if stats.components > 1 else "")
    name = solution.problem.name.replace("$", r"\$")
    ending = "" if solution.converged else ", not converged"
    return f"{name}: {features}, estimated relative error {estimate}{ending}"


def _map(ax: Any, section: Section, values: Vector, **colors: Any) -> Any:
    names = axis_names(section.domain)
    aspect, extent = "equal" if section.equal_aspect else "auto", sum(section.bounds, ())
    # Values are interpolated between pixels; otherwise a coarse grid would show as steps in print.
    options = {"interpolation": "bilinear", "interpolation_stage": "data"} | colors
    image = ax.imshow(section.image(values), extent=extent, origin="lower", aspect=aspect, **options)
    image.set_clip_path(_path(section), transform=ax.transData)
    for each in (section, *section.regions):
        outline(ax, each)
    ax.set(title=section.title, xlabel=f"${names[section.axes[0]]}$", ylabel=f"${names[section.axes[1]]}$")
    ax.spines[:].set_visible(False)
    ax.locator_params(nbins=5)
    return image


def _path(section: Section) -> Any:
    """The outline as a matplotlib path; holes run in the opposite direction, so that they are not filled."""
    from matplotlib.path import Path as Outline

    return Outline.make_compound_path(*(Outline(loop, closed=True) for loop in section.loops))


def _color_bar(image: Any, label: str, extend: str) -> None:
    # Inset axes are as high as the panel, whatever its aspect.
    place = image.axes.inset_axes((1.05, 0.0, 0.05, 1.0))
    image.axes.figure.colorbar(image, cax=place, extend=extend).outline.set_linewidth(0.6)
    place.set_title(label)


def _map_figure(solution: Function, shown_parts: list[View], resolution: int | None) -> Any:
    problem = solution.problem
    shown = sections(problem.domain, resolution)
    found = [values_at(solution, section.points) for section in shown]
    # With one section, value and error are side by side. With several, the sections are, and the errors come below.
    one, known, head = len(shown) == 1, problem.exact is not None, title(solution)
    if one and shown[0].title:
        head += f"\nin the plane {shown[0].title}"
    (left, right), (bottom, top) = shown[0].bounds
    width, flat = 2.3 if one else 1.9, float(np.clip((top - bottom) / (right - left), 0.3, 2.0))
    count = len(shown_parts)
    shape = (count, 1 + known) if one else (count * (1 + known), len(shown))
    size = (width, width * (flat if shown[0].equal_aspect else 0.85))
    figure, axes = new_figure(*shape, panel=size, gap=(0.9 if one else 0.4, 0.4), title=head)
    places = iter(axes.ravel() if one else axes)
    for view in shown_parts:
        values = [view.of(u) for u in found]
        panel = phase_panel if view.is_angle else solution_panel
        _map_row(next(places), shown, values, panel, f"${view.label}$", value_limits)
        if known:
            exact = [view.of(problem.exact_values(s.points)) for s in shown]
            errors = [view.distance(u, v) for u, v in zip(values, exact, strict=True)]
            _map_row(next(places), shown, errors, error_panel, f"${view.error_label}$", error_limits)
    for ax in axes.ravel():
        ax.label_outer()
        if one or ax not in axes[0]:
            ax.set_title("")
    return figure


def _map_row(axes: Any, shown: list[Section], values: list[np.ndarray], panel: Any, label: str, limits: Any) -> None:
    """Draw the same quantity in all sections, with a common scale and one colour bar."""
    scale = limits(np.concatenate(values))
    for ax, section, here in zip(np.atleast_1d(axes), shown, values, strict=True):
        panel(ax, section, here, label=label, limits=scale, bar=section is shown[-1])


def _line_figure(solution: Function, shown_parts: list[View], resolution: int | None) -> Any:
    problem = solution.problem
    domain, known = problem.domain, problem.exact is not None
    # The ends are among the points, so that lines reach the boundary exactly, around gaps as well.
    ends = [piece.chart(np.zeros((1, 0)))[0][0, 0] for piece in domain.pieces]
    x = np.union1d(np.linspace(domain.lower[0], domain.upper[0], resolution or LINE_RESOLUTION), ends)
    outside = (domain.level(x[:, None]) <= 0) & ~np.isin(x, ends)
    found = np.where(outside[:, None], np.nan, values_at(solution, x[:, None]))
    figure, axes = new_figure(len(shown_parts), 1 + known, panel=(2.9, 2.0), title=title(solution))
    for row, view in zip(axes, shown_parts, strict=True):
        values = view.of(found)
        line_panel(row[0], x, values, label=f"${view.label}$", color="C0")
        row[0].set(xlabel="$x$", ylabel=f"${view.label}$")
        if not known:
            continue
        exact = np.where(outside, np.nan, view.of(problem.exact_values(x[:, None])))
        line_panel(row[0], x, exact, label="exact", color="black", linestyle=(0, (4, 3)), linewidth=0.9)
        # The legend stands above the axes, where it hides nothing.
        row[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0)
        errors = view.distance(values, exact)
        low, high = error_limits(errors)
        line_panel(row[1], x, np.maximum(errors, 0.1 * low), color="C3", linewidth=1.0)
        row[1].set(xlabel="$x$", ylabel=f"${view.error_label}$", yscale="log", ylim=(low, 2 * high))
    return figure


def values_at(solution: Function, points: Points) -> Float[np.ndarray, "n C"]:
    """The real components at points; of complex unknowns the real parts, then the imaginary parts."""
    values = solution(points).reshape(len(points), -1)
    return np.concatenate([np.real(values), np.imag(values)], axis=1) if np.iscomplexobj(values) else values


def _checked(path: str | PathLike) -> Path:
    """The path, if its suffix is one of `FORMATS` and its folder exists."""
    target = in_folder(path)
    if target.suffix.lower() not in FORMATS:
        raise unknown_name(f"suffix of the figure {target.name!r}:", target.suffix, FORMATS)
    return target


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI // 2, bbox_inches="tight")
    return buffer.getvalue()
