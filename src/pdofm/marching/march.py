"""march(): an evolution to a tolerance, by runs with finer and finer slabs until two of them agree."""

import math
import sys
import time
import warnings
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from pdofm.arguments import explained
from pdofm.discrete.checks import check_problem
from pdofm.errors import ConvergenceWarning, SolveError
from pdofm.features import Features
from pdofm.marching.choice import Candidates, can_hold, spaces, stages_for
from pdofm.marching.evolution import Evolution, coefficients_of, described, slabs_of, values_of
from pdofm.marching.growth import spectral_radius
from pdofm.marching.progress import Progress
from pdofm.marching.radau import radau
from pdofm.marching.record import Record
from pdofm.marching.run import Late, Run, Stuck, TooFine, first_run
from pdofm.marching.statement import Statement
from pdofm.marching.termat import Unsuitable
from pdofm.marching.whole import Whole
from pdofm.numerics.distance import relative_sizes
from pdofm.problem.problem import Problem
from pdofm.solving.stats import Stats
from pdofm.solving.verdict import Evidence, Status, Verdict, judge

FIRST_RUN = 50.0
"""Tolerance of a slab in the first run, in units of the tolerance for the solution. Errors are usually a
tenth of the former or less, so that this run is nearly accurate enough, and cheaper than the one that is returned."""

FINER = 20.0
"""The tolerance of a slab is lowered by this factor from run to run, or by more if the errors ask for it."""

FINEST = 2e-14
"""The smallest tolerance of a slab: a few units of the last digit, added up over the stages."""

MOST_RUNS = 5
"""Runs before march gives up."""

ROUNDED = 1e-13
"""A relative difference of two runs below this consists of rounding errors, for an equation of second order in space;
each further order, which multiplies rounding errors by the square of the degree, makes it ten times larger."""

GROWN = 10.0
"""Errors grow in an evolution whose runs differ by more than this, in units of what the slabs of the coarser run left
out. Without growth the factor is about 1, or less."""

HELD = 1e-100
"""Where errors grow, or a run breaks down, the next run holds small values relative to their own size, down to this
fraction of the whole: ahead of a front that travels into an unstable state, errors grow as fast as the solution itself,
so that they stay small relative to it if they begin so."""

COMPARED = 20_000
"""Points, about, at which two runs are compared."""

EARLY = (Status.INTERRUPTED, Status.OUT_OF_STEPS)
"""How a run ends that would have gone on: by the user, or when the time is up."""

FIRST_SHARE = 0.85
"""The part of given features that the first run uses, so that its difference to the second tells what the features do
not represent."""


@explained
def march(
    problem: Problem,
    features: Features | None = None,
    *,
    tol: float = 1e-8,
    checkpoint: str | PathLike | None = None,
    progress: bool = True,
    max_seconds: float = math.inf,
) -> Evolution:
    """Solve a space-time problem slab after slab in time.

    In every slab the solution is a polynomial in time, collocated at Radau's points, and in space a trigonometric
    polynomial (periodic boxes), a polynomial in each of many intervals, or boxes in more than one dimension, that are
    halved and joined as the solution moves, or a polynomial on the whole of a domain that does not consist of boxes.
    The length of a slab follows from the size of the last time coefficient.
    The whole evolution is computed again with a smaller tolerance for each slab, until the difference of two runs shows
    that the error of the last is below `tol`: that includes what errors of early slabs have grown to in later ones.

    Args:
        problem: on a `SpaceTime`; of any order in time, linear or not, one equation or a system.
        features: of space, without time, to be used instead; of any family, trained ones included. They are made
            orthonormal. The error is estimated by a second run with `FIRST_SHARE` of them.
        tol: the relative L2 error over space and time that is required.
        checkpoint: a file in which every slab is recorded. A march that was killed goes on from there, to the same
            bits. Slabs then stay on disk, so that memory does not grow with their number: the coefficients of the
            solution are mapped from a file beside it, which must be kept as long as the solution is used.
        progress: show a progress bar if standard error is a terminal.
        max_seconds: the time after which the march ends, with the best that it has.

    Returns:
        The solution, with its slabs. Where it ended early (`u.reason` says why), later values are NaN, or it is the
        last complete run if there is one.
    """
    if not (isinstance(tol, int | float | np.number) and 0 < tol < 1):
        raise SolveError(f"tol is a relative error and must be a number between 0 and 1; got {tol!r}.")
    if features is not None:
        check_given(problem, features)
    solution = marched(problem, float(tol), features, checkpoint=checkpoint, progress=progress, max_seconds=max_seconds)
    if not solution.converged:
        warnings.warn(
            f"The solution of {problem.name!r} has not converged: {solution.reason}.", ConvergenceWarning, stacklevel=3
        )
    return solution


def can_march(problem: Problem) -> bool:
    """Whether `march` knows a space for the problem, and a role for each of its conditions."""
    try:
        for make, _ in spaces(Statement(problem), 1e-6):
            make()
    except SolveError:
        return False
    return True


