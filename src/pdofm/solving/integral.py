"""Integrals of solutions over their domain, or over a part of its boundary, with error estimates."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pdofm._types import Coefficients
from pdofm.calculus.terms import Term, in_layout
from pdofm.discrete.assemble import left_values
from pdofm.discrete.averages import rule_in_leaves, rule_on_part
from pdofm.discrete.boxed import cover_of
from pdofm.discrete.collocate import Block
from pdofm.discrete.cover import Cover, by_patch
from pdofm.discrete.evaluate import evaluate
from pdofm.discrete.leftsides import symbol_at
from pdofm.domain import Part, Regions
from pdofm.domain.quadrature import Rule, over_part, quadrature_of
from pdofm.domain.spacetime import Slice
from pdofm.errors import ProblemError
from pdofm.features import Features, InBoxes, RegionFeatures
from pdofm.features.patches import grouped, tensor_indices
from pdofm.features.regions import RegionPolynomials
from pdofm.numerics.nodes import tensor_chebyshev
from pdofm.problem.conditions import Residual, Value, takes_normal
from pdofm.problem.data import Given
from pdofm.problem.problem import Problem
from pdofm.problem.trial import Trial

ORDERS = {1: (32, 64, 128, 256), 2: (24, 40, 64, 96), 3: (12, 18, 26, 34), 4: (8, 11, 14), 5: (6, 8)}
"""Nodes along the longest side of a domain in one rule after the other, by dimension."""

MORE = (2, 8, 16)
"""Nodes along each side of a box, beyond the degree of its polynomials, in one rule after the other."""

ROUNDING = 1e-15
"""Two rules that differ by less than this, relative to the integral of the absolute value, differ by rounding."""

FINER, FINEST = 0.6, 0.8
"""Features whose rank is at least the second number, relative to the last, are the finest ones; in boxes polynomials
whose degree along an axis is above this fraction of the highest. The first number says the same of the part before."""

LIKELY = 2.0
"""A sum of errors with random signs is rarely larger than so many times the root of the sum of their squares."""

SIZED = 500
"""Points at which the sizes of functions are compared."""

TRIMMED = 1e-3
"""Relative accuracy to which the area of a trimmed surface is known."""


class Integral(np.ndarray):
    """The value of an integral, an array without axes for a number, with an `error_estimate`."""

    error_estimate: float

    def __new__(cls, value: Any, error_estimate: float) -> "Integral":
        found = np.asarray(value).view(cls)
        found.error_estimate = error_estimate
        return found

    def __array_finalize__(self, source: Any) -> None:
        self.error_estimate = getattr(source, "error_estimate", float("nan"))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """What is computed from an integral is a plain number or array: its error is not known."""
        return array[()] if array.ndim == 0 else np.asarray(array)

    def __repr__(self) -> str:
        return f"Integral({np.array2string(np.asarray(self))}, error_estimate={self.error_estimate:.1e})"


def integrate(
    problem: Problem,
    features: Features,
    coefficients: Coefficients,
    of: Any,
    on: Any,
    relative_error: float,
) -> Integral:
    """The integral of a solution, or of a function of it, over its domain or a part.

    The difference of two rules is the error of the quadrature. That of the solution, of `relative_error` in L2, adds at
    most that times ‖v‖ |Ω|^½ if the integrand v is the solution itself, by Cauchy and Schwarz. Other functions of the
    solution are taken to have the same relative error, and those that contain derivatives at least the one that an
    error of that size in the finest features causes: derivatives enlarge it, and where they vanish it remains.
    """
    _check(of, on)
    if problem.regions is not None and on is not None:
        return _by_side(problem, problem.regions, features, coefficients, of, on, relative_error)
    return _integrate(problem, features, coefficients, of, on, relative_error)


def _by_side(
    problem: Problem,
    regions: Regions,
    features: Features,
    coefficients: Coefficients,
    of: Any,
    on: Part,
    relative_error: float,
) -> Integral:
    """The integral over a part, as the regions see it that its normals point out of; of one side of a solution as that
    region sees it."""
    own = getattr(features, "only", None)
    total, error = np.zeros(()), 0.0
    for inner, _, part in regions.sides(on):
        seen = features if own is not None else of_region(features, inner)
        found = _integrate(problem, seen, coefficients, of, part, relative_error)
        total, error = total + np.asarray(found), error + found.error_estimate
    return Integral(total, error)


def of_region(features: Features, name: str) -> Features:
    """Features as one region sees them."""
    return features.of_region(name) if isinstance(features, RegionFeatures | RegionPolynomials) else features


def _integrate(
    problem: Problem,
    features: Features,
    coefficients: Coefficients,
    of: Any,
    on: Part | None,
    relative_error: float,
) -> Integral:
    term = in_layout(Term("integral", Value(None) if of is None else Residual(of), 0.0, on, 1.0), problem.layout)
    Trial(problem.domain, problem.layout).check_term(term, Given((0.0,)))
    before, found, size, square, measure = None, np.zeros(0), 0.0, 0.0, 0.0
    rule, block = None, None
    for rule in _rules(problem, features, on):
        normals = rule.normals[:, : problem.domain.dim - problem.layout.has_time]
        block = Block(term, Given((0.0,)), rule.points, normals)
        values = _gathered(problem, left_values(problem.layout, features, block, coefficients))
        before, found = found if before is not None or len(found) else None, rule.weights @ values
        size = float(np.max(rule.weights @ np.abs(values), initial=0.0))
        square, measure = float(np.max(rule.weights @ np.abs(values) ** 2, initial=0.0)), float(rule.weights.sum())
        if before is not None and np.max(np.abs(found - before)) <= ROUNDING * size:
            break
    assert rule is not None
    assert block is not None
    gap = float(np.max(np.abs(found - before))) if before is not None else np.inf
    trimmed = on is not None and any(piece.keep is not None and not isinstance(piece, Slice) for piece in on.pieces)
    inherited = relative_error * (square * measure) ** 0.5
    if symbol_at(problem.layout, term.lhs, block).order > 0 and np.isfinite(relative_error):
        inherited = max(inherited, _moved(problem, features, coefficients, block, rule.weights, relative_error))
    error = max(gap, (TRIMMED if trimmed else ROUNDING) * size) + inherited
    return Integral(found[0] if _is_scalar(problem, of, len(found)) else found, error)


def _moved(
    problem: Problem,
    features: Features,
    coefficients: Coefficients,
    block: Block,
    weights: np.ndarray,
    relative_error: float,
) -> float:
    """The integral of the change of the integrand, if the finest features change as much as the solution may be
    wrong."""
    if features.size != len(coefficients):
        return 0.0
    tail, points = _finest(problem, features, coefficients), problem.domain.sample(SIZED)
    nothing = evaluate(features, np.zeros_like(coefficients), points)
    size = np.linalg.norm(evaluate(features, coefficients, points))
    part = np.linalg.norm(evaluate(features, tail, points) - nothing)
    if not part > 0:
        return 0.0
    values, changed = (
        _gathered(problem, left_values(problem.layout, features, block, each))
        for each in (coefficients, coefficients + min(relative_error * size / part, 1.0) * tail)
    )
    change = weights[:, None] * np.abs(changed - values)
    if not isinstance(features, InBoxes):
        return float(np.max(np.sum(change, axis=0), initial=0.0))
    # Errors of different boxes have different signs, as if these were random.
    of_boxes = [np.sum(change[at], axis=0) for _, at in grouped(features.locate(block.points, -block.normals))]
    return LIKELY * float(np.max(np.linalg.norm(of_boxes, axis=0), initial=0.0))


def _finest(problem: Problem, features: Features, coefficients: Coefficients) -> Coefficients:
    """The coefficients of the finest part of a solution: those of the finest features, in boxes what follows after the
    highest polynomials of each box."""
    if not isinstance(features, InBoxes):
        finest = np.asarray(features.ranks) >= FINEST * np.max(features.ranks)
        return np.where(finest[:, None], coefficients, 0.0)
    cover, found = cover_of(problem.domain, features), np.zeros_like(coefficients)
    patches = cover.features.patches
    points, owner = cover.interior([tensor_chebyshev(tuple((2 * each).tolist())) for each in patches.along])
    for patch, here in enumerate(by_patch(owner, len(patches))):
        own, degrees = patches.polynomials(patch), np.array(patches.shape(patch))
        if not patches.are_polynomials[patch] or np.max(degrees) == 0:
            continue
        indices = tensor_indices(tuple(degrees.tolist()))
        values = patches.jets(patch, points[here], [(0,) * problem.domain.dim])[0][:, : len(indices)]
        tails = []
        for fraction in (FINER, FINEST):
            # The highest polynomials of a box that the boundary cuts are large outside of the domain, and those of
            # lower degrees cancel them inside. What they add is what the lower ones alone cannot fit at points inside.
            high = np.any(indices > fraction * degrees, axis=1)
            tail = np.where(high[:, None], coefficients[own], 0.0)
            tail[~high] = -np.linalg.lstsq(values[:, ~high], values @ tail, rcond=1e-12)[0]
            tails.append(tail)
        # What is missing is to the last part as this is to the one before.
        before, last = (np.linalg.norm(values @ tail, axis=0) for tail in tails)
        found[own] = tails[1] * np.divide(last, before, out=np.ones_like(last), where=before > last)
    return found


def _check(of: Any, on: Any) -> None:
    if of is not None and not callable(of):
        raise ProblemError(
            f"of= must be a function such as lambda u, x: u(x) ** 2; got {type(of).__name__}. Leave it out for the "
            "integral of the solution itself."
        )
    if on is not None and not isinstance(on, Part):
        raise ProblemError(
            f"on= must be a part of the domain, such as domain.boundary or domain.part(name); got {type(on).__name__}. "
            "Leave it out for the integral over the domain."
        )
    if of is not None and on is None and takes_normal(of):
        raise ProblemError(
            "The function takes a normal, which points inside the domain do not have. Give a part of the boundary: "
            "on=domain.boundary."
        )


def _gathered(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """Complex values from their real parts, which come first, and their imaginary parts."""
    k = rows.shape[1] // 2
    return rows[:, :k] + 1j * rows[:, k:] if problem.layout.is_complex else rows


def _is_scalar(problem: Problem, of: Any, entries: int) -> bool:
    return entries == 1 and (of is not None or problem.layout.unknowns is None)


def _rules(problem: Problem, features: Features, on: Part | None) -> Iterator[Rule]:
    """Rules of quadrature, one finer than the other."""
    domain, quadrature = problem.domain, quadrature_of(problem.domain)
    if isinstance(features, RegionPolynomials):
        # Functions are as smooth across boxes as they are accurate, so the rules need not follow the boxes.
        orders = [3 * order for order in ORDERS[domain.dim if on is None else max(domain.dim - 1, 1)]]
        yield from (quadrature.whole(order) if on is None else over_part(on, order) for order in orders[:-1])
    elif isinstance(features, InBoxes) and on is not None:
        cover = cover_of(domain, features)
        assert isinstance(cover, Cover)
        yield from (rule_on_part(cover, on, more)[0] for more in MORE)
    elif isinstance(features, InBoxes):
        yield from (rule_in_leaves(quadrature, features, more)[0] for more in MORE)
    else:
        orders = ORDERS.get(domain.dim if on is None else max(domain.dim - 1, 1), ORDERS[5])
        for order in orders:
            yield quadrature.whole(order) if on is None else over_part(on, order)
