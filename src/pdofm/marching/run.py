"""One run over all time with a tolerance for each slab: how long slabs are, and how fine the space is."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from pdofm.marching.arrays import Vector
from pdofm.marching.pulses import LEVEL, pulses_of
from pdofm.marching.radau import Radau
from pdofm.marching.slab import Matrices, Slab, linearised_at, sizes_ahead, solve_slab
from pdofm.marching.spaces import Space, States
from pdofm.marching.termat import Overlooked

LADDER = 52
"""The shortest slab is the whole time divided by 2^52, below which times are no longer distinct."""

FIRST_STEP = 7
"""The first slab is tried with the whole time divided by 2^7."""

MARGIN = 0.3
"""The next slab is twice as long if its time coefficients are then expected to be this fraction of the tolerance."""

UNCLEAR = 1e-3
"""A time coefficient that is smaller than the last step of the iteration consists of what this has left. It tells
nothing about a longer slab, and if it is also below this fraction of the tolerance, one is tried. After each that
fails, twice as many slabs pass before the next is tried."""

COARSEN_EVERY = 3
"""The space is coarsened after every third slab, if it can be."""

GARBAGE = 0.1
"""A time coefficient of this size, relative to the solution, says that the slab is far too long; what it shows in space
says nothing then. With smaller ones the space is refined first: where the start is not compatible with the conditions,
no shorter slab helps a space that does not resolve the layer."""

SHORT = 20
"""Slabs shorter than the whole time divided by 2^20 occur at singular times, such as a start that contradicts the
conditions. Their tolerance is that of the whole time: they contribute to the error over all time by the root of their
length."""

NOTHING = 1e-10
"""A component that is zero at the start and grows to less than this fraction of the largest one may be rounding."""

ITERATION = 0.02
"""The last step of the iteration on a slab, as a fraction of the tolerance of a slab."""

SMALLEST_STEP = 5e-15
"""The smallest step of the iteration that can be asked for, relative to the solution, because of rounding."""


@runtime_checkable
class SupportsArray(Protocol):
    """What `numpy.asarray` makes an array of."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """One slab of a solution: its place on the ladder, the space, and the Chebyshev coefficients in time of the state,
    of shape (degree + 1, N), perhaps in a file; `tail` is the size of what was left out, in time and in space."""

    position: int
    level: int
    space: Space
    coefficients: np.ndarray | SupportsArray
    tail: float
    steps: int


class TooFine(Exception):
    """The space that the solution needs is larger than allowed."""


class Late(Exception):
    """The deadline has passed."""


class Stuck(Exception):
    """The shortest slab does not converge: the solution ceases to exist, or is not resolved."""


@dataclass(eq=False)
class Run:
    """A run: where it is, and what it has found.

    Attributes:
        space, states: the space and the state now.
        tol: the largest tail of a slab in time and in space, relative to the solution.
        scheme: the stages in time.
        scale: the largest norm of each component so far.
        pulses: times at which data change quickly.
        time_tail: the size of the last time coefficient of the last slab.
        waiting, patience: the number of slabs before a longer one is tried that may fail, and after it has failed.
        is_trial: whether the next slab is such a one.
        is_unclear: whether the last time coefficient consists of what the iteration has left.
        is_limited: whether a slab has left out more than it should, in a space that is not refined any more.
        position, level: the time reached, as a multiple of 2^-LADDER of the whole, and the length of the next slab,
            2^-level of the whole.
    """

    space: Space
    states: States
    scheme: Radau
    tol: float
    scale: Vector
    most_unknowns: int
    pulses: Vector
    position: int = 0
    level: int = FIRST_STEP
    matrices: Matrices | None = None
    pieces: list[Piece] = field(default_factory=list)
    rejected: int = 0
    time_tail: float = 0.0
    waiting: int = 0
    patience: int = 2
    is_trial: bool = False
    is_unclear: bool = False
    is_limited: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether the end is reached."""
        return self.position == 2**LADDER

    @property
    def fraction(self) -> float:
        """The part of the time that is done."""
        return self.position / 2**LADDER

    @property
    def time(self) -> float:
        """The time reached."""
        return self.time_at(self.position)

    def time_at(self, position: int) -> float:
        """The time at a position on the ladder."""
        domain = self.space.statement.domain
        return domain.t0 + (domain.t1 - domain.t0) * (position / 2**LADDER)

    def ends_of(self, piece: Piece) -> tuple[float, float]:
        """The times at which a slab begins and ends."""
        return self.time_at(piece.position), self.time_at(piece.position + 2 ** (LADDER - piece.level))

    def advance(self, deadline: float = math.inf) -> Piece:
        """The next slab; `Late` if it is not found before the deadline."""
        shorter, is_incomplete = 0, False
        while True:
            if perf_counter() > deadline:
                raise Late
            while self.position % 2 ** (LADDER - self.level) or (self.level < LEVEL and self._meets_pulse()):
                self.level += 1
            try:
                if is_incomplete:
                    self._rebuild()
                found, is_incomplete = self._attempt(), False
            except Overlooked:
                is_incomplete = True
                continue
            if isinstance(found, Piece):
                break
            if found:
                if self.is_trial:
                    self.waiting, self.patience = self.patience, 2 * self.patience
                self.is_trial = False
                # Repeated rejections, as at a singular start, shorten the slab faster and faster.
                shorter += 1
                self.level += max(found, min(shorter, 4))
                self.rejected += 1
            if self.level > LADDER:
                raise Stuck
        self.pieces.append(found)
        self.position += 2 ** (LADDER - self.level)
        grows = self.level > 0 and self.position % 2 ** (LADDER - self.level + 1) == 0
        self.is_trial, self.waiting = False, max(self.waiting - 1, 0)
        if grows and self.time_tail * 2.0**self.scheme.stages <= MARGIN * self.tol:
            self.level -= 1
        elif grows and self.waiting == 0 and self.is_unclear:
            self.level, self.is_trial = self.level - 1, True
        if len(self.pieces) % COARSEN_EVERY == 0:
            self._coarsen()
        return found

    def _meets_pulse(self) -> bool:
        """Whether data change quickly during the next slab."""
        end = self.time_at(self.position + 2 ** (LADDER - self.level))
        first, last = np.searchsorted(self.pulses, [self.time, end])
        return bool(last > first)

    def _attempt(self) -> Piece | int:
        """Try a slab: the slab, or by how many levels it must be shorter; 0 asks for another attempt in the space that
        was refined meanwhile."""
        length = self.time_at(self.position + 2 ** (LADDER - self.level)) - self.time
        if self.matrices is None:
            self.matrices = linearised_at(self.space, self.states, self.time)
        step = max(ITERATION * self.tol, SMALLEST_STEP)
        slab = solve_slab(self.matrices, self.scheme, self.states, self.time, length, self.scale, step)
        if slab is None:
            return 2
        values = self._with_start(slab)
        scale = np.maximum(self.scale, self.space.norms(values).max(axis=0))
        coefficients = self.scheme.to_chebyshev @ values
        in_time = float(np.max(self.space.norms(coefficients[-1]) / scale))
        tol = self.tol if self.level < SHORT else self.tol * 2.0 ** (self.level / 2)
        if in_time > GARBAGE and self.level < LADDER:
            return self._shorter(in_time)
        tails = self.space.tails(values, scale)
        marks = self.space.marked(tails, tol)
        if marks is not None:
            self._refine(marks)
            return 0
        if in_time > tol and self.level < LADDER:
            return self._shorter(in_time)
        self.scale, self.matrices, self.time_tail = scale, slab.matrices, in_time
        self.is_unclear = in_time <= min(slab.last, UNCLEAR * self.tol)
        self.states = [slab.stages[k][-1] for k in range(len(self.states))]
        in_space = float(np.linalg.norm(tails))
        self.is_limited |= in_space > tol
        tail = math.hypot(in_time, in_space) * self.tol / tol
        return Piece(self.position, self.level, self.space, coefficients, tail, slab.steps)

    def _shorter(self, in_time: float) -> int:
        return max(1, math.ceil(math.log2(in_time / self.tol) / self.scheme.stages))

    def _with_start(self, slab: Slab) -> Float[np.ndarray, "q _"]:
        """The values at the start and at the stages. Components without time derivative have no value of their own at
        the start: theirs is extrapolated from the stages."""
        stages, start = slab.stages[0], self.states[0].copy()
        free = self.space.algebraic
        start[free] = self.scheme.back @ stages[:, free]
        return np.concatenate([start[None], stages])

    def _refine(self, marks) -> None:
        before = self.space
        self.space, self.states = before.refined(marks, self.states)
        before.forget()
        if self.space.size > self.most_unknowns:
            raise TooFine
        if self.position == 0:
            self.states = self.space.fitted()
        self.matrices = None

    def _rebuild(self) -> None:
        """Make the space again, with derivatives that were overlooked."""
        before = self.space
        self.space, self.matrices = before.described(before.description), None
        before.forget()
        if self.position == 0:
            self.states = self.space.fitted()

    def _coarsen(self) -> None:
        scales = [self.scale, *(np.maximum(self.space.norms(each), self.scale) for each in self.states[1:])]
        before = self.space
        self.space, self.states = self.space.coarsened(self.states, scales, self.tol)
        if self.space is not before:
            self.matrices = None
            before.forget()


