"""Whether a solution has seen the details of its data: a narrow bump of a source, or of values on the boundary.

Data are functions that cost little to evaluate. Each is looked at in many more points than are fitted, once per
problem, and where it differs most from its values nearby, the residual of a solution is looked at. A bump that no
fitted point has met is the residual there. It matters as much as its integral: around a jump of the data, which no
smooth function follows, the residual changes its sign, and its integral is small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_array

from pdofm._types import Coefficients, Points
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Difference
from pdofm.discrete.assemble import left_values
from pdofm.discrete.collocate import Block, collocate
from pdofm.discrete.evaluate import derivatives, evaluate
from pdofm.discrete.leftsides import entries
from pdofm.discrete.right import right_values
from pdofm.features import Features
from pdofm.numerics.sampling import spread
from pdofm.problem.problem import Problem
from pdofm.solving.steep import missed_flux
from pdofm.solving.verdict import HIDDEN

DENSE = 20_000
"""Points at which data are looked at: inside the domain, and on all of its boundary."""

MOST_DIMENSIONS = 6
"""In more dimensions no number of points that can be evaluated is dense."""

NEARBY = 500
"""Points whose values tell those nearby."""

ROUGHEST = 256
"""Points at which residuals are looked at: those where the data differ most from their values nearby."""

FEWEST = 3
"""A place with fewer of them is not known well enough."""

TOGETHER = 4.0
"""Points within so many of their spacings belong to one place."""

TYPICAL = 64
"""Points at which the size of a left side is measured."""

WEIGHT = 5.0
"""A residual whose integral is a fiftieth of that of all data counts as a tenth, which is too much (`HIDDEN`)."""


@dataclass(frozen=True, eq=False)
class _Details:
    """The roughest places of the data of a term: the points, the place of each, the sum of all data, and at how many
    points it was taken."""

    block: Block
    right: Float[np.ndarray, "n k"]
    place: Int[np.ndarray, " n"]
    total: float
    count: int


_known: "WeakKeyDictionary[Problem, list[_Details]]" = WeakKeyDictionary()


def missed(problem: Problem, features: Features, coefficients: Coefficients) -> float | None:
    """What a solution has missed between the points: details of the data, or the flux across steep changes of
    coefficients; None if there is nothing to miss."""
    found = missed_flux(problem, features, coefficients), missed_details(problem, features, coefficients)
    return max((each for each in found if each is not None), default=None)


def missed_details(problem: Problem, features: Features, coefficients: Coefficients) -> float | None:
    """The integral of the residual over the roughest places of the data of a term, relative to that of its data,
    or of its left side if that is larger, times `WEIGHT`; None if all data are smooth."""
    if problem.regions is not None or problem.parameters.names or problem.domain.dim > MOST_DIMENSIONS:
        return None
    if problem not in _known:
        _known[problem] = [each for block in _dense(problem) if (each := _details(problem, block)) is not None]
    missing = [_missing(problem, each, features, coefficients) for each in _known[problem]]
    return max(missing, default=None)


def _dense(problem: Problem) -> Sequence[Block]:
    """The terms with functions as data, at many points."""
    blocks = collocate(problem, DENSE, DENSE, sampling="random", key=1)
    return [b for b in blocks if b.right_side.numbers is None and b.weights is None and len(b.points) >= NEARBY]


def _details(problem: Problem, block: Block) -> _Details | None:
    if isinstance(block.term.lhs, Difference):
        return None
    right = right_values(problem.layout, block, entries(problem.layout, block))
    unit = block.points.max(axis=0) - block.points.min(axis=0)
    points = block.points / np.where(unit > 0, unit, 1.0)
    some = spread(len(points), NEARBY)
    from scipy.spatial import cKDTree  # slow to import

    nearest = some[np.asarray(cKDTree(points[some]).query(points)[1])]
    rough = np.abs(right - right[nearest]).max(axis=1)
    chosen = np.sort(np.argsort(-rough, kind="stable")[:ROUGHEST])
    total = float(np.abs(right).max(axis=1).sum())
    if WEIGHT * float(rough[chosen].sum()) <= HIDDEN * total:  # smooth data: there is nothing to miss
        return None
    return _Details(block.part(chosen), right[chosen], _places(points, chosen), total, len(points))


def _places(points: Points, chosen: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
    """The number of the place of each chosen point."""
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    tree = cKDTree(points)
    spacing = float(np.median(np.asarray(tree.query(points[chosen], k=[2])[0])))
    pairs = cKDTree(points[chosen]).query_pairs(TOGETHER * spacing, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(chosen), len(chosen)))
    return connected_components(graph, directed=False)[1]


def _missing(problem: Problem, details: _Details, features: Features, coefficients: Coefficients) -> float:
    residual = left_values(problem.layout, features, details.block, coefficients) - details.right
    count = np.bincount(details.place)
    sums = [np.bincount(details.place, weights=each)[count >= FEWEST] for each in residual.T]
    total = max(float(np.abs(each).sum()) for each in sums)
    against = max(details.total, details.count * _size(problem, details.block, features, coefficients))
    return WEIGHT * total / against if against > 0 else 0.0


def _size(problem: Problem, block: Block, features: Features, coefficients: Coefficients) -> float:
    """The typical size of the parts of a left side, Σ_α |G_α| |u| / L^|α| with the size L of the domain: data that are
    small against them matter little."""
    layout, domain = problem.layout, problem.domain
    symbol = symbol_of(block.term.lhs, layout, domain.dim, domain.dim - layout.has_time)
    some = block.part(slice(TYPICAL))
    if not symbol.is_computable:
        return 0.0
    which = symbol.indices(some.points, some.normals)
    found = symbol.linearise(some.points, some.normals, derivatives(features, coefficients, some.points, which))
    if found is None:
        return 0.0
    lengths = float(domain.size) ** -np.sum(which, axis=1).astype(float)
    u = np.sqrt(np.mean(evaluate(features, coefficients, domain.sample(TYPICAL)) ** 2, axis=0))
    return float(np.max(np.einsum("kac,a,c->k", np.median(np.abs(found.coefficients), axis=0), lengths, u)))
