"""How wrong is the answer, when no exact solution is known?

Compare with coarser solutions, in the spaces of the first 95, 90 and 80 % of the features. They are free: the leading
block of R belongs to the leading columns of A. Two things are learned from them.

- Leaving out the last 5 % of the features moves the solution by about its own error, whether resolution or rounding
  limits it.
- The residual at points that were not fitted tells how badly the equation is violated, but not what that means for the
  solution: the ratio of error to residual depends on the problem. A coarse solution calibrates it. Its error is known,
  for it is nearly the distance to the fine solution, and so is its residual: error(fine) ≈ residual(fine) · ‖u_fine -
  u_coarse‖ / residual(coarse).

The estimate is the largest of these numbers, and of what an iteration that stopped still lacks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pdofm.assemble import Block, System, assemble, evaluate
from pdofm.features import Features
from pdofm.methods import Outcome
from pdofm.problem import Problem

NEAR, COARSE = 0.95, (0.8, 0.9)
"""Fractions of the features for the distance and for the calibration of the residual."""


@dataclass(frozen=True)
class Estimate:
    """An estimated relative L2 error, and the held-out system that it comes from."""

    relative_error: float
    system: System


def estimate_error(problem: Problem, features: Features, outcome: Outcome, held_out: Sequence[Block]) -> Estimate:
    """The estimated relative L2 error of an outcome, from points that were not used in the fit."""
    c, factored = outcome.coefficients, outcome.factorization
    system = assemble(problem.layout, features, held_out, c)
    points = held_out[0].points
    fine, fine_values = float(np.linalg.norm(system.b)), evaluate(features, c, points)
    sizes = np.maximum(np.linalg.norm(fine_values, axis=0), np.finfo(float).tiny)
    numbers = [outcome.iteration_error]
    for fraction in (NEAR, *COARSE):
        columns = max(1, int(fraction * len(c))) * c.shape[1]
        coarse = factored.coarse(outcome.projected, columns).reshape(c.shape)
        # In a system the component that moved most counts, as in Solution.errors.
        distance = float(np.max(np.linalg.norm(evaluate(features, coarse, points) - fine_values, axis=0) / sizes))
        residual = float(np.linalg.norm(system.b - system.A @ (coarse - c).reshape(-1)))
        numbers.append(distance if fraction == NEAR or residual == 0 else distance * fine / residual)
    return Estimate(float(np.max(numbers)), system)
