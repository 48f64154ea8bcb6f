"""Conditions on integrals: the mean of the unknown, or of something computed from it, is given."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from pdofm.calculus.terms import CONDITION_WEIGHT, Average, Term
from pdofm.domain import Part
from pdofm.errors import ProblemError
from pdofm.problem.conditions import BaseCondition, Context, Residual, Value, takes_normal


@dataclass(frozen=True, eq=False, repr=False)
class Mean(BaseCondition):
    """The mean of u over the domain, or over a part of its boundary, is `value`.

    With Neumann conditions alone a solution is determined up to a constant; ``Mean(0.0)`` chooses it. `of` is what is
    averaged, if it is not u itself: a function ``of(u, x)`` (``of(u, x, t)`` in space-time, and with a parameter
    ``normal`` on a part), such as a velocity across an inlet, whose mean is the flow rate divided by its area.

    Args:
        value: the mean, a number; a vector if what is averaged is one. If omitted it is computed from the exact
            solution.
        of: a function of u and the point; by default u, or the unknown of that name.
        on: a part of the boundary, or ``domain.at(t)`` in space-time; the whole domain if omitted.
        unknown: in a system the unknown that is averaged.
        name: what messages call the condition.
        weight: of the condition, relative to the equation.
    """

    value: Any = None
    of: Callable[..., Any] | None = None
    on: Any = None
    _: KW_ONLY
    unknown: str | None = None
    name: str = "mean"
    weight: float = CONDITION_WEIGHT

    def terms(self, problem: Context) -> list[Term]:
        if callable(self.value):
            raise ProblemError(
                f"Condition {self.name!r}: the mean is one number, not a function; got {self.value!r}. What is "
                "averaged is given by of=."
            )
        if self.value is None and not (problem.has_exact and problem.domain.materials is None):
            raise ProblemError(f"Condition {self.name!r} has no value; expected a number, as in Mean(0.0).")
        if self.on is not None and not isinstance(self.on, Part):
            raise ProblemError(
                f"Condition {self.name!r}: on= must be a part of the domain, such as domain.part(name); got "
                f"{type(self.on).__name__} of shape {np.shape(self.on)}. Leave it out for the mean over the domain."
            )
        if self.of is not None and self.unknown is not None:
            raise ProblemError(
                f"Condition {self.name!r} has both of= and unknown=. Name the unknown in the function: "
                f"of=lambda u, x: u.{self.unknown}(x)."
            )
        if self.of is not None and takes_normal(self.of) and self.on is None:
            raise ProblemError(
                f"Condition {self.name!r}: of= takes a normal, which points inside the domain do not have. Give a part "
                "of the boundary: on=domain.boundary."
            )
        lhs = Value(self.unknown) if self.of is None else Residual(self.of)
        over = problem.domain if self.on is None else self.on
        return [Term(self.name, lhs, self.value, Average(over), self.weight)]
