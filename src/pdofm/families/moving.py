"""How the residual of a member changes with parameters that cannot be traced, such as those of its domain.

The coefficients stay, and so do the points inside; the points of the boundary move with the domain. The change of the
residual is taken by central differences of fourth order, which costs evaluations of the equation but no solve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pdofm._types import Coefficients, Vector
from pdofm.calculus.terms import Average
from pdofm.discrete import direct
from pdofm.discrete.collocate import LEAST, Block, averaging, nodes_for
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import derivatives
from pdofm.discrete.leftsides import entries, local_sides
from pdofm.discrete.right import right_values
from pdofm.domain import Part
from pdofm.domain.spacetime import Slice
from pdofm.errors import SolveError
from pdofm.families.member import shown
from pdofm.families.tangent import Piece, Sensitivity
from pdofm.features import Features
from pdofm.numerics.sampling import generator
from pdofm.problem.example import like
from pdofm.problem.parametric import Make
from pdofm.problem.problem import Problem

STEP = 1e-3
"""Step of the differences, relative to the parameter: with an error of fourth order and values that are accurate to
rounding, the derivative has about twelve digits."""

SMOOTH = 1e-2
"""The largest distance of differences with the steps h and 2 h, relative to them. Where it is larger, the points of the
boundary jump, or the family is not smooth."""


@dataclass(frozen=True)
class Placed:
    """How the points of a block on the boundary were drawn."""

    counts: tuple[int, ...]
    sampling: str
    seed: int


def differenced(
    make: Make,
    discretisation: Discretisation,
    c: Coefficients,
    mu: np.ndarray,
    scales: Vector,
    drawn: Sequence[Placed | None],
) -> Sensitivity:
    """The sensitivity of the residual at fixed coefficients, parameter by parameter."""
    columns = []
    for j in range(mu.size):
        h = STEP * (abs(mu.flat[j]) or 1.0)

        def moved(steps: float, j: int = j, h: float = h) -> np.ndarray:
            other = mu.copy()
            other.flat[j] += steps * h
            return scales * _residual(make, discretisation, c, other, drawn)

        one, two = (moved(1.0) - moved(-1.0)) / (2 * h), (moved(2.0) - moved(-2.0)) / (4 * h)
        column = (4 * one - two) / 3
        if not np.linalg.norm(one - two) <= SMOOTH * np.linalg.norm(column) + 1e-12 * np.linalg.norm(scales):
            raise SolveError(
                f"The residual of the family does not change smoothly with parameter {j}: differences with two steps "
                "disagree. The domain, or its points on the boundary, jump. State the problem on a fixed domain, with "
                "the parameter in the operator."
            )
        columns.append(column)
    found = Sensitivity([Piece(slice(0, len(scales)), scales, (), None)], mu.size)
    found.matrix = np.stack(columns, axis=1)
    return found


def _residual(
    make: Make, discretisation: Discretisation, c: Coefficients, mu: np.ndarray, drawn: Sequence[Placed | None]
) -> Vector:
    """Left minus right side of all blocks at other parameters."""
    with like(discretisation.problem):
        problem = make(mu)
    if [term.name for term in problem.terms] != [term.name for term in discretisation.problem.terms]:
        raise SolveError(f"The problem at mu = {shown(mu)} has other terms than its neighbours. Keep the conditions.")
    terms = {term.name: term for term in problem.terms}
    parts = []
    for block, placed in zip(discretisation.blocks, drawn, strict=True):
        if block.term.name in terms:
            other = replace(block, term=terms[block.term.name])
            other = replace(other, right_side=problem.right_side(other.term))
            parts.append(_left_minus_right(problem, discretisation.features, c, _moved(problem, other, placed)))
        else:  # a term of the features, which depends on nothing else
            parts.append(np.zeros(block.equations * entries(problem.layout, block)))
    return np.concatenate(parts)


def _moved(problem: Problem, block: Block, placed: Placed | None) -> Block:
    """A block at the points of the changed domain, if they are on its boundary."""
    on, space = block.term.on, problem.domain.dim - problem.layout.has_time
    if isinstance(on, Average):
        rule = averaging(on, nodes_for(problem.domain.dim, len(block.points)))
        return replace(block, points=rule.points, normals=rule.normals[:, :space], weights=rule.weights)
    if isinstance(on, Part) and placed is not None:
        points, normals = sampled(on, placed)
        if points.shape != block.points.shape:
            raise SolveError("The boundary changes its parts with the parameters. Keep its shape, and change its size.")
        return replace(block, points=points, normals=normals[:, :space])
    if on is not None and not isinstance(on, Part):
        return replace(block, points=problem.given_points(block.term))
    return block


def place(discretisation: Discretisation, sampling: str) -> tuple[Discretisation, list[Placed | None]]:
    """A discretisation with points on the boundary that can be drawn again on a changed domain, and how."""
    blocks, drawn = [], []
    for i, block in enumerate(discretisation.blocks):
        part, placed = block.term.on, None
        if isinstance(part, Part) and is_moving(part):
            placed = Placed(tuple(part.shares(len(block.points), LEAST)), sampling, i)
            points, normals = sampled(part, placed)
            blocks.append(replace(block, points=points, normals=normals[:, : block.normals.shape[1]]))
        else:
            blocks.append(block)
        drawn.append(placed)
    return replace(discretisation, blocks=blocks), drawn


def sampled(part: Part, placed: Placed) -> tuple[np.ndarray, np.ndarray]:
    """The points of a part with as many on each of its pieces as were drawn."""
    if len(part.pieces) != len(placed.counts):
        raise SolveError("The boundary changes its parts with the parameters. Keep its shape, and change its size.")
    rng = generator(placed.seed)
    found = [piece.sample(n, placed.sampling, rng) for piece, n in zip(part.pieces, placed.counts, strict=True)]
    points, normals = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return points, normals


def is_moving(part: object) -> bool:
    """Whether the points of a part are on the boundary of the space."""
    return isinstance(part, Part) and not any(isinstance(piece, Slice) for piece in part.pieces)


def _left_minus_right(problem: Problem, features: Features, c: Coefficients, block: Block) -> Vector:
    layout, spaces = problem.layout, features.sides(block.term)
    sides = local_sides(layout, block)
    k = entries(layout, block)
    if all(side.symbol.is_computable for side in sides):
        left = np.zeros((len(block.points), k))
        for side in sides:
            which = side.symbol.indices(side.points, side.normals)
            jet = np.concatenate([derivatives(space, c, side.points, which) for space in spaces], axis=2)
            left += side.sign * side.symbol.values(side.points, side.normals, jet)
    else:
        left = direct.left_sides(block.term.lhs, layout, features, c, block.points, block.normals)
    return block.averaged(left - right_values(layout, block, k)).reshape(-1)
