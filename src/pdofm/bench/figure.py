"""A figure of the errors that packages reach against the time that they need."""

from collections.abc import Sequence
from pathlib import Path

import pdofm as pf
from pdofm.bench.accuracy import TARGET, Run

STYLES = {
    "pdofm": ("o-", "#0072b2"),
    "NGSolve": ("s--", "#000000"),
    "scikit-fem": ("^:", "#555555"),
    "pyRFM": ("D-.", "#d55e00"),
    "DeepXDE": ("v:", "#999999"),
}
"""Markers with line styles, and colours, of the packages."""


def plot(runs: Sequence[Run], path: Path) -> None:
    """Draw a panel for each problem with a line for each package; the target is a grey line."""
    import matplotlib

    problems = list(dict.fromkeys(run.problem for run in runs))
    columns = min(3, len(problems))
    with matplotlib.rc_context(pf.plot.STYLE):
        figure, axes = pf.plot.new_figure(-(-len(problems) // columns), columns, gap=(0.75, 0.75))
        for panel in axes.flat[len(problems) :]:
            panel.set_visible(False)
        shown = {}
        for panel, problem in zip(axes.flat, problems, strict=False):
            for name, (marker, colour) in STYLES.items():
                mine = sorted((r for r in runs if (r.contender, r.problem) == (name, problem)), key=lambda r: r.seconds)
                seconds, errors = [r.seconds for r in mine], [r.error for r in mine]
                if mine:
                    (shown[name],) = panel.loglog(seconds, errors, marker, color=colour, markersize=4)
            panel.axhline(TARGET, color="0.85", zorder=0)
            panel.tick_params(which="minor", labelbottom=False, labelleft=False)
            panel.set(title=problem, xlabel="seconds", ylabel="relative $L^2$ error")
        figure.legend(shown.values(), shown.keys(), loc="upper center", ncols=len(shown), frameon=False)
        pf.plot.save(figure, path, dpi=90)
