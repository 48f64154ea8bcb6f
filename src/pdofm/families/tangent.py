"""How the solution of a member changes with its parameters: the implicit function theorem for least squares.

At the solution c the scaled residual r(c, mu) of the equation and all conditions is as small as the space allows.
Differentiating r = 0 gives the equation for the derivative,

    A dc/dmu ≈ -∂r/∂mu,      A = ∂r/∂c,

a least-squares problem with the matrix that is factored already. For the gradient of a number J(c) one solve with the
transposed factors is enough, however many parameters there are:

    dJ/dmu = -(∂r/∂mu)ᵀ λ,      λ = (A⁺)ᵀ dJ/dc.

What is left of the residual at c is neglected: it enters the derivative of the discrete solution, but not that of the
solution of the equation, which is what is wanted.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pdofm._types import Vector
from pdofm.calculus.formal import linearised
from pdofm.calculus.jets import Index
from pdofm.calculus.terms import Layout, LeftSide
from pdofm.discrete.collocate import Block
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import derivatives
from pdofm.discrete.leftsides import local_sides, symbol_at
from pdofm.features import Features
from pdofm.numerics.lstsq import Factorization
from pdofm.problem.interface import layout_of
from pdofm.problem.parametric import Data, Parameters, Parametric
from pdofm.solving.methods import ITERATED, Outcome

FEW_PARAMETERS = 16
"""With at most as many parameters all columns of ∂r/∂mu are computed at once and kept."""

Rows = Float[np.ndarray, "k rows"]
Changes = Float[np.ndarray, "k parameters"]


class Tangent:
    """The derivative of the coefficients of one member with respect to the parameters.

    Args:
        sensitivity: ∂r/∂mu, the derivative of the scaled residual at fixed coefficients.
    """

    def __init__(self, factorization: Factorization, sensitivity: "Sensitivity"):
        self._factorization, self._sensitivity = factorization, sensitivity

    def missed(self, changes: Changes) -> Float[np.ndarray, " k"]:
        """The residuals that the space leaves in the equations for the derivatives along k changes, relative to their
        right-hand sides."""
        rows = self._sensitivity.forward(changes)
        size = np.linalg.norm(rows, axis=1)
        return self._factorization.missed(np.asfortranarray(rows.T)) / np.where(size > 0, size, 1.0)

    def forward(self, changes: Changes) -> Float[np.ndarray, "k columns"]:
        """The changes of the coefficients for k changes of the parameters."""
        return -self._factorization.solve(np.asfortranarray(self._sensitivity.forward(changes).T)).T

    def transposed(self, wanted: Float[np.ndarray, "k columns"]) -> Changes:
        """The gradients of k linear functions of the coefficients."""
        return -self._sensitivity.transposed(self._factorization.adjoint(np.asfortranarray(wanted.T)).T)


def factored(discretisation: Discretisation, outcome: Outcome) -> tuple[Factorization, Vector]:
    """The factored matrix at the solution, with the scales of its rows: that of the solve, if it is still the one."""
    if outcome.scales is not None and len(outcome.scales) == len(outcome.factorization.reflectors):
        return outcome.factorization, outcome.scales
    system = discretisation.system(outcome.coefficients, discretisation.blocks, fold=False)
    return ITERATED.factor(system.A, overwrite=True), system.scales


class Sensitivity:
    """∂r/∂mu as a linear map, from one weighted residual per block, a function of the parameters."""

    def __init__(self, pieces: list["Piece"], size: int):
        self._pieces, self._size = pieces, size

    @cached_property
    def matrix(self) -> Float[np.ndarray, "rows parameters"]:
        """All columns."""
        return self._forward(np.eye(self._size)).T

    def forward(self, changes: Changes) -> Rows:
        """The changes of the residual."""
        return changes @ self.matrix.T if self._size <= FEW_PARAMETERS else self._forward(changes)

    def transposed(self, rows: Rows) -> Changes:
        """The gradients of weighted sums of the residual."""
        if self._size <= FEW_PARAMETERS:
            return rows @ self.matrix
        found = np.zeros((len(rows), self._size))
        for piece in self._pieces:
            found += piece.transposed(rows[:, piece.rows])
        return found

    def _forward(self, changes: Changes) -> Rows:
        return np.concatenate([piece.forward(changes) for piece in self._pieces], axis=1)


class Piece:
    """The part of a sensitivity that belongs to one block; zero, if it does not depend on the parameters."""

    def __init__(self, rows: slice, scales: Vector, arguments: Any, functions: Any):
        self.rows, self._scales, self._arguments, self._functions = rows, scales, arguments, functions

    def forward(self, changes: Changes) -> Rows:
        if self._functions is None:
            return np.zeros((len(changes), len(self._scales)))
        moved = [np.asarray(self._functions[0](*self._arguments, change)).reshape(-1) for change in changes]
        return np.stack(moved) * self._scales

    def transposed(self, rows: Rows) -> Changes | float:
        if self._functions is None:
            return 0.0
        return np.stack([np.asarray(self._functions[1](*self._arguments, row)) for row in rows * self._scales])


def traced(
    parametric: Parametric, discretisation: Discretisation, outcome: Outcome, mu: Parameters, scales: Vector
) -> Sensitivity | None:
    """The sensitivity by differentiation of the user's functions; None if a left side looks at u at other points."""
    pieces, start = [], 0
    features, c = discretisation.features, outcome.coefficients
    for block in discretisation.blocks:
        symbol = symbol_at(discretisation.problem.layout, block.term.lhs, block)
        count = block.equations * symbol.entries
        rows = slice(start, start + count)
        start += count
        if not isinstance(block.right_side, Data):
            pieces.append(Piece(rows, scales[rows], (), None))
            continue
        found = _arguments(parametric, block, features, c)
        if found is None:
            return None
        functions, arguments = found
        pieces.append(Piece(rows, scales[rows], (mu, *arguments), functions))
    return Sensitivity(pieces, len(mu))


