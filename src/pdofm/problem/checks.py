"""Checks of a statement that need no evaluation of the user's functions: names, conditions, and where they hold."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jax import Array

from pdofm.calculus.parameters import Parameters
from pdofm.calculus.terms import Average, Term
from pdofm.domain import Domain, Part, Regions
from pdofm.errors import ProblemError
from pdofm.numerics.numbers import as_numbers
from pdofm.problem.conditions import JUST_INSIDE, BaseCondition, Periodic
from pdofm.problem.unknown import Data, Field, Number

RESERVED = {
    *("problem", "features", "coefficients", "error_estimate", "verdict", "converged", "reason", "stats", "attempts"),
    *("space", "search", "gradient", "dt", "side", "errors", "plot", "plot_search", "to_vtk", "residual"),
    *("slabs", "animate", "plot_surface", "show", "spectral_radius", "free", "plot_undetermined"),
    *("integral", "flux", "numbers", "fields", "intervals", "covariance", "influence", "band", "noise"),
}

CLOSED = 1e-9
"""How far outside the domain a given point may lie, in sizes of the domain: points on the boundary are allowed, and
rounding moves them off it."""

PROBES = 64
"""Points at which a part of the boundary is compared with the domain: enough to meet a part that lies elsewhere."""


def check_unknowns(unknowns: Mapping[str, Any], regions: Regions | None) -> None:
    """Raise if a name cannot be an attribute of a solution, or if a size is neither a positive integer nor a number."""
    if not isinstance(unknowns, Mapping):
        raise ProblemError(
            f"unknowns is {unknowns!r:.80}; expected names with sizes, as in unknowns={{'v': 2, 'p': 1}}."
        )
    for name, size in unknowns.items():
        if not (isinstance(name, str) and name.isidentifier() and not name.startswith("_") and name not in RESERVED):
            raise ProblemError(
                f"{name!r} cannot name an unknown; expected a Python name that does not start with an underscore and "
                f"is not one of {sorted(RESERVED)}. Choose another name."
            )
        if isinstance(size, Number | Field):
            continue
        if not isinstance(size, int) or size < 1:
            raise ProblemError(
                f"The unknown {name!r} has the size {size!r}; expected an integer of at least 1, Number(start) for an "
                "unknown number, or Field(start) for an unknown coefficient. Write for instance unknowns={'v': 2, "
                "'p': 1}."
            )
    if not unknowns:
        raise ProblemError(
            "unknowns is empty; expected names with sizes, as in {'v': 2, 'p': 1}. Leave it out for one scalar."
        )
    found = [name for name, size in unknowns.items() if isinstance(size, Number | Field)]
    if len(found) == len(unknowns):
        raise ProblemError(
            f"The unknowns {found} are all numbers or fields; expected a function, too, as in {{'u': 1, 'k': "
            "Number(1.0)}."
        )
    if found and regions is not None:
        raise ProblemError(
            f"Unknown numbers and fields are not possible with several regions yet; the domain has "
            f"{list(regions.names)}. Use one domain."
        )


def check_parameters(stated: Sequence[BaseCondition], parameters: Parameters) -> None:
    """Raise if there are data without anything to find from them, or more numbers than data."""
    data = [condition for condition in stated if isinstance(condition, Data)]
    if data and not parameters.names:
        raise ProblemError(
            f"Condition {data[0].name!r} has data, but nothing is unknown except the solution. Name unknown numbers "
            "or fields, unknowns={'u': 1, 'k': Number(1.0)}; or state exact values by Dirichlet(values, on=points)."
        )
    if parameters.fields and not data:
        raise ProblemError(
            f"The field {parameters.fields[0][0]!r} is unknown, but there are no data from which it could be found. "
            "Add conditions=[…, Data(points, values, noise=…)]."
        )
    count, numbers = sum(each.measured.size for each in data), len(parameters.numbers)
    if data and count < numbers:
        raise ProblemError(
            f"There are more unknown numbers than data: {numbers} numbers and {count} measured values. Measure at more "
            "points, or give some of the numbers."
        )
    if len({each.noise is None for each in data}) > 1:
        without = next(each.name for each in data if each.noise is None)
        raise ProblemError(
            f"Condition {without!r} has no noise, but other data have. Give noise= for all data, or for none."
        )


def check_dtype(dtype: Any) -> None:
    """Raise unless unknowns of this type can be solved for."""
    try:
        known = np.dtype(dtype) in (np.float64, np.complex128)
    except TypeError:
        known = False
    if not known:
        raise ProblemError(f"dtype is {dtype!r}; expected float, or complex for complex unknowns.")


def listed(conditions: Any) -> tuple[Any, ...]:
    """The conditions of a problem, one or a list of them, as a tuple."""
    if isinstance(conditions, Iterable) and not isinstance(conditions, str):
        return tuple(conditions)
    if isinstance(conditions, BaseCondition):
        return (conditions,)
    raise ProblemError(
        f"conditions must be a list of objects such as Dirichlet(0.0) or Neumann(0.0); got {conditions!r:.80}."
    )


def check_condition(condition: Any, unknowns: Collection[str]) -> None:
    """Raise unless the object is a condition on unknowns of the problem, with a usable weight and place."""
    if not isinstance(condition, BaseCondition):
        raise ProblemError(
            f"conditions must be objects such as Dirichlet(0.0) or Neumann(0.0); got {type(condition).__name__}."
        )
    unknown = getattr(condition, "unknown", None)
    if unknown is not None and unknown not in unknowns:
        known = f"expected one of {list(unknowns)}" if unknowns else "this problem has one scalar. Leave unknown= out"
        raise ProblemError(f"Condition {condition.name!r} names the unknown {unknown!r}; {known}.")
    weight = condition.weight
    if not (isinstance(weight, int | float | np.number) and np.isfinite(weight) and weight > 0):
        raise ProblemError(f"Condition {condition.name!r} has the weight {weight}; expected a positive number.")
    if isinstance(condition, Periodic) and not isinstance(condition.axis, int | np.integer):
        raise ProblemError(
            f"Condition {condition.name!r}: axis must be the number of a coordinate, from 0; got {condition.axis!r}."
        )
    if condition.on is not None and not isinstance(condition.on, Part | list | np.ndarray | Array):
        raise ProblemError(
            f"Condition {condition.name!r}: on= must be a part of the domain, such as domain.part(name), or points; "
            f"got {type(condition.on).__name__}."
        )


def check_place(term: Term, domain: Domain) -> None:
    """Raise unless the term holds inside the domain or on its boundary."""
    on = term.on.over if isinstance(term.on, Average) else term.on
    if on is None or isinstance(on, Domain) or term.pair is not None:
        return
    if isinstance(on, Part):
        # Just inside, along the normal: a face of a primitive that a combination removed is not on its boundary.
        points, normals = on.sample(PROBES)
        outside = ~domain.contains(points - JUST_INSIDE * domain.size * normals)
    else:
        points = given_points(term, domain)
        outside = ~domain.contains(points, tol=CLOSED * domain.size)
    if outside.any():
        raise ProblemError(
            f"Condition {term.name!r}: {outside.sum()} of {len(points)} points, for instance "
            f"{points[outside][0].tolist()}, lie outside {domain!r}. Take the part from this domain: domain.boundary, "
            "domain.part(name) or domain.boundary.where(predicate)."
        )


def given_points(term: Term, domain: Domain) -> np.ndarray:
    """The points (n, d) of a condition that is stated at points instead of on a part."""
    points = as_numbers(term.on, f"The points of condition {term.name!r}", ProblemError)
    if points.ndim == 1 and domain.dim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] != domain.dim or len(points) == 0:
        what = "its points must be" if term.kind == "data" else "on= must be a part of the domain or points"
        one = f" One point is [{np.round(points, 6).tolist()}]." if points.shape == (domain.dim,) else ""
        raise ProblemError(
            f"Condition {term.name!r}: {what} of shape (n, {domain.dim}); got an array of shape {points.shape}.{one}"
        )
    return points


def check_values(measured: Sequence[tuple[Data, Term]], domain: Domain) -> None:
    """Raise unless there is a value for each point of data."""
    for data, term in measured:
        points, values = len(given_points(term, domain)), len(data.measured)
        if points != values:
            raise ProblemError(
                f"Condition {term.name!r} has {values} values at {points} points; expected one value, or one row of "
                "values, for each point."
            )


def check_start(conditions: Sequence[Term], order: int) -> None:
    """Raise if an equation of positive `order` in time has no condition at a single time or at given points."""
    if order == 0:
        return
    for term in conditions:
        if isinstance(term.on, Average):
            continue
        if not isinstance(term.on, Part) or np.ptp(term.on.sample(8)[0][:, -1]) == 0:
            return
    raise ProblemError(
        f"The equation is of order {order} in time, but no condition holds at the start: its solution is not unique. "
        "Add Initial(value)."
    )
