"""factor(): assemble and factor a linear problem once, then solve it for thousands of right-hand sides.

The matrix of a linear problem depends on the operator, the features and the points, not on the data. With A = QR in
hand a new source costs two products with the size of A: one to project it, one to see what is left of it.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Coefficients, Key, Matrix, Points
from pdofm.arguments import explained
from pdofm.discrete.boxed import BoxDiscretisation, BoxFactorization, BoxSystem, cover_of, random_polynomial
from pdofm.discrete.boxed import undetermined as undetermined_in_boxes
from pdofm.discrete.checks import check_fit, check_problem
from pdofm.discrete.collocate import Block
from pdofm.discrete.discretisation import Discretisation, discretise
from pdofm.discrete.local import LocalProblem
from pdofm.discrete.parts import eliminated
from pdofm.discrete.system import System
from pdofm.errors import ConvergenceWarning, FeaturesError, NonlinearError, SolveError
from pdofm.features import Features, InBoxes
from pdofm.numerics.executor import executor_of
from pdofm.numerics.lstsq import Factorization, LeastSquares
from pdofm.numerics.sampling import generator, spread
from pdofm.problem.problem import Problem
from pdofm.solving.boxes import nonlinear_names
from pdofm.solving.clock import Clock
from pdofm.solving.conclude import gathered
from pdofm.solving.estimate import undetermined
from pdofm.solving.given import check_given_in_boxes, executor_for
from pdofm.solving.methods import Linear
from pdofm.solving.sides import RightHandSides, Sides, own_blocks
from pdofm.solving.solution import Solutions
from pdofm.solving.verdict import ACCEPTABLE, Evidence, Verdict, is_accurate, judge, remedy_for

BLOCK_BYTES = 2**22
"""Bytes of the right-hand sides that are solved at once: they stay in the cache."""

LEAST_BLOCK = 64
"""The smallest number of right-hand sides that are solved at once: fewer would waste matrix products."""

CANCELLED = 1e-6
"""Relative residual below which the difference of two squares has lost its digits."""

WATCHED = 32
"""Rows sampled to estimate residuals below `CANCELLED`: enough for some tens of percent."""


@dataclass(frozen=True)
class FactorStats:
    """What was factored: see `pdofm.solving.stats.Stats` for the meaning of the numbers."""

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

    discretisation: Discretisation | BoxDiscretisation
    system: Any  # a System, or a BoxSystem, whose matrix only multiplies
    factorization: Factorization | BoxFactorization
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
        return own_blocks(self.problem, self.discretisation.blocks)

    @property
    def points(self) -> dict[str, Points]:
        return {name: block.points for name, block in self._own.items()}

    @property
    def normals(self) -> dict[str, Points]:
        return {name: block.normals for name, block in self._own.items() if block.normals.any()}

    @cached_property
    def _others(self) -> tuple[list[Block], System | BoxSystem]:
        """The system at points that are not fitted."""
        return self.discretisation.held_out_system(self.stats.features // 2)

    @property
    def _remedy(self) -> str:
        """What to do about right-hand sides that the features cannot represent."""
        if isinstance(self.discretisation, BoxDiscretisation):
            return self.discretisation.remedy
        more = remedy_for(self.verdict.evidence)
        return f"{more}, or fine-tune the features with pretrain() on such a problem"

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
                for all. None is the problem's own source for all. With several regions also a dictionary of these
                forms by region.
            boundary: a dictionary from names of conditions to the same forms, with arrays at ``points[name]``; the data
                replace the right side of that condition (for a `Condition`, residual(u, x) = data). Conditions that it
                leaves out keep their own. With a single condition the dictionary may be left out.

        Arrays are much faster than functions. Warns if there are right-hand sides that the features cannot represent.
        """
        coefficients, residuals, is_held_out = self._answers(sources, boundary)
        shaped = coefficients.reshape(self.stats.features, self.stats.components, -1)
        if isinstance(self.discretisation, Discretisation) and not self.discretisation.is_affine:
            largest = shaped[:, :, np.argmax(np.linalg.norm(coefficients, axis=0))]
            check_linear(self.discretisation, largest)
        converged = is_accurate(residuals) & self.verdict.converged
        many = Solutions(self.problem, self.features, shaped, residuals, is_held_out, converged)
        if self.verdict.converged:  # else `factor` has said so
            _warn(many, self._remedy)
        return many

    def _answers(
        self, sources: Any, boundary: Any
    ) -> tuple[Float[np.ndarray, "size sides"], Float[np.ndarray, " sides"], bool]:
        """The coefficients for right-hand sides, their relative residuals, and whether these are held out."""
        data = RightHandSides(self.problem, self._own, sources, boundary)
        k, is_held_out = data.count, not data.is_tabulated
        size = self.stats.features * self.stats.components
        coefficients, residuals = np.empty((size, k)), np.empty(k)
        for which in _blocks(k, self.stats.rows):
            b = data.scaled(self.discretisation.blocks, self.system, which)
            if isinstance(self.factorization, Factorization) and k >= size:
                projected = self.factorization.explicit.project(b)
                c = self.factorization.explicit.complete(projected)
            else:
                c, projected = self.factorization.solve(b), None
            coefficients[:, which] = c
            if is_held_out:
                blocks, held_out = self._others
                b = data.scaled(blocks, held_out, which)
                residuals[which] = _relative(b, held_out.A @ c)
            elif projected is None:
                residuals[which] = _relative(b, self.system.A @ c)
            else:
                residuals[which] = self._residuals(b, c, projected)
        return coefficients, residuals, is_held_out

    def __repr__(self) -> str:
        stats = self.stats
        seconds = ", ".join(f"{phase} {s:.2f}" for phase, s in stats.seconds.items())
        return (
            f"Solver of {self.problem.name!r}: {stats.features} features, {stats.rows} rows, rank {stats.rank}\n"
            f"  seconds: {seconds}"
        )


