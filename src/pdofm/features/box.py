"""The box that features are defined on."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float

from pdofm.errors import FeaturesError

Corner = Float[np.ndarray, " d"] | Float[jax.Array, " d"]
"""The lower or the upper corner of a box."""

T = TypeVar("T")


@runtime_checkable
class HasBox(Protocol):
    """Anything with a bounding box: a domain, or other features."""

    @property
    def lower(self) -> Corner: ...
    @property
    def upper(self) -> Corner: ...


def box_of(where: HasBox) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper corner of the box of a domain or of other features."""
    if not isinstance(where, HasBox) or isinstance(where, str):  # strings have methods lower() and upper()
        raise FeaturesError(
            f"Features need a domain (or other features) to take their box from; got {type(where).__name__}. "
            "Write for instance NetworkFeatures(pf.Box([0, 0], [1, 1]), size=500)."
        )
    return np.array(where.lower, dtype=np.float64), np.array(where.upper, dtype=np.float64)


def derived(compute: Callable[[Any], T]) -> T:
    """A property in place of a field that a base class declares: ``@derived def lower(self) -> Corner``.

    Type checkers see an attribute of type T, as the base class declares it.
    """
    return cast(T, property(compute))
