"""Spaces made of the user's own functions, and of other spaces."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Coefficients, FeatureValues, Point, Points, Vector
from pdofm.calculus.jets import Index, Jet, closure, product
from pdofm.domain import Domain
from pdofm.errors import FeaturesError
from pdofm.features.base import Features, Jets, Unmapped
from pdofm.features.box import Corner, HasBox, box_of, derived
from pdofm.features.lifting import Lifting, as_lifting, lifting_at, lifting_jets
from pdofm.features.vanishing import vanishing, vanishing_jet
from pdofm.features.wrapper import Wrapper


class Functions(Unmapped):
    """Plain functions as features: ``Functions(domain, [f, g])`` with ``f(x)`` a scalar at one point of the domain.

    They hold what is known about a solution, such as r^(2/3) sin(2θ/3) at a re-entrant corner, and are joined with a
    smooth basis by `Concatenate`. The functions receive the coordinates of the domain (in space-time the time is the
    last one), and JAX must be able to differentiate them at all collocation points.
    """

    tied_to: ClassVar[str] = "the coordinates that its functions are written in. State them anew for the other domain"
    unsaved: ClassVar[str] = (
        "Functions are code, which a file must not run: save the other parts and join them again after loading."
    )

    lower: Corner
    upper: Corner
    functions: tuple[Callable[[Array], Array], ...] = eqx.field(static=True)

    def __init__(self, domain: HasBox, functions: Sequence[Callable[[Array], Array]]):
        self.lower, self.upper = box_of(domain)
        self.functions = tuple(functions)
        if not self.functions or not all(callable(f) for f in self.functions):
            raise FeaturesError(f"functions must be a list of functions of one point; got {functions!r}.")

    @property
    def size(self) -> int:
        return len(self.functions)

    @property
    def ranks(self) -> Float[np.ndarray, " m"]:
        return np.zeros(self.size)

    def __call__(self, x: Point) -> FeatureValues:
        found = [jnp.asarray(f(x), dtype=x.dtype) for f in self.functions]
        for f, value in zip(self.functions, found, strict=True):
            if value.shape != ():
                raise FeaturesError(
                    f"The function {getattr(f, '__name__', f)!r} returned shape {value.shape} at a point; expected a "
                    "scalar. Return one number, or list several functions."
                )
        return jnp.stack(found)


class Concatenate(Wrapper):
    """All features of several spaces in one basis, for instance global and local ones, or smooth and singular ones."""

    parts: tuple[Features, ...]

    def __init__(self, *parts: Features):
        if not parts or not all(isinstance(part, Features) for part in parts):
            raise FeaturesError(f"Concatenate takes features, as in Concatenate(a, b); got {parts!r}.")
        dims = {part.dim for part in parts}
        if len(dims) > 1:
            raise FeaturesError(f"Features in one basis must have one dimension; got {sorted(dims)}.")
        if any(part.imposes == "value" for part in parts):
            raise FeaturesError("Features in one basis cannot impose conditions: use HardDirichlet(Concatenate(…), …).")
        self.parts = tuple(parts)

    def check_arrays(self) -> None:
        if not self.parts or len({part.dim for part in self.parts}) > 1:
            raise FeaturesError("Features in one basis must have one dimension.")
        for part in self.parts:
            part.check_arrays()

    @property
    def wrapped(self) -> tuple[Features, ...]:
        return self.parts

    @derived
    def lower(self) -> Corner:
        """The lower corner of the intersection of all boxes."""
        return np.max([np.asarray(part.lower) for part in self.parts], axis=0)

    @derived
    def upper(self) -> Corner:
        """The upper corner of the intersection of all boxes."""
        return np.min([np.asarray(part.upper) for part in self.parts], axis=0)

    def __call__(self, x: Point) -> FeatureValues:
        return self.ordered([part(x) for part in self.parts])

    def ordered(self, values: Sequence[Array]) -> FeatureValues:
        """The values of all features from those of each part."""
        return jnp.concatenate(values)[self._order()]

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        found = np.empty((len(which), self.size, len(points)))
        for part, here in self.places():
            found[:, here] = np.swapaxes(part.jets(points, which), 1, 2)
        return np.swapaxes(found, 1, 2)

    def expand(self, points: Points, which: Sequence[Index], coefficients: Coefficients) -> Float[np.ndarray, "a n C"]:
        found = np.zeros((len(which), len(points), coefficients.shape[1]))
        for part, here in self.places():
            found += part.expand(points, which, coefficients[here])
        return found

    def _order(self) -> np.ndarray:
        """The features of all parts in the order of their ranks."""
        return np.argsort(np.concatenate([part.ranks for part in self.parts]), kind="stable")

    def places(self) -> list[tuple[Features, np.ndarray]]:
        """Each part with the positions of its features in the basis."""
        ends = np.cumsum([part.size for part in self.parts])
        return list(zip(self.parts, np.split(np.argsort(self._order()), ends[:-1]), strict=True))


class HardDirichlet(Wrapper):
    """Features that satisfy ``u = value`` on the boundary exactly: u = value + d(x) Σ cⱼ φⱼ, with d = 0 on the
    boundary.

    `value` is the lifting: a number, or a function on the whole domain that takes the boundary values; for a system
    several numbers, one per component, or a function that returns them. The domain must provide a smooth d: intervals,
    boxes, disks, balls, annuli, shells, and space-times over these do.
    """

    inner: Features
    lower: Corner
    upper: Corner
    corners: tuple[Float[Array | np.ndarray, " s"], ...]
    value: Any = eqx.field(static=True)
    shape: str = eqx.field(static=True)
    has_time: bool = eqx.field(static=True)

    def __init__(self, inner: Features, domain: Domain, value: Lifting = 0.0):
        if inner.dim != domain.dim:
            raise FeaturesError(f"The features have {inner.dim} dimensions, the domain {domain!r} has {domain.dim}.")
        if inner.imposes == "value":
            raise FeaturesError(
                f"The features, {type(inner).__name__}, impose values already. Use their inner features."
            )
        self.inner = inner
        self.lower, self.upper = np.asarray(inner.lower), np.asarray(inner.upper)
        self.shape, self.corners = domain.vanishing
        self.value = as_lifting(value)
        self.has_time = domain.has_time

    @property
    def wrapped(self) -> tuple[Features, ...]:
        return (self.inner,)

    @property
    def imposes(self) -> str | None:
        return "value"

    @property
    def imposed(self) -> tuple[Any, ...] | None:
        """What is imposed, and where, as something to compare and to keep; None for values that are a function."""
        if callable(self.value):
            return None
        return self.shape, self.has_time, self.value, *(np.asarray(corner).tobytes() for corner in self.corners)

    def on(self, domain: HasBox) -> "HardDirichlet":
        """The inner features on the box of another domain, zero on its boundary, with the same lifting."""
        if not isinstance(domain, Domain):
            raise FeaturesError(
                f"HardDirichlet vanishes on the boundary of a domain, which {type(domain).__name__} does not have. "
                "Give a domain."
            )
        return HardDirichlet(self.inner.on(domain), domain, self.value)

    def distance(self, x: Point) -> Array:
        """The smooth function d, which is zero on the boundary in space (not at the first and the last time)."""
        return vanishing(self.shape, self.corners, x[:-1] if self.has_time else x)

    def __call__(self, x: Point) -> FeatureValues:
        return self.distance(x) * self.inner(x)

    def combine(self, x: Point, coefficients: Float[Array, "m C"]) -> Float[Array, " C"]:
        return self(x) @ coefficients + lifting_at(self.value, x, coefficients.shape[1], self.has_time)

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        below = closure(tuple(which))
        inner = np.swapaxes(self.inner.jets(points, below), 1, 2)
        found = np.empty((len(which), *inner.shape[1:]))
        _multiply(self._distance_jet(points, below), dict(zip(below, inner, strict=True)), which, found)
        return np.swapaxes(found, 1, 2)

    def expand(self, points: Points, which: Sequence[Index], coefficients: Coefficients) -> Float[np.ndarray, "a n C"]:
        below = closure(tuple(which))
        inner = self.inner.expand(points, below, coefficients)
        found = np.empty((len(which), *inner.shape[1:]))
        distance = {index: each[:, None] for index, each in self._distance_jet(points, below).items()}
        _multiply(distance, dict(zip(below, inner, strict=True)), which, found)
        return found

    def lifting(self, points: Points, which: Sequence[Index], components: int) -> Float[np.ndarray, "a n C"] | None:
        if self.value == 0.0:
            return None
        return lifting_jets(self.value, points, which, components, self.has_time)

    def _distance_jet(self, points: Points, which: Sequence[Index]) -> dict[Index, Vector]:
        """The derivatives of `distance` at points, without those that are zero everywhere."""
        space, time = (points[:, :-1], (0,)) if self.has_time else (points, ())
        dim = space.shape[1]
        within = [index[:dim] for index in which if index[dim:] == time]
        jet = vanishing_jet(self.shape, self.corners, space, within)
        return {(*index, *time): values for index, values in jet.items()}


def _multiply(f: Jet, g: Jet, which: Sequence[Index], found: np.ndarray) -> None:
    """Write the derivatives `which` of f g to `found`, one after the other."""
    jet = product(f, g, which)
    for out, index in zip(found, which, strict=True):
        out[...] = jet[index]
