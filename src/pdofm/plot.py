"""Figures of solutions and errors, clipped to the true shape of the domain.

The panels draw on any axes, so that other figures can be composed of them:

    figure, axes = new_figure(1, 2)
    section = Section(domain)
    solution_panel(axes[0, 0], section, u(section.points))
    error_panel(axes[0, 1], section, abs(u(section.points) - v(section.points)))
    save(figure, "comparison.pdf")

Nothing here touches pyplot: no window opens, no figure stays in memory, and the user's settings are left alone.
"""

import io
import math
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from pdofm._types import Points, Vector
from pdofm.domain import Domain, Piece, SpaceTime
from pdofm.errors import DomainError, unknown_name
from pdofm.solution import Solution
from pdofm.terms import Layout

FORMATS = (".pdf", ".png", ".svg")
DPI = 200
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "mathtext.fontset": "cm",
    "axes.linewidth": 0.6,
    "legend.frameon": False,
}
STYLE |= {"xtick.major.width": 0.6, "ytick.major.width": 0.6, "pdf.fonttype": 42}  # 42: fonts that journals can embed

# Perceptually uniform, and monotone in lightness: readable in grey.
VALUE_COLORS, ERROR_COLORS = "viridis", "magma"
# Points along the longest side: of a map, of each of several slices, of a line.
MAP_RESOLUTION, SLICE_RESOLUTION, LINE_RESOLUTION = 300, 200, 1000
# An error vanishes where it changes its sign; only so many decades below its maximum are worth showing.
_DECADES = 4

Along = Float[np.ndarray, " nx"]
Across = Float[np.ndarray, " ny"]
Image = Float[np.ndarray, "ny nx"]
Limits = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Section:
    """The part of a domain in a plane: the coordinates `axes` vary, the others stay as in `through` `(dim,)`.

    `points` `(n, dim)` are those points of a fine grid of the plane that lie in the domain; the panels take one value
    for each of them. By default the plane goes through the center of the bounding box.
    """

    domain: Domain
    axes: tuple[int, int] = (0, 1)
    through: Vector | None = None
    resolution: int = MAP_RESOLUTION
    title: str = ""

    @cached_property
    def points(self) -> Points:
        return self.lifted(*self.coordinates)[self.inside.ravel()]

    @cached_property
    def inside(self) -> Bool[np.ndarray, "ny nx"]:
        """Which points of the grid `(y, x)` lie in the domain."""
        return self._level(*self.coordinates) > 0

    @cached_property
    def coordinates(self) -> tuple[Along, Across]:
        """The coordinates of the grid: middles of pixels, since on the sides of the box a level of 0 can mislead."""
        sides = np.array([high - low for low, high in self.bounds])
        share = sides / sides.max() if self.equal_aspect else np.ones(2)
        x, y = (
            low + (high - low) * (np.arange(count) + 0.5) / count
            for (low, high), count in zip(self.bounds, np.ceil(self.resolution * share), strict=True)
        )
        return x, y

    @property
    def bounds(self) -> tuple[Limits, Limits]:
        lower, upper = self.domain.lower, self.domain.upper
        x, y = ((float(lower[axis]), float(upper[axis])) for axis in self.axes)
        return x, y

    @property
    def equal_aspect(self) -> bool:
        """Whether both axes are lengths; a time has another unit."""
        return not (self.domain.has_time and self.domain.dim - 1 in self.axes)

    @cached_property
    def path(self) -> Any:
        """The outline as a matplotlib path, with the domain on its left, so that holes stay holes when it is filled."""
        from contourpy import contour_generator  # what matplotlib itself draws contours with
        from matplotlib.path import Path as Outline

        plane = self.domain.space if isinstance(self.domain, SpaceTime) else self.domain
        if self.domain.is_box:
            (left, right), (bottom, top) = self.bounds
            loops = [np.array([(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)])]
        elif plane.dim == 2 and self.axes == (0, 1):
            loops = _chained([_curve(piece) for piece in plane.pieces])
        else:  # No piece is a curve in this plane, but the level vanishes on it. A ring around the grid closes them.
            x, y = (np.concatenate([[2 * s[0] - s[1]], s, [2 * s[-1] - s[-2]]]) for s in self.coordinates)
            loops = [np.asarray(line) for line in contour_generator(x, y, self._level(x, y)).lines(0.0)]
        return Outline.make_compound_path(*(Outline(loop, closed=True) for loop in loops))

    def image(self, values: Vector) -> Image:
        """Values at `points` as an image `(y, x)`, continued outside by the nearest one.

        The outline cuts that off again; without it, the pixels that the boundary crosses would stay empty.
        """
        from scipy.ndimage import distance_transform_edt

        image = np.full(self.inside.shape, np.nan)
        image[self.inside] = values
        known = np.isfinite(image)
        if not known.any():
            return image
        nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
        return image[tuple(np.asarray(nearest))]

    def lifted(self, x: Along, y: Across) -> Points:
        """The points `(n, dim)` of a grid of the plane."""
        center = 0.5 * (self.domain.lower + self.domain.upper) if self.through is None else self.through
        points = np.tile(center, (len(x) * len(y), 1))
        points[:, self.axes] = np.stack([each.ravel() for each in np.meshgrid(x, y)], axis=1)
        return points

    def _level(self, x: Along, y: Across) -> Image:
        points = self.lifted(x, y)
        # At its first and last time the level of a space-time is 0, but the space there is as good as any.
        if isinstance(self.domain, SpaceTime) and self.equal_aspect:
            return self.domain.space.level(points[:, :-1]).reshape(len(y), len(x))
        return self.domain.level(points).reshape(len(y), len(x))


