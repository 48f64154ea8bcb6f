"""From the outcome of a method to a solution: its error estimate, its statistics and the verdict on it."""

from dataclasses import replace

from pdofm.discrete.defaults import default_counts
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.look import Look
from pdofm.solving.clock import Clock
from pdofm.solving.compatibility import contradiction
from pdofm.solving.details import missed
from pdofm.solving.estimate import estimate
from pdofm.solving.methods import Outcome
from pdofm.solving.solution import Solution
from pdofm.solving.stability import Stability, measure, place_of
from pdofm.solving.stats import Residual, Stats
from pdofm.solving.verdict import Evidence, judge


def concluded(discretisation: Discretisation, outcome: Outcome, clock: Clock, tol: float | None) -> Solution:
    """The solution of a discretisation with held-out points, from what a method found."""
    problem, features = discretisation.problem, discretisation.features
    with clock("estimate"):
        found = estimate(discretisation, outcome)
        stable = _stability(discretisation, outcome)
        between = missed(discretisation, outcome)
        violations = _violations(found.look)
    error = found.error if between is None else max(found.error, between)
    stats = Stats(
        rows=outcome.residuals.rows,
        features=features.size,
        components=problem.layout.components,
        rank=outcome.factorization.rank,
        condition=outcome.factorization.condition,
        residuals=_residuals(outcome, found.look),
        held_out_residual=found.look.scaled.mean,
        seconds=clock.seconds,
        steps=outcome.steps,
        undetermined=found.undetermined,
        stability=None if stable is None else stable.constant,
        stability_growth=1.0 if stable is None else stable.growth,
        error_bound=None if stable is None else stable.bound,
    )
    evidence = replace(
        _with_stability(gathered(discretisation, found.undetermined), stable, discretisation),
        tol=tol,
        iteration=outcome.verdict,
        estimate=error,
        violations=violations,
        missed=between,
    )
    if max(violations.values(), default=0.0) > evidence.required:
        evidence = replace(evidence, contradiction=contradiction(problem))
    free = None if stable is None or evidence.is_determined else stable.function
    return Solution(problem, features, outcome.coefficients, error, judge(evidence), stats, free=free)


def _stability(discretisation: Discretisation, outcome: Outcome) -> Stability | None:
    """What a change of the data may do; None for systems whose rows are not kept."""
    if outcome.held_out is None or outcome.held_out.folded is not None:
        return None
    points = discretisation.held_out[0].points
    return measure(discretisation, outcome.kept, outcome.held_out, points, outcome.coefficients)


def _with_stability(evidence: Evidence, stable: Stability | None, discretisation: Discretisation) -> Evidence:
    """The evidence with what was measured about the stability of the problem."""
    if stable is None:
        return evidence
    domain, features, function = discretisation.problem.domain, discretisation.features, stable.function
    return replace(
        evidence,
        stability=stable.constant,
        growth=stable.growth,
        grown=stable.grown,
        amplification=stable.amplification,
        freest="" if function is None else place_of(domain, features, function),
    )


def _residuals(outcome: Outcome, look: Look) -> dict[str, Residual]:
    """The residual of each term, at fitted and held-out points."""
    fitted, others = outcome.residuals.rms, look.raw.rms
    return {name: Residual(fitted[name], others[name]) for name in fitted}


def _violations(look: Look) -> dict[str, float]:
    """The scaled residual of each term at held-out points, as a fraction of all scaled data."""
    data = look.data.mean
    return {name: rms / data if data > 0 else 0.0 for name, rms in look.scaled.rms.items()}


def gathered(discretisation: Discretisation, free: float) -> Evidence:
    """The evidence that is known before anything is solved: numbers of points and features, and whether the solution
    is unique, from the fraction `free` of a random function that the problem does not see."""
    usual, _ = default_counts(discretisation.problem, discretisation.features)
    inside = discretisation.interior_points
    return Evidence(undetermined=free, features=discretisation.features.size, points=inside, usual_points=usual)
