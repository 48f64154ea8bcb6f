"""The problems that solvers in this field are compared with, and the best published errors: ``pdofm challenge``."""

from collections.abc import Sequence

from pdofm.challenge import dimensions, evolutions, flows, local, questions
from pdofm.challenge.row import Published, Row
from pdofm.errors import unknown_name
from pdofm.experiments.case import Case

__all__ = ["Published", "Row", "cases", "names", "rows", "select"]

_ROWS = (*evolutions.ROWS, *local.ROWS, *dimensions.ROWS, *flows.ROWS, *questions.ROWS)


def rows() -> list[Row]:
    """All rows, in the order of the tables."""
    return list(_ROWS)


def names() -> list[str]:
    """The names of all rows."""
    return [row.name for row in _ROWS]


def select(wanted: Sequence[str] = (), *, quick: bool = False) -> list[Row]:
    """The rows of these names; all of them if no name is given, or if "all" is among the names."""
    known = names()
    for name in wanted:
        if name not in {*known, "all"}:
            raise unknown_name("challenge", name, {*known, "all"})
    chosen = [row for row in _ROWS if not wanted or "all" in wanted or row.name in wanted]
    return [row for row in chosen if row.quick] if quick else chosen


def cases(chosen: Sequence[Row], tol: float | None = None) -> list[Case]:
    """The rows as cases for the runner, with their own tolerances or with one for all of them."""
    return [row.case(tol) for row in chosen]
