"""The search for parameters with the smallest misfit: Gauss-Newton that goes no farther than its linearisation holds.

A step that lowers the misfit may still leave the valley that it started in: far from the data the linearised problem
asks for numbers that are wrong by powers of ten, where the solution hardly depends on them and nothing leads back. So
a step must also do to the data what the linearisation says, up to a part of it, and positive numbers change by a
factor of e at most. Where the search ends in a place that the data speak against, others are looked at.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from pdofm._types import Vector
from pdofm.errors import PdofmError, SolveError
from pdofm.problem.unknown import THRESHOLDS
from pdofm.solving.forward import Forward, State
from pdofm.solving.prior import Prior
from pdofm.solving.statistics import Numbers, robust_loss

STEP, FALL = 1e-15, 1e-10
"""The search ends where a step would be that small, or the misfit would fall by that little, relatively."""

MOST_STEPS = 40
"""Steps of Gauss-Newton, at most, for one choice of the weights."""

BENT, STRAIGHT = 1.0, 0.25
"""By which part of what the linearisation predicts the data may differ from the prediction after a step, and below
which steps may become longer."""

SHRINK, GROW = 0.4, 4.0
"""How the reach of steps changes after one that is refused, and after one that went straight."""

TRIALS = 8
"""How often a step is shortened."""

BLURRED = 1e-6
"""Where a step that small is refused, relatively, the errors of the solution are the reason, not the nonlinearity."""

FLATTEST = 1e-13
"""Directions whose singular value is below this, relative to the largest, are not seen."""

LOOSER = 100.0
"""A weight falls by at most this factor in a step: far from the solution the linearised problem says little."""

SETTLED = 0.1
"""A weight that changes by less, relatively, is kept."""

FALL_ENOUGH = 1e-3
"""The weights are final if the misfit falls by less than this, relatively, in a step."""

PLACES, MOST_PLACES, WORK = 24, 300, 1e10
"""Other numbers that are looked at if the first search ends badly: so many, or more if that many multiplications, with
rows times columns squared for each step of a solve, allow it."""

NEARER, DESCENTS = (0.2, 0.5), 4
"""They are looked at in three groups, up to these parts of them, from near to far. From the best places of each group
that are better than their neighbours, so many, the search is repeated."""

FINE, BAD, POINTLESS = 0, 1, 2
"""How good a place is where a search ended: the data do not speak against it; they do; or nothing can be said there,
because the data hardly depend on the numbers or the solution is not resolved. A smaller misfit in a pointless place is
worth less than a larger one in another."""


class Descent:
    """The parameters, in their coordinates, the solution that belongs to them, and the weights of the prior of
    fields."""

    def __init__(self, forward: Forward, numbers: Numbers, prior: Prior, state: State):
        self.forward, self.numbers, self.prior, self.state = forward, numbers, prior, state
        self.thresholds = losses(forward)
        self.q = numbers.inward(state.vector)
        self.weights = prior.stiff(self.linearised()[0]) if prior.roots else np.zeros(0)
        self._reach = np.inf

    def run(self) -> "Descent":
        """Go down to the smallest misfit, with the likeliest weights of the prior."""
        prior, weights = self.prior, self.weights
        for _ in range(MOST_STEPS if prior.roots else 0):
            fall = self.step(prior.rows(weights))
            likeliest = prior.likeliest(*self.linearised(), self.forward.data.noise is None)
            found = np.maximum(likeliest, weights / LOOSER)
            if bool(np.all(np.abs(np.log(found / weights)) < SETTLED)) and fall < FALL_ENOUGH:
                break
            weights = found
        rows = prior.rows(weights)
        for _ in range(MOST_STEPS):
            if not self.step(rows) > FALL:
                break
        self.weights = weights
        return self

    def step(self, prior: Float[np.ndarray, "s p"]) -> float:
        """One step, shortened until the misfit falls and the data follow the linearisation; by how much it falls,
        relatively."""
        jacobian, target = self.linearised()
        residual, weights = jacobian @ self.q - target, self._robust_weights()
        norms = np.linalg.norm(jacobian, axis=0)
        before = self.loss(self.state, self.q, prior)
        for _ in range(TRIALS):
            step = self._within_reach(jacobian, residual, norms, prior)
            length = float(np.max(np.abs(step) / (1 + np.abs(self.q)), initial=0.0))
            along = jacobian @ step
            stacked = np.concatenate([residual + along, prior @ (self.q + step)])
            linear = np.concatenate([residual, prior @ self.q])
            promised = float(np.sum(linear**2) - np.sum(stacked**2))
            if length <= STEP or promised <= FALL * max(before, np.finfo(float).tiny):
                return 0.0
            q = np.clip(self.q + step, *self.numbers.bounds)
            state = self._tried(q)
            if state is not None:
                after = self.loss(state, q, prior)
                bent = np.linalg.norm((state.residual * weights) - residual - along)
                straight = bent / max(float(np.linalg.norm(along)), np.finfo(float).tiny)
                if after < before and straight <= BENT:
                    self.q, self.state = q, state
                    self._reach *= GROW if straight <= STRAIGHT else 1.0
                    return 1.0 - after / before
            if length <= BLURRED:
                return 0.0
            self._reach = SHRINK * float(np.max(norms * np.abs(step)))
        return 0.0

    def asked(self) -> tuple[Vector, Vector, Vector]:
        """The step that the linearised problem asks for, without and within bounds, and the standard deviations of
        the coordinates after it, where the noise is what it then leaves of the data."""
        jacobian, target = self.linearised()
        residual, prior = jacobian @ self.q - target, self.prior.rows(self.weights)
        stacked, sides = np.vstack([jacobian, prior]), np.concatenate([residual, prior @ self.q])
        norms = np.linalg.norm(stacked, axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        inverse = np.linalg.pinv(stacked / scale, rcond=FLATTEST) / scale[:, None]
        step, noise = -inverse @ sides, 1.0
        if self.forward.data.noise is None:
            freedom = len(sides) - len(self.q)
            noise = float(np.linalg.norm(sides + stacked @ step)) / max(freedom, 1) ** 0.5
        self._reach = np.inf
        within = self._within_reach(jacobian, residual, np.linalg.norm(jacobian, axis=0), prior)
        return step, within, noise * np.linalg.norm(inverse, axis=1)

    def loss(self, state: State, q: Vector, prior: Float[np.ndarray, "s p"]) -> float:
        """What is minimised."""
        return float(np.sum(robust_loss(state.residual**2, self.thresholds)[0]) + np.sum((prior @ q) ** 2))

    def linearised(self) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives of the residual, and what they should map the coordinates to, each residual as the loss
        weighs it."""
        jacobian, weights = self.state.jacobian * self.numbers.slopes(self.state.vector), self._robust_weights()
        return jacobian * weights[:, None], (jacobian @ self.q - self.state.residual) * weights

    def _robust_weights(self) -> Vector:
        if not np.isfinite(self.thresholds).any():
            return np.ones(len(self.state.residual))
        return np.sqrt(robust_loss(self.state.residual**2, self.thresholds)[1])

    def _within_reach(
        self, jacobian: np.ndarray, residual: np.ndarray, norms: np.ndarray, prior: Float[np.ndarray, "s p"]
    ) -> Vector:
        """The step that the linearised problem asks for, of those within bounds and reach."""
        from scipy.optimize import lsq_linear  # slow to import

        # The directions that the data do not see stay where they are.
        still = FLATTEST * np.diag(np.where(norms > 0, norms, 1.0))
        rows = np.vstack([jacobian, prior, still])
        sides = -np.concatenate([residual, prior @ self.q, np.zeros(len(still))])
        reach = np.divide(self._reach, norms, out=np.full(len(norms), np.inf), where=norms > 0)
        reach = np.maximum(np.minimum(reach, self.numbers.longest), np.finfo(float).tiny)
        lower, upper = self.numbers.bounds
        return lsq_linear(rows, sides, (np.maximum(lower - self.q, -reach), np.minimum(upper - self.q, reach))).x

    def _tried(self, q: Vector) -> State | None:
        """The solution there; None if there is none."""
        try:
            state = self.forward.at(self.numbers.outward(q), self.state)
        except PdofmError:
            return None
        return state if state.is_sound else None


