"""Lengths that the coefficients of an equation tell before anything is solved.

Along an axis, a u'' + b u' + c u has solutions that oscillate with the wave number (c / a)^½ if a and c have the same
sign. Otherwise they grow and decay over a distance of (-a / c)^½, and with the derivative over a / b. Where these are
short, solutions are smooth but for layers at the boundary: boxes of the width of the layers resolve them at once.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pdofm._types import Vector
from pdofm.calculus.jets import Index, unit
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Term
from pdofm.problem.problem import Problem
from pdofm.solving.boxes import is_linear

SAMPLES = 64
"""Points at which the coefficients are looked at."""

THIN = 0.02
"""A layer is thin if its width is below this fraction of the domain."""


REACH = 2.0
"""Layers are followed so many times farther than it takes them to fall to the tolerance: a source may have wider
ones."""


@dataclass(frozen=True, eq=False)
class Lengths:
    """Along each axis of space the largest wave number (0 if nothing oscillates), and the width of the thinnest layer
    that can occur (infinity if none can)."""

    waves: Float[np.ndarray, " d"]
    layers: Float[np.ndarray, " d"]


def lengths(problem: Problem) -> Lengths:
    """The lengths of a linear equation for one unknown, or the shortest ones of several regions; otherwise none."""
    each = [_lengths(problem, equation) for equation in problem.equations]
    return Lengths(np.max([one.waves for one in each], axis=0), np.min([one.layers for one in each], axis=0))


def _lengths(problem: Problem, equation: Term) -> Lengths:
    domain, layout = problem.domain_of(equation), problem.layout
    dim = domain.dim
    waves, layers = np.zeros(dim), np.full(dim, math.inf)
    symbol = symbol_of(equation.lhs, layout, dim, dim - layout.has_time)
    if layout.components > 1 or not symbol.is_affine or not symbol.is_small or layout.has_time:
        return Lengths(waves, layers)
    points = domain.sample(SAMPLES)
    found = symbol.coefficients(points)

    def along(index: Index) -> Vector:
        if index not in found.indices:
            return np.zeros(len(points))
        return found.coefficients[:, 0, found.indices.index(index), 0]

    with np.errstate(divide="ignore", invalid="ignore"):
        for axis in range(dim):
            second, first, zeroth = (
                along(tuple(2 * k for k in unit(dim, axis))),
                along(unit(dim, axis)),
                along((0,) * dim),
            )
            ratio = np.where(second != 0, zeroth / second, 0.0)
            waves[axis] = np.sqrt(np.max(np.abs(ratio[ratio > 0]), initial=0.0))
            widths = [np.sqrt(-1 / ratio[ratio < 0]), np.abs(second / first)[(first != 0) & (second != 0)]]
            layers[axis] = np.min(np.concatenate(widths), initial=math.inf)
    return Lengths(waves, layers)


def layer_cuts(problem: Problem, found: Lengths, tol: float) -> list[tuple[int, float]]:
    """Where boxes are cut along the sides of the domain, as (axis, coordinate): where layers have fallen to the
    tolerance, and at a quarter of that distance."""
    domain, cuts = problem.domain, []
    for axis, width in enumerate(found.layers.tolist()):
        lower, upper = float(domain.lower[axis]), float(domain.upper[axis])
        if width > THIN * (upper - lower):
            continue
        reach = REACH * width * math.log(1 / tol)
        for distance in (reach, reach / 4):
            if distance < (upper - lower) / 4:
                cuts += [(axis, lower + distance), (axis, upper - distance)]
    return cuts


def disturbance(problem: Problem, found: Lengths) -> tuple[float, int]:
    """How far a residual disturbs the solution, relative to the domain, and its excess k - d, for a linear equation of
    order k for one unknown in d < k dimensions.

    The residual r of a box of width h causes an error of h^k r in it and, by its integral, of h^d r within that
    distance. Otherwise the second error is not larger, or not known: then the distance is zero.
    """
    layout, dim = problem.layout, problem.domain.dim
    if layout.components > 1 or layout.has_time or not is_linear(problem):
        return 0.0, 1
    excess = max(max(problem.orders(axis)) for axis in range(dim)) - dim
    sides = problem.domain.upper - problem.domain.lower
    return (float(np.min(found.layers / sides, initial=1.0)), excess) if excess > 0 else (0.0, 1)
