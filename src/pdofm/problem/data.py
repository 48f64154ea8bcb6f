"""The data of a problem: the right sides of its terms."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Points, SpaceNormals
from pdofm.calculus.terms import Fields, Layout, LeftSide, Term, joined, known_fields
from pdofm.numerics.batches import POINTS_PER_CALL, in_batches
from pdofm.problem.conditions import call


@dataclass(frozen=True)
class Exact:
    """The exact solution. Equal ones share compiled functions."""

    functions: Any

    def fields(self, layout: Layout) -> Any:
        """The exact solution as the functions of a problem receive the unknowns."""
        return self.functions if callable(self.functions) else known_fields(dict(self.functions), layout)


@dataclass(frozen=True)
class ExactPair:
    """The exact solution on both sides of an interface between two regions."""

    regions: tuple[str, str]
    sides: tuple[Exact, Exact]

    def fields(self, layout: Layout) -> Fields:
        """The exact solution as conditions on the interface receive the unknowns."""
        return Fields({name: side.fields(layout) for name, side in zip(self.regions, self.sides, strict=True)})


@dataclass(frozen=True)
class Manufactured:
    """The right side that makes a given function the exact solution: the left side of that function."""

    lhs: LeftSide
    exact: Exact | ExactPair
    numbers: ClassVar[None] = None

    def __call__(self, layout: Layout, args: tuple[Array, ...], normal: Array) -> Array:
        u = self.exact.fields(layout)
        return self.lhs(u, u, args, normal)


@dataclass(frozen=True)
class Given:
    """Data that the user gave, as a function or as a tuple of numbers. Equal ones share compiled functions."""

    value: Any

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The values at every point, if they are constants."""
        return None if callable(self.value) else self.value

    def __call__(self, layout: Layout, args: tuple[Array, ...], normal: Array) -> Array:
        if not callable(self.value):
            return jnp.array(self.value)
        # Behind the normal there may be parameters.
        return layout.realified(joined(call(self.value, args, normal[: len(args[0])])))


@dataclass(frozen=True)
class Stationary:
    """A function of space, such as the solution of a stationary problem, as one of space and time."""

    function: Any

    def __call__(self, x: Array, t: Array) -> Any:
        return self.function(x)


def in_time(term: Term, layout: Layout) -> Term:
    """The term with data that take the time: the solution of a stationary problem has the same values at all times."""
    of = getattr(getattr(term.rhs, "problem", None), "layout", None)
    is_stationary = isinstance(of, Layout) and not of.has_time
    return replace(term, rhs=Stationary(term.rhs)) if layout.has_time and is_stationary else term


class Varying:
    """A right side that depends on parameters; `pdofm.problem.parametric` has the only kind."""

    numbers: ClassVar[None] = None

    def __call__(self, layout: Layout, args: tuple[Array, ...], normal: Array) -> Array:
        raise NotImplementedError


def remedy_for(value: Any) -> str:
    """What to do about data that are no real numbers."""
    if isinstance(value, str):
        return ". Write it without quotes"
    return ". For complex data give Problem(…, dtype=complex)" if np.iscomplexobj(value) else ""


RightSide = Manufactured | Given | Varying
"""The right side of a term as a function of a point; `numbers` holds its values if they are constants."""


def at_points(right_side: RightSide, layout: Layout, points: Array | np.ndarray, normals: Array | np.ndarray) -> Array:
    """A right side at points, without compilation: the better choice for a function that is evaluated only once."""
    return jax.vmap(lambda z, normal: right_side(layout, layout.arguments(z), normal))(points, normals)


_compiled = jax.jit(at_points, static_argnames=("right_side", "layout"))


def values_at(right_side: RightSide, layout: Layout, points: Points, normals: SpaceNormals) -> Float[np.ndarray, "n k"]:
    """A right side at points. Functions are compiled, once; constants need no evaluation."""
    if right_side.numbers is not None:
        return np.broadcast_to(np.array(right_side.numbers), (len(points), len(right_side.numbers)))
    return in_batches(partial(_compiled, right_side, layout), (points, normals), (POINTS_PER_CALL,))
