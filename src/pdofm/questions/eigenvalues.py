"""eigs(): the eigenvalues of an operator with its homogeneous conditions, nearest to a number."""

import time
import warnings
from collections.abc import Callable
from math import comb, gamma
from typing import Any

import jax.numpy as jnp
import numpy as np

from pdofm._types import Key
from pdofm.arguments import explained
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Term, in_layout, joined
from pdofm.errors import ConvergenceWarning, NonlinearError, PdofmError, ProblemError, SolveError
from pdofm.numerics.sampling import generator
from pdofm.problem.operator import Operator
from pdofm.problem.problem import Problem
from pdofm.questions.checks import checked
from pdofm.questions.compare import (
    NEARLY_ZERO,
    differences,
    imaginary_parts,
    is_isotropic,
    may_be_real,
    norm,
    normalised,
    values_at,
)
from pdofm.questions.krylov import Ritz, nearest
from pdofm.questions.modes import Mode, Modes
from pdofm.questions.pencil import Pencil, pencil_of
from pdofm.questions.spaces import Space, Wanted, families
from pdofm.questions.spectrum import Spectrum
from pdofm.solving.stats import Attempt, Stats
from pdofm.solving.verdict import ROUNDING, Evidence, judge

SPARE = 2
"""Eigenvalues that are computed beyond those that are wanted: some may turn out to be spurious, or farther away."""

OFFSET = 0.01
"""The distance of the first shift from the given number, in units of the operator on the longest wave in the domain.
The given number may be an eigenvalue, such as 0 with Neumann conditions."""

SPURIOUS = 0.05
"""An eigenfunction that violates the equation by more than this at points that were not fitted, relative to the size of
its terms, is not one."""

RESOLVED = 1e-3
"""Eigenvalues of two spaces that agree to this, relatively, are worth refining."""

NEAR, STAGNANT = 100.0, 0.1
"""They are refined if their difference is at most so many times the tolerance, or has not fallen below this fraction of
the one before."""

ACCIDENT = 0.1
"""The smallest estimate of an eigenvalue, relative to the largest of all."""

UNRESOLVED = {1: 400, 2: 350, 3: 1000}
"""A family whose spaces have found too few eigenfunctions up to this size, by dimension, is given up."""

BEYOND = 15
"""Or up to a degree that is so much larger than what the wave number of the eigenfunctions needs, whichever is more."""

MAX_FEATURES = 2000
"""Features of a space with one dense matrix, at most."""

HELD_OUT, COMPARED = 400, 600
"""Points at which eigenfunctions are checked, and at which those of two spaces are compared."""


@explained
def eigs(
    problem: Problem,
    k: int = 6,
    *,
    near: Any = 0.0,
    tol: float = 1e-10,
    mass: Callable[..., Any] | None = None,
    key: Key = 0,
    max_seconds: float = 120.0,
    max_features: int = MAX_FEATURES,
) -> Modes:
    """The k eigenvalues nearest to a number, with their eigenfunctions.

    An eigenvalue λ and an eigenfunction u satisfy ``operator(u, x) = λ mass(u, x)`` and the conditions of the problem,
    which must be homogeneous. Spaces are tried in turn until two of them agree to the tolerance.

    Args:
        problem: a linear problem without a source, and with conditions whose values are zero.
        k: how many eigenvalues; multiple ones are counted as often as they occur.
        near: a number, complex or not: the eigenvalues nearest to it are found. 0 gives the smallest ones.
        tol: the relative error of the eigenvalues that is required.
        mass: the right side, a function ``mass(u, x)`` with as many values as the operator; u itself by default.
        key: seed of points.
        max_seconds: after this time no new space is tried.
        max_features: the most features of a space with one dense matrix.
    """
    mass = checked(problem, k, near, tol, mass)
    if (np.imag(near) != 0) and not problem.layout.is_complex:
        problem = problem.replace(dtype=complex)
    search = _Search(problem, mass, k, complex(near), tol, int(generator(key).integers(2**31)))
    search.run(time.perf_counter() + max_seconds, max_features)
    found = search.modes()
    if not found.converged:
        message = f"The eigenvalues of {problem.name!r} have not converged: {found.reason}."
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return found


