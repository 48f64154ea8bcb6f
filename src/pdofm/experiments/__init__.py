"""The experiments of the paper, each cell of a table with its published value, and further ones."""

from collections.abc import Sequence

from pdofm.errors import unknown_name
from pdofm.experiments import (
    dynamics,
    evolution,
    families,
    forms,
    gradients,
    layer,
    limit,
    orthonormal,
    paying,
    recipes,
    tables,
    tolerance,
    transfer,
)
from pdofm.experiments.case import Case

_BY_DEFAULT = (dynamics.cases, transfer.cases, limit.cases, tables.cases, tables.variational_cases, layer.cases)
"""The experiments of the paper, in its order; they run if no name is given."""

_BY_NAME = (
    families.cases,
    gradients.cases,
    forms.cases,
    orthonormal.cases,
    paying.cases,
    recipes.cases,
    transfer.starts,
    tolerance.cases,
    tolerance.local_cases,
    evolution.cases,
)
"""Experiments that are not in the paper and take long; they run only if they are named."""


def names() -> list[str]:
    """The names of all experiments: those of the paper in its order, then the others."""
    return list(dict.fromkeys(case.experiment for case in every()))


def every() -> list[Case]:
    """All cases of all experiments."""
    return [case for cases in (*_BY_DEFAULT, *_BY_NAME) for case in cases()]


def select(wanted: Sequence[str] = (), *, quick: bool = False) -> list[Case]:
    """The cases of the named experiments; those of the paper if no name is given, or if "all" is among the names."""
    known = set(names())
    for name in wanted:
        if name not in known | {"all"}:
            raise unknown_name("experiment", name, known | {"all"})
    usual = {case.experiment for cases in _BY_DEFAULT for case in cases()} if not wanted or "all" in wanted else set()
    chosen = [case for case in every() if case.experiment in usual | set(wanted)]
    return [case for case in chosen if case.quick] if quick else chosen
