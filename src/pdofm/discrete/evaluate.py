"""Functions of a feature space at points, computed in batches that bound the memory."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Points
from pdofm.calculus.jets import Index
from pdofm.discrete.interpolated import MANY, interpolated
from pdofm.features import Features
from pdofm.numerics.batches import FEWEST_POINTS, slices

EVALUATION_BYTES = 2**22
"""Bytes of the derivatives of features that are computed at once: enough to make the overhead per batch negligible, and
little compared with the memory of a machine."""


def derivatives(
    features: Features, coefficients: Coefficients, points: Points, which: Sequence[Index]
) -> Float[np.ndarray, "a n C"]:
    """The derivatives `which` at points of the function with these coefficients, including the lifting."""
    out = _expanded(features, coefficients, points, which)
    lifting = features.lifting(points, which, coefficients.shape[1])
    return out if lifting is None else out + lifting


def _expanded(
    features: Features, coefficients: Coefficients, points: Points, which: Sequence[Index]
) -> Float[np.ndarray, "a n C"]:
    """The same without the lifting; values at very many points by interpolation, to rounding."""
    if not coefficients.any():
        return np.zeros((len(which), len(points), coefficients.shape[1]))
    if len(which) == 1 and not any(which[0]) and len(points) >= MANY:
        close = interpolated(features, coefficients, points, lambda x: _directly(features, coefficients, x, which)[0])
        if close is not None:
            return _directly(*close, points, which)
    return _directly(features, coefficients, points, which)


def _directly(
    features: Features, coefficients: Coefficients, points: Points, which: Sequence[Index]
) -> Float[np.ndarray, "a n C"]:
    """The same from the features themselves."""
    out = np.empty((len(which), len(points), coefficients.shape[1]))
    for here in slices(len(points), _points_at_once(features, which)):
        out[:, here] = features.expand(points[here], which, coefficients)
    return out


def _points_at_once(features: Features, which: Sequence[Index]) -> int:
    """The number of points whose derivatives of features fill `EVALUATION_BYTES`."""
    return max(FEWEST_POINTS, EVALUATION_BYTES // (8 * features.most_at_a_point * max(len(which), 1)))


def evaluate(features: Features, coefficients: Coefficients, points: Points) -> Float[np.ndarray, "n C"]:
    """The function with these coefficients at points, including the lifting."""
    return derivatives(features, coefficients, points, [(0,) * features.dim])[0]


def evaluate_all(
    features: Features,
    coefficients: Float[np.ndarray, "k m C"],
    points: Points,
    known: Float[np.ndarray, "n m"] | None = None,
) -> Float[np.ndarray, "k n C"]:
    """Several functions of the space at points. The features are evaluated once for all of them, unless their values
    are `known`."""
    (k, m, components), which = coefficients.shape, [(0,) * features.dim]
    together = np.moveaxis(coefficients, 0, 1).reshape(m, k * components)
    values = _expanded(features, together, points, which)[0] if known is None else known @ together
    lifting = features.lifting(points, which, components)
    found = np.moveaxis(values.reshape(len(points), k, components), 1, 0)
    return found if lifting is None else found + lifting


def feature_values(features: Features, points: Points) -> Float[np.ndarray, "n m"]:
    """All features at points."""
    return features.jets(points, [(0,) * features.dim])[0]
