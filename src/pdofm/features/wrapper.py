"""Features that are made of other features."""

import abc
from typing import ClassVar, TypeVar

import equinox as eqx
import numpy as np
from jaxtyping import Float

from pdofm._types import Points, Vector
from pdofm.calculus.terms import Term
from pdofm.domain import Domain
from pdofm.features.base import Features, Unmapped

Wrapping = TypeVar("Wrapping", bound="Wrapper")


class Wrapper(Unmapped):
    """Features that are made of others, in the coordinates of the domain.

    What the wrapped features declare is passed on here; a wrapper overrides only the declarations that it changes. The
    fields that are trained, scaled or saved are found in the wrapped features themselves.
    """

    tied_to: ClassVar[str] = "its boxes. Move its parts with on(), and combine them again"

    @property
    @abc.abstractmethod
    def wrapped(self) -> tuple[Features, ...]:
        """The features inside."""

    @property
    def size(self) -> int:
        return sum(features.size for features in self.wrapped)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.sort(np.concatenate([features.ranks for features in self.wrapped]))

    @property
    def imposes(self) -> str | None:
        """What all wrapped features impose, if they do so on the same box."""
        boxes = {(*np.asarray(each.lower).tolist(), *np.asarray(each.upper).tolist()) for each in self.wrapped}
        imposed = {features.imposes for features in self.wrapped}
        return imposed.pop() if len(imposed) == len(boxes) == 1 else None

    @property
    def concentration(self) -> float:
        """The largest among the wrapped features."""
        return max(features.concentration for features in self.wrapped)

    def density(self, points: Points) -> Vector:
        """The mean over the wrapped features."""
        wanted = [features.density(points) for features in self.wrapped]
        return np.mean([each / each.sum() for each in wanted], axis=0)

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        """The terms of all wrapped features."""
        return tuple(term for features in self.wrapped for term in features.extra_terms(domain))

    @property
    def has_scale(self) -> bool:
        """Whether any of the wrapped features has a scale."""
        return any(features.has_scale for features in self.wrapped)

    def rescaled(self: Wrapping, factor: float) -> Wrapping:
        """The same with all wrapped features rescaled that have a scale."""
        if not self.has_scale:
            return super().rescaled(factor)
        new = tuple(features.rescaled(factor) if features.has_scale else features for features in self.wrapped)
        return eqx.tree_at(lambda features: features.wrapped, self, new)
