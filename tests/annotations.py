"""Annotations of pdofm are checked at the first calls of each function in each file of tests.

A checked call of a small function takes twenty times as long as the call itself, and functions that are defined inside
others would be prepared for it again and again. What is wrong with an annotation shows at the first calls.
"""

import dataclasses
import functools
import inspect
from collections import defaultdict
from types import CodeType
from typing import Any

import jaxtyping

__name__ = "jaxtyping.first_calls"  # by which pdofm recognises frames that are not the user's

CALLS = 20
"""Calls of each function that are checked."""

_left: dict[CodeType, int] = defaultdict(lambda: CALLS)
_always = jaxtyping.jaxtyped


def install() -> None:
    """Check the annotations of pdofm, which must not have been imported yet."""
    jaxtyping.jaxtyped = jaxtyped
    jaxtyping.install_import_hook("pdofm", "beartype.beartype")


def start_again() -> None:
    """Check the next calls of every function."""
    _left.clear()


def jaxtyped(fn: Any = None, *, typechecker: Any) -> Any:
    """What the import hook decorates functions and classes with."""
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if inspect.isclass(fn):
        if dataclasses.is_dataclass(fn) and inspect.isfunction(fn.__init__) and not _is_checked(fn.__init__):
            fn.__init__ = _at_first(fn.__init__, typechecker)
        return fn
    return _at_first(fn, typechecker) if inspect.isfunction(fn) else _always(fn, typechecker=typechecker)


def _is_checked(fn: Any) -> bool:
    return fn.__code__ is _example.__code__


def _at_first(fn: Any, typechecker: Any) -> Any:
    code = fn.__code__
    if "<locals>" in fn.__qualname__ and _left[code] <= 0:
        return fn
    checked = None

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        if _left[code] <= 0:
            return fn(*args, **kwargs)
        _left[code] -= 1
        checked = checked or _always(fn, typechecker=typechecker)
        return checked(*args, **kwargs)

    return call


_example = _at_first(start_again, None)