def check_given(problem: Problem, features: object) -> None:
    """Refuse features that are not functions of space."""
    if not isinstance(features, Features):
        raise SolveError(f"features must be features of space, such as Chebyshev(space, 200); got {features!r}.")
    if features.dim != problem.domain.dim - 1:
        raise SolveError(
            f"march needs features of space, with {problem.domain.dim - 1} coordinates; got {features!r} with "
            f"{features.dim}. Make them on the space of the SpaceTime."
        )


def marched(
    problem: Problem,
    tol: float,
    features: Features | None = None,
    *,
    checkpoint: str | PathLike | None = None,
    progress: bool = False,
    max_seconds: float = math.inf,
) -> Evolution:
    """`march` without warnings."""
    check_problem("march", problem)
    statement = Statement(problem)
    record = Record(None if checkpoint is None else Path(checkpoint), statement, tol, features)
    return _March(statement, tol, features, record, Progress(progress), time.perf_counter() + max_seconds).result()


@dataclass(eq=False)
class _March:
    """The runs of one march."""

    statement: Statement
    tol: float
    features: Features | None
    record: Record
    progress: Progress
    deadline: float

    def result(self) -> Evolution:
        """Runs until two agree."""
        start, before, found, difference = time.perf_counter(), None, None, math.nan
        slab_tol, ended, floor = max(FIRST_RUN * self.tol, FINEST), None, 1.0
        for number in range(MOST_RUNS if self.features is None else 2):
            run, ended = self._run(slab_tol, number, floor)
            if ended is not None and found is not None and ended.status in EARLY:
                estimate, difference = before_the_end(before, found, difference, run)
                ended = replace(ended, message=f"{ended.message}; this is the complete run before it")
                return self._answer(found, estimate, difference, ended, start)
            if run is None or not run.pieces:
                if ended is not None and ended.status is Status.INTERRUPTED:
                    raise KeyboardInterrupt
                raise SolveError("The first slab takes longer than max_seconds. Give more, or a larger tol.")
            if ended is not None and ended.status is Status.DIVERGED and floor > HELD and can_hold(self.statement):
                floor = HELD
                continue
            before, found = found, run
            if ended is not None:
                break
            if before is not None:
                difference = distance(before, found)
            estimate = estimated(before, found, difference)
            if before is not None and (estimate <= self.tol or slab_tol <= FINEST):
                break
            if before is not None and (found.is_limited or time.perf_counter() > self.deadline):
                break
            if before is not None and floor > HELD and grows(before, difference) and can_hold(self.statement):
                floor, slab_tol = HELD, slab_tol / FINER
            else:
                slab_tol *= 1 / FINER if before is None else min(1 / FINER, 0.3 * self.tol / estimate)
            slab_tol = max(slab_tol, FINEST)
        assert found is not None
        return self._answer(found, estimated(before, found, difference), difference, ended, start)

    def _spaces(self, slab_tol: float, number: int, floor: float) -> Candidates:
        given = self.features
        if given is None:
            return spaces(self.statement, slab_tol, floor, number)
        share = FIRST_SHARE if number == 0 else 1.0
        return [(lambda: Whole(self.statement, given, share), sys.maxsize)]

    def _run(self, slab_tol: float, number: int, floor: float) -> tuple[Run | None, Verdict | None]:
        """One run, and a verdict if it ended early."""
        run, where = None, "" if number == 0 else f" in run {number + 1},"
        try:
            candidates = list(enumerate(self._spaces(slab_tol, number, floor)))
            for attempt, (make, most) in candidates[self.record.attempt(number) :]:
                try:
                    run = first_run(make, radau(stages_for(self.statement, slab_tol)), slab_tol, most)
                    self.record.restore(number, attempt, run)
                    with self.progress.run(number, self.statement.domain) as show:
                        while not run.is_finished:
                            run.advance(self.deadline)
                            self.record.add(number, attempt, run)
                            show(run.time)
                    return run, None
                except (TooFine, Unsuitable):
                    continue
        except KeyboardInterrupt:
            time_reached = self.statement.domain.t0 if run is None else run.time
            return run, Verdict(Status.INTERRUPTED, f"interrupted{where} at t = {time_reached:.6g}")
        except Late:
            assert run is not None
            message = f"the time was up{where} at t = {run.time:.6g}"
            return run, Verdict(Status.OUT_OF_STEPS, message, "give more max_seconds, or a larger tol")
        except Stuck:
            if run is None or not run.pieces:
                raise SolveError(
                    "No slab converges at the start, however short. Check the signs in the equation and the "
                    "conditions, and whether conditions contradict each other where they meet, or give more features."
                ) from None
            return run, Verdict(
                Status.DIVERGED,
                f"the solution cannot be continued beyond t = {run.time:.9g}: slabs there do not converge, however "
                "short they are, as where a solution blows up",
                "end before that time, or check the signs in the equation and the conditions",
            )
        if run is None or not run.pieces:
            raise SolveError("The initial values have details that are too fine to resolve. Check them for jumps.")
        message = f"the space that the solution needs at t = {run.time:.6g} is too large"
        return run, Verdict(Status.UNRESOLVED, message, "ask for a larger tol")

    def _answer(self, run: Run, estimate: float, difference: float, ended: Verdict | None, start: float) -> Evolution:
        problem, features = self.statement.problem, slabs_of(run)
        done = Verdict(Status.CONVERGED, f"{len(run.pieces)} slabs reach the end")
        # In intervals, boxes and waves the conditions are part of the space, so that nothing grows by itself.
        radius = spectral_radius(run) if isinstance(run.space, Whole) and ended is None else math.nan
        if math.isfinite(radius):
            done = Verdict(Status.CONVERGED, f"{done.message}; the spectral radius of the last one is {radius:.6g}")
        evidence = Evidence(tol=self.tol, iteration=ended or done, estimate=estimate, disagreement=difference)
        kinds = dict.fromkeys(piece.space.kind for piece in run.pieces)
        stats = Stats(
            rows=sum(piece.space.size for piece in run.pieces) * run.scheme.stages,
            features=features.size,
            components=problem.layout.components,
            rank=features.size * problem.layout.components,
            condition=math.nan,
            residuals={},
            held_out_residual=math.nan,
            seconds={"march": time.perf_counter() - start},
            steps=[],
        )
        return Evolution(
            problem,
            features,
            coefficients_of(run, self.record.beside),
            estimate,
            judge(evidence, "ask for a larger tol, or end earlier" if ended is None else None),
            stats,
            space=f"slabs of {', '.join(kinds)}",
            slabs=described(run),
            spectral_radius=radius,
        )


