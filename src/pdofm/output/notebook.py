"""Cards: how a notebook shows problems, features, solutions, trainings and searches.

A class that derives from `pdofm.shown.Shown` gets a card by one function here:

    @card.register
    def _(family: Family) -> Card:
        return Card("Family …", verdict=family.verdict, rows={"parameters": "2"})

The HTML needs no style sheet, no script and no network, and takes the colours of the page, light or dark.
"""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import singledispatch
from html import escape
from typing import Any

import numpy as np

from pdofm.adaptive.search import Search
from pdofm.domain import Domain
from pdofm.errors import PdofmError
from pdofm.features import Features
from pdofm.output.domains import plot_domain
from pdofm.output.plot import VALUE_COLORS, line_panel, new_figure, plot_solution
from pdofm.problem.problem import Problem
from pdofm.questions.modes import Modes
from pdofm.solving.solution import Solution, Solutions
from pdofm.solving.stats import Attempt, Record
from pdofm.solving.verdict import Verdict
from pdofm.training.pretraining import Trained

RESOLUTION = 90
"""Points along the longest side of a small picture."""

DPI = 80
"""Resolution of a small picture, in pixels per inch."""

SHOWN = 3
"""How many features a card draws."""

_LINE = "border:0;border-top:1px solid rgba(128,128,128,.35);"
_TABLE = "border-collapse:collapse;font-size:inherit;font-variant-numeric:tabular-nums;"
_CELL = "text-align:left;padding:.15em .8em .15em 0;vertical-align:top;background:none;" + _LINE


@dataclass(frozen=True)
class Card:
    """What a notebook shows of an object.

    Attributes:
        title: what it is, in a few words.
        verdict: how a computation ended, if it was one.
        rows: names and values, as text.
        figure: a matplotlib figure.
        attempts: the record of a search, shown as a table below the rest.
    """

    title: str
    verdict: Verdict | None = None
    rows: Mapping[str, str] = field(default_factory=dict)
    figure: Any = None
    attempts: Sequence[Attempt] = ()


def html(thing: Any) -> str:
    """An object as HTML."""
    return rendered(card(thing))


@singledispatch
def card(thing: Any) -> Card:
    """The card of an object."""
    raise NotImplementedError(f"{type(thing).__name__} has no card; register one with @card.register.")


@card.register
def _(problem: Problem) -> Card:
    rows = {"domain": repr(problem.domain)}
    if problem.unknowns is not None:
        rows["unknowns"] = ", ".join(problem.component_names)
    rows["conditions"] = "; ".join(map(repr, problem.stated))
    rows["exact solution"] = "known" if problem.exact is not None else "not known"
    return Card(f"Problem {problem.name!r}", rows=rows, figure=_domain_picture(problem.domain))


@card.register
def _(domain: Domain) -> Card:
    rows = {"dimensions": str(domain.dim), "parts": ", ".join(domain.boundary.names), "measure": f"{domain.measure:g}"}
    return Card(repr(domain), rows=rows, figure=_domain_picture(domain))


@card.register
def _(features: Features) -> Card:
    lower, upper = np.asarray(features.lower).tolist(), np.asarray(features.upper).tolist()
    box = " × ".join(f"[{a:g}, {b:g}]" for a, b in zip(lower, upper, strict=True))
    rows = {"number": str(features.size), "box": box}
    if features.trained:
        rows["trainable"] = ", ".join(features.trained)
    return Card(f"{type(features).__name__} features", rows=rows, figure=_features_picture(features))


@card.register
def _(solution: Solution) -> Card:
    stats, name = solution.stats, solution.problem.name
    per = " per component" if stats.components > 1 else ""
    rows = {
        "estimated relative error": f"{solution.error_estimate:.1e}",
        "space": f"{solution.space or type(solution.features).__name__}, {stats.features} features{per}",
        "least squares": f"{stats.rows} rows, rank {stats.rank}",
        "seconds": f"{sum(stats.seconds.values()):.2f}",
    }
    value = getattr(solution, "value", None)  # of an eigenfunction
    if value is not None:
        rows = {"eigenvalue": f"{value:.12g}", **rows}
    kind = type(solution).__name__
    return Card(f"{kind} of {name!r}", solution.verdict, rows, _picture(solution), solution.attempts)


@card.register
def _(many: Solutions) -> Card:
    rows = {
        "converged": f"{np.count_nonzero(many.converged)} of {len(many)}",
        "relative residual": f"{np.median(many.residuals):.1e} (median), {np.max(many.residuals):.1e} (largest)",
        "at": "held-out points" if many.is_held_out else "fitted points",
        "features": str(many.features.size),
    }
    return Card(f"{len(many)} solutions of {many.problem.name!r}", rows=rows)


@card.register
def _(modes: Modes) -> Card:
    rows = {
        f"{value:.15g}": f"estimated relative error {error:.1e}"
        for value, error in zip(np.asarray(modes.values).tolist(), modes.error_estimates.tolist(), strict=True)
    }
    name = modes[0].problem.name if len(modes) else "problem"
    figure = _picture(modes[0]) if len(modes) else None
    return Card(f"{len(modes)} eigenvalues of {name!r}", modes.verdict, rows, figure, modes.attempts)


