"""The problems of the zoo by name, in groups."""

from collections.abc import Callable
from functools import cache

from pdofm.errors import unknown_name
from pdofm.problem.problem import Problem

Make = Callable[..., Problem]
"""A function that makes a problem. It is called without arguments; those that it has are for variants."""

_GROUPS: dict[str, dict[str, Make]] = {}


def group_of_problems(group: str) -> Callable[[Make], Make]:
    """A decorator that adds a function to a group. The problem has the name of the function, with hyphens."""
    members = _GROUPS.setdefault(group, {})

    def register(make: Make) -> Make:
        members[make.__name__.replace("_", "-")] = make
        return make

    return register


def names(group: str | None = None) -> list[str]:
    """The names of all problems, or of those in one group.

    Args:
        group: "basic" for the problems of the paper and others like them, all with exact solutions; "local" for
            problems whose solutions vary fast in small places or are singular, some without an exact solution;
            "evolution" for problems in time, with an exact solution or a `reference`; "materials" for bodies of several
            materials; "published" for other problems that solvers are compared with.
    """
    if group is None:
        return [name for members in _GROUPS.values() for name in members]
    if group not in _GROUPS:
        raise unknown_name("group of problems", group, _GROUPS)
    return list(_GROUPS[group])


def get(name: str) -> Problem:
    """The problem with this name, including its exact solution if that is known."""
    if not isinstance(name, str):
        raise unknown_name("problem", name, [each for members in _GROUPS.values() for each in members])
    return _made(name)  # always the same object, so that functions compiled for it are used again


@cache
def _made(name: str) -> Problem:
    return _make(name)().replace(name=name)


def describe(name: str) -> str:
    """A description of the problem with this name, in one line."""
    return (_make(name).__doc__ or "").strip().splitlines()[0]


def _make(name: str) -> Make:
    problems = {name: make for members in _GROUPS.values() for name, make in members.items()}
    if name not in problems:
        raise unknown_name("problem", name, problems)
    return problems[name]
