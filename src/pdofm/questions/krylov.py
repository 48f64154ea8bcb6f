"""Eigenvalues of a shifted and inverted pencil: a block Krylov iteration, and what removes its rounding errors.

The space spanned by T f, T² f, … for a block of functions f contains good approximations of the eigenfunctions whose
eigenvalues are nearest to the shift. A block as wide as the number of wanted eigenvalues finds multiple ones, too.

Rounding errors of T are errors of λ, amplified by the condition of the matrix. With left eigenvectors Y beside the
right ones C, found by the same iteration for the adjoint, the small pencil (Yᴴ F C, Yᴴ M C) has the same eigenvalues
up to products of errors:
this is Rayleigh's quotient of a matrix that is not symmetric, and one step of Newton's iteration in
(u, λ). In boxes, where systems are not solved from the left, and in features that are nearly dependent, a second shift
next to each eigenvalue does the same: the errors are in proportion to its distance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from pdofm.questions.pencil import DenseShifted, Functions, Pencil, Shifted

EXTRA = 4
"""Functions in a block beyond the number of eigenvalues that are wanted."""

LEAST_BLOCKS, MOST_BLOCKS = 3, 16
"""Blocks of a Krylov space, at least and at most. One that starts from the eigenfunctions of another space must forget
their error, or the two would agree without being right."""

SETTLED = 1e-9
"""A Ritz pair whose residual, relative to its eigenvalue of T, is below this needs no further block."""

TOGETHER = 1e-4
"""Eigenvalues that are closer than this, relative to their size, are refined with one shift."""

ASIDE = 1e-6
"""The distance of a shift from the eigenvalues that it refines, relative to their size. At an eigenvalue itself the
matrix is singular."""

STEPS = 2
"""Steps of the refinement by a second shift. Each divides what is left of other eigenfunctions by their distance over
`ASIDE`."""

Columns = np.ndarray
"""Vectors of any kind, the last axis running over them."""


@dataclass(frozen=True, eq=False)
class Ritz:
    """Approximate eigenvalues of a pencil, nearest to the shift first, with their functions; `residuals` are those of
    T, relative to its eigenvalue."""

    values: np.ndarray
    functions: np.ndarray
    residuals: np.ndarray

    def chosen(self, which: Any) -> "Ritz":
        """Some of them, in that order."""
        return Ritz(self.values[which], self.functions[:, :, which], self.residuals[which])


def nearest(shifted: Shifted, shift: Any, count: int, seed: int, known: np.ndarray | None = None) -> Ritz:
    """The `count` eigenvalues nearest to the shift, by a block Krylov iteration; `known` is the mass of functions near
    some of their eigenfunctions."""
    pencil, rng = shifted.pencil, np.random.default_rng(seed)
    values = _random(pencil, count + EXTRA, rng)
    if known is not None:
        parts = known if pencil.is_complex else _real_parts(known)
        values = np.concatenate([parts, values[:, :, : max(count + EXTRA - parts.shape[2], EXTRA)]], axis=2)
    start = shifted.solve(values)
    theta, functions, residuals = _krylov(lambda block: shifted.solve(pencil.mass(block)), pencil.samples, start, count)
    return Ritz((shift + 1 / theta).astype(complex), functions, residuals)


def two_sided(shifted: DenseShifted, shift: Any, found: Ritz, seed: int) -> Ritz:
    """The same eigenvalues from left and right eigenvectors. The iteration for the left ones starts from the right
    ones, which are near them if the problem is nearly symmetric."""
    count, rng = len(found.values), np.random.default_rng(seed)
    functions = found.functions if shifted.pencil.is_complex else _real_parts(found.functions)
    others = shifted.solve(_random(shifted.pencil, EXTRA, rng))
    mass = shifted.rows_of(np.concatenate([functions, others], axis=2))[1]
    _, left, _ = _krylov(shifted.from_left, lambda rows: rows, shifted.from_left(mass), count)
    parts = (found.functions,) if shifted.pencil.is_complex else (np.real(found.functions), np.imag(found.functions))
    rows = [shifted.rows_of(part) for part in parts]
    operator, mass = rows[0] if len(rows) == 1 else tuple(a + 1j * b for a, b in zip(*rows, strict=True))
    small = left.conj().T @ operator, left.conj().T @ mass
    mu, y = scipy.linalg.eig(*small)
    functions = found.functions @ y
    order = _paired(found.values, shift + mu)
    return Ritz((shift + mu)[order], functions[:, :, order], found.residuals)


def _real_parts(block: np.ndarray) -> np.ndarray:
    """Real columns whose complex combinations contain those of a block."""
    return np.concatenate([np.real(block), np.imag(block)], axis=2) if np.any(np.imag(block)) else np.real(block)


def _paired(reference: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The order in which values are closest to others, one to one."""
    from scipy.optimize import linear_sum_assignment

    gaps = np.abs(reference[:, None] - values[None])
    return linear_sum_assignment(np.where(np.isfinite(gaps), gaps, 1e300))[1]