def losses(forward: Forward) -> Float[np.ndarray, " r"]:
    """For each residual the threshold of its robust loss, negative for Cauchy's; infinite for squares."""
    sign = {"huber": 1.0, "cauchy": -1.0}
    parts = [
        np.full(size, np.inf if kind is None else sign[kind] * THRESHOLDS[kind]) for kind, size in forward.data.losses
    ]
    return np.concatenate(parts) if parts else np.full(1, np.inf)


def search(forward: Forward, numbers: Numbers, prior: Prior, start: Vector, doubt: Callable[[Descent], int]) -> Descent:
    """The parameters with the smallest misfit, from a start; from others, too, if that ends badly."""
    first = forward.at(numbers.outward(numbers.inside(start)))
    found = Descent(forward, numbers, prior, first)
    if first.is_sound:
        found.run()
    if not first.is_sound or (numbers.names and doubt(found) != FINE):
        found = _elsewhere(found, numbers.elsewhere(numbers.inside(first.vector), _count(first)), doubt)
    if not np.isfinite(found.state.residual).all():
        raise SolveError(
            f"The solution with the parameters at their starts, {numbers.shown(start)}, is not finite, nor is it with "
            "others nearby. Start elsewhere: Number(start), Field(start)."
        )
    return found


def _elsewhere(found: Descent, places: Float[np.ndarray, "n p"], doubt: Callable[[Descent], int]) -> Descent:
    """The best place that a search from other numbers leads to, or what was found already."""

    def worth(descent: Descent) -> tuple[bool, float, int]:
        if not descent.state.is_sound:
            return True, np.inf, POINTLESS
        doubts, misfit = doubt(descent), descent.loss(descent.state, descent.q, np.zeros((0, len(descent.q))))
        return doubts == POINTLESS, misfit, doubts

    # What fits worse than another place is not explained there, whatever it looks like.
    best, looked_at = worth(found), []
    for near in np.split(places, [int(share * len(places)) for share in NEARER]):
        begun = len(looked_at)
        looked_at += [(worth(place), place) for place in (_at(found, q) for q in near) if place is not None]
        for index in [each for each in _valleys(looked_at) if each >= begun][:DESCENTS]:
            place = looked_at[index][1].run()
            found, best = min((found, best), (place, worth(place)), key=lambda each: each[1])
            if best[-1] == FINE:
                return found
    return found