class _Search:
    """The state of a search for eigenvalues."""

    def __init__(self, problem: Problem, mass: Callable[..., Any], k: int, near: Any, tol: float, seed: int):
        self.mass, self.k, self.near, self.tol, self.seed = mass, k, near, tol, seed
        self.attempts: list[Attempt] = []
        self.last_error = np.inf  # before refinement, in the family that is tried
        self.best: tuple[Ritz, Spectrum, np.ndarray, np.ndarray] | None = None
        self._state(problem)

    def _state(self, problem: Problem) -> None:
        """Take a problem, whose mass must have as many values as its operator."""
        self.problem = problem
        self.mass_term = in_layout(Term("mass", Operator(self.mass), 0.0, None, 1.0), problem.layout)
        dim, layout = problem.domain.dim, problem.layout
        symbols = [
            symbol_of(lhs, layout, dim, dim - layout.has_time) for lhs in (problem.terms[0].lhs, self.mass_term.lhs)
        ]
        if symbols[0].entries != symbols[1].entries:
            per = 2 if layout.is_complex else 1
            raise ProblemError(
                f"The mass has {symbols[1].entries // per} values at a point; expected {symbols[0].entries // per}, as "
                "many as the operator has. Give mass=lambda u, x: …, for a system a tuple or a vector."
            )
        if not symbols[1].is_affine:
            raise NonlinearError("The mass of an eigenvalue problem must be linear in the unknown.")
        points = problem.domain.sample(32)
        amplitudes = []
        for symbol in symbols:
            found = symbol.coefficients(points)
            powers = np.sum(np.array(found.indices).reshape(-1, dim), axis=1)
            sizes = np.abs(found.coefficients).max(axis=(1, 3)).mean(axis=0)
            amplitudes.append(float(np.sum(sizes * (np.pi / problem.domain.size) ** powers)))
        self.order = max(symbols[0].order - symbols[1].order, 1)
        self.scale = amplitudes[0] / amplitudes[1]
        self.is_isotropic = is_isotropic(symbols[0], layout, points) and is_isotropic(symbols[1], layout, points)

    @property
    def shift(self) -> Any:
        """The first shift: beside the given number."""
        shift = self.near - OFFSET * self.scale
        return shift if self.problem.layout.is_complex else shift.real

    def run(self, deadline: float, max_features: int) -> None:
        """Try one space after the other until two agree."""
        fewest = self._polynomials(0)
        wanted = Wanted(
            self.problem, max_features, fewest, self.is_isotropic, self.tol, self._source_problem, self._wave_number
        )
        every = families(wanted)
        for number, family in enumerate(every):
            before, self.last_error = None, np.inf
            estimates: list[float] = []
            for space in family():
                start = time.perf_counter()
                attempt = self._attempt(space, before)
                estimate = np.inf
                if before is not None and attempt is not None:
                    estimate = self._compare(before, attempt)
                    if attempt.pencil.is_complex != self.problem.layout.is_complex:
                        attempt = self._attempt(space, None)
                seconds, size = time.perf_counter() - start, space.features.size
                self.attempts.append(Attempt(space.name, "", size, 0, seconds, estimate, estimate))
                if estimate <= self.tol or time.perf_counter() > deadline:
                    return
                if before is not None:
                    estimates.append(estimate)
                growth = 1.0 if before is None else size / before.space.features.size
                before = attempt if attempt is not None else before
                if number + 1 < len(every) and not self._promising(estimates, size, growth, max_features):
                    break

    def _promising(self, estimates: list[float], size: int, growth: float, largest: int) -> bool:
        """Whether larger spaces of a family may reach the tolerance: if its error falls geometrically with the degree,
        which is the best that can be hoped for."""
        if not estimates:
            return True
        if not np.isfinite(estimates[-1]):
            return size < max(UNRESOLVED[min(self.problem.domain.dim, 3)], self._polynomials(BEYOND))
        # Odd and even degrees may differ much, so that two steps tell more than one.
        if len(estimates) < 3 or not np.isfinite(estimates[-3]):
            return True
        faster = growth ** (1 / self.problem.domain.dim)
        log, fall = np.log(estimates[-1]), np.log(estimates[-1] / estimates[-3]) / 2
        next_size = size * growth
        while next_size <= 1.2 * largest:
            next_size, fall = next_size * growth, fall * faster
            log += fall
        return bool(fall < 0 and log <= np.log(self.tol))

    def _attempt(self, space: Space, before: Spectrum | None) -> Spectrum | None:
        """The eigenvalues in a space, from those in the last one."""
        try:
            pencil = pencil_of(self.problem, self.mass_term, space.features, space.sampling, self.seed)
            shifted = pencil.factor(self.shift)
            known = None
            if before is not None and before.pencil.is_complex == pencil.is_complex:
                known = before.pencil.left_sides(self.mass_term, before.found.functions, pencil.points)
            found = nearest(shifted, self.shift, self.k + SPARE, self.seed, known)
        except PdofmError:
            if self.best is None and len(self.attempts) > 2:
                raise
            return None
        return Spectrum(space, shifted, self.shift, found, self._genuine(pencil, found), self.seed)

    def _genuine(self, pencil: Pencil, found: Ritz) -> Ritz:
        """Those eigenvalues whose functions satisfy the equation at points that were not fitted, nearest first."""
        points = self.problem.domain.sample(HELD_OUT, "random", key=self.seed + 1)
        left = pencil.left_sides(self.problem.terms[0], found.functions, points)
        mass = pencil.left_sides(self.mass_term, found.functions, points)
        right = mass * found.values
        # An eigenvalue of zero has no terms of its own size.
        size = norm(left) + norm(right) + NEARLY_ZERO * self.scale * norm(mass)
        violation = norm(left - right) / np.maximum(size, 1e-300)
        kept = np.flatnonzero(violation <= SPURIOUS)
        kept = kept[np.argsort(np.abs(found.values[kept] - self.near), kind="stable")][: self.k]
        return found.chosen(kept)

    def _compare(self, before: Spectrum, after: Spectrum) -> float:
        """The largest estimated error of the eigenvalues, from those of two spaces. A real problem whose eigenvalues
        are not real becomes complex."""
        few = min(len(before.ritz.values), len(after.ritz.values)) < self.k
        if few or before.pencil.is_complex != after.pencil.is_complex:
            return np.inf
        errors, found = differences(before.ritz, after.ritz), after.ritz
        if not after.pencil.is_complex and np.max(errors) < RESOLVED and not may_be_real(after.ritz.values, errors):
            self._state(self.problem.replace(dtype=complex))
            return np.inf
        if self._is_worth_refining(after, float(np.max(errors))):
            better = differences(before.refined, after.refined)
            # Refinement removes rounding errors; where the space is the limit it may do harm.
            if np.max(better) < np.max(errors):
                found, errors = after.refined, better
        # Two numbers may agree by accident: no estimate is far below the others.
        errors = np.maximum(errors, max(ACCIDENT * float(np.max(errors)), ROUNDING))
        if not after.pencil.is_complex:  # what is left out of the answer
            errors = np.maximum(errors, imaginary_parts(found.values))
        if self.best is None or np.max(errors) <= np.max(self.best[2]):
            self.best = found, after, errors, self._distances(before, after, found)
        return float(np.max(errors))

    def _is_worth_refining(self, attempt: Spectrum, error: float) -> bool:
        """Whether rounding errors may be what is left of the error: if it is near the tolerance, or falls no more."""
        stagnates, self.last_error = error > STAGNANT * self.last_error, error
        enough = ROUNDING if attempt.is_two_sided else self.tol  # a second shift takes another factorisation
        return enough < error < (RESOLVED if stagnates else NEAR * self.tol)

    def _distances(self, before: Spectrum, after: Spectrum, found: Ritz) -> np.ndarray:
        """How far eigenfunctions are from the span of those in the other space, relative to their size."""
        points = self.problem.domain.sample(COMPARED, "random", key=self.seed + 2)
        old = values_at(before.pencil, before.ritz.functions, points)
        new = values_at(after.pencil, found.functions, points)
        left = new - old @ np.linalg.lstsq(old, new, rcond=None)[0]
        return np.linalg.norm(left, axis=0) / np.linalg.norm(new, axis=0)

    def _wave_number(self) -> float:
        """That of the eigenfunctions, as far as it is known: from those found so far, from the given number, and for
        many eigenvalues from Weyl's law."""
        largest = max(self.scale, abs(self.near))
        if self.best is not None:
            largest = max(largest, float(np.max(np.abs(self.best[0].values))))
        dim, first = self.problem.domain.dim, np.pi / self.problem.domain.size
        weyl = 2 * (self.k * gamma(dim / 2 + 1)) ** (1 / dim) / np.sqrt(np.pi)
        return float(first * max((largest / self.scale) ** (1 / self.order), weyl))

    def _polynomials(self, beyond: int) -> int:
        """Polynomials whose degree exceeds by that much the least with which waves across the domain are resolved."""
        domain = self.problem.domain
        phase = self._wave_number() * domain.size / 2
        across = 1.0 if beyond == 0 else np.sqrt(domain.dim)  # along a side, or along a diagonal
        return comb(int(phase * across) + beyond + domain.dim, domain.dim)

    def _source_problem(self, f: Callable[[Any], Any]) -> Problem:
        """(operator - σ mass) u = mass f, with multiples of f in all components, and the conditions of the problem."""
        operator, mass, shift = self.problem.operator, self.mass, self.shift
        layout = self.problem.layout
        fields = layout.fields(lambda z: f(z) * jnp.arange(1.0, layout.components + 1))

        def shifted(u: Any, *args: Any) -> Any:
            left, right = operator(u, *args), mass(u, *args)
            if isinstance(left, tuple | list):
                return tuple(a - shift * b for a, b in zip(left, right, strict=True))
            return left - shift * right

        def source(*args: Any) -> Any:
            value = mass(fields, *args)
            return joined(value) if isinstance(value, tuple | list) else value

        return self.problem.replace(operator=shifted, source=source)

    def modes(self) -> Modes:
        """What was found."""
        if self.best is None:
            raise SolveError(
                f"No eigenvalues of {self.problem.name!r} were found: in none of {len(self.attempts)} spaces "
                f"{self.k} eigenfunctions satisfy the equation. Check the conditions, ask for fewer eigenvalues, or "
                "choose another near=."
            )
        ritz, attempt, errors, distances = self.best
        verdict = judge(Evidence(tol=self.tol, estimate=float(np.max(errors))), "allow more time (max_seconds=)")
        problem, pencil, ritz = self._real_if_possible(attempt.pencil, ritz)
        functions = normalised(pencil, ritz.functions)
        real = not problem.layout.is_complex or np.all(imaginary_parts(ritz.values) <= errors)
        values = np.real(ritz.values) if real else ritz.values
        size = pencil.features.size
        stats = Stats(0, size, problem.layout.components, size, 1.0, {}, 0.0, {}, [])
        modes = tuple(
            Mode(
                problem,
                pencil.features,
                np.ascontiguousarray(pencil.real(functions)[:, :, j]),
                float(max(distances[j], ROUNDING)),
                verdict,
                stats,
                attempt.space.name,
                value=values[j].item(),
            )
            for j in range(len(values))
        )
        return Modes(values, errors, modes, verdict, tuple(self.attempts))

    def _real_if_possible(self, pencil: Pencil, ritz: Ritz) -> tuple[Problem, Pencil, Ritz]:
        """In a real problem eigenfunctions are real; those of nearly equal eigenvalues may have come out complex."""
        if pencil.is_complex:
            return pencil.problem, pencil, ritz
        functions = ritz.functions.copy()
        for j in range(functions.shape[2]):
            values = pencil.samples(np.real(functions[:, :, [j]])), pencil.samples(np.imag(functions[:, :, [j]]))
            is_second = j > 0 and abs(ritz.values[j] - np.conj(ritz.values[j - 1])) == 0 and np.any(values[1])
            functions[:, :, j] = np.imag(functions[:, :, j]) if is_second else np.real(functions[:, :, j])
        return pencil.problem, pencil, Ritz(ritz.values, np.real(functions), ritz.residuals)
