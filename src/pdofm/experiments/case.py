"""Experiments consist of cases: functions of a seed, with the values that the paper gives."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any, NamedTuple

PAPER, OURS = "paper", "ours"
"""The two settings: those of the paper, and the defaults of this package with the same number of features."""

RESIDUAL = "scaled residual"
"""The name of the metric that the tables of the paper call "LS residual"."""


class Measured(NamedTuple):
    """The result of one run of a case: metrics, and curves or maps for figures, as lists of numbers by name."""

    metrics: dict[str, float]
    curves: dict[str, list]


@dataclass(frozen=True, eq=False)
class Case:
    """One cell of a table, or one line of a figure.

    Attributes:
        experiment: the name by which it is selected, such as "helmholtz".
        case: the problem or variant within the experiment.
        method: the row of the table, such as "PD-OFM".
        settings: "paper" or "ours".
        run: a function from a seed to the measured values.
        published: the values of the paper, by metric.
        seeds: the largest number of seeds; None for no limit.
        quick: whether it belongs to the quick subset.
    """

    experiment: str
    case: str
    method: str
    settings: str
    run: Callable[[int], Measured]
    published: Mapping[str, float] = field(default_factory=dict)
    seeds: int | None = None
    quick: bool = False

    @property
    def slug(self) -> str:
        """A name that can be used for files."""
        words = f"{self.experiment}--{self.case}--{self.method}--{self.settings}".lower()
        return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in words)

    @property
    def fingerprint(self) -> str:
        """A hash of the settings that are bound to `run`: values measured with other settings are not reused."""
        return hashlib.sha256(_described(self.run).encode()).hexdigest()[:16]


def _described(value: Any) -> str:
    """A text that identifies a value: the name of a function with its bound arguments, or the fields of settings."""
    if isinstance(value, partial):
        bound = [*map(_described, value.args), *(f"{k}={_described(v)}" for k, v in value.keywords.items())]
        return f"{_described(value.func)}({', '.join(bound)})"
    if is_dataclass(value) and not isinstance(value, type):
        inside = ", ".join(f"{f.name}={_described(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inside})"
    return getattr(value, "__qualname__", None) or repr(value)
