"""factor() with the rows in many processes: every share of them keeps its part of Q, and only the triangle comes here.

A share is factored where it is made, A = QR. Triangles are stacked two by two, and every such step keeps its Q as well.
A right-hand side goes the same way: each share computes its part, applies its own Q and passes on as many numbers as
there are unknowns. What it does not pass on is what no solution can reach: the residual.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Matrix, Vector
from pdofm.discrete.assemble import assemble
from pdofm.discrete.collocate import Block, joined
from pdofm.discrete.placement import Placement
from pdofm.discrete.shared import SharedDiscretisation, discretise_shared
from pdofm.discrete.system import System
from pdofm.numerics.executor import Executor, Share
from pdofm.numerics.lstsq import Reflected, Stacked
from pdofm.numerics.sized import Sized
from pdofm.solving.clock import Clock
from pdofm.solving.conclude import gathered
from pdofm.solving.estimate import undetermined
from pdofm.solving.factored import Solver, check_linear, stats_of
from pdofm.solving.methods import Linear
from pdofm.solving.sides import RightHandSides, own_blocks
from pdofm.solving.verdict import judge

SIDES_BYTES = 2**25
"""Bytes of the right-hand sides of one share that are solved for at once."""


@dataclass(frozen=True, eq=False)
class Leaf(Sized):
    """A share, factored, with its system but for the matrix."""

    factored: Reflected
    system: System


@dataclass(frozen=True, eq=False)
class Branch:
    """A step of the factorization: handles of what is kept and of its triangle, the first of its shares, and the steps
    that it stacks, if it is not a share itself."""

    kept: Any
    triangle: Any
    first: int
    below: "tuple[Branch, Branch] | None" = None


@dataclass(frozen=True, eq=False)
class Projected(Sized):
    """The coordinates of right-hand sides in the range of some shares, and sums of squares of what lies outside, and of
    all."""

    top: Matrix
    outside: Vector
    whole: Vector


@dataclass(frozen=True, eq=False)
class Data:
    """Right-hand sides as the user gave them: functions and numbers for all points, arrays at some of them."""

    sources: Any
    boundary: Any

    def read(self, places: Placement, blocks: list[Block]) -> RightHandSides:
        """The data at the points of these blocks; those of terms that are not among them are left out."""
        own = own_blocks(places.problem, blocks)
        boundary = self.boundary
        if isinstance(boundary, Mapping):
            boundary = {name: value for name, value in boundary.items() if name in own}
        return RightHandSides(places.problem, own, self.sources, boundary)


@dataclass(frozen=True, eq=False, repr=False)
class SharedSolver(Solver):
    """A linear problem, assembled and factored by an executor, which keeps the rows."""

    root: Branch = field(kw_only=True)

    @property
    def _shared(self) -> SharedDiscretisation:
        assert isinstance(self.discretisation, SharedDiscretisation)
        return self.discretisation

    @cached_property
    def _by_share(self) -> list[list[Block]]:
        """The blocks of each share, with their points: needed only for data in arrays."""
        places = self._shared.places
        return [places.blocks(Share(number, places.shares)) for number in range(places.shares)]

    @cached_property
    def _own(self) -> dict[str, Block]:
        return own_blocks(self.problem, joined(self._by_share))

    def _answers(
        self, sources: Any, boundary: Any
    ) -> tuple[Float[np.ndarray, "size sides"], Float[np.ndarray, " sides"], bool]:
        shared, places, executor = self._shared, self._shared.places, self._shared.executor
        is_tabulated = any(_is_array(each) for each in (sources, *_values(boundary)))
        own = self._own if is_tabulated else own_blocks(self.problem, list(shared.blocks))
        data = RightHandSides(self.problem, own, sources, boundary)
        if not isinstance(boundary, Mapping) and boundary is not None:  # a single condition
            boundary = {name: boundary for name in own if name != "equation"}
        if is_tabulated:
            given = [executor.send(each, "The data") for each in self._cuts(sources, boundary)]
        else:
            given = [executor.send(Data(sources, boundary), "The right-hand sides")] * places.shares
        size = self.stats.features * self.stats.components
        coefficients, residuals = np.empty((size, data.count)), np.empty(data.count)
        rows = max(self.stats.rows // places.shares, size)
        for which in _some(data.count, max(1, SIDES_BYTES // (8 * rows))):
            found = executor.result(self._projected(self.root, given, which))
            c = self.factorization.solve(found.top)
            coefficients[:, which] = c
            if data.is_tabulated:
                missed = np.sum((found.top - self.system.A @ c) ** 2, axis=0)
                squares = found.outside + missed, found.whole
            else:
                squares = shared.missed(miss_share, [given[0], c, (which.start, which.stop)], self.stats.features // 2)
            residuals[which] = _root_of_ratio(*squares)
        return coefficients, residuals, not data.is_tabulated

    def _projected(self, branch: Branch, given: list[Any], which: slice) -> Any:
        """A handle of the projection of right-hand sides by a step and all below it."""
        shared = self._shared
        count = shared.places.shares
        place = branch.first / count
        if branch.below is None:
            share, data = Share(branch.first, count), given[branch.first]
            arguments = branch.kept, shared.sent, data, (which.start, which.stop), share
            return shared.executor.submit(project_share, *arguments, name="pdofm-project", place=place)
        parts = [self._projected(each, given, which) for each in branch.below]
        return shared.executor.submit(project_pair, branch.kept, *parts, name="pdofm-project-combine", place=place)

    def _cuts(self, sources: Any, boundary: Any) -> Iterator[Data]:
        """The data of each share: of arrays the part at its points."""
        starts: dict[str, int] = {}
        for blocks in self._by_share:
            at = {}
            for block in blocks:
                start = starts.get(block.term.name, 0)
                starts[block.term.name] = start + block.equations
                at[block.term.name] = slice(start, start + block.equations)

            def cut(name: str, value: Any, at: dict[str, slice] = at) -> Any:
                return np.asarray(value)[at[name]] if _is_array(value) else value

            values = {name: cut(name, value) for name, value in (boundary or {}).items() if name in at}
            yield Data(cut("equation", sources), values)


def factor_shared(discretisation: SharedDiscretisation) -> Branch:
    """Factor the rows of a discretisation where they are made."""
    executor, count = discretisation.executor, discretisation.places.shares

    # Depth first, as in `Executor.tree`.
    def build(first: int, end: int) -> Branch:
        options: dict[str, Any] = {"place": first / count}
        if end - first == 1:
            share = Share(first, count)
            kept = executor.submit(factor_share, discretisation.sent, share, name="pdofm-factor", **options)
            below = None
        else:
            middle = (first + end) // 2
            below = build(first, middle), build(middle, end)
            triangles = [each.triangle for each in below]
            kept = executor.submit(Stacked, *triangles, name="pdofm-factor-combine", **options)
        triangle = executor.submit(triangle_of, kept, name="pdofm-triangle", **options)
        return Branch(kept, triangle, first, below)

    return build(0, count)


def solver_of(stated: tuple[Any, ...], method: Linear, executor: Executor) -> Solver:
    """The problem that is stated, assembled and factored by tasks, which keep their rows."""
    clock = Clock()
    with clock("points"):
        discretisation = discretise_shared("factor", *stated, executor=executor)
        check_linear(discretisation)
    with clock("factor"):
        root = factor_shared(discretisation)
        triangle = executor.result(root.triangle)
        factorization = method.lstsq.factor(triangle)
    free = undetermined(discretisation.features, factorization, discretisation.blocks[0].points)
    counts = [executor.submit(rows_of, leaf.kept, name="pdofm-rows") for leaf in leaves(root)]
    rows = sum(map(executor.result, counts))
    nothing = np.zeros(0)
    system = System(triangle, nothing, nothing, nothing, {})
    stats = replace(stats_of(discretisation, system, factorization, clock, free), rows=rows)
    verdict = judge(gathered(discretisation, free))
    return SharedSolver(discretisation, system, factorization, stats, verdict, root=root)


def factor_share(places: Placement, share: Share) -> Leaf:
    """Make and factor the rows of a share."""
    blocks, layout, features = places.blocks(share), places.problem.layout, places.features
    zero = np.zeros((features.size, layout.components))
    system = assemble(layout, features, blocks, zero, check=True)
    nothing = np.zeros((0, zero.size))
    return Leaf(Reflected(system.A), System(nothing, system.left, system.right, system.scales, system.rows))


def triangle_of(kept: Leaf | Stacked) -> Matrix:
    """The triangle of a step of the factorization."""
    return kept.factored.triangle if isinstance(kept, Leaf) else kept.triangle


def rows_of(kept: Leaf) -> int:
    """The number of rows of a share."""
    return len(kept.system.scales)


def leaves(branch: Branch) -> Iterator[Branch]:
    """The shares of a step."""
    if branch.below is None:
        yield branch
    else:
        for each in branch.below:
            yield from leaves(each)


def project_share(leaf: Leaf, places: Placement, data: Data, which: tuple[int, int], share: Share) -> Projected:
    """The right-hand sides of a share, projected."""
    blocks = places.blocks(share)
    b = data.read(places, blocks).scaled(blocks, leaf.system, slice(*which))
    top, rest = leaf.factored.apply(b)
    return Projected(top, np.sum(rest**2, axis=0), np.sum(b**2, axis=0))


def project_pair(step: Stacked, first: Projected, second: Projected) -> Projected:
    """The projections of two neighbours, projected."""
    top, rest = step.apply(first.top, second.top)
    outside = first.outside + second.outside + np.sum(rest**2, axis=0)
    return Projected(top, outside, first.whole + second.whole)


def miss_share(places: Placement, data: Data, c: Matrix, which: tuple[int, int], share: Share) -> tuple[Vector, Vector]:
    """Sums of squares over a share of the held-out points, for each right-hand side: of its residual, and of itself."""
    blocks, layout, features = places.blocks(share), places.problem.layout, places.features
    reached = _Products(c)
    zero = np.zeros((features.size, layout.components))
    system = assemble(layout, features, blocks, zero, check=False, sink=reached)
    b = data.read(places, blocks).scaled(blocks, system, slice(*which))
    return np.sum((b - np.concatenate(reached.parts)) ** 2, axis=0), np.sum(b**2, axis=0)


class _Products:
    """Products with rows that are not kept."""

    def __init__(self, c: Matrix):
        self._c = c
        self.parts: list[Matrix] = []

    def add(self, A: Matrix, b: Vector) -> None:
        """Take rows of A."""
        self.parts.append(A @ self._c)


def _values(boundary: Any) -> list[Any]:
    return list(boundary.values()) if isinstance(boundary, Mapping) else [boundary]


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and np.ndim(value) > 0


def _some(k: int, most: int) -> Iterator[slice]:
    return (slice(start, min(start + most, k)) for start in range(0, k, most))


def _root_of_ratio(part: Vector, whole: Vector) -> Vector:
    """√(part / whole); 0 where both vanish."""
    return np.sqrt(np.divide(part, whole, out=np.where(part == 0, 0.0, np.inf), where=whole > 0))
