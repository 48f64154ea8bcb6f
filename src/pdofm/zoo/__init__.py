"""Named problems in groups: `basic` has those of the paper and others with exact solutions, `local` has problems whose
solutions vary fast in small places or are singular, `evolution` has problems in time, `materials` has bodies of several
materials, and `published` others that solvers are compared with."""

from pdofm.zoo import basic, evolution, local, materials, published
from pdofm.zoo.references import Reference, reference
from pdofm.zoo.registry import describe, get, names

__all__ = [
    "Reference",
    "basic",
    "describe",
    "evolution",
    "get",
    "local",
    "materials",
    "names",
    "published",
    "reference",
]