@card.register
def _(trained: Trained) -> Card:
    loss = trained.history.get("loss", [])
    rows = {"features": f"{type(trained.features).__name__}, {trained.features.size}", "steps": str(len(loss))}
    if loss:
        rows["loss"] = f"from {loss[0]:.1e} to {loss[-1]:.1e}"
    return Card("Trained features", trained.verdict, rows, _course(trained.history) if len(loss) > 1 else None)


@card.register
def _(search: Search) -> Card:
    rows = {"tolerance": f"{search.tol:g}", "budget": search.ledger.budget}
    if search.best is not None:
        rows["best so far"] = f"{search.best.space}, estimated relative error {search.best.error_estimate:.1e}"
    rows["reached"] = "yes" if search.reached else "no"
    picture = None if search.best is None else _picture(search.best)
    return Card(f"Search for {search.problem.name!r}", rows=rows, figure=picture, attempts=search.ledger.attempts)


@card.register
def _(record: Record) -> Card:
    return Card("", attempts=record.attempts)


def rendered(shown: Card) -> str:
    """A card as HTML."""
    rows = "".join(
        f'<tr style="background:none"><td style="{_CELL}opacity:.7">{escape(name)}</td>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in shown.rows.items()
    )
    table = f'<table style="{_TABLE}margin:0;flex:1 1 20em">{rows}</table>' if rows else ""
    picture = "" if shown.figure is None else _inline(shown.figure, shown.title)
    return (
        '<div style="font-family:system-ui,sans-serif;font-size:90%;line-height:1.4;max-width:62em">'
        f'<div style="font-weight:600;margin-bottom:.3em">{escape(shown.title)}{_badge(shown.verdict)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:1.2em;align-items:flex-start">{table}{picture}</div>'
        f"{attempts_table(shown.attempts) if shown.attempts else ''}</div>"
    )


def attempts_table(attempts: Sequence[Attempt]) -> str:
    """The attempts of a search as an HTML table."""
    names = ("space", "features", "rows", "seconds", "estimate", "change", "why")
    head = "".join(f'<th style="{_CELL}border-top:0;font-weight:600">{name}</th>' for name in names)
    body = "".join(
        "<tr style='background:none'>"
        + "".join(f'<td style="{_CELL}">{escape(each)}</td>' for each in _cells(a))
        + "</tr>"
        for a in attempts
    )
    return f'<table style="{_TABLE}margin-top:.6em"><tr style="background:none">{head}</tr>{body}</table>'


def _cells(attempt: Attempt) -> tuple[str, ...]:
    def number(value: float) -> str:
        return f"{value:.1e}" if math.isfinite(value) else "–"

    counts = str(attempt.features), str(attempt.rows or "–"), f"{attempt.seconds:.2f}"
    return attempt.space, *counts, number(attempt.estimate), number(attempt.change), attempt.why


def _badge(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    color, mark = ("#1a7f37", "✓") if verdict.converged else ("#b35900", "!")
    return (
        f'<span style="font-weight:400;margin-left:.8em"><span style="color:#fff;background:{color};border-radius:.6em;'
        f'padding:.05em .55em">{mark}</span> {escape(verdict.reason)}</span>'
    )


def _inline(figure: Any, alt: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, bbox_inches="tight", pad_inches=0.08)
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<img alt="{escape(alt, quote=True)}" src="data:image/png;base64,{data}" '
        'style="max-width:26em;height:auto;border-radius:4px;background:#fff">'
    )


def _picture(solution: Solution) -> Any:
    """A small picture of a solution; None where it cannot be drawn, as a card is shown in any case."""
    with suppress(PdofmError):
        figure = plot_solution(solution, resolution=RESOLUTION)
        figure.suptitle("")  # the card says it
        return figure
    return None


def _domain_picture(domain: Domain) -> Any:
    with suppress(PdofmError):
        figure = plot_domain(domain, points=0)
        figure.suptitle("")
        figure.axes[0].set_title("")
        return figure
    return None


def _features_picture(features: Features) -> Any:
    """Some of the features on their box, in one or two dimensions."""
    if features.dim > 2:
        return None
    some = np.unique(np.linspace(0, features.size - 1, SHOWN + 2).round().astype(int))[:SHOWN]
    axes = [
        np.linspace(a, b, RESOLUTION) for a, b in zip(*map(np.asarray, (features.lower, features.upper)), strict=True)
    ]
    points = np.stack([each.ravel() for each in np.meshgrid(*axes)], axis=1)
    values = features.jets(points, [(0,) * features.dim])[0][:, some].T
    figure, (panels,) = new_figure(1, len(some), panel=(1.1, 1.1), gap=(0.3, 0.3))
    for panel, number, shown in zip(panels, some.tolist(), values, strict=True):
        if features.dim == 1:
            line_panel(panel, points[:, 0], shown)
        else:
            panel.pcolormesh(*axes, shown.reshape(RESOLUTION, RESOLUTION), cmap=VALUE_COLORS, rasterized=True)
        panel.set(title=f"number {number}", xticks=[], yticks=[])
    return figure


def _course(history: Mapping[str, Sequence[float]]) -> Any:
    """The recorded quantities of a training, step by step."""
    figure, axes = new_figure(1, 1, panel=(2.6, 1.6))
    for name, values in history.items():
        line_panel(
            axes[0, 0], np.arange(1.0, len(values) + 1), np.asarray(values, dtype=np.float64), label=name, linewidth=1.0
        )
    axes[0, 0].set(xlabel="step", yscale="log")
    axes[0, 0].legend(fontsize=7, frameon=False)
    return figure
