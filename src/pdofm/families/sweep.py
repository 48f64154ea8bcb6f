"""Many members, one after the other: a quantity of each, with a progress bar and a plot."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from pdofm.errors import ProblemError


@contextmanager
def bar(what: str, total: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, if that is a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.update(task, completed=done)


@dataclass(frozen=True, eq=False)
class Sweep:
    """A quantity of many members.

    Attributes:
        mus: their parameters, (k, …).
        values: the quantity of each, (k, …).
        estimates, converged: the estimated relative error of each solution, and whether it counts as converged.
    """

    mus: np.ndarray
    values: np.ndarray
    estimates: np.ndarray
    converged: np.ndarray

    def __repr__(self) -> str:
        return (
            f"Sweep over {len(self.mus)} members: {np.count_nonzero(self.converged)} converged, largest estimated "
            f"error {np.max(self.estimates):.1e}"
        )

    def plot(self, path: str | PathLike | None = None, parameter: int = 0) -> Any:
        """A figure of the quantity against one of the parameters; members that have not converged are crosses."""
        from pdofm.output.sweeps import plot_sweep

        return plot_sweep(self, path, parameter)


def swept(solve: Callable[[Any], Any], mus: Any, of: Callable[[Any], Any], progress: bool) -> Sweep:
    """``of(solve(mu))`` for all parameters."""
    many = np.asarray(mus, dtype=np.float64)
    if many.ndim < 1 or len(many) == 0 or not callable(of):
        raise ProblemError("sweep(mus, of) takes the parameters of members, one after the other, and a function of u.")
    values, estimates, converged = [], [], []
    with bar("solving members", len(many), progress) as done:
        for i, mu in enumerate(many):
            u = solve(mu)
            values.append(np.asarray(of(u)))
            estimates.append(u.error_estimate)
            converged.append(u.converged)
            done(i + 1)
    return Sweep(many, np.stack(values), np.array(estimates), np.array(converged))
