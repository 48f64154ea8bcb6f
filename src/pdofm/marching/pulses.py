"""Short times at which the data of an evolution change quickly: a pulse of a source, a coefficient that is switched.

Slabs evaluate data at their stages. Where the solution is smooth otherwise, slabs are long, and a pulse may lie between
the stages of all of them. Data and coefficients cost little to evaluate, and are looked at densely in time before the
first slab. Slabs that meet a pulse are then so short that some of their stages do.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pdofm.calculus.symbol import random_jet
from pdofm.domain import Part
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.statement import Statement
from pdofm.marching.termat import TermAt
from pdofm.problem.data import values_at

LOOKED = 2048
"""Times at which data are looked at."""

PLACES = 8
"""Points of space at which they are."""

LEVEL = 8
"""Slabs that meet a pulse are the whole time divided by 2^8 at most, eight of the times that are looked at."""

STENCIL = np.array([1.0, -4.0, 6.0, -4.0, 1.0]) / 6
"""Fourth differences, in the units of the value in the middle."""

QUICK, SPIKE = 1e-5, 30.0
"""A fourth difference belongs to a pulse if it is larger than this fraction of the largest value, as for one of a width
of a hundredth of the whole time or less, and so many times larger than nine tenths of all others."""


def pulses_of(statement: Statement) -> Vector:
    """The times, in ascending order, at which data or coefficients of the equation, or of the conditions on the
    boundary, change quickly."""
    domain = statement.domain
    times = domain.t0 + (domain.t1 - domain.t0) * (np.arange(LOOKED) + 0.5) / LOOKED
    quick = np.zeros(LOOKED, bool)
    for term in (statement.equation, *statement.lateral):
        if isinstance(term.on, Part):
            points, normals = term.on.sample(PLACES)
            at = statement.placed(term, points[:, :-1], normals[:, :-1])
        else:
            at = statement.placed(term, domain.space.sample(PLACES))
        for values in varying(at, times):
            quick |= _is_quick(values)
    return times[quick]


def varying(at: TermAt, times: Vector) -> Sequence[Float[np.ndarray, "times f"]]:
    """The data of a term and its coefficients at some times, as far as they may depend on time."""
    z, normals = at.at(times)
    found = []
    if at.right_side.numbers is None:
        found.append(values_at(at.right_side, at.layout, z, normals))
    if at.symbol.is_computable and not at.symbol.has_constant_coefficients:
        found.append(_coefficients(at, z, normals))
    return [np.asarray(each).reshape(len(times), -1) for each in found]


def _coefficients(at: TermAt, z: Points, normals: Points) -> Float[np.ndarray, "n f"]:
    """The coefficients of a term, a nonlinear one at the same values of u and its derivatives everywhere."""
    jet = random_jet(len(at.symbol.indices(z, normals)), 1, at.layout.components)
    linear = at.symbol.linearise(z, normals, np.broadcast_to(jet, (len(jet), len(z), jet.shape[2])))
    return np.zeros((len(z), 0)) if linear is None else linear.coefficients.reshape(len(z), -1)


def _is_quick(values: Float[np.ndarray, "times f"]) -> np.ndarray:
    """At which times any of the values belongs to a pulse."""
    values = values[:, np.isfinite(values).all(axis=0)]
    reach = len(STENCIL) // 2
    differences = sum(c * values[i : len(values) - 2 * reach + i] for i, c in enumerate(STENCIL))
    sizes = np.abs(differences)
    typical = np.quantile(sizes, 0.9, axis=0)
    largest = np.max(np.abs(values), axis=0)
    middle = np.any(sizes > np.maximum(QUICK * largest, SPIKE * typical), axis=1)
    found = np.zeros(len(values), bool)
    for shift in range(2 * reach + 1):  # all times that a difference involves
        found[shift : shift + len(middle)] |= middle
    return found
