"""Plots of quantities of many members of a family."""

from os import PathLike
from typing import Any

from pdofm.output.plot import STYLE, new_figure, save


def plot_sweep(sweep: Any, path: str | PathLike | None = None, parameter: int = 0) -> Any:
    """Draw a quantity of many members against one of their parameters; returns the matplotlib figure."""
    import matplotlib

    mus, values = sweep.mus.reshape(len(sweep.mus), -1), sweep.values.reshape(len(sweep.mus), -1)
    order = mus[:, parameter].argsort()
    with matplotlib.rc_context(STYLE):
        figure, axes = new_figure(1, 1, panel=(4.2, 2.8))
        panel = axes[0, 0]
        panel.plot(mus[order, parameter], values[order], "." if mus.shape[1] > 1 else ".-")
        failed = ~sweep.converged
        if failed.any():
            panel.plot(mus[failed, parameter], values[failed], "kx", label="not converged")
            panel.legend()
        panel.set(xlabel=f"parameter {parameter}", ylabel="quantity")
    if path is not None:
        save(figure, path)
    return figure
