"""Functions of parameters that are known at some parameters, as polynomials: no code is needed to evaluate them."""

from dataclasses import dataclass
from math import comb

import numpy as np
from jaxtyping import Float, Int

from pdofm.features.spectral import indices_below

MOST_TERMS, PER_SAMPLE = 2000, 0.5
"""The largest number of terms of a polynomial, and as a fraction of the number of samples."""

WATCHED = 5
"""One sample in so many is not fitted, and checks the polynomial."""

Parameters = Float[np.ndarray, " parameters"]


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A vector of polynomials on a box, Σ coefficients[k] Π T(powers[k, i], y_i), with y in the cube [-1, 1]^p.

    `error` is the largest error at samples that were not fitted, relative to the largest value.
    """

    lower: Parameters
    upper: Parameters
    powers: Int[np.ndarray, "terms parameters"]
    coefficients: Float[np.ndarray, "terms values"]
    error: float

    def __call__(self, mu: Parameters) -> Float[np.ndarray, " values"]:
        return self.basis(mu[None])[0] @ self.coefficients

    def basis(self, mus: Float[np.ndarray, "n parameters"]) -> Float[np.ndarray, "n terms"]:
        """All terms at parameters."""
        return _terms(mus, self.lower, self.upper, self.powers)


def _terms(mus: np.ndarray, lower: np.ndarray, upper: np.ndarray, powers: np.ndarray) -> np.ndarray:
    y = np.clip((2 * mus - lower - upper) / np.where(upper > lower, upper - lower, 1.0), -1.0, 1.0)
    tables = np.cos(np.arange(powers.max(initial=0) + 1)[:, None, None] * np.arccos(y))  # (degree, n, p)
    found = np.ones((len(mus), len(powers)))
    for axis in range(mus.shape[1]):
        found *= tables[powers[:, axis], :, axis].T
    return found


def interpolated(
    mus: Float[np.ndarray, "n parameters"], values: Float[np.ndarray, "n values"], tol: float
) -> Polynomial:
    """The polynomial of lowest total degree whose error at samples that are not fitted is below `tol`, relative to the
    largest value; else the most accurate one."""
    lower, upper = mus.min(axis=0), mus.max(axis=0)
    watched = np.arange(len(mus)) % WATCHED == WATCHED - 1
    size = float(np.max(np.abs(values))) or 1.0
    best: Polynomial | None = None
    degree = 0
    while best is None or (best.error > tol and _fits(degree, mus.shape[1], len(mus))):
        powers = indices_below((1,) * mus.shape[1], degree)
        terms = _terms(mus, lower, upper, powers)
        coefficients = np.linalg.lstsq(terms[~watched], values[~watched], rcond=1e-14)[0]
        coefficients = np.ascontiguousarray(coefficients)  # computes the same bits when it comes from a file
        error = float(np.max(np.abs(terms[watched] @ coefficients - values[watched]), initial=0.0)) / size
        if best is None or error < best.error:
            best = Polynomial(lower, upper, powers, coefficients, error if watched.any() else np.inf)
        degree += 1
    return best


def _fits(degree: int, parameters: int, samples: int) -> bool:
    terms = comb(degree + parameters, parameters)
    return terms <= min(MOST_TERMS, PER_SAMPLE * samples)
