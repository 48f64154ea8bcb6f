"""Polynomials in boxes that adapt to a solution: a problem solved in them, and spaces of them for other questions."""

from collections.abc import Iterator, Sequence

from pdofm._types import Key
from pdofm.adaptive.rounds import Rounds
from pdofm.discrete.checks import check_problem
from pdofm.features import InBoxes
from pdofm.numerics.sampling import generator
from pdofm.problem.problem import Problem
from pdofm.solving.solution import Solution


def solve_in_boxes(
    problem: Problem, tol: float, *, max_unknowns: int = 200_000, max_seconds: float = 120.0, key: Key = 0
) -> Solution:
    """Solve a problem by polynomials in boxes that adapt to the solution.

    Args:
        problem: what to solve, in one to three dimensions, time included; its terms must be local.
        tol: the relative L2 error that is required, apart from the closest surroundings (1 % of the domain) of
            re-entrant corners and of points where the kind of condition changes.
        max_unknowns: coefficients of all components together. A round that would need more is not begun.
        max_seconds: no round is begun that is expected to end after this time.
        key: seed of the points at which residuals are looked at.
    """
    check_problem("solve_in_boxes", problem)
    rounds = Rounds(problem, tol, int(generator(key).integers(2**31)))
    for _ in rounds.run(max_unknowns, max_seconds):
        pass
    return rounds.solution()


def spaces_in_boxes(
    problem: Problem, tols: Sequence[float], *, max_unknowns: int = 200_000, max_seconds: float = 120.0, key: Key = 0
) -> Iterator[InBoxes]:
    """Polynomials in boxes that resolve a solution up to one tolerance after the other, from loose to strict; the last
    ones are the best that the budget allows. The time that passes between them does not count."""
    check_problem("spaces_in_boxes", problem)
    rounds = Rounds(problem, min(tols), int(generator(key).integers(2**31)))
    left, features = sorted(tols, reverse=True), None
    for found in rounds.run(max_unknowns, max_seconds):
        features = found.features
        if rounds.estimate <= left[0]:
            left = [tol for tol in left if tol < rounds.estimate]
            yield features
            features = None
            if not left:
                return
    if features is not None:
        yield features
