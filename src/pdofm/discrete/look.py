"""What is seen of a solution at points that were not fitted."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pdofm._types import Matrix, Points, Vector
from pdofm.discrete.evaluate import evaluate_all
from pdofm.discrete.system import Sums, System
from pdofm.features import Features
from pdofm.numerics.sized import Sized


@dataclass(frozen=True, eq=False)
class Look(Sized):
    """Sums of squares over held-out rows, and values at the points inside the domain.

    Attributes:
        raw: of the residuals of each term, left minus right side, in its own units.
        scaled: of the scaled residuals.
        data: of the scaled right sides.
        steps: of the linearised scaled residuals after each of some steps.
        values: of some functions.
    """

    raw: Sums
    scaled: Sums
    data: Sums
    steps: Float[np.ndarray, " steps"]
    values: Float[np.ndarray, "k n C"]

    def __add__(self, other: "Look") -> "Look":
        return Look(
            self.raw + other.raw,
            self.scaled + other.scaled,
            self.data + other.data,
            self.steps + other.steps,
            np.concatenate([self.values, other.values], axis=1),
        )


class Steps:
    """Sums of the squares of b - A δ for some steps δ, the columns of a matrix, from rows that are not kept."""

    def __init__(self, steps: Float[np.ndarray, "columns steps"]):
        self._steps, self.squares = steps, np.zeros(steps.shape[1])

    def add(self, A: Matrix, b: Vector) -> None:
        """Take rows of A and their right side."""
        self.squares += np.sum((b[:, None] - A @ self._steps) ** 2, axis=0)


def look_at(
    system: System,
    features: Features,
    steps: Float[np.ndarray, "columns steps"],
    functions: Float[np.ndarray, "k m C"],
    points: Points,
    passed: Steps | None = None,
    known: Float[np.ndarray, "n m"] | None = None,
) -> Look:
    """What a system shows, and the values of functions at points, where those of the features may be `known`. If its
    rows were not kept, they were `passed` on."""
    if passed is None:
        passed = Steps(steps)
        passed.add(system.A, system.b)
    return Look(
        Sums.of(system.left - system.right, system.rows),
        Sums.of(system.b, system.rows),
        Sums.of(system.scales * system.right, system.rows),
        passed.squares,
        evaluate_all(features, functions, points, known),
    )
