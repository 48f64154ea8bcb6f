"""The interface of feature spaces: maps from one point to the values of m features."""

import abc
import dataclasses
import inspect
import typing
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Coefficients, FeatureValues, Point, Points, Vector
from pdofm.calculus import operators
from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Term
from pdofm.errors import FeaturesError
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.declared import Declared
from pdofm.numerics.batches import batch_size, in_batches, two_sizes
from pdofm.shown import Shown

Jets = Float[np.ndarray, "a n m"]
"""Derivatives of all features at points; the first axis runs over multi-indices. In memory, the points are contiguous,
as they are in the columns of the least-squares matrix."""

MOST_FEATURES = 100_000
"""The most functions of one kind: a dense matrix for as many would take hundreds of gigabytes."""

LARGEST_DEGREE = 1000
"""The highest degree of functions that are known by recursion in closed form, such as multipoles."""

Family = TypeVar("Family", bound="Features")

_defined: list[type["Features"]] = []


class Features(Shown, Declared):
    """A feature space on a box: ``features(x) -> (m,)`` for one point ``x`` of shape ``(d,)``.

    A family defines ``values(y)`` on the reference cube [-1, 1]^d; the affine map from the box to the cube is applied
    here, so that the position and the size of a domain do not matter. In space-time the last coordinate is the time. A
    family that knows its derivatives overrides `jets`, and declares anything else that sets it apart (see `Declared`).
    """

    lower: eqx.AbstractVar[Corner]
    upper: eqx.AbstractVar[Corner]

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if cls.__module__.startswith(f"{__package__}."):
            _defined.append(cls)

    if not TYPE_CHECKING:
        # Equinox turns every method that is looked up into a pytree. No method is passed on here, and in a small solve
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

    def sides(self, term: Term) -> tuple["Features", ...]:
        """The features as a term sees them: these, or of several regions those of its region, and on an interface
        those of both."""
        return (self,)

    @property
    def most_at_a_point(self) -> int:
        """How many features at most are not zero at a point: what evaluating a function there takes."""
        return self.size

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        """How dispensable each feature is, from 0 to 1, in ascending order: leading features span a coarser space.

        Coarser spaces calibrate the error estimate. Features of rank 0 belong to all of them.
        """
        return (np.arange(self.size) + 0.5) / self.size

    @abc.abstractmethod
    def values(self, y: Point) -> FeatureValues:
        """The features at a point of the reference cube."""

    def mapped(self, x: Point) -> Point:
        """A point of the box, mapped to the reference cube."""
        return (x - (self.upper + self.lower) / 2) * (2 / (self.upper - self.lower))

    def __call__(self, x: Point) -> FeatureValues:
        return self.values(self.mapped(x))

    def combine(self, x: Point, coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
        """The C functions with these coefficients at a point, Σ cⱼ φⱼ(x), including the lifting."""
        return self(x) @ coefficients

    def to_cube(self, points: Points) -> tuple[Points, Vector]:
        """Points of the box, mapped to the reference cube, and the slope of that map along each axis."""
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        slopes = 2 / (upper - lower)
        return (points - (upper + lower) / 2) * slopes, slopes

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        """The derivatives `which`, as multi-indices, of all features at points: entry ``[a, i, j]`` is ∂^which[a] φⱼ at
        point i.

        The default is automatic differentiation, which is compiled for every size of the space.
        """
        return differentiated(self, points, which)

    def expand(self, points: Points, which: Sequence[Index], coefficients: Coefficients) -> Float[np.ndarray, "a n C"]:
        """The derivatives `which` at points of C functions of the space, Σ cⱼ φⱼ, without the lifting."""
        return self.jets(points, which) @ coefficients

    def lifting(self, points: Points, which: Sequence[Index], components: int) -> Float[np.ndarray, "a n C"] | None:
        """The derivatives `which` at points of the lifting, a fixed function that is added to every function of the
        space to satisfy hard conditions; None if there is none."""
        return None

    def check_arrays(self) -> None:
        """Raise unless the arrays of the features fit together, as those of a file may not; nothing is computed."""
        for field in dataclasses.fields(self):
            kinds: tuple[typing.Any, ...] = typing.get_args(field.type) or (field.type,)
            dims = {len(named) for kind in kinds if (named := getattr(kind, "dims", None)) is not None}
            value = getattr(self, field.name)
            if dims and value is not None and np.ndim(value) not in dims:
                raise FeaturesError(f"The array {field.name!r} of {type(self).__name__} has {np.ndim(value)} axes.")
        jax.eval_shape(self, jax.ShapeDtypeStruct((self.dim,), jnp.float64))

    @property
    def has_scale(self) -> bool:
        """Whether the frequencies can be multiplied by a factor."""
        return bool(self.scaled) or type(self).rescaled is not Features.rescaled

    def rescaled(self: Family, factor: float) -> Family:
        """The same features with all frequencies multiplied by `factor`."""
        if not self.has_scale:
            scalable = sorted(name for name, family in families().items() if family.scaled)
            raise FeaturesError(
                f"{type(self).__name__} has no scale. Choose among {', '.join(scalable)}, or a partition or "
                "concatenation of these."
            )

        fields = lambda features: [getattr(features, name) for name in self.scaled]
        return eqx.tree_at(fields, self, [factor * field for field in fields(self)])

    def orthonormal(self, on: Any, size: int | None = None) -> Any:
        """The features in a basis that is orthonormal, ordered by importance: a `Combined`.

        Args:
            on: a `Domain`, for an orthonormal basis in L² there; or a `Problem`, for one in the norm of its rows, so
                that its least-squares matrix is perfectly conditioned.
            size: how many functions are kept; by default all that are orthonormal to about 1e-11. Those that come after
                them are differences of nearly dependent features, with fewer digits.
        """
        from pdofm.discrete.orthonormal import orthonormal

        return orthonormal(self, on, size)

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


class Unmapped(Features):
    """Features in the coordinates of the domain itself: subclasses define ``__call__`` instead of ``values``."""

    def values(self, y: Point) -> FeatureValues:
        return self((y + 1) * ((self.upper - self.lower) / 2) + self.lower)

    @abc.abstractmethod
    def __call__(self, x: Point) -> FeatureValues:
        """The features at a point of the box."""


def families() -> dict[str, type[Features]]:
    """The families of this package by name: the classes of this room that are not abstract."""
    return {family.__name__: family for family in _defined if not inspect.isabstract(family)}


def differentiated(features: Features, points: Points, which: Sequence[Index]) -> Jets:
    """The derivatives `which` of features at points, by automatic differentiation."""
    if not which:
        return np.empty((0, len(points), features.size))
    sizes = two_sizes(batch_size(8 * len(which) * features.size))
    found = in_batches(partial(_differentiated, features, which=tuple(which)), (points,), sizes, axis=-1)
    return np.swapaxes(found, 1, 2)


@partial(jax.jit, static_argnames="which")
def _differentiated(features: Features, points: Array, which: tuple[Index, ...]) -> Array:
    """The derivatives, of shape (a, m, n)."""
    return jnp.moveaxis(jax.vmap(all_derivatives(features, which))(points), 0, -1)


def all_derivatives(function: Callable[[Array], Array], which: Sequence[Index]) -> Callable[[Array], Array]:
    """The function that returns the derivatives `which` of a function of one point, stacked, by automatic
    differentiation."""
    axes = [[axis for axis, k in enumerate(index) for _ in range(k)] for index in which]
    return lambda x: jnp.stack([operators.partial(function, *each)(x) for each in axes])


def check_count(what: str, value: int, least: int = 1, most: int = MOST_FEATURES) -> int:
    """The integer `value`; an error that names it if it is not an integer from `least` to `most`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise FeaturesError(f"{what} must be an integer of at least {least}; got {value!r}.")
    if value > most:
        raise FeaturesError(f"{what} must be at most {most}; got {value!r}. Use fewer features, or BoxPolynomials.")
    return int(value)


@lru_cache(maxsize=1024)
def polynomial_degree(size: int, dim: int) -> float:
    """The (real) total degree k at which the polynomials in `dim` variables have dimension `size`: C(k + d, d) = size.

    It measures how finely that many features can resolve a domain, independently of the dimension.
    """
    low, high = 0.0, float(max(size, 1))
    for _ in range(60):
        k = (low + high) / 2
        low, high = (k, high) if prod((k + i) / i for i in range(1, dim + 1)) < size else (low, k)
    return high
