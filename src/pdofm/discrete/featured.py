"""Covers of a domain by boxes with features of any family."""

from functools import cached_property

import numpy as np

from pdofm.discrete.cover import Cover
from pdofm.domain import Domain
from pdofm.domain.tree import BoxTree
from pdofm.features.boxfeatures import BoxFeatures, FeaturePatches


class FeatureCover(Cover):
    """The patches of `BoxFeatures` over a domain, each with a fraction `share` of its features, the leading ones. A box
    of which little is inside is merged with a neighbour, whose features are used in both."""

    def __init__(self, domain: Domain, features: BoxFeatures, share: float = 1.0):
        self._given, self._share = features, share
        tree = BoxTree.of(np.asarray(features.lower), np.asarray(features.upper), features.tree)
        each = map(tuple, features.degrees[features.owners[tree.leaves]].tolist())
        super().__init__(domain, tree, dict(zip(tree.leaves.tolist(), each, strict=True)), {})

    @cached_property
    def patches(self) -> FeaturePatches:
        """The patches, each with a box around its inner part."""
        numbers = [int(self._given.owners[members[0]]) for members in self.members]
        local, used = [self._given.local[i] for i in numbers], []
        for features, number in zip(local, numbers, strict=True):
            ranks = features.ranks[: self._given.used[number]]
            used.append(max(1, int(np.searchsorted(ranks, self._share, side="right"))))
        lower, upper = self.corners()
        return FeaturePatches(lower, upper, local, used)

    @cached_property
    def features(self) -> BoxFeatures:
        """The features in the patches."""
        return BoxFeatures.of(self.domain.lower, self.domain.upper, self.arrays, self.owners, self.patches)
