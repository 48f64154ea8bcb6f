"""Where a solution is known to be singular before anything is solved, and trees of boxes that are graded towards it.

At a corner of inner angle ω of a plane domain a solution behaves like r^α with α = π / ω, and like r^(π / 2ω) where the
kind of condition changes there; on a straight side such a change alone gives r^(1/2). Where α < 1 the gradient is not
bounded, and boxes are halved towards the point from the start. At other corners the solution may be smooth, or as in
-Δu = 1 on a square like r² log r: they are graded if coefficients that fall slowly show that it is not.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool

from pdofm._types import Points, Vector
from pdofm.adaptive.holes import split_around_holes
from pdofm.adaptive.jumps import jumps_of_data
from pdofm.adaptive.sectors import material_points
from pdofm.calculus.terms import Difference
from pdofm.discrete.materials import make_tree
from pdofm.domain import Domain, Part, corners, round_holes
from pdofm.domain.edges import straight_edges
from pdofm.domain.holes import round_bores
from pdofm.domain.tree import BoxTree, Forest
from pdofm.features import BoreFunctions, CornerFunctions, EdgeFunctions, Features, HoleFunctions, SectorFunctions
from pdofm.problem.problem import Problem

COINCIDENT = 1e-9
"""Points nearer than this, relative to the domain, are one."""

DEEPEST = 1e-11
"""The smallest box relative to the domain: coordinates of order one resolve it to five digits."""

MOST_POINTS = 24
"""With more singular points than this, boxes are not cut through those where the gradient is bounded."""

THINNEST = 0.04
"""Boxes are not cut through points with bounded gradients where one half would be thinner than this fraction of its
length: the two sides of a slit end at points that nearly coincide."""

LONGEST = 3.0
"""The first boxes are at most so many times longer than wide."""

JUMP_EXPONENT = 0.5
"""Exponent of a solution whose data jump at a point: in the L2 norm, what is wrong in boxes of size r is r of the
whole, the square of r to this."""

AROUND = 2.0
"""Boxes within so many times their side of a point are those that were halved towards it."""

EXPONENTS = (4.0, 8.0)
"""The highest exponent at corners in small and in large spaces."""

REMAINDER = 1.0
"""Exponent of what remains at a singular point whose functions are known: sources and coefficients that vary add
functions such as r² log r, which degrees of polynomials also help with."""

Degrees = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SingularPoint:
    """A point where the solution may behave like r^exponent. Where regions meet, `functions` of each of them may be
    known that behave as the solution does. Where its data jump it is bounded, and what is wrong in the last box counts
    no more than the area of that."""

    point: Vector
    exponent: float
    functions: Mapping[str, Sequence[SectorFunctions]] = field(default_factory=dict)
    jumps: bool = False

    @property
    def is_strong(self) -> bool:
        """Whether the gradient is not bounded."""
        return self.exponent < 1 - 1e-6

    @property
    def remainder(self) -> float:
        """The exponent of what boxes cannot represent at the point."""
        return max(self.exponent, REMAINDER) if self.functions else self.exponent

    def smallest(self, tol: float) -> float:
        """The size of boxes, relative to the domain, below which the singularity is not seen any more. What is wrong in
        the last box, r^α, is seen from far away as r^2α."""
        power = 2 * self.remainder if self.is_strong else max(self.exponent, 1.0)
        return max(DEEPEST, (0.1 * tol) ** (1 / power))

    def left(self, tol: float) -> float:
        """The relative error that the smallest boxes at a strong singularity leave; measured in a checkerboard of
        exponent 0.1, in which they are far from small enough, it is twice this."""
        return 0.1 * self.smallest(tol) ** (2 * self.remainder) if self.is_strong else 0.0


def singular_functions(domain: Domain, degree: int, is_whole: bool = True) -> list[Features]:
    """The singular functions of the corners, edges and round holes of a domain: multipoles up to a degree around holes
    and bores, polynomials up to half of it along edges, and exponents up to a third of it at corners. A region that
    others touch is not the whole: what happens at its corners depends on them."""
    found: list[Features] = []
    if is_whole and corners(domain):
        found.append(CornerFunctions(domain, convex=True, highest=float(np.clip(degree / 3, *EXPONENTS))))
    if any(edge.ends_outside for edge in straight_edges(domain)):
        found.append(EdgeFunctions(domain, degree // 2))
    if round_holes(domain):
        found.append(HoleFunctions(domain, max(degree, 1)))
    if round_bores(domain):
        found.append(BoreFunctions(domain, max(degree, 1)))
    return found


def singular_points(problem: Problem) -> list[SingularPoint]:
    """The corners of a plane domain, and the points where data jump or the kind of condition changes."""
    domain = problem.domain
    if problem.regions is not None:
        return [SingularPoint(*each) for each in material_points(problem)]
    if domain.dim != 2 or domain.has_time:
        return []
    near = COINCIDENT * domain.size
    angles = [(corner.apex, corner.angle) for corner in corners(domain)]
    changes = changes_of_kind(problem, near)
    found = []
    system = problem.layout.components > 1
    jumps = jumps_of_data(problem, near)
    found += [SingularPoint(point, JUMP_EXPONENT, jumps=True) for point in jumps]
    changes = [point for point in changes if all(math.dist(point, other) > near for other in jumps)]
    angles = [each for each in angles if all(math.dist(each[0], other) > near for other in jumps)]
    for apex, angle in angles:
        changed = any(math.dist(apex, other) <= near for other in changes)
        exponent = math.pi / angle / (2 if changed else 1)
        # Velocities and displacements at a re-entrant corner behave like r to an exponent above one half.
        found.append(SingularPoint(apex, min(exponent, 0.5) if system and angle > math.pi + 1e-9 else exponent))
    found += [
        SingularPoint(point, 0.5) for point in changes if all(math.dist(point, apex) > near for apex, _ in angles)
    ]
    return found


def functions_by_region(points: Sequence[SingularPoint]) -> dict[str, list[SectorFunctions]]:
    """The singular functions of all points, by region."""
    found: dict[str, list[SectorFunctions]] = {}
    for point in points:
        for name, functions in point.functions.items():
            found.setdefault(name, []).extend(functions)
    return found


def changes_of_kind(problem: Problem, near: float) -> list[Vector]:
    """The ends of boundary curves at which conditions of different kinds meet."""
    ends: list[tuple[Vector, Vector, object]] = []
    for term in problem.terms[1:]:
        if not isinstance(term.on, Part) or isinstance(term.lhs, Difference):
            continue
        for piece in term.on.pieces:
            if piece.dim == 1 and piece.ends[0]:
                points, _ = piece.chart(np.array([[0.0], [1e-6], [1.0 - 1e-6], [1.0]]))
                ends += [(points[0], points[1] - points[0], term.lhs), (points[3], points[2] - points[3], term.lhs)]
    found: list[Vector] = []
    for point, _, _ in ends:
        if any(math.dist(point, other) <= near for other in found):
            continue
        sides: list[tuple[Vector, set[object]]] = []  # each with its direction and the kinds that hold on it
        for other, along, kind in ends:
            if math.dist(point, other) > near:
                continue
            direction = along / np.linalg.norm(along)
            same = next((kinds for d, kinds in sides if d @ direction > 1 - 1e-6), None)
            if same is None:
                sides.append((direction, {kind}))
            else:
                same.add(kind)
        if any(kinds != sides[0][1] for _, kinds in sides):
            found.append(point)
    return found


def are_at_jumps(points: Sequence[SingularPoint], lower: Points, upper: Points) -> Bool[np.ndarray, " n"]:
    """Which boxes lie around points at which data jump, within `AROUND` times their side."""
    found, sides = np.zeros(len(lower), dtype=bool), np.max(upper - lower, axis=1)
    for point in points:
        if point.jumps:
            found |= np.linalg.norm(point.point - np.clip(point.point, lower, upper), axis=1) <= AROUND * sides
    return found


def first_tree(
    problem: Problem, points: list[SingularPoint], cuts: Sequence[tuple[int, float]], largest: Vector
) -> BoxTree:
    """Boxes that are cut through the singular points and at given coordinates, as (axis, coordinate); beyond these none
    is longer than `largest`, or much longer than wide."""
    domain = problem.domain
    tree = make_tree(domain)
    for axis, at in cuts:
        for node in tree.leaves.tolist():
            lower, upper = tree.box(node)
            if lower[axis] < at < upper[axis]:
                tree.split(node, axis, at)
    thin = {axis for axis, _ in cuts}
    used = points if len(points) <= MOST_POINTS else [point for point in points if point.is_strong]
    for strong in (True, False):
        here = [point.point for point in used if point.is_strong == strong]
        thinnest = 0.0 if strong else THINNEST
        _cut_through(tree, np.array(here).reshape(-1, domain.dim), COINCIDENT * domain.size, thinnest)
    waiting = tree.leaves.tolist()
    while waiting:
        node = waiting.pop()
        sides = np.subtract(*tree.box(node)[::-1])
        # Boxes across a layer are meant to be thin; time is no length.
        alike = [axis for axis in range(domain.dim - domain.has_time) if axis not in thin]
        limit = np.array(largest)
        if len(alike) > 1:
            limit[alike] = np.minimum(limit[alike], LONGEST * np.min(sides[alike]))
        over = sides / limit
        if np.max(over) > 1 + 1e-9:
            waiting += tree.split(node, int(np.argmax(over)))
    if isinstance(tree, Forest):
        split_around_holes(tree, domain)
    return tree


def _cut_through(tree: BoxTree, points: Points, near: float, thinnest: float) -> None:
    """Cut boxes through points in them, so that these become corners of boxes; but not where one half would be thinner
    than a fraction of its length."""
    waiting = tree.leaves.tolist()
    while waiting:
        node = waiting.pop()
        lower, upper = tree.box(node)
        held = points[np.all((points >= lower - near) & (points <= upper + near), axis=1)]
        inner = (held > lower + near) & (held < upper - near)
        inner &= np.minimum(held - lower, upper - held) > thinnest * np.max(upper - lower)
        if inner.any():  # the most central cut first, so that boxes are not thinner than they must be
            off = np.where(inner, np.abs(held - (lower + upper) / 2) / (upper - lower), np.inf)
            row, axis = np.unravel_index(np.argmin(off), off.shape)
            waiting += tree.split(node, int(axis), float(held[row, axis]))


def grade(
    tree: BoxTree,
    degrees: dict[int, Degrees],
    node: int,
    point: Vector,
    smallest: float,
    degree: Callable[[float], int],
) -> None:
    """Halve a leaf towards a point of it along all axes, down to a size; `degree` of the polynomials follows the size
    of boxes."""
    near = COINCIDENT
    while True:
        lower, upper = tree.box(node)
        size = float(np.max(upper - lower))
        if size <= smallest:
            return
        children = [node]
        for axis in range(len(lower)):
            children = [half for child in children for half in tree.split(child, axis)]
        before = degrees.pop(node)
        following = None
        for child in children:
            low, high = tree.box(child)
            degrees[child] = tuple(min(k, degree(size / 2)) for k in before)
            if np.all((point >= low - near * size) & (point <= high + near * size)) and following is None:
                following = child
        if following is None:
            return
        node = following
