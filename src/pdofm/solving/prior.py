"""The smoothness of unknown fields: what is added to the misfit of the data, and how much it weighs.

A field is found with the least value of

    Σ r_i² + w ∫ |D²q|² dx,

where q is the correction of its start. That is the estimate under the prior that q is Gaussian with the covariance
(w ∫ D²·D²)⁻¹, which leaves affine functions free. The weight w is the one under which the data are most probable, after
everything else, fields and numbers, is integrated out: restricted maximum likelihood. With J the derivatives of the
residuals and R that of the prior, Rᵀ R = Σ wᵢ Rᵢᵀ Rᵢ, that is the minimum of

    min_q (|r - J q|² + |R q|²) + log det(Jᵀ J + Rᵀ R) - Σ ranks log w,

or of (n - free) log min_q(…) + … if the noise is not known. Fields under the likeliest prior have the covariance
(Jᵀ J + Rᵀ R)⁻¹, from which their bands follow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import qr

from pdofm._types import Vector
from pdofm.calculus.jets import up_to
from pdofm.discrete.orthonormal import exact_order
from pdofm.domain import Domain
from pdofm.domain.quadrature import quadrature_of
from pdofm.features import Chebyshev, Features

SMOOTH_ORDER = 2
"""The order of the derivatives that are kept small. In up to three dimensions fields with finite ∫ |D²q|² are
continuous."""

MOST_FUNCTIONS = {1: 40, 2: 136, 3: 165}
"""Polynomials of a field by dimension: degree 39, 15 and 8. Fields that data can tell apart from smoother ones need
fewer."""

FLAT = 1e-9
"""Functions whose second derivatives are below this, relative to the largest, are affine."""

STIFF = 100.0
"""How much more the largest weight counts in every direction that is not free than all data together."""

DECADES, GRID = 20, 1.0
"""Weights are looked for so many powers of ten below the largest, first on a grid with this step."""

SWEEPS = 3
"""Rounds over the weights of several fields."""


def field_space(domain: Domain, wanted: int | Features | None, data: int) -> Features:
    """The features of a field: orthonormal polynomials, no more than data, unless others are wanted."""
    if isinstance(wanted, Features):
        return wanted
    most = MOST_FUNCTIONS.get(domain.dim, MOST_FUNCTIONS[3])
    count = wanted if wanted is not None else max(min(most, data), domain.dim + 1)
    return Chebyshev(domain, count).orthonormal(domain)


@dataclass(frozen=True, eq=False)
class Prior:
    """The roots of the penalties of fields: |root q|² for the coefficients q of each.

    Attributes:
        numbers: how many parameters come before those of the fields.
        roots: for each field a matrix of full row rank.
    """

    numbers: int
    roots: tuple[Float[np.ndarray, "rank m"], ...]

    @staticmethod
    def of(domain: Domain, numbers: int, fields: Sequence[Features]) -> "Prior":
        """The prior of fields on a domain. Lengths are measured in sizes of the domain."""
        return Prior(numbers, tuple(_root(domain, features) for features in fields))

    @property
    def parameters(self) -> int:
        """The length of a vector of parameters."""
        return self.numbers + sum(root.shape[1] for root in self.roots)

    def rows(self, weights: Vector) -> Float[np.ndarray, "s p"]:
        """The matrix R for certain weights."""
        found = np.zeros((sum(len(root) for root in self.roots), self.parameters))
        row, column = 0, self.numbers
        for weight, root in zip(weights, self.roots, strict=True):
            found[row : row + len(root), column : column + root.shape[1]] = math.sqrt(weight) * root
            row, column = row + len(root), column + root.shape[1]
        return found

    def stiff(self, jacobian: Float[np.ndarray, "r p"]) -> Vector:
        """Weights with which fields are almost affine: the prior outweighs the data in all other directions."""
        found, column = [], self.numbers
        for root in self.roots:
            here = jacobian[:, column : column + root.shape[1]]
            smoothest = np.linalg.norm(root, ord=-2) if len(root) else 1.0
            found.append(STIFF * float(np.linalg.norm(here, ord=2) or 1.0) ** 2 / smoothest**2)
            column += root.shape[1]
        return np.array(found)

    def likeliest(
        self, jacobian: Float[np.ndarray, "r p"], target: Float[np.ndarray, " r"], noise_is_unknown: bool
    ) -> Vector:
        """The weights under which the data are most probable, if they depend on the parameters q like J q."""
        count, p = jacobian.shape
        triangle = np.atleast_2d(qr(np.column_stack([jacobian, target]), mode="r")[0][: p + 1])
        ranks = np.array([len(root) for root in self.roots])
        freedom = max(count - (p - int(np.sum(ranks))), 1)
        highest = np.log10(self.stiff(jacobian))

        def unlikely(logs: Vector) -> float:
            rows = self.rows(10.0**logs)
            stacked = np.vstack([triangle, np.column_stack([rows, np.zeros(len(rows))])])
            R = qr(stacked, mode="r")[0][: p + 1]
            diagonal = np.abs(np.diag(R))
            misfit = diagonal[p] ** 2 if len(diagonal) > p else 0.0
            floor = 1e-150
            fit = freedom * math.log(max(misfit, floor)) if noise_is_unknown else misfit
            determinant = 2 * float(np.sum(np.log(np.maximum(diagonal[:p], floor))))
            return float(fit + determinant - math.log(10) * np.sum(ranks * logs))

        logs = highest.copy()
        for _ in range(SWEEPS if len(logs) > 1 else 1):
            for i in range(len(logs)):
                logs[i] = _lowest(lambda x, i=i: unlikely(_with(logs, i, x)), highest[i])
        return 10.0**logs


def _with(logs: Vector, i: int, value: float) -> Vector:
    changed = logs.copy()
    changed[i] = value
    return changed


def _lowest(function: Callable[[float], float], highest: float) -> float:
    """Where a function of one number is lowest: on a grid first, since it may have several minima."""
    grid = highest - np.arange(0, DECADES + GRID / 2, GRID)
    values = [function(x) for x in grid]
    best = int(np.argmin(values))
    ends = grid[min(best + 1, len(grid) - 1)], grid[max(best - 1, 0)]
    from scipy.optimize import minimize_scalar  # slow to import

    found = minimize_scalar(function, bounds=ends, method="bounded", options={"xatol": 0.01})
    return float(found.x)


def _root(domain: Domain, features: Features) -> Float[np.ndarray, "rank m"]:
    """A matrix with |root q|² = mean of |D²q|², in lengths of the domain."""
    rule = quadrature_of(domain).whole(exact_order(features, domain))
    which = [index for index in up_to(domain.dim, SMOOTH_ORDER) if sum(index) == SMOOTH_ORDER]
    # |D²q|² is the sum over all pairs of axes: mixed derivatives count twice.
    times = np.array([math.factorial(SMOOTH_ORDER) / math.prod(math.factorial(k) for k in index) for index in which])
    jets = features.jets(rule.points, which) * domain.size**SMOOTH_ORDER
    share = np.sqrt(rule.weights / np.sum(rule.weights))
    rows = jets * (np.sqrt(times)[:, None, None] * share[:, None])
    triangle = qr(rows.reshape(-1, features.size), mode="r")[0][: features.size]
    _, singular, right = np.linalg.svd(triangle, full_matrices=False)
    kept = singular > FLAT * max(float(singular[0]), 1.0)
    return singular[kept, None] * right[kept]
