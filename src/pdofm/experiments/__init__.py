"""The experiments of the paper, cell by cell, each with its published value."""

from collections.abc import Sequence

from pdofm.errors import unknown_name
from pdofm.experiments import dynamics, forms, layer, recipes, tables, tolerance, transfer
from pdofm.experiments.case import Case

_BY_DEFAULT = (dynamics.cases, transfer.cases, tables.cases, tables.variational_cases, layer.cases)
_BY_NAME = (forms.cases, recipes.cases, tolerance.cases)
"""What is beside the paper and takes long: it runs only by name."""


def names() -> list[str]:
    """The experiments, in the paper's order, then those beside it."""
    return list(dict.fromkeys(case.experiment for case in every()))


def every() -> list[Case]:
    """All cases."""
    return [case for cases in (*_BY_DEFAULT, *_BY_NAME) for case in cases()]


def select(wanted: Sequence[str] = (), *, quick: bool = False) -> list[Case]:
    """The cases of the experiments of these names; those of the paper if none is given or "all" is among them."""
    known = set(names())
    for name in wanted:
        if name not in known | {"all"}:
            raise unknown_name("experiment", name, known | {"all"})
    usual = {case.experiment for cases in _BY_DEFAULT for case in cases()} if not wanted or "all" in wanted else set()
    chosen = [case for case in every() if case.experiment in usual | set(wanted)]
    return [case for case in chosen if case.quick] if quick else chosen
