"""Named problems in three groups: `basic` has those of the paper and others with exact solutions, `local` has problems
whose solutions vary fast in small places or are singular, `evolution` has problems in time."""

from pdofm.zoo import basic, evolution, local
from pdofm.zoo.references import Reference, reference
from pdofm.zoo.registry import describe, get, names

__all__ = ["Reference", "basic", "describe", "evolution", "get", "local", "names", "reference"]
