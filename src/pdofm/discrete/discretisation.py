"""A problem, a space and collocation points: what solving, searching and factoring start from."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Key, Points, Vector
from pdofm.calculus.terms import Term
from pdofm.discrete import placement
from pdofm.discrete.assemble import all_left_values, assemble, residuals
from pdofm.discrete.checks import check_fit, check_problem
from pdofm.discrete.collocate import Block, interior_of, with_equation
from pdofm.discrete.defaults import chosen_features, default_counts
from pdofm.discrete.evaluate import evaluate, feature_values
from pdofm.discrete.leftsides import entries
from pdofm.discrete.linearity import is_affine, nonlinear_terms
from pdofm.discrete.look import Look, look_at
from pdofm.discrete.memory import Memory
from pdofm.discrete.placement import Placement
from pdofm.discrete.system import Sums, System
from pdofm.errors import SolveError
from pdofm.features import Features
from pdofm.numerics.numbers import as_count
from pdofm.numerics.sampling import generator, spread
from pdofm.problem.problem import Problem

WATCHED_POINTS = 256
"""Points at which an iteration measures how far a step moves the unknowns."""

MOST_VALUES = 2**19
"""Values of features at held-out points that are kept to be used again."""


@dataclass(frozen=True, eq=False)
class Discretisation:
    """A problem, the features that it is solved in, and the points.

    Attributes:
        blocks: the terms at the fitted points; the first one is the equation.
        held_out: the same terms at points that are not fitted.
        boundary_points: how many fitted points were asked for on the boundary.
        seed: of the points that are held out.
        memory: what is known from solving the same problem before.
        sizes: the sizes of the components, for which rows are scaled; 1 if they are not known.
    """

    problem: Problem
    features: Features
    blocks: Sequence[Block]
    held_out: Sequence[Block] = ()
    boundary_points: int = 0
    seed: int = 0
    memory: Memory = field(default_factory=Memory)
    sizes: Vector | None = None

    @property
    def interior_points(self) -> int:
        """How many fitted points are inside the domain."""
        return len(self.interior)

    def elsewhere(self, interior: int) -> Placement:
        """Other points than the fitted ones: `interior` inside, and on the boundary a quarter as many as are fitted."""
        counts = max(interior, 64), max(self.boundary_points // 4, 16)
        return placement.held_out(self.problem, self.features, counts, self.seed)

    def with_held_out(self) -> "Discretisation":
        """The same with points that are not fitted."""
        return replace(self, held_out=self.elsewhere(self.features.size).all_blocks())

    def held_out_system(self, interior: int) -> tuple[list[Block], System]:
        """The terms at other points than the fitted ones, with the system there at the zero function."""
        blocks = self.elsewhere(interior).all_blocks()
        return blocks, self.system(self.zero(), blocks, fold=False)

    def look(
        self,
        coefficients: Coefficients,
        system: System | None,
        steps: Float[np.ndarray, "columns steps"],
        functions: Float[np.ndarray, "k m C"],
    ) -> Look:
        """What is seen at the held-out points: residuals at `coefficients` and, linearised there, after some steps from
        them, and values of functions. `system` is the one at these points, if it is known."""
        if system is None:
            system = self.system(coefficients, self.held_out, check=True, fold=False, role="held out")
        points, known = interior_of(self.held_out), self.held_out_values
        return look_at(system, self.features, steps, functions, points, known=known)

    def with_equation(self, terms: Sequence[Term]) -> "Discretisation":
        """The same points with another left side of the equation, the first of these terms, and none held out."""
        return replace(self, blocks=with_equation(self.blocks, terms), held_out=())

    def system(
        self,
        coefficients: Coefficients,
        blocks: Sequence[Block] | None = None,
        *,
        check: bool = False,
        fold: bool = True,
        role: str = "fitted",
    ) -> System:
        """The linearised system at `coefficients`: that of its own blocks together with the one at the held-out points,
        or that of other `blocks`.

        With `check` values that are not finite are errors. Without `fold` all rows are kept, however many there are.
        `role` is what the points of other blocks are called in the memory.
        """
        known = {"check": check, "memory": self.memory}
        joint = blocks is None and bool(self.held_out)
        if joint:
            for block, other in zip(self.blocks, self.held_out, strict=True):
                both, layout = {"fitted": block, "held out": other}, self.problem.layout
                self.memory.right_sides.learn(layout, both, entries(layout, block))
        own = self._assembled(self.blocks if blocks is None else blocks, coefficients, fold=fold, role=role, **known)
        if not joint:
            return own
        return replace(own, held_out=self._assembled(self.held_out, coefficients, role="held out", **known))

    def _assembled(self, blocks: Sequence[Block], coefficients: Coefficients, **options: Any) -> System:
        return assemble(self.problem.layout, self.features, blocks, coefficients, sizes=self.sizes, **options)

    def moved(self, system: System, coefficients: Coefficients) -> System:
        """The system with its left sides at other coefficients, but the same rows and scales: for a step with a matrix
        that is already factored."""

        def left(blocks: Sequence[Block]) -> np.ndarray:
            return all_left_values(self.problem.layout, self.features, blocks, coefficients, self.memory)

        held_out = replace(system.held_out, left=left(self.held_out)) if system.held_out is not None else None
        return replace(system, left=left(self.blocks), held_out=held_out)

    def merit(self, system: System, moved: System) -> float:
        """The norm of the residual of a system that was moved, or made at other coefficients, with the row scales of
        `system`."""
        return float(np.linalg.norm(system.scales * (moved.right - moved.left)))

    def residuals(self, system: System, coefficients: Coefficients | None = None) -> Sums:
        """Left minus right side of each term where the system was made; or, for a linear problem, at other coefficients
        if the system was made at zero."""
        left = system.left - system.right
        if coefficients is not None:
            left = residuals(self.problem.layout, self.features, self.blocks, system, coefficients)
        return Sums.of(left, system.rows)

    def iterating(self) -> "Discretisation":
        """The same for an iteration, which needs the same derivatives of the features in each step."""
        return replace(self, memory=self.memory.iterating())

    def zero(self) -> Coefficients:
        """Coefficients of the zero function."""
        return np.zeros((self.features.size, self.problem.layout.components))

    @cached_property
    def is_affine(self) -> bool:
        """Whether the problem is linear as it is written, whatever the solution."""
        return all(is_affine(self.problem.layout, block) for block in self.blocks)

    def nonlinear_terms(self, step: Coefficients | None = None) -> list[str]:
        """The names of the terms that are not affine in the unknown; see `linearity.nonlinear_terms`."""
        return nonlinear_terms(self.problem.layout, self.features, self.blocks, step)

    def values(self, coefficients: Coefficients) -> np.ndarray:
        """The unknowns at some of the interior points."""
        points = self.interior
        return evaluate(self.features, coefficients, points[spread(len(points), WATCHED_POINTS)])

    @cached_property
    def held_out_values(self) -> Float[np.ndarray, "n m"] | None:
        """The features at the held-out points inside the domain; None if there are too many of both to be kept."""
        points = interior_of(self.held_out)
        if len(points) * self.features.size > MOST_VALUES:
            return None
        return feature_values(self.features, points)

    @cached_property
    def interior(self) -> Points:
        """The fitted points inside the domain."""
        return interior_of(self.blocks)


def discretise(
    caller: str,
    problem: Problem,
    features: Any,
    points: int | None,
    boundary_points: int | None,
    sampling: str,
    key: Key,
    memory: Memory | None = None,
) -> Discretisation:
    """Validate what `caller` was given, choose what was not given, and place the points."""
    places, seed = place(caller, problem, features, points, boundary_points, sampling, key)
    blocks = places.all_blocks()
    check_rows(sum(block.equations for block in blocks), places.features)
    known = Memory() if memory is None else memory
    return Discretisation(
        places.problem, places.features, blocks, boundary_points=places.boundary, seed=seed, memory=known
    )


def place(
    caller: str,
    problem: Problem,
    features: Any,
    points: int | None,
    boundary_points: int | None,
    sampling: str,
    key: Key,
    shares: int | None = None,
) -> tuple[Placement, int]:
    """Validate what `caller` was given, and choose what was not given: which points are fitted, and the seed of those
    that are not."""
    check_problem(caller, problem)
    seeds = [int(s) for s in generator(key).integers(2**31, size=3)]
    features = chosen_features(problem, features, seeds[0])
    check_fit(problem, features)
    interior, boundary = default_counts(problem, features)
    interior = interior if points is None else as_count(points, "points", SolveError)
    boundary = boundary if boundary_points is None else as_count(boundary_points, "boundary_points", SolveError)
    return placement.fitted(problem, features, (interior, boundary), sampling, seeds[1], shares), seeds[2]


def check_rows(rows: int, features: Features) -> None:
    """Refuse fewer rows than features."""
    if rows < features.size:
        raise SolveError(
            f"Fewer rows than features: {rows} points for {features.size} features. Use more points (points=, "
            "boundary_points=) or fewer features."
        )
