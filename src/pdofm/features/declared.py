"""What a family of features may declare about itself, beyond its values."""

from typing import ClassVar

import equinox as eqx
import numpy as np

from pdofm._types import Points, Vector
from pdofm.calculus.terms import Term
from pdofm.domain import Domain


class Declared(eqx.Module):
    """The declarations of a family. Each default means that there is nothing to declare.

    Solving, training and files read these declarations. Features that are made of other features pass on what those
    declare: `Wrapper` does that, for all of them.
    """

    trained: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that pretraining changes."""

    scaled: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that are proportional to the frequencies of the features; `rescaled` multiplies them."""

    tied_to: ClassVar[str] = ""
    """What in a domain, other than its box, the features depend on, and what to do instead of moving them: "its layer.
    Make them anew …". Empty if they can be moved."""

    unsaved: ClassVar[str] = ""
    """Why the features cannot be saved in a file, and what to do instead. Empty if they can: all fields are saved."""

    @property
    def imposes(self) -> str | None:
        """The kind of term that every function of the space satisfies by construction, if any."""
        return None

    @property
    def concentration(self) -> float:
        """The largest density of collocation points that the features ask for, relative to the mean; 1 if uniform."""
        return 1.0

    def density(self, points: Points) -> Vector:
        """The density of collocation points that the features ask for at each of `points`, in any unit."""
        return np.ones(len(points))

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        """Terms that the space adds to every problem on `domain`, such as continuity across interfaces."""
        return ()
