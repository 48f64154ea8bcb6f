"""Problems with some fields replaced: what becomes of data that came from the exact solution."""

import dataclasses
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.terms import Average, LeftSide, Realified, Term
from pdofm.domain import Part
from pdofm.domain.quadrature import over_part, quadrature_of
from pdofm.errors import ProblemError
from pdofm.problem.conditions import BaseCondition
from pdofm.problem.data import at_points

if TYPE_CHECKING:
    from pdofm.problem.problem import Problem

PROBES = 8
"""Points at which the old exact solution is tried in a new equation or condition."""

MEAN_NODES = 24
"""Nodes along each side for a mean of the old exact solution."""

AGREES = 1e-6
"""The exact solution still solves a changed term if its residual there is below this, relative to the two sides: far
above the rounding errors of derivatives, far below any change that is meant."""


def still_exact(problem: "Problem", changed: set[str]) -> bool:
    """Whether the exact solution satisfies the equation, if that was changed, and the conditions, if those were."""
    if problem.regions is not None:
        raise ProblemError(
            f"{' and '.join(sorted(changed))} of a problem with several regions cannot be replaced while it has an "
            "exact solution. Give that of the new problem, or exact=None and all data."
        )
    equation, *conditions = problem.terms
    terms = [equation] if changed & {"operator", "source"} else []
    terms += conditions if "conditions" in changed else []
    return all(_holds(problem, term) for term in terms if term.rhs is not None)


def _holds(problem: "Problem", term: Term) -> bool:
    weights = None
    if isinstance(term.on, Average):
        over = term.on.over
        rule = over_part(over, MEAN_NODES) if isinstance(over, Part) else quadrature_of(over).whole(MEAN_NODES)
        points, normals, weights = rule.points, rule.normals, rule.weights / rule.weights.sum()
    elif term.on is None:
        points = problem.domain.sample(PROBES)
        normals = np.zeros_like(points)
    elif isinstance(term.on, Part):
        points, normals = term.on.sample(PROBES)
    else:
        points = problem.given_points(term)[:PROBES]
        normals = np.zeros_like(points)
    normals = normals[:, : problem.domain.dim - problem.layout.has_time]
    left, right = (
        np.asarray(at_points(side, problem.layout, jnp.asarray(points), jnp.asarray(normals)))
        for side in (problem.manufactured(term), problem.right_side(term))
    )
    if weights is not None:
        left, right = weights @ left, right[:1]
    size = max(float(np.abs(left).max()), float(np.abs(right).max()))
    return bool(np.abs(left - right).max() <= AGREES * max(size, 1e-30))


def with_own_data(problem: "Problem", before: "Problem", changed: set[str]) -> dict[str, Any]:
    """The fields by which a problem states itself what it took from the exact solution, which is dropped. An omitted
    source is that of the problem `before`, unless the operator is new."""
    operator = problem.terms[0] if "operator" in changed else before.terms[0]
    lhs = operator.lhs.lhs if isinstance(operator.lhs, Realified) else operator.lhs
    source = _FromExact(lhs, problem.exact_fields) if problem.source is None else problem.source
    conditions = [_own(problem, condition) for condition in problem.stated]
    return {"source": source, "conditions": conditions, "exact": None}


def _own(problem: "Problem", condition: BaseCondition) -> BaseCondition:
    """A condition whose values that came from the exact solution are functions of its own."""
    terms = condition.terms(problem.context)
    names = [name for name in ("value", "velocity") if hasattr(condition, name)]
    missing = {
        name: _FromExact(term.lhs, problem.exact_fields)
        for name, term in zip(names, terms, strict=False)
        if term.rhs is None
    }
    return dataclasses.replace(condition, **missing) if missing else condition  # type: ignore[type-var]


@dataclasses.dataclass(frozen=True, eq=False)
class _FromExact:
    """The left side of a term applied to a known function, as data of a problem."""

    lhs: LeftSide
    function: Any

    def __call__(self, *args: Array, normal: Array) -> Array:
        return self.lhs(self.function, self.function, args, normal)
