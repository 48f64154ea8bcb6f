"""Quadrature over domains, over the part of a domain in a box, and over parts of a boundary.

In the plane a domain is cut into lines along the first axis. Where a line crosses the boundary is found from the charts
of its pieces, which are split where they turn around, so that no crossing is missed. Between the heights at which a
piece ends, turns around, or meets a side of the box, the ends of the lines depend analytically on their height, except
for a square root where a curve turns around, which a change of variables removes. So Gauss's rule along the lines, and
across them between those heights, converges exponentially.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float

from pdofm.domain.ball import Annulus, Ball, Disk, Shell
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Part, Piece
from pdofm.domain.lines import inside_intervals, refined_cells
from pdofm.domain.spacetime import Slice, SpaceTime
from pdofm.errors import DomainError
from pdofm.numerics.nodes import gauss, gauss_weights, tensor

LOOKS = 256
"""Parameters at which a curve is examined for points where it turns around."""

MOST_DIMENSIONS = 5
"""Products of rules along each axis have too many nodes in more dimensions."""

NEAR_A_TURN = 0.5
"""Between heights of which one is so near to a turn of a curve beyond it, in their distance, the square root of the
turn is removed as if it were there."""

FEWEST = 8
"""Gauss nodes on an interval, at least, however short it is."""

AROUND = 2
"""Equidistant nodes around a circle, in units of the Gauss nodes along a line that are exact for the same degrees."""

SURFACE_NODES = 4
"""A surface that is sampled by rejection has no smooth parameters: it gets so many times more nodes along each."""


Values = Float[np.ndarray, " _"]
"""Numbers; how many differs between arguments of one function."""


@dataclass(frozen=True, eq=False)
class Rule:
    """Nodes (n, d), the outward normals there if they lie on a boundary, and weights (n,) of a quadrature."""

    points: Float[np.ndarray, "n d"]
    normals: Float[np.ndarray, "n d"]
    weights: Float[np.ndarray, " n"]

    @staticmethod
    def inside(points: Float[np.ndarray, "n d"], weights: Float[np.ndarray, " n"]) -> "Rule":
        """A rule whose nodes lie inside a domain."""
        return Rule(points, np.zeros_like(points), weights)

    @staticmethod
    def joined(rules: "list[Rule]") -> "Rule":
        """The sum of rules."""
        return Rule(*(np.concatenate([getattr(r, name) for r in rules]) for name in ("points", "normals", "weights")))


class Quadrature:
    """Rules for a domain; what they need to know of its boundary is computed once."""

    def __init__(self, domain: Domain):
        self.domain = domain
        self._space = Quadrature(domain.space) if isinstance(domain, SpaceTime) else None

    def whole(self, order: int) -> Rule:
        """A rule for the domain, with about `order` nodes along its longest side."""
        if self.domain.dim > MOST_DIMENSIONS:
            raise DomainError(
                f"Integrals are computed in at most {MOST_DIMENSIONS} dimensions; {self.domain!r} has "
                f"{self.domain.dim}. Average over points of domain.sample(n) instead."
            )
        if self.domain.materials is not None:  # functions may jump between regions
            return Rule.joined([quadrature_of(each).whole(order) for each in self.domain.materials.by_name.values()])
        if not self.domain.is_box and isinstance(self.domain, Annulus | Ball | Disk | Shell):
            return _round(self.domain, order)
        return self.in_box(self.domain.lower, self.domain.upper, order)

    def in_box(self, lower: Values, upper: Values, order: int) -> Rule:
        """A rule for the part of the domain inside a box, with about `order` nodes along its longest side."""
        domain = self.domain
        if self._space is not None:
            return _times(self._space.in_box(lower[:-1], upper[:-1], order), lower[-1], upper[-1], order)
        radius = float(np.linalg.norm(upper - lower)) / 2
        if domain.is_box or domain.level((lower + upper)[None] / 2)[0] >= radius:
            return box_rule(np.maximum(lower, domain.lower), np.minimum(upper, domain.upper), order)
        if domain.dim == 1:
            return self._on_axis(lower, upper, order)
        if domain.dim == 2:
            return self._in_plane(lower, upper, order)
        return self._by_lines(lower, upper, order)

    def _on_axis(self, lower: Values, upper: Values, order: int) -> Rule:
        ends = [piece.chart(np.zeros((1, 0)))[0][0] for piece in self.domain.pieces]
        cuts = np.unique(np.clip(np.concatenate([lower, *ends, upper]), lower, upper))
        rules = [
            box_rule(np.array([a]), np.array([b]), order)
            for a, b in itertools.pairwise(cuts)
            if self.domain.contains(np.array([[(a + b) / 2]]))[0]
        ]
        return Rule.joined(rules) if rules else Rule.inside(np.zeros((0, 1)), np.zeros(0))

    @cached_property
    def _curves(self) -> tuple[list["_Run"], list["_Run"]]:
        """The curves of the boundary in pieces along which the first, and the second coordinate is monotone."""
        pieces = self.domain.pieces
        return tuple([run for piece in pieces for run in _runs(piece, axis)] for axis in (0, 1))  # type: ignore[return-value]

    def _in_plane(self, lower: Values, upper: Values, order: int) -> Rule:
        heights, turns = self._heights(lower, upper)
        span, parts = float(np.max(upper - lower)), []
        for a, b in itertools.pairwise(heights):
            count = FEWEST + int(np.ceil(order * (b - a) / span))
            below, above = (a - turns) / (b - a), (turns - b) / (b - a)
            ends = [bool(np.any((each > -1e-9) & (each < NEAR_A_TURN))) for each in (below, above)]
            parts.append(_across(a, b, count, *ends))
        y, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
        line, a, b = self._lines(y, lower, upper)
        points, along = [], []
        counts = FEWEST + np.ceil(order * (b - a) / span).astype(int)
        counts = -(-counts // 4) * 4  # few different ones
        for count in np.unique(counts).tolist():
            some = counts == count
            x = a[some, None] + (b - a)[some, None] * gauss(count)
            points.append(np.stack([x, np.broadcast_to(y[line[some], None], x.shape)], axis=-1).reshape(-1, 2))
            along.append((weights[line[some], None] * (b - a)[some, None] * gauss_weights(count)).reshape(-1))
        if not points:
            return Rule.inside(np.zeros((0, 2)), np.zeros(0))
        return Rule.inside(np.concatenate(points), np.concatenate(along))

    def _heights(self, lower: Values, upper: Values) -> tuple[Values, Values]:
        """The heights between which the ends of the lines in a box are smooth, and those where a curve turns around."""
        slack = 1e-9 * (upper - lower)
        by_first, by_second = self._curves
        found, turns = [lower[1], upper[1]], []
        for run in by_second:
            for point, turn in zip(run.ends, run.turns, strict=True):
                if np.all(point >= lower - slack) and np.all(point <= upper + slack):
                    found.append(point[1])
                if turn and abs(2 * point[0] - lower[0] - upper[0]) < 3 * (upper - lower)[0]:
                    turns.append(point[1])
        for side in (lower[0], upper[0]):
            for run in by_first:
                found += run.crossings(np.array([side]))[1].tolist()
        heights = np.unique(np.clip(found, lower[1], upper[1]))
        apart = np.append(np.diff(heights) > 1e-14 * np.max(np.abs(heights), initial=1e-300), True)
        return heights[apart], np.array(turns)

    def _lines(self, y: Values, lower: Values, upper: Values) -> tuple[np.ndarray, Values, Values]:
        """The intervals of the lines of heights y that are inside: the number of the line, and both ends."""
        numbers, at = [np.arange(len(y))] * 2, [np.full(len(y), lower[0]), np.full(len(y), upper[0])]
        for run in self._curves[1]:
            line, x = run.crossings(y)
            numbers.append(line)
            at.append(np.clip(x, lower[0], upper[0]))
        line, x = np.concatenate(numbers), np.concatenate(at)
        order = np.lexsort((x, line))
        line, x = line[order], x[order]
        kept = (line[1:] == line[:-1]) & (x[1:] - x[:-1] > 1e-15 * np.max(np.abs(x)))
        line, a, b = line[:-1][kept], x[:-1][kept], x[1:][kept]
        inside = self.domain.contains(np.stack([(a + b) / 2, y[line]], axis=1))
        return line[inside], a[inside], b[inside]

    def _by_lines(self, lower: Values, upper: Values, order: int) -> Rule:
        """In more dimensions: lines along the first axis, at nodes in cells that are refined where their lengths are
        not smooth."""
        base, weights = refined_cells(self.domain.contains, lower, upper, order)
        line, a, b = inside_intervals(self.domain.contains, base, lower[0], upper[0], order)
        x = a[:, None] + (b - a)[:, None] * gauss(order)
        points = np.concatenate([x[:, :, None], np.repeat(base[line][:, None], order, axis=1)], axis=2)
        all_weights = weights[line, None] * (b - a)[:, None] * gauss_weights(order)
        return Rule.inside(points.reshape(-1, len(lower)), all_weights.reshape(-1))


@lru_cache(maxsize=16)
def quadrature_of(domain: Domain) -> Quadrature:
    """The rules for a domain."""
    return Quadrature(domain)


def over_part(part: Part, order: int) -> Rule:
    """A rule for a part of a boundary, or for the space at one time, with `order` nodes along each parameter, and twice
    as many around a circle."""
    return Rule.joined([_over_piece(piece, order) for piece in part.pieces])


def _over_piece(piece: Piece, order: int) -> Rule:
    if isinstance(piece, Slice):
        inside = quadrature_of(piece.space).whole(order)
        points, normals = piece.chart(np.full((len(inside.points), piece.dim), 0.5))
        points[:, :-1] = inside.points
        # What is trimmed is a part of the space only; the margin at its boundary, which `keep` leaves out, has nodes.
        kept = np.ones(len(points), dtype=bool) if piece.keep is None else piece.keep(points, normals)
        return Rule(points[kept], normals[kept], inside.weights[kept])
    if piece.keep is not None:
        order *= SURFACE_NODES
        u = tensor([(np.arange(order) + 0.5) / order] * piece.dim)
        points, normals = piece.filtered(*piece.chart(u))
        return Rule(points, normals, np.full(len(points), piece.measure / len(points)))
    nodes, weights = [], []
    for i, has_ends in enumerate(piece.ends):
        # Around a circle equal weights are best; of the closed parameters of a sphere only the last is an angle.
        is_angle = not has_ends and all(piece.ends[i + 1 :])
        around = AROUND * order
        nodes.append((np.arange(around) + 0.5) / around if is_angle else gauss(order))
        weights.append(np.full(around, 1 / around) if is_angle else gauss_weights(order))
    points, normals = piece.chart(tensor(nodes))
    return Rule(points, normals, piece.measure * np.prod(tensor(weights), axis=1))


def box_rule(lower: Values, upper: Values, order: int) -> Rule:
    """Products of Gauss's rules in a box, with `order` nodes along its longest side."""
    sides = upper - lower
    if (sides <= 0).any():
        return Rule.inside(np.zeros((0, len(lower))), np.zeros(0))
    counts = [max(FEWEST, int(np.ceil(order * side / sides.max()))) for side in sides]
    weights = np.prod(tensor([gauss_weights(n) for n in counts]), axis=1)
    return Rule.inside(lower + sides * tensor([gauss(n) for n in counts]), np.prod(sides) * weights)


