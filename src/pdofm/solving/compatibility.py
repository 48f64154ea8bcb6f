"""Data that contradict each other, whatever the space: conditions of solvability.

If smooth functions w, one for each term, satisfy

    ∫ w₀ L φ + Σ_k ∮ w_k B_k φ = 0    for all φ,

the data f, g of a solution must satisfy ∫ w₀ f + Σ ∮ w_k g_k = 0. For Neumann's problem w₀ and w_k are constants; for
an elastic body on which only tractions act they are translations and rotations. So w is looked for among polynomials of
degree one. That it satisfies the identity is a property of the left sides, and holds to rounding or not at all: it is
tested with polynomials φ and accurate quadrature. Nothing is solved, so data and solutions that no space resolves are
not mistaken for contradictory ones; nor is an equation with a small coefficient of its highest derivative, for which
the identity fails by as much as that coefficient.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float

from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Difference
from pdofm.discrete.assemble import assemble
from pdofm.discrete.collocate import Block
from pdofm.discrete.details import details_of
from pdofm.domain import Part
from pdofm.domain.quadrature import over_part, quadrature_of
from pdofm.errors import PdofmError
from pdofm.features import Chebyshev
from pdofm.problem.problem import Problem

MOST_DIMENSIONS = 3
"""In more dimensions accurate quadrature has too many nodes."""

DEGREE = {1: 12, 2: 8, 3: 5}
"""The degree of the functions φ, by dimension: there are more of them than of the functions w."""

ORDERS = {1: (64, 83, 101), 2: (31, 40, 48), 3: (13, 16, 20)}
"""Nodes along the longest side of the domain in three rules of quadrature, by dimension: rules that miss what the data
do between their nodes do not agree."""

ORTHOGONAL = 1e-11
"""The cosine of the angle between w and the left sides of all φ below which the identity holds."""

NEGLIGIBLE = 1e-13
"""Left sides of a function φ below this fraction of the largest ones are rounding."""

CERTAIN, EXACT = 30.0, 1e-10
"""A violation counts if it is so many times as large as the differences between the rules, and above rounding."""

_known: "WeakKeyDictionary[Problem, float]" = WeakKeyDictionary()


def contradiction(problem: Problem) -> float:
    """By how much the data violate a condition of solvability, as a fraction of their size; 0 if none is found."""
    if problem not in _known:
        _known[problem] = _violation(problem) if _is_eligible(problem) else 0.0
    return _known[problem]


def _is_eligible(problem: Problem) -> bool:
    """Whether a problem is a linear one in space, of which integrals can be computed."""
    dim = problem.domain.dim
    if dim > MOST_DIMENSIONS or problem.layout.has_time or problem.regions is not None or problem.parameters.names:
        return False
    local = [term for term in problem.terms if not isinstance(term.lhs, Difference)]
    return all(symbol_of(term.lhs, problem.layout, dim, dim).is_affine for term in local)


def _violation(problem: Problem) -> float:
    """The violation of conditions of solvability, from rules that must agree."""
    try:
        found = [_by_rule(problem, order) for order in ORDERS[problem.domain.dim]]
        if not min(found) > max(EXACT, CERTAIN * (max(found) - min(found))) or details_of(problem):
            return 0.0
    except PdofmError:  # no rule for this domain, or something is not finite at a node
        return 0.0
    return found[-1]


@dataclass(frozen=True, eq=False)
class _Side:
    """One entry of a term at the nodes of a rule, times the roots of their weights and in units of its size: the left
    sides of all φ, the right side, and an orthonormal basis of the functions w."""

    left: Float[np.ndarray, "n m"]
    right: Float[np.ndarray, " n"]
    basis: Float[np.ndarray, "n k"]


def _by_rule(problem: Problem, order: int) -> float:
    """The violation by one rule of quadrature."""
    sides = _sides(problem, order)
    sizes = np.sqrt(sum(np.sum(side.left**2, axis=0) for side in sides))
    kept = sizes > NEGLIGIBLE * sizes.max()
    products = np.concatenate([(side.left[:, kept] / sizes[kept]).T @ side.basis for side in sides], axis=1)
    if products.shape[0] < 2 * products.shape[1]:
        return 0.0
    _, cosines, directions = np.linalg.svd(products, full_matrices=False)
    free = directions[cosines <= ORTHOGONAL]
    data = np.concatenate([side.basis.T @ side.right for side in sides])
    if not np.isfinite(data).all():
        return 0.0
    # Of all w that satisfy the identity the one that sees most of the data.
    w = np.split(free.T @ (free @ data), np.cumsum([side.basis.shape[1] for side in sides])[:-1])
    functions = [side.basis @ part for side, part in zip(sides, w, strict=True)]
    seen, size = (
        sum(float(of(function) @ of(side.right)) for side, function in zip(sides, functions, strict=True))
        for of in (np.asarray, np.abs)
    )
    return seen / size if size > 0 else 0.0


def _sides(problem: Problem, order: int) -> list[_Side]:
    """The equation and the conditions on parts of the boundary; all others have w = 0."""
    domain, layout = problem.domain, problem.layout
    features = Chebyshev(domain, degree=DEGREE[domain.dim])
    terms = [problem.terms[0], *(term for term in problem.terms[1:] if isinstance(term.on, Part))]
    sides = []
    for term in terms:
        rule = over_part(term.on, order) if isinstance(term.on, Part) else quadrature_of(domain).whole(order)
        block = Block(term, problem.right_side(term), rule.points, rule.normals)
        system = assemble(layout, features, [block], np.zeros((features.size, layout.components)), check=False)
        n = len(rule.points)
        roots = np.sqrt(rule.weights / rule.weights.sum())[:, None]
        middle, half = (domain.upper + domain.lower) / 2, (domain.upper - domain.lower) / 2
        basis = _orthonormal(roots * np.column_stack([np.ones(n), (rule.points - middle) / half]))
        left = (system.A / system.scales[:, None]).reshape(n, -1, system.A.shape[1])
        right = (system.right - system.left).reshape(n, -1)
        for entry in range(left.shape[1]):
            one = roots * left[:, entry]
            size = float(np.linalg.norm(one))
            if size > 0:
                sides.append(_Side(one / size, roots[:, 0] * right[:, entry] / size, basis))
    return sides


def _orthonormal(functions: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n r"]:
    """An orthonormal basis of what the columns span; the coordinates need not be independent on a side."""
    u, sizes, _ = np.linalg.svd(functions, full_matrices=False)
    return u[:, sizes > 1e-10 * sizes[0]]
