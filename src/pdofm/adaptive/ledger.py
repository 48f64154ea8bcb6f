"""The ledger of a search: what was tried, and what is left of the budget."""

import math
import time

import numpy as np

from pdofm.errors import SolveError
from pdofm.solving.stats import Attempt

MOST_FEATURES = 2000
"""Default budget of features per component of one dense factorisation, which takes seconds."""

MOST_IN_BOXES = 300_000
"""Default budget of unknowns in boxes, where time grows little faster than their number."""


class Ledger:
    """Attempts in order, and a budget of features per attempt and of seconds for all of them.

    Attributes:
        attempts: what was tried.
        max_features: features per component of a space with one dense matrix, at most.
        max_in_boxes: features per component in boxes, at most.
        max_seconds: the time after which nothing new is begun.
    """

    def __init__(self, max_features: int | None, max_seconds: float, components: int = 1):
        is_count = isinstance(max_features, int | np.integer) and max_features >= 1
        is_time = isinstance(max_seconds, int | float | np.number) and max_seconds >= 0
        if not (is_time and (max_features is None or is_count)):
            raise SolveError(
                f"A search needs a budget of at least one feature and no negative time; got max_features="
                f"{max_features!r}, max_seconds={max_seconds!r}."
            )
        self.max_features = MOST_FEATURES if max_features is None else max_features
        self.max_in_boxes = MOST_IN_BOXES // components if max_features is None else max_features
        self.max_seconds = max_seconds
        self.attempts: list[Attempt] = []
        self._start = time.perf_counter()

    @property
    def time_left(self) -> float:
        """Seconds left of the budget; negative if it is overdrawn."""
        return self.max_seconds - (time.perf_counter() - self._start)

    @property
    def is_out_of_time(self) -> bool:
        """Whether nothing new may begin; the first attempt always may."""
        return bool(self.attempts) and self.time_left < 0

    @property
    def solved(self) -> int:
        """The number of attempts that have a solution."""
        return sum(attempt.rows > 0 for attempt in self.attempts)

    @property
    def budget(self) -> str:
        """The budget as arguments of `solve`."""
        boxes = f" ({self.max_in_boxes} in boxes)" if self.max_in_boxes > self.max_features else ""
        return f"max_features={self.max_features}{boxes} and max_seconds={self.max_seconds:g}"

    def largest(self, space: str) -> int:
        """The largest number of features that was tried of a space; 0 if it was not tried."""
        return max((attempt.features for attempt in self.attempts if attempt.space == space), default=0)

    def estimates(self, space: str) -> list[float]:
        """The estimated errors of all attempts in a space, in order."""
        return [attempt.estimate for attempt in self.attempts if attempt.space == space]

    def note(
        self,
        space: str,
        why: str,
        features: int,
        start: float,
        rows: int = 0,
        estimate: float = math.inf,
        change: float = math.nan,
    ) -> None:
        """Enter what was tried since `start`, a time of `time.perf_counter`."""
        self.attempts.append(Attempt(space, why, features, rows, time.perf_counter() - start, estimate, change))
