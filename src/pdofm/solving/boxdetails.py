"""Details of the data in patches: where they are, and what it does to the solution if it misses them."""

import numpy as np
from jaxtyping import Float

from pdofm.discrete.details import Detail
from pdofm.discrete.evaluate import evaluate
from pdofm.discrete.local import Iterate, LocalProblem
from pdofm.discrete.localterm import LocalTerm
from pdofm.discrete.skeleton import Placed
from pdofm.solving.sizes import row_sizes

ONE_SIGN = 0.5
"""A residual whose integral over the details in a patch is at least this fraction of that of its size has one sign."""

FEWEST = 5
"""Points of a detail in a patch that tell the sign of a residual."""


def placed_detail(local: LocalProblem, detail: Detail) -> Placed:
    """The points of a detail with their patches."""
    cover, start = local.cover.of(detail.term.region)
    toward = None if detail.term.on is None else -detail.normals
    return Placed(detail.points, detail.normals, cover.locate(detail.points, toward) + start)


def effect(
    local: LocalProblem,
    detail: Detail,
    term: LocalTerm,
    residual: Float[np.ndarray, "n k"],
    inside: Placed,
    iterate: Iterate,
) -> float:
    """The error of the whole solution that the residual of a term in a detail causes, from its integral over each
    patch; data of the mean size of its own cause the solution. Where it changes its sign, as around a jump that
    polynomials follow, its integral is noise."""
    u = np.sqrt(np.mean(evaluate(*iterate, inside.points) ** 2, axis=0))
    typical = row_sizes(term.coefficients, term.which, float(local.problem.domain.size), u)
    parts, patch = detail.weights[:, None] * residual, term.placed.patch
    integrals, whole = (np.stack([np.bincount(patch, each) for each in of.T]) for of in (parts, np.abs(parts)))
    integrals[(np.abs(integrals) < ONE_SIGN * whole) | (np.bincount(patch) < FEWEST)] = 0.0
    found, against = np.linalg.norm(integrals, axis=1), np.maximum(typical, detail.data)
    return float(np.max(np.divide(found, against, out=np.where(found > 0, np.inf, 0.0), where=against > 0)))
