"""Pictures of solutions in three dimensions: the surface of the domain in colours, and what a cut opens.

A cut removes the part of the domain that faces the viewer, so that the faces of the cut show the solution inside.
"""

from os import PathLike
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Points, Vector
from pdofm.domain import Box, Domain, SpaceTime
from pdofm.errors import DomainError, PdofmError
from pdofm.output.export import mesh
from pdofm.output.parts import components, symbol
from pdofm.output.plot import STYLE, VALUE_COLORS, save, title, value_limits, values_at
from pdofm.output.section import axis_names
from pdofm.output.solid import surface
from pdofm.solving.arithmetic import Arithmetic as Function

RESOLUTION = 36
"""Default number of cells along the longest side."""

VIEW = {"elev": 28.0, "azim": -52.0}
"""Where the viewer stands, in degrees: in front of the corner with the largest x, the smallest y and the largest z."""

_LIGHT = np.array([0.25, -0.55, 0.8])
"""The direction that light comes from."""

Corners = Float[np.ndarray, "faces 3 3"]


def plot_surface(
    solution: Function,
    path: str | PathLike | None = None,
    *,
    unknown: str | None = None,
    cut: Any = None,
    resolution: int = RESOLUTION,
) -> Any:
    """Draw a solution in three dimensions on the surface of its domain, and beside it what lies behind a cut; returns
    the matplotlib figure.

    Args:
        solution: on a domain of three dimensions.
        path: the file in which to save it, ending in .pdf, .png or .svg. Its folder must exist.
        unknown: in a system, the component to draw, such as "v[0]"; by default the first.
        cut: a point; what lies in front of it (larger x, smaller y, larger z) is removed. By default the center.
        resolution: number of cells along the longest side.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    domain, component = _solid(solution), components(solution.problem.layout, unknown)[0]
    views = [_colored(solution, domain, component, resolution)]
    opened = _opened(domain, cut)
    views += [] if opened is None else [_colored(solution, opened, component, resolution)]
    colors = ScalarMappable(Normalize(*value_limits(np.concatenate([values for _, values in views]))), VALUE_COLORS)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.2 * len(views), 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title(solution))
        axes = []
        for number, (corners, values) in enumerate(views, 1):
            axes.append(figure.add_subplot(1, len(views), number, projection="3d"))
            _draw(axes[-1], domain, corners, values, colors)
        name = symbol(solution.problem.component_names[component])
        figure.colorbar(colors, ax=axes, shrink=0.7, aspect=25, label=f"${name}$")
        if path is not None:
            save(figure, path)
    return figure


def interactive(
    solution: Function, *, unknown: str | None = None, cut: Any = None, resolution: int | None = None
) -> Any:
    """A plotly figure that can be turned and zoomed in a notebook: the surface of a solid, behind a cut if `cut` is a
    point or True, or the graph of a solution in two dimensions. Needs plotly: ``pip install 'pdofm[interactive]'``."""
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise PdofmError("Interactive pictures need plotly: pip install 'pdofm[interactive]'.") from error

    domain = solution.problem.domain
    component = components(solution.problem.layout, unknown)[0]
    if domain.dim == 2:
        grid = mesh(domain, resolution or 80)
        points, faces = grid.points, _triangles(grid.cells)
        values = values_at(solution, points)[:, component]
        points = np.column_stack([points, values])
    else:
        solid = _solid(solution)
        if cut is not None and cut is not False:
            solid = _opened(solid, None if cut is True else cut) or solid
        points, faces = skin(solid, resolution or RESOLUTION)
        values = values_at(solution, points)[:, component]
    (x, y, z), (i, j, k) = points.T, faces.T
    drawn = go.Mesh3d(x=x, y=y, z=z, i=i, j=j, k=k, intensity=values, colorscale=VALUE_COLORS, flatshading=False)
    names = [*axis_names(domain)[: domain.dim], solution.problem.component_names[component]][:3]
    scene = {f"{axis}axis_title": name for axis, name in zip("xyz", names, strict=True)}
    aspect = "data" if domain.dim == 3 else "cube"
    layout = {"title": solution.problem.name, "scene": {**scene, "aspectmode": aspect}, "margin": {"b": 0, "l": 0}}
    return go.Figure(drawn, layout)


def skin(domain: Domain, resolution: int) -> tuple[Points, Int[np.ndarray, "f 3"]]:
    """The surface of a domain of three dimensions as triangles: points, and rows of indices of points."""
    grid = mesh(domain, resolution)
    if grid.kind == "tetra":
        faces = surface(grid.cells)
    else:
        sides = np.array([[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]])
        quads = grid.cells[:, sides].reshape(-1, 4)
        _, first, count = np.unique(np.sort(quads, axis=1), axis=0, return_index=True, return_counts=True)
        faces = _triangles(quads[first[count == 1]])
    used, numbers = np.unique(faces, return_inverse=True)
    return grid.points[used], numbers.reshape(faces.shape)


def _triangles(cells: Int[np.ndarray, "c corners"]) -> Int[np.ndarray, "f 3"]:
    """Triangles, or quadrilaterals cut in two."""
    return cells if cells.shape[1] == 3 else np.concatenate([cells[:, [0, 1, 2]], cells[:, [0, 2, 3]]])


def _solid(solution: Function) -> Domain:
    domain = solution.problem.domain
    if domain.dim != 3 or isinstance(domain, SpaceTime):
        raise DomainError(
            f"{domain!r} is no solid: a picture of a surface needs three dimensions of space. Use u.plot()."
        )
    return domain


def _opened(domain: Domain, at: Any) -> Domain | None:
    """The domain without what lies in front of a point; None if nothing is left, or removed."""
    x, y, z = (0.5 * (domain.lower + domain.upper)).tolist() if at is None else domain.checked([at])[0].tolist()
    margin = 0.01 * domain.size
    low, high = [x, domain.lower[1] - margin, z], [domain.upper[0] + margin, y, domain.upper[2] + margin]
    if np.any(np.array(low) >= high):
        return None
    front = Box(low, high)
    inside = domain.sample(256, "grid")
    return domain - front if np.any(front.contains(inside)) and not np.all(front.contains(inside)) else None


def _colored(solution: Function, domain: Domain, component: int, resolution: int) -> tuple[Corners, Vector]:
    """The triangles of the surface of a domain, and the mean of the values at the corners of each."""
    points, faces = skin(domain, resolution)
    values = values_at(solution, points)[:, component]
    return points[faces], values[faces].mean(axis=1)


def _draw(ax: Any, domain: Domain, corners: Corners, values: Vector, colors: Any) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    light = 0.72 + 0.28 * np.clip(normals @ (_LIGHT / np.linalg.norm(_LIGHT)), 0.0, 1.0)
    rgba = colors.to_rgba(values)
    rgba[:, :3] *= light[:, None]
    # Edges in the colours of the faces hide the gaps between neighbouring triangles.
    ax.add_collection3d(Poly3DCollection(corners, facecolors=rgba, edgecolors=rgba, linewidths=0.3))
    names = axis_names(domain)
    low, high = domain.lower, domain.upper
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set(xlabel=f"${names[0]}$", ylabel=f"${names[1]}$", zlabel=f"${names[2]}$")
    ax.set_box_aspect(high - low)
    ax.view_init(**VIEW)
    ax.locator_params(nbins=4)
