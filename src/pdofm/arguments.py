"""Arguments that a function does not have: errors that say what it takes instead."""

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from pdofm.errors import ArgumentError

OTHER_WORDS = {
    "accuracy": "tol",
    "bc": "conditions",
    "bcs": "conditions",
    "boundary_conditions": "conditions",
    "centre": "center",
    "equation": "operator",
    "f": "source",
    "n": "size",
    "n_features": "features",
    "region": "on",
    "rhs": "source",
    "rtol": "tol",
    "seed": "key",
    "solution": "exact",
    "tolerance": "tol",
    "where": "on",
}
"""What others call some arguments."""

Target = TypeVar("Target", bound=Callable[..., Any])


def explained(target: Target) -> Target:
    """Let a function, or the constructor of a class, say which arguments it takes where those that are given do not
    fit. Nothing is looked at before a call has failed."""
    if isinstance(target, type):
        target.__init__ = _explained(target.__init__, target.__name__)
        return cast("Target", target)
    return _explained(target, target.__name__)


def _explained(function: Any, name: str) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError:
            message = _mistake(function, name, args, kwargs)
            if message is None:
                raise
        raise ArgumentError(message)

    return call


def _mistake(function: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments of a call; None if they fit, so that something else is."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
        return None
    except TypeError as error:
        reason = str(error)
    takes = [each for each in signature.parameters if each not in ("self", "args", "kwargs")]
    known = f"It takes {', '.join(takes)}."
    for each in kwargs:
        if each not in takes:
            other = OTHER_WORDS.get(each)
            near = [other] if other in takes else difflib.get_close_matches(each, takes, n=1, cutoff=0.6)
            hint = f" Did you mean {near[0]}=?" if near else ""
            return f"{name}() has no argument {each!r}.{hint} {known}"
    return f"{name}() cannot be called like that: {reason}. {known}"