def first_run(make: Callable[[], Space], scheme: Radau, tol: float, most_unknowns: int) -> Run:
    """A run at its start."""
    while True:
        try:
            return _at_start(make(), scheme, tol, most_unknowns)
        except Overlooked:  # each time there is one derivative more
            continue


def _sizes(space: Space, states: States, scheme: Radau) -> Vector:
    """The size of each component at the start; if all are zero there, until the end. One where it is not known."""
    sizes = space.norms(states[0])
    if not sizes.any():
        domain = space.statement.domain
        matrices = linearised_at(space, states, domain.t0)
        sizes = sizes_ahead(matrices, scheme, states, domain.t0, domain.t1 - domain.t0) * np.ones(len(sizes))
        sizes = np.where(sizes > NOTHING * sizes.max(), sizes, 0.0)
    return np.where(sizes > 0, sizes, 1.0)


def _at_start(space: Space, scheme: Radau, tol: float, most_unknowns: int) -> Run:
    """A run in a space that is refined until it represents the initial values, then coarsened."""
    states = space.fitted()
    while True:
        scale = _sizes(space, states, scheme)
        marks = space.marked(space.tails(states[0][None], scale), tol)
        if marks is None:
            break
        space, states = space.refined(marks, states)
        if space.size > most_unknowns:
            raise TooFine
        states = space.fitted()
    while True:
        scales = [np.where(norm > 0, norm, 1.0) for norm in map(space.norms, states)]
        coarser, fewer = space.coarsened(states, scales, tol)
        if coarser is space:
            break
        space, states = coarser, fewer
    return Run(space, states, scheme, tol, scale, most_unknowns, pulses_of(space.statement))
