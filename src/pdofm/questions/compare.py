"""Eigenvalues and eigenfunctions of two spaces, compared, and eigenfunctions of norm one."""

import numpy as np

from pdofm._types import Points
from pdofm.calculus.symbol import Symbol
from pdofm.calculus.terms import Layout
from pdofm.discrete.evaluate import evaluate_all
from pdofm.domain.quadrature import quadrature_of
from pdofm.questions.krylov import Ritz
from pdofm.questions.pencil import Pencil
from pdofm.solving.verdict import ROUNDING

NEARLY_ZERO = 1e-3
"""Errors of eigenvalues below this fraction of the largest are measured against that fraction."""

SURELY = 10.0
"""An imaginary part below so many times the error of an eigenvalue, or its rounding error, may be zero in a real
problem: two eigenvalues that are nearly equal may come out as a pair of complex ones."""

NORM_NODES = {1: 100, 2: 40, 3: 16}
"""Nodes of quadrature along the longest side for the norm of eigenfunctions, by dimension."""


def norm(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum(np.abs(values) ** 2, axis=(0, 1)))


def differences(before: Ritz, after: Ritz) -> np.ndarray:
    """The relative differences of the eigenvalues of two spaces, each compared with its counterpart."""
    gaps = np.abs(after.values[:, None] - before.values[None])
    from scipy.optimize import linear_sum_assignment  # slow to import

    rows, columns = linear_sum_assignment(gaps)
    found = np.empty(len(after.values))
    found[rows] = gaps[rows, columns]
    return found / _sizes(after.values)


def imaginary_parts(values: np.ndarray) -> np.ndarray:
    """The imaginary parts of eigenvalues, in the same units as their relative differences."""
    return np.abs(np.imag(values)) / _sizes(values)


def may_be_real(values: np.ndarray, errors: np.ndarray) -> bool:
    """Whether the relative errors of eigenvalues, or rounding, explain their imaginary parts."""
    return bool(np.all(imaginary_parts(values) <= SURELY * np.maximum(errors, ROUNDING)))


def _sizes(values: np.ndarray) -> np.ndarray:
    """What errors of eigenvalues are relative to."""
    sizes = np.abs(values)
    return np.maximum(sizes, NEARLY_ZERO * sizes.max())


def values_at(pencil: Pencil, functions: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Functions at points, a column for each."""
    layout = pencil.problem.layout
    parts = (functions,) if layout.is_complex else (np.real(functions), np.imag(functions))
    found = [
        layout.gathered(evaluate_all(pencil.features, np.moveaxis(pencil.real(part), 2, 0), points)) for part in parts
    ]
    values = found[0] if layout.is_complex else found[0] + 1j * found[1]
    return values.reshape(len(values), -1).T


def normalised(pencil: Pencil, functions: np.ndarray) -> np.ndarray:
    """Functions of norm 1 in L2, real and positive where they are largest."""
    domain = pencil.problem.domain
    rule = quadrature_of(domain).whole(NORM_NODES.get(domain.dim, 8))
    values = values_at(pencil, functions, rule.points)
    weights = np.tile(rule.weights[:, None], (1, len(values) // len(rule.weights))).reshape(-1)
    norms = np.sqrt(weights @ np.abs(values) ** 2)
    largest = values[np.argmax(np.abs(values), axis=0), np.arange(values.shape[1])]
    phases = largest / np.abs(largest)
    phases = phases if pencil.is_complex else phases.real
    return functions / (norms * phases)


def is_isotropic(symbol: Symbol, layout: Layout, points: Points) -> bool:
    """Whether a left side is a Δu + c u in the plane, with numbers a and c; one of them may be 0."""
    if layout.components != 1 or symbol.dim != 2 or not symbol.has_constant_coefficients:
        return False
    found = symbol.coefficients(points[:1])
    sizes = {index: float(found.coefficients[0, 0, i, 0]) for i, index in enumerate(found.indices)}
    allowed = {(0, 0), (2, 0), (0, 2)}
    rest = max((abs(each) for index, each in sizes.items() if index not in allowed), default=0.0)
    return rest == 0.0 and sizes.get((2, 0), 0.0) == sizes.get((0, 2), 0.0)
