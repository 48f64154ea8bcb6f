"""How iterations and training runs end: whether they reached their goal, and why they stopped."""

from collections.abc import Mapping

import numpy as np

from pdofm.solving.verdict import Status, Verdict

START_NEARER = "start nearer to the solution (initial=), or in fewer features"
"""The remedy for an iteration that leads nowhere."""

FLAT, NEAR = 0.05, 1e-3
"""A step that can remove less than `FLAT` of the residual, which then falls by less than 0.2 %, and moves the values by
less than `NEAR` leads nowhere: the iteration is at the limit of what its features can represent."""


def judge_iteration(
    last: Mapping[str, float], residual_before: float, tol: float, stall: float, most: int | None
) -> Verdict | None:
    """The verdict after a step of an iteration, None to go on.

    Args:
        last: of the last step the residual after it, how far it moved the values relative to their size, and its gain,
            the fraction of the residual that it could have removed if the problem were linear.
        residual_before: the residual before the last step.
        tol: a step that moves the values by less ends the iteration.
        stall: so does one that moves them by less than this while the residual no longer falls.
        most: how many steps were allowed, if these were all; None if there may be more.
    """
    change, residual = last["change"], last["residual"]
    if not np.isfinite(residual) or not np.isfinite(change):
        return Verdict(Status.DIVERGED, "the iteration diverged: the residual is no longer finite", START_NEARER)
    if change <= tol:
        return Verdict(Status.CONVERGED, f"the last step is below tol = {tol:g}")
    if change <= stall and residual > 0.9 * residual_before:
        message = f"the residual no longer falls and the last step, {change:.0e}, is below stall = {stall:g}"
        return Verdict(Status.CONVERGED, message)
    if residual > 0.9 * residual_before and is_flat(change, last["gain"]):
        return Verdict(Status.CONVERGED, f"the residual no longer falls and the last step is {change:.0e}")
    if most is not None:
        message = f"{most} steps did not suffice; the last one still moved the solution by {change:.0e}"
        return Verdict(Status.OUT_OF_STEPS, message, "allow more (max_steps=), or start nearer (initial=)")
    return None


def is_flat(change: float, gain: float) -> bool:
    """Whether a step that moves the values by `change` and could remove the fraction `gain` of the residual leads
    nowhere."""
    return gain <= FLAT and change <= NEAR


def judge_training(done: int, steps: int, tol: float, *, interrupted: bool, is_small: bool, is_finite: bool) -> Verdict:
    """The verdict on a training run of `done` out of `steps` steps: whether the physics loss is as small as required,
    and whether the loss is finite."""
    if not is_finite:
        message = f"the loss is no longer finite after {done} steps; the features from before that step are returned"
        return Verdict(Status.DIVERGED, message, "use a smaller step size, or precision='float64'")
    if is_small:
        return Verdict(Status.CONVERGED, f"the physics loss fell below {tol:g} of its first value after {done} steps")
    if interrupted:
        return Verdict(Status.INTERRUPTED, f"interrupted after {done} of {steps} steps")
    return Verdict(Status.OUT_OF_STEPS, f"all {steps} steps done")
