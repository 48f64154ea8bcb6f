"""Collocation points: a term of a problem, its points and its normals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from jaxtyping import Float

from pdofm._types import Key, Normals, Points, Vector
from pdofm.calculus.terms import Average, Term, distinct
from pdofm.discrete.stiffness import amplified
from pdofm.domain import Domain, Part, Regions
from pdofm.domain.quadrature import Rule, over_part, quadrature_of
from pdofm.features import Features, RegionFeatures, polynomial_degree
from pdofm.features.byregion import regions_of
from pdofm.numerics.executor import WHOLE, Share
from pdofm.numerics.sampling import generator, spread
from pdofm.problem.data import RightSide
from pdofm.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Block:
    """A term at its collocation points; one that holds on average has `weights`, whose sum is 1."""

    term: Term
    right_side: RightSide
    points: Points
    normals: Float[np.ndarray, "n s"]
    weights: Vector | None = None

    def part(self, which: slice | np.ndarray) -> "Block":
        """The term at some of the points."""
        weights = None if self.weights is None else self.weights[which]
        return replace(self, points=self.points[which], normals=self.normals[which], weights=weights)

    @property
    def equations(self) -> int:
        """At how many points, or over how many averages, the term holds."""
        return len(self.points) if self.weights is None else 1

    def averaged(self, values: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "e k"]:
        """What the term says from its values at the points: all of them, or their average."""
        return values if self.weights is None else self.weights[None] @ values


LEAST = 0.5
"""The smallest share of points of a condition, and of a piece of the boundary, as a fraction of an equal share."""


def collocate(
    problem: Problem,
    interior: int,
    boundary: int,
    *,
    features: Features | None = None,
    sampling: str = "sobol",
    key: Key = 0,
    share: Share = WHOLE,
) -> list[Block]:
    """Collocation points for every term: `interior` for the equation, `boundary` shared by the conditions.

    A condition gets points in proportion to the measure of its part, and each piece of a part in proportion to its own,
    but at least half of an equal share: a small hole matters as much to the solution as a large one. Terms that the
    features add get points at the same density; those that they impose are left out. Where the features are finer than
    elsewhere, their `density` says where the points go.

    A `share` of them is placed by itself: it has its part of each number of points, and a seed of its own. Terms of
    which nothing falls to it are left out.
    """
    concentration = 1.0 if features is None else features.concentration
    pool = 1 if concentration == 1 else _pool(concentration, share.size(interior))
    own = [t for t in problem.terms if features is None or t.kind != features.imposes]
    terms = distinct([*own, *(() if features is None else features.extra_terms(problem.domain))])
    terms = amplified(problem, terms)
    measures = {t.name: t.on.measure for t in own if isinstance(t.on, Part)}
    total = sum(measures.values())
    regions = None if problem.regions is None else Shares(problem.regions, features)
    blocks = []
    space = problem.domain.dim - problem.layout.has_time
    for term, whole in zip(terms, generator(key).integers(2**31, size=len(terms)), strict=True):
        seed = int(whole) if share.count == 1 or sampling == "grid" else _seed(int(whole), share)
        if isinstance(term.on, Average):
            if share.number > 0:
                continue
            rule = averaging(term.on, nodes_for(problem.domain.dim, interior))
            right = problem.right_side(term)
            blocks.append(Block(term, right, rule.points, rule.normals[:, :space], rule.weights))
            continue
        if term.on is None:
            count = interior if regions is None else max(1, round(regions.inside(term) * interior))
            points, normals = _some(count, pool, share, problem.domain_of(term), sampling, seed)
        elif isinstance(term.on, Part):
            part = term.on.measure / (total or term.on.measure)
            least = LEAST / len(measures) if term.name in measures else 0.0
            part = max(part, least) if regions is None else regions.around(term, term.on)
            count = max(1, round(part * boundary))
            points, normals = _some(count, pool, share, term.on, sampling, seed)
        else:
            points = problem.given_points(term)
            points = points[share.among(len(points)).of(len(points))]
            normals = np.zeros_like(points)
        if len(points) == 0:
            continue
        if features is not None and pool > 1 and _is_extended(term):
            here = features.sides(term)[0]
            points, normals = _wanted(here, points, normals, pool, np.random.default_rng(seed))
        blocks.append(Block(term, problem.right_side(term), points, normals[:, :space]))
    return blocks


LEAST_SHARE = 0.25
"""A condition on a part of the boundary of a region gets at least this share of the points of that boundary: the
functions of a small hole need as many as those of a large one."""


class Shares:
    """How the points of several regions are shared between their terms: in proportion to the features of each region,
    or if these are not known to its measure."""

    def __init__(self, regions: Regions, features: Features | None):
        self._regions = regions
        if isinstance(features, RegionFeatures):
            sizes = np.array([part.size for part in features.wrapped])
            around = np.array([boundary_count(regions.dim, part.size) for part in features.wrapped])
        else:
            sizes = around = np.array([region.measure for region in regions.by_name.values()])
        self._inside, self._around = (
            dict(zip(regions.names, each / each.sum(), strict=True)) for each in (sizes, around)
        )

    def inside(self, term: Term) -> float:
        """The share of an equation in the interior points."""
        return float(self._inside[str(term.region)])

    def around(self, term: Term, on: Part) -> float:
        """The share of a condition in the points on boundaries; on an interface what the side needs that needs more."""
        found = [
            self._around[name] * float(np.clip(on.measure / self._regions[name].boundary.measure, LEAST_SHARE, 1.0))
            for name in regions_of(term)
        ]
        return max(found, default=LEAST_SHARE)


def boundary_count(dim: int, size: int) -> int:
    """Points on a boundary: four per degree of freedom that polynomials with as many features have there."""
    degree = polynomial_degree(size, dim)
    on_a_face = prod((degree + i) / i for i in range(1, dim))
    return int(min(4 * 2 * dim * on_a_face, 3 * size))


def _seed(whole: int, share: Share) -> int:
    """The seed of a share, from that of all of them."""
    return int(np.random.default_rng([whole, share.number]).integers(2**31))


FEWEST_PER_PIECE = 4
"""Points on each piece of a part of the boundary, in a share that has any: there is at least one point on each piece,
and with small shares these would add up to more points than are asked for."""


def _some(
    count: int, pool: int, share: Share, where: Domain | Part, sampling: str, seed: int
) -> tuple[Points, Normals]:
    """The points of a share of `count`, with normals, `pool` candidates for each of them."""
    if sampling == "grid" and share.count > 1:  # one grid for all shares
        points, normals = _sampled(where, pool * count, sampling, seed)
        some = share.of(len(points))
        return points[some], normals[some]
    pieces = where.pieces if isinstance(where, Part) else ()
    is_extended = not pieces or any(piece.dim > 0 for piece in pieces)
    own = share.among(count // (FEWEST_PER_PIECE * max(len(pieces), 1)) if is_extended else 1).size(count)
    if own == 0 and count != 0:  # no points at all are an error of the request
        return np.zeros((0, 1)), np.zeros((0, 1))
    return _sampled(where, pool * own, sampling, seed)


def _sampled(where: Domain | Part, count: int, sampling: str, seed: int) -> tuple[Points, Normals]:
    if isinstance(where, Part):
        return where.sample(count, sampling, key=seed, least=LEAST)
    points = where.sample(count, sampling, key=seed)
    return points, np.zeros_like(points)


def joined(shares: Sequence[Sequence[Block]]) -> list[Block]:
    """The blocks of several shares, term by term."""
    if len(shares) == 1:
        return list(shares[0])
    by_term: dict[str, list[Block]] = {}
    for blocks in shares:
        for block in blocks:
            by_term.setdefault(block.term.name, []).append(block)
    return [
        replace(
            some[0],
            points=np.concatenate([block.points for block in some]),
            normals=np.concatenate([block.normals for block in some]),
        )
        for some in by_term.values()
    ]


MOST_NODES = {1: 192, 2: 80, 3: 32}
"""Nodes of quadrature along the longest side of a domain, at most, by dimension; in more dimensions `FEWEST_NODES`."""

FEWEST_NODES = 10
"""Nodes of quadrature along the longest side of a domain, at least."""


def nodes_for(dim: int, interior: int) -> int:
    """Nodes of quadrature along the longest side of a domain: twice as many as there are interior points."""
    return int(np.clip(2 * interior ** (1 / dim), FEWEST_NODES, MOST_NODES.get(dim, FEWEST_NODES)))


def averaging(on: Average, order: int) -> Rule:
    """A rule of quadrature for the mean over a domain or a part."""
    rule = over_part(on.over, order) if isinstance(on.over, Part) else quadrature_of(on.over).whole(order)
    return replace(rule, weights=rule.weights / rule.weights.sum())


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


def interior_of(blocks: Sequence[Block]) -> Points:
    """The points at which an equation holds, those of all regions."""
    return np.concatenate([block.points for block in blocks if block.term.on is None])


def with_equation(blocks: Sequence[Block], terms: Sequence[Term]) -> list[Block]:
    """The same points with another left side of the equation, which comes first."""
    return [replace(blocks[0], term=terms[0]), *blocks[1:]]


def thinned(block: Block, count: int) -> Block:
    """The block at `count` of its points."""
    return block.part(spread(len(block.points), count))