@explained
def factor(
    problem: Problem,
    features: Any = None,
    *,
    points: int | None = None,
    boundary_points: int | None = None,
    sampling: str = "sobol",
    method: Linear | None = None,
    key: Key = 0,
    lstsq: LeastSquares | None = None,
    cluster: Any = None,
) -> Solver:
    """Assemble and factor a linear problem once; ``factor(problem, features).solve(sources)`` then solves it for many
    sources.

    The features need not be made for this domain: a box that contains it is enough, so that features trained on a
    square serve every domain inside. The arguments are those of `solve`; `method` is `Linear` with a least-squares
    solver, as in ``Linear(lstsq=SVD())``. With a `dask.distributed.Client` as `cluster` its workers make the rows, and
    keep what new right-hand sides need.
    """
    if lstsq is not None and method is not None:
        raise SolveError("factor() got both method= and lstsq=, its old form. Give method=Linear(lstsq=…) only.")
    if lstsq is not None:
        message = "lstsq= of factor() is now method=Linear(lstsq=…); the old name goes in the next version."
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        method = Linear(lstsq)
    if method is not None and not isinstance(method, Linear):
        raise SolveError(f"factor() takes method=Linear(lstsq=…), as a factored problem is linear; got {method!r}.")
    if isinstance(features, InBoxes):
        check_given_in_boxes("factor", points, boundary_points, sampling, method)
        solver = _factor_in_boxes(problem, features, key, cluster)
        _warn_of_freedom(problem, solver.verdict)
        return solver
    if cluster is not None:
        from pdofm.solving.shared import solver_of

        stated = (problem, features, points, boundary_points, sampling, key)
        solver = solver_of(stated, Linear() if method is None else method, executor_of(cluster))
        _warn_of_freedom(problem, solver.verdict)
        return solver
    clock = Clock()
    with clock("points"):
        # Features and points of the same key are those of solve().
        discretisation = discretise("factor", problem, features, points, boundary_points, sampling, key)
    with clock("assemble"):
        system = discretisation.system(discretisation.zero(), check=True, fold=False)
        check_linear(discretisation)
    with clock("factor"):
        factorization = (Linear() if method is None else method).lstsq.factor(system.A)
    free = undetermined(discretisation.features, factorization, discretisation.interior)
    stats = stats_of(discretisation, system, factorization, clock, free)
    verdict = judge(gathered(discretisation, free))
    _warn_of_freedom(problem, verdict)
    return Solver(discretisation, system, factorization, stats, verdict)


