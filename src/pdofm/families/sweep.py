"""Many members, one after the other: a quantity of each, with a progress bar and a plot."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from pdofm.errors import ProblemError
from pdofm.numerics.executor import Share, executor_of


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


Solve = Callable[[Any], Any]
"""From parameters to a solution."""

Found = tuple[np.ndarray, float, bool]
"""The quantity of a member, its estimated error, and whether it has converged."""

IN_A_TASK = 16
"""Members of a task, at most. They share what was compiled, but a lost worker costs all of them."""

TASKS = 8
"""Tasks that a sweep is divided into at least, if it has so many members."""


def swept(
    solve: Solve,
    mus: Any,
    of: Callable[[Any], Any],
    progress: bool,
    fresh: Callable[[], Solve] | None = None,
    cluster: Any = None,
) -> Sweep:
    """``of(solve(mu))`` for all parameters: here, or by tasks on a cluster, each of which makes a ``fresh()`` solve."""
    many = np.asarray(mus, dtype=np.float64)
    if many.ndim < 1 or len(many) == 0 or not callable(of):
        raise ProblemError("sweep(mus, of) takes the parameters of members, one after the other, and a function of u.")
    found: list[Found] = []
    if cluster is None:
        with bar("solving members", len(many), progress) as done:
            for i, mu in enumerate(many):
                found.append(_member(solve, mu, of))
                done(i + 1)
    else:
        executor = executor_of(cluster)
        count = executor.shares or max(min(len(many), TASKS), -(-len(many) // IN_A_TASK))
        sent = executor.send((fresh, of), "The family")
        parts = [
            executor.submit(
                some_members, sent, many[Share(k, count).of(len(many))], name="pdofm-sweep", place=k / count
            )
            for k in range(count)
        ]
        with bar("solving members", count, progress) as done:
            for k, part in enumerate(parts):
                found += executor.result(part)
                done(k + 1)
    values, estimates, converged = zip(*found, strict=True)
    return Sweep(many, np.stack(values), np.array(estimates), np.array(converged))


def some_members(told: tuple[Callable[[], Solve], Callable[[Any], Any]], mus: np.ndarray) -> list[Found]:
    """The quantities of some members. What is found does not depend on what the worker solved before."""
    fresh, of = told
    solve = fresh()
    return [_member(solve, mu, of) for mu in mus]


def _member(solve: Solve, mu: Any, of: Callable[[Any], Any]) -> Found:
    u = solve(mu)
    return np.asarray(of(u)), u.error_estimate, u.converged
