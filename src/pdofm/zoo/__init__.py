"""Named problems in three groups: `basic` has those of the paper and others with exact solutions, `local` has problems
whose solutions vary fast in small places or are singular, `materials` has bodies of several materials."""

from pdofm.zoo import basic, local, materials
from pdofm.zoo.registry import describe, get, names

__all__ = ["basic", "describe", "get", "local", "materials", "names"]
