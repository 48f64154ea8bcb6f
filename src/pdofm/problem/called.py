"""The functions and numbers that users give: how they are called, and what is none."""

import inspect
from collections.abc import Callable
from typing import Any

from jax import Array

from pdofm.errors import ProblemError

DATA_FIELDS = ("value", "velocity", "alpha", "beta", "jump", "flux", "flux_jump", "residual", "of")
"""The fields of conditions that hold numbers or functions."""


def takes_normal(function: Callable[..., Any]) -> bool:
    """Whether a user function has a parameter called ``normal``, which receives the outward normal."""
    try:
        return "normal" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def call(function: Callable[..., Any], args: tuple[Any, ...], normal: Array) -> Any:
    """Call a user function at a point, with the normal if it has a parameter for it."""
    return function(*args, normal=normal) if takes_normal(function) else function(*args)


def refuse_texts(condition: Any, name: str) -> None:
    """Raise if a condition has a text where it should have numbers or a function."""
    for field in DATA_FIELDS:
        if isinstance(given := getattr(condition, field, None), str):
            raise ProblemError(
                f"Condition {name!r}: {field} is the text {given!r}; expected a number, or a function such as "
                "lambda x: x[0]. Write it without quotes."
            )
