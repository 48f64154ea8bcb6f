"""The overview of a challenge: errors against seconds, ours and the best published ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pdofm as pf

if TYPE_CHECKING:
    from pdofm.challenge.report import Entry

OURS, THEIRS = "#0072b2", "#d55e00"

SMALLEST = 1e-17
"""Errors are drawn at this value if they are smaller: a logarithmic axis has no zero."""


def overview(found: Sequence[Entry], path: Path) -> None:
    """Draw a line for each row: a disk at our error and time, and a cross at the published error."""
    import matplotlib

    with matplotlib.rc_context(pf.plot.STYLE):
        figure, axes = pf.plot.new_figure(1, 1, panel=(6.5, 5.0))
        panel = axes[0, 0]
        for entry in found:
            seconds, error = entry.metrics["cold seconds"], max(entry.metrics["error"], SMALLEST)
            published = entry.row.published.error
            if published is not None:
                panel.plot([seconds, seconds], [error, published], color="0.85", linewidth=0.8, zorder=1)
                panel.plot(seconds, published, "x", color=THEIRS, markersize=5)
            filled = OURS if entry.metrics["converged"] else "none"
            panel.plot(seconds, error, "o", color=OURS, markerfacecolor=filled, markersize=5)
            panel.annotate(entry.row.name, (seconds, error), (4, 2), textcoords="offset points", fontsize=6)
        panel.set(xscale="log", yscale="log", xlabel="seconds, first solve", ylabel="error")
        panel.set_title("disks: ours (open: not converged); crosses: best published")
        pf.plot.save(figure, path, dpi=110)
