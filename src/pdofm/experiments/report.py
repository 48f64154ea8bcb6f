"""Tables, figures and the report from the results of a run."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pdofm.experiments.case import Case

Row = dict[str, Any]


def write(rows: Sequence[Row], cases: Sequence[Case], seeds: int, out: Path) -> list[Path]:
    """Write tables.md to `out`; returns the paths that were written."""
    tables = out / "tables.md"
    tables.write_text(markdown(rows))
    return [out / "results.json", tables]


def markdown(rows: Sequence[Row]) -> str:
    """All rows as one Markdown table per experiment and case."""
    parts = []
    for experiment, case in dict.fromkeys((row["experiment"], row["case"]) for row in rows):
        here = [row for row in rows if (row["experiment"], row["case"]) == (experiment, case)]
        parts.append(f"## {experiment}, {case}\n\n" + "\n".join(_table(here)) + "\n")
    return "\n".join(parts)


def _table(rows: Sequence[Row]) -> Iterable[str]:
    yield "| method | settings | metric | published | measured | from | to | seeds | seconds |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        numbers = [_number(row[name]) for name in ("published", "measured", "low", "high")]
        words = [row["method"], row["settings"], row["metric"], *numbers, str(row["seeds"]), f"{row['seconds']:.1f}"]
        yield "| " + " | ".join(words) + " |"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:g}" if value == int(value) and abs(value) < 1e4 else f"{value:.1e}"
