"""What solutions of problems of the zoo are compared with: their exact solution, or accurate values that come with the
package, made by the scripts in tools/references."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.features.io import read
from pdofm.numerics.distance import relative_sizes
from pdofm.solving.solution import Expansion
from pdofm.zoo.registry import get

FOLDER = Path(__file__).parent.parent / "data" / "references"
"""The files that come with the package, by name of the problem."""

POINTS = 4096
"""Points at which exact solutions are compared."""

EXACT = 1e-14
"""The error of exact solutions: rounding."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Accurate values of the solution of a problem.

    Attributes:
        points: in the domain; in space-time with the time last.
        weights: of the points in integrals over the domain.
        values: of the components.
        error: the relative L2 error of the values, as far as it is known.
        how: where they come from.
    """

    points: Points
    weights: Float[np.ndarray, " n"]
    values: Float[np.ndarray, "n C"]
    error: float
    how: str

    def until(self, time: float) -> "Reference":
        """The part up to a time."""
        at = self.points[:, -1] <= time
        return Reference(self.points[at], self.weights[at], self.values[at], self.error, self.how)

    def relative_l2(self, solution: Expansion) -> float:
        """The relative L2 error of a solution; in a system that of the component with the largest one."""
        found = np.asarray(solution(self.points)).reshape(self.values.shape)
        roots = np.sqrt(self.weights)[:, None]
        return float(np.max(relative_sizes((found - self.values) * roots, self.values * roots, vanishing=0.0)))


def reference(name: str) -> Reference | None:
    """Accurate values of the solution of a problem of the zoo; None if there are none."""
    path, problem = FOLDER / f"{name}.safetensors", get(name)
    if path.exists():
        header, arrays = read(path)
        return Reference(
            arrays["points"], arrays["weights"], arrays["values"], float(arrays["error"].max()), header["how"]
        )
    if problem.exact is None:
        return None
    points = problem.domain.sample(POINTS)
    return Reference(points, np.full(POINTS, 1 / POINTS), problem.exact_values(points), EXACT, "exact solution")
