"""Evolutions at chosen times: animations, and series of files for ParaView."""

import io
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdofm._types import Points, Vector
from pdofm.archives import in_folder
from pdofm.domain import SpaceTime
from pdofm.errors import DomainError, unknown_name
from pdofm.features.slabs import Slabs
from pdofm.output.export import mesh
from pdofm.output.parts import symbol
from pdofm.output.plot import line_panel, new_figure, solution_panel, value_limits
from pdofm.output.section import Section
from pdofm.solving.solution import Solution

FRAMES = 60
"""Default number of times of an animation."""

FRAME_SECONDS = 0.06
"""How long each picture of an animation is shown."""

FRAME_RESOLUTION = 200
"""Points along the longest side of a picture."""

FILES = 50
"""Default number of times in a series of files."""


def _times(solution: Solution, count: int) -> tuple[SpaceTime, Vector]:
    domain = solution.problem.domain
    if not isinstance(domain, SpaceTime):
        raise DomainError(f"Only a solution in space-time has times to show; this one is on {domain!r}.")
    if count < 2:
        raise DomainError(f"Got {count} times; expected at least 2.")
    # A march that ended early has no values at later times.
    end = solution.features.times[-1] if isinstance(solution.features, Slabs) else domain.t1
    return domain, np.linspace(domain.t0, end, count)


def _values(solution: Solution, x: Points, time: float) -> np.ndarray:
    """All components at one time."""
    found = solution(np.column_stack([x, np.full(len(x), time)]))
    return found.reshape(len(x), -1)


def animate(solution: Solution, path: str | PathLike, *, component: int = 0, frames: int = FRAMES) -> None:
    """Write a solution in space-time as an animated picture: a moving line in one dimension of space, a map in two.

    Args:
        solution: on a `SpaceTime` over one or two dimensions.
        path: the file, ending in .gif. Its folder must exist.
        component: which component of a system to show.
        frames: number of times.
    """
    from PIL import Image

    target = in_folder(path)
    if target.suffix.lower() != ".gif":
        raise unknown_name(f"suffix of the animation {target.name!r}:", target.suffix, (".gif",))
    domain, times = _times(solution, frames)
    if domain.space.dim > 2:
        raise DomainError(f"An animation shows one or two dimensions of space; {domain.space!r} has more.")
    if domain.space.dim == 1:
        section, x = None, np.linspace(domain.space.lower, domain.space.upper, 5 * FRAME_RESOLUTION)
    else:
        section = Section(domain.space, resolution=FRAME_RESOLUTION)
        x = section.points
    values = [_values(solution, x, float(time))[:, component] for time in times]
    limits = value_limits(np.concatenate(values))
    name, pictures = symbol(solution.problem.component_names[component]), []
    for time, shown in zip(times, values, strict=True):
        figure, axes = new_figure(1, 1, panel=(3.6, 2.4), title=f"{solution.problem.name}, t = {time:.4g}")
        if section is None:
            line_panel(axes[0, 0], x[:, 0], shown)
            margin = 0.05 * (limits[1] - limits[0]) or 1.0
            axes[0, 0].set(xlabel="$x$", ylabel=f"${name}$", ylim=(limits[0] - margin, limits[1] + margin))
        else:
            solution_panel(axes[0, 0], section, shown, label=f"${name}$", limits=limits)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=100)
        pictures.append(Image.open(buffer).convert("P"))
    duration = round(1000 * FRAME_SECONDS)
    pictures[0].save(target, save_all=True, append_images=pictures[1:], duration=duration, loop=0)


def write_series(solution: Solution, path: str | PathLike, *, times: Any = None, resolution: int | None = None) -> None:
    """Write a solution in space-time for ParaView: one .vtu file per time, beside a .pvd file that lists them.

    Args:
        solution: on a `SpaceTime` over at most three dimensions of space.
        path: the file, ending in .pvd. Its folder must exist.
        times: the times to write, by default 50 equally spaced ones.
        resolution: number of cells along the longest side.
    """
    import meshio

    target = in_folder(path)
    if target.suffix.lower() != ".pvd":
        raise unknown_name(f"suffix of the series {target.name!r}:", target.suffix, (".pvd",))
    domain, usual = _times(solution, FILES)
    grid = mesh(domain.space, resolution)
    points = np.pad(grid.points, ((0, 0), (0, 3 - grid.points.shape[1])))
    entries = []
    for number, time in enumerate(usual.tolist() if times is None else list(times)):
        values = _values(solution, grid.points, float(time))
        names = solution.problem.component_names
        data: dict[str, ArrayLike] = {name: np.ascontiguousarray(values[:, c]) for c, name in enumerate(names)}
        file = target.with_name(f"{target.stem}-{number:04d}.vtu")
        meshio.Mesh(points, [(grid.kind, grid.cells)], point_data=data).write(file)
        entries.append(f'<DataSet timestep="{float(time)!r}" file="{file.name}"/>')
    body = "".join(f"    {entry}\n" for entry in entries)
    target.write_text(
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1">\n  <Collection>\n'
        f"{body}  </Collection>\n</VTKFile>\n",
        "utf-8",
    )
