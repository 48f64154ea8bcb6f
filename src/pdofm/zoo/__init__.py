"""Named problems in two groups: `basic` has those of the paper and others with exact solutions, `local` has problems
whose solutions vary fast in small places or are singular."""

from pdofm.zoo import basic, local
from pdofm.zoo.registry import describe, get, names

__all__ = ["basic", "describe", "get", "local", "names"]
