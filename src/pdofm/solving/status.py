"""How computations end."""

from enum import StrEnum


class Status(StrEnum):
    """How a computation ended."""

    CONVERGED = "converged"
    OUT_OF_STEPS = "all steps were used"
    STUCK = "no step makes progress"
    DIVERGED = "values are no longer finite"
    INTERRUPTED = "interrupted by the user"
    UNDETERMINED = "the solution is not unique"
    BEYOND_ROUNDING = "the tolerance is below rounding"
    INACCURATE = "the estimated error is above the tolerance"
    VIOLATED = "a term is violated at held-out points"
    UNRESOLVED = "the equation is violated between the collocation points"
    UNCONFIRMED = "no second solution agrees"
    FREE_NUMBERS = "the data do not determine the unknown numbers"
    MISFIT = "the data contradict the model"
    CONTRADICTORY = "the data contradict each other"
