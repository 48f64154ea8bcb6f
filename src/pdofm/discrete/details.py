"""Details of the data: places where a right side or a coefficient varies within the distance of few points.

Data and coefficients are functions that cost little to evaluate. Each is looked at once per problem, on a fine lattice
that is turned against the axes, so that a strip along an axis does not pass between its rows. On a lattice fourth
differences tell a narrow place from its surroundings, whatever varies more slowly, and however much: they fall with the
fourth power of the spacing where a function is smooth, and are as large as the detail where it is as narrow as the
spacing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Mask, Normals, Points
from pdofm.calculus.symbol import Symbol, random_jet, symbol_of
from pdofm.calculus.terms import Difference, Term
from pdofm.discrete.collocate import Block
from pdofm.discrete.right import right_values
from pdofm.domain import Domain, Part, Piece
from pdofm.numerics.sampling import UnitPoints, spread
from pdofm.problem.problem import Problem

DENSE = 20_000
"""Points at which the data of a term are looked at."""

MOST_DIMENSIONS = 4
"""In more dimensions no number of points that can be evaluated is dense."""

LONGEST = 400_000
"""The largest number of points of a lattice, those outside of the domain included."""

STENCIL = np.array([1.0, -4.0, 6.0, -4.0, 1.0]) / 6
"""Fourth differences, in the units of the value in the middle."""

SPIKE = 30.0
"""A fourth difference so many times larger than nine tenths of all others belongs to a detail. Of a smooth function,
such as sin(10 x) exp(3 x), the largest are about ten times as large as that."""

ROUNDING = 1e-12
"""Differences below this fraction of the values, or of the coefficients, are their rounding errors."""

MOST = 1024
"""Points of one term that are kept."""


@dataclass(frozen=True, eq=False)
class Detail:
    """The points of a term in details of its data; of each also what part of the term it stands for. `data` are the
    mean sizes of all of its data."""

    term: Term
    points: Points
    normals: Normals
    weights: Float[np.ndarray, " n"]
    data: Float[np.ndarray, " k"]


_known: "WeakKeyDictionary[Problem, list[Detail]]" = WeakKeyDictionary()


def details_of(problem: Problem, blocks: Mapping[str, Block] | None = None) -> Sequence[Detail]:
    """The details of the data of a problem; none in more than `MOST_DIMENSIONS` dimensions.

    The `blocks` of a member of a family, by the names of their terms, have what all members share compiled.
    """
    if problem not in _known:
        local = [] if problem.domain.dim > MOST_DIMENSIONS else [t for t in problem.terms if _is_local(t)]
        found = [_detail(problem, term, (blocks or {}).get(term.name)) for term in local]
        _known[problem] = [each for each in found if each is not None]
    return _known[problem]


def elsewhere(block: Block, points: Points, normals: Normals, space_dim: int) -> Block:
    """A block at other points, with the parameters that it has behind its normals, if there are any."""
    behind = np.broadcast_to(block.normals[:1, space_dim:], (len(points), block.normals.shape[1] - space_dim))
    return replace(block, points=points, normals=np.concatenate([normals[:, :space_dim], behind], axis=1))


def _is_local(term: Term) -> bool:
    """Whether a term holds at all points of the domain or of a part, on one side."""
    return term.pair is None and not isinstance(term.lhs, Difference) and (term.on is None or isinstance(term.on, Part))


def _detail(problem: Problem, term: Term, known: Block | None) -> Detail | None:
    dim, space_dim = problem.domain.dim, problem.domain.dim - problem.layout.has_time
    right = problem.right_side(term)
    stated = Block(term, right, np.zeros((1, dim)), np.zeros((1, space_dim)))
    if known is not None and known.normals.shape[1] > space_dim:
        stated = known
    symbol = symbol_of(stated.term.lhs, problem.layout_of(term), dim, stated.normals.shape[1])
    varies = term.on is None and symbol.is_computable and not symbol.is_the_same_everywhere
    if right.numbers is not None and not varies:
        return None
    on = term.on if isinstance(term.on, Part) else None
    grids = [grid for grid in grids_of(problem.domain_of(term), on) if grid.inside.any()]
    count = sum(int(grid.inside.sum()) for grid in grids)
    if count == 0:
        return None
    points, normals = (np.concatenate([getattr(grid, name) for grid in grids]) for name in ("points", "normals"))
    there = elsewhere(stated, points, normals, space_dim)
    data = right_values(problem.layout, there, symbol.entries)
    features = [relative(data)] + ([_coefficients(symbol, there, float(problem.domain.size))] if varies else [])
    chosen, weights = _some(scores(grids, np.concatenate(features, axis=1))[0].max(axis=1))
    if len(chosen) == 0:
        return None
    return Detail(term, points[chosen], normals[chosen], weights / count, np.mean(np.abs(data), axis=0))


def _coefficients(symbol: Symbol, block: Block, length: float) -> Float[np.ndarray, "n f"]:
    """The coefficients of a term at the points of a block, in units of the length, relative to the largest."""
    points, normals = block.points, block.normals
    jet = random_jet(len(symbol.indices(points, normals)), 1, symbol.layout.components)  # the same at all points
    found = symbol.coefficients(points, np.broadcast_to(jet, (len(jet), len(points), jet.shape[2])), normals)
    units = length ** -np.sum(found.indices, axis=1, dtype=float)
    each = np.nan_to_num(found.coefficients * units[:, None], posinf=0.0, neginf=0.0)
    return relative(each.reshape(len(points), -1))


def scores(
    grids: Sequence["Grid"], values: Float[np.ndarray, "n f"]
) -> tuple[Float[np.ndarray, "n f"], Float[np.ndarray, "n f"]]:
    """What is above 1 at the points of lattices that are in details of a function, for several functions, whose largest
    values are about 1; and the sizes of the differences that tell."""
    ends = np.cumsum([int(grid.inside.sum()) for grid in grids])[:-1]
    pairs = [_differences(grid, part) for grid, part in zip(grids, np.split(values, ends), strict=True)]
    middle, around = (np.concatenate(each) for each in zip(*pairs, strict=True))
    typical = np.nanquantile(middle, 0.9, axis=0) if np.isfinite(middle).any() else np.zeros(values.shape[1])
    around = np.nan_to_num(around)
    return around / np.maximum(SPIKE * np.nan_to_num(typical), ROUNDING), around


def relative(values: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "n f"]:
    """Values relative to the largest of all."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return values / largest if largest > 0 else np.zeros_like(values)