def _times(space: Rule, start: float, end: float, order: int) -> Rule:
    """The product of a rule in space with an interval of time."""
    n, times = len(space.points), start + (end - start) * gauss(order)
    points = np.concatenate([np.tile(space.points, (order, 1)), np.repeat(times, n)[:, None]], axis=1)
    return Rule.inside(points, np.outer((end - start) * gauss_weights(order), space.weights).reshape(-1))


def _round(domain: "Annulus | Ball | Disk | Shell", order: int) -> Rule:
    """Disks, balls and shells: spheres around the center."""
    sphere = _over_piece(domain.pieces[-1], order)
    radii = domain.inner + (domain.outer - domain.inner) * gauss(order)
    shares = (domain.outer - domain.inner) * gauss_weights(order) * (radii / domain.outer) ** (domain.dim - 1)
    directions = (sphere.points - domain.center) / domain.outer
    points = domain.center + (radii[:, None, None] * directions).reshape(-1, domain.dim)
    return Rule.inside(points, np.outer(shares, sphere.weights).reshape(-1))


def _across(
    a: float, b: float, count: int, root_at_a: bool, root_at_b: bool
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Heights between a and b with weights, for a function with a square root at one or both of them."""
    nodes, weights = gauss(count), gauss_weights(count)
    if root_at_a and root_at_b:
        return a + (b - a) * (1 - np.cos(np.pi * nodes)) / 2, (b - a) * np.pi / 2 * np.sin(np.pi * nodes) * weights
    if root_at_a:
        return a + (b - a) * nodes**2, (b - a) * 2 * nodes * weights
    if root_at_b:
        return b - (b - a) * nodes**2, (b - a) * 2 * nodes * weights
    return a + (b - a) * nodes, (b - a) * weights


@dataclass(frozen=True, eq=False)
class _Run:
    """A part of a curve between two parameters, along which a coordinate is monotone. `turns` says of each end whether
    the curve turns around there."""

    piece: Piece
    axis: int
    start: float
    stop: float
    ends: Float[np.ndarray, "2 2"]
    turns: tuple[bool, bool]

    def crossings(self, values: Values) -> tuple[np.ndarray, Values]:
        """Which of the values the coordinate takes, and the other coordinate there."""
        first, last = self.ends[:, self.axis]
        which = np.flatnonzero((values > min(first, last)) & (values < max(first, last)))
        if len(which) == 0:
            return which, np.zeros(0)
        wanted = values[which]

        def excess(s: Values) -> Values:
            return self.piece.chart(s[:, None])[0][:, self.axis] - wanted

        s = _zeros(excess, self.start, self.stop, first - wanted, last - wanted)
        return which, self.piece.chart(s[:, None])[0][:, 1 - self.axis]


def _zeros(function: Callable[[Values], Values], start: float, stop: float, at_a: Values, at_b: Values) -> Values:
    """Where a function changes its sign between `start` and `stop`, for many at once: false position, which is exact on
    straight lines, and bisection in turn."""
    a, b = np.full(len(at_a), start), np.full(len(at_a), stop)
    at_a, at_b = at_a.copy(), at_b.copy()
    for step in range(110):
        share = at_a / (at_a - at_b) if step % 2 == 0 else 0.5
        middle = a + share * (b - a)
        value = function(middle)
        same = (value > 0) == (at_a > 0)
        a, at_a = np.where(same, middle, a), np.where(same, value, at_a)
        b, at_b = np.where(same, b, middle), np.where(same, at_b, value)
        exact = value == 0
        a, b = np.where(exact, middle, a), np.where(exact, middle, b)
        at_a, at_b = np.where(exact, 1.0, at_a), np.where(exact, -1.0, at_b)
        if np.max(np.abs(b - a)) <= 4e-16:
            break
    return a + at_a / (at_a - at_b) * (b - a)


def _runs(piece: Piece, axis: int) -> list[_Run]:
    """The parts of a curve along which a coordinate is monotone, without those where it is constant."""
    s = np.linspace(0.0, 1.0, LOOKS + 1)
    # Along the curve the coordinate changes in proportion to the other coordinate of the normal.
    slopes = piece.chart(s[:, None])[1][:, 1 - axis]
    if np.max(np.abs(slopes)) <= 1e-13:
        return []
    up = slopes > 0
    changes = np.flatnonzero((up[1:] != up[:-1]) & (np.abs(slopes[1:]) + np.abs(slopes[:-1]) > 1e-13))
    cuts = _bisected(lambda t: piece.chart(t[:, None])[1][:, 1 - axis] > 0, s[changes], s[changes + 1])
    parameters = np.unique(np.concatenate([[0.0], cuts, [1.0]]))
    parameters = parameters[np.append(np.diff(parameters) > 1e-12, True)]
    points, normals = piece.chart(parameters[:, None])
    turns = np.abs(normals[:, 1 - axis]) < 1e-6
    return [
        _Run(piece, axis, float(a), float(b), points[[i, i + 1]], (bool(turns[i]), bool(turns[i + 1])))
        for i, (a, b) in enumerate(itertools.pairwise(parameters))
    ]


def _bisected(holds: Callable[[Values], np.ndarray], a: Values, b: Values) -> Values:
    """Where a property changes between a and b."""
    at_a = holds(a)
    for _ in range(60):
        middle = (a + b) / 2
        same = holds(middle) == at_a
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    return (a + b) / 2
