"""Which spaces a search tries, and in which order: the rules of `RULES`, from first to last.

Other choices are made in neighbouring modules: how spaces grow in `schedule`, the degree of polynomials in
boxes in `refine`, the widths of layers in `layer`, and how networks are trained in `networks`.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.adaptive.harmonic import grow_harmonic_functions, has_harmonic_regions
from pdofm.adaptive.layer import CURVED_SIZE, Layer, find_curved_layer, find_layer
from pdofm.adaptive.networks import grow_networks
from pdofm.adaptive.refine import DEGREES, Refinement
from pdofm.adaptive.schedule import arrives, ends_soon, pays
from pdofm.adaptive.search import Search
from pdofm.adaptive.singular import singular_functions
from pdofm.adaptive.spaces import fits_boxes, has_singular_space, singular_space
from pdofm.discrete.defaults import in_each_region
from pdofm.domain import corners
from pdofm.errors import PdofmError
from pdofm.features import Chebyshev, Features, Fourier, SparsePolynomials
from pdofm.marching.march import can_march, marched
from pdofm.problem.conditions import Periodic
from pdofm.solving.verdict import Status

CONCENTRATED = 0.25
"""A residual is local if nine tenths of its square lie in this fraction of the domain."""

BOXES_SHARE = 0.7
"""The part of the time left that boxes may take; the rest is for what comes after them."""

HELPS_MUCH = 0.01
"""Singular functions help much if they divide the estimate of polynomials by more than the inverse of this."""

SINGULAR = "polynomials and singular functions"
"""The name of the space of both."""

SPARSE = (1, 2)
"""How many variables the polynomials depend on at a time that are tried in more than three dimensions."""


@dataclass(frozen=True)
class Rule:
    """When to try what, and why: ``when(search)`` decides, ``run(search, why)`` tries; whether `in_regions`, too, for
    problems with several regions; and whether it stands `apart`, so that a search may begin with it."""

    why: str
    when: Callable[[Search], bool]
    run: Callable[[Search, str], object]
    in_regions: bool = False
    apart: bool = False


def default_policy(search: Search) -> None:
    """Apply the rules in order until the search is over.

    Features at hand come first. An evolution is marched in time. In several regions harmonic functions, or the singular
    functions of each of them, are tried at once. Then come polynomials, in many dimensions those in few of the
    variables at first: where the solution is smooth nothing is cheaper. Where they converge slowly come remedies for
    what is known to spoil them: singular functions of corners, edges and round holes, then polynomials in boxes that
    adapt to holes, fronts, peaks and corners; where boxes do not apply or do not suffice, a layer, details that take
    more polynomials, and a partition of unity. Networks and random features, which depend least on the shape of the
    solution, come last.
    """
    apply(RULES, search)


def apply(rules: "Sequence[Rule]", search: Search) -> None:
    """Apply rules in order until the search is over."""
    for rule in rules:
        if search.over:
            return
        if (rule.in_regions or search.problem.regions is None) and rule.when(search):
            rule.run(search, rule.why)


def _try_candidates(search: Search, why: str) -> None:
    for features in search.candidates:
        if not search.over and features.size <= search.max_features:
            search.attempt("features at hand", why, features)


def _march(search: Search, why: str) -> None:
    start, ledger = time.perf_counter(), search.ledger
    try:
        found = marched(search.problem, search.tol, max_seconds=ledger.time_left)
    except PdofmError as error:
        ledger.note("slabs", f"{why}; failed: {error}", 0, start)
    else:
        search.enter(found, why, start)
        if found.verdict.status is Status.DIVERGED:  # no other space continues it
            search.ceased = found


def _grow_fourier(search: Search, why: str) -> None:
    search.grow("Fourier", why, lambda size: Fourier(search.problem.domain, size, kind="tensor"))


def _grow_sparse_polynomials(search: Search, why: str) -> None:
    for variables in SPARSE:
        many = "polynomials in one variable at a time" if variables == 1 else f"polynomials in {variables} variables"

        def make(size: int, variables: int = variables) -> Features:
            return SparsePolynomials(search.problem.domain, size, variables=variables)

        if not search.over:
            search.grow(many, why, make, "clustered")


def _polynomials(search: Search) -> Callable[[int], Features]:
    return lambda size: in_each_region(search.problem.domain, size, Chebyshev)


def _grow_polynomials(search: Search, why: str) -> None:
    # Where something can be done about slow convergence, polynomials do not go on for long.
    goes_on = ends_soon if _has_singular_functions(search) or _has_singular_regions(search) else pays
    search.grow("polynomials", why, _polynomials(search), "clustered", goes_on=goes_on)


def _resume_polynomials(search: Search, why: str) -> None:
    above = search.ledger.largest("polynomials")
    search.grow("polynomials", why, _polynomials(search), "clustered", above=above)


def _grow_more_polynomials(search: Search, why: str) -> None:
    above = search.ledger.largest("polynomials")
    search.grow("polynomials", why, _polynomials(search), "clustered", until_resolved=True, above=above)


def _grow_singular_functions(search: Search, why: str) -> None:
    without = min(search.ledger.estimates("polynomials"), default=math.inf)
    dim = search.problem.domain.dim
    # Boxes in the plane take about as long as a thousand functions of the whole domain.
    ends = arrives if dim == 2 and _boxes_apply(search) else pays

    def goes_on(estimates: list[float], tol: float) -> bool:
        """Where singular functions do not help, polynomials alone converge faster. Where they help much in space,
        nothing that comes later does as well, and estimates of so few functions vary."""
        if dim == 3 and max(estimates[-2:]) < HELPS_MUCH * without:
            return True
        return len(estimates) < 2 or (estimates[-1] < without and ends(estimates, tol))

    def make(size: int) -> Features:
        return singular_space(search.problem, size)

    above = search.ledger.largest(SINGULAR)
    search.grow(SINGULAR, why, make, "clustered", goes_on=goes_on if above == 0 else pays, above=above)


def _refine_boxes(search: Search, why: str) -> None:
    start, ledger = time.perf_counter(), search.ledger
    try:
        found = solve_in_boxes(
            search.problem,
            search.tol,
            max_unknowns=ledger.max_in_boxes * search.problem.layout.components,
            max_seconds=(BOXES_SHARE if search.problem.regions is None else 1.0) * ledger.time_left,
            key=search.seed,
        )
    except PdofmError as error:
        ledger.note("polynomials in boxes", f"{why}; failed: {error}", 0, start)
    else:
        search.enter(found, why, start)


def _grow_across_a_curve(search: Search, why: str) -> None:
    layer = find_curved_layer(search)
    if layer is not None:
        found = f"{why}, in a layer of width {layer.width:.1g}"
        space = "polynomials stretched across a curved layer"
        search.grow(space, found, layer.polynomials, "clustered", above=CURVED_SIZE, until_resolved=True)


def _grow_across_a_layer(search: Search, why: str) -> None:
    layer: Layer | None = find_layer(search)
    if layer is None:
        return
    direction = np.round(layer.direction, 3).tolist()
    found = f"{why}: width {layer.width:.1g} at n·x = {float(layer.center):.3g}, n = {direction}"
    search.grow("polynomials stretched across a layer", found, layer.polynomials, "clustered")


def _grow_partition(search: Search, why: str) -> None:
    search.grow("partition of unity", why, Refinement(search).features, until_resolved=True)


def _always(search: Search) -> bool:
    return True


def _has_many_dimensions(search: Search) -> bool:
    return search.problem.domain.dim > 3


def _is_periodic(search: Search) -> bool:
    problem = search.problem
    axes = {condition.axis for condition in problem.stated if isinstance(condition, Periodic)}
    return not problem.layout.has_time and axes == set(range(problem.domain.dim))


def _has_harmonic_regions(search: Search) -> bool:
    return has_harmonic_regions(search.problem)


def _has_singular_regions(search: Search) -> bool:
    return search.problem.regions is not None and has_singular_space(search.problem)


def _has_singular_functions(search: Search) -> bool:
    """Whether the domain has corners, edges or holes, and the equation the singular functions that are known: it is one
    equation of second order. At re-entrant corners they help in other equations, too."""
    problem = search.problem
    if problem.layout.has_time or problem.regions is not None:
        return False
    if any(corner.angle > math.pi + 1e-9 for corner in corners(problem.domain)):
        return True
    highest = max(problem.orders(axis)[0] for axis in range(problem.domain.dim))
    is_plain = problem.layout.components == 1 and highest == 2
    return is_plain and bool(singular_functions(problem.domain, 1))


def _polynomials_were_cut_short(search: Search) -> bool:
    estimates = search.ledger.estimates("polynomials")
    return bool(estimates) and pays(estimates, search.tol) and not ends_soon(estimates, search.tol)


def _singular_functions_were_cut_short(search: Search) -> bool:
    estimates = search.ledger.estimates(SINGULAR)
    return len(estimates) > 1 and pays(estimates, search.tol)


def _is_evolution(search: Search) -> bool:
    plain = search.method is None and not search.problem.parameters.names
    return plain and search.problem.layout.has_time and can_march(search.problem)


def _boxes_apply(search: Search) -> bool:
    return search.method is None and not search.problem.parameters.names and fits_boxes(search.problem)


def _is_unresolved(search: Search) -> bool:
    return not search.resolved


def _is_local(search: Search) -> bool:
    """Whether a partition of unity can be refined where the best solution violates the equation. In one dimension it
    always can, since there the residual of what is not resolved spreads."""
    dim = search.problem.domain.dim
    if dim == 1 or dim not in DEGREES or search.best is None:
        return dim == 1
    squares = np.sort(np.sum(search.verifier.residual(search.best) ** 2, axis=1))[::-1]
    most = np.searchsorted(np.cumsum(squares), 0.9 * squares.sum())
    return bool(most < CONCENTRATED * len(squares))


RULES = (
    Rule("they were given", lambda search: bool(search.candidates), _try_candidates, in_regions=True),
    Rule("an evolution: one slab of time after the other", _is_evolution, _march),
    Rule("all sides are periodic", _is_periodic, _grow_fourier),
    Rule("many dimensions: few of them may interact", _has_many_dimensions, _grow_sparse_polynomials),
    Rule(
        "Laplace's equation in each region, perhaps with a constant source",
        _has_harmonic_regions,
        grow_harmonic_functions,
        in_regions=True,
    ),
    Rule(
        "regions are round, or have corners of their own",
        _has_singular_regions,
        _grow_singular_functions,
        in_regions=True,
    ),
    Rule("best where the solution is smooth", _always, _grow_polynomials, in_regions=True),
    Rule(
        "polynomials converge slowly, and the domain has corners, edges or round holes",
        _has_singular_functions,
        _grow_singular_functions,
        apart=True,
    ),
    Rule("the source is concentrated along a curve", _boxes_apply, _grow_across_a_curve),
    Rule("they converge, if slowly", _polynomials_were_cut_short, _resume_polynomials, in_regions=True),
    Rule(
        "polynomials converge slowly: boxes are split where the solution needs it",
        _boxes_apply,
        _refine_boxes,
        in_regions=True,
        apart=True,
    ),
    Rule("they converge, if slowly", _singular_functions_were_cut_short, _grow_singular_functions),
    Rule("a layer fits the residual", _always, _grow_across_a_layer),
    Rule("no attempt has a correct digit yet; more polynomials may still help", _is_unresolved, _grow_more_polynomials),
    Rule("the residual is local: boxes are split where it is large", _is_local, _grow_partition),
    Rule("nothing else has converged", _always, grow_networks, apart=True),
)
"""The rules of the default policy, in the order in which they apply."""