def sections(domain: Domain, resolution: int | None = None) -> list[Section]:
    """The planes that show a domain of two or more dimensions.

    The domain itself in the plane, and for one dimension and time; the first, middle and last time in space-time; z at
    1/4, 1/2 and 3/4 in three dimensions; beyond that the plane of the first two axes through the center of the box.
    """
    if domain.dim == 2:
        return [Section(domain, resolution=resolution or MAP_RESOLUTION)]
    center, names = 0.5 * (domain.lower + domain.upper), axis_names(domain)
    planes = [center]
    if domain.has_time or domain.dim == 3:
        fractions = (0.0, 0.5, 1.0) if domain.has_time else (0.25, 0.5, 0.75)
        planes = [np.append(center[:-1], domain.lower[-1] * (1 - s) + domain.upper[-1] * s) for s in fractions]
    found = []
    for through in planes:
        title = ", ".join(f"${name} = {value:.3g}$" for name, value in zip(names[2:], through[2:], strict=True))
        points = resolution or (MAP_RESOLUTION if len(planes) == 1 else SLICE_RESOLUTION)
        found.append(Section(domain, through=through, resolution=points, title=title))
    shown = [section for section in found if section.inside.any()]
    if not shown:
        raise DomainError(f"No plane through the middle of {domain!r} meets it; draw a Section(domain, through=…).")
    return shown


def plot_solution(
    solution: Solution, path: str | PathLike | None = None, *, unknown: str | None = None, resolution: int | None = None
) -> Any:
    """The matplotlib Figure of a solution, with the absolute error where the exact solution is known.

    Args:
        solution: what to draw; of a domain of more than two dimensions, the planes that `sections` says.
        path: where to save it, as .pdf, .png or .svg; folders are made.
        unknown: in a system, what to draw, such as "v" or "v[0]"; by default all, a row per component.
        resolution: points along the longest side.
    """
    import matplotlib

    if path is not None:
        _checked(path)  # before the work
    if resolution is not None and resolution < 2:
        raise DomainError(f"The resolution is {resolution}; expected at least 2 points along the longest side.")
    components = _components(solution.problem.layout, unknown)
    with matplotlib.rc_context(STYLE):
        draw = _line_figure if solution.problem.domain.dim == 1 else _map_figure
        figure = draw(solution, components, resolution)
    if path is not None:
        save(figure, path)
    return figure


