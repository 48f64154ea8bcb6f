"""Functions at very many points, by interpolation: polynomials in boxes that agree with them to rounding.

A function of a network takes microseconds at a point, a polynomial in a box a tenth of one. With many more points than
nodes of interpolation it pays to evaluate the nodes first. Boxes are made smaller until the last coefficients of all
polynomials are rounding; then the polynomials are compared with the function at some of the points.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Points
from pdofm.features import BoxPolynomials, Features
from pdofm.features.boxes import Patches
from pdofm.numerics.lstsq import EPSILON
from pdofm.numerics.nodes import chebyshev, tensor_chebyshev
from pdofm.numerics.sampling import spread

MANY = 200_000
"""Points from which interpolation is tried."""

DEGREES = {1: 24, 2: 16, 3: 10}
"""Degree of the polynomials along each axis, by dimension; there is no interpolation in more dimensions."""

BOXES = {1: (8, 32, 128, 512), 2: (4, 8, 16, 32), 3: (3, 6, 12)}
"""Boxes along each axis."""

SHARE = 0.2
"""Nodes are at most this part of the points."""

CHECKED = 500
"""Points at which the polynomials are compared with the function."""

AGREE = 1e-13
"""They agree if they differ by less than this, relative to the largest value, or by ten times the rounding error."""

Direct = Callable[[Points], np.ndarray]
"""The function itself, at points."""


def interpolated(
    features: Features, coefficients: Coefficients, points: Points, direct: Direct
) -> tuple[BoxPolynomials, Float[np.ndarray, "k C"]] | None:
    """Polynomials in boxes, with their coefficients, that agree with a function at points; None if there are none that
    are worth it."""
    dim = features.dim
    if len(points) < MANY or dim not in DEGREES or type(features).expand is not Features.expand:
        return None
    if (points < np.asarray(features.lower)).any() or (points > np.asarray(features.upper)).any():
        return None
    some = points[spread(len(points), CHECKED)]
    values = features.jets(some, [(0,) * dim])[0]
    truth, rounding = values @ coefficients, 10 * EPSILON * np.max(np.abs(values) @ np.abs(coefficients), axis=0)
    allowed = np.maximum(rounding, AGREE * np.max(np.abs(truth), axis=0))
    for boxes in BOXES[dim]:
        if (boxes * (DEGREES[dim] + 1)) ** dim > SHARE * len(points):
            return None
        close = BoxPolynomials.grid(features, boxes, DEGREES[dim])
        grid = _coefficients(close.patches, direct)
        if np.any(_tails(grid) > allowed):
            continue
        found = np.ascontiguousarray(grid.reshape(-1, grid.shape[-1]))
        if np.all(np.max(np.abs(close.expand(some, [(0,) * dim], found)[0] - truth), axis=0) <= allowed):
            return close, found
    return None


def _coefficients(patches: Patches, direct: Direct) -> np.ndarray:
    """The coefficients of the polynomials that agree with a function at the nodes of each patch: by patch, by degree
    along each axis, and by component."""
    shape = tuple(k + 1 for k in patches.shape(0))
    nodes = tensor_chebyshev(shape)
    sides = patches.upper - patches.lower
    points = patches.lower[:, None] + nodes * sides[:, None]
    values = direct(points.reshape(-1, len(shape)))
    grid = values.reshape(len(patches), *shape, -1)
    for axis, count in enumerate(shape):
        inverse = np.linalg.inv(np.polynomial.chebyshev.chebvander(2 * chebyshev(count) - 1, count - 1))
        grid = np.moveaxis(np.tensordot(inverse, grid, (1, 1 + axis)), 0, 1 + axis)
    return grid


def _tails(grid: np.ndarray) -> Float[np.ndarray, " C"]:
    """The largest of the last coefficients along each axis, in any patch: they are rounding where a function is
    resolved everywhere, between the nodes as well."""
    sizes = np.abs(grid)
    last = [np.take(sizes, (-2, -1), axis=axis).reshape(-1, grid.shape[-1]) for axis in range(1, grid.ndim - 1)]
    return np.max(np.concatenate(last), axis=0)
