"""Figures of solutions and errors, clipped to the true shape of the domain.

The panels draw on axes that the caller owns, so other figures can be composed of them:

    figure, axes = new_figure(1, 2)
    section = Section(domain)
    solution_panel(axes[0, 0], section, u(section.points))
    error_panel(axes[0, 1], section, abs(u(section.points) - v(section.points)))
    save(figure, "comparison.pdf")

Nothing here touches pyplot: no window opens, no figure stays in memory and the user's settings are left alone.
"""

import io
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Points, Vector
from pdofm.domain import Domain, Piece, SpaceTime
from pdofm.errors import DomainError, unknown_name
from pdofm.solution import Solution
from pdofm.terms import Layout

FORMATS = (".pdf", ".png", ".svg")
DPI = 200

# Perceptually uniform, monotone in lightness, and told apart at a glance.
VALUE_COLORS, ERROR_COLORS = "viridis", "magma"

# Points along the longest side of a map or slice, and of a line.
MAP_RESOLUTION, SLICE_RESOLUTION, LINE_RESOLUTION = 300, 200, 1000
# Closer to the boundary than this, times the size of the domain, counts as on it.
_ON_BOUNDARY = 1e-9
# An error vanishes where it changes its sign; fewer decades than this below its maximum are worth showing.
_DECADES = 4

Image = Float[np.ndarray, "rows columns"]
Limits = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Section:
    """The part of a domain in a plane: the coordinates `axes` vary, the others stay as in `through` `(dim,)`.

    `points` `(n, dim)` are those points of a fine grid of the plane that lie in the closed domain; the panels take one
    value for each of them.
    """

    domain: Domain
    axes: tuple[int, int] = (0, 1)
    through: Vector | None = None
    resolution: int = MAP_RESOLUTION
    title: str = ""

    @cached_property
    def points(self) -> Points:
        return self.lift(*np.meshgrid(*self.coordinates))[self.inside.ravel()]

    @property
    def labels(self) -> tuple[str, ...]:
        names = axis_names(self.domain)
        return tuple(names[axis] for axis in self.axes)

    @property
    def equal_aspect(self) -> bool:
        """Whether both axes are lengths; a time has another unit."""
        return not self.domain.has_time or self.domain.dim - 1 not in self.axes

    @cached_property
    def coordinates(self) -> tuple[Vector, Vector]:
        lower, upper = self.domain.lower[list(self.axes)], self.domain.upper[list(self.axes)]
        sides = upper - lower
        share = sides / sides.max() if self.equal_aspect else np.ones(2)
        x, y = (np.linspace(a, b, max(2, math.ceil(self.resolution * s))) for a, b, s in zip(lower, upper, share))
        return x, y

    @cached_property
    def inside(self) -> Any:
        """Which points of the grid `(y, x)` lie in the closed domain."""
        x, y = self.coordinates
        return self._level(x, y) >= -_ON_BOUNDARY * self.domain.size

    def lift(self, x: np.ndarray, y: np.ndarray) -> Points:
        """Points `(n, dim)` of the domain from coordinates in the plane, of any shape."""
        center = 0.5 * (self.domain.lower + self.domain.upper) if self.through is None else self.through
        points = np.tile(center, (x.size, 1))
        points[:, self.axes[0]], points[:, self.axes[1]] = x.ravel(), y.ravel()
        return points

    def image(self, values: Vector) -> Image:
        """Values at `points` as an image `(y, x)`, continued outside by the nearest one.

        The path of the domain cuts that off again; without it, pixels that the boundary crosses would stay empty.
        """
        from scipy.ndimage import distance_transform_edt

        image = np.full(self.inside.shape, np.nan)
        image[self.inside] = values
        known = np.isfinite(image)
        if not known.any():
            return image
        nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
        return image[tuple(np.asarray(nearest))]

    @cached_property
    def path(self) -> Any:
        """The outline as a matplotlib path; the domain is on its left, so that holes stay holes when it is filled."""
        from matplotlib.path import Path as Outline

        plane = self.domain.space if isinstance(self.domain, SpaceTime) else self.domain
        exact = plane.dim == 2 and self.axes == (0, 1)
        loops = _chained([_curve(piece) for piece in plane.pieces]) if exact else self._zero_level()
        return Outline.make_compound_path(*(Outline(loop, closed=True) for loop in loops))

    def _level(self, x: Vector, y: Vector) -> Image:
        return self.domain.level(self.lift(*np.meshgrid(x, y))).reshape(len(y), len(x))

    def _zero_level(self) -> list[Points]:
        """The outline where no piece of the boundary gives it, from the signed distance on the grid."""
        from contourpy import contour_generator  # what matplotlib draws contours with

        # The grid ends on the boundary of a box: a ring of points around it closes the contours.
        x, y = (np.concatenate([[2 * s[0] - s[1]], s, [2 * s[-1] - s[-2]]]) for s in self.coordinates)
        # The level vanishes also on a face that two united domains share; slightly below zero it does not.
        lines = contour_generator(x, y, self._level(x, y)).lines(-_ON_BOUNDARY * self.domain.size)
        return [np.asarray(line) for line in lines]


