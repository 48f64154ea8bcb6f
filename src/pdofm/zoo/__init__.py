"""Named problems in groups: `basic` has those of the paper and others with exact solutions, `local` has problems
whose solutions vary fast in small places or are singular, `evolution` has problems in time, `materials` has bodies of
several materials."""

from pdofm.zoo import basic, evolution, local, materials
from pdofm.zoo.references import Reference, reference
from pdofm.zoo.registry import describe, get, names

__all__ = ["Reference", "basic", "describe", "evolution", "get", "local", "materials", "names", "reference"]
