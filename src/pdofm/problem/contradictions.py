"""Statements that contradict each other: two conditions at one place, or data and the exact solution."""

import itertools
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Points
from pdofm.calculus.terms import Average, Difference, Term
from pdofm.domain import Part
from pdofm.errors import ProblemError
from pdofm.problem.data import Exact, Manufactured, values_at

if TYPE_CHECKING:
    from pdofm.problem.problem import Problem

PROBES = 16
"""Points of each piece of the boundary, or of the domain, at which statements are compared."""

FEW = 10
"""Values at more given points than this may be measured ones, which need not agree with each other."""

ON_BOUNDARY = 1e-9
"""How far from the boundary a given point may lie, in sizes of the domain, to be on it."""

EQUAL = 1e-9
"""Two values agree if they differ by less than this, relative to the largest data of the two conditions."""

SOLVES = 1e-6
"""The exact solution solves a term if its residual is below this fraction of what the parts of the left side may be."""

DISAGREES = 10.0
"""An error so many times above its estimate asks whether the exact solution solves the problem at all."""


def find_contradiction(problem: "Problem") -> str | None:
    """Two conditions that cannot both hold, in words; None if none are found."""
    if problem.regions is not None:
        return None
    for first, second in itertools.combinations(problem.terms[1:], 2):
        is_local = first.lhs == second.lhs and not isinstance(first.lhs, Difference)
        if not is_local or any(isinstance(term.on, Average) for term in (first, second)):
            continue
        found = _at_one_place(problem, first, second)
        if found is not None:
            return found
    return None


def check_exact(problem: "Problem", error: float, estimate: float) -> None:
    """Raise if an error is far above its estimate because the exact solution does not satisfy what is stated beside it:
    errors against it would mean nothing."""
    if not error > DISAGREES * max(estimate, SOLVES):
        return
    stated = [term for term in problem.terms if term.rhs is not None and not isinstance(term.on, Average)]
    for term in stated if problem.regions is None else ():
        found = _against_exact(problem, term)
        if found is not None:
            raise ProblemError(f"The errors of {problem.name!r} mean nothing: {found}")


def _at_one_place(problem: "Problem", first: Term, second: Term) -> str | None:
    """Where two conditions on the same quantity give it different values."""
    points, normals = _common(problem, first, second)
    if len(points) == 0:
        return None
    values = [values_at(problem.right_side(term), problem.layout, points, normals) for term in (first, second)]
    size = max(float(np.abs(each).max()) for each in values)
    gaps = np.abs(values[0] - values[1]).max(axis=1)
    worst = int(np.argmax(gaps))
    if not gaps[worst] > EQUAL * size:
        return None
    one, other = (np.round(each[worst], 9).tolist() for each in values)
    return (
        f"{first.name!r} and {second.name!r} contradict each other: at {np.round(points[worst], 9).tolist()} "
        f"one condition says {one}, the other {other}. Leave one of them out there, or give them different parts (on=)."
    )


def _common(problem: "Problem", first: Term, second: Term) -> tuple[Points, Float[np.ndarray, "n s"]]:
    """Points at which both of two conditions hold, with normals."""
    space, whole = problem.domain.dim - problem.layout.has_time, set(problem.domain.pieces)
    found = np.zeros((0, problem.domain.dim)), np.zeros((0, problem.domain.dim))
    if isinstance(first.on, Part) and isinstance(second.on, Part):
        pairs = [(p, q) for p in first.on.pieces for q in second.on.pieces if p.name == q.name]
        # Of two pieces with one name, one contains the other if it was not cut.
        pieces = [p if q in whole else q for p, q in pairs if p is q or p in whole or q in whole]
        if pieces:
            each = [piece.sample(PROBES, "sobol", np.random.default_rng(0)) for piece in pieces]
            found = tuple(np.concatenate(arrays) for arrays in zip(*each, strict=True))
    elif isinstance(first.on, Part) or isinstance(second.on, Part):
        part, at = (first.on, second) if isinstance(first.on, Part) else (second.on, first)
        if isinstance(part, Part) and set(part.pieces) == whole:
            points = problem.given_points(at)[: FEW + 1]
            points = points[np.abs(problem.domain.level(points)) <= ON_BOUNDARY * problem.domain.size]
            found = (points, np.zeros_like(points)) if len(points) <= FEW else found
    return found[0], found[1][:, :space]


def _against_exact(problem: "Problem", term: Term) -> str | None:
    """Where the exact solution does not satisfy the equation or a condition that is stated by itself."""
    points, normals = _probes(problem, term)
    left = values_at(problem.manufactured(term), problem.layout, points, normals)
    right = values_at(problem.right_side(term), problem.layout, points, normals)
    gaps = np.abs(left - right).max(axis=1)
    if not gaps.max() > SOLVES * max(float(np.abs(left).max()), float(np.abs(right).max())):
        return None
    # The left side may be the difference of large numbers: its parts are as large as that of another function.
    other = Manufactured(term.lhs, _changed(problem))
    size = float(np.abs(values_at(other, problem.layout, points, normals)).max())
    worst = int(np.argmax(gaps))
    if not gaps[worst] > SOLVES * size:
        return None
    what = "the equation with source=" if term.on is None else f"condition {term.name!r}"
    return (
        f"exact= does not satisfy {what}: at {np.round(points[worst], 9).tolist()} they differ by {gaps[worst]:.1e}. "
        "Correct one of them, or leave one out: without source= and values they are computed from exact=."
    )


def _probes(problem: "Problem", term: Term) -> tuple[Points, Float[np.ndarray, "n s"]]:
    """Some points at which a term holds, with normals."""
    if term.on is None:
        points = problem.domain.sample(PROBES)
        normals = np.zeros_like(points)
    elif isinstance(term.on, Part):
        points, normals = term.on.sample(PROBES)
    else:
        points = problem.given_points(term)[:FEW]
        normals = np.zeros_like(points)
    return points, normals[:, : problem.domain.dim - problem.layout.has_time]


def _changed(problem: "Problem") -> Exact:
    """Functions of the size of the exact solution that do not solve the problem."""
    largest = float(np.abs(problem.exact_values(problem.domain.sample(PROBES))).max())
    lower, sides = problem.domain.lower, problem.domain.upper - problem.domain.lower

    def changed(function: Any) -> Any:
        def value(*args: Array) -> Array:
            factor = 1.0 + jnp.sum(jnp.sin(3.0 * (problem.layout.point(args) - lower) / sides + 1.0))
            return (function(*args) + largest) * factor

        return value

    exact = problem.exact
    return Exact(changed(exact) if callable(exact) else tuple((name, changed(each)) for name, each in exact.items()))
