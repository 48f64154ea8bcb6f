"""What does not change while one problem is solved several times."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdofm._types import Points, SpaceNormals
from pdofm.calculus.jets import Index
from pdofm.calculus.symbol import Linearisation, Symbol
from pdofm.discrete.right import RightSides
from pdofm.features import Features, RegionFeatures

REMEMBERED = 2**28
"""Bytes of derivatives of features that are kept for the next step of an iteration."""


@dataclass
class Memory:
    """What does not change while a problem is solved again: right sides at points and, in an iteration, the derivatives
    of the features and the symbols of affine terms."""

    right_sides: RightSides = field(default_factory=RightSides)
    jets: dict[Any, np.ndarray] | None = None
    symbols: dict[Any, Linearisation | None] = field(default_factory=dict)
    bytes: int = 0

    def iterating(self) -> "Memory":
        """The same for an iteration in one space."""
        return Memory(self.right_sides, {}) if self.jets is None else self

    def linearised(self, symbol: Symbol, points: Points, normals: SpaceNormals) -> Linearisation | None:
        """The symbol of an affine left side at points."""
        if self.jets is None:
            return symbol.linearise(points, normals)
        key = (symbol, points.tobytes(), normals.tobytes())
        if key not in self.symbols:
            self.symbols[key] = symbol.linearise(points, normals)
        return self.symbols[key]

    def derivatives(self, features: Features, points: Points, which: tuple[Index, ...]) -> np.ndarray:
        """The derivatives of the features at points."""
        if self.jets is None:
            return features.jets(points, which)
        found = self.known(features, points, which)
        if found is None:
            found = features.jets(points, which)
            if self.bytes + found.nbytes <= REMEMBERED:
                self.jets[_key(features, points, which)], self.bytes = found, self.bytes + found.nbytes
        return found

    def known(self, features: Features, points: Points, which: tuple[Index, ...]) -> np.ndarray | None:
        """The derivatives of the features at points, if they are remembered."""
        return None if self.jets is None else self.jets.get(_key(features, points, which))


def _key(features: Features, points: Points, which: tuple[Index, ...]) -> Any:
    """Features of several regions are remembered for each region by itself."""
    return features.only if isinstance(features, RegionFeatures) else None, points.tobytes(), which
