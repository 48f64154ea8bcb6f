"""Space in a periodic box: trigonometric polynomials, given by their values on a grid.

The equation holds at the points of the grid. Its linearisation is averaged over space, so that it acts on each wave by
itself; what varies in space is left to the iteration on a slab.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float, Inexact

from pdofm.calculus.jets import Index
from pdofm.features import Fourier
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.spaces import States
from pdofm.marching.statement import Statement

SIZES = (9, 15, 21, 27, 35, 45, 63, 81, 105, 135, 189, 243, 315, 405, 525, 675, 945, 1215, 1575, 2025, 2835, 3645, 4725)
"""Points along an axis: odd, so that every wave has its conjugate, and products of small primes, for quick transforms;
each about 1.3 times the one before."""

FIRST_SIZE = {1: 315, 2: 45, 3: 15}
"""Points along an axis to begin with, by dimension, to see details of the initial values."""

LAST = 0.85
"""Waves above this fraction of the highest frequency tell what may be missing."""

COARSER = 0.03
"""A coarser grid is used if its last waves are below this fraction of what is allowed."""

ALONE = 1e-12
"""A system for one wave is singular, as that for the mean of a pressure is, if its determinant is below this fraction
of the product of the norms of its rows."""

Spectra = Complex[np.ndarray, "p C *waves"]


class Waves:
    """Functions on a periodic grid of `count` points along each axis."""

    kind = "Fourier"

    def __init__(self, statement: Statement, count: int):
        self.statement, self.count = statement, count
        space = statement.domain.space
        self.dim, self._axes = space.dim, tuple(range(2, 2 + space.dim))
        self.shape = (statement.components, *(count,) * self.dim)
        self.size = int(np.prod(self.shape))
        steps = np.stack(np.meshgrid(*(np.arange(count) / count,) * self.dim, indexing="ij"), axis=-1)
        points = space.lower + (space.upper - space.lower) * steps.reshape(-1, self.dim)
        self._equation = statement.placed(statement.equation, points)
        t0, t1 = statement.domain.t0, statement.domain.t1
        probes = statement.placed(statement.equation, points[:: max(1, len(points) // 256)])
        self._used = probes.used(t0 + (t1 - t0) * np.array([0.0, 0.3819, 1.0]))
        _ = statement.matched  # refuses systems that are not square
        numbers = np.fft.fftfreq(count, 1 / count)
        self._numbers = np.stack(np.meshgrid(*(numbers,) * self.dim, indexing="ij"))
        self._slopes = 2j * np.pi / (space.upper - space.lower)
        free = np.array([order == 0 for order in statement.time_orders])
        self.algebraic = np.repeat(free, count**self.dim)

    @classmethod
    def first(cls, statement: Statement) -> "Waves":
        """The grid to begin with."""
        return cls(statement, FIRST_SIZE[statement.domain.space.dim])

    def spectra(self, state: Inexact[np.ndarray, "... _"]) -> Spectra:
        """The waves of functions on the grid."""
        from scipy.fft import fftn  # slow to import

        return fftn(state.reshape(-1, *self.shape), axes=self._axes, norm="forward")

    def values(self, spectra: Spectra) -> np.ndarray:
        """Functions on the grid with these waves."""
        from scipy.fft import ifftn  # slow to import

        return ifftn(spectra, axes=self._axes, norm="forward")

    def _multiplier(self, orders: Index) -> np.ndarray:
        """What a derivative in space multiplies waves with."""
        found = np.ones((1,) * self.dim, dtype=complex)
        for axis, order in enumerate(orders):
            if order:
                found = found * (self._slopes[axis] * self._numbers[axis]) ** order
        return found

    def _jets(self, states: States) -> dict[Index, Float[np.ndarray, "p n C"]]:
        """All derivatives in the equation, on the grid."""
        spectra: dict[int, Spectra] = {}
        found = {}
        for index in self._used:
            *orders, in_time = index
            if not any(orders):
                values = states[in_time].reshape(-1, *self.shape)
            else:
                if in_time not in spectra:
                    spectra[in_time] = self.spectra(states[in_time])
                values = np.real(self.values(spectra[in_time] * self._multiplier(tuple(orders))))
            found[index] = np.swapaxes(values.reshape(*values.shape[:2], -1), 1, 2)
        return found

    def residual(self, states: States, times: Vector) -> Float[np.ndarray, "p _"]:
        """The equation on the grid at several times."""
        jets = self._jets(states)
        found = self._equation.residual(times, lambda index: jets[index], self._used)
        return np.swapaxes(found, 1, 2).reshape(len(times), -1)

    def linearise(self, states: States, time: float) -> dict[int, Complex[np.ndarray, "*waves k C"]]:
        """The linearised equation, averaged over space: a small matrix for each wave and power of the time
        derivative."""
        jets = self._jets(states)
        means = self._equation.coefficients(time, lambda index: jets[index], self._used).mean(axis=0)
        found: dict[int, np.ndarray] = {}
        for a, (*orders, in_time) in enumerate(self._used):
            each = self._multiplier(tuple(orders))[..., None, None] * means[:, a]
            found[in_time] = found.get(in_time, 0.0) + each
        whole = (*self.shape[1:], *means.shape[::2])
        return {power: np.broadcast_to(each, whole) for power, each in found.items()}

    def factor(self, linear: dict[int, np.ndarray], rates: Complex[np.ndarray, " k"]) -> "WaveFactors":
        """Invert the systems of all waves."""
        each = (sum((rate**power * part for power, part in linear.items()), np.zeros(())) for rate in rates)
        return WaveFactors(self, np.stack([inverses(one.reshape(-1, *one.shape[-2:])) for one in each]))

    def quadrature(self) -> tuple[Points, Vector]:
        """The grid, with equal weights."""
        points = self._equation.points
        return points, np.full(len(points), 1 / len(points))

    def norms(self, state: Float[np.ndarray, "... _"]) -> Float[np.ndarray, "... C"]:
        """The root mean square of each component."""
        of = state.reshape(*state.shape[:-1], self.shape[0], -1)
        return np.sqrt(np.mean(of**2, axis=-1))

    def _above(self, state: Float[np.ndarray, "... _"], highest: float) -> Float[np.ndarray, "p C"]:
        """The norm of the waves with a frequency above a number, along any axis."""
        high = np.any(np.abs(self._numbers) > highest, axis=0)
        return np.sqrt(np.sum(np.abs(self.spectra(state)[..., high]) ** 2, axis=-1))

    def tails(self, state: Float[np.ndarray, "... _"], scale: Vector) -> Vector:
        """The norm of the last waves, relative to the size of the solution."""
        return np.max(self._above(state, LAST * (self.count // 2)) / scale, keepdims=True)[0]

    def marked(self, tails: Vector, tol: float) -> bool | None:
        """True if a finer grid is needed."""
        return True if tails[0] > tol else None

    def refined(self, marks: bool, states: States) -> "tuple[Waves, States]":
        """The next finer grid but one."""
        at = SIZES.index(self.count) + 2
        count = SIZES[at] if at < len(SIZES) else 3 * self.count
        return self._resized(count, states)

    def coarsened(self, states: States, scales: list[Vector], tol: float) -> "tuple[Waves, States]":
        """The next coarser grid, if it suffices."""
        at = SIZES.index(self.count) - 1 if self.count in SIZES else 0
        if at < 0:
            return self, states
        highest = LAST * (SIZES[at] // 2)
        if any(np.any(self._above(each, highest) > COARSER * tol * s) for each, s in zip(states, scales, strict=True)):
            return self, states
        return self._resized(SIZES[at], states)

    def _resized(self, count: int, states: States) -> "tuple[Waves, States]":
        """The same functions on another grid; waves that it does not have are left out."""
        shared = min(count, self.count) // 2
        kept = np.concatenate([np.arange(shared + 1), np.arange(-shared, 0)])
        other, found = Waves(self.statement, count), []
        for state in states:
            spectra = np.zeros((1, *other.shape), dtype=complex)
            into, out = np.ix_(*(kept % count,) * self.dim), np.ix_(*(kept % self.count,) * self.dim)
            for c, component in enumerate(self.spectra(state)[0]):
                spectra[0, c][into] = component[out]
            found.append(np.real(other.values(spectra)).reshape(-1))
        return other, found

    def forget(self) -> None:
        """Nothing: there are no tables."""

    @property
    def description(self) -> list:
        """The number of points along an axis."""
        return [self.count]

    def described(self, description: list) -> "Waves":
        """The grid with this description."""
        return Waves(self.statement, description[0])

    def fitted(self) -> States:
        """The state at the start, on the grid."""
        values = self.statement.start(self._equation.points)
        return list(np.swapaxes(values, 1, 2).reshape(len(values), -1))

    @property
    def features(self) -> Fourier:
        """The trigonometric functions."""
        return self._features

    @cached_property
    def _features(self) -> Fourier:
        return Fourier(self.statement.domain.space, degree=self.count // 2, kind="tensor")

    def coefficients(self, state: Float[np.ndarray, "q _"]) -> Float[np.ndarray, "q m C"]:
        """The coefficients of functions in `features`, whose waves are centred in the box."""
        waves = self.features.waves
        spectra = self.spectra(state)[(slice(None), slice(None), *(waves % self.count).T)]
        spectra = np.moveaxis(spectra, 1, 2) * ((-1.0) ** waves.sum(axis=1))[:, None]
        found = np.empty((len(state), self.features.size, self.shape[0]))
        found[:, 0] = spectra[:, 0].real
        found[:, 1::2], found[:, 2::2] = 2 * spectra[:, 1:].real, -2 * spectra[:, 1:].imag
        return found


@dataclass(frozen=True, eq=False)
class WaveFactors:
    """The inverse of a small matrix for each rate and wave."""

    space: Waves
    inverses: Complex[np.ndarray, "k w C C"]

    def solve(self, rows: Complex[np.ndarray, "k _"]) -> Complex[np.ndarray, "k _"]:
        """The functions for one right-hand side per rate, all of them on the grid."""
        components, *grid = self.space.shape
        spectra = self.space.spectra(rows).reshape(len(rows), components, -1)
        if components == 1:
            solved = self.inverses[..., 0].swapaxes(1, 2) * spectra
        else:
            solved = np.einsum("jwck,jkw->jcw", self.inverses, spectra)
        return self.space.values(solved.reshape(-1, components, *grid)).reshape(len(rows), -1)


def inverses(matrices: Complex[np.ndarray, "w C C"]) -> Complex[np.ndarray, "w C C"]:
    """The inverse of each matrix; of a singular one the pseudo-inverse, so that what is not determined does not
    change."""
    if matrices.shape[1] == 1:
        return 1 / np.where(matrices == 0, np.inf, matrices)
    sizes = np.prod(np.linalg.norm(matrices, axis=2), axis=1)
    singular = np.abs(np.linalg.det(matrices)) <= ALONE * sizes
    found = np.empty_like(matrices)
    found[~singular] = np.linalg.inv(matrices[~singular])
    found[singular] = np.linalg.pinv(matrices[singular], rcond=ALONE)
    return found
