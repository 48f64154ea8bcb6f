"""What a run asks of a space of functions of x."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Complex, Float

from pdofm.features import Features
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.statement import Statement

States = list[Float[np.ndarray, "... _"]]
"""Functions of x, or several of them in a batch, by order of the time derivative."""


def forget(space: Any, *names: str) -> None:
    """Remove cached properties of a space."""
    for name in names:
        space.__dict__.pop(name, None)


@runtime_checkable
class Factors(Protocol):
    """Factored equations for k rates."""

    def solve(self, rows: Any) -> Any:
        """The functions (k, N) for right-hand sides (k, M), one for each rate."""
        ...


@dataclass(frozen=True, eq=False)
class FactorsByRate:
    """Equations that are factored for each of k rates by itself."""

    each: tuple[Any, ...]

    def solve(self, rows: Complex[np.ndarray, "k ... _"]) -> Complex[np.ndarray, "k ... _"]:
        """The functions for right-hand sides: one per rate, or, with dense matrices, several."""
        return np.stack([one.solve(row) for one, row in zip(self.each, rows, strict=True)])


@runtime_checkable
class Space(Protocol):
    """Functions of x with N coefficients in all, in which an evolution is discretised.

    A state of order K in time is a list of K functions: values and time derivatives below K.
    """

    kind: str
    statement: Statement
    size: int
    algebraic: Bool[np.ndarray, " _"]
    """The coefficients of components without time derivative."""

    @property
    def features(self) -> Features:
        """The functions that the coefficients belong to."""
        ...

    def coefficients(self, state: Any) -> Any:
        """The coefficients (q, m, C) of q functions, given as (q, N), in `features`."""
        ...

    @property
    def description(self) -> list:
        """Numbers from which `described` makes this space again."""
        ...

    def described(self, description: list) -> "Space":
        """Another space of the same kind."""
        ...

    def fitted(self) -> States:
        """The state at the start."""
        ...

    def residual(self, states: States, times: Vector) -> Any:
        """All equations and conditions (p, M) at p times, of a function with its time derivatives."""
        ...

    def linearise(self, states: States, time: float) -> Any:
        """The same at one time, linearised, for `factor`."""
        ...

    def factor(self, linear: Any, rates: Any) -> Factors:
        """Factor the linearised equations for functions of x times exp(rate t), for k rates."""
        ...

    def quadrature(self) -> tuple[Points, Vector]:
        """Points, and weights whose sum is 1."""
        ...

    def norms(self, state: Any) -> Any:
        """The root mean square (…, C) of each component over space."""
        ...

    def tails(self, state: Any, scale: Vector) -> Vector:
        """What may be missing in space, part by part of it, relative to `scale`."""
        ...

    def marked(self, tails: Vector, tol: float) -> Any:
        """What to refine so that the tails are smaller than `tol`; None if nothing."""
        ...

    def refined(self, marks: Any, states: States) -> "tuple[Space, States]":
        """A finer space, and the same state in it."""
        ...

    def coarsened(self, states: States, scales: list[Vector], tol: float) -> "tuple[Space, States]":
        """A coarser space that still represents the state, if there is one."""
        ...

    def forget(self) -> None:
        """Free the memory of tables; they are made again if they are needed."""
        ...