def _some(score: Float[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """The points with a score above 1: of many of them those with the highest, and some of the others, which stand for
    the rest."""
    order = np.argsort(-score, kind="stable")[: int(np.sum(score > 1))]
    if len(order) <= MOST:
        return order, np.ones(len(order))
    first, rest = order[: MOST // 2], order[MOST // 2 :]
    others = rest[spread(len(rest), MOST // 2)]
    return np.concatenate([first, others]), np.repeat([1.0, len(rest) / len(others)], [len(first), len(others)])


# ---- lattices


@dataclass(frozen=True, eq=False)
class Grid:
    """A lattice: how many points it has along each axis, which of them are inside, and where these are."""

    shape: tuple[int, ...]
    inside: Mask
    points: Float[np.ndarray, "kept d"]
    normals: Float[np.ndarray, "kept d"]


def grids_of(domain: Domain, on: Part | None) -> list[Grid]:
    """Lattices in a domain, or on the pieces of a part."""
    rng = np.random.default_rng(1)
    if on is None:
        return [_grid(domain.dim, DENSE, lambda u: _inside(domain, u), rng)]
    shares = zip(on.pieces, on.shares(DENSE), strict=True)
    return [_grid(piece.dim, count, lambda u, piece=piece: _on(piece, u), rng) for piece, count in shares]


Place = Callable[[UnitPoints], tuple[Points, Normals, Mask]]
"""The points at parameters in the unit cube, their normals, and which of them are kept."""


def _inside(domain: Domain, u: UnitPoints) -> tuple[Points, Normals, Mask]:
    points = domain.candidates(u)
    return points, np.zeros_like(points), domain.contains(points)


def _on(piece: Piece, u: UnitPoints) -> tuple[Points, Normals, Mask]:
    points, normals = piece.chart(u)
    return points, normals, np.ones(len(u), bool) if piece.keep is None else piece.keep(points, normals)


def _grid(dim: int, count: int, place: Place, rng: np.random.Generator) -> Grid:
    """A lattice with about `count` points inside."""
    if dim <= 1:
        u = np.full((1, 0), 0.0) if dim == 0 else ((np.arange(count) + 0.5) / count)[:, None]
        points, normals, inside = place(u)
        return Grid((len(u),), inside, points[inside], normals[inside])
    fill = max(float(np.mean(place(rng.random((2000, dim)))[2])), 1e-3)
    along = int(min(np.ceil((dim**0.5) * (count / fill) ** (1 / dim)), LONGEST ** (1 / dim)))
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    steps = dim**0.5 * ((np.arange(along) + 0.5) / along - 0.5)
    u = np.array(list(product(steps, repeat=dim))) @ turn + 0.5
    inside = np.all((u > 0) & (u < 1), axis=1)
    points, normals, kept = place(u[inside])
    inside[inside] = kept
    return Grid((along,) * dim, inside, points[kept], normals[kept])


def _differences(grid: Grid, values: Float[np.ndarray, "n f"]) -> list[Float[np.ndarray, "n f"]]:
    """The sizes of the fourth differences at the points of a lattice, and the largest of those that involve a point;
    NaN where there is none."""
    whole = np.full((*grid.shape, values.shape[1]), np.nan)
    whole.reshape(-1, values.shape[1])[grid.inside] = values
    middle, around = (np.full_like(whole, np.nan) for _ in range(2))
    reach = len(STENCIL) - 1
    for axis, n in enumerate(grid.shape):
        if n <= reach:
            continue

        def part(array: np.ndarray, start: int, axis: int = axis, n: int = n) -> np.ndarray:
            return array[(slice(None),) * axis + (slice(start, start + n - reach),)]

        size = np.abs(sum(weight * part(whole, i) for i, weight in enumerate(STENCIL)))
        np.fmax(part(middle, reach // 2), size, out=part(middle, reach // 2))
        for i in range(reach + 1):
            np.fmax(part(around, i), size, out=part(around, i))
    return [each.reshape(-1, values.shape[1])[grid.inside] for each in (middle, around)]
