"""Solutions of problems with unknown numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm.discrete.evaluate import evaluate, evaluate_all
from pdofm.solving.called import points_of
from pdofm.solving.solution import Solution
from pdofm.solving.statistics import LEVEL


@dataclass(frozen=True, eq=False)
class Inferred(Solution):
    """The solution of a problem with unknown numbers: ``s.k`` is a number, ``s.u(points)`` the function.

    Attributes:
        numbers: the numbers by name.
        intervals: for each number the ends of an interval that contains the truth with 95 % probability, from the
            linearised problem.
        covariance: of the numbers, of the logarithms of positive ones.
        noise: the standard deviation of the data as estimated from the residuals, if none was given.
        influence: the derivatives of the coefficients with respect to the numbers, or to the logarithms of positive
            ones, shape (m, C, p).
    """

    numbers: Mapping[str, float] = field(kw_only=True)
    intervals: Mapping[str, tuple[float, float]] = field(kw_only=True)
    covariance: Float[np.ndarray, "p p"] = field(kw_only=True)
    noise: float | None = field(kw_only=True)
    influence: Float[np.ndarray, "m C p"] = field(kw_only=True)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.numbers:
            return self.numbers[name]
        return super().__getattr__(name)

    def band(self, *points: Any) -> np.ndarray:
        """How far the solution may be off at points, of the shape of its values: with 95 % probability it differs by
        less at each point. That is the uncertainty of the data; `error_estimate` is that of the solution for these
        numbers."""
        from scipy.special import ndtri

        z, single = points_of(self.problem, points)
        slopes = evaluate_all(self.features, np.moveaxis(self.influence, 2, 0), z)
        slopes = slopes - evaluate(self.features, np.zeros_like(self.coefficients), z)
        variance = np.einsum("pnc,pq,qnc->nc", slopes, self.covariance, slopes)
        layout = self.problem.layout
        half = ndtri((1 + LEVEL) / 2) * np.sqrt(np.maximum(variance, 0.0))
        values = layout.gathered(half)
        return values[0] if single else values

    def __repr__(self) -> str:
        shown = [
            f"  {name} = {value:.10g}, with 95 % probability between {low:.8g} and {high:.8g}"
            for (name, value), (low, high) in zip(self.numbers.items(), self.intervals.values(), strict=True)
        ]
        first, *rest = super().__repr__().splitlines()
        return "\n".join([first, *shown, *rest])
