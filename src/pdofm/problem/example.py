"""Problems of the same form as an example that was checked: they are not checked again."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

example: ContextVar[Any] = ContextVar("example", default=None)
"""The problem that those being made are like; None where they must be checked."""


@contextmanager
def like(problem: Any) -> Iterator[None]:
    """Problems made inside are not checked, so that their functions may contain traced values; they share
    the `form` of `problem`."""
    token = example.set(problem)
    try:
        yield
    finally:
        example.reset(token)