def sections(domain: Domain, resolution: int | None = None) -> list[Section]:
    """The planes that show a domain of two or more dimensions.

    The whole of a plane domain or a space-time of one dimension; three times of a space-time; z at a quarter, a half and
    three quarters in three dimensions; beyond that the plane of the first two axes through the center of the box.
    """
    many = domain.dim == 3 or (domain.has_time and domain.dim > 3)
    resolution = resolution or (SLICE_RESOLUTION if many else MAP_RESOLUTION)
    if domain.dim == 2:
        return [Section(domain, resolution=resolution)]
    names = axis_names(domain)
    center = 0.5 * (domain.lower + domain.upper)
    if not many and not domain.contains(center[None])[0]:
        inside = domain.sample(1024)
        center = inside[np.argmin(np.linalg.norm(inside - center, axis=1))]
    low, high = domain.lower[-1], domain.upper[-1]
    fractions = (0.0, 0.5, 1.0) if domain.has_time else (0.25, 0.5, 0.75)
    found = []
    for fraction in fractions if many else [None]:
        through = center if fraction is None else np.append(center[:-1], low * (1 - fraction) + high * fraction)
        fixed = ", ".join(f"${name} = {value:.3g}$" for name, value in zip(names[2:], through[2:], strict=True))
        title = fixed if many else f"plane through {fixed}"
        found.append(Section(domain, through=through, resolution=resolution, title=title))
    shown = [section for section in found if section.inside.any()]
    if not shown:
        raise DomainError(f"No slice of {domain!r} at {names[-1]} = const meets it; draw a Section of your own.")
    return shown


def plot_solution(
    solution: Solution, path: str | PathLike | None = None, *, unknown: str | None = None, resolution: int | None = None
) -> Any:
    """The matplotlib Figure of a solution, beside it the absolute error where the exact solution is known.

    Args:
        solution: what to draw; `sections` says which planes of a domain of more than two dimensions are shown.
        path: where to save it, as .pdf, .png or .svg; folders are made.
        unknown: in a system, the one to draw, such as "v" or "v[0]"; by default all of them, a row per component.
        resolution: points along the longest side.
    """
    target = None if path is None else _checked(path)
    if resolution is not None and resolution < 2:
        raise DomainError(f"The resolution is {resolution}; expected at least 2 points along the longest side.")
    components = _components(solution.problem.layout, unknown)
    with style():
        figure = (_line_figure if solution.problem.domain.dim == 1 else _map_figure)(solution, components, resolution)
        figure.suptitle(title(solution))
    if target is not None:
        save(figure, target)
    return figure


