"""A discretisation whose points are placed, and whose rows are made, by tasks of an executor.

Every task places its own share of the points, makes their rows and folds them into the triangle of [A b]; triangles are
combined two by two. Rows never leave the process that makes them. What follows from the solution at fitted and held-out
points is computed in the same way: sums of squares by share, added two by two.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import add
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Key
from pdofm.discrete.assemble import all_left_values, assemble
from pdofm.discrete.collocate import Block
from pdofm.discrete.defaults import default_counts
from pdofm.discrete.discretisation import Discretisation, check_rows, place
from pdofm.discrete.leftsides import entries
from pdofm.discrete.look import Look, Steps, look_at
from pdofm.discrete.placement import Placement
from pdofm.discrete.right import right_values
from pdofm.discrete.system import Sums, System
from pdofm.numerics.executor import Executor, Share
from pdofm.numerics.lstsq import Folding, Stacked, split
from pdofm.numerics.sampling import check_request
from pdofm.numerics.sized import Sized
from pdofm.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Folded(Sized):
    """The triangle of [A b] of some shares, and the sums of the squares of their residuals, unscaled."""

    triangle: Float[np.ndarray, "held held"]
    sums: Sums

    def __add__(self, other: "Folded") -> "Folded":
        return Folded(Stacked(self.triangle, other.triangle).triangle, self.sums + other.sums)


@dataclass(frozen=True, eq=False)
class SharedSystem(System):
    """A system of which only the triangle is known.

    Attributes:
        coefficients: where it was linearised.
        sums: of the squares of left minus right side, at the coefficients where the sides were last evaluated.
        scaled: the norm of the scaled residual there.
        moved_from: where the row scales are those of, if the sides were evaluated again.
    """

    coefficients: Coefficients = field(default_factory=lambda: np.zeros((0, 0)))
    sums: Sums = field(default_factory=Sums)
    scaled: float = 0.0
    moved_from: Coefficients | None = None

    @property
    def norm(self) -> float:
        return self.scaled


@dataclass(frozen=True, eq=False, repr=False)
class SharedDiscretisation(Discretisation):
    """The same as `Discretisation`, with rows that tasks make. Its own `blocks` are a few points."""

    executor: Executor = field(kw_only=True)
    places: Placement = field(kw_only=True)

    @property
    def interior_points(self) -> int:
        return self.places.interior

    @cached_property
    def sent(self) -> Any:
        """The placement, where tasks can take it from."""
        return self.executor.send(self.places, f"The problem {self.problem.name!r} with its features")

    @cached_property
    def _elsewhere(self) -> tuple[Placement, Any]:
        places = self.elsewhere(self.features.size)
        return places, self.executor.send(places, f"The problem {self.problem.name!r} with its features")

    def with_held_out(self) -> "Discretisation":
        return self

    def iterating(self) -> "Discretisation":
        return self

    def with_equation(self, terms: Any) -> "Discretisation":
        alone = super().with_equation(terms)
        return replace(alone, places=replace(self.places, equation=terms[0]))

    def system(self, coefficients: Coefficients, blocks: Any = None, *, check: bool = False, **_: Any) -> System:
        arguments = [self.sent, self._told(coefficients), check]
        found = self._combined(fold_share, arguments, self.places, "pdofm-fold")
        A, folded = split(found.triangle)
        none, norm = np.zeros(0), float(np.linalg.norm(folded))
        return SharedSystem(A, none, none, none, {}, folded, None, coefficients, found.sums, norm)

    def moved(self, system: System, coefficients: Coefficients) -> System:
        assert isinstance(system, SharedSystem)
        arguments = [self.sent, self._told(coefficients), self._told(system.coefficients)]
        raw, scaled = self._combined(residual_share, arguments, self.places, "pdofm-residual")
        return replace(system, sums=raw, scaled=scaled.norm, moved_from=system.coefficients, coefficients=coefficients)

    def merit(self, system: System, moved: System) -> float:
        assert isinstance(system, SharedSystem)
        assert isinstance(moved, SharedSystem)
        if moved.moved_from is not system.coefficients:
            moved = self.moved(system, moved.coefficients)
            assert isinstance(moved, SharedSystem)
        return moved.norm

    def residuals(self, system: System, coefficients: Coefficients | None = None) -> Sums:
        assert isinstance(system, SharedSystem)
        if coefficients is None:
            return system.sums
        arguments = [self.sent, self._told(coefficients), None]
        return self._combined(residual_share, arguments, self.places, "pdofm-residual")[0]

    def look(
        self,
        coefficients: Coefficients,
        system: System | None,
        steps: Float[np.ndarray, "columns steps"],
        functions: Float[np.ndarray, "k m C"],
    ) -> Look:
        places, sent = self._elsewhere
        told = self._told((coefficients, steps, functions))
        return self._combined(look_share, [sent, told], places, "pdofm-held-out")

    def missed(self, function: Any, arguments: list[Any], interior: int) -> Any:
        """``function(places, *arguments, share)`` added up over other points than the fitted ones, `interior` of them
        inside."""
        places = self.elsewhere(interior)
        return self._combined(function, [self._told(places), *arguments], places, "pdofm-held-out")

    def _told(self, value: Any) -> Any:
        """A value that all tasks take."""
        return self.executor.send(value, "What is known")

    def _combined(self, function: Any, arguments: list[Any], places: Placement, name: str) -> Any:
        executor = self.executor
        return executor.result(executor.tree(function, arguments, combined, places.shares, name=name))


def discretise_shared(
    caller: str,
    problem: Problem,
    features: Any,
    points: int | None,
    boundary_points: int | None,
    sampling: str,
    key: Key,
    executor: Executor,
) -> SharedDiscretisation:
    """Validate what `caller` was given, choose what was not given, and leave the points to the executor."""
    places, seed = place(caller, problem, features, points, boundary_points, sampling, key, executor.shares)
    check_request(places.interior, sampling)
    check_request(places.boundary, sampling)
    blocks = places.few(*default_counts(problem, places.features)).all_blocks()
    check_rows(places.interior + places.boundary, places.features)
    return SharedDiscretisation(
        problem, places.features, blocks, boundary_points=places.boundary, seed=seed, executor=executor, places=places
    )


def combined(first: Any, second: Any) -> Any:
    """The results of two neighbours, added; pairs entry by entry."""
    if isinstance(first, tuple):
        return tuple(map(add, first, second))
    return first + second


def fold_share(places: Placement, coefficients: Coefficients, check: bool, share: Share) -> Folded:
    """The triangle of the rows of a share."""
    folding, blocks = Folding(coefficients.size), places.blocks(share)
    system = assemble(places.problem.layout, places.features, blocks, coefficients, check=check, sink=folding)
    return Folded(folding.triangle(), Sums.of(system.left - system.right, system.rows))


def residual_share(
    places: Placement, coefficients: Coefficients, scaled_at: Coefficients | None, share: Share
) -> tuple[Sums, Sums]:
    """The residuals of a share, unscaled and scaled by the rows of the system at other coefficients."""
    layout, features, blocks = places.problem.layout, places.features, places.blocks(share)
    rows, start = {}, 0
    for block in blocks:
        rows[block.term.name] = slice(start, start + block.equations * entries(layout, block))
        start = rows[block.term.name].stop
    right = np.concatenate([_right(places, block) for block in blocks])
    residual = all_left_values(layout, features, blocks, coefficients) - right
    raw = Sums.of(residual, rows)
    if scaled_at is None:
        return raw, Sums()
    scales = assemble(layout, features, blocks, scaled_at, check=False, sink=_Nowhere()).scales
    return raw, Sums.of(scales * residual, rows)


def look_share(places: Placement, told: tuple[Coefficients, np.ndarray, np.ndarray], share: Share) -> Look:
    """What is seen of a solution at a share of the held-out points."""
    coefficients, steps, functions = told
    blocks, passed = places.blocks(share), Steps(steps)
    system = assemble(places.problem.layout, places.features, blocks, coefficients, check=True, sink=passed)
    return look_at(system, places.features, steps, functions, blocks[0].points, passed)


class _Nowhere:
    """Takes rows that nobody needs."""

    def add(self, A: np.ndarray, b: np.ndarray) -> None:
        """Forget rows."""


def _right(places: Placement, block: Block) -> np.ndarray:
    layout = places.problem.layout
    return block.averaged(right_values(layout, block, entries(layout, block))).reshape(-1)