def distance(coarse: Run, fine: Run) -> float:
    """The relative L2 distance of two runs over space-time, the largest over the components.

    They are compared at points of quadrature in the slabs of the finer one, which lie densely where the solution
    varies most.
    """
    count = sum(piece.space.size for piece in fine.pieces)
    every, times = max(1, count // (COMPARED // 2)), int(np.clip(COMPARED // count, 2, fine.scheme.stages))
    points, weights = [], []
    generator = np.random.default_rng(0)
    for piece in fine.pieces[::every] if every < len(fine.pieces) else fine.pieces[:: len(fine.pieces)]:
        x, share = piece.space.quadrature()
        begin, end = fine.ends_of(piece)
        for t in generator.uniform(begin, end, times):
            points.append(np.column_stack([x, np.full(len(x), t)]))
            weights.append(share * (end - begin))
    z, w = np.concatenate(points), np.sqrt(np.concatenate(weights))[:, None]
    values = [values_of(run, z) * w for run in (coarse, fine)]
    return float(np.max(relative_sizes(values[0] - values[1], values[1], vanishing=0.0)))


def left_out_by(run: Run) -> float:
    """What the slabs of a run have left out, together."""
    return math.sqrt(sum(piece.tail**2 for piece in run.pieces))


def before_the_end(before: Run | None, found: Run, difference: float, unfinished: Run | None) -> tuple[float, float]:
    """The estimated error of a complete run, if the next one ended early, and the difference that it follows from.

    With another complete run before, it is that of these two. Otherwise the unfinished run must have passed half of the
    time; errors are taken to grow in proportion to the time from there. Nothing is known about those of a run with
    less.
    """
    if before is not None:
        return estimated(before, found, difference), difference
    if unfinished is None or unfinished.fraction <= 0.5:
        return math.inf, math.inf
    difference = distance(found, unfinished)
    return difference / unfinished.fraction, difference


def grows(coarse: Run, difference: float) -> bool:
    """Whether errors grow, as the difference of a run to a finer one tells."""
    return difference > GROWN * left_out_by(coarse)


def estimated(coarse: Run | None, fine: Run, difference: float) -> float:
    """The error of the finer of two runs.

    Their difference is the error of the coarser one, as large as it has become at all later times. What the finer one
    has less of it follows from the tails that its slabs have left out. Tails may fall faster than errors: if they fall
    faster than the tolerance, and what is left out is larger, the estimate is the geometric mean of both. Rounding,
    which the finer run does not have less of, is what is left of differences below `ROUNDED`, and at least a unit of
    the last digit per slab. Where errors grow, some parts of them do so much more than others, and tails do not tell
    which the finer run has less of: the estimate is then the whole difference.
    """
    if coarse is None:
        return math.inf
    left_out, share = left_out_by(fine), fine.tol / coarse.tol
    smaller = difference
    if not grows(coarse, difference):
        before = left_out_by(coarse)
        by_tails = difference * (min(1.0, left_out / before) if before > 0 else 1.0)
        smaller = max(by_tails, math.sqrt(by_tails * min(difference * share, left_out)))
    if isinstance(fine.space, Whole) and fine.space.is_fixed:
        return max(difference, len(fine.pieces) * np.finfo(float).eps)
    statement = fine.space.statement
    order = max(max(statement.orders(axis)) for axis in range(statement.domain.space.dim))
    rounded = ROUNDED * 10.0 ** max(order - 2, 0)
    return max(smaller, min(difference, rounded), len(fine.pieces) * np.finfo(float).eps)
