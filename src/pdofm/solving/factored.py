"""factor(): assemble and factor a linear problem once, then solve it for thousands of right-hand sides.

The matrix of a linear problem depends on the operator, the features and the points, not on the data. With A = QR in
hand a new source costs two products with the size of A: one to project it, one to see what is left of it.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pdofm._types import Key, Matrix, Points
from pdofm.discrete.assemble import System, entries
from pdofm.discrete.collocate import Block
from pdofm.discrete.direct import Coefficients
from pdofm.discrete.discretisation import Discretisation, discretise
from pdofm.discrete.right import check_finite, data_name, right_values
from pdofm.errors import ConvergenceWarning, NonlinearError, ProblemError, unknown_name
from pdofm.features import Features
from pdofm.numerics.lstsq import Factorization, LeastSquares
from pdofm.numerics.sampling import spread
from pdofm.problem.problem import Problem
from pdofm.solving.estimate import undetermined
from pdofm.solving.fit import Clock, gathered
from pdofm.solving.methods import DIRECT
from pdofm.solving.solution import Solutions
from pdofm.solving.verdict import ACCEPTABLE, Verdict, is_accurate, judge, remedy_for

BLOCK_BYTES = 2**22
"""Right-hand sides are solved in blocks of about this size, but at least `LEAST_BLOCK` at once."""

LEAST_BLOCK = 64

CANCELLED = 1e-6
"""A residual below this is lost in the difference of two squares."""

WATCHED = 32
"""So many rows tell how large a residual below `CANCELLED` is: within some tens of percent."""

Sides = Float[np.ndarray, "rows sides"]


@dataclass(frozen=True)
class FactorStats:
    """What was factored: see `pdofm.solving.solution.Stats` for the meaning of the numbers."""

    rows: int
    features: int
    components: int
    rank: int
    condition: float
    seconds: dict[str, float]
    undetermined: float = 0.0


@dataclass(frozen=True, eq=False)
class Solver:
    """A linear problem, assembled and factored; `factor` makes it.

    Attributes:
        points: the collocation points (n, d) of the equation and of every condition, by name; arrays of data belong to
            them. `normals` has the outward normals of the conditions on parts of the boundary.
        stats: rows, features, rank, condition and seconds per phase.
        verdict: whether the problem determines its solutions.
    """

    discretisation: Discretisation
    system: System
    factorization: Factorization
    stats: FactorStats
    verdict: Verdict

    @property
    def problem(self) -> Problem:
        """What is solved."""
        return self.discretisation.problem

    @property
    def features(self) -> Features:
        """The space that it is solved in."""
        return self.discretisation.features

    @cached_property
    def _own(self) -> dict[str, Block]:
        """The blocks that have data of the user's: not those that the features add."""
        names = {term.name for term in self.problem.terms}
        return {block.term.name: block for block in self.discretisation.blocks if block.term.name in names}

    @property
    def points(self) -> dict[str, Points]:
        return {name: block.points for name, block in self._own.items()}

    @property
    def normals(self) -> dict[str, Points]:
        return {name: block.normals for name, block in self._own.items() if block.normals.any()}

    @cached_property
    def _held_out(self) -> tuple[list[Block], System]:
        """The system at points that are not fitted."""
        blocks = self.discretisation.other_points(self.stats.features // 2)
        return blocks, self.discretisation.system(self.discretisation.zero(), blocks, fold=False)

    def _residuals(
        self, b: Sides, c: Float[np.ndarray, "cols sides"], projected: Float[np.ndarray, "rank sides"]
    ) -> Float[np.ndarray, " sides"]:
        """Relative residuals: the part of each column outside of the range of the matrix, by Pythagoras; below
        `CANCELLED`, where that is rounding, from some of the rows."""
        watched, rows = self._watched
        missed = b[watched]
        missed -= rows @ c
        size, inside, small = (np.einsum("ij,ij->j", each, each) for each in (b, projected, missed))
        small *= len(b) / len(watched)
        square = np.where(size - inside > CANCELLED**2 * size, size - inside, small)
        return np.sqrt(np.divide(square, size, out=np.where(square == 0, 0.0, np.inf), where=size > 0))

    @cached_property
    def _watched(self) -> tuple[Int[np.ndarray, " w"], Matrix]:
        """Some rows of the system, and their numbers."""
        watched = spread(self.stats.rows, WATCHED)
        return watched, np.ascontiguousarray(self.system.A[watched])

    def solve(self, sources: Any = None, boundary: Any = None) -> Solutions:
        """The solutions for k right-hand sides.

        Args:
            sources: k functions (or numbers) in a list, each like the `source` of a Problem; or an array of their
                values at ``points["equation"]``, of shape (n, k), with e equations (n, e, k); or one number, the same
                for all. None is the problem's own source for all.
            boundary: a dictionary from names of conditions to the same forms, with arrays at ``points[name]``; the data
                replace the right side of that condition (for a `Condition`, residual(u, x) = data). Conditions that it
                leaves out keep their own. With a single condition the dictionary may be left out.

        Arrays are much faster than functions. Warns if there are right-hand sides that the features cannot represent.
        """
        given = {"equation": sources, **self._named(boundary)}
        data = {
            name: self._read(self._own[name], value)
            for name, value in given.items()
            if value is not None and not _is_number(value)
        }
        numbers = {name: float(value) for name, value in given.items() if _is_number(value)}
        for name, value in numbers.items():
            if not np.isfinite(value):
                raise ProblemError(f"The {data_name(self._own[name].term)} is {value}; expected a finite number.")
        counts = {name: one.count for name, one in data.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{count} for {name!r}" for name, count in counts.items())
            raise ProblemError(
                f"The numbers of right-hand sides differ: {found}; expected the same for all. "
                "Leave out, or give as one number, what does not change."
            )
        k = max(counts.values(), default=1)
        held_out = not any(isinstance(one, _Tabulated) for one in data.values())
        size = self.stats.features * self.stats.components
        coefficients, residuals = np.empty((size, k)), np.empty(k)
        for which in _blocks(k, self.stats.rows):
            b = self._right_sides(self.discretisation.blocks, self.system, data, numbers, which)
            if k < size:
                c, projected = self.factorization.solve(b), None
            else:
                projected = self.factorization.explicit.project(b)
                c = self.factorization.explicit.complete(projected)
            coefficients[:, which] = c
            if held_out:
                others, unseen = self._held_out
                b = self._right_sides(others, unseen, data, numbers, which)
                residuals[which] = _relative(b, unseen.A @ c)
            elif projected is None:
                residuals[which] = _relative(b, self.system.A @ c)
            else:
                residuals[which] = self._residuals(b, c, projected)
        shaped = coefficients.reshape(self.stats.features, self.stats.components, k)
        if not self.discretisation.is_affine:
            largest = shaped[:, :, np.argmax(np.linalg.norm(coefficients, axis=0))]
            _check_linear(self.discretisation, largest)
        converged = is_accurate(residuals) & self.verdict.converged
        many = Solutions(self.problem, self.features, shaped, residuals, held_out, converged)
        if self.verdict.converged:  # else `factor` has said so
            _warn(many, remedy_for(self.verdict.evidence))
        return many

    def __repr__(self) -> str:
        stats = self.stats
        seconds = ", ".join(f"{phase} {s:.2f}" for phase, s in stats.seconds.items())
        return (
            f"Solver of {self.problem.name!r}: {stats.features} features, {stats.rows} rows, rank {stats.rank}\n"
            f"  seconds: {seconds}"
        )

    def _named(self, boundary: Any) -> dict[str, Any]:
        conditions = [name for name in self._own if name != "equation"]
        if boundary is None:
            return {}
        if not isinstance(boundary, Mapping):
            if len(conditions) != 1:
                raise ProblemError(
                    f"boundary is {_described(boundary)}; expected a dictionary from names to data, as "
                    f"{self.problem.name!r} has {len(conditions)} conditions: {conditions}."
                )
            return {conditions[0]: boundary}
        for name in boundary:
            if name not in conditions:
                if any(name == term.name for term in self.problem.terms[1:]):
                    raise ProblemError(
                        f"The features impose {name!r} by construction: its data cannot change. Use the inner features."
                    )
                raise unknown_name(f"condition of {self.problem.name!r}", name, conditions)
        return dict(boundary)

    def _read(self, block: Block, value: Any) -> "_Listed | _Tabulated":
        """The data of a term, checked."""
        rows, what = entries(self.problem.layout, block), data_name(block.term)
        n = len(block.points)
        shape = f"(n, k) = ({n}, k)" if rows == 1 else f"(n, e, k) = ({n}, {rows}, k)"
        if isinstance(value, list | tuple):
            if not value:
                raise ProblemError(f"The list for the {what} is empty; expected at least one function.")
            terms = [replace(block.term, rhs=one) for one in value]
            for j, term in enumerate(terms):
                if term.rhs is None:
                    raise ProblemError(f"The {_numbered(block, j)} is None; expected a function or a number.")
                if np.shape(term.rhs)[:1] == (n,) != (rows,):
                    raise ProblemError(
                        f"The {_numbered(block, j)} in the list is an array, one entry for each of the {n} points; "
                        f"expected a function or a number. Give one array {shape}: numpy.stack(values, axis=-1)."
                    )
                self.problem.check_data(term, rows, _numbered(block, j))
            return _Listed(self.problem, terms, rows)
        if not isinstance(value, np.ndarray | Array):
            raise ProblemError(
                f"The data for the {what} are {_described(value)}; expected a list of functions [f, g, …], an array of "
                f"shape {shape} or one number."
            )
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise ProblemError(f"The array for the {what} has the type {array.dtype}; expected real numbers.")
        if array.ndim == 2 and rows == 1:
            array = array[:, None]
        if array.ndim != 3 or len(array) != n or array.shape[1] not in (1, rows) or array.shape[2] == 0:
            raise ProblemError(
                f"The array for the {what} has shape {value.shape}; expected {shape}: a value for each of the points "
                f"solver.points[{block.term.name!r}] and each right-hand side."
            )
        return _Tabulated(array, rows)

    def _right_sides(
        self,
        blocks: Sequence[Block],
        system: System,
        data: Mapping[str, "_Listed | _Tabulated"],
        numbers: Mapping[str, float],
        which: slice,
    ) -> Sides:
        """The scaled right-hand sides of those numbers: all terms stacked, as in the system."""
        b = np.empty((len(system.scales), which.stop - which.start))
        for block in blocks:
            name = block.term.name
            at = system.rows[name]
            if name in data:
                data[name].fill(b[at], block, which)
            else:
                b[at] = numbers.get(name, system.right[at, None])
            if system.left[at].any():
                b[at] -= system.left[at, None]
        b *= system.scales[:, None]
        if not np.isfinite(np.sum(b)):
            for name in data.keys() & system.rows.keys():
                data[name].check(self._own[name], which)
        return b


@dataclass(frozen=True, eq=False)
class _Listed:
    """Functions, one per right-hand side."""

    problem: Problem
    terms: Sequence[Any]
    rows: int

    @property
    def count(self) -> int:
        return len(self.terms)

    def fill(self, out: Sides, block: Block, which: slice) -> None:
        for column, j in enumerate(range(which.start, which.stop)):
            here = replace(block, right_side=self.problem.right_side(self.terms[j]))
            values = right_values(self.problem.layout, here, self.rows, what=_numbered(block, j), compiled=False)
            out[:, column] = values.reshape(-1)

    def check(self, block: Block, which: slice) -> None:
        """Nothing: functions are checked where they are evaluated."""


@dataclass(frozen=True, eq=False)
class _Tabulated:
    """Values at the fitted points, (n, e or 1, k)."""

    values: np.ndarray
    rows: int

    @property
    def count(self) -> int:
        return self.values.shape[2]

    def fill(self, out: Sides, block: Block, which: slice) -> None:
        out.reshape(len(self.values), self.rows, -1)[...] = self.values[:, :, which]

    def check(self, block: Block, which: slice) -> None:
        for j in range(which.start, which.stop):
            check_finite(
                self.values[:, :, j].astype(np.float64), _numbered(block, j), block.points, "Check the array there."
            )


def factor(
    problem: Problem,
    features: Features | int | None = None,
    *,
    points: int | None = None,
    boundary_points: int | None = None,
    sampling: str = "sobol",
    lstsq: LeastSquares | None = None,
    key: Key = 0,
) -> Solver:
    """Assemble and factor a linear problem once; ``factor(problem, features).solve(sources)`` then solves it for many
    sources.

    The features need not be made for this domain: a box that contains it is enough, so that features trained on a
    square serve every domain inside. The arguments are those of `solve`; `lstsq` is `QR()` or `SVD()`.
    """
    clock = Clock()
    with clock("points"):
        # Features and points of the same key are those of solve().
        discretisation = discretise("factor", problem, features, points, boundary_points, sampling, key)
    with clock("assemble"):
        system = discretisation.system(discretisation.zero(), check=True, fold=False)
        _check_linear(discretisation)
    with clock("factor"):
        factorization = (DIRECT if lstsq is None else lstsq).factor(system.A)
    stats = FactorStats(
        rows=len(system.scales),
        features=discretisation.features.size,
        components=problem.layout.components,
        rank=factorization.rank,
        condition=factorization.condition,
        seconds=clock.seconds,
        undetermined=undetermined(discretisation.features, factorization, discretisation.blocks[0].points),
    )
    verdict = judge(gathered(discretisation, stats.undetermined))
    if not verdict.converged:
        message = f"The factored problem {problem.name!r} has no definite solutions: {verdict.reason}."
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return Solver(discretisation, system, factorization, stats, verdict)


def _check_linear(discretisation: Discretisation, step: Coefficients | None = None) -> None:
    nonlinear = discretisation.nonlinear_terms(step)
    if nonlinear:
        raise NonlinearError(
            f"factor() needs a linear problem, but {' and '.join(map(repr, nonlinear))} of "
            f"{discretisation.problem.name!r} is not linear in the unknown, so that the matrix changes with the "
            "solution. Use solve() for each right-hand side."
        )


def _warn(many: Solutions, remedy: str) -> None:
    failed = np.count_nonzero(~many.converged)
    if failed == 0:
        return
    worst = int(np.argmax(np.where(np.isnan(many.residuals), np.inf, many.residuals)))
    where = "points that were not fitted" if many.held_out else "the fitted points"
    warnings.warn(
        f"{failed} of {len(many)} right-hand sides of {many.problem.name!r} have not converged: their relative "
        f"residual at {where} is above {ACCEPTABLE:g}, up to {many.residuals[worst]:.1e} for number {worst}. The "
        f"features cannot represent these solutions: {remedy}, or fine-tune the features with pretrain() on such a "
        "problem.",
        ConvergenceWarning,
        stacklevel=3,
    )


def _relative(b: Sides, fitted: Sides) -> Float[np.ndarray, " sides"]:
    """‖b - fitted‖ / ‖b‖ of each column; 0 where both vanish. Overwrites `fitted`."""
    size = np.sqrt(np.einsum("ij,ij->j", b, b))
    np.subtract(b, fitted, out=fitted)
    left = np.sqrt(np.einsum("ij,ij->j", fitted, fitted))
    return np.divide(left, size, out=np.where(left == 0, 0.0, np.inf), where=size > 0)


def _blocks(k: int, rows: int) -> Iterator[slice]:
    """Slices of nearly equal size that cut k right-hand sides into blocks."""
    count = -(-k // max(LEAST_BLOCK, BLOCK_BYTES // (8 * rows)))
    cuts = [i * k // count for i in range(count + 1)]
    return (slice(start, stop) for start, stop in pairwise(cuts))


def _numbered(block: Block, j: int) -> str:
    return f"source {j}" if block.term.on is None else f"value {j} of condition {block.term.name!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _described(value: Any) -> str:
    if callable(value):
        return "a function"
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray | Array) else type(value).__name__