def new_figure(
    rows: int, columns: int, *, panel: Limits = (2.4, 2.0), gap: Limits = (0.9, 0.65), title: str = ""
) -> tuple[Any, Any]:
    """A figure outside pyplot and its axes `(rows, columns)`, each of the size `panel` and `gap` apart, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Sizes are fixed rather than fitted: a colour bar then is as high as its panel, and all figures look alike.
    (width, height), (beside, below) = panel, gap
    left, right, bottom, top = 0.6, 0.7, 0.5, 0.55 + 0.15 * title.count("\n")
    total = left + columns * (width + beside) - beside + right, bottom + rows * (height + below) - below + top
    figure = Figure(figsize=total)
    FigureCanvasAgg(figure)
    figure.suptitle(title, y=1 - 0.1 / total[1], va="top", fontsize=10)
    # Notebooks know the figures of pyplot only, but any object may tell them how it looks.
    figure._repr_png_ = partial(_png, figure)  # pyright: ignore[reportAttributeAccessIssue]
    places = {"left": left / total[0], "right": 1 - right / total[0], "wspace": beside / width}
    places |= {"bottom": bottom / total[1], "top": 1 - top / total[1], "hspace": below / height}
    return figure, figure.subplots(rows, columns, squeeze=False, gridspec_kw=places)


def save(figure: Any, path: str | PathLike) -> None:
    """Save a figure as .pdf, .png or .svg, by suffix; folders are made."""
    import matplotlib

    target = _checked(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(target, dpi=DPI, bbox_inches="tight", pad_inches=0.05)


def solution_panel(
    ax: Any, section: Section, values: Vector, *, label: str = "$u$", limits: Limits | None = None, bar: bool = True
) -> Any:
    """A map of the values at `section.points`, with a colour bar; returns the image."""
    from matplotlib.colors import Normalize

    image = _map(ax, section, values, norm=Normalize(*(limits or value_limits(values))), cmap=VALUE_COLORS)
    if bar:
        _color_bar(image, label, extend="neither")
    return image


def error_panel(
    ax: Any, section: Section, errors: Vector, *, label: str = "error", limits: Limits | None = None, bar: bool = True
) -> Any:
    """A map of absolute errors at `section.points` on a logarithmic scale, with a colour bar; returns the image."""
    from matplotlib.colors import LogNorm

    low, high = limits or error_limits(errors)
    # A logarithm of zero would leave holes in the map.
    image = _map(ax, section, np.maximum(errors, 0.1 * low), norm=LogNorm(low, high), cmap=ERROR_COLORS)
    if bar:
        _color_bar(image, label, extend="min")
    return image


def line_panel(ax: Any, x: Vector, values: Vector, *, band: tuple[Vector, Vector] | None = None, **line: Any) -> Any:
    """A line through values, in a shaded `band` (low, high) if given; NaN interrupts it; returns the line."""
    (drawn,) = ax.plot(x, values, **line)
    if band is not None:
        ax.fill_between(x, *band, color=drawn.get_color(), alpha=0.2, linewidth=0)
    ax.spines[["top", "right"]].set_visible(False)
    return drawn


def outline(ax: Any, section: Section | Domain) -> Any:
    """Draw the true boundary of a plane domain, or of a section of any other; returns the patch."""
    from matplotlib.patches import PathPatch

    path = (Section(section) if isinstance(section, Domain) else section).path
    return ax.add_patch(PathPatch(path, fill=False, linewidth=0.8, joinstyle="miter", clip_on=False, zorder=3))


def value_limits(values: Vector) -> Limits:
    """The least and the largest of the finite values."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def error_limits(errors: Vector) -> Limits:
    """A logarithmic scale for errors: up to the largest, down to a power of ten, over five decades at most."""
    positive = errors[np.isfinite(errors) & (errors > 1e-200)]
    if not positive.size:
        return 1e-17, 1e-16
    high = float(positive.max())
    low = max(float(np.percentile(positive, 1)), high * 10.0**-_DECADES)
    return 10.0 ** math.floor(math.log10(low) - 1e-9), high