def _arguments(parametric: Parametric, block: Block, features: Features, c: np.ndarray) -> Any:
    layout = layout_of(block.term, parametric.example.layout)
    normals, spaces = block.normals[:, : parametric.space_dim], features.sides(block.term)
    shapes, arguments = [], []
    for side in local_sides(layout, block):
        if not side.symbol.is_computable:
            return None
        which = side.symbol.indices(side.points, side.normals)
        jet = np.concatenate([derivatives(space, c, side.points, which) for space in spaces], axis=2)
        shapes.append((side.sign, side.symbol.lhs, side.symbol.order, which))
        arguments.append((side.points, np.moveaxis(jet, 0, 1)))
    functions = _differentiated(tuple(shapes), block.right_side, layout, block.points.shape[1])
    return functions, (tuple(arguments), block.points, normals, block.weights)


Shape = tuple[float, LeftSide, int, tuple[Index, ...]]


@lru_cache(maxsize=128)
def _differentiated(
    shapes: tuple[Shape, ...], right: Data, layout: Layout, dim: int
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The derivative of the residual of a block along a change of the parameters, and its transpose, compiled."""
    lefts = [(sign, linearised(lhs, layout, dim, order, which)) for sign, lhs, order, which in shapes]

    def residual(mu: Any, sides: Any, points: Any, normals: Any, weights: Any) -> Any:
        def at(z: Any, normal: Any, *each: Any) -> Any:
            both = jnp.concatenate([normal, mu])
            left = sum(
                sign * function(place, both, jet, jnp.zeros(()))[0]
                for (sign, function), (place, jet) in zip(lefts, each, strict=True)
            )
            return left - right(layout, layout.arguments(z), both)

        found = jax.vmap(at)(points, normals, *sides)
        return found if weights is None else weights[None] @ found

    def forward(mu: Any, *rest: Any) -> Any:
        *arguments, change = rest
        return jax.jvp(lambda mu: residual(mu, *arguments), (mu,), (change,))[1]

    def transposed(mu: Any, *rest: Any) -> Any:
        *arguments, weighted = rest
        return jax.grad(lambda mu: jnp.vdot(residual(mu, *arguments).reshape(-1), weighted))(mu)

    return jax.jit(forward), jax.jit(transposed)
