"""The pictures of solutions and of sums of solutions; `pdofm.output` draws them."""

from os import PathLike
from typing import Any


class Drawn:
    """A function that can be drawn."""

    def plot(self, path: str | PathLike | None = None, **options: Any) -> Any:
        """A figure of the function (and of its error where the exact solution is known), saved to `path` if given; see
        `pdofm.output.plot.plot_solution`."""
        from pdofm.output.plot import plot_solution

        return plot_solution(self, path, **options)  # type: ignore[arg-type]

    def plot_surface(self, path: str | PathLike | None = None, **options: Any) -> Any:
        """A figure in three dimensions: the surface of the domain, and what lies behind a cut; see
        `pdofm.output.surface.plot_surface`."""
        from pdofm.output.surface import plot_surface

        return plot_surface(self, path, **options)  # type: ignore[arg-type]

    def show(self, **options: Any) -> Any:
        """A plotly figure to turn and zoom in a notebook, if plotly is installed; see
        `pdofm.output.surface.interactive`."""
        from pdofm.output.surface import interactive

        return interactive(self, **options)  # type: ignore[arg-type]

    def plot_undetermined(self, path: str | PathLike | None = None, **options: Any) -> Any:
        """A figure of the largest function that data of size 1 can cause, where they do not determine the solution; see
        `pdofm.output.free.plot_undetermined`."""
        from pdofm.output.free import plot_undetermined

        return plot_undetermined(self, path, **options)  # type: ignore[arg-type]