def title(solution: Solution) -> str:
    """Name, number of features and estimated error of a solution."""
    stats, estimate = solution.stats, f"{solution.error_estimate:.1e}"
    if math.isfinite(solution.error_estimate):
        mantissa, exponent = estimate.split("e")
        estimate = rf"${mantissa} \times 10^{{{int(exponent)}}}$"
    features = f"{stats.features} features" + (" per component" if stats.components > 1 else "")
    name = solution.problem.name.replace("$", r"\$")
    ending = "" if solution.converged else ", not converged"
    return f"{name}: {features}, estimated relative error {estimate}{ending}"


def axis_names(domain: Domain) -> list[str]:
    """x, y, z and t; x_0, x_1, … if space has more than three dimensions."""
    space = domain.dim - domain.has_time
    names = ["x", "y", "z"][:space] if space <= 3 else [f"x_{{{axis}}}" for axis in range(space)]
    return [*names, "t"] if domain.has_time else names


def symbol(name: str) -> str:
    """A component such as ``v[0]`` as mathematics, without the dollar signs."""
    root, _, index = name.rstrip("]").partition("[")
    letters = root if len(root) == 1 else rf"\mathit{{{root}}}".replace("_", r"\_")
    return f"{letters}_{{{index}}}" if index else letters


def _map(ax: Any, section: Section, values: Vector, **colors: Any) -> Any:
    names = axis_names(section.domain)
    aspect, extent = "equal" if section.equal_aspect else "auto", sum(section.bounds, ())
    # Between pixels, values are interpolated: the steps of a coarse grid would show in print.
    smooth = {"interpolation": "bilinear", "interpolation_stage": "data"}
    image = ax.imshow(section.image(values), extent=extent, origin="lower", aspect=aspect, **smooth, **colors)
    image.set_clip_path(section.path, transform=ax.transData)
    outline(ax, section)
    ax.set(title=section.title, xlabel=f"${names[section.axes[0]]}$", ylabel=f"${names[section.axes[1]]}$")
    ax.spines[:].set_visible(False)
    ax.locator_params(nbins=5)
    return image


def _color_bar(image: Any, label: str, extend: str) -> None:
    # An inset is as high as the panel, whatever its aspect.
    place = image.axes.inset_axes((1.05, 0.0, 0.05, 1.0))
    image.axes.figure.colorbar(image, cax=place, extend=extend).outline.set_linewidth(0.6)
    place.set_title(label)


def _map_figure(solution: Solution, components: list[int], resolution: int | None) -> Any:
    problem = solution.problem
    shown = sections(problem.domain, resolution)
    found = [solution(section.points).reshape(len(section.points), -1) for section in shown]
    # One plane: value and error side by side. Several: they are side by side, and the errors come below.
    one, known, head = len(shown) == 1, problem.exact is not None, title(solution)
    if one and shown[0].title:
        head += f"\nin the plane {shown[0].title}"
    (left, right), (bottom, top) = shown[0].bounds
    width, flat = 2.3 if one else 1.9, float(np.clip((top - bottom) / (right - left), 0.3, 2.0))
    shape = (len(components), 1 + known) if one else (len(components) * (1 + known), len(shown))
    panel = (width, width * (flat if shown[0].equal_aspect else 0.85))
    figure, axes = new_figure(*shape, panel=panel, gap=(0.9 if one else 0.4, 0.4), title=head)
    places = iter(axes.ravel() if one else axes)
    for component in components:
        name = symbol(problem.layout.component_names[component])
        values = [u[:, component] for u in found]
        _map_row(next(places), shown, values, solution_panel, f"${name}$", value_limits)
        if known:
            errors = [abs(u - problem.exact_values(s.points)[:, component]) for u, s in zip(values, shown, strict=True)]
            _map_row(next(places), shown, errors, error_panel, f"$|{name} - {name}^*|$", error_limits)
    for ax in axes.ravel():
        ax.label_outer()
        if one or ax not in axes[0]:
            ax.set_title("")
    return figure