def _krylov(
    apply: Callable[[Columns], Columns],
    sample: Callable[[Columns], Columns],
    block: Columns,
    count: int,
) -> tuple[np.ndarray, Columns, np.ndarray]:
    """The eigenvalues of a map that are largest in modulus, with their vectors and relative residuals. Vectors are
    compared by their samples."""
    bases: list[Columns] = []
    samples: list[np.ndarray] = []
    images: list[np.ndarray] = []
    values = sample(block)
    while True:
        block, values = _orthonormal(block, values, bases, samples)
        bases.append(block)
        samples.append(values)
        block = apply(block)
        values = sample(block)
        images.append(values)
        theta, y, residuals = _ritz(count, samples, images)
        is_full = sum(each.shape[1] for each in samples) + values.shape[1] > len(values) // 2
        if len(bases) >= MOST_BLOCKS or is_full or (len(bases) >= LEAST_BLOCKS and np.max(residuals) <= SETTLED):
            return theta, np.concatenate(bases, axis=-1) @ y, residuals


def _random(pencil: Pencil, count: int, rng: np.random.Generator) -> np.ndarray:
    """Plane waves with a few periods in the domain, in every equation: functions that are not orthogonal to any
    eigenfunction that a small space can represent."""
    domain, n = pencil.problem.domain, len(pencil.points)
    unit = (pencil.points - domain.lower) / domain.size
    k = rng.normal(0.0, 2 * np.pi, (pencil.points.shape[1], pencil.entries * count))
    phase = rng.uniform(0, 2 * np.pi, pencil.entries * count)
    waves = np.cos(unit @ k + phase)
    if pencil.is_complex:
        waves = waves + 1j * np.cos(unit @ k[:, ::-1] + phase[::-1])
    return waves.reshape(n, pencil.entries, count)


def _orthonormal(
    block: Columns, values: np.ndarray, bases: list[Columns], samples: list[np.ndarray]
) -> tuple[Columns, np.ndarray]:
    """The block made orthonormal, by its samples, to what is known; twice, since once leaves rounding errors behind.
    Directions that are known already are dropped."""
    for _ in range(2):
        for known, at in zip(bases, samples, strict=True):
            share = at.conj().T @ values
            values, block = values - at @ share, block - known @ share
        u, s, vh = np.linalg.svd(values, full_matrices=False)
        kept = s > 1e-13 * max(float(s[0]), 1e-300)
        turn = vh[kept].conj().T / s[kept]
        values, block = u[:, kept], block @ turn
    return block, values


def _ritz(count: int, samples: list[np.ndarray], images: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest eigenvalues of a map in the space of the samples, their coordinates, and relative residuals."""
    q, image = np.concatenate(samples, axis=1), np.concatenate(images, axis=1)
    theta, y = np.linalg.eig(q.conj().T @ image)
    order = np.argsort(-np.abs(theta))[:count]
    theta, y = theta[order], y[:, order]
    residuals = np.linalg.norm(image @ y - (q @ y) * theta, axis=0) / (np.abs(theta) * np.linalg.norm(q @ y, axis=0))
    return theta.astype(complex), y, residuals


def _real_basis(block: Functions) -> Functions:
    """As many real functions with the same span, if that is closed under conjugation, as it is in a real problem."""
    parts = np.concatenate([np.real(block), np.imag(block)], axis=2)
    m, c, p = parts.shape
    u, _, _ = np.linalg.svd(parts.reshape(m * c, p), full_matrices=False)
    return u[:, : block.shape[2]].reshape(m, c, -1)


def second_shift(pencil: Pencil, found: Ritz) -> Ritz:
    """The same eigenvalues with a shift next to each of them. In a real problem they must be real."""
    values, functions, residuals = found.values.copy(), found.functions.astype(complex), found.residuals.copy()
    size = np.abs(values).max()
    left = list(range(len(values)))
    while left:
        first = left[0]
        near = TOGETHER * max(abs(values[first]), 1e-3 * size)
        group = [i for i in left if abs(found.values[i] - found.values[first]) <= near]
        left = [i for i in left if i not in group]
        middle = complex(np.mean(found.values[group]))
        shift = middle + ASIDE * max(abs(middle), 1e-3 * size)
        sigma = shift if pencil.is_complex else shift.real
        new = _power(pencil.factor(sigma), sigma, functions[:, :, group])
        values[group], functions[:, :, group], residuals[group] = new.values, new.functions, new.residuals
    return Ritz(values, functions, residuals)


def _power(shifted: Shifted, sigma: Any, block: Functions) -> Ritz:
    """Steps of subspace iteration."""
    pencil = shifted.pencil
    block = block if pencil.is_complex else _real_basis(block)
    block, values = _orthonormal(block, pencil.samples(block), [], [])
    for _ in range(STEPS):
        image = shifted.solve(pencil.mass(block))
        block, values = _orthonormal(image, pencil.samples(image), [], [])
    image = shifted.solve(pencil.mass(block))
    theta, y, residuals = _ritz(block.shape[2], [values], [pencil.samples(image)])
    return Ritz(sigma + 1 / theta, block @ y, residuals)