def _factor_in_boxes(problem: Problem, features: InBoxes, key: Key, cluster: Any) -> Solver:
    """The same by block QR, box by box; on a cluster the boxes are eliminated, and kept, by its workers."""
    clock = Clock()
    with clock("points"):
        check_problem("factor", problem)
        check_fit(problem, features)
        if problem.regions is not None:
            raise FeaturesError("factor() cannot use boxes of several regions. Give features for each of them.")
        if nonlinear := nonlinear_names(problem):
            raise _nonlinear(problem, nonlinear)
        executor = executor_for(problem, cluster)
        local = LocalProblem(problem, cover_of(problem.domain, features))
    with clock("assemble"):
        terms = [local.linearised(*each, None) for each in local.places()]
        discretisation = BoxDiscretisation(problem, local, terms, int(generator(key).integers(2**31)))
        system = discretisation.fitted()
    with clock("factor"):
        probe = random_polynomial(problem, local.cover)
        qr = eliminated(executor, local, terms, None, probe, keep=True)
        factorization = BoxFactorization(local, terms, system, qr)
    free = undetermined_in_boxes(local, qr, probe, terms[0].placed)
    stats = stats_of(discretisation, system, factorization, clock, free)
    return Solver(
        discretisation, system, factorization, stats, judge(Evidence(undetermined=free, features=stats.features))
    )


def stats_of(
    discretisation: Discretisation | BoxDiscretisation,
    system: System | BoxSystem,
    factorization: Factorization | BoxFactorization,
    clock: Clock,
    free: float,
) -> FactorStats:
    """What was factored, in numbers."""
    return FactorStats(
        rows=len(system.scales),
        features=discretisation.features.size,
        components=discretisation.problem.layout.components,
        rank=factorization.rank,
        condition=factorization.condition,
        seconds=clock.seconds,
        undetermined=free,
    )


def _warn_of_freedom(problem: Problem, verdict: Verdict) -> None:
    if not verdict.converged:
        message = f"{problem.name!r} does not determine its solutions: {verdict.reason}."
        warnings.warn(message, ConvergenceWarning, stacklevel=4)


def check_linear(discretisation: Discretisation, step: Coefficients | None = None) -> None:
    """Refuse a problem that is not linear in the unknown."""
    nonlinear = discretisation.nonlinear_terms(step)
    if nonlinear:
        raise _nonlinear(discretisation.problem, nonlinear)


def _nonlinear(problem: Problem, names: Sequence[str]) -> NonlinearError:
    return NonlinearError(
        f"factor() needs a linear problem, but {' and '.join(map(repr, names))} of {problem.name!r} is not linear in "
        "the unknown, so that the matrix changes with the solution. Use solve() for each right-hand side."
    )


def _warn(many: Solutions, remedy: str) -> None:
    failed = np.count_nonzero(~many.converged)
    if failed == 0:
        return
    worst = int(np.argmax(np.where(np.isnan(many.residuals), np.inf, many.residuals)))
    where = "points that were not fitted" if many.is_held_out else "the fitted points"
    warnings.warn(
        f"{failed} of {len(many)} right-hand sides of {many.problem.name!r} have not converged: their relative "
        f"residual at {where} is above {ACCEPTABLE:g}, up to {many.residuals[worst]:.1e} for number {worst}. The "
        f"features cannot represent these solutions: {remedy}.",
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