def new_figure(rows: int, columns: int, *, size: tuple[float, float] = (3.2, 2.6)) -> tuple[Any, Any]:
    """A figure outside pyplot, and its axes `(rows, columns)`; `size` is that of one panel, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(columns * size[0], rows * size[1] + 0.3), layout="constrained")
    FigureCanvasAgg(figure)
    # Notebooks know the figures of pyplot only; any object may say by itself how it looks.
    figure._repr_png_ = partial(_png, figure)  # pyright: ignore[reportAttributeAccessIssue]
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Any, path: str | PathLike) -> None:
    """Save a figure as .pdf, .png or .svg, by suffix; folders are made."""
    target = _checked(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with style():
        figure.savefig(target, dpi=DPI)


def style() -> AbstractContextManager[None]:
    """The settings of all figures, for a while: small type, thin lines, fonts that a journal can embed."""
    import matplotlib

    return matplotlib.rc_context(
        {
            **{"font.size": 9, "axes.titlesize": 9, "figure.titlesize": 10, "mathtext.fontset": "cm"},
            **{"axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6, "lines.linewidth": 1.4},
            **{"pdf.fonttype": 42, "legend.frameon": False},
        }
    )


def title(solution: Solution) -> str:
    """Name, number of features and estimated error of a solution."""
    stats = solution.stats
    each = " per component" if stats.components > 1 else ""
    parts = [f"{stats.features} features{each}", f"estimated relative error {_power_of_ten(solution.error_estimate)}"]
    if not solution.converged:
        parts.append("not converged")
    name = solution.problem.name.replace("$", r"\$")
    return f"{name}: {', '.join(parts)}"


def axis_names(domain: Domain) -> list[str]:
    """x, y, z and t, or x_0, x_1, ... in more than three dimensions."""
    space = domain.dim - domain.has_time
    names = ["x", "y", "z"][:space] if space <= 3 else [f"x_{{{axis}}}" for axis in range(space)]
    return [*names, "t"] if domain.has_time else names


def symbol(name: str) -> str:
    """A component such as ``v[0]`` in mathematical type, without the dollar signs."""
    root, _, index = name.rstrip("]").partition("[")
    letters = root.replace("_", r"\_")
    return (letters if len(root) == 1 else rf"\mathit{{{letters}}}") + (f"_{{{index}}}" if index else "")


def solution_panel(
    ax: Any, section: Section, values: Vector, *, label: str = "$u$", limits: Limits | None = None, colorbar: bool = True
) -> Any:
    """A map of the values at `section.points`; returns the image."""
    from matplotlib.colors import Normalize

    return _map(ax, section, values, Normalize(*(limits or value_limits(values))), VALUE_COLORS, label if colorbar else None)


def error_panel(
    ax: Any,
    section: Section,
    errors: Vector,
    *,
    label: str = "absolute error",
    limits: Limits | None = None,
    colorbar: bool = True,
) -> Any:
    """A map of absolute errors at `section.points` on a logarithmic scale; returns the image."""
    from matplotlib.colors import LogNorm

    low, high = limits or error_limits(errors)
    # A logarithm of zero would leave holes in the map.
    shown = np.maximum(errors, 1e-3 * low)
    return _map(ax, section, shown, LogNorm(low, high), ERROR_COLORS, label if colorbar else None)


def line_panel(
    ax: Any,
    x: Vector,
    values: Vector,
    *,
    label: str | None = None,
    band: tuple[Vector, Vector] | None = None,
    **line: Any,
) -> Any:
    """A line through values at x, with a shaded `band` (low, high) around it; NaN interrupts it; returns the line."""
    (drawn,) = ax.plot(x, values, label=label, **line)
    if band is not None:
        ax.fill_between(x, *band, color=drawn.get_color(), alpha=0.2, linewidth=0)
    ax.spines[["top", "right"]].set_visible(False)
    return drawn


def outline(ax: Any, section: Section | Domain) -> Any:
    """Draw the true boundary of a plane domain, or of a section of any other; returns the patch."""
    from matplotlib.patches import PathPatch

    path = (section if isinstance(section, Section) else Section(section)).path
    return ax.add_patch(PathPatch(path, fill=False, linewidth=0.8, joinstyle="miter", clip_on=False, zorder=3))


def value_limits(values: Vector) -> Limits:
    """The least and the largest of the finite values."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def error_limits(errors: Vector) -> Limits:
    """A range of a logarithmic scale that shows errors: up to the largest, from a power of ten at most four decades below."""
    positive = errors[np.isfinite(errors) & (errors > 0)]
    if not positive.size:
        return 1e-17, 1e-16
    high = max(float(positive.max()), 1e-300)
    low = max(float(np.percentile(positive, 1)), high * 10.0**-_DECADES)
    return 10.0 ** math.floor(math.log10(low) + 1e-9), high


def _map(ax: Any, section: Section, values: Vector, norm: Any, colors: str, label: str | None) -> Any:
    x, y = section.coordinates
    dx, dy = 0.5 * (x[1] - x[0]), 0.5 * (y[1] - y[0])
    image = ax.imshow(
        section.image(values),
        extent=(x[0] - dx, x[-1] + dx, y[0] - dy, y[-1] + dy),
        origin="lower",
        aspect="equal" if section.equal_aspect else "auto",
        interpolation="bilinear",
        norm=norm,
        cmap=colors,
    )
    image.set_clip_path(section.path, transform=ax.transData)
    outline(ax, section)
    ax.set(xlim=x[[0, -1]], ylim=y[[0, -1]], title=section.title)
    ax.set(xlabel=f"${section.labels[0]}$", ylabel=f"${section.labels[1]}$")
    ax.spines[:].set_visible(False)
    ax.locator_params(nbins=5)
    if label is not None:
        # An inset is as high as the panel, which the equal aspect may have made lower than its place in the figure.
        bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.04, 0.0, 0.045, 1.0)), label=label)
        bar.outline.set_linewidth(0.6)
    return image


