"""What a run of the challenge writes: a table in Markdown, and a page with the picture of every solution."""

import base64
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdofm.challenge.figure import overview
from pdofm.challenge.row import Row
from pdofm.experiments import runner
from pdofm.experiments.case import Case
from pdofm.experiments.report import STYLE

HEAD = ("problem", "asked", "published", "error", "ahead", "estimated", "converged", "cold", "hot", "space")
"""The header of the table. "ahead" is the published error divided by ours; "cold" and "hot" are seconds."""

RIGHT = 30.0
"""A converged answer is wrong if its error is more than so many times its estimate and the tolerance."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A row with what was measured.

    Attributes:
        row: the question.
        tol: the tolerance that was asked for.
        metrics: the measured numbers by name; NaN where there is none.
        space: the space in which the answer was found.
        picture: a PNG file as base64, or an empty string.
    """

    row: Row
    tol: float
    metrics: dict[str, float]
    space: str
    picture: str

    @property
    def ahead(self) -> float:
        """The published error divided by ours; NaN if one of them is not known."""
        published, error = self.row.published.error, self.metrics["error"]
        if published is None or math.isnan(error):
            return math.nan
        return published / error if error > 0 else math.inf

    @property
    def verdict(self) -> str:
        """Whether the answer converged by its own word, and whether that word is true."""
        error, estimate = self.metrics["error"], self.metrics["estimated error"]
        if not self.metrics["converged"]:
            return "no"
        return (
            "yes, wrongly"
            if error > RIGHT * max(estimate, self.tol) + self.metrics["error of the reference"]
            else "yes"
        )


def entries(rows: Sequence[Row], cases: Sequence[Case], out: Path) -> list[Entry]:
    """What is stored in `out` for these rows; those that have not finished are left out."""
    found = []
    measured: dict[str, dict[str, float]] = {}
    for each in runner.collect(cases, out):
        value = each["measured"]
        measured.setdefault(each["case"], {})[each["metric"]] = math.nan if value is None else value
    for row, case in zip(rows, cases, strict=True):
        if row.name in measured:
            curves = runner.curves(case, out)[0]
            tol = float(case.method.removeprefix("tol = "))
            found.append(Entry(row, tol, measured[row.name], curves["space"][0], "".join(curves["picture"])))
    return found


def write(rows: Sequence[Row], cases: Sequence[Case], out: Path) -> tuple[list[Entry], list[Path]]:
    """Write results.json, tables.md, overview.png and report.html; returns the entries and the paths."""
    found = entries(rows, cases, out)
    names = ("results.json", "tables.md", "overview.png", "report.html")
    paths = [out / name for name in names]
    paths[1].write_text(markdown(found))
    overview(found, paths[2])
    paths[3].write_text(_page(found, paths[2]))
    return found, paths


def markdown(found: Sequence[Entry]) -> str:
    """A table for each group of rows, and where the published values come from."""
    parts = ["# Challenge\n"]
    for group in dict.fromkeys(entry.row.group for entry in found):
        lines = [" | ".join(HEAD), "|".join(["---"] * len(HEAD))]
        lines += [" | ".join(cells(entry)) for entry in found if entry.row.group == group]
        parts.append(f"## {group}\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n")
    parts.append("## Published values\n\n" + "\n".join(f"- {line}" for line in sources(found)) + "\n")
    return "\n".join(parts)


def cells(entry: Entry) -> list[str]:
    """The cells of a row of the table."""
    published = entry.row.published
    numbers = [entry.tol, published.error, entry.metrics["error"]]
    ahead = "" if math.isnan(entry.ahead) else f"{entry.ahead:.1e} x"
    seconds = [_seconds(entry.metrics[name]) for name in ("cold seconds", "hot seconds")]
    return [
        entry.row.name,
        *map(_number, numbers),
        ahead,
        _number(entry.metrics["estimated error"]),
        entry.verdict,
        *seconds,
        entry.space,
    ]


def sources(found: Sequence[Entry]) -> list[str]:
    """Where the published values come from."""
    lines = []
    for entry in found:
        published = entry.row.published
        if published.source:
            unchecked = "" if published.verified or published.error is None else " (not verified)"
            lines.append(f"{entry.row.name}: {published.source.removesuffix('; unverified')}{unchecked}")
    return lines


def as_json(found: Sequence[Entry]) -> list[dict[str, Any]]:
    """The entries as JSON objects, with None where there is no number."""

    def number(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else value

    return [
        {"name": entry.row.name, "group": entry.row.group, "tol": entry.tol, "measure": entry.row.measure}
        | {"published": number(entry.row.published.error), "source": entry.row.published.source}
        | {name: number(value) for name, value in entry.metrics.items()}
        | {"converged": bool(entry.metrics["converged"]), "space": entry.space}
        for entry in found
    ]


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.1e}"


def _seconds(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _page(found: Sequence[Entry], figure: Path) -> str:
    """A self-contained page."""
    parts = ["<h1>Challenge</h1>", _image(base64.b64encode(figure.read_bytes()).decode(), "Errors against seconds")]
    for group in dict.fromkeys(entry.row.group for entry in found):
        here = [entry for entry in found if entry.row.group == group]
        parts += [f"<h2>{html.escape(group)}</h2>", _table(here)]
        for entry in here:
            text = f"{entry.row.name}: {entry.row.question} Compared by: {entry.row.measure}."
            parts.append(_image(entry.picture, text) if entry.picture else f"<p>{html.escape(text)}</p>")
    parts.append("<h2>Published values</h2><ul>")
    parts += [f"<li>{html.escape(line)}</li>" for line in sources(found)]
    parts.append("</ul>")
    head = f'<meta charset="utf-8"><title>pdofm: challenge</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def _table(found: Sequence[Entry]) -> str:
    rows = ["<tr>" + "".join(f"<th>{html.escape(word)}</th>" for word in HEAD) + "</tr>"]
    rows += ["<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells(entry)) + "</tr>" for entry in found]
    return "<table>" + "".join(rows) + "</table>"


def _image(content: str, text: str) -> str:
    caption = html.escape(text)
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{content}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )
