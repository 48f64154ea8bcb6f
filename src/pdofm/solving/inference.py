"""Unknown numbers and fields from data: Gauss-Newton over the solutions of the equation.

The equation is taken to be exact, and data to be noisy. So the function u is determined by the parameters p: it is the
least-squares solution of the equation and the conditions. What is minimised is the misfit of the data,

    Σ ρ(r_i²),    r_i = (of(u(p), p)(x_i) - value_i) / noise_i,

over the parameters alone; `pdofm.solving.forward` has the solutions and their derivatives. The coefficients of fields
are parameters, too. To the misfit the size of their second derivatives is added, with a weight that is chosen anew for
the linearised problem until it does not change (`pdofm.solving.prior`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pdofm.calculus.parameters import FIELD_ORDER
from pdofm.discrete.assemble import left_values
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.parameters import ParameterSpace
from pdofm.errors import FeaturesError, PdofmError, ProblemError, SolveError
from pdofm.features import BoxPolynomials
from pdofm.problem.problem import Problem
from pdofm.problem.unknown import THRESHOLDS, Field, Number
from pdofm.solving.clock import Clock
from pdofm.solving.conclude import concluded
from pdofm.solving.forward import Forward, State, is_finished
from pdofm.solving.inferred import Correction, FoundField, Inferred
from pdofm.solving.methods import Method, Picard
from pdofm.solving.prior import Prior, field_space
from pdofm.solving.statistics import Fitted, Numbers, robust_loss
from pdofm.solving.verdict import judge

STEP, FALL = 1e-12, 1e-10
"""The search for the parameters ends when a step is that small, or the misfit falls by that little, relatively."""

MOST_EVALUATIONS = 60
"""Solves with different parameters, at most, for one weight of the prior."""

NEAR = 0.95
"""The fraction of the features in which a second solution shows how resolution changes the parameters."""

LOOSER = 100.0
"""A weight falls by at most this factor in a step: far from the solution the linearised problem says little."""

SETTLED = 0.1
"""A weight that changes by less, relatively, is kept."""

MOST_STEPS = 40
"""Steps of Gauss-Newton, each with a choice of the weights, at most."""

FALL_ENOUGH = 1e-3
"""The weights are final if the misfit falls by less than this, relatively, in a step."""

FLATTEST = 1e-13
"""Directions whose singular value is below this, relative to the largest, are not seen."""

HALVINGS = 10
"""How often a step is halved until the misfit falls."""

CHECKED = 16
"""Points of each term at which the two ways to evaluate a field are compared."""

SIZED = 200
"""Points at which the mean size of a field is computed."""


def check_numbers(problem: Problem, features: Any, method: Any) -> None:
    """Refuse what unknown numbers cannot be found with."""
    names = problem.parameters.names
    if isinstance(features, BoxPolynomials):
        raise FeaturesError(
            f"Polynomials in boxes do not find unknown numbers; {problem.name!r} has {names}. Give other features, "
            "such as Chebyshev(domain, 300), or a tolerance."
        )
    if isinstance(method, Picard):
        raise SolveError(
            f"Picard() does not find unknown numbers; {problem.name!r} has {names}. Leave method= out, or give "
            "Newton()."
        )


def infer(
    discretisation: Discretisation,
    method: Method | None,
    clock: Clock,
    tol: float | None,
    starts: Mapping[str, float],
) -> Inferred:
    """Find the parameters of a problem together with its solution, in given features."""
    problem = discretisation.problem
    _ = problem.transitions  # looked for once, not again for every value of the parameters
    parameters, unknowns = problem.parameters.replaced(starts), problem.unknowns or {}
    data = sum(each.measured.size for each, _ in problem.measured)
    wanted = {name: each.features for name, each in unknowns.items() if isinstance(each, Field)}
    features = {name: field_space(problem.domain, each, data) for name, each in wanted.items()}
    space = ParameterSpace(len(parameters.numbers), tuple(features.values()))
    numbers = Numbers(
        {n: each for n, each in unknowns.items() if isinstance(each, Number)},
        {name: each.size for name, each in features.items()},
    )
    start = np.concatenate([[value for _, value in parameters.numbers], np.zeros(space.size - space.numbers)])
    forward = Forward(discretisation, method, space)
    if features:
        _check_local(forward)
    with clock("solve"):
        prior = Prior.of(problem.domain, space.numbers, space.fields)
        vector, weights = search(forward, numbers, prior, start)
        state = forward.at(vector)
    fields = {
        name: replace(each, correction=Correction(features[name], vector[part]))
        for (name, each), part in zip(parameters.fields, space.parts, strict=True)
    }
    found = dict(zip(numbers.names, vector.tolist(), strict=False))
    known = problem.at(parameters.replaced(found | fields))
    held_out = space.with_values(discretisation.held_out, vector)
    fixed = replace(discretisation, problem=known, blocks=state.discretisation.blocks, held_out=held_out)
    solution = concluded(fixed, state.outcome, clock, tol)
    fitted = _statistics(state, numbers, prior.rows(weights), _sizes(known))
    change = fitted.moved_by(_coarser(state)) if forward.data.blocks else np.zeros(len(vector))
    error = max(solution.error_estimate, fitted.relative(change))
    evidence = replace(solution.verdict.evidence, estimate=error, free=fitted.free, misfit=fitted.misfit)
    return Inferred(
        known,
        solution.features,
        solution.coefficients,
        error,
        judge(evidence),
        solution.stats,
        numbers=found,
        intervals=fitted.intervals,
        covariance=fitted.covariance,
        noise=fitted.noise * float(forward.data.scales[0]) if forward.data.is_unscaled else None,
        influence=(state.influence * numbers.slopes(vector)).reshape(*state.coefficients.shape, -1),
        fields={
            name: FoundField(
                known, fields[name], features[name], vector[part], fitted.covariance[part, part], float(weight)
            )
            for name, part, weight in zip(fields, space.parts, weights, strict=True)
        },
    )


def _check_local(forward: Forward) -> None:
    """Raise if a left side asks more of a field than its derivatives at the point: then two ways to evaluate it
    differ."""
    base, space, rng = forward.discretisation, forward.space, np.random.default_rng(0)
    problem, features = base.problem, base.features
    vector = np.concatenate([[value for _, value in problem.parameters.numbers], rng.normal(size=space.size)])
    vector = vector[: space.size] * np.concatenate([np.ones(space.numbers), np.full(space.size - space.numbers, 0.1)])
    named = {
        name: replace(each, correction=Correction(of, vector[part]))
        for (name, each), of, part in zip(problem.parameters.fields, space.fields, space.parts, strict=True)
    }
    known = problem.at(problem.parameters.replaced(named))
    terms = {term.name: term for term in (*known.terms, *(term for _, term in known.measured))}
    c = rng.normal(size=base.zero().shape)
    for block in (*base.blocks, *forward.data.blocks):
        few = block.part(slice(0, CHECKED))
        here = left_values(problem.layout, features, space.with_values([few], vector)[0], c)
        there = left_values(problem.layout, features, replace(few, term=terms[few.term.name]), c)
        if not np.allclose(here, there, rtol=1e-6, atol=1e-9 * np.max(np.abs(there), initial=0.0), equal_nan=True):
            raise ProblemError(
                f"{few.term.name!r} evaluates a field at another point, or takes a derivative of it of an order above "
                f"{FIELD_ORDER}; of {list(named)} values and derivatives up to that order are known at the point. "
                "Write u.k(x) with the x that the function receives."
            )


def _sizes(problem: Problem) -> dict[str, float]:
    """What the uncertainty of the correction of each field is compared with: 1 for a logarithm, else the mean size of
    the field."""
    points, found = jnp.asarray(problem.domain.sample(SIZED)), {}
    for name, each in problem.parameters.fields:
        found[name] = 1.0
        if not each.positive:
            values = jax.vmap(lambda z, each=each: each(*problem.layout.arguments(z)))(points)
            found[name] = float(jnp.sqrt(jnp.mean(values**2))) or 1.0
    return found


def _statistics(state: State, numbers: Numbers, prior: np.ndarray, sizes: Mapping[str, float]) -> Fitted:
    """What is known about the parameters, from the residuals of the data and their derivatives."""
    data = state.forward.data
    size = float(np.linalg.norm(data.values / data.scales if data.blocks else state.system.b))
    thresholds, is_unknown = _losses(state.forward), data.noise is None
    return Fitted.of(
        numbers, state.vector, state.residual, state.jacobian, thresholds, is_unknown, max(size, 1.0), prior, sizes
    )


def _coarser(state: State) -> np.ndarray:
    """How the residual of the data changes if the last features are left out."""
    c, features = state.coefficients, state.discretisation.features
    kept = min(int(np.searchsorted(features.ranks, NEAR)), len(c) - 1)
    coarse = state.outcome.factorization.coarse(state.outcome.projected, kept * c.shape[1])
    return state.of_data @ (coarse - c.reshape(-1)) / state.forward.data.scales


def _losses(forward: Forward) -> Float[np.ndarray, " r"]:
    """For each residual the threshold of its robust loss, negative for Cauchy's; infinite for squares."""
    sign = {"huber": 1.0, "cauchy": -1.0}
    parts = [
        np.full(size, np.inf if kind is None else sign[kind] * THRESHOLDS[kind]) for kind, size in forward.data.losses
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


class _Descent:
    """The search for the parameters with the smallest misfit, in their coordinates."""

    def __init__(self, forward: Forward, numbers: Numbers, start: np.ndarray):
        self.forward, self.numbers = forward, numbers
        self.first = forward.at(start)
        self.thresholds = _losses(forward)
        self.q = numbers.inside(start)
        if not np.isfinite(self.first.residual).all():
            raise SolveError(
                f"The solution with the parameters at their starts, {numbers.shown(start)}, is not finite. Start "
                "elsewhere: Number(start), Field(start)."
            )

    def run(self, prior: Float[np.ndarray, "s p"]) -> None:
        """Find the smallest misfit with the rows of a prior."""
        limits = self._limits(prior)
        robust: Any = (lambda z: robust_loss(z, limits)) if np.isfinite(limits).any() else "linear"
        options: dict[str, Any] = {"xtol": STEP, "ftol": FALL, "gtol": None, "max_nfev": MOST_EVALUATIONS}

        def jacobian(q: np.ndarray) -> np.ndarray:
            return np.vstack([self.jacobian(q), prior])

        from scipy.optimize import least_squares  # slow to import

        self.q = least_squares(
            lambda q: self._with_prior(q, prior),
            self.q,
            jacobian,
            bounds=self.numbers.bounds,
            loss=robust,
            x_scale="jac",
            **options,
        ).x

    def step(self, prior: Float[np.ndarray, "s p"]) -> float:
        """One step of Gauss-Newton, halved until the misfit falls; by how much it falls, relatively."""
        jacobian, target = self.linearised()
        rows, sides = np.vstack([jacobian, prior]), np.concatenate([target, np.zeros(len(prior))])
        # The directions that the data do not see stay where they are.
        step = np.linalg.lstsq(rows, sides - rows @ self.q, rcond=FLATTEST)[0]
        before, start = self._loss(self.q, prior), self.q
        for halving in range(HALVINGS):
            q = np.clip(start + step / 2**halving, *self.numbers.bounds)
            after = self._loss(q, prior)
            if after < before:
                self.q = q
                return 1.0 - after / before
        return 0.0

    def _loss(self, q: np.ndarray, prior: Float[np.ndarray, "s p"]) -> float:
        """What is minimised; not a number where there is no solution."""
        squares = self._with_prior(q, prior) ** 2
        return float(np.sum(robust_loss(squares, self._limits(prior))[0]))

    def _limits(self, prior: Float[np.ndarray, "s p"]) -> np.ndarray:
        """The thresholds of the losses, with squares for the prior."""
        return np.concatenate([self.thresholds, np.full(len(prior), np.inf)])

    def _with_prior(self, q: np.ndarray, prior: Float[np.ndarray, "s p"]) -> np.ndarray:
        return np.concatenate([self._residual(q), prior @ q])

    def _residual(self, q: np.ndarray) -> np.ndarray:
        nowhere = np.full(len(self.first.residual), np.nan)
        try:
            state = self.forward.at(self.numbers.outward(q))
        except PdofmError:  # no solution there: a smaller step is tried
            return nowhere
        return state.residual if is_finished(state.outcome) or state is self.first else nowhere

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """The derivatives of the residual with respect to the coordinates."""
        vector = self.numbers.outward(q)
        return self.forward.at(vector).jacobian * self.numbers.slopes(vector)

    def linearised(self) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives of the residual, and what they should map the coordinates to, each residual as the loss
        weighs it."""
        residual, jacobian = self.forward.at(self.numbers.outward(self.q)).residual, self.jacobian(self.q)
        weights = np.ones(len(residual))
        if np.isfinite(self.thresholds).any():
            weights = np.sqrt(robust_loss(residual**2, self.thresholds)[1])
        return jacobian * weights[:, None], (jacobian @ self.q - residual) * weights


def search(forward: Forward, numbers: Numbers, prior: Prior, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parameters with the smallest misfit, and the weights of the prior of fields."""
    descent = _Descent(forward, numbers, start)
    weights = prior.stiff(descent.linearised()[0]) if prior.roots else np.zeros(0)
    for _ in range(MOST_STEPS if prior.roots else 0):
        fall = descent.step(prior.rows(weights))
        found = np.maximum(prior.likeliest(*descent.linearised(), forward.data.noise is None), weights / LOOSER)
        settled = bool(np.all(np.abs(np.log(found / weights)) < SETTLED))
        if settled and fall < FALL_ENOUGH:
            break
        weights = found
    descent.run(prior.rows(weights))
    return numbers.outward(descent.q), weights
