"""Pictures of domains: the parts of the boundary in colours, with names, outward normals and points inside."""

from os import PathLike
from typing import Any

import numpy as np

from pdofm.domain import Domain, SpaceTime
from pdofm.errors import DomainError
from pdofm.output.plot import STYLE, new_figure, outline, save
from pdofm.output.section import axis_names

BOUNDARY_POINTS, INNER_POINTS, SURFACE_POINTS = 60, 200, 3000
"""Points of the boundary that show a normal, points inside, and points that show a surface."""

ARROW = 0.06
"""The length of a normal, in sizes of the domain."""


def plot_domain(
    domain: Domain, path: str | PathLike | None = None, *, points: int = INNER_POINTS, normals: bool = True
) -> Any:
    """Draw a domain of at most three dimensions; returns the matplotlib figure.

    Args:
        domain: what to draw; of a space-time, its space.
        path: the file in which to save it, ending in .pdf, .png or .svg. Its folder must exist.
        points: how many points inside to draw, as `domain.sample` places them; 0 for none.
        normals: whether to draw outward normals.
    """
    import matplotlib

    space = domain.space if isinstance(domain, SpaceTime) else domain
    if space.dim > 3:
        raise DomainError(f"{domain!r} has {space.dim} dimensions; a picture shows at most 3.")
    with matplotlib.rc_context(STYLE):
        figure = (_solid if space.dim == 3 else _plane)(space, points, normals)
        if path is not None:
            save(figure, path)
    return figure


def _plane(domain: Domain, points: int, normals: bool) -> Any:
    figure, axes = new_figure(1, 1, panel=(3.6, 3.6 if domain.dim == 2 else 1.0), title=_shown(domain))
    ax = axes[0, 0]
    if domain.dim == 2:
        outline(ax, domain)
    if points:
        inside = domain.sample(points)
        ax.plot(inside[:, 0], _second(inside), ".", markersize=2, color="0.7")
    for name in domain.boundary.names:
        at, out = domain.part(name).sample(max(4, _share(domain, name)), "grid")
        (drawn,) = ax.plot(at[:, 0], _second(at), ".", markersize=4, label=name)
        if normals:
            lengths = ARROW * domain.size * out
            options = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.004, "color": drawn.get_color()}
            ax.quiver(at[:, 0], _second(at), lengths[:, 0], _second(lengths), **options)
    names = axis_names(domain)
    ax.set(xlabel=f"${names[0]}$", ylabel=f"${names[1]}$" if domain.dim == 2 else "")
    if domain.dim == 2:
        ax.set_aspect("equal")
    else:
        ax.set_yticks([])
    ax.margins(0.12)
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
    return figure


def _solid(domain: Domain, points: int, normals: bool) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4.5))
    FigureCanvasAgg(figure)
    ax: Any = figure.add_subplot(projection="3d")
    for name in domain.boundary.names:
        part = domain.part(name)
        count = max(50, int(SURFACE_POINTS * part.measure / domain.boundary.measure))
        at, _ = part.sample(count)
        drawn = ax.scatter(*at.T, s=2, alpha=0.5, label=name)
        if normals:
            some, out = part.sample(max(4, _share(domain, name)))
            ax.quiver(*some.T, *(ARROW * domain.size * out).T, color=drawn.get_facecolor()[0], linewidth=0.6)
    ax.set_box_aspect(domain.upper - domain.lower)
    names = axis_names(domain)
    ax.set(xlabel=f"${names[0]}$", ylabel=f"${names[1]}$", zlabel=f"${names[2]}$", title=_shown(domain))
    ax.legend(loc="upper left", bbox_to_anchor=(1.05, 1.0), markerscale=4)
    return figure


def _share(domain: Domain, name: str) -> int:
    return round(BOUNDARY_POINTS * domain.part(name).measure / domain.boundary.measure)


def _second(x: np.ndarray) -> np.ndarray:
    """The second coordinate, 0 on a line."""
    return x[:, 1] if x.shape[1] > 1 else np.zeros(len(x))


def _shown(domain: Domain) -> str:
    text = repr(domain)
    return text if len(text) < 60 else type(domain).__name__
