"""What a feature space is: a map from one point to the values of its m features."""

import abc
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import FeatureValues, Point, Points, Vector
from pdofm.calculus import operators
from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Term
from pdofm.domain import Domain
from pdofm.errors import FeaturesError
from pdofm.numerics.batches import batch_size, batches, padded

Jets = Float[np.ndarray, "a n m"]
"""Derivatives of all features at points, one multi-index after the other. In memory the points run fastest, as they do
in the columns of the least-squares matrix."""

Corner = Float[np.ndarray, " d"] | Float[jax.Array, " d"]


@runtime_checkable
class HasBox(Protocol):
    """Anything with a bounding box: a domain, or other features."""

    @property
    def lower(self) -> Corner: ...
    @property
    def upper(self) -> Corner: ...


class Features(eqx.Module):
    """A feature space on a box: ``features(x) -> (m,)`` for one point ``x`` of shape ``(d,)``.

    Subclasses define ``values(y)`` on the reference cube [-1, 1]^d; the affine map from the box to the cube is applied
    here, once, so that the position and the size of a domain do not matter. In space-time the last coordinate is the
    time.
    """

    lower: eqx.AbstractVar[Corner]
    upper: eqx.AbstractVar[Corner]

    trained: ClassVar[tuple[str, ...]] = ()
    """The fields that pretraining changes."""

    tied_to: ClassVar[str] = ""
    """Why the features cannot be moved to another box, and what to do instead; empty if their own box is all that they
    know of a domain."""

    if not TYPE_CHECKING:
        # Equinox makes a pytree of every method that is looked up. Nothing here passes methods on, and in a small solve
        # that would take longer than the arithmetic.
        __getattribute__ = object.__getattribute__

    @property
    def dim(self) -> int:
        """Number of coordinates of a point."""
        return self.lower.shape[0]

    @property
    def size(self) -> int:
        """Number m of features."""
        return jax.eval_shape(self.__call__, jax.ShapeDtypeStruct((self.dim,), jnp.result_type(float))).shape[0]

    @property
    def most_at_a_point(self) -> int:
        """How many features at most are not zero at a point: what evaluating a function there takes."""
        return self.size

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        """How dispensable each feature is, from 0 to 1, never falling: leading features span a coarser space.

        Coarser spaces calibrate the error estimate; features of rank 0 belong to all of them.
        """
        return (np.arange(self.size) + 0.5) / self.size

    @property
    def imposes(self) -> str | None:
        """The kind of term that every function of the space satisfies by construction, if any."""
        return None

    @property
    def concentration(self) -> float:
        """How many times more points than elsewhere the features want where they are finest; 1: alike everywhere."""
        return 1.0

    def density(self, points: Points) -> Vector:
        """How much a collocation point is wanted at each of `points`, in any unit."""
        return np.ones(len(points))

    def extra_terms(self, domain: Domain) -> tuple[Term, ...]:
        """Terms that the space itself adds to every problem on `domain`, for instance continuity across interfaces."""
        return ()

    def rescaled(self, factor: float) -> "Features":
        """The same features with all frequencies multiplied by `factor`."""
        raise FeaturesError(
            f"{type(self).__name__} has no scale. Choose among RandomFeatures, TransNet, NetworkFeatures, or a "
            "partition or concatenation of these."
        )

    def on(self, domain: HasBox) -> "Features":
        """The same features on the box of another domain, through the affine map between the two boxes."""
        lower, upper = box_of(domain)
        if len(lower) != self.dim:
            raise FeaturesError(
                f"The features are defined in {self.dim} dimensions, the domain has {len(lower)}. "
                "Make or load features of that dimension."
            )
        if self.tied_to:
            raise FeaturesError(f"{type(self).__name__} is tied to {self.tied_to}.")
        return eqx.tree_at(lambda f: (f.lower, f.upper), self, (lower, upper))

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        """The derivatives `which`, as multi-indices, of all features at points: entry ``[a, i, j]`` is ∂^which[a] φⱼ at
        point i.

        Families that know their derivatives override this; here they are found by differentiation.
        """
        return differentiated(self, points, which)

    def to_cube(self, points: Points) -> tuple[Points, Vector]:
        """Points of the box in the reference cube, and the slope of that map along each axis."""
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        slopes = 2 / (upper - lower)
        return (points - (upper + lower) / 2) * slopes, slopes

    def expand(
        self, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        """The derivatives `which` at points of C functions of the space, Σ cⱼ φⱼ without the lifting."""
        return self.jets(points, which) @ coefficients

    def lifting(self, points: Points, which: Sequence[Index], components: int) -> Float[np.ndarray, "a n C"] | None:
        """The derivatives of the function that every function of the space contains, for hard conditions; None if there
        is none."""
        return None

    def combine(self, x: Point, coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
        """The function with these coefficients, Σ cⱼ φⱼ(x), for C components at once."""
        return self(x) @ coefficients

    @abc.abstractmethod
    def values(self, y: Point) -> FeatureValues:
        """The features at a point of the reference cube."""

    def mapped(self, x: Point) -> Point:
        """A point of the box in the reference cube."""
        return (x - (self.upper + self.lower) / 2) * (2 / (self.upper - self.lower))

    def __call__(self, x: Point) -> FeatureValues:
        return self.values(self.mapped(x))


class Unmapped(Features):
    """Features in the coordinates of the domain itself: subclasses define ``__call__`` instead of ``values``."""

    def values(self, y: Point) -> FeatureValues:
        return self((y + 1) * ((self.upper - self.lower) / 2) + self.lower)

    @abc.abstractmethod
    def __call__(self, x: Point) -> FeatureValues:
        """The features at a point of the box."""


def differentiated(features: Features, points: Points, which: Sequence[Index]) -> Jets:
    """The derivatives `which` of features at points, by differentiation."""
    found = np.empty((len(which), features.size, len(points)))
    if not which:
        return np.swapaxes(found, 1, 2)
    for here, size in batches(len(points), batch_size(8 * len(which) * features.size)):
        values = _differentiated(features, padded(points[here], size), tuple(which))
        found[:, :, here] = np.asarray(values)[:, :, : here.stop - here.start]
    return np.swapaxes(found, 1, 2)


@partial(jax.jit, static_argnames="which")
def _differentiated(features: Features, points: Array, which: tuple[Index, ...]) -> Array:
    """The derivatives in the order (a, m, n)."""
    return jnp.moveaxis(jax.vmap(all_derivatives(features, which))(points), 0, -1)


def all_derivatives(function: Callable[[Array], Array], which: Sequence[Index]) -> Callable[[Array], Array]:
    """The derivatives `which` of a function of one point, stacked, by differentiation."""
    axes = [[axis for axis, k in enumerate(index) for _ in range(k)] for index in which]
    return lambda x: jnp.stack([operators.partial(function, *each)(x) for each in axes])


def box_of(where: HasBox) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the box that features are defined on; `where` is a domain or other features."""
    if not isinstance(where, HasBox) or isinstance(where, str):  # strings have methods lower() and upper()
        raise FeaturesError(
            f"Features need a domain (or other features) to take their box from; got {type(where).__name__}. "
            "Write for instance NetworkFeatures(pf.Box([0, 0], [1, 1]), width=500)."
        )
    return np.array(where.lower, dtype=np.float64), np.array(where.upper, dtype=np.float64)


def check_count(what: str, value: int, least: int = 1) -> int:
    """The integer `value`, or an error that names it."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise FeaturesError(f"{what} must be an integer of at least {least}; got {value!r}.")
    return int(value)


@lru_cache(maxsize=1024)
def polynomial_degree(size: int, dim: int) -> float:
    """The (real) total degree k at which the polynomials in `dim` variables have dimension `size`: C(k + d, d) = size.

    It measures how finely that many features can resolve a domain, whatever the dimension.
    """
    low, high = 0.0, float(max(size, 1))
    for _ in range(60):
        k = (low + high) / 2
        low, high = (k, high) if prod((k + i) / i for i in range(1, dim + 1)) < size else (low, k)
    return high
