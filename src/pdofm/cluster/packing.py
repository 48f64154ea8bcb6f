"""What is sent to other processes: problems with their functions, and errors that name what cannot be sent."""

import hashlib
import io
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import FunctionType, MethodType
from typing import Any

from pdofm.domain import Domain
from pdofm.errors import ClusterError
from pdofm.numerics.sized import Sized
from pdofm.problem.problem import Problem

KEPT = 8
"""Values that a process keeps unpacked, the last ones used: tasks of one problem share its compiled functions."""


_unpacked: dict[bytes, Any] = {}


@dataclass(frozen=True)
class Packed(Sized):
    """A value as bytes."""

    content: bytes

    @property
    def value(self) -> Any:
        """The value. The same content gives the same object, so that what was compiled for it is found again."""
        digest = hashlib.sha256(self.content).digest()
        found = _unpacked.pop(digest, None)
        if found is None:
            found = pickle.loads(self.content)
            while len(_unpacked) >= KEPT:
                del _unpacked[next(iter(_unpacked))]
        _unpacked[digest] = found  # the last one, as the one that was used last
        return found


def pack(value: Any, what: str) -> Packed:
    """A value as bytes; a ClusterError names the object that cannot be sent."""
    try:
        return Packed(_pickled(value))
    except Exception as error:
        path, found = _culprit(value, what)
        raise ClusterError(
            f"{what} cannot be sent to the workers: {path} is {_shown(found)}, which cannot be pickled "
            f"({_reason(error)}). Open files, connections and locks belong to one process: load the data into an array "
            "first, or open the file inside the function."
        ) from error


def _pickled(value: Any) -> bytes:
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            # Domains that are given by functions have no description for files; their functions can be sent.
            if isinstance(obj, Problem) or (isinstance(obj, Domain) and obj.arguments is None):
                return object.__new__, (type(obj),), _stated(obj)
            return super().reducer_override(obj)

    buffer = io.BytesIO()
    Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def _stated(value: Any) -> dict[str, Any]:
    """The attributes of an object, without what was computed from the others and can be again."""
    kind = type(value)
    return {
        name: each for name, each in vars(value).items() if not isinstance(getattr(kind, name, None), cached_property)
    }


def _culprit(value: Any, path: str, seen: frozenset[int] = frozenset()) -> tuple[str, Any]:
    """The innermost object that cannot be pickled, and the way to it."""
    seen |= {id(value)}
    for name, part in _parts(value):
        if id(part) in seen:
            continue
        try:
            _pickled(part)
        except Exception:  # noqa: BLE001 (an object may refuse to be pickled in any way)
            return _culprit(part, f"{path}{name}", seen)
    return path, value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object consists of, each with the way to it."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", each) for key, each in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{i}]", each) for i, each in enumerate(value))
    elif isinstance(value, partial):
        yield ".func", value.func
        yield from ((f"(argument {i})", each) for i, each in enumerate(value.args))
        yield from ((f"(argument {name})", each) for name, each in value.keywords.items())
    elif isinstance(value, MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, FunctionType):
        yield from _surroundings(value)
    elif hasattr(value, "__dict__"):
        yield from ((f".{name}", each) for name, each in _stated(value).items())


def _surroundings(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables that a function uses but does not define."""
    closed = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in closed:
        try:
            yield f", variable {name!r}", cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield f", global variable {name!r}", function.__globals__[name]
    yield from ((f", default {i}", each) for i, each in enumerate(function.__defaults__ or ()))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}…"


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
