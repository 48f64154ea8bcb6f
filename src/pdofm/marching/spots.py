"""Small places in a box in which the data of an evolution vary, as a narrow source does.

A space begins with few points along each axis, and is refined where the solution shows that it needs more. What lies
between all of the points is not shown. Data cost little to evaluate: they are looked at in many more places, at some
times, and the space begins with so many points that some are in each of the small ones.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float

from pdofm.calculus.terms import Term
from pdofm.discrete.details import Grid, grids_of, relative, scores
from pdofm.domain import Part
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.pulses import pulses_of, varying
from pdofm.marching.statement import Statement
from pdofm.marching.trees import in_space
from pdofm.problem.problem import Problem

TIMES = np.array([0.0, 0.3819, 1.0])
"""The times at which data are looked at, as parts of the whole, beside those of pulses."""

MOST_PULSES = 8
"""Times of pulses at which they are."""

INNER = 0.1
"""A spot consists of the points where differences are larger than this fraction of the largest one in it."""

SEEN = 4
"""Points in a spot, in each direction, that show what the data do there."""


@dataclass(frozen=True, eq=False)
class Spot:
    """Points in a place where data vary, and their distance from each other. On a face one coordinate is the same for
    all of them."""

    points: Points
    distance: float

    def is_seen(self, points: Points) -> bool:
        """Whether `SEEN` of these points in each direction are in it; on a face those that differ along it count."""
        from scipy.spatial import KDTree  # slow to import

        low, high = self.points.min(axis=0), self.points.max(axis=0)
        directions = high > low
        near = np.all((points >= low - self.distance) & (points <= high + self.distance) | ~directions, axis=1)
        own = np.unique(points[near][:, directions], axis=0)
        if len(own) < SEEN ** directions.sum():
            return False
        tree = KDTree(self.points[:, directions])
        gaps = tree.query(own, distance_upper_bound=self.distance)[0]
        return bool(np.isfinite(gaps).sum() >= SEEN ** directions.sum())

    def meets(self, lower: Points, upper: Points) -> Bool[np.ndarray, " n"]:
        """Which of some boxes it meets."""
        low, high = self.points.min(axis=0) - self.distance, self.points.max(axis=0) + self.distance
        return np.all((lower <= high) & (upper >= low), axis=1)


_known: "WeakKeyDictionary[Problem, list[Spot]]" = WeakKeyDictionary()


def spots_of(statement: Statement) -> list[Spot]:
    """The places in which the source, coefficients, the start or conditions on the boundary vary within a short
    distance."""
    if statement.problem not in _known:
        domain = statement.domain
        pulses = pulses_of(statement)
        chosen = pulses[:: max(1, -(-len(pulses) // MOST_PULSES))]
        times = np.concatenate([domain.t0 + (domain.t1 - domain.t0) * TIMES, chosen])
        grids = grids_of(domain.space, None)
        points = _joined(grids)[0]
        start = np.moveaxis(statement.start(points), 1, 0).reshape(len(points), -1)
        found = _spots(grids, relative(start)) if np.ptp(start, axis=0).any() else []
        for term in (statement.equation, *statement.lateral):
            found += _of_term(statement, term, times)
        _known[statement.problem] = found
    return _known[statement.problem]


def known_spots(statement: Statement) -> list[Spot]:
    """The same, if they have been looked for."""
    return _known.get(statement.problem, [])


def _joined(grids: list[Grid]) -> tuple[Points, Points]:
    return np.concatenate([grid.points for grid in grids]), np.concatenate([grid.normals for grid in grids])


def _of_term(statement: Statement, term: Term, times: Vector) -> list[Spot]:
    """The same for the equation or a condition on the boundary."""
    space = statement.domain.space
    pieces = [in_space(piece) for piece in term.on.pieces] if isinstance(term.on, Part) else [None]
    found: list[Spot] = []
    for piece in pieces:
        grids = grids_of(space, None if piece is None else Part((piece,)))
        at = statement.placed(term, *_joined(grids))
        for values in varying(at, times):
            by_time = values.reshape(len(times), len(at.points), -1)
            finite = np.nan_to_num(by_time, posinf=0.0, neginf=0.0)
            for moment in finite:
                if np.ptp(moment, axis=0).any():
                    found += _spots(grids, relative(moment))
    return found


def _spots(grids: list[Grid], values: Float[np.ndarray, "n f"]) -> list[Spot]:
    """The connected sets of points in which functions have details."""
    from scipy.sparse import coo_array  # slow to import, as the others
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    points = _joined(grids)[0]
    score, sizes = scores(grids, values)
    found: list[Spot] = []
    for own, size in zip(score.T, sizes.T, strict=True):
        chosen = np.flatnonzero(own > 1)
        if len(chosen) < 2:
            continue
        tree = KDTree(points[chosen])
        distance = 1.5 * float(np.median(np.asarray(tree.query(points[chosen], 2)[0])[:, 1]))
        pairs = tree.query_pairs(distance, output_type="ndarray")
        graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(chosen), len(chosen)))
        labels = connected_components(graph, directed=False)[1]
        largest = np.zeros(labels.max() + 1)
        np.maximum.at(largest, labels, size[chosen])
        inner = size[chosen] > INNER * largest[labels]
        found += [Spot(points[chosen[inner & (labels == label)]], distance) for label in range(len(largest))]
    return found
