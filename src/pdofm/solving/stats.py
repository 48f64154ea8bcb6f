"""Numbers about a solution: its errors, the statistics of a solve, and the attempts of a search."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pdofm.deprecation import renamed_attribute
from pdofm.shown import Shown


@dataclass(frozen=True)
class Residual:
    """Root mean square of ``lhs(u) - rhs`` of one term, in its own units, at the fitted points and at points never used
    in the fit."""

    fitted: float
    held_out: float


@dataclass(frozen=True)
class Errors:
    """Errors against the exact solution over uniformly spaced points; in a system the largest over the components. With
    several regions `regions` has the errors in each of them, relative to the solution there."""

    relative_l2: float
    max: float
    components: dict[str, "Errors"] = field(default_factory=dict)
    regions: dict[str, "Errors"] = field(default_factory=dict)


@dataclass(frozen=True)
class Stats:
    """How the solution was found.

    `held_out_residual` is the root mean square of all scaled residuals at points that were not fitted.
    `features` counts per component, `rank` and `condition` are those of the (scaled) least-squares matrix, `residuals`
    has an entry per term, `seconds` one per phase, `steps` one per iteration of a nonlinear method. `undetermined` is
    the part of a random function that has no effect on the equation and the conditions, or none above rounding: tiny,
    if the solution is unique. `stability` is γ, the size of the largest solution that data of size 1 can cause, where
    that was measured (`pdofm.solving.stability`); `stability_growth` is by how much it grew with the features doubled
    last, and `error_bound` is γ times the residual at held-out points, relative to the solution.
    """

    rows: int
    features: int
    components: int
    rank: int
    condition: float
    residuals: dict[str, Residual]
    held_out_residual: float
    seconds: dict[str, float]
    steps: list[dict[str, float]]
    undetermined: float = 0.0
    stability: float | None = None
    stability_growth: float = 1.0
    error_bound: float | None = None

    held_out = renamed_attribute("held_out", "held_out_residual")


@dataclass(frozen=True)
class Attempt:
    """One of the spaces that were tried for a tolerance.

    `change` is the distance to the attempt before, relative to the solution; NaN for the first one. An attempt that
    failed has an infinite estimate, and `why` says what happened.
    """

    space: str
    why: str
    features: int
    rows: int
    seconds: float
    estimate: float
    change: float


class Record(Shown, str):
    """The attempts of a search as a table: text, which a notebook shows as an HTML table."""

    attempts: tuple[Attempt, ...]

    @staticmethod
    def of(attempts: Sequence[Attempt]) -> "Record":
        """The record of these attempts."""
        head = f"{'space':38s} {'features':>8s} {'rows':>6s} {'seconds':>8s} {'estimate':>9s} {'change':>8s}  why"
        lines = [
            f"{a.space:38s} {a.features:8d} {a.rows:6d} {a.seconds:8.2f} {a.estimate:9.1e} {a.change:8.1e}  {a.why}"
            for a in attempts
        ]
        record = Record("\n".join([head, *lines]))
        record.attempts = tuple(attempts)
        return record
