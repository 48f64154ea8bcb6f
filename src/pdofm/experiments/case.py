"""What an experiment is made of: cases, each a function of a seed, with the value that the paper gives."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any, NamedTuple

PAPER, OURS = "paper", "ours"
"""The two settings: those of the paper, and our recipe with the same number of features."""

RESIDUAL = "scaled residual"
"""The name of the metric that the paper's tables call "LS residual"."""


class Measured(NamedTuple):
    """What one run of a case gives: numbers, and curves or maps for figures (lists of numbers by name)."""

    metrics: dict[str, float]
    curves: dict[str, list]


@dataclass(frozen=True, eq=False)
class Case:
    """One cell of a table, or one line of a figure.

    Attributes:
        experiment: the name to ask for, such as "helmholtz".
        case: which problem or variant inside the experiment.
        method: the row of the table, such as "PD-OFM".
        settings: "paper" or "ours".
        run: from a seed to what was measured.
        published: the paper's value, by metric.
        seeds: at most so many seeds; None takes what the user asks for.
        quick: part of the quick subset.
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
        """A name for files."""
        words = f"{self.experiment}--{self.case}--{self.method}--{self.settings}".lower()
        return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in words)

    @property
    def fingerprint(self) -> str:
        """Changes with the settings that `run` carries: what other settings have measured is not this case."""
        return hashlib.sha256(_described(self.run).encode()).hexdigest()[:16]


def _described(value: Any) -> str:
    """Functions by name, with the arguments that are bound to them; settings by their values."""
    if isinstance(value, partial):
        bound = [*map(_described, value.args), *(f"{k}={_described(v)}" for k, v in value.keywords.items())]
        return f"{_described(value.func)}({', '.join(bound)})"
    if is_dataclass(value) and not isinstance(value, type):
        inside = ", ".join(f"{f.name}={_described(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inside})"
    return getattr(value, "__qualname__", None) or repr(value)
