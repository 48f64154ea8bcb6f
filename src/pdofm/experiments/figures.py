"""The figures of the paper, drawn from the curves and maps that a run has stored in its folder."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pdofm as pf
from pdofm.experiments.case import Case
from pdofm.experiments.limit import AGAINST, SIZES
from pdofm.experiments.runner import curves
from pdofm.experiments.tables import RESOLUTION, SETUPS, section_of
from pdofm.experiments.transfer import DISTRIBUTIONS

LINES = ("-", "--", ":", "-.")
COLOURS = ("#000000", "#0072b2", "#d55e00", "#888888")
"""Black, blue, orange and grey. They differ in brightness, so that lines can be told apart without colour."""

SCREEN, PRINT = 90, 200
"""Pixels per inch, of PNG for the report on a screen and of SVG for print."""

SMALLEST = 1e-18
"""Errors are drawn at this value if they are smaller: a logarithmic axis has no zero."""


class Drawing(NamedTuple):
    """A figure, with its caption and the name of its file."""

    name: str
    caption: str
    figure: Any


class Drawer:
    """Draws the figures of all cases that have been measured into the folder `out`."""

    def __init__(self, cases: Sequence[Case], out: Path):
        self.out = out
        found = {case: [run for run in curves(case, out) if run] for case in cases}
        self.runs = {case: runs for case, runs in found.items() if runs}

    def draw(self) -> Iterator[tuple[str, str, list[Path]]]:
        """Write all figures for which there are results; yields experiment, caption and paths (PNG, then SVG)."""
        import matplotlib

        experiments = dict.fromkeys(case.experiment for case in self.runs)
        for experiment in experiments:
            with matplotlib.rc_context(pf.plot.STYLE):
                figures = list(self._of(experiment))
            for name, caption, figure in figures:
                (self.out / "figures").mkdir(parents=True, exist_ok=True)
                paths = [self.out / "figures" / f"{name}.{kind}" for kind in ("png", "svg")]
                for path, dpi in zip(paths, (SCREEN, PRINT), strict=True):
                    pf.plot.save(figure, path, dpi=dpi)
                yield experiment, caption, paths

    def _of(self, experiment: str) -> Iterator[Drawing]:
        """All figures of an experiment."""
        measured = {c.case for c in self.runs if c.experiment == experiment}
        for case, draw in _LINE_FIGURES.get(experiment, ()):
            if case in measured and (figure := draw(self)) is not None:
                yield figure
        found = dict.fromkeys((c.case, c.settings) for c in self.runs if c.experiment == experiment)
        for case, settings in found:
            if (experiment, case) in SETUPS or experiment == "variational":
                yield self._errors(experiment, case, settings)

    def _curves(self, experiment: str, case: str, settings: str | None = None) -> dict[str, list[dict[str, Any]]]:
        """The curves of each method, one entry per seed."""
        wanted = {c: runs for c, runs in self.runs.items() if (c.experiment, c.case) == (experiment, case)}
        return {c.method: runs for c, runs in wanted.items() if settings in (None, c.settings)}

    def _lines(self, ax: Any, x: Sequence[float], found: dict[str, list[Sequence[float]]], *, log: bool = True) -> None:
        """Draw a line for each method through the medians over the seeds, and a band over their range."""
        for (method, runs), style, colour in zip(found.items(), LINES, COLOURS, strict=False):
            values = np.array(runs)
            band = (values.min(axis=0), values.max(axis=0))
            middle = np.median(values, axis=0)
            pf.plot.line_panel(ax, np.asarray(x, float), middle, band=band, label=method, linestyle=style, color=colour)
        if log:
            ax.set_yscale("log")
        ax.legend()

    def _against_features(self, experiment: str, name: str, caption: str) -> Drawing:
        found = self._curves(experiment, "error against features")
        figure, axes = pf.plot.new_figure(1, 1, panel=(3.2, 2.4))
        x = next(iter(found.values()))[0]["features"]
        self._lines(axes[0, 0], x, {method: [run["errors"] for run in runs] for method, runs in found.items()})
        axes[0, 0].set(xlabel="number of features", ylabel="relative $L^2$ error")
        return Drawing(name, caption, figure)

    def _fit_errors(self) -> Drawing:
        return self._against_features("fit", "fit-errors", "Error of the fit against the number of features.")

    def _fit_coefficients(self) -> Drawing:
        found = self._curves("fit", "coefficients of 20 features")
        figure, axes = pf.plot.new_figure(1, 1, panel=(3.2, 2.4))
        for (method, runs), style, colour in zip(found.items(), LINES, COLOURS, strict=False):
            sizes = np.sort(runs[0]["coefficients"])[::-1]
            axes[0, 0].plot(np.arange(1, len(sizes) + 1), sizes, marker="o", ms=3, ls=style, color=colour, label=method)
        axes[0, 0].set(xlabel="rank", ylabel="|coefficient|", yscale="log")
        axes[0, 0].legend()
        return Drawing("fit-coefficients", "Coefficients of 20 features by size, seed 0.", figure)

    def _fit_features(self) -> Drawing:
        found = self._curves("fit", "coefficients of 20 features")
        figure, axes = pf.plot.new_figure(1, len(found), panel=(2.8, 2.2))
        for ax, (method, runs) in zip(axes[0], found.items(), strict=True):
            for i, values in enumerate(runs[0]["first ten features"]):
                ax.plot(runs[0]["x"], values, color=str(0.08 * i), linewidth=0.8)
            ax.set(xlabel="$x$", ylabel="features", title=method)
        return Drawing("fit-features", "The first ten features, each divided by its largest value, seed 0.", figure)

    def _fit_projection(self) -> Drawing:
        found = self._curves("fit", "coefficients of 20 features")
        figure, axes = pf.plot.new_figure(1, len(found), panel=(2.8, 2.2))
        for ax, (method, runs) in zip(axes[0], found.items(), strict=True):
            ax.plot(runs[0]["x"], runs[0]["function"], color=COLOURS[3], linewidth=1.2, label="function")
            ax.plot(runs[0]["x"], runs[0]["fit"], color="black", linewidth=0.8, label="projection")
            ax.set(xlabel="$x$", title=method)
            ax.legend()
        return Drawing("fit-projection", "The function and its projection onto 20 features, seed 0.", figure)

    def _dynamics(self) -> Drawing:
        schemes = {scheme: self._curves("dynamics", scheme).get("PD-FM") for scheme in ("xavier", "kaiming")}
        found = {scheme: runs for scheme, runs in schemes.items() if runs}
        figure, axes = pf.plot.new_figure(1, 2, panel=(2.8, 2.2))
        for ax, name in zip(axes[0], ("loss", "least-squares error"), strict=True):
            first = next(iter(found.values()))[0]
            x = range(1, len(first[name]) + 1) if name == "loss" else first["step"]
            self._lines(ax, x, {scheme: [run[name] for run in runs] for scheme, runs in found.items()})
            ax.set(xlabel="step", ylabel=name)
        return Drawing("dynamics", "Training loss and least-squares error during training.", figure)

    def _evolution(self) -> Drawing:
        found = self._curves("poisson-1d", "evolution")
        figure, axes = pf.plot.new_figure(1, 3, panel=(2.2, 2.0))
        for ax, name in zip(axes[0], ("effective rank", "orthogonality loss", "projection error"), strict=True):
            x = next(iter(found.values()))[0]["step"]
            runs = {method: [run[name] for run in runs] for method, runs in found.items()}
            self._lines(ax, x, runs, log=name != "effective rank")
            ax.set(xlabel="step", ylabel=name)
        return Drawing(
            "poisson-1d-evolution",
            "Quality of the features during training, with λ = 0.1 and without orthogonality.",
            figure,
        )

    def _spectrum(self) -> Drawing:
        found = self._curves("poisson-1d", "evolution")
        figure, axes = pf.plot.new_figure(1, 1, panel=(3.2, 2.4))
        runs = {method: [np.maximum(run["spectrum"], 1e-32) for run in runs] for method, runs in found.items()}
        self._lines(axes[0, 0], range(1, 101), runs)
        axes[0, 0].set(xlabel="index", ylabel="singular value of the Gram matrix", ylim=(1e-32, 2))
        return Drawing(
            "poisson-1d-spectrum", "Singular values of the Gram matrix after training, relative to the largest.", figure
        )

    def _poisson_errors(self) -> Drawing:
        return self._against_features(
            "poisson-1d", "poisson-1d-errors", "Error for another source against the number of features."
        )

    def _ridges(self) -> Drawing | None:
        runs = self._curves("interior-layer", "50 other sources").get("trained tanh")
        if runs is None:
            return None
        run = runs[0]
        figure, axes = pf.plot.new_figure(1, 2, panel=(2.8, 2.2))
        for ax, when in zip(axes[0], ("before", "after"), strict=True):
            places, slopes = run[f"ridges {when}"]
            ax.scatter(places, slopes, s=6, color="black", linewidths=0)
            ax.axvline(0.37, color=COLOURS[2], linewidth=0.8)
            ax.set(xlim=(-1.2, 1.2), yscale="log", xlabel="place of the ridge", ylabel="slope", title=when)
        return Drawing(
            "interior-layer-ridges", "Ridges of the features before and after training; the layer is at 0.37.", figure
        )

    def _errors(self, experiment: str, case: str, settings: str) -> Drawing:
        """The solution of the first method and the absolute errors of all methods, with seed 0: maps, or lines in one
        dimension, and a row for each component of a system."""
        found = {method: runs[0] for method, runs in self._curves(experiment, case, settings).items()}
        first = next(iter(found))
        problem = SETUPS["poisson-2d" if experiment == "variational" else experiment, case].problem()
        names = problem.component_names
        quantities = [(f"{first}: solution", found[first]["solution"])]
        quantities += [(f"{method}: error", run["errors"]) for method, run in found.items()]
        if len(names) == 1:
            shape = -(-len(quantities) // 3), min(len(quantities), 3)
        else:
            shape = len(names), len(quantities)
        figure, axes = pf.plot.new_figure(*shape, panel=(1.9, 1.7), gap=(1.0, 0.7))
        columns = [[ax] for ax in axes.flat] if len(names) == 1 else axes.T
        for column, (title, components) in zip(columns, quantities, strict=False):
            for ax, name, values in zip(column, names, map(np.array, components), strict=True):
                _draw_quantity(ax, problem.domain, values, is_error=title != quantities[0][0])
                ax.set_title(title if len(names) == 1 else f"{title}, {name}")
        for ax in axes.flat[len(quantities) * len(names) :]:
            ax.remove()
        slug = f"{experiment}-{case}-{settings}".lower()
        return Drawing(slug, f"Solution and absolute errors, {case}, {settings} settings, seed 0.", figure)

    def _estimates(self) -> Drawing:
        """The estimated against the true errors, for all problems, tolerances and seeds."""
        figure, axes = pf.plot.new_figure(1, 1, panel=(3.2, 3.0))
        ax = axes[0, 0]
        found = {case: runs for case, runs in self.runs.items() if case.experiment == "tolerance"}
        for method, marker, colour in zip(dict.fromkeys(case.method for case in found), "o^s", COLOURS, strict=False):
            runs = [run for case, each in found.items() if case.method == method for run in each]
            pairs = np.array([(run["true"][0], run["estimated"][0]) for run in runs])
            ax.plot(*pairs.T, marker, ms=3, mfc="none", color=colour, label=method)
        ends = np.array([1e-16, 1.0])
        ax.plot(ends, ends, color="black", linewidth=0.6)
        ax.plot(ends, ends / 3, color="black", linewidth=0.6, linestyle=":")
        ax.set(xlabel="true relative error", ylabel="estimated", xscale="log", yscale="log")
        ax.legend()
        return Drawing(
            "tolerance-estimates",
            "Estimated and true errors; on the dotted line the estimate is a third of the true error.",
            figure,
        )

    def _where(self) -> Drawing | None:
        """The places where the features vary fast, for the problems with small details."""
        layers = [(case.case, runs[0]) for case, runs in self.runs.items() if case.experiment == "tolerance"]
        found = {name: np.array(run["points"]) for name, run in layers if run["points"]}
        if not found:
            return None
        figure, axes = pf.plot.new_figure(1, len(found), panel=(2.8, 2.4))
        for ax, (name, points) in zip(axes[0], found.items(), strict=True):
            if points.shape[1] == 1:
                ax.hist(points[:, 0], bins=100, color=COLOURS[3])
                ax.set(xlabel="$x$", ylabel="points", title=name)
            else:
                ax.plot(points[:, 0], points[:, 1], ".", ms=2, color="black")
                ax.set(xlabel="$x$", ylabel="$y$", title=name, aspect="equal")
        return Drawing(
            "tolerance-where", "Where the features vary fast: points with the density (wave number)^d, seed 0.", figure
        )

    def _limit(self) -> Drawing:
        """Errors on the square against the number of functions, with the published ones."""
        figure, axes = pf.plot.new_figure(1, len(DISTRIBUTIONS), panel=(3.2, 2.6))
        cases = [case for case in self.runs if case.case.startswith(AGAINST)]
        for ax, distribution in zip(axes[0], DISTRIBUTIONS, strict=True):
            for i, method in enumerate(dict.fromkeys(case.method for case in cases)):
                runs = sorted((self.runs[c][0] for c in cases if c.method == method), key=lambda run: run["size"][0])
                sizes, errors = [run["size"][0] for run in runs], np.array([run[distribution] for run in runs])
                look = {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)]}
                ax.plot(sizes, errors[:, 0], marker="osv^D"[i % 5], ms=3, label=method, **look)
                ax.plot(sizes, errors[:, 1], lw=0.5, **look)
            if distribution == "released":
                published = {c.published["geometric mean, square, released"]: int(c.case.split()[-2]) for c in cases}
                ax.plot(list(published.values()), list(published), "kx", label="PD-OFM, published")
            ax.set(yscale="log", xlabel="number of functions", ylabel="relative $L^2$ error", title=distribution)
        axes[0, 0].legend(fontsize=6)
        caption = "Errors of 1000 random solutions on the square: geometric means, and largest ones as thin lines."
        return Drawing("transfer-limit", caption, figure)


def _draw_quantity(ax: Any, domain: pf.Domain, values: np.ndarray, *, is_error: bool) -> None:
    """Draw a component of a solution, or its error, at the points of `section_of`."""
    if domain.dim == 1:
        shown = np.maximum(values, SMALLEST) if is_error else values
        pf.plot.line_panel(ax, section_of(domain)[:, 0], shown, color="black", linewidth=0.8)
        ax.set(yscale="log" if is_error else "linear", xlabel="$x$")
        return
    panel = pf.plot.error_panel if is_error else pf.plot.solution_panel
    panel(ax, pf.plot.Section(domain, resolution=RESOLUTION), values, label="")


_LINE_FIGURES: dict[str, Sequence[tuple[str, Callable[[Drawer], Drawing | None]]]] = {
    "fit": (
        ("error against features", Drawer._fit_errors),
        ("coefficients of 20 features", Drawer._fit_projection),
        ("coefficients of 20 features", Drawer._fit_coefficients),
        ("coefficients of 20 features", Drawer._fit_features),
    ),
    "dynamics": (("xavier", Drawer._dynamics),),
    "poisson-1d": (
        ("evolution", Drawer._evolution),
        ("evolution", Drawer._spectrum),
        ("error against features", Drawer._poisson_errors),
    ),
    "transfer": ((f"{AGAINST}, {SIZES[0]} functions", Drawer._limit),),
    "interior-layer": (("50 other sources", Drawer._ridges),),
    "tolerance": (("interior-layer", Drawer._where), ("helmholtz-1d", Drawer._estimates)),
}
"""The figures of each experiment, with the cases from which they are drawn."""
