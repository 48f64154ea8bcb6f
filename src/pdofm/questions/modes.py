"""The answer to an eigenvalue problem: eigenvalues with their error estimates, and eigenfunctions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm.shown import Shown
from pdofm.solving.solution import Solution
from pdofm.solving.stats import Attempt
from pdofm.solving.verdict import Verdict


@dataclass(frozen=True, eq=False)
class Mode(Solution):
    """An eigenfunction, of norm 1 in L2, with its eigenvalue: a function like every `Solution`."""

    value: Any = 0.0

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else f"NOT CONVERGED: {self.reason}"
        return f"Mode of {self.problem.name!r} with the eigenvalue {self.value:.12g}, {verdict}"


@dataclass(frozen=True, eq=False)
class Modes(Shown):
    """Eigenvalues and eigenfunctions: ``e.values``, and ``e[0]``, ``e[1]``, …, functions that can be evaluated, plotted
    and integrated like a solution.

    Attributes:
        values: the eigenvalues, nearest to the given number first; real if all of them are.
        error_estimates: the estimated relative error of each. For an eigenvalue that is nearly zero beside the others,
            relative to a thousandth of the largest of them.
        verdict: whether all of them are as accurate as was asked for; `converged` and `reason` are views of it.
        attempts: the spaces that were tried.
    """

    values: Any
    error_estimates: Float[np.ndarray, " k"]
    modes: tuple[Mode, ...]
    verdict: Verdict
    attempts: tuple[Attempt, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the eigenvalues are as accurate as was asked for."""
        return self.verdict.converged

    @property
    def reason(self) -> str:
        """Why they are, or why not and what to do."""
        return self.verdict.reason

    @property
    def search(self) -> str:
        """The spaces that were tried, as a table."""
        head = f"{'space':38s} {'features':>8s} {'seconds':>8s} {'estimate':>9s}"
        rows = [f"{a.space:38s} {a.features:8d} {a.seconds:8.2f} {a.estimate:9.1e}" for a in self.attempts]
        return "\n".join([head, *rows])

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, index: int) -> Mode:
        return self.modes[index]

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.modes)

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else f"NOT CONVERGED: {self.reason}"
        name = self.modes[0].problem.name if self.modes else "problem"
        lines = [f"{len(self)} eigenvalues of {name!r}, {verdict}"]
        for value, error in zip(self.values, self.error_estimates, strict=True):
            lines.append(f"  {value:.15g}, estimated relative error {error:.1e}")
        return "\n".join(lines)
