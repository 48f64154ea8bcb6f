"""The experiments of the paper, cell by cell, each with its published value."""

from collections.abc import Sequence

from pdofm.errors import unknown_name
from pdofm.experiments import dynamics, forms, layer, tables, transfer
from pdofm.experiments.case import Case

_PARTS = (dynamics.cases, transfer.cases, tables.cases, tables.variational_cases, layer.cases, forms.cases)


def names() -> list[str]:
    """The experiments, in the paper's order."""
    return list(dict.fromkeys(case.experiment for case in select()))


def select(wanted: Sequence[str] = (), *, quick: bool = False) -> list[Case]:
    """The cases of the experiments of these names; all if none is given or "all" is among them."""
    every = [case for cases in _PARTS for case in cases()]
    known = {case.experiment for case in every}
    for name in wanted:
        if name not in known | {"all"}:
            raise unknown_name("experiment", name, known | {"all"})
    chosen = every if not wanted or "all" in wanted else [case for case in every if case.experiment in wanted]
    return [case for case in chosen if case.quick] if quick else chosen