def _map_row(axes: Any, shown: list[Section], values: list[np.ndarray], panel: Any, label: str, limits: Any) -> None:
    """The same quantity in all sections, with one scale and one colour bar."""
    scale = limits(np.concatenate(values))
    for ax, section, here in zip(np.atleast_1d(axes), shown, values, strict=True):
        panel(ax, section, here, label=label, limits=scale, bar=section is shown[-1])


def _line_figure(solution: Solution, components: list[int], resolution: int | None) -> Any:
    problem = solution.problem
    domain, known = problem.domain, problem.exact is not None
    # With the ends among the points, lines reach the boundary exactly, also around gaps.
    ends = [piece.chart(np.zeros((1, 0)))[0][0, 0] for piece in domain.pieces]
    x = np.union1d(np.linspace(domain.lower[0], domain.upper[0], resolution or LINE_RESOLUTION), ends)
    outside = (domain.level(x[:, None]) <= 0) & ~np.isin(x, ends)
    found = np.where(outside[:, None], np.nan, solution(x[:, None]).reshape(len(x), -1))
    figure, axes = new_figure(len(components), 1 + known, panel=(2.9, 2.0), title=title(solution))
    for row, component in zip(axes, components, strict=True):
        name = symbol(problem.layout.component_names[component])
        line_panel(row[0], x, found[:, component], label=f"${name}$", color="C0")
        row[0].set(xlabel="$x$", ylabel=f"${name}$")
        if not known:
            continue
        exact = np.where(outside, np.nan, problem.exact_values(x[:, None])[:, component])
        line_panel(row[0], x, exact, label="exact", color="black", linestyle=(0, (4, 3)), linewidth=0.9)
        # Above the axes, where it hides nothing.
        row[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0)
        errors = abs(found[:, component] - exact)
        low, high = error_limits(errors)
        line_panel(row[1], x, np.maximum(errors, 0.1 * low), color="C3", linewidth=1.0)
        row[1].set(xlabel="$x$", ylabel=f"$|{name} - {name}^*|$", yscale="log", ylim=(low, 2 * high))
    return figure


def _curve(piece: Piece) -> Points:
    """A piece of the boundary of a plane domain as a line through close points, with the domain on its left."""
    points, normals = piece.chart(np.linspace(0.0, 1.0, 401)[:, None])
    along = points[201] - points[200]
    points = points if normals[200] @ (along[1], -along[0]) > 0 else points[::-1]
    return points[[0, -1]] if np.allclose(normals, normals[0], rtol=0, atol=1e-12) else points


def _chained(curves: list[np.ndarray]) -> list[np.ndarray]:
    """Closed loops of curves that run in one sense: each goes on with what starts nearest to where it ends."""
    loops, rest = [], list(curves)
    while rest:
        loop = rest.pop(0)
        while (nearest := int(np.argmin([math.dist(loop[-1], curve[0]) for curve in (loop, *rest)]))) > 0:
            loop = np.concatenate([loop, rest.pop(nearest - 1)])
        loops.append(np.concatenate([loop, loop[:1]]))
    return loops


def _components(layout: Layout, unknown: str | None) -> list[int]:
    choices = {name: [index] for index, name in enumerate(layout.component_names)}
    choices |= {name: list(range(start, start + size)) for name, (start, size) in layout.offsets.items()}
    if unknown is None:
        return list(range(layout.components))
    if unknown not in choices:
        raise unknown_name("unknown of the problem", unknown, choices)
    return choices[unknown]


def _checked(path: str | PathLike) -> Path:
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise unknown_name(f"suffix of the figure {target.name!r}:", target.suffix, FORMATS)
    return target


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI // 2, bbox_inches="tight")
    return buffer.getvalue()
