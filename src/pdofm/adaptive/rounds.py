"""Polynomials in boxes that are split, and raised in degree, where the solution needs it.

Round after round the problem is solved in the patches of a tree of boxes. Where a patch is wrong its degree is raised,
if its coefficients fall fast enough; otherwise it is split, across the axes along which they fall slowly.
"""

import math
import time
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from pdofm._types import Vector
from pdofm.adaptive.cuts import WEAK, crossings, cuts_of
from pdofm.adaptive.lengths import disturbance, layer_cuts, lengths
from pdofm.adaptive.singular import (
    Degrees,
    SingularPoint,
    are_at_jumps,
    first_tree,
    functions_by_region,
    grade,
    singular_points,
)
from pdofm.discrete.cover import Inside
from pdofm.discrete.materials import make_cover
from pdofm.problem.problem import Problem
from pdofm.solving.boxes import BoxFit, distance, fit_boxes
from pdofm.solving.solution import Solution
from pdofm.solving.stats import Attempt
from pdofm.solving.steep import missed_flux
from pdofm.solving.verdict import Evidence, Status, Verdict, judge

FIRST_DEGREE = {1: 10, 2: 8, 3: 5}
HIGHEST_DEGREE = {1: 24, 2: 20, 3: 9}
HIGHEST_IN_SYSTEMS = {1: 20, 2: 14, 3: 7}
LOWEST_DEGREE = 4
"""Degrees of the first polynomials and of the highest, by dimension, and of the lowest towards a singularity. The work
in a box grows with the cube of its unknowns, so that a system is better off with smaller boxes."""

FEWEST_BOXES = 2
"""Boxes along each axis at the start."""

PHASE = 12.0
"""The first boxes hold so much of the phase of a wave, in radians, if the equation tells its wave number."""

MOST_FIRST_BOXES = {1: 500, 2: 40, 3: 8}
"""Boxes along each axis at the start, at most, by dimension."""

MARKED = 0.025
"""Patches are refined whose indicator is above this fraction of the largest."""

HALVED = 0.75
"""A polynomial of this fraction of the degree does in half a box what one of the full degree did in the whole."""

MOST_DEGREES = 4
"""A degree is raised by at most so much in a round."""

ALIKE = 6.0
"""Axes are split, or raised in degree, whose last coefficients are at least the largest ones divided by this."""

INNOCENT = 3e-3
"""A patch whose last coefficients are below this fraction of its indicator suffers from its neighbours."""

RESOLVED, CLEAR = 1e-2, 1e-3
"""Indicators below which the solution has digits everywhere, and below which slow convergence in a box at a corner is
the corner's."""

STEEP = 1.0
"""Where coefficients fall by more than this, in the logarithm per degree, the degree is raised in any case."""

LOOSE = 100.0
"""In a cut patch, last coefficients so many times larger than the error belong to a polynomial that is large outside of
the domain, towards a singularity there: splitting helps."""

HALVING = math.log(3 + 8**0.5)
"""Slope of the coefficients, in the logarithm per degree, of a function that is singular at a distance of one box: it
tells the degrees in boxes that are halved towards a singularity."""

MOST_LEVELS, LEAST_EXPONENT = 10, 0.25
"""Boxes at a strong singularity are halved so many times in a round, at most, and as if its exponent were at least
this: that of a derivative, such as a pressure, may be negative."""

SMALL = 0.25
"""An error in a patch whose side is r times that of the domain counts r to this power: between its share of the maximum
and of the L2 norm, so that a corner, where it is largest in tiny patches, counts about as much as other places. Where
data jump it counts by the L2 norm: the solution stays wrong at the point itself, which is hardly seen from far away.

A residual also disturbs the solution elsewhere (`disturbance`), which may be more."""

FELL = 0.2
"""Where the indicator falls below this fraction of what it was, the distance of two solutions is the error of the
first, and older ones count half, in the logarithm. Otherwise the refinement may have left out what is wrong, and older
ones count as much."""

SAFETY = 3.0
"""The estimate is so many times what the last rounds suggest: it is meant to be too small in one case of ten."""

LEAST_FACTOR = 1e-3
"""The error is taken to be at least this part of the indicator."""

FEW_STEPS, MOST_STEPS = 2, 12
"""Steps of Newton's iteration in a round, as long as nothing is resolved (only to see where to refine) and later."""

