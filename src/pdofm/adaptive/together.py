"""A search on a cluster: several searches for the same tolerance side by side, each beginning with another rule."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pdofm.adaptive.policy import RULES, apply
from pdofm.adaptive.search import Search, better
from pdofm.errors import PdofmError, SolveError
from pdofm.numerics.executor import executor_of
from pdofm.problem.problem import Problem
from pdofm.solving.solution import Solution
from pdofm.solving.verdict import Status

FIRST = tuple(number for number, rule in enumerate(RULES) if number == 0 or rule.apart)
"""The rules with which searches begin: the first one, and those that need nothing from the rules before them."""


def search_together(problem: Problem, make: Callable[[Problem], Search], cluster: Any) -> Solution:
    """Let searches that ``make(problem)`` makes begin with each of the rules `FIRST`, on the workers of a cluster. The
    first answer that converges ends them all; if none does, the best one is returned."""
    best: Solution | None = None
    failures: list[str] = []
    attempts = []
    found = executor_of(cluster).each(partial(_begin, problem, make), FIRST, name="pdofm-search")
    for number, answer in found:
        if isinstance(answer, str):
            failures.append(answer)
            continue
        attempts += answer.attempts
        # What the first rules find undetermined is; networks may only seem to be.
        is_over = answer.converged or (number == 0 and answer.verdict.status is Status.UNDETERMINED)
        best = answer if best is None or is_over or better(answer, best) else best
        if is_over:
            break
    if best is None:
        raise SolveError(f"No search found a solution: {'; '.join(dict.fromkeys(failures))}")
    # Equations do not travel back with solutions.
    return replace(best, problem=problem, attempts=tuple(attempts))


def _begin(problem: Problem, make: Callable[[Problem], Search], rule: int) -> Solution | str:
    """The answer of a search that begins with a rule, or why there is none."""
    try:
        return make(problem).run(partial(apply, RULES[rule:]))
    except PdofmError as error:
        return str(error)
