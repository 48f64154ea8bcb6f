"""The verdict: what counts as converged, in which order doubts are raised, and what is advised."""

import math
from dataclasses import replace

import numpy as np
import pytest

import pdofm as pf
from pdofm.solving.ending import judge_iteration, judge_training
from pdofm.solving.verdict import (
    ACCEPTABLE,
    HIDDEN,
    NOT_UNIQUE,
    ROUNDING,
    VIOLATED,
    Evidence,
    Status,
    Verdict,
    is_accurate,
    judge,
    remedy_for,
)

GOOD = Evidence(
    tol=1e-6,
    estimate=1e-8,
    violations={"equation": 1e-9, "wall": 1e-9},
    hidden=0.01,
    disagreement=1e-5,
    features=100,
    points=400,
    usual_points=400,
)

FAILURES = {
    Status.OUT_OF_STEPS: {"iteration": Verdict(Status.OUT_OF_STEPS, "20 steps did not suffice")},
    Status.UNDETERMINED: {"undetermined": 10 * NOT_UNIQUE},
    Status.UNRESOLVED: {"hidden": 2 * HIDDEN, "missed": 2e-6},
    Status.INACCURATE: {"estimate": 1e-5},
    Status.VIOLATED: {"violations": {"equation": 0.0, "wall": 2 * VIOLATED}},
    Status.UNCONFIRMED: {"disagreement": 2e-3},
}


def test_an_answer_that_passes_every_check_has_converged():
    verdict = judge(GOOD)
    assert (verdict.status, verdict.converged, verdict.remedy) == (Status.CONVERGED, True, "")
    assert verdict.evidence is GOOD


@pytest.mark.parametrize("status", FAILURES)
def test_each_doubt_alone_is_enough_to_fail(status):
    verdict = judge(replace(GOOD, **FAILURES[status]))
    assert (verdict.status, verdict.converged) == (status, False)


def test_doubts_are_raised_in_the_order_of_their_weight():
    """An iteration that has not ended says nothing about accuracy, an undetermined solution nothing about its error."""
    evidence, remaining = GOOD, list(FAILURES)
    for changes in FAILURES.values():
        evidence = replace(evidence, **changes)
    for status in remaining:
        assert judge(evidence).status is status
        evidence = replace(evidence, **{name: getattr(GOOD, name) for name in FAILURES[status]})


@pytest.mark.parametrize("field", ["estimate", "disagreement"])
def test_a_number_that_is_not_a_number_never_converges(field):
    assert not judge(replace(GOOD, **{field: math.nan})).converged


def test_what_is_missed_between_the_points_is_measured_by_the_tolerance():
    for tol in (1e-2, 1e-8):
        assert judge(replace(GOOD, tol=tol, estimate=0.1 * tol, disagreement=None, missed=0.9 * tol)).converged
        unresolved = judge(replace(GOOD, tol=tol, estimate=0.1 * tol, disagreement=None, missed=1.1 * tol))
        assert unresolved.status is Status.UNRESOLVED
    assert judge(replace(GOOD, hidden=2 * HIDDEN)).status is Status.UNRESOLVED


def test_without_a_tolerance_two_digits_are_required():
    assert judge(Evidence(estimate=0.9 * ACCEPTABLE)).converged
    assert not judge(Evidence(estimate=1.1 * ACCEPTABLE)).converged


def test_a_tolerance_below_rounding_cannot_be_met():
    verdict = judge(replace(GOOD, tol=ROUNDING / 10))
    assert verdict.status is Status.BEYOND_ROUNDING


def test_agreement_to_half_of_the_digits_is_enough():
    assert judge(replace(GOOD, disagreement=0.9e-3)).converged
    assert not judge(replace(GOOD, disagreement=1.1e-3)).converged


def test_arrays_of_residuals_are_judged_by_the_same_rule():
    assert is_accurate(np.array([1e-3, ACCEPTABLE, 0.1, math.nan])).tolist() == [True, True, False, False]


def test_the_remedy_follows_from_the_numbers():
    assert "use more points: 40 inside" in remedy_for(replace(GOOD, points=40))
    assert "add a condition" in remedy_for(replace(GOOD, undetermined=1.0))
    assert remedy_for(replace(GOOD, estimate=1e-4)) == "use more features"
    assert "add a condition" in remedy_for(replace(GOOD, estimate=0.5))
    assert "contradict" in remedy_for(replace(GOOD, estimate=0.5, violations={"equation": 0.01}))


STEPS = {
    Status.CONVERGED: ({"residual": 0.1, "change": 1e-11, "gain": 1.0}, None),
    Status.OUT_OF_STEPS: ({"residual": 0.1, "change": 0.5, "gain": 1.0}, 20),
    Status.DIVERGED: ({"residual": math.inf, "change": 0.5, "gain": 1.0}, None),
}


@pytest.mark.parametrize("status", STEPS)
def test_an_iteration_ends_for_a_reason(status):
    step, most = STEPS[status]
    verdict = judge_iteration(step, 1.0, 1e-10, 1e-6, most)
    assert verdict is not None
    assert verdict.status is status


def ended(residual: float, change: float, gain: float = 1.0) -> Verdict | None:
    """The verdict after a step from a residual of 1."""
    return judge_iteration({"residual": residual, "change": change, "gain": gain}, 1.0, 1e-10, 1e-6, None)


def test_an_iteration_goes_on_while_its_steps_are_large():
    assert ended(0.5, 0.1) is None


def test_an_iteration_that_stalls_below_its_threshold_has_converged():
    stalled = ended(1.0, 1e-7)
    assert stalled is not None
    assert stalled.converged
    assert ended(0.1, 1e-7) is None


def test_an_iteration_whose_steps_cannot_lower_the_residual_has_converged():
    flat = ended(0.999, 1e-4, gain=0.01)
    assert flat is not None
    assert flat.converged
    assert ended(0.5, 1e-4, gain=0.01) is None
    assert ended(0.999, 1e-4, gain=0.5) is None
    assert ended(0.999, 1e-2, gain=0.01) is None


@pytest.mark.parametrize(
    ("status", "how"),
    [
        (Status.CONVERGED, {"interrupted": False, "is_small": True, "is_finite": True}),
        (Status.OUT_OF_STEPS, {"interrupted": False, "is_small": False, "is_finite": True}),
        (Status.INTERRUPTED, {"interrupted": True, "is_small": False, "is_finite": True}),
        (Status.DIVERGED, {"interrupted": True, "is_small": False, "is_finite": False}),
    ],
)
def test_training_ends_for_a_reason(status, how):
    assert judge_training(40, 200, 1e-3, **how).status is status


def test_solve_factor_and_pretrain_return_verdicts_of_this_kind():
    problem = pf.zoo.get("poisson-1d")
    features = pf.NetworkFeatures(problem.domain, 20)
    trained = pf.pretrain(problem, features, steps=20, tol=0.0, progress=False)
    verdicts = [pf.solve(problem, features).verdict, pf.factor(problem, features).verdict, trained.verdict]
    assert [verdict.status for verdict in verdicts] == [Status.CONVERGED, Status.CONVERGED, Status.OUT_OF_STEPS]
    assert all(isinstance(verdict, pf.Verdict) for verdict in verdicts)
