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
    """Data at their points, as real numbers in one vector."""

    blocks: Sequence[Block]
    values: Vector
    noise: Vector | None
    losses: Sequence[tuple[str | None, int]]

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
    blocks, values, noise, losses = [], [], [], []
    for data, term in problem.measured:
        points = problem.given_points(term)
        normals = np.zeros((len(points), points.shape[1] - problem.layout.has_time))
        blocks.append(Block(term, Given((0.0,)), points, normals))
        probe = left_values(
            problem.layout, discretisation.features, blocks[-1].part(slice(0, 1)), discretisation.zero()
        )
        rows, each = data.rows(len(points), probe.shape[1], problem.layout.is_complex)
        values.append(rows.reshape(-1))
        noise.append(None if each is None else each.reshape(-1))
        losses.append((data.robust, rows.size))
    known = [each for each in noise if each is not None]
    joined = np.concatenate(values) if values else np.zeros(0)
    return Measurements(blocks, joined, np.concatenate(known) if known else None, losses)


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
        self.last: State | None = None

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

    def at(self, vector: Float[np.ndarray, " p"]) -> State:
        """The solution with these parameters; an iteration for it starts from the last one."""
        if self.last is not None and np.array_equal(self.last.vector, vector):
            return self.last
        base = self.discretisation
        here = replace(base, blocks=self.space.with_values(base.blocks, vector))
        method = self._continued(vector)
        outcome, system = self._solved(method, here)
        if method is not self.method and not is_finished(outcome):  # a bad start
            outcome, system = self._solved(self.method, here)
        if self.last is None and method is None and outcome.verdict is not None:
            self.method = Newton(keep=KEEP)  # it turned out to be nonlinear
        if outcome.verdict is not None:
            system = here.system(outcome.coefficients, fold=False)
        found = State(self, vector.copy(), here, system, outcome)
        if self.last is None or is_finished(outcome):
            self.last = found
        return found

    def _solved(self, method: Method | None, here: Discretisation) -> tuple[Outcome, System]:
        system = here.system((method or Linear()).start(here), check=self.last is None, fold=False)
        return run(method, here, system), system

    def _continued(self, vector: Float[np.ndarray, " p"]) -> Method | None:
        """The method with the start that the last solution suggests."""
        if self.last is None or not isinstance(self.method, Newton):
            return self.method
        step = self.last.influence @ (vector - self.last.vector)
        return replace(self.method, initial=self.last.coefficients + step.reshape(self.last.coefficients.shape))


def is_finished(outcome: Outcome) -> bool:
    """Whether an iteration has converged, or none was needed."""
    return outcome.verdict is None or outcome.verdict.converged
