"""What polynomials on the whole of a domain are joined with, so that they converge fast: functions that are singular at
corners and around round holes, and quadrature that integrates them."""

import math

import numpy as np
from jaxtyping import Bool, Float

from pdofm.calculus.symbol import random_jet, symbol_of
from pdofm.domain import Domain, corners, round_holes
from pdofm.domain.outline import PlaneCorner
from pdofm.domain.quadrature import Rule, quadrature_of
from pdofm.domain.tree import BoxTree
from pdofm.features import Chebyshev, Concatenate, CornerFunctions, Features, HoleFunctions
from pdofm.marching.arrays import Points
from pdofm.marching.statement import Statement

ORDER, HIGHEST_ORDER = (2.0, 0.35), 10.0
"""Corner functions grow at most like this power of the distance to the corner: so much, and so much more for each
degree of the polynomials, up to a limit. Polynomials resolve higher powers."""

OTHER_EXPONENT, OTHER_DEGREE = 4.0, 0.2
"""The highest exponent, and the degree of factors in units of that of the polynomials, for equations other than
∂u/∂t = Δu + f(u)."""

MULTIPOLES = 0.6
"""The degree of multipoles around holes, in units of the degree of the polynomials."""

GRADED, LAYERS = 0.15, 2
"""Quadrature is graded towards corners: so many layers of boxes, each smaller by this factor."""

ON_SIDE = 1e-9
"""The sine of the angle between a side of a corner and the direction to a point on it: rounding."""

VANISHING = 1e-9
"""The size of a condition for a function that satisfies it, relative to others: rounding."""

Row = tuple[Points, Points, Float[np.ndarray, "n k m"]]
"""Points of the boundary, normals, and a condition there for each of m functions."""

WHOLE_NUMBER = 1e-9
"""Exponents nearer than this to an integer belong to polynomials."""


def joined(statement: Statement, degree: int) -> Features:
    """Polynomials up to a degree, with singular functions where the domain has any."""
    space = statement.domain.space
    found: list[Features] = [Chebyshev(space, degree=degree)]
    mixed = is_mixed(statement)
    if singular_corners(statement):
        if is_isotropic(statement):
            highest = order_for(degree)
            options = {"highest": highest, "degree": int(highest), "radial": True}
            found.append(CornerFunctions(space, convex=True, mixed=mixed, **options))
        else:
            factors = round(OTHER_DEGREE * degree)
            found.append(CornerFunctions(space, highest=OTHER_EXPONENT, degree=factors, mixed=mixed))
    if space.dim == 2 and round_holes(space):
        found.append(HoleFunctions(space, round(MULTIPOLES * degree)))
    return Concatenate(*found) if len(found) > 1 else found[0]


def order_for(degree: int) -> float:
    """The highest order of corner functions that polynomials up to a degree are joined with."""
    return min(ORDER[0] + ORDER[1] * degree, HIGHEST_ORDER)


def compatible(statement: Statement, functions: CornerFunctions, rows: list[Row]) -> Bool[np.ndarray, " m"]:
    """Which corner functions up to the highest order satisfy the conditions on the sides of their corner; all of them
    if none does.

    Only these occur in solutions, and without the others they are far from dependent.
    """
    apexes, owners = np.asarray(functions.apexes), functions.owners
    kept = functions.orders <= functions.highest
    every = np.array([corner.apex for corner in corners(statement.domain.space)])
    for points, normals, values in rows:
        nearest = np.linalg.norm(points[:, None] - every, axis=2).min(axis=1)
        for number, apex in enumerate(apexes):
            offset = points - apex
            radius = np.linalg.norm(offset, axis=1)
            on_side = np.abs(np.sum(offset * normals, axis=1)) <= ON_SIDE * radius
            here = on_side & (radius <= nearest * (1 + ON_SIDE))
            own = owners == number
            if here.any() and own.any():
                sizes = np.abs(values[here][:, :, own])
                kept[own] &= np.max(sizes, axis=(0, 1)) <= VANISHING * np.max(sizes)
    return kept if kept.any() else functions.orders <= functions.highest


def is_mixed(statement: Statement) -> bool:
    """Whether conditions of several kinds hold on the boundary."""
    return len({term.lhs for term in statement.lateral}) > 1


def singular_corners(statement: Statement) -> list[PlaneCorner]:
    """The corners of a plane domain at which polynomials converge slowly."""
    parts = 2 if is_mixed(statement) else 1
    isotropic = is_isotropic(statement)

    def is_singular(corner: PlaneCorner) -> bool:
        exponent = math.pi / corner.angle / parts
        return abs(exponent - round(exponent)) > WHOLE_NUMBER if isotropic else corner.angle > math.pi + WHOLE_NUMBER

    return [corner for corner in corners(statement.domain.space) if is_singular(corner)]


def is_isotropic(statement: Statement) -> bool:
    """Whether space enters the equation by Δu alone: solutions at corners are then r^α sin(αθ) times powers of r²."""
    if statement.domain.space.dim != 2:
        return False
    at = statement.placed(statement.equation, statement.domain.space.sample(5))
    z, normals = at.at(np.array([statement.domain.t0, statement.domain.t1]))
    symbol = symbol_of(statement.equation.lhs, statement.problem.layout, statement.domain.dim, statement.domain.dim - 1)
    found = symbol.linearise(z, normals, random_jet(len(symbol.indices(z, normals)), len(z), statement.components))
    if found is None:
        return False
    by_index = {index: found.coefficients[:, :, a] for a, index in enumerate(found.indices)}
    none = np.zeros(found.coefficients[:, :, 0].shape)
    others = [each for index, each in by_index.items() if any(index[:-1]) and index not in ((2, 0, 0), (0, 2, 0))]
    return bool(
        np.array_equal(by_index.get((2, 0, 0), none), by_index.get((0, 2, 0), none))
        and not any(each.any() for each in others)
    )


def rule_at_corners(space: Domain, found: list[PlaneCorner], order: int) -> Rule:
    """A rule for a plane domain with about `order` nodes along its longest side, in boxes that are smaller at these
    corners."""
    if not found:
        return quadrature_of(space).whole(order)
    tree = BoxTree(space.lower, space.upper)
    for corner in found:
        for axis in range(2):
            for node in tree.leaves.tolist():
                lower, upper = tree.box(node)
                if lower[axis] < corner.apex[axis] < upper[axis]:
                    tree.split(node, axis, float(corner.apex[axis]))
        _grade(tree, corner)
    rules = []
    for node in tree.leaves.tolist():
        lower, upper = tree.box(node)
        share = float(np.max(upper - lower)) / float(np.max(space.upper - space.lower))
        rules.append(quadrature_of(space).in_box(lower, upper, math.ceil(1.2 * share * order) + 2))
    return Rule.joined(rules)


def _grade(tree: BoxTree, corner: PlaneCorner) -> None:
    """Cut boxes that touch a corner into a small one there and the rest."""
    for _ in range(LAYERS):
        for node in tree.leaves.tolist():
            lower, upper = tree.box(node)
            if np.all((corner.apex >= lower) & (corner.apex <= upper)):
                touching = node
                for axis in range(2):
                    at_lower = corner.apex[axis] == lower[axis]
                    share = GRADED if at_lower else 1 - GRADED
                    halves = tree.split(touching, axis, float(lower[axis] + share * (upper - lower)[axis]))
                    touching = halves[0 if at_lower else 1]
