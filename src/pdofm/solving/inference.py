"""Unknown numbers and fields from data: Gauss-Newton over the solutions of the equation.

The equation is taken to be exact, and data to be noisy. So the function u is determined by the parameters p: it is the
least-squares solution of the equation and the conditions. What is minimised is the misfit of the data,

    Σ ρ(r_i²),    r_i = (of(u(p), p)(x_i) - value_i) / noise_i,

over the parameters alone; `pdofm.solving.forward` has the solutions and their derivatives. The coefficients of fields
are parameters, too. To the misfit the size of their second derivatives is added, with a weight that is chosen anew for
the linearised problem until it does not change (`pdofm.solving.prior`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pdofm.calculus.parameters import FIELD_ORDER
from pdofm.discrete.assemble import left_values
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.parameters import ParameterSpace
from pdofm.errors import FeaturesError, ProblemError, SolveError
from pdofm.features import BoxPolynomials
from pdofm.problem.problem import Problem
from pdofm.problem.unknown import Field, Number
from pdofm.solving.clock import Clock
from pdofm.solving.conclude import concluded
from pdofm.solving.descent import BAD, FINE, POINTLESS, Descent, losses, search
from pdofm.solving.forward import Forward, State
from pdofm.solving.inferred import Correction, FoundField, Inferred
from pdofm.solving.methods import Method, Picard
from pdofm.solving.misfit import EXACT, NUMERICAL, coarser, held_back, is_pending, likeness, numerical, unexplained
from pdofm.solving.prior import Prior, field_space
from pdofm.solving.statistics import Fitted, Numbers
from pdofm.solving.verdict import UNLIKELY, judge

DOUBTFUL = 0.05
"""If more than this is left of the data, relative to how much they vary, and noise is no reason, other numbers are
tried."""

SUSPICIOUS = 0.01
"""Other numbers are tried, too, if what is left is as smooth as white noise is with this probability at most."""

BLURRY = 0.05
"""A solution is not resolved if the last features change the data by more, relative to how much they vary."""

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
        {n: each for n, each in unknowns.items() if isinstance(each, Number)}, {n: f.size for n, f in features.items()}
    )
    start = np.concatenate([[value for _, value in parameters.numbers], np.zeros(space.size - space.numbers)])
    forward = Forward(discretisation, method, space)
    if features:
        _check_local(forward)
    with clock("solve"):
        prior = Prior.of(problem.domain, space.numbers, space.fields)
        found = search(forward, numbers, prior, start, _doubts(forward, numbers, _sizes(problem)))
        state, weights, vector = found.state, found.weights, found.state.vector
    corrections = {
        name: Correction(features[name], vector[part]) for name, part in zip(features, space.parts, strict=True)
    }
    fields = {name: replace(each, correction=corrections[name]) for name, each in parameters.fields}
    values = dict(zip(numbers.names, vector.tolist(), strict=False))
    known = problem.at(parameters.replaced(values | fields))
    held_out = space.with_values(discretisation.held_out, vector)
    fixed = replace(discretisation, problem=known, blocks=state.discretisation.blocks, held_out=held_out)
    solution = concluded(fixed, state.outcome, clock, tol)
    fitted = _statistics(state, numbers, prior.rows(weights), _sizes(known))
    change = fitted.moved_by(coarser(state)) if forward.data.blocks else np.zeros(len(vector))
    error = max(solution.error_estimate, fitted.relative(change))
    evidence = replace(
        solution.verdict.evidence,
        estimate=error,
        free=fitted.free,
        misfit=fitted.misfit,
        **_rest(found),
    )
    return Inferred(
        known,
        solution.features,
        solution.coefficients,
        error,
        judge(evidence),
        solution.stats,
        numbers=values,
        intervals=fitted.intervals,
        covariance=fitted.covariance,
        noise=fitted.noise * float(forward.data.scales[0]) if forward.data.is_unscaled else None,
        influence=(state.influence * numbers.slopes(vector)).reshape(*state.coefficients.shape, -1),
        fields=_found_fields(known, corrections, fitted, space, weights),
    )


def _rest(found: Descent) -> dict[str, Any]:
    """What is left where the search ended, of the data and of the search: evidence for the verdict."""
    (step, within, deviations), is_unscaled = found.asked(), found.forward.data.is_unscaled
    return {
        "unexplained": unexplained(found.state) if is_unscaled else None,
        "likeness": likeness(found.state) if is_unscaled else 1.0,
        "held_back": held_back(found.numbers, found.q, step, deviations),
        "is_pending": is_pending(found.q, within, deviations),
    }


def _doubts(forward: Forward, numbers: Numbers, sizes: Mapping[str, float]) -> Callable[[Descent], int]:
    """Whether the data speak against a place where the search ended, or say nothing there."""

    def doubt(descent: Descent) -> int:
        state, left = descent.state, unexplained(descent.state) or 0.0
        change = numerical(state)
        if left <= max(EXACT, min(NUMERICAL * change, BLURRY)):
            return FINE
        fitted = _statistics(state, numbers, descent.prior.rows(descent.weights), sizes)
        if forward.data.is_unscaled:
            is_bad = left > DOUBTFUL or likeness(state) < SUSPICIOUS
        else:
            is_unlikely = fitted.misfit is not None and fitted.misfit <= UNLIKELY
            is_bad = is_unlikely or (left > DOUBTFUL and bool(fitted.free))
        if not is_bad:
            return FINE
        return POINTLESS if fitted.is_vague or change > BLURRY else BAD

    return doubt


def _found_fields(
    known: Problem, corrections: Mapping[str, Correction], fitted: Fitted, space: ParameterSpace, weights: np.ndarray
) -> dict[str, FoundField]:
    """The fields of a problem at which the search ended, with their covariances and the weights of their prior."""
    return {
        name: FoundField(known, values, of.features, of.coefficients, fitted.covariance[part, part], float(weight))
        for (name, values), of, part, weight in zip(
            known.parameters.fields, corrections.values(), space.parts, weights, strict=True
        )
    }


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
    thresholds, is_unknown = losses(state.forward), data.noise is None
    return Fitted.of(
        numbers, state.vector, state.residual, state.jacobian, thresholds, is_unknown, max(size, 1.0), prior, sizes
    )
