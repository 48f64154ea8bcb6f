"""Whether a solution resolves the places where coefficients of its equation change steeply.

The measure is the residual integrated across such a place, along the direction of the change. If the flux a ∂u/∂n of
``div(a grad u)`` fails to be continuous, that integral is the jump of the flux, however narrow the place. The residual
of a steep coefficient outside of derivatives is bounded, and its integral vanishes with the width: not resolving it
does no harm.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients
from pdofm.calculus.steep import Transition
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Term
from pdofm.discrete.assemble import left_values
from pdofm.discrete.collocate import Block
from pdofm.discrete.evaluate import derivatives, evaluate
from pdofm.discrete.leftsides import entries
from pdofm.discrete.right import right_values
from pdofm.features import Features
from pdofm.problem.problem import Problem
from pdofm.solving.sizes import row_sizes

REACH, ACROSS = 4.0, 65
"""How far from a place the residual is integrated, in widths, and at how many points."""

TYPICAL_POINTS = 256
"""Points at which the typical size of the terms of the equation is measured."""


def missed_flux(problem: Problem, features: Features, coefficients: Coefficients) -> float | None:
    """The largest integral of the residual across a steep place, relative to the size of the terms of the equation
    times the size of the domain; None if there is no such place."""
    found = [_missed(problem, term, places, features, coefficients) for term, places in _by_equation(problem) if places]
    return max(found, default=None)


def _by_equation(problem: Problem) -> list[tuple[Term, Sequence[Transition]]]:
    """The steep places of each equation: of several regions, those in its region."""
    if problem.regions is None:
        return [(problem.equations[0], problem.transitions)]
    places = problem.transitions
    if not places:
        return []
    which = problem.regions.which(np.array([place.point for place in places]))
    return [
        (t, [place for place, i in zip(places, which, strict=True) if i == n]) for n, t in enumerate(problem.equations)
    ]


def _missed(
    problem: Problem, term: Term, places: Sequence[Transition], features: Features, coefficients: Coefficients
) -> float:
    """The same for the places of one equation."""
    layout, domain = problem.layout, problem.domain_of(term)
    s = np.linspace(-REACH, REACH, ACROSS)[:, None]
    points = np.stack([place.point + place.width * s * place.direction for place in places])
    inside = domain.contains(points.reshape(-1, domain.dim)).reshape(points.shape[:2])
    at = np.where(inside[:, :, None], points, [[place.point] for place in places]).reshape(-1, domain.dim)
    space_dim = domain.dim - layout.has_time
    block = Block(term, problem.right_side(term), at, np.zeros((len(at), space_dim)))
    residual = left_values(layout, features, block, coefficients)
    residual -= right_values(layout, block, entries(layout, block))
    step = 2 * REACH / (ACROSS - 1) * np.array([place.width for place in places])
    integrals = step[:, None] * np.sum(residual.reshape(*points.shape[:2], -1) * inside[:, :, None], axis=1)
    sizes = domain.size * _sizes(problem, term, features, coefficients)
    missed = np.max(np.abs(integrals), axis=0)
    return float(np.max(np.divide(missed, sizes, out=np.zeros_like(missed), where=sizes > 0)))


def term_sizes(problem: Problem, features: Features, coefficients: Coefficients) -> Float[np.ndarray, " k"]:
    """The typical size of the terms of the equation, Σ_α |G_α| |u| / L^|α| with the size L of the domain; the largest
    of those of several regions."""
    return np.max([_sizes(problem, term, features, coefficients) for term in problem.equations], axis=0)


def _sizes(problem: Problem, term: Term, features: Features, coefficients: Coefficients) -> Float[np.ndarray, " k"]:
    """The same for one equation."""
    layout, domain = problem.layout, problem.domain_of(term)
    features = features.sides(term)[0]
    space_dim, somewhere = domain.dim - layout.has_time, domain.sample(TYPICAL_POINTS)
    symbol = symbol_of(term.lhs, layout, domain.dim, space_dim)
    which = symbol.indices(somewhere, np.zeros((len(somewhere), space_dim)))
    found = symbol.coefficients(somewhere, derivatives(features, coefficients, somewhere, which))
    u = np.sqrt(np.mean(evaluate(features, coefficients, somewhere) ** 2, axis=0))
    return row_sizes(found.coefficients, which, float(domain.size), u)
