"""How wrong is the answer, when no exact solution is known?

Compare with coarser solutions, in spaces of leading features. They are free: the leading block of R belongs to the
leading columns of A. Three things are learned from them.

- Leaving out the last 5 % of the features moves the solution by about its own error, whether resolution or rounding
  limits it.
- The residual at points that were not fitted tells how badly the equation is violated, but not what that means for the
  solution: the ratio of error to residual depends on the problem. A coarse solution calibrates it. Its error is known,
  for it is nearly the distance to the fine solution, and so is its residual:
  error(fine) ≈ residual(fine) · ‖u_fine - u_coarse‖ / residual(coarse).
- Where the error falls slowly, like m^-p (a singularity, an unresolved layer), all of these are too small. The
  distances of the solutions with half and with 70 % of the features give p, and e(m) = distance(m/2) / (2^p - 1).

The estimate is the largest of these numbers, and of what an iteration that stopped still lacks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Points
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import evaluate_all
from pdofm.discrete.look import Look
from pdofm.features import Features
from pdofm.numerics.distance import VANISHING, distance, relative_sizes
from pdofm.numerics.lstsq import EPSILON, Factorization
from pdofm.solving.methods import Outcome
from pdofm.solving.verdict import is_unique

NEAR, CALIBRATING, SLOW = 0.95, (0.8, 0.9), (0.5, 0.7)
"""Fractions of the features for the distance, for the calibration of the residual, and for the rate."""

SLOWEST_RATE = 0.25

CONFIRMED = 0.1
"""A component that differs less from that of a coarser solution has a correct digit."""

MISSED = 0.05
"""With a larger residual than this fraction of the data nothing is resolved: the residual itself is the estimate."""

FREE_POINTS = 256
"""Points at which a random function is compared with its part that the system does not see."""

NEGLIGIBLE = 1e-9
"""Condition number times rounding below which a full-rank system is known to leave nothing undetermined."""

PERTURBATION = 1e-13
"""Size of a random change of the data, relative to the data of a random function. If it moves the solution by more than
`NOT_UNIQUE`, the problem does not determine its solution. It moves the solutions of the zoo by less than 3e-8, in
networks, random features and polynomials, and those of problems that lack a condition, in the default features, by 4e-2
or more."""

PERTURBATIONS = 4
"""Random changes that are tried: the chance that all of them miss what a single function leaves free is small."""


@dataclass(frozen=True)
class Estimate:
    """The estimated relative L2 error of an outcome, the fraction of a random function that its system does not see,
    and what was seen at held-out points."""

    error: float
    undetermined: float
    look: Look


def estimate(discretisation: Discretisation, outcome: Outcome) -> Estimate:
    """How wrong an outcome is, from what is seen at the held-out points."""
    features, c = discretisation.features, outcome.coefficients
    functions = {fraction: coarse_solution(features, outcome, fraction) for fraction in (NEAR, *CALIBRATING, *SLOW)}
    free = _free_functions(features, outcome.factorization)
    # From the solution to the calibrating ones, and to zero: what is left there is the (linearised) residual of zero.
    steps = np.stack([*((functions[f] - c).reshape(-1) for f in CALIBRATING), -c.reshape(-1)], axis=1)
    # All functions in a single call: evaluating the features costs more than combining them.
    look = discretisation.look(c, outcome.held_out, steps, np.stack([c, *functions.values(), *free]))
    fine, coarse = look.values[0], look.values[1 : 1 + len(functions)]
    data = float(np.linalg.norm(outcome.projected))
    undetermined = _free_fraction(look.values[1 + len(functions) :, :FREE_POINTS], (fine[:FREE_POINTS], data))
    error = _error(outcome, look, fine, dict(zip(functions, coarse, strict=True)))
    return Estimate(max(error, undetermined if is_unique(undetermined) else 1.0), undetermined, look)


def undetermined(features: Features, factored: Factorization, points: Points) -> float:
    """The part of a random function of the space that the equation and the conditions do not see, as a fraction of that
    function's size at some points. It is rounding if the solution is unique: what they do not see is zero everywhere.

    Few functions of a finite space satisfy a homogeneous problem exactly, but many may do so to nearly all digits. They
    show in the solutions for data of the size of rounding, `PERTURBATION`: if these are large, their size is returned.
    """
    free = _free_functions(features, factored)
    return _free_fraction(evaluate_all(features, np.stack(free), points[:FREE_POINTS])) if free else 0.0


def coarse_solution(features: Features, outcome: Outcome, fraction: float) -> Coefficients:
    """The coefficients of the least-squares solution in a fraction of the features, the leading ones."""
    c = outcome.coefficients
    kept = min(int(np.searchsorted(features.ranks, fraction)), len(c) - 1)
    return outcome.factorization.coarse(outcome.projected, kept * c.shape[1]).reshape(c.shape)


def _error(
    outcome: Outcome,
    look: Look,
    fine_values: Float[np.ndarray, "n C"],
    coarse: Mapping[float, Float[np.ndarray, "n C"]],
) -> float:
    """The estimated error, from the values of coarse solutions."""
    # A small component that coarser spaces confirm is no rounding error of the others: it has errors of its own.
    is_known = relative_sizes(coarse[NEAR] - fine_values, fine_values, vanishing=0.0) < CONFIRMED
    vanishing = np.where(is_known, 0.0, VANISHING)
    distances = {fraction: distance(values, fine_values, vanishing) for fraction, values in coarse.items()}
    fine, (*residuals, data) = look.scaled.norm, np.sqrt(look.steps).tolist()
    calibrated = [
        distances[fraction] * fine / residual if residual > 0 else 0.0
        for fraction, residual in zip(CALIBRATING, residuals, strict=True)
    ]
    if not fine_values.any() and fine > 0:
        return 1.0  # zero, although the data are not
    numbers = [outcome.iteration_error, distances[NEAR], *calibrated, _slow_error(distances)]
    if fine > MISSED * data:  # coarser solutions agree with this one only in that they miss the data, too
        numbers.append(min(fine / data, 1.0) if data > 0 else 1.0)
    return float(np.max(numbers))


def _free_functions(features: Features, factored: Factorization) -> list[Coefficients]:
    """A random function with rows of norm 1, its part that the system does not see, zero, and solutions for random data
    of the size of `PERTURBATION`; none of them if the system is so well conditioned that it sees everything."""
    size = len(factored.scale)
    if factored.rank == size and factored.condition * EPSILON < NEGLIGIBLE:
        return []
    rng = np.random.default_rng(0)
    some = rng.standard_normal(size) / factored.scale
    some /= np.linalg.norm(factored.multiply(some))
    unseen = some - factored.finish(factored.multiply(some))
    noise = PERTURBATION * rng.standard_normal((PERTURBATIONS, size))
    moved = [factored.finish(each) for each in noise]
    return [each.reshape(features.size, -1) for each in (some, unseen, np.zeros(size), *moved)]


def _free_fraction(
    values: Float[np.ndarray, "functions n C"], own: tuple[Float[np.ndarray, "n C"], float] | None = None
) -> float:
    """The size of the unseen part relative to the whole, from the values of `_free_functions`; that of the solutions
    for tiny data, if it shows that the solution is not unique.

    `own` is the solution of the problem with the norm of its data. Where solutions grow exponentially, it is itself
    large for its data, and the solutions for tiny data must be compared with it.
    """
    if len(values) == 0:
        return 0.0
    whole, part, origin, *moved = values

    def fraction(function: Float[np.ndarray, "n C"], of: Float[np.ndarray, "n C"]) -> float:
        return float(np.max(relative_sizes(function - origin, of - origin, vanishing=0.0)))

    free, answers = fraction(part, whole), max(fraction(each, whole) for each in moved)
    if own is not None and not is_unique(answers):
        answers = min(answers, max(fraction(each, own[0]) for each in moved) * own[1])
    # Smaller answers say how well the problem is conditioned, which the estimated error takes into account.
    return free if is_unique(answers) else max(free, min(answers, 1.0))


def _slow_error(distances: dict[float, float]) -> float:
    """The error of the fine solution if errors fall like m^-p, with p from the distances of two coarse ones; else 0."""
    half, more = (distances[fraction] for fraction in SLOW)
    if half == 0 or distances[NEAR] > 0.15 * half:
        return 0.0  # the coarse solutions are as good as the fine one: rounding limits all of them, no rate to see

    def ratio(p: float) -> float:
        return (SLOW[1] ** -p - 1) / (SLOW[0] ** -p - 1)

    low, high = SLOWEST_RATE, 50.0
    for _ in range(50):  # the ratio falls with p
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(middle) > more / half else (low, middle)
    error = half / (SLOW[0] ** -low - 1)
    # Only if the nearest solution is as far as that rate says; much nearer, and the convergence is speeding up.
    return error if distances[NEAR] > 0.5 * error * (NEAR**-low - 1) else 0.0