def _valleys(looked_at: list[tuple[tuple, Descent]]) -> list[int]:
    """The places that are better than their neighbours, the best first."""
    if not looked_at:
        return []
    q = np.array([place.q for _, place in looked_at])[:, : len(looked_at[0][1].numbers.names)]
    spread = np.std(q, axis=0)
    q = q / np.where(spread > 0, spread, 1.0)
    order = sorted(range(len(q)), key=lambda each: looked_at[each][0])
    rank, found = np.argsort(order), []
    for each in order:
        neighbours = np.argsort(np.sum((q - q[each]) ** 2, axis=1), kind="stable")[1 : 2 * q.shape[1] + 1]
        if (rank[neighbours] > rank[each]).all():
            found.append(each)
    return found


def _at(found: Descent, q: Vector) -> Descent | None:
    """A search that starts from other numbers; None if the equation has no solution there."""
    try:
        state = found.forward.at(found.numbers.outward(q))
    except PdofmError:
        return None
    return Descent(found.forward, found.numbers, found.prior, state) if state.is_sound else None


def _count(first: State) -> int:
    """At how many places the search may look."""
    rows, columns = first.system.A.shape
    solves = max(len(first.outcome.steps), 1)
    return int(np.clip(min(WORK / (rows * columns**2), MOST_PLACES) / solves, PLACES, MOST_PLACES))
