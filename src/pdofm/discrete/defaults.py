"""What is chosen where nothing is given: features and numbers of points."""

from math import prod

from pdofm._types import Key
from pdofm.features import Features, NetworkFeatures, polynomial_degree
from pdofm.problem.problem import Problem

SIZES = {1: 100, 2: 500, 3: 1200}
"""Default number of features by dimension: smooth solutions have converged, and a solve takes at most seconds."""

SIZES_OF_SYSTEMS = {1: 100, 2: 300, 3: 600}
"""The same for systems, per component: the cost grows with the cube of features times components."""

LARGEST_SIZE = 1500
"""Default number of features in more than three dimensions."""


def default_features(problem: Problem, size: int | None = None, key: Key = 0) -> Features:
    """The features that `solve` takes by itself: an untrained residual network of that width on the domain's box."""
    if size is None:
        sizes = SIZES if problem.layout.components == 1 else SIZES_OF_SYSTEMS
        size = sizes.get(problem.domain.dim, LARGEST_SIZE)
    return NetworkFeatures(problem.domain, size=size, key=key)


def default_counts(problem: Problem, size: int) -> tuple[int, int]:
    """The numbers of points inside and on the boundary: four per feature inside; on the boundary four per degree of
    freedom that polynomials with as many features have there."""
    dim = problem.domain.dim
    degree = polynomial_degree(size, dim)
    on_a_face = prod((degree + i) / i for i in range(1, dim))
    return 4 * size, int(min(4 * 2 * dim * on_a_face, 3 * size))
