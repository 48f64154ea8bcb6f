"""Orthonormal features by an exact change of basis: in L², or in the norm in which a problem is solved.

The singular value decomposition of the rows, Y = U S Vᵀ, gives the functions φ V S⁻¹ in the order of their importance.
It is never that of a Gram matrix YᵀY, in which everything below the root of rounding is lost. A function with a small
singular value is a difference of large features that cancel; what is left of it has few digits, and it is dropped.
"""

from typing import Any

import numpy as np
from scipy.linalg import qr, svd

from pdofm.discrete.collocate import nodes_for
from pdofm.discrete.discretisation import discretise
from pdofm.discrete.evaluate import feature_values
from pdofm.domain import Domain
from pdofm.domain.quadrature import quadrature_of
from pdofm.errors import FeaturesError
from pdofm.features import Features, check_count
from pdofm.features.combined import Combined
from pdofm.problem.problem import Problem

NEARLY = 1e-11
"""The largest entry by which the Gram matrix of orthonormal functions differs from the identity, at points that were
not used to find them."""

FINER = 1.5
"""How many more nodes the second rule has, with which the first one is checked."""


def orthonormal(features: Features, on: Any, size: int | None = None) -> Combined:
    """The features in a basis that is orthonormal: in L² of a domain, or, for a problem, in the norm of its rows."""
    if size is not None:
        check_count("size", size)
    if isinstance(on, Domain):
        rows, others = _values(features, on)
    elif isinstance(on, Problem):
        rows, others = _rows(features, on)
    else:
        raise FeaturesError(f"orthonormal() takes a Domain or a Problem; got {type(on).__name__}.")
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0] = 1.0
    factor = qr(rows / scale, mode="r", overwrite_a=True, check_finite=False)[0]
    triangle = np.asarray(factor[: features.size], dtype=np.float64)
    _, singular, right = svd(triangle, full_matrices=False, check_finite=False)
    rank = _reliable(others / scale, singular, right) if size is None else min(size, _nonzero(singular))
    return Combined(features, (right[:rank] / singular[:rank, None]).T / scale[:, None], singular / singular[0])


def _nonzero(singular: np.ndarray) -> int:
    """How many functions are not rounding alone."""
    return int(np.count_nonzero(singular > 1e-15 * singular[0]))


def _reliable(rows: np.ndarray, singular: np.ndarray, right: np.ndarray) -> int:
    """How many leading functions are orthonormal at other points, too."""
    kept = _nonzero(singular)
    there = rows @ (right[:kept].T / singular[:kept])
    gap = np.abs(there.T @ there - np.eye(kept))
    worst = np.maximum.accumulate(np.maximum(np.tril(gap).max(axis=1), 0.0))
    return max(int(np.searchsorted(worst, NEARLY, side="right")), 1)


def exact_order(features: Features, domain: Domain) -> int:
    """Nodes of quadrature along the longest side of a domain that integrate products of features accurately."""
    inside = features.inner if isinstance(features, Combined) else features
    return nodes_for(domain.dim, 2 * inside.size)


def _values(features: Features, domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """The features at the nodes of two rules of quadrature, times the roots of the weights."""
    order = exact_order(features, domain)

    def at(order: int) -> np.ndarray:
        rule = quadrature_of(domain).whole(order)
        return feature_values(features, rule.points) * np.sqrt(rule.weights)[:, None]

    return at(order), at(int(FINER * order))


def _rows(features: Features, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the (linearised) equation and conditions at zero, of unit norm times their weights. For one unknown
    only: the functions of all unknowns are the same."""
    if problem.layout.components != 1:
        raise FeaturesError(
            f"{problem.name!r} has {problem.layout.components} unknown components, which share one set of features. "
            "Make them orthonormal on the domain: features.orthonormal(domain)."
        )
    found = discretise("orthonormal", problem, features, None, None, "sobol", 0)
    rows = found.system(found.zero(), found.blocks, fold=False).A
    return rows, rows
