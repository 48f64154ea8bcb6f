"""Functions of a feature space at points, in chunks that bound the memory."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.calculus.jets import Index
from pdofm.discrete.direct import Coefficients
from pdofm.features import Features
from pdofm.numerics.batches import slices

CHUNK_BYTES = 2**22
"""Size of the derivatives of features that are made at once."""


def derivatives(
    features: Features, coefficients: Coefficients, points: Points, which: Sequence[Index]
) -> Float[np.ndarray, "a n C"]:
    """The derivatives `which` at points of the function with these coefficients, the lifting included."""
    out = _expanded(features, coefficients, points, which)
    lifting = features.lifting(points, which, coefficients.shape[1])
    return out if lifting is None else out + lifting


def _expanded(
    features: Features, coefficients: Coefficients, points: Points, which: Sequence[Index]
) -> Float[np.ndarray, "a n C"]:
    out = np.empty((len(which), len(points), coefficients.shape[1]))
    for here in slices(len(points), max(64, CHUNK_BYTES // (8 * features.most_at_a_point * max(len(which), 1)))):
        out[:, here] = features.expand(points[here], which, coefficients)
    return out


def evaluate(features: Features, coefficients: Coefficients, points: Points) -> Float[np.ndarray, "n C"]:
    """Σ cⱼ φⱼ at points."""
    return derivatives(features, coefficients, points, [(0,) * features.dim])[0]


def evaluate_all(
    features: Features, coefficients: Float[np.ndarray, "k m C"], points: Points
) -> Float[np.ndarray, "k n C"]:
    """Several functions of the space at points, all in one go."""
    (k, m, components), which = coefficients.shape, [(0,) * features.dim]
    values = _expanded(features, np.moveaxis(coefficients, 0, 1).reshape(m, k * components), points, which)[0]
    lifting = features.lifting(points, which, components)
    found = np.moveaxis(values.reshape(len(points), k, components), 1, 0)
    return found if lifting is None else found + lifting


def feature_values(features: Features, points: Points) -> Float[np.ndarray, "n m"]:
    """All features at points."""
    return features.jets(points, [(0,) * features.dim])[0]
