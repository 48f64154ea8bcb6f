"""Problems with known truth that try to deceive a solver: kinds with parameters drawn from seeds.

A kind is a function of a random generator. It returns a problem whose data come from its exact solution, or a problem
with a function that knows the truth. The modules `wellposed`, `narrow`, `details`, `scales` and `illposed` have the
kinds.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pdofm as pf

POINTS = 4000
"""Random points at which answers are compared with the truth."""

Truth = Callable[[np.ndarray], np.ndarray]
"""The solution (n, C) at points (n, d)."""


@dataclass(frozen=True)
class Hostile:
    """A problem of the collection: whether it is well-posed, and its solution, by default the exact one."""

    name: str
    problem: pf.Problem
    truth: Truth
    is_well_posed: bool


@dataclass(frozen=True)
class Kind:
    """How problems of a kind are made, how many there are, and whether they are well-posed."""

    make: Callable[[np.random.Generator], Any]
    count: int
    is_well_posed: bool


KINDS: dict[str, Kind] = {}


def kind(count: int, *, is_well_posed: bool = True):
    """Register a function that makes `count` problems from as many seeds."""

    def register(make: Callable[[np.random.Generator], Any]):
        KINDS[make.__name__] = Kind(make, count, is_well_posed)
        return make

    return register


def names() -> list[str]:
    """The names of all problems of the collection, such as "peaks-2"."""
    return [f"{name}-{i}" for name, each in KINDS.items() for i in range(each.count)]


def get(name: str) -> Hostile:
    """The problem with this name, the same one in every process."""
    of, _ = name.rsplit("-", 1)
    made = KINDS[of].make(np.random.default_rng(zlib.crc32(name.encode())))
    problem, truth = made if isinstance(made, tuple) else (made, made.exact_values)
    return Hostile(name, problem.replace(name=name), truth, KINDS[of].is_well_posed)


def error_of(found: pf.Solution, case: Hostile) -> float:
    """The relative L2 error at random points; in a system that of the worst component, relative to its own size."""
    points = case.problem.domain.sample(POINTS, "random", key=12345)
    true = np.asarray(case.truth(points)).reshape(len(points), -1)
    values = np.asarray(found(points)) if case.problem.unknowns is None else _columns(found, points)
    values = values.reshape(len(points), -1)
    if np.iscomplexobj(values):
        values = np.concatenate([values.real, values.imag], axis=1)
    sizes = np.linalg.norm(true, axis=0)
    sizes[sizes == 0] = np.linalg.norm(true)
    return float(np.max(np.linalg.norm(values - true, axis=0) / sizes))


def _columns(found: pf.Solution, points: np.ndarray) -> np.ndarray:
    each = [np.asarray(getattr(found, name)(points)).reshape(len(points), -1) for name in found.problem.unknowns]
    return np.concatenate(each, axis=1)


@dataclass(frozen=True)
class Outcome:
    """What a solve said, and what is true. `refused` has the message of an error of pdofm."""

    converged: bool
    error: float
    estimate: float
    required: float
    refused: str = ""

    @property
    def is_deceiving(self) -> bool:
        """Whether an answer is called converged although its error is above ten times of what was said or asked."""
        return self.converged and not self.error <= 10 * max(self.estimate, self.required)

    @property
    def is_right(self) -> bool:
        """Whether an answer is as good as was asked for: two digits by default."""
        return self.error <= (self.required if self.required > 1e-10 else 1e-2)


def outcome(case: Hostile, tol: float | None, seed: int = 0, max_seconds: float = 20.0) -> Outcome:
    """Solve by default or with a tolerance. Only errors of pdofm are caught."""
    options = {} if tol is None else {"tol": tol, "max_seconds": max_seconds}
    try:
        found = pf.solve(case.problem, key=seed, **options)
    except pf.errors.PdofmError as error:
        return Outcome(False, np.inf, np.inf, np.nan, str(error))
    # By default nothing is asked, so that the estimate alone must hold, up to rounding.
    return Outcome(found.converged, error_of(found, case), found.error_estimate, 1e-14 if tol is None else tol)
