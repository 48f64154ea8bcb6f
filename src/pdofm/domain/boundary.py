"""Boundaries: smooth pieces with outward normals, gathered into parts on which conditions hold."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Mask, Normals, Points, Vector
from pdofm.deprecation import renamed
from pdofm.errors import DomainError
from pdofm.numerics.sampling import UnitPoints, check_request, cluster, draw, generator

Kept = Float[np.ndarray, "kept d"]

Chart = Callable[[UnitPoints], tuple[Points, Normals]]
"""A map from parameters in the unit cube to points of a boundary and their outward normals."""

Keep = Callable[[Points, Normals], Mask]
"""Tells which points of a boundary, given with their outward normals, belong to it."""


@dataclass(frozen=True, eq=False)
class Piece:
    """One smooth piece of a boundary: the image of the unit cube under a chart, less what `keep` rejects.

    `chart` maps parameters `(n, dim)` to points and unit outward normals `(n, d)`, and preserves the measure up to a
    constant factor; a chart of one parameter must also accept values slightly outside [0, 1]. `ends` says of each
    parameter whether it has ends (that of a circle has none). `keep` is used only with two or more parameters; curves
    are cut exactly instead (see `trim`). `is_named` says whether the name was given by the user; such names may occur
    more than once.
    """

    name: str
    measure: float
    ends: tuple[bool, ...]
    chart: Chart
    keep: Keep | None = None
    is_named: bool = False

    @property
    def dim(self) -> int:
        """The number of parameters; a piece without parameters is a single point, of measure 1."""
        return len(self.ends)

    def sample(self, n: int, sampling: str, rng: np.random.Generator) -> tuple[Points, Normals]:
        """n points, uniform in the measure of the piece, with their outward normals; a single point if `dim` is 0."""
        name = f"the piece {self.name!r}"
        points, normals = draw(n, self.dim, sampling, rng, lambda u: self.place(u, sampling, rng), name)
        return points, normals

    def place(self, u: UnitPoints, sampling: str, rng: np.random.Generator) -> tuple[Points, Normals]:
        """The points and normals at parameters `u` `(n, dim)`, without rejected ones; for the sampling "clustered" they
        move towards the ends of the parameters. Only pieces that reject points at random use `rng`."""
        if sampling == "clustered":
            u = np.where(self.ends, cluster(u), u)
        return self.filtered(*self.chart(u))

    def filtered(self, points: Points, normals: Normals) -> tuple[Kept, Kept]:
        """The points that `keep` accepts, with their normals."""
        if self.keep is None:
            return points, normals
        kept = self.keep(points, normals)
        return points[kept], normals[kept]


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """A part of a boundary, or the space at one time, on which a condition can hold."""

    pieces: tuple[Piece, ...]
    has_time: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pieces, each once."""
        return tuple(dict.fromkeys(piece.name for piece in self.pieces))

    @property
    def measure(self) -> float:
        """Its length or area; the number of points for the ends of an interval."""
        return float(sum(piece.measure for piece in self.pieces))

    @renamed(kind="sampling")
    def sample(self, n: int, sampling: str = "sobol", key: Any = 0, *, least: float = 0.0) -> tuple[Points, Normals]:
        """Points `(n, d)` and their unit outward normals `(n, d)`, distributed over the pieces in proportion to their
        measures, with at least one point in each, and at least the fraction `least` of an equal share.

        There can be more than n points (for a grid, or if there are more pieces than points), or fewer (if pieces are
        single points).
        """
        check_request(n, sampling)
        rng, counts = generator(key), self.shares(n, least)
        samples = [piece.sample(count, sampling, rng) for piece, count in zip(self.pieces, counts, strict=True)]
        points, normals = (np.concatenate(arrays) for arrays in zip(*samples, strict=True))
        return points, normals

    def shares(self, n: int, least: float = 0.0) -> list[int]:
        """How many of n points are on each piece: in proportion to its measure, but at least the fraction `least` of an
        equal share. A closed piece, the circle or the sphere around a hole, counts like all pieces with ends together.
        """
        measures = np.array([piece.measure for piece in self.pieces])
        closed = np.array([not all(piece.ends) for piece in self.pieces])
        parts = np.where(closed, np.count_nonzero(closed) + (not closed.all()), len(closed))
        return _shares(n, np.maximum(measures, least * measures.sum() / parts))

    def where(self, predicate: Callable[..., Any]) -> "Part":
        """The part where `predicate(x)` holds, for instance `lambda x: x[0] < 0`; in space-time `predicate(x, t)`.

        The predicate takes one point and is vmapped. Curves are cut exactly where its value changes. Surfaces are
        sampled by rejection, and their measure is accurate to about 1e-3.
        """
        from pdofm.domain.trim import trim

        def keep(points: Points, normals: Normals) -> Mask:
            return _evaluate(predicate, points, self.has_time)

        pieces = tuple(kept for piece in self.pieces for kept in trim(piece, keep))
        if not pieces:
            raise DomainError(
                f"The predicate holds nowhere on {self!r}; expected it to hold somewhere. "
                "Check its sign, or plot the points of part.sample(100)."
            )
        return Part(pieces, self.has_time)

    def __or__(self, other: "Part") -> "Part":
        """The union of two parts; pieces that belong to both are counted twice."""
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


def _dim(part: Part) -> int:
    return part.pieces[0].chart(np.full((1, part.pieces[0].dim), 0.5))[0].shape[1]


def _shares(n: int, measures: Vector) -> list[int]:
    """n split in proportion to the measures, at least 1 each; the sum is n unless there are more than n measures."""
    ideal = n * measures / measures.sum()
    counts = np.maximum(np.floor(ideal).astype(int), 1)
    while counts.sum() < n:
        counts[np.argmax(ideal - counts)] += 1
    while counts.sum() > n and counts.max() > 1:
        counts[np.argmin(np.where(counts > 1, ideal - counts, np.inf))] -= 1
    return [int(count) for count in counts]


def _evaluate(predicate: Callable[..., Any], points: Points, has_time: bool) -> Mask:
    """The value of a predicate at each point; errors inside it are explained."""
    import jax
    import jax.numpy as jnp

    signature = "predicate(x, t)" if has_time else "predicate(x)"
    with jax.ensure_compile_time_eval():  # numbers also where a problem is made while JAX traces, as in a family
        x = jnp.asarray(points)
        arguments = (x[:, :-1], x[:, -1]) if has_time else (x,)
        try:
            inspect.signature(predicate).bind(*arguments)
        except TypeError as error:
            raise DomainError(
                f"The predicate cannot be called as {signature}: {error}. Define it with these arguments."
            ) from error
        try:
            mask = np.asarray(jax.vmap(predicate)(*arguments))
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
            raise DomainError(
                f"The predicate branches on the value of a point, but {signature} must work under jax.vmap. "
                "Write & | ~ instead of and, or, not; (a < b) & (b < c) instead of a < b < c; jnp.where instead of if; "
                "and jnp instead of np."
            ) from error
    if mask.shape != (len(points),) or mask.dtype != np.bool_:
        raise DomainError(
            f"The predicate returned {mask.dtype} of shape {mask.shape[1:]} at a point; expected a single bool. "
            "Return a comparison such as x[0] < 0."
        )
    return mask
