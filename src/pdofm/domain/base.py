"""What every domain offers; and its boundary: smooth pieces with a chart, gathered into parts that conditions use."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.errors import DomainError, unknown_name
from pdofm.numerics.sampling import UnitPoints, check_request, cluster, draw, generator

Numbers = Sequence[Any] | np.ndarray | Array | float | int
"""What users may give for a point or points."""

Kept = Float[np.ndarray, "kept d"]
Chart = Callable[[UnitPoints], tuple[Points, Normals]]
Keep = Callable[[Points, Normals], Mask]

# Interior points stay this far (times the size of the domain) from the boundary.
MARGIN = 1e-12
# Depth (of half the size) within which clustered points of a domain that is no box reach their full density.
_CLUSTER_DEPTH = 0.01


@dataclass(frozen=True, eq=False)
class Piece:
    """One smooth piece of a boundary: a measure-preserving chart of the unit cube, less what `keep` rejects.

    `chart` maps parameters `(n, dim)` to points and unit outward normals `(n, d)`; a chart of one parameter also takes
    values a little outside [0, 1]. `ends` says of each parameter whether it has ends (a circle's has none).
    `keep` is used with two parameters or more; curves are cut exactly instead (see `trim`).
    """

    name: str
    measure: float
    ends: tuple[bool, ...]
    chart: Chart
    keep: Keep | None = None

    @property
    def dim(self) -> int:
        """The number of parameters; a piece without parameters is a point, of measure 1."""
        return len(self.ends)

    def sample(self, n: int, kind: str, rng: np.random.Generator) -> tuple[Points, Normals]:
        """n points, uniform in the measure of the piece, and their outward normals; one of each if `dim` is 0."""
        points, normals = draw(n, self.dim, kind, rng, lambda u: self.place(u, kind, rng), f"the piece {self.name!r}")
        return points, normals

    def place(self, u: UnitPoints, kind: str, rng: np.random.Generator) -> tuple[Points, Normals]:
        """The points and normals that remain of parameters `u` `(n, dim)`; clustered towards ends, if there are any."""
        if kind == "clustered":
            u = np.where(self.ends, cluster(u), u)
        return self.filtered(*self.chart(u))

    def filtered(self, points: Points, normals: Normals) -> tuple[Kept, Kept]:
        """Those of the points that `keep` keeps."""
        if self.keep is None:
            return points, normals
        kept = self.keep(points, normals)
        return points[kept], normals[kept]


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Pieces of a boundary (or the space at one time) on which a condition can be put."""

    pieces: tuple[Piece, ...]
    has_time: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pieces, each once."""
        return tuple(dict.fromkeys(piece.name for piece in self.pieces))

    @property
    def measure(self) -> float:
        """Length, area, ...; the number of points for the ends of an interval."""
        return float(sum(piece.measure for piece in self.pieces))

    def sample(self, n: int, kind: str = "sobol", key: Any = 0) -> tuple[Points, Normals]:
        """Points `(n, d)` and unit outward normals `(n, d)`, shared among the pieces by measure, at least one each.

        There can be more than n points (a grid; fewer points than pieces) and fewer (pieces that are single points).
        """
        check_request(n, kind)
        rng = generator(key)
        counts = _shares(n, np.array([piece.measure for piece in self.pieces]))
        samples = [piece.sample(count, kind, rng) for piece, count in zip(self.pieces, counts, strict=True)]
        points, normals = (np.concatenate(arrays) for arrays in zip(*samples, strict=True))
        return points, normals

    def where(self, predicate: Callable[..., Any]) -> "Part":
        """What lies where `predicate(x)` (on a space-time `predicate(x, t)`) holds, e.g. `lambda x: x[0] < 0`.

        The predicate takes one point and is vmapped. Curves are cut exactly where it changes; surfaces are sampled
        by rejection and their measure is accurate to about 1e-3.
        """
        from pdofm.domain.csg import trim

        def keep(points: Points, normals: Normals) -> Mask:
            return _evaluate(predicate, points, self.has_time)

        pieces = tuple(kept for piece in self.pieces for kept in trim(piece, keep))
        if not pieces:
            raise DomainError(
                f"The predicate holds nowhere on {self!r}; expected it to keep some of it. "
                "Check its sign, or plot the points of part.sample(100)."
            )
        return Part(pieces, self.has_time)

    def __or__(self, other: "Part") -> "Part":
        """Both parts together (what they share is counted twice)."""
        if not isinstance(other, Part):
            return NotImplemented
        if self.has_time != other.has_time or _dim(self) != _dim(other):
            raise DomainError(
                f"Cannot join {self!r} (points of {_dim(self)} coordinates) with {other!r} ({_dim(other)}); "
                "expected two parts of one domain."
            )
        return Part(self.pieces + other.pieces, self.has_time)

    def __repr__(self) -> str:
        return f"Part({', '.join(self.names)}; measure {self.measure:.6g})"


class Domain(ABC):
    """A bounded open set of R^dim with a boundary in pieces. Immutable; compared by identity.

    `lower`, `upper` `(dim,)` are the bounding box, `measure` is the length, area or volume.
    """

    lower: Vector
    upper: Vector
    has_time: bool = False
    """Whether the last coordinate is time."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__ or hasattr(type(self), name):
            raise AttributeError(f"{self!r} is immutable: cannot set {name!r}. Build a new domain instead.")
        super().__setattr__(name, value)

    @property
    @abstractmethod
    def measure(self) -> float: ...

    @property
    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]:
        """The smooth pieces of the boundary."""

    @abstractmethod
    def _level(self, x: Points) -> Vector: ...

    @property
    def is_box(self) -> bool:
        """Whether the domain fills its bounding box."""
        return False

    @cached_property
    def dim(self) -> int:
        return len(self.lower)

    @cached_property
    def size(self) -> float:
        """The longest side of the bounding box."""
        return float(np.max(self.upper - self.lower))

    def level(self, x: Numbers) -> Vector:
        """Signed distance to the boundary at points `(n, dim)`: > 0 inside, < 0 outside, 0 on it to rounding.

        For combinations it is the min or max of signed distances: the sign is right (but the level is 0 also on a
        face that two united domains share) and the size is at most the distance.
        """
        points = np.asarray(x, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise DomainError(
                f"Points of shape {points.shape} given to {self!r}; expected (n, {self.dim}), one point a row."
            )
        return self._level(points)

    def contains(self, x: Numbers, tol: float | int = 0.0) -> Mask:
        """Whether `level > -tol` at points `(n, dim)`: strictly inside if tol = 0, the boundary included if tol > 0."""
        return self.level(x) > -tol

    @property
    def boundary(self) -> Part:
        """The whole boundary (of a space-time: the lateral one)."""
        return Part(self.pieces, self.has_time)

    def part(self, *names: str) -> Part:
        """The pieces with these names."""
        known = self.boundary.names
        if not names:
            raise DomainError(f"part() was given no name; expected some of {', '.join(known)}.")
        for name in names:
            if name not in known:
                raise unknown_name("part", name, known)
        return Part(tuple(piece for piece in self.pieces if piece.name in names), self.has_time)

    @property
    def vanishing(self) -> tuple[str, tuple[Vector, ...]]:
        """What defines a smooth function that vanishes on the boundary only: ("box", corners), ("ball" or "shell",
        (center, radii)); an error for domains that have no simple one."""
        raise DomainError(
            f"{self!r} provides no smooth function that vanishes on its boundary; expected an interval, a box, a disk, "
            "a ball, an annulus or a shell. State the condition with Dirichlet instead."
        )

    def face(self, axis: int, side: int) -> Part:
        """The face `x[axis] = lower` (side 0) or `upper` (side 1) of a box, or what is left of it in a combination."""
        if side not in (0, 1):
            raise DomainError(f"The side of a face is {side!r}; expected 0 (lower) or 1 (upper).")
        name = f"x{axis}={('lower', 'upper')[side]}"
        known = self.boundary.names
        if name not in known:
            raise DomainError(
                f"{self!r} has no face {name!r}; its parts are {', '.join(known)}. "
                "Use part(name) or boundary.where(predicate)."
            )
        return self.part(name)

    def sample(self, n: int, kind: str = "sobol", key: Any = 0) -> Points:
        """Points `(n, dim)` strictly inside, by rejection from the bounding box; at least n for `kind="grid"`.

        `"clustered"` is the product of Chebyshev densities on a box; elsewhere the density grows like
        1 / sqrt(distance to the boundary), up to a cap.
        """
        rng = generator(key)
        return draw(n, self.dim, kind, rng, lambda u: (self.place(u, kind, rng),), repr(self))[0]

    def place(self, u: UnitPoints, kind: str, rng: np.random.Generator) -> Points:
        """The interior points that remain of unit points `(n, dim)`."""
        clustered = kind == "clustered"
        points = self.candidates(cluster(u) if clustered and self.is_box else u)
        level = self.level(points)
        inside = level > MARGIN * self.size
        if clustered and not self.is_box:
            depth = np.maximum(level / (0.5 * self.size), _CLUSTER_DEPTH)
            inside &= rng.random(len(points)) < np.sqrt(_CLUSTER_DEPTH / depth)
        return points[inside]

    def candidates(self, u: UnitPoints) -> Points:
        """A map of the unit cube with constant density whose image covers the domain."""
        return between(self.lower, self.upper, u)

    def __sub__(self, other: "Domain") -> "Domain":
        from pdofm.domain.csg import Difference

        return Difference(self, other) if isinstance(other, Domain) else NotImplemented

    def __or__(self, other: "Domain") -> "Domain":
        from pdofm.domain.csg import Union

        return Union(self, other) if isinstance(other, Domain) else NotImplemented

    def __and__(self, other: "Domain") -> "Domain":
        from pdofm.domain.csg import Intersection

        return Intersection(self, other) if isinstance(other, Domain) else NotImplemented


def between(start: Any, end: Any, u: Any) -> Any:
    """The point at fraction u of the way from start to end; exact at both ends, unlike start + u (end - start)."""
    return start * (1 - u) + end * u


def finite_vector(value: Numbers, what: str, dim: int | None = None) -> Vector:
    """`value` as a read-only array of finite numbers, of length `dim` if given; else a DomainError about `what`."""
    expected = "a list of numbers" if dim is None else f"{dim} numbers"
    try:
        vector = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError(f"The {what} is {value!r}; expected {expected}.") from error
    if vector.ndim != 1 or vector.size == 0 or dim not in (None, vector.size):
        raise DomainError(f"The {what} has shape {vector.shape}; expected {expected}.")
    if not np.isfinite(vector).all():
        raise DomainError(f"The {what} is {value!r}; expected finite numbers.")
    vector.setflags(write=False)
    return vector


def show(vector: Vector) -> str:
    """A short text of a vector for `repr`."""
    return f"[{', '.join(f'{value:.6g}' for value in vector)}]"


def _dim(part: Part) -> int:
    return part.pieces[0].chart(np.full((1, part.pieces[0].dim), 0.5))[0].shape[1]


def _shares(n: int, measures: Vector) -> list[int]:
    """n shared in proportion to the measures, at least one each, and n in all where that allows it."""
    ideal = n * measures / measures.sum()
    counts = np.maximum(np.floor(ideal).astype(int), 1)
    while counts.sum() < n:
        counts[np.argmax(ideal - counts)] += 1
    while counts.sum() > n and counts.max() > 1:
        counts[np.argmin(np.where(counts > 1, ideal - counts, np.inf))] -= 1
    return [int(count) for count in counts]


def _evaluate(predicate: Callable[..., Any], points: Points, has_time: bool) -> Mask:
    """The predicate at each point, through jax.vmap."""
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(points)
    arguments = (x[:, :-1], x[:, -1]) if has_time else (x,)
    signature = "predicate(x, t)" if has_time else "predicate(x)"
    try:
        inspect.signature(predicate).bind(*arguments)
    except TypeError as error:
        raise DomainError(
            f"The predicate cannot be called as {signature}: {error}. Give it these arguments."
        ) from error
    try:
        mask = np.asarray(jax.vmap(predicate)(*arguments))
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise DomainError(
            f"The predicate branches on the value of a point, but {signature} must work under jax.vmap. "
            "Write & | ~ instead of and, or, not and a < b < c; jnp.where instead of if; jnp instead of np."
        ) from error
    if mask.shape != (len(points),) or mask.dtype != np.bool_:
        raise DomainError(
            f"The predicate returned {mask.dtype} of shape {mask.shape[1:]} at a point; expected one bool. "
            "Return a comparison such as x[0] < 0."
        )
    return mask
