"""A picture of what the data of a problem leave free."""

import copy
from dataclasses import dataclass
from os import PathLike
from typing import Any

from pdofm.errors import SolveError
from pdofm.output.plot import plot_solution
from pdofm.solving.solution import Expansion, Solution


@dataclass(frozen=True, eq=False)
class Free(Expansion):
    """A function that the data of a problem leave free."""

    def __repr__(self) -> str:
        return f"The function {self.problem.name!r}"


def plot_undetermined(solution: Solution, path: str | PathLike | None = None, **options: Any) -> Any:
    """A figure of the largest function that data of size 1 can cause, where they do not determine the solution: where
    it is large, a condition is missing. The options are those of `plot_solution`."""
    free = getattr(solution, "free", None)
    if free is None:
        measured = getattr(getattr(solution, "stats", None), "stability", None)
        known = "was not measured in this space" if measured is None else f"is {measured:.1e} and does not grow"
        raise SolveError(
            "No function is known that the data leave free: the stability constant "
            f"{known}. Use plot() to draw the solution."
        )
    problem = copy.copy(solution.problem)
    object.__setattr__(problem, "exact", None)
    object.__setattr__(problem, "name", f"what the data of {problem.name!r} leave free")
    return plot_solution(Free(problem, solution.features, free), path, **options)
