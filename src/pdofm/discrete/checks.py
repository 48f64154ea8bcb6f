"""Checks of a problem, and of features for it, before anything is solved."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Average, Difference
from pdofm.discrete.assemble import left_values
from pdofm.discrete.collocate import collocate
from pdofm.discrete.evaluate import feature_values
from pdofm.discrete.process import check_process
from pdofm.discrete.right import right_values
from pdofm.domain import Regions
from pdofm.errors import FeaturesError, ProblemError
from pdofm.features import Features, HardDirichlet, RegionFeatures
from pdofm.features.regions import RegionPolynomials
from pdofm.problem.contradictions import find_contradiction
from pdofm.problem.coverage import find_gap
from pdofm.problem.problem import Problem

KNOWS_NUMBERS = ("solve", "pretrain")
"""Who takes problems with unknown numbers; features are trained for the numbers at their starts."""

IMPOSED_POINTS = 32
"""Points on the boundary at which conditions that features impose are compared with those of the problem."""


def check_problem(caller: str, problem: object) -> None:
    """Refuse what is not a problem, and one that would be solved wrongly."""
    check_process()
    if not isinstance(problem, Problem):
        hint = f"zoo.get({problem!r})" if isinstance(problem, str) else "Problem(…) or zoo.get(…)"
        raise ProblemError(f"{caller}() takes a Problem; got {type(problem).__name__}. Make one with {hint}.")
    if problem.parameters.names and caller not in KNOWS_NUMBERS:
        raise ProblemError(
            f"{caller}() does not find unknown numbers; {problem.name!r} has {problem.parameters.names}. Use solve(), "
            "and state the problem with the numbers that it finds."
        )
    if problem.hidden_jump is not None:
        where = f"A coefficient of the operator of {problem.name!r} jumps near {problem.hidden_jump.point.tolist()}"
        if problem.hidden_jump.is_certain:
            raise ProblemError(
                f"{where} inside a derivative, where automatic differentiation does not see the jump: the solution "
                "would be wrong. Divide the domain where it jumps, and state one equation in each region: "
                "Problem(Regions(inside=…, outside=…), operator={'inside': …, 'outside': …}, conditions=[…, "
                "Interface(flux={'inside': lambda u, x, normal: a * normal_derivative(u, normal)(x), 'outside': …})]). "
                "A jump outside derivatives, as in a(x) * laplacian(u)(x), or in the source is allowed."
            )
        raise ProblemError(
            f"{where}. Whether that is inside a derivative, where automatic differentiation would not see it, cannot "
            "be told, because derivatives are taken by functions of JAX. Write them with the operators of pdofm: grad, "
            "div, partial, laplacian, hessian."
        )
    flaw = _flaw(problem)
    if flaw:
        raise ProblemError(flaw)


_known_flaws: "WeakKeyDictionary[Problem, str]" = WeakKeyDictionary()


def _flaw(problem: Problem) -> str:
    """Why a statement cannot determine a solution, empty if nothing is found; looked for once per problem."""
    if problem not in _known_flaws:
        gap, flaw = find_gap(problem), ""
        if gap is not None:
            flaw = f"{problem.name!r} does not determine its solution: {gap.why}. To repair it, {gap.remedy}."
        else:
            contradiction = find_contradiction(problem)
            flaw = "" if contradiction is None else f"No function solves {problem.name!r}: {contradiction}"
        _known_flaws[problem] = flaw
    return _known_flaws[problem]


def check_fit(problem: Problem, features: Features) -> None:
    """Refuse features that are not made for the domain, or impose what the problem does not ask for."""
    domain = problem.domain
    if isinstance(features, RegionFeatures):
        _check_regions(problem, features)
        return
    if isinstance(features, RegionPolynomials):
        _check_made_for(problem, features.regions)
        if any(isinstance(term.lhs, Difference) or isinstance(term.on, Average) for term in problem.terms):
            raise FeaturesError(
                f"{problem.name!r} has a periodic condition or a mean, which boxes of several regions cannot satisfy. "
                "Give features for each region, as in {name: Chebyshev(…, 300), …}."
            )
        return
    if problem.regions is not None:
        raise FeaturesError(
            f"{problem.name!r} has several regions, and {type(features).__name__} cannot be given for them. Give "
            f"features for each region, as in {{{problem.region_names[0]!r}: Chebyshev(…, 300), …}}, or leave them "
            "out: solve(problem, tol=1e-8) finds them."
        )
    if features.dim != domain.dim:
        in_space = domain.has_time and features.dim == domain.dim - 1
        march = " Features of the space serve a march: pf.march(problem, features)." if in_space else ""
        raise FeaturesError(
            f"The features are defined in {features.dim} dimensions, the domain {domain!r} has {domain.dim}. "
            f"Make features on this domain.{march}"
        )
    slack = 1e-9 * domain.size
    lower, upper = np.asarray(features.lower), np.asarray(features.upper)
    if (domain.lower < lower - slack).any() or (domain.upper > upper + slack).any():
        raise FeaturesError(
            f"The domain {domain!r} reaches outside the box of the features, {lower.tolist()} to {upper.tolist()}. "
            "Make features on this domain or on a box that contains it, or move these: features.on(domain)."
        )
    if features.imposes == "value":
        _check_imposed(problem, features)
    wider = (domain.lower > lower + slack).any() or (domain.upper < upper - slack).any()
    if features.imposes == "periodic" and wider and any(term.kind == "periodic" for term in problem.terms):
        raise FeaturesError(
            f"The features are periodic on the box {lower.tolist()} to {upper.tolist()}, the problem is on its domain "
            f"{domain!r}. Make them on this domain."
        )


def _check_made_for(problem: Problem, given: Regions) -> None:
    own = problem.regions
    if own is None or own.names != given.names or not _same_boxes(own, given):
        raise FeaturesError(
            f"The features are made for {given!r}, the problem is on {problem.domain!r}. Give features for "
            "each of its regions, as in {name: Chebyshev(…, 300), …}."
        )


def _check_regions(problem: Problem, features: RegionFeatures) -> None:
    _check_made_for(problem, features.regions)
    dim, space_dim = problem.domain.dim, problem.domain.dim - problem.layout.has_time
    for term in problem.terms:
        is_pair_of_points = isinstance(term.lhs, Difference)  # a periodic condition, which is two local sides
        if not is_pair_of_points and not symbol_of(term.lhs, problem.layout_of(term), dim, space_dim).is_computable:
            raise ProblemError(
                f"The left side of {term.name!r} looks at the unknown at other points than its own, which is not "
                "possible with several regions."
            )


def _same_boxes(first: Regions, second: Regions) -> bool:
    corners = (
        np.concatenate([np.concatenate([r.lower, r.upper]) for r in each.by_name.values()]) for each in (first, second)
    )
    return bool(np.allclose(*corners, rtol=0, atol=1e-9 * first.size))


_known_imposed: "WeakKeyDictionary[Problem, set[tuple[Any, ...]]]" = WeakKeyDictionary()


def _check_imposed(problem: Problem, features: Features) -> None:
    """What the features satisfy by construction must be what the problem asks for; numbers are compared once per
    problem."""
    known = _known_imposed.setdefault(problem, set())
    statement = features.imposed if isinstance(features, HardDirichlet) else None
    if statement in known:
        return
    imposed = [term for term in problem.terms if term.kind == features.imposes]
    if not imposed:
        raise FeaturesError(
            f"{type(features).__name__} imposes values on the whole boundary, but no condition of {problem.name!r} "
            "gives all "
            "unknowns there. Use the inner features."
        )
    blocks = [
        block for block in collocate(problem, 1, IMPOSED_POINTS) if block.term.name in {term.name for term in imposed}
    ]
    around, inside = np.concatenate([block.points for block in blocks]), problem.domain.sample(IMPOSED_POINTS)
    values = np.abs(feature_values(features, np.concatenate([around, inside])))
    if not values[: len(around)].max() <= 1e-10 * values[len(around) :].max():
        raise FeaturesError(
            f"{type(features).__name__} does not vanish on the boundary of {problem.domain!r}. Make it for this domain."
        )
    zero = np.zeros((features.size, problem.layout.components))
    for block in blocks:
        left = left_values(problem.layout, features, block, zero)
        right = right_values(problem.layout, block, left.shape[1])
        gap = float(np.abs(left - right).max())
        if not gap <= 1e-10 * max(1.0, float(np.abs(right).max())):
            raise FeaturesError(
                f"The lifting of {type(features).__name__} differs from the boundary values of {problem.name!r} by "
                f"{gap:.1e}. Give a value that agrees with the condition."
            )
    if statement is not None:
        known.add(statement)
