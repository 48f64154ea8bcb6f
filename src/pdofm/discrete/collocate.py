"""Collocation points: a term of a problem, its points and its normals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from pdofm._types import Key, Normals, Points
from pdofm.calculus.terms import Term, distinct
from pdofm.domain import Part
from pdofm.features import Features
from pdofm.numerics.sampling import generator, spread
from pdofm.problem.data import RightSide
from pdofm.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Block:
    """A term at its collocation points."""

    term: Term
    right_side: RightSide
    points: Points
    normals: Float[np.ndarray, "n s"]

    def part(self, which: slice | np.ndarray) -> "Block":
        """The term at some of the points."""
        return replace(self, points=self.points[which], normals=self.normals[which])


def collocate(
    problem: Problem,
    interior: int,
    boundary: int,
    *,
    features: Features | None = None,
    sampling: str = "sobol",
    key: Key = 0,
) -> list[Block]:
    """Collocation points for every term: `interior` for the equation, `boundary` shared by the conditions.

    A condition gets points in proportion to the measure of its part, but at least half of an equal share: a small part
    matters as much to the solution as a large one. Terms that the features add get points at the same density; those
    that they impose are left out. Where the features are finer than elsewhere, their `density` says where the points
    go.
    """
    pool = 1 if features is None or features.concentration == 1 else _pool(features.concentration, interior)
    own = [t for t in problem.terms if features is None or t.kind != features.imposes]
    terms = distinct([*own, *(() if features is None else features.extra_terms(problem.domain))])
    measures = {t.name: t.on.measure for t in own if isinstance(t.on, Part)}
    total = sum(measures.values())
    blocks = []
    for term, seed in zip(terms, generator(key).integers(2**31, size=len(terms)), strict=True):
        if term.on is None:
            points = problem.domain.sample(pool * interior, sampling, key=int(seed))
            normals = np.zeros_like(points)
        elif isinstance(term.on, Part):
            share = term.on.measure / (total or term.on.measure)
            least = 0.5 / len(measures) if term.name in measures else 0.0
            count = pool * max(1, round(max(share, least) * boundary))
            points, normals = term.on.sample(count, sampling, key=int(seed))
        else:
            points = problem.given_points(term)
            normals = np.zeros_like(points)
        if features is not None and pool > 1 and _is_extended(term):
            points, normals = _wanted(features, points, normals, pool, np.random.default_rng(seed))
        space = problem.domain.dim - problem.layout.has_time
        blocks.append(Block(term, problem.right_side(term), points, normals[:, :space]))
    return blocks


def _is_extended(term: Term) -> bool:
    """Whether a term holds on more than single points."""
    return term.on is None or (isinstance(term.on, Part) and any(piece.dim > 0 for piece in term.on.pieces))


FEWEST_PER_POINT, MOST_PER_POINT = 16, 2000
"""The smallest and the largest number of candidates per collocation point, where the features choose among them."""

ALL_CANDIDATES = 2**21
"""The largest number of candidates that are drawn for one term: a few hundred MiB of derivatives at most."""


def _pool(concentration: float, count: int) -> int:
    """Enough candidates for `count` points to find those that are wanted most."""
    most = int(np.clip(ALL_CANDIDATES // count, FEWEST_PER_POINT, MOST_PER_POINT))
    return int(np.clip(2 * concentration, FEWEST_PER_POINT, most))


def _wanted(
    features: Features, points: Points, normals: Normals, pool: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "kept d"], Float[np.ndarray, "kept d"]]:
    """One in `pool` points, drawn with the density that the features ask for."""
    weights = features.density(points)
    keep = rng.choice(len(points), -(-len(points) // pool), replace=False, p=weights / weights.sum())
    return points[keep], normals[keep]


def with_equation(blocks: Sequence[Block], terms: Sequence[Term]) -> list[Block]:
    """The same points with another left side of the equation, which comes first."""
    return [replace(blocks[0], term=terms[0]), *blocks[1:]]


def thinned(block: Block, count: int) -> Block:
    """The block at `count` of its points."""
    return block.part(spread(len(block.points), count))
