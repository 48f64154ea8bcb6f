"""Domains as trees of numbers, for files: reading one calls constructors of this package and nothing else."""

from typing import Any

import numpy as np

from pdofm.domain.base import Domain
from pdofm.domain.box import Box
from pdofm.domain.outline import outline
from pdofm.domain.polygon import Polygon
from pdofm.domain.spacetime import SpaceTime
from pdofm.errors import DomainError

DEEPEST = 200
"""The most domains inside of each other; a file with more was not written by this package."""


def describe(domain: Domain) -> dict[str, Any]:
    """A tree of a domain. One that numbers alone do not describe is replaced by its outline: a polygon with many
    vertices in the plane, and the bounding box otherwise."""
    if domain.arguments is None or type(domain) not in kinds().values():
        return describe(_outlined(domain))
    tree = {
        name: describe(value) if isinstance(value, Domain) else {"value": value}
        for name, value in domain.arguments.items()
    }
    names = {"names": domain.given_names} if domain.given_names else {}
    return {"kind": type(domain).__name__, "arguments": tree, **names}


def is_described(domain: Domain) -> bool:
    """Whether numbers alone describe a domain, so that `restored` restores it as it is."""
    arguments = domain.arguments
    if arguments is None or type(domain) not in kinds().values():
        return False
    return all(is_described(each) for each in arguments.values() if isinstance(each, Domain))


def restored(tree: Any, depth: int = 0) -> Domain:
    """The domain that `describe` described."""
    if depth > DEEPEST:
        raise DomainError(f"The domain has more than {DEEPEST} levels.")
    kind = kinds().get(tree["kind"])
    if kind is None:
        raise DomainError(f"Unknown domain {tree['kind']!r}.")
    arguments = {
        str(name): restored(value, depth + 1) if "kind" in value else _numbers(value["value"])
        for name, value in tree["arguments"].items()
    }
    names = {str(old): str(new) for old, new in tree.get("names", {}).items()}
    return kind(**arguments).with_names(names)


def kinds() -> dict[str, type[Domain]]:
    """The domains of this package by name."""
    found, rest = {}, [Domain]
    while rest:
        kind = rest.pop()
        rest += kind.__subclasses__()
        if kind.__module__.startswith("pdofm.domain.") and not kind.__name__.startswith("_"):
            found[kind.__name__] = kind
    return found


def _numbers(value: Any) -> Any:
    """Numbers, texts and nested lists of them; anything else is refused."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    raise DomainError(f"An argument of a domain is a {type(value).__name__}; expected numbers.")


def _outlined(domain: Domain) -> Domain:
    if isinstance(domain, SpaceTime):
        return SpaceTime(_outlined(domain.space), [domain.t0, domain.t1])
    if domain.dim != 2:
        return Box(domain.lower, domain.upper)
    loops = sorted(outline(domain), key=lambda loop: -float(np.ptp(loop, axis=0).max()))
    loops = [loop[np.append(True, np.any(np.diff(loop, axis=0) != 0, axis=1))] for loop in loops]
    return Polygon(loops[0], loops[1:])