def _map_figure(solution: Solution, components: Sequence[int], resolution: int | None) -> Any:
    problem = solution.problem
    shown = sections(problem.domain, resolution)
    found = [solution(section.points).reshape(len(section.points), -1) for section in shown]
    kinds = ["value"] if problem.exact is None else ["value", "error"]
    errors = [] if problem.exact is None else [abs(u - problem.exact_values(s.points)) for u, s in zip(found, shown)]
    sides = [np.ptp(s) for s in shown[0].coordinates]
    flat = float(np.clip(sides[1] / sides[0], 0.4, 1.6)) if shown[0].equal_aspect else 0.85
    # One plane: value and error side by side. Several: side by side they are the slices, and errors come below.
    one = len(shown) == 1
    width = 3.7 if one else 2.6
    rows, columns = (len(components), len(kinds)) if one else (len(components) * len(kinds), len(shown))
    figure, axes = new_figure(rows, columns, size=(width, 0.7 * width * flat + 0.5))
    for row, component in enumerate(components):
        name = symbol(problem.layout.component_names[component])
        for column, kind in enumerate(kinds):
            values = [each[:, component] for each in (found if kind == "value" else errors)]
            panel, bounds = (solution_panel, value_limits) if kind == "value" else (error_panel, error_limits)
            label = f"${name}$" if kind == "value" else f"$|{name} - {name}^*|$"
            limits = bounds(np.concatenate(values))
            for index, (section, here) in enumerate(zip(shown, values, strict=True)):
                ax = axes[row, column] if one else axes[row * len(kinds) + column, index]
                panel(ax, section, here, label=label, limits=limits, colorbar=section is shown[-1])
                if not one:
                    ax.label_outer()
    return figure


def _line_figure(solution: Solution, components: Sequence[int], resolution: int | None) -> Any:
    problem = solution.problem
    domain = problem.domain
    # With the ends among the points, lines reach the boundary exactly, also around gaps.
    ends = [piece.chart(np.zeros((1, 0)))[0][0, 0] for piece in domain.pieces]
    x = np.union1d(np.linspace(domain.lower[0], domain.upper[0], resolution or LINE_RESOLUTION), ends)
    outside = domain.level(x[:, None]) < -_ON_BOUNDARY * domain.size
    found = np.where(outside[:, None], np.nan, solution(x[:, None]).reshape(len(x), -1))
    known = problem.exact is not None
    figure, axes = new_figure(len(components), 1 + known, size=(3.7, 2.6))
    for row, component in zip(axes, components, strict=True):
        name = symbol(problem.layout.component_names[component])
        line_panel(row[0], x, found[:, component], label=f"${name}$", color="C0")
        row[0].set(xlabel="$x$", ylabel=f"${name}$")
        if not known:
            continue
        exact = np.where(outside, np.nan, problem.exact_values(x[:, None])[:, component])
        line_panel(row[0], x, exact, label="exact", color="black", linestyle=(0, (4, 3)), linewidth=0.9)
        # Below the line, where it can hide nothing.
        row[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0)
        errors = abs(found[:, component] - exact)
        low, high = error_limits(errors)
        line_panel(row[1], x, np.maximum(errors, 1e-3 * low), color="C3", linewidth=1.0)
        row[1].set(xlabel="$x$", ylabel=f"$|{name} - {name}^*|$", yscale="log", ylim=(low, 2 * high))
    return figure


def _curve(piece: Piece) -> Points:
    """A piece of the boundary of a plane domain as a line through close points, with the domain on its left."""
    points, normals = piece.chart(np.linspace(0.0, 1.0, 401)[:, None])
    along = points[201] - points[200]
    points = points if normals[200] @ (along[1], -along[0]) > 0 else points[::-1]
    return points[[0, -1]] if np.allclose(normals, normals[0], rtol=0, atol=1e-12) else points


def _chained(curves: list[Points]) -> list[Points]:
    """Closed loops of curves that run in one sense: each goes on with what starts nearest to where it ends."""
    loops, rest = [], list(curves)
    while rest:
        loop = rest.pop(0)
        while rest:
            gaps = [math.dist(loop[-1], start[0]) for start in (loop, *rest)]
            nearest = int(np.argmin(gaps))
            if nearest == 0:
                break
            loop = np.concatenate([loop, rest.pop(nearest - 1)])
        loops.append(np.concatenate([loop, loop[:1]]))
    return loops


def _components(layout: Layout, unknown: str | None) -> list[int]:
    if unknown is None:
        return list(range(layout.components))
    choices = {name: [index] for index, name in enumerate(layout.component_names)}
    choices |= {name: list(range(start, start + size)) for name, (start, size) in layout.offsets.items()}
    if unknown not in choices:
        raise unknown_name("unknown of the problem", unknown, choices)
    return choices[unknown]


def _checked(path: str | PathLike) -> Path:
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise unknown_name(f"format of the figure {target.name!r}:", target.suffix, FORMATS)
    return target


def _power_of_ten(value: float) -> str:
    if not (math.isfinite(value) and value > 0):
        return f"{value:g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return rf"${mantissa} \times 10^{{{int(exponent)}}}$"


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI // 2)
    return buffer.getvalue()
