"""The solutions of an equation for given parameters, what would be measured of them, and the derivatives of both.

The influence of the parameters on the solution comes from the factorisation that gave it. With A the matrix of the
linearised equation, and B the derivatives of its left sides with respect to the parameters p,

    ∂u/∂p = -A⁺ B,    ∂r/∂p = (D ∂u/∂p + E) / noise,

where D and E are the derivatives of the measured quantity with respect to u and p. Without data the conditions must
determine the parameters: then r is the residual of the equation and the conditions, and ∂r/∂p = (I - A A⁺) B.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Vector
from pdofm.discrete.assemble import left_values
from pdofm.discrete.collocate import Block
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.parameters import ParameterSpace, sensitivities
from pdofm.discrete.system import System
from pdofm.problem.data import Given
from pdofm.solving.methods import Linear, Method, Newton, Outcome, run

KEEP = 1e-6
"""Newton's method keeps a matrix below this change: the factorisation at its end gives the derivatives with respect to
the parameters."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Data at their points, as real numbers in one vector.

    Attributes:
        variation: the norm of their differences from their means, of each of the data, or their own if all are equal.
        variations: the same for each set of data alone.
    """

    blocks: Sequence[Block]
    values: Vector
    noise: Vector | None
    losses: Sequence[tuple[str | None, int]]
    variation: float
    variations: Sequence[float]

    @property
    def is_unscaled(self) -> bool:
        """Whether there are data whose noise is not known."""
        return self.noise is None and len(self.values) > 0

    @property
    def scales(self) -> np.ndarray:
        """What residuals are divided by: the noise, or the size of the data if it is not known."""
        if self.noise is not None:
            return self.noise
        size = float(np.sqrt(np.mean(self.values**2))) if len(self.values) else 1.0
        return np.full(len(self.values), size or 1.0)


def measurements(discretisation: Discretisation) -> Measurements:
    """The data of a problem, in a discretisation of it."""
    problem = discretisation.problem
    blocks, values, noise, losses, varied = [], [], [], [], []
    for data, term in problem.measured:
        points = problem.given_points(term)
        normals = np.zeros((len(points), points.shape[1] - problem.layout.has_time))
        blocks.append(Block(term, Given((0.0,)), points, normals))
        probe = left_values(
            problem.layout, discretisation.features, blocks[-1].part(slice(0, 1)), discretisation.zero()
        )
        rows, each = data.rows(len(points), probe.shape[1], problem.layout.is_complex)
        values.append(rows.reshape(-1))
        varied.append((float(np.linalg.norm(rows - np.mean(rows, axis=0))), float(np.linalg.norm(rows)) or 1.0))
        noise.append(None if each is None else each.reshape(-1))
        losses.append((data.robust, rows.size))
    known = [each for each in noise if each is not None]
    joined = np.concatenate(values) if values else np.zeros(0)
    variation = float(np.linalg.norm([each for each, _ in varied])) or float(np.linalg.norm(joined)) or 1.0
    each_of = [each or size for each, size in varied]
    return Measurements(blocks, joined, np.concatenate(known) if known else None, losses, variation, each_of)


@dataclass(frozen=True, eq=False)
class State:
    """The solution of the equation with certain parameters."""

    forward: "Forward"
    vector: Float[np.ndarray, " p"]
    discretisation: Discretisation
    system: System
    outcome: Outcome

    @property
    def coefficients(self) -> Coefficients:
        return self.outcome.coefficients

    @property
    def is_sound(self) -> bool:
        """Whether it is finite, and its iteration has converged or none was needed."""
        verdict = self.outcome.verdict
        return (verdict is None or verdict.converged) and bool(np.isfinite(self.residual).all())

    @cached_property
    def influence(self) -> Float[np.ndarray, "columns p"]:
        """The derivatives of the coefficients of u with respect to the parameters."""
        return -self.outcome.factorization.solve(self._of_equation)

    @cached_property
    def _of_equation(self) -> Float[np.ndarray, "rows p"]:
        """The derivatives of the scaled left sides with respect to the parameters, with u fixed."""
        return self.system.scales[:, None] * self.forward.slopes(self.discretisation.blocks, self.coefficients)

    @cached_property
    def residual(self) -> np.ndarray:
        """The scaled residual of the data; without data that of the equation and the conditions."""
        data = self.forward.data
        if not data.blocks:
            is_there = self.outcome.verdict is not None  # else it was made at zero
            return -(self.system if is_there else self.system.moved(self.coefficients)).b
        return (self.forward.measured(self.vector, self.coefficients) - data.values) / data.scales

    @cached_property
    def jacobian(self) -> Float[np.ndarray, "r p"]:
        """The derivatives of the residual with respect to the parameters."""
        forward = self.forward
        if not forward.data.blocks:
            return self._of_equation + self.system.A @ self.influence
        slopes = forward.slopes(forward.measuring(self.vector), self.coefficients)
        return (self.of_data @ self.influence + slopes) / forward.data.scales[:, None]

    @cached_property
    def of_data(self) -> Float[np.ndarray, "r columns"]:
        """The derivatives of what is measured with respect to the coefficients of u."""
        blocks = self.forward.measuring(self.vector)
        system = self.discretisation.system(self.coefficients, blocks, fold=False, role="data")
        return system.A / system.scales[:, None]


class Forward:
    """The solutions of the equation, one for each vector of parameters."""

    def __init__(self, discretisation: Discretisation, method: Method | None, space: ParameterSpace):
        self.discretisation = replace(discretisation.iterating(), held_out=())
        self.space = space
        self.data = measurements(discretisation)
        self.method = replace(method, keep=KEEP) if isinstance(method, Newton) else method
        self._is_checked = False

    def measuring(self, vector: Float[np.ndarray, " p"]) -> list[Block]:
        """The data with these parameters."""
        return self.space.with_values(self.data.blocks, vector)

    def measured(self, vector: Float[np.ndarray, " p"], c: Coefficients) -> np.ndarray:
        """What would be measured of a function."""
        layout, features = self.discretisation.problem.layout, self.discretisation.features
        return np.concatenate([left_values(layout, features, b, c).reshape(-1) for b in self.measuring(vector)])

    def slopes(self, blocks: Sequence[Block], c: Coefficients) -> Float[np.ndarray, "rows p"]:
        """The derivatives of the left sides of blocks with respect to the parameters, with u fixed."""
        layout, features = self.discretisation.problem.layout, self.discretisation.features
        found = [sensitivities(layout, features, block, c, self.space) for block in blocks]
        return np.concatenate([each.reshape(-1, each.shape[2]) for each in found])

    def at(self, vector: Float[np.ndarray, " p"], near: State | None = None) -> State:
        """The solution with these parameters; an iteration for it starts from one that is near, if one is given."""
        base = self.discretisation
        here = replace(base, blocks=self.space.with_values(base.blocks, vector))
        method = self._continued(vector, near)
        start = (method or Linear()).start(here)
        system = here.system(start, check=not self._is_checked, fold=False)
        # With parameters for which there is no solution an iteration may run away, which its verdict says.
        with np.errstate(over="ignore", invalid="ignore"):
            outcome, self._is_checked = run(method, here, system), True
        if self.method is None and outcome.verdict is not None:
            self.method = Newton(keep=KEEP)  # it turned out to be nonlinear
        if outcome.verdict is not None:
            system = here.system(outcome.coefficients, fold=False)
        return State(self, vector.copy(), here, system, outcome)

    def _continued(self, vector: Float[np.ndarray, " p"], near: State | None) -> Method | None:
        """The method with the start that a solution for other parameters suggests."""
        if near is None or not isinstance(self.method, Newton):
            return self.method
        step = near.influence @ (vector - near.vector)
        return replace(self.method, initial=near.coefficients + step.reshape(near.coefficients.shape))
