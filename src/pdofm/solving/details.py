"""What a solution has missed between the points, as an error of the solution.

Data are looked at in many more points than are fitted (`pdofm.discrete.details`). Had the points in a detail been
fitted, too, each with the weight of the part of the term that it stands for, the least-squares solution would be
another one. The change that they ask for is computed from the triangle at hand: it is as large as the integral of the
residual over the detail matters to the solution, whatever the equation. Around a jump of the data, which no smooth
function follows, the residual changes its sign, and its effect is small.
"""

import numpy as np

from pdofm.discrete.assemble import assemble
from pdofm.discrete.details import details_of, elsewhere
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import evaluate_all
from pdofm.numerics.distance import relative_sizes
from pdofm.solving.methods import Outcome
from pdofm.solving.steep import missed_flux

COMPARED = 256
"""Points at which the change is compared with the solution."""


def missed(discretisation: Discretisation, outcome: Outcome) -> float | None:
    """The error of a solution that details of the data cause between the points, relative to it, or the flux that it
    loses across steep changes of coefficients; None if there is nothing to miss."""
    flux = missed_flux(discretisation.problem, discretisation.features, outcome.coefficients)
    found = flux, missed_details(discretisation, outcome)
    return max((each for each in found if each is not None), default=None)


def missed_details(discretisation: Discretisation, outcome: Outcome) -> float | None:
    """The change of a solution that its residuals in the details of the data ask for, relative to it; None if there are
    no details."""
    problem, features, c = discretisation.problem, discretisation.features, outcome.coefficients
    if problem.parameters.names:
        return None
    fitted = {block.term.name: block for block in discretisation.blocks}
    details = [each for each in details_of(problem, fitted) if each.term.name in fitted]
    if not details or not np.isfinite(c).all():
        return None
    space_dim = problem.domain.dim - problem.layout.has_time
    blocks = [elsewhere(fitted[each.term.name], each.points, each.normals, space_dim) for each in details]
    known = {"memory": discretisation.memory, "role": "details", "sizes": discretisation.sizes}
    system = assemble(problem.layout, features, blocks, c, **known)
    gradient = np.zeros(c.size)
    for each in details:
        rows = system.rows[each.term.name]
        entries = (rows.stop - rows.start) // len(each.points)
        stands_for = np.repeat(each.weights * (outcome.residuals.counts[each.term.name] / entries), entries)
        gradient += system.A[rows].T @ (stands_for * system.b[rows])
    change = outcome.factorization.normal(gradient).reshape(c.shape)
    moved, values = evaluate_all(features, np.stack([change, c]), problem.domain.sample(COMPARED))
    return float(np.max(relative_sizes(moved, values)))
