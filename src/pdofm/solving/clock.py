"""Seconds per phase of a computation."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds per phase."""

    def __init__(self):
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = time.perf_counter() - start
