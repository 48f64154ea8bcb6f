"""Orthonormal combinations of functions on a domain, and those of given features."""

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from pdofm.calculus.jets import Index
from pdofm.features import Features
from pdofm.marching.arrays import Points, Vector

DEPENDENT = 1e-11
"""Combinations of features whose norm is below this fraction of the largest are left out."""

LAST = 0.1
"""This part of the functions, those that vary most, tells what may be missing."""


@runtime_checkable
class Basis(Protocol):
    """Orthonormal combinations of functions.

    Attributes:
        matrix: of the combinations.
        last: orthonormal directions among them that tell what may be missing.
    """

    matrix: Float[np.ndarray, "m r"]
    last: Float[np.ndarray, "r k"]

    def jets(self, points: Points, which: Sequence[Index]) -> Float[np.ndarray, "a n r"]:
        """Derivatives of the combinations at points."""
        ...


class Given:
    """Combinations of given features: those with large coefficients last. Only a share of the features is used, those
    with the lowest ranks."""

    def __init__(self, features: Features, share: float, points: Points, weights: Vector):
        self._features, ranks = features, features.ranks
        kept = np.sort(np.argsort(ranks, kind="stable")[: math.ceil(share * len(ranks))])
        weighted = features.jets(points, [(0,) * features.dim])[0] * np.sqrt(weights)[:, None]
        sizes, directions = np.linalg.svd(weighted[:, kept], full_matrices=False)[1:]
        count = int(np.sum(sizes > DEPENDENT * sizes[0]))
        self.matrix = np.zeros((len(ranks), count))
        self.matrix[kept] = directions[:count].T / sizes[:count]
        self.last = np.eye(count)[:, -max(1, int(LAST * count)) :]

    def jets(self, points: Points, which: Sequence[Index]) -> Float[np.ndarray, "a n r"]:
        """Derivatives of the combinations at points."""
        return self._features.jets(points, which) @ self.matrix
