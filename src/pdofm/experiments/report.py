"""Tables, figures and one report from the results of a run."""

import base64
import html
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pdofm.experiments.case import Case
from pdofm.experiments.claims import Verdict, verdicts
from pdofm.experiments.figures import Drawer
from pdofm.experiments.limit import AGAINST
from pdofm.experiments.methods import METHODS

Row = dict[str, Any]
"""A row of results.json."""

OURS_SHOWN = ("PD-OFM", "PD-FM", "Chebyshev")
"""The methods that the summary shows with our settings."""

WIDE = (AGAINST, "orthonormal", "families", "gradients", "pretrain", "starts")
"""Tables of all cases of an experiment: a row for each case and method, a column for each metric."""

HEAD = ("method", "settings", "metric", "published", "measured", "from", "to", "seeds", "seconds")
"""The header of the tables; "from" and "to" are the smallest and the largest value over the seeds."""

STYLE = """
body { font: 15px/1.5 Georgia, serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #111 }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0 } td, th { padding: 2px 10px; text-align: left }
th { border-bottom: 1px solid #111 } img { max-width: 100% } figcaption { font-size: 13px } figure { margin: 1em 0 }
"""


def write(rows: Sequence[Row], cases: Sequence[Case], out: Path) -> list[Path]:
    """Write tables.md, the figures and report.html to `out`; returns the paths of all results."""
    (out / "tables.md").write_text(markdown(rows, verdicts(rows)))
    drawn = list(Drawer(cases, out).draw())
    (out / "report.html").write_text(_page(rows, drawn))
    return [out / "results.json", out / "tables.md", out / "report.html", *(p for _, _, paths in drawn for p in paths)]


def markdown(rows: Sequence[Row], found: Sequence[Verdict] = ()) -> str:
    """A summary, the verdicts, and all rows as one Markdown table per experiment and case."""
    parts = [text for text in (summary(rows),) if text]
    if found:
        lines = ["| claim | verdict | numbers |", "|---|---|---|"]
        parts.append("## Claims\n\n" + "\n".join(lines + ["| " + " | ".join(each) + " |" for each in found]) + "\n")
    for _, title, head, lines in tables(rows):
        written = [_line(head), "|" + "---|" * len(head), *(_line(words) for words in lines)]
        parts.append(f"## {title}\n\n" + "\n".join(written) + "\n")
    return "\n".join(parts)


def tables(rows: Sequence[Row]) -> Iterator[tuple[str, str, Sequence[str], list[list[str]]]]:
    """All rows in tables: experiment, title, header and lines of each. There is one for each experiment and case, or,
    for those in `WIDE`, one for all cases."""
    titles = dict.fromkeys((row["experiment"], _title(row)) for row in rows)
    for experiment, title in titles:
        here = [row for row in rows if (row["experiment"], _title(row)) == (experiment, title)]
        if title not in WIDE:
            yield experiment, title, HEAD, [_words(row) for row in here]
            continue
        metrics = list(dict.fromkeys(row["metric"] for row in here))
        cells: dict[tuple[str, str], dict[str, str]] = {}
        for row in here:
            cells.setdefault((row["case"], row["method"]), {})[row["metric"]] = _with_range(row)
            if row["published"] is not None:
                cells.setdefault((row["case"], "PD-OFM, published"), {})[row["metric"]] = _number(row["published"])
        lines = [[*name, *(cells[name].get(metric, "") for metric in metrics)] for name in cells]
        yield experiment, title, ("case", "method", *metrics), lines


def _title(row: Row) -> str:
    """The title of the table that a row belongs to."""
    if row["experiment"] in WIDE:
        return row["experiment"]
    return AGAINST if row["case"].startswith(AGAINST) else f"{row['experiment']}, {row['case']}"


def _line(words: Iterable[str]) -> str:
    return "| " + " | ".join(words) + " |"


