"""One slab: all stages of Radau's method at once, by a simplified Newton iteration that falls apart into one system in
space per eigenvalue of the stage matrix."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm.errors import SolveError
from pdofm.marching.arrays import Vector
from pdofm.marching.mixing import Mixing
from pdofm.marching.radau import Radau
from pdofm.marching.spaces import Space, States

MOST_STEPS = 25
"""Steps of the iteration before the slab is shortened."""

SLOW = 0.2
"""A step that is not smaller than this fraction of the one before asks for new matrices, if they are old."""

STALLED = 0.9
"""A step that is not smaller than this fraction of the one before makes no progress."""

ROUNDED = 1e-11
"""Steps below this fraction of the solution that no longer fall are rounding errors."""


class Matrices:
    """The factored matrices of a space at one linearisation, by length of the slab: one set serves all slabs of that
    length. `at` and `time` are where the equations are linearised."""

    def __init__(self, space: Space, at: States, time: float):
        self.space, self.at, self.time = space, at, time
        self._linear: Any = None
        self._factors: dict[tuple[float, int], Any] = {}

    def factors(self, scheme: Radau, length: float) -> Any:
        """The factorisations for the eigenvalues that are picked."""
        key = (length, scheme.stages)
        if key not in self._factors:
            if self._linear is None:
                self._linear = self.space.linearise(self.at, self.time)
            self._factors[key] = self.space.factor(self._linear, scheme.eigenvalues[scheme.picked] / length)
        return self._factors[key]


@dataclass(frozen=True, eq=False)
class Slab:
    """The outcome on a slab: the states at its stages by order of the time derivative, the number of steps, the size of
    the last one, and the matrices to go on with."""

    stages: States
    steps: int
    last: float
    matrices: Matrices


def solve_slab(
    matrices: Matrices, scheme: Radau, start: States, time: float, length: float, scale: Vector, tol: float
) -> Slab | None:
    """Solve the equations at all stages; None if the iteration does not converge.

    Args:
        matrices: of the space, perhaps from an earlier slab. They are renewed if they converge slowly.
        scheme: the stages.
        start: the state at the start of the slab, by order of the time derivative.
        time, length: of the slab.
        scale: the size of each component.
        tol: the size of the last step, relative to `scale`.
    """
    space, times = matrices.space, time + length * scheme.nodes
    change, size, is_fresh = np.zeros((scheme.stages, space.size)), math.inf, matrices.time == time
    mixing = Mixing()
    for step in range(1, MOST_STEPS + 1):
        states = _derivatives(scheme, start, change, length)
        delta = _correction(matrices, scheme, length, states, times)
        if delta is None:
            return None
        last, change = change, change - delta
        before, size = size, float(np.max(space.norms(delta) / scale))
        rate = size / before
        # With mixing this is not the rate q at which plain steps contract, but `delta` is a plain step: what is missing
        # after it is at most size · q / (1 - q). That is below half of what a slab may leave out up to q = 0.96, since
        # `tol` is a fiftieth of that (`ITERATION` in run.py).
        if (size <= tol * (1 - rate) and (step > 1 or size == 0)) or (rate > SLOW and size <= min(ROUNDED, 100 * tol)):
            return Slab(_derivatives(scheme, start, change, length), step, size, matrices)
        if not math.isfinite(size) or rate > STALLED:
            if is_fresh:
                return None
            # The iteration leads away: begin again, with matrices for the start of this slab.
            matrices, change = Matrices(space, _one(start, space), time), np.zeros_like(change)
            size, is_fresh, mixing = math.inf, True, Mixing()
        elif rate > SLOW and not is_fresh:
            # It converges slowly: new matrices, for what is known of the middle of this slab.
            middle = scheme.stages // 2
            states = [each[middle : middle + 1] for each in _derivatives(scheme, start, change, length)]
            matrices, size, is_fresh = Matrices(space, states, float(times[middle])), math.inf, True
            mixing = Mixing()
        else:
            change = mixing.after(last, -delta)
    return None


def after(matrices: Matrices, scheme: Radau, start: States, time: float, length: float, steps: int) -> States | None:
    """The states (b, N) at the end of a slab after so many steps with the same matrices, however large the last one is,
    for b starts; None if something is not finite."""
    change = np.zeros((scheme.stages, *start[0].shape))
    for _ in range(steps):
        states = _derivatives(scheme, start, change, length)
        delta = _correction(matrices, scheme, length, states, time + length * scheme.nodes)
        if delta is None:
            return None
        change = change - delta
    return [each[-1] for each in _derivatives(scheme, start, change, length)[: len(start)]]


def sizes_ahead(matrices: Matrices, scheme: Radau, start: States, time: float, length: float) -> Vector:
    """The size of each component on a slab, however long, after one step of the iteration; zero where that is not
    finite. It tells the size of a solution that is zero at the start."""
    states = _derivatives(scheme, start, np.zeros((scheme.stages, matrices.space.size)), length)
    delta = _correction(matrices, scheme, length, states, time + length * scheme.nodes)
    sizes = np.zeros(1) if delta is None else matrices.space.norms(delta).max(axis=0)
    return np.where(np.isfinite(sizes), sizes, 0.0)


def _one(start: States, space: Space) -> States:
    """A state with its highest time derivative, taken to be zero."""
    return [*(each[None] for each in start), np.zeros((1, space.size))]


def linearised_at(space: Space, start: States, time: float) -> Matrices:
    """The matrices at a state."""
    return Matrices(space, _one(start, space), time)


def _across(matrix: np.ndarray, of: np.ndarray) -> np.ndarray:
    """A matrix times an array along its first axis."""
    return (matrix @ of.reshape(len(of), -1)).reshape(-1, *of.shape[1:])


def _derivatives(scheme: Radau, start: States, change: Float[np.ndarray, "p ... _"], length: float) -> States:
    """The states at the stages from the change since the start: u, its time derivative, and so on."""
    states = [start[0] + change]
    for each in [*start[1:], None]:
        states.append(_across(scheme.slope, change) / length)
        if each is not None:
            change = states[-1] - each
    return states


def _correction(
    matrices: Matrices, scheme: Radau, length: float, states: States, times: Vector
) -> Float[np.ndarray, "p ... _"] | None:
    """The step of Newton's method: in the basis of eigenvectors the stages are independent. None if something is not
    finite or not invertible."""
    space, batch = matrices.space, states[0].shape[1:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        flat = [each.reshape(-1, space.size) for each in states]
        right = space.residual(flat, np.repeat(times, math.prod(batch))).reshape(scheme.stages, *batch, -1)
    if not np.all(np.isfinite(right)):
        return None
    try:
        factors = matrices.factors(scheme, length)
    except SolveError:
        return None
    # Of two conjugate eigenvalues one is solved for; the other contributes the conjugate, so that twice the real part
    # is their sum.
    parts = factors.solve(_across(scheme.inverse[scheme.picked], right))
    return np.real(_across(scheme.weighted, parts))