PATIENCE = 4
"""Rounds in which the indicator may fail to halve before rounding is taken to be the limit."""

WORK = {1: 1.0, 2: 1.2, 3: 2.0}
"""The work of a round grows like the number of unknowns to this power, by dimension."""

GOAL = 0.3
"""Patches are refined until the error that their indicator stands for is below this part of the tolerance."""


class Rounds:
    """The state of a run: the tree with the degree of each leaf, the last solution, and what is known of its error.

    `factor` is how large the error is per indicator. The distance of two solutions is the error of the first one, if
    the second one is much better; its ratio to the indicator of the first one is the factor for the second one.
    """

    def __init__(self, problem: Problem, tol: float, seed: int):
        self.problem, self.tol, self.seed = problem, tol, seed
        domain = problem.domain
        self.points = singular_points(problem)
        self.singular = functions_by_region(self.points)
        self.highest = (HIGHEST_DEGREE if problem.layout.components == 1 else HIGHEST_IN_SYSTEMS)[domain.dim]
        known = lengths(problem)
        sides = domain.upper - domain.lower
        finest = sides / MOST_FIRST_BOXES[domain.dim]
        with np.errstate(divide="ignore"):
            largest = np.clip(PHASE / known.waves, finest, sides / FEWEST_BOXES)
        cuts = cuts_of(problem)
        self.points += [SingularPoint(point, WEAK) for point in crossings(cuts, domain)]
        self.tree = first_tree(problem, self.points, [*cuts, *layer_cuts(problem, known, tol)], largest)
        first = tuple(
            int(min(FIRST_DEGREE[domain.dim] + 0.5 * wave * side, self.highest))
            for wave, side in zip(known.waves, largest, strict=True)
        )
        self.degrees: dict[int, Degrees] = dict.fromkeys(self.tree.leaves.tolist(), first)
        self.known: dict[int, Inside] = {}
        self.last: BoxFit | None = None
        self.best: tuple[float, BoxFit] | None = None
        self.largest: list[float] = []  # the largest indicator of each round
        self.distance, self.factor, self.estimate, self.changed = math.nan, math.nan, math.inf, 0
        self.is_free = False
        self.attempts: list[Attempt] = []
        self.reason, self.spent = "", 0.0
        self.reach, self.excess = disturbance(problem, known)
        for point in self.points:
            if point.is_strong:
                for node in self.tree.leaves.tolist():
                    if self.tree.touches(node, point.point):
                        self._grade(node, point, domain.size * point.smallest(tol))

    def run(self, max_unknowns: int, max_seconds: float) -> Iterator[BoxFit]:
        """One round after another, until `reason` says why there is no further one. The time that passes between rounds
        does not count."""
        while True:
            start = time.perf_counter()
            found = self.solve()
            self.attempts.append(self._attempt(found, time.perf_counter() - start))
            self.reason = self._verdict(found)
            yield found
            if self.reason:
                return
            start = time.perf_counter()
            self._refine(found)
            self.spent += self.attempts[-1].seconds + time.perf_counter() - start
            unknowns, last = self.unknowns(), found.coefficients.size
            # The first round also compiles, which says nothing about the next one.
            growth = max(unknowns / last, 1.0) ** WORK[self.problem.domain.dim]
            expected = self.spent + self.attempts[-1].seconds * growth * (len(self.attempts) > 1)
            if unknowns > max_unknowns:
                self.reason = f"the next round would need {unknowns} unknowns, more than max_unknowns = {max_unknowns}"
            elif expected > max_seconds:
                self.reason = (
                    f"the next round would end after {expected:.0f} s, more than max_seconds = {max_seconds:g}"
                )
            if self.reason:
                return

    def _attempt(self, found: BoxFit, seconds: float) -> Attempt:
        why = "the first boxes" if math.isnan(self.distance) else f"{self.changed} of them were refined"
        space = f"polynomials in {len(found.indicator)} boxes"
        return Attempt(space, why, found.features.size, found.rows, seconds, self.estimate, self.distance)

    def solve(self) -> BoxFit:
        """One round: solve, and estimate the error."""
        start = None if self.last is None else self.last.iterate
        rtol = max(0.1 * self.tol, 1e-2 * min(self.estimate, 1.0)) if math.isfinite(self.estimate) else 1e-2
        cover = make_cover(self.problem.domain, self.tree, self.degrees, self.known, self.singular)
        steps = MOST_STEPS if self.largest and self.largest[-1] < RESOLVED else FEW_STEPS
        found = fit_boxes(self.problem, cover, start, rtol, steps, self.seed + len(self.largest))
        self.largest.append(float(np.max(self._errors(found))))
        self._estimate(found)
        # A linearisation may leave a function free that the problem determines; two in a row hardly do.
        self.is_free = self.last is not None and not (found.is_unique or self.last.is_unique)
        self.last = found
        if self.best is None or self.estimate <= self.best[0]:
            self.best = self.estimate, found
        return found

    def _estimate(self, found: BoxFit) -> None:
        if self.last is None:
            return
        before, after = self.largest[-2:]
        self.distance = distance(self.last, found, [p.point for p in self.points if p.is_strong])
        factor = max(self.distance / before, LEAST_FACTOR) if before > 0 else LEAST_FACTOR
        if not math.isnan(self.factor):
            fell = after < FELL * before
            factor = max(factor, math.sqrt(factor * self.factor) if fell else self.factor)
        self.factor = factor
        self.estimate = max(SAFETY * factor * after, found.left, found.missed, *(p.left(self.tol) for p in self.points))

    def _errors(self, found: BoxFit) -> Float[np.ndarray, " P"]:
        """What the indicators of patches mean for the whole."""
        near = are_at_jumps(self.points, found.cover.patches.lower, found.cover.patches.upper)
        size = found.local.importance
        return found.indicator * np.maximum(size ** np.where(near, 1.0, SMALL), (self.reach / size) ** self.excess)

    def _verdict(self, found: BoxFit) -> str:
        """Why there is no further round; empty if there is one."""
        if not np.isfinite(found.indicator).all():
            return "the solution is not finite"
        if self.is_free:
            return "the solution is not unique"
        if self.estimate <= self.tol and self.largest[-1] < RESOLVED:
            return f"the estimated error is below the tolerance after {len(self.largest)} rounds"
        recent = [] if found.blind.any() else self.largest[-PATIENCE - 1 :]
        if len(recent) > PATIENCE and recent[-1] < RESOLVED and min(recent[1:]) > 0.5 * recent[0]:
            return f"the indicator has not fallen in {PATIENCE} rounds"
        return ""

    def unknowns(self) -> int:
        """The number of unknowns of the next round, boxes outside of the domain not known yet included."""
        outside = {node for node, inside in self.known.items() if inside.fraction == 0}
        sizes = [math.prod(k + 1 for k in each) for node, each in self.degrees.items() if node not in outside]
        return sum(sizes) * self.problem.layout.components

    def _refine(self, found: BoxFit) -> None:
        """Raise degrees and split boxes where the indicator is large."""
        factor = 1.0 if math.isnan(self.factor) else self.factor
        goal = GOAL * self.tol / (SAFETY * max(factor, LEAST_FACTOR))
        indicator, tails = self._errors(found), found.tails.max(axis=1)
        marked = indicator > max(min(goal, 0.5 * float(indicator.max())), MARKED * float(indicator.max()))
        guilty = marked & (found.blind | (tails > INNOCENT * found.indicator))
        chosen = np.flatnonzero(guilty if guilty.any() else marked)
        for patch in chosen.tolist():
            self._refine_patch(found, patch, goal / indicator[patch])
        self.changed = len(chosen)

    def _refine_patch(self, found: BoxFit, patch: int, wanted: float) -> None:
        """Raise the degree of a patch or split it, to lower its error to a fraction."""
        members = found.cover.members[patch]
        if self.largest[-1] < CLEAR and self._deepened(members, wanted):
            return
        degrees = self.degrees[members[0]]
        highest = self.highest
        tails, slopes = found.tails[patch], found.slopes[patch]
        worst = int(np.argmax(tails))
        axes = [axis for axis in range(len(degrees)) if tails[axis] * ALIKE >= tails[worst]]
        slope = max(float(slopes[worst]), 1e-3)
        need = math.ceil(math.log(max(1 / wanted, 1.0)) / slope)
        top = max(degrees[axis] for axis in axes)
        if tails[worst] > LOOSE * found.indicator[patch]:
            need = highest  # a higher degree would only grow outside of the domain
            slope = 0.0
        if found.blind[patch] and found.cover.whole[patch]:  # the coefficients know nothing of what is there
            self._split(members, list(range(len(degrees))))
        elif top + need <= highest or (top + 2 <= highest and slope > STEEP):
            more = max(1, min(need, MOST_DEGREES))
            raised = tuple(min(highest, k + more) if axis in axes else k for axis, k in enumerate(degrees))
            self.degrees.update(dict.fromkeys(members, raised))
        elif not (self.largest[-1] < CLEAR and self._graded(members)):
            self._split(members, axes)

    def _split(self, members: list[int], axes: list[int]) -> None:
        """Halve the boxes of a patch across some axes; small ones that were merged with it stay as they are."""
        sides = self._sides(members[0])
        for node in members:
            pieces, own = [node], self._sides(node)
            for axis in axes:
                if own[axis] > 0.6 * sides[axis]:
                    pieces = [half for piece in pieces for half in self.tree.split(piece, axis)]
            before, first = self.degrees.pop(node), FIRST_DEGREE[len(sides)]
            after = tuple(max(min(k, first), math.ceil(HALVED * k)) if i in axes else k for i, k in enumerate(before))
            self.degrees.update(dict.fromkeys(pieces, after))

    def _sides(self, node: int) -> Vector:
        return np.subtract(*self.tree.box(node)[::-1])

    def _graded(self, members: list[int]) -> bool:
        """Grade the boxes of a patch towards a singular point that they touch; whether there is one."""
        graded = False
        for node in members:
            for point in self.points:
                smallest = self.problem.domain.size * point.smallest(self.tol)
                if np.max(self._sides(node)) > 4 * smallest and self.tree.touches(node, point.point):
                    self._grade(node, point, smallest)
                    graded = True
                    break
        return graded

    def _deepened(self, members: list[int], wanted: float) -> bool:
        """Halve the boxes of a patch further towards a strong singularity that they touch, to lower the error there to
        a fraction: a higher degree would not. Whether there is one."""
        touching = [(n, p) for n in members for p in self.points if p.is_strong and self.tree.touches(n, p.point)]
        for node, point in touching:
            levels = math.ceil(-math.log2(wanted) / (max(point.remainder, LEAST_EXPONENT) + SMALL))
            self._grade(node, point, float(np.max(self._sides(node))) / 2 ** int(np.clip(levels, 1, MOST_LEVELS)))
        return bool(touching)

    def _grade(self, node: int, point: SingularPoint, smallest: float) -> None:
        """Halve a leaf towards a singular point until it is as small as `smallest`, with degrees that fall towards
        it."""
        size = self.problem.domain.size

        def degree(width: float) -> int:
            allowed = min(self.tol * (size / width) ** point.exponent, 1.0)  # relative to the solution in that box
            wanted = math.ceil(-math.log(allowed) / HALVING) + 2
            return int(np.clip(wanted, LOWEST_DEGREE, self.highest))

        self.degrees[node] = tuple(max(k, degree(size)) for k in self.degrees[node])
        grade(self.tree, self.degrees, node, point.point, smallest, degree)

    def solution(self) -> Solution:
        """The best round as a solution."""
        assert self.best is not None
        estimate, found = (1.0, self.last) if self.is_free and self.last is not None else self.best
        attempts = tuple(self.attempts)
        stats = found.stats({"rounds": sum(each.seconds for each in attempts)}, undetermined=float(self.is_free))
        ended = Verdict(Status.CONVERGED if np.isfinite(found.left) else Status.DIVERGED, self.reason)
        free = float(self.is_free)
        flux = missed_flux(self.problem, found.features, found.coefficients)
        estimate = max(estimate, flux or 0.0)
        evidence = Evidence(self.tol, ended, estimate, undetermined=free, missed=flux, disagreement=self.distance)
        remedy = "add a condition, such as a value at a point" if self.is_free else f"the rounds ended: {self.reason}"
        verdict = judge(evidence, remedy)
        space = f"polynomials in {len(found.indicator)} boxes"
        return Solution(
            self.problem, found.features, found.coefficients, estimate, verdict, stats, space, tuple(self.attempts)
        )
