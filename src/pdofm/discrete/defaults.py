"""What is chosen where nothing is given: features and numbers of points."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pdofm._types import Key
from pdofm.discrete.collocate import boundary_count
from pdofm.domain import Domain, Regions
from pdofm.errors import FeaturesError
from pdofm.features import Features, NetworkFeatures, RegionFeatures, check_count
from pdofm.problem.problem import Problem

SIZES = {1: 100, 2: 500, 3: 1200}
"""Default number of features by dimension: smooth solutions have converged, and a solve takes at most seconds."""

SIZES_OF_SYSTEMS = {1: 100, 2: 300, 3: 600}
"""The same for systems, per component: the cost grows with the cube of features times components."""

LARGEST_SIZE = 1500
"""Default number of features in more than three dimensions."""

MORE_REGIONS = 4
"""With several regions the default is so many times larger at most."""

FEWEST = 6
"""The smallest number of features of a region."""


def chosen_features(problem: Problem, features: Any, key: Key) -> Features:
    """The features that a user gave, by a number, or left out; of several regions also by a dictionary, or the same
    for all."""
    regions = problem.regions
    if isinstance(features, np.integer):
        features = int(features)
    if isinstance(features, int):
        check_count("features", features)
    if features is None or isinstance(features, int):
        return default_features(problem, features, key)
    if regions is not None and isinstance(features, Mapping):
        return RegionFeatures(regions, **features)
    if isinstance(features, float) and 0 < features < 1:
        raise FeaturesError(f"features is {features!r}, which is no number of features: did you mean tol={features!r}?")
    if not isinstance(features, Features):
        hint = " Give its .features." if isinstance(getattr(features, "features", None), Features) else ""
        by_region = "" if regions is None else f", or a dictionary with features for each of {list(regions.names)}"
        raise FeaturesError(
            f"features must be Features such as NetworkFeatures(domain), or a number{by_region}; got "
            f"{type(features).__name__}.{hint}"
        )
    if regions is not None and not isinstance(features, RegionFeatures):
        return RegionFeatures(regions, **dict.fromkeys(regions.names, features))
    return features


def in_each_region(domain: Domain, size: int, make: Callable[[Domain, int], Features]) -> Features:
    """The features that ``make(domain, size)`` makes; with several regions for each of them, about `size` together."""
    regions = domain.materials
    if regions is None:
        return make(domain, size)
    sizes = shared(regions, size)
    return RegionFeatures(regions, **{name: make(region, sizes[name]) for name, region in regions.by_name.items()})


def shared(regions: Regions, size: int) -> dict[str, int]:
    """A number of features for each region, together about `size`: polynomials in a region that is four times smaller
    have half the degree."""
    extents = {name: region.size / regions.size for name, region in regions.by_name.items()}
    weights = {name: extent ** (regions.dim / 2) for name, extent in extents.items()}
    total = sum(weights.values())
    return {name: max(FEWEST, round(size * weight / total)) for name, weight in weights.items()}


def default_features(problem: Problem, size: int | None = None, key: Key = 0) -> Features:
    """The features that `solve` takes by itself: an untrained residual network of that width on the domain's box, with
    several regions one for each of them, of that width together."""
    if size is None:
        sizes = SIZES if problem.layout.components == 1 else SIZES_OF_SYSTEMS
        size = sizes.get(problem.domain.dim, LARGEST_SIZE) * min(len(problem.region_names), MORE_REGIONS)
    return in_each_region(problem.domain, size, lambda domain, m: NetworkFeatures(domain, size=m, key=key))


def default_counts(problem: Problem, features: Features) -> tuple[int, int]:
    """The numbers of points inside and on the boundary: four per feature inside; on the boundary, in several regions on
    that of each of them, four per degree of freedom that polynomials with as many features have there."""
    dim = problem.domain.dim
    spaces = features.wrapped if isinstance(features, RegionFeatures) else (features,)
    return 4 * features.size, sum(boundary_count(dim, space.size) for space in spaces)
