"""Continuity across the interfaces between the cells of a grid, each of which has its own features."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm._types import Vector
from pdofm.calculus.operators import dt, partial
from pdofm.calculus.terms import CONDITION_WEIGHT, Difference, Term, joined
from pdofm.domain import Domain, Part, Piece, trim


def interface_terms(lower: Vector, upper: Vector, grid: tuple[int, ...], domain: Domain) -> tuple[Term, ...]:
    """Continuity of the value and of the normal derivative across the faces of cells inside a domain, one term per
    axis."""
    # A shift by a few units of rounding selects the cell on one side of a face, and has no other effect.
    shift = 8 * float(np.finfo(float).eps) * float(np.max(np.abs([lower, upper])))
    terms = []
    for axis in range(len(grid)):
        planes = _planes(lower, upper, grid, axis)
        pieces = tuple(piece for plane in planes for piece in trim(plane, lambda at, normals: domain.contains(at)))
        if pieces:
            above, below = (tuple(sign * shift * (i == axis) for i in range(len(grid))) for sign in (1, -1))
            lhs = Difference(_ValueAndSlope(axis), (above, below))
            terms.append(Term(f"interface-x{axis}", lhs, 0.0, Part(pieces, domain.has_time), CONDITION_WEIGHT))
    return tuple(terms)


@dataclass(frozen=True)
class _ValueAndSlope:
    """The left side of continuity: all components and their derivatives along an axis."""

    is_linear: ClassVar[bool] = True

    axis: int

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        def components(*a: Array) -> Array:
            return joined(u(*a))

        slope = dt(components) if self.axis == args[0].size else partial(components, self.axis)
        return jnp.concatenate([components(*args), slope(*args)])


def _planes(lower: Vector, upper: Vector, grid: tuple[int, ...], axis: int) -> list[Piece]:
    """The planes between the cells of the grid that are normal to an axis."""
    sides = np.delete(upper - lower, axis)

    def plane(i: int) -> Piece:
        height = lower[axis] + (upper[axis] - lower[axis]) * i / grid[axis]
        normal = np.eye(len(grid))[axis]

        def chart(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            points = np.insert(np.delete(lower, axis) + sides * u, axis, height, axis=1)
            return points, np.broadcast_to(normal, points.shape).copy()

        return Piece(f"interface x{axis} {i}", float(np.prod(sides)), (True,) * (len(grid) - 1), chart)

    return [plane(i) for i in range(1, grid[axis])]
