"""Problems of the same form as an example that was checked: they are not checked again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

example: ContextVar[Any] = ContextVar("example", default=None)
"""The problem that those being made are like; None where they must be checked."""


@contextmanager
def like(problem: Any) -> Iterator[None]:
    """Problems made inside are not checked, so that their functions may contain traced values; they share
    the form of `problem`."""
    token = example.set(problem)
    try:
        yield
    finally:
        example.reset(token)


def form(problem: Any) -> dict[str, Any]:
    """What problems of the same form have in common: orders, and that no coefficient is steep, if none is."""
    problem.orders(None)
    return {"_all_orders": vars(problem)["_all_orders"]} | ({} if problem.transitions else {"transitions": ()})


def unless_like_an_example(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """A check of problems that is left out for those that are like one that has passed it."""

    @wraps(check)
    def checked(problem: Any) -> None:
        known = example.get()
        if known is None:
            check(problem)
        else:
            vars(problem).update(form(known))

    return checked
