"""Old names of arguments and attributes, which keep working for one version."""

import functools
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

MACHINERY = ("equinox.", "jaxtyping.", "beartype.", "pdofm.arguments.")
"""Packages and modules whose frames may lie between a constructor and the line that calls it."""

Target = TypeVar("Target", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[Target], Target]:
    """Accept keyword arguments under their old names: ``@renamed(old="new")``, on a function, a method, or a class for
    the arguments of its constructor. A `DeprecationWarning` names the new one."""

    def decorate(target: Target) -> Target:
        if isinstance(target, type):
            constructor = "__init__"
            setattr(target, constructor, _accepting(names, getattr(target, constructor), target.__name__))
            return target  # type: ignore[return-value]
        return _accepting(names, target, target.__qualname__.removesuffix(".__init__"))

    return decorate


def _accepting(names: dict[str, str], function: Any, owner: str) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for old in names.keys() & kwargs.keys():
            new = names[old]
            if new in kwargs:
                raise TypeError(f"{owner}() got both {old}= and {new}=, which is its new name. Give {new}= only.")
            message = f"{old}= of {owner}() is now called {new}=; the old name will go in the next version."
            warnings.warn(message, DeprecationWarning, stacklevel=_level_of_user(sys._getframe(1)))
            kwargs[new] = kwargs.pop(old)
        return function(*args, **kwargs)

    return wrapper


def _level_of_user(frame: FrameType) -> int:
    """The `stacklevel` of the user's line, for a function that was called from `frame`.

    Modules of equinox construct their instances through a metaclass, whose frames are not the user's; neither are
    those of the checks of types.
    """
    level = 2
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(MACHINERY):
        level, frame = level + 1, frame.f_back
    return level


def renamed_attribute(old: str, new: str) -> property:
    """The attribute `old` of a class, which is called `new` now: ``old = renamed_attribute("old", "new")``."""

    def read(self: Any) -> Any:
        message = f".{old} of {type(self).__name__} is now called .{new}; the old name will go in the next version."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(read, doc=f"The old name of `{new}`.")