def _with_range(row: Row) -> str:
    """The median, and the range over the seeds if there are several."""
    if row["seeds"] == 1 or row["low"] == row["high"]:
        return _number(row["measured"])
    return f"{_number(row['measured'])} ({_number(row['low'])} to {_number(row['high'])})"


def summary(rows: Sequence[Row]) -> str:
    """The tables of section 3 in one: published and measured relative L2 errors; in a system, of its worst unknown."""
    found: dict[tuple[str, str], dict[tuple[str, str], Row]] = {}
    for row in rows:
        if row["metric"].startswith("relative L2") and row["method"] in METHODS:
            best = found.setdefault((row["experiment"], row["case"]), {})
            key = (row["method"], row["settings"])
            if key not in best or _size(row) > _size(best[key]):
                best[key] = row
    tables = {name: cells for name, cells in found.items() if any(method == "TransNet" for method, _ in cells)}
    if not tables:
        return ""
    wanted = [(method, "paper") for method in METHODS] + [(method, "ours") for method in OURS_SHOWN]
    head = ["problem", "published PD-OFM", *(f"{method}, {settings}" for method, settings in wanted)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (experiment, case), cells in tables.items():
        first = cells.get(("PD-OFM", "paper"))
        shown = [_number(first["published"]) if first is not None and first["published"] is not None else ""]
        shown += [_number(cells[key]["measured"]) if key in cells else "" for key in wanted]
        lines.append(f"| {experiment}, {case} | " + " | ".join(shown) + " |")
    return "## Summary\n\n" + "\n".join(lines) + "\n"


def _size(row: Row) -> float:
    """The measured value; infinite if it has diverged."""
    return float("inf") if row["measured"] is None else row["measured"]


def _words(row: Row) -> list[str]:
    """The cells of a row of a table."""
    published = "" if row["published"] is None else _number(row["published"])
    numbers = [published, *(_number(row[name]) for name in ("measured", "low", "high"))]
    return [row["method"], row["settings"], row["metric"], *numbers, str(row["seeds"]), f"{row['seconds']:.1f}"]


def _number(value: float | None) -> str:
    if value is None:
        return "diverged"
    return f"{value:g}" if value == int(value) and abs(value) < 1e4 else f"{value:.1e}"


def _page(rows: Sequence[Row], drawn: Sequence[tuple[str, str, list[Path]]]) -> str:
    """A self-contained HTML page with all tables and figures, in the order of the experiments."""
    parts = ["<h1>Physics-driven orthogonal features: published and measured</h1>"]
    intro = (
        "Published values from Q. Jia and D. Wang, Physics informed learning of orthogonal features with applications "
        "in solving partial differential equations (2026), next to the values that this run has measured: medians over "
        "seeds, with their range. The settings <i>paper</i> are those of the paper, or of its notebooks where it does "
        "not state them. The settings <i>ours</i> are the defaults of this package, with the same number of "
        "features."
    )
    parts += [f"<p>{intro}</p>", "<h2>Claims</h2>", _html_table(("claim", "verdict", "numbers"), verdicts(rows))]
    for experiment in dict.fromkeys(row["experiment"] for row in rows):
        parts.append(f"<h2>{html.escape(experiment)}</h2>")
        for _, title, head, lines in (each for each in tables(rows) if each[0] == experiment):
            parts += [f"<h3>{html.escape(title)}</h3>", _html_table(head, lines)]
        for _, caption, paths in (each for each in drawn if each[0] == experiment):
            image = base64.b64encode(paths[0].read_bytes()).decode()
            text = html.escape(caption)
            picture = f'<img alt="{text}" src="data:image/png;base64,{image}">'
            parts.append(f"<figure>{picture}<figcaption>{text}</figcaption></figure>")
    head = f'<meta charset="utf-8"><title>pdofm: reproduction</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = ["<tr>" + "".join(f"<th>{html.escape(word)}</th>" for word in head) + "</tr>"]
    cells += ["<tr>" + "".join(f"<td>{html.escape(word)}</td>" for word in row) + "</tr>" for row in rows]
    return "<table>" + "".join(cells) + "</table>"
