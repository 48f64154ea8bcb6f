"""One solve in the patches of a cover, and where it is wrong.

The indicator of a patch is the largest of what is seen in it and around it, each as an error of the unknowns: the
residual of the equation at points that were not fitted, that of the conditions, and the jumps of values and derivatives
to its neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from pdofm._types import Coefficients, Vector
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Term
from pdofm.discrete.details import details_of
from pdofm.discrete.evaluate import evaluate
from pdofm.discrete.local import Iterate, LocalProblem
from pdofm.discrete.localterm import LocalTerm
from pdofm.discrete.materials import AnyCover
from pdofm.discrete.parts import eliminated
from pdofm.discrete.skeleton import Placed
from pdofm.features.boxes import InBoxes
from pdofm.numerics.blocks import BlockQR
from pdofm.numerics.executor import Executor
from pdofm.problem.problem import Problem
from pdofm.solving.boxdetails import effect, placed_detail
from pdofm.solving.stats import Residual, Stats

FRESH = {1: 48, 2: 40, 3: 80}
"""Points in each patch at which the residual is looked at, by dimension."""

SURROUNDINGS = 1e-2
"""What is nearer to a strong singularity, relative to the domain, does not count in the error estimate."""

QUADRATIC = 3.0
"""After a step of Newton's iteration that changes the solution by δ about (this · δ)² is still to come."""

BLIND = 4.0
"""Where the residual in details of the data is so many times what other points have seen in a patch, they have met
nothing of the detail."""

UNSEEN = 1e-11
"""A function whose residuals are below this fraction of it, as errors of the unknowns, is one that the problem does not
determine."""

SHORTEST_STEP = 1 / 64
"""A step of Newton's iteration is halved down to this if it does not lower the residual."""


@dataclass(frozen=True, eq=False)
class BoxFit:
    """A solution in patches.

    `indicator` is per patch, relative to the size of the solution; `slopes` and `tails` say, per patch and axis, how
    fast the coefficients of polynomials fall and how large the last ones are. `left` is what an iteration still lacks,
    relative to the solution. `fresh` are the points at which the residual was looked at. `is_unique` is false if a
    function was found that neither the equation nor the conditions see. `weights` say how much each unknown counts.
    `missed` is the error, relative to the solution, that the residual in details of the data causes. `blind` are the
    patches whose points have met none of a detail: only there it is part of the indicator, for it is high and narrow,
    and says little of the error where the detail is known.
    """

    local: LocalProblem
    coefficients: Coefficients
    system: BlockQR
    rows: int
    indicator: Float[np.ndarray, " P"]
    slopes: Float[np.ndarray, "P d"]
    tails: Float[np.ndarray, "P d"]
    residuals: dict[str, tuple[float, float]]
    left: float
    steps: list[dict[str, float]]
    fresh: Placed
    is_unique: bool
    weights: Float[np.ndarray, "P C"]
    missed: float
    blind: Bool[np.ndarray, " P"]

    @property
    def cover(self) -> AnyCover:
        return self.local.cover

    @property
    def features(self) -> InBoxes:
        return self.cover.features

    @property
    def iterate(self) -> Iterate:
        return self.features, self.coefficients

    def stats(self, seconds: dict[str, float], undetermined: float) -> Stats:
        """The statistics of the solve."""
        missing = self.system.columns - self.system.rank
        return Stats(
            rows=self.rows,
            features=self.features.size,
            components=self.coefficients.shape[1],
            rank=self.coefficients.size - missing,
            condition=self.system.condition,
            residuals={name: Residual(*each) for name, each in self.residuals.items()},
            held_out_residual=float(np.sqrt(np.mean(self.indicator**2))),
            seconds=seconds,
            steps=self.steps,
            undetermined=undetermined,
        )


def is_linear(problem: Problem) -> bool:
    """Whether all terms are affine in the unknown as they are written."""
    return not nonlinear_names(problem)


def nonlinear_names(problem: Problem) -> list[str]:
    """The names of the terms that are not affine in the unknown as they are written."""
    dim, has_time = problem.domain.dim, problem.layout.has_time
    return [t.name for t in problem.terms if not symbol_of(t.lhs, problem.layout_of(t), dim, dim - has_time).is_affine]


def fit_boxes(
    problem: Problem,
    cover: AnyCover,
    start: Iterate | None,
    rtol: float,
    most_steps: int,
    seed: int,
    *,
    probe: Coefficients | None = None,
    executor: Executor | None = None,
) -> BoxFit:
    """Solve in the patches of a cover; a nonlinear problem by Newton's iteration from `start` until it
    has converged to `rtol`, or for `most_steps`. A second column of the solution of the
    last system belongs to the data of the function `probe`. With an `executor` its tasks eliminate the patches."""
    local = LocalProblem(problem, cover)
    places = local.places()

    if is_linear(problem):
        terms = [local.linearised(*each, None) for each in places]
        system = eliminated(executor, local, terms, None, probe)
        return _judged(local, terms, system, local.coefficients(system.solution), 0.0, [], seed)
    iterate, steps = start, []
    inside = [placed for term, placed in places if term.on is None]
    shares = _shares(cover, np.concatenate([placed.patch for placed in inside]))
    old = np.zeros((cover.features.size, local.components)) if start is None else None
    while True:
        terms = [local.linearised(*each, iterate) for each in places]
        system = eliminated(executor, local, terms, iterate, probe)
        new = local.coefficients(system.solution)
        if old is not None:
            new = _advanced(local, places, old, new)
        change = _change(inside, shares, local.weights(terms), iterate, (cover.features, new))
        steps.append({"residual": _merit(local, places, new), "change": change})
        # Newton's iteration converges quadratically: the next step would be about as large as the square of this one.
        left = min(change, (QUADRATIC * change) ** 2)
        if left <= rtol or len(steps) >= most_steps or not np.isfinite(change):
            return _judged(local, terms, system, new, left, steps, seed)
        old, iterate = new, (cover.features, new)


def _change(
    inside: Sequence[Placed], shares: Vector, weights: Float[np.ndarray, "P C"], old: Iterate | None, new: Iterate
) -> float:
    """How far two functions are from each other in L2, relative to the second, by points with their shares of it. The
    unknowns are weighted, as a pressure that is not bounded would hide all else."""
    points, patch = (np.concatenate([getattr(each, name) for each in inside]) for name in ("points", "patch"))
    which, counted = [(0,) * points.shape[1]], shares[:, None] * weights[patch]
    after = new[0].expand(points, which, new[1])[0] * counted
    before = np.zeros_like(after) if old is None else old[0].expand(points, which, old[1])[0] * counted
    return float(np.linalg.norm(after - before) / max(np.linalg.norm(after), 1e-300))


def _shares(cover: AnyCover, patch: Int[np.ndarray, " n"]) -> Vector:
    """The root of the volume that each of some points, given by their patches, stands for."""
    counts = np.bincount(patch, minlength=len(cover.patches))
    volumes = np.prod(cover.patches.upper - cover.patches.lower, axis=1) * cover.fraction
    return np.sqrt(volumes / np.maximum(counts, 1))[patch]


def _advanced(
    local: LocalProblem, places: Sequence[tuple[Term, Placed]], old: Coefficients, target: Coefficients
) -> Coefficients:
    """A step towards the target that lowers the residual."""
    before, length = _merit(local, places, old), 1.0
    while length >= SHORTEST_STEP:
        new = old + length * (target - old)
        if _merit(local, places, new) < before:
            return new
        length /= 2
    return target  # at the limit of rounding, or nothing to lose


def _merit(local: LocalProblem, places: Sequence[tuple[Term, Placed]], coefficients: Coefficients) -> float:
    """The root of the summed squares of all scaled residuals."""
    total = 0.0
    iterate = (local.cover.features, coefficients)
    for term, placed in places:
        found = local.linearised(term, placed, iterate)
        residual = local.left(found, coefficients) - found.target
        weights = local.weights([found]) if term.on is None else np.ones((len(local.patches), local.components))
        total += float(np.sum((local.scales(found, weights) * residual) ** 2))
    return total**0.5


def _judged(
    local: LocalProblem,
    terms: Sequence[LocalTerm],
    system: BlockQR,
    coefficients: Coefficients,
    left: float,
    steps: list[dict[str, float]],
    seed: int,
) -> BoxFit:
    cover, weights = local.cover, local.weights(terms)
    iterate = (cover.features, coefficients)
    inside = _fresh(cover, seed)
    seen, residuals = np.zeros(len(local.patches)), {}
    size = _size(local, coefficients, inside, weights)

    def look(term: Term, placed: Placed) -> tuple[LocalTerm, Float[np.ndarray, "e k"]]:
        found = local.linearised(term, placed, iterate)
        residual = local.left(found, coefficients) - found.target
        errors = np.abs(residual * local.scales(found, weights)).max(axis=1, initial=0.0)
        for patch, _ in found.sides():
            np.maximum.at(seen, patch, np.broadcast_to(errors / size, patch.shape))
        return found, residual

    for fitted, (term, placed) in zip(terms, local.places(more=3, inside=inside), strict=True):
        _, residual = look(term, placed)
        residuals[term.name] = _rms(local.left(fitted, coefficients) - fitted.target), _rms(residual)
    met = seen.copy()
    details = [(detail, *look(detail.term, placed_detail(local, detail))) for detail in details_of(local.problem)]
    blind = seen > BLIND * met
    seen = np.where(blind, seen, met)
    missed = max((effect(local, *each, inside, iterate) for each in details), default=0.0)
    _add_jumps(local, coefficients, weights, size, seen)
    slopes, tails = _decay(local, coefficients, weights)
    rows = sum(term.target.size for term in terms)
    unique = _is_unique(local, system, inside, weights)
    found = (local, coefficients, system, rows, seen, slopes, tails / size, residuals, left, steps, inside, unique)
    return BoxFit(*found, weights, missed, blind)


def _is_unique(local: LocalProblem, system: BlockQR, placed: Placed, weights: np.ndarray) -> bool:
    """Whether no function is known that solves the homogeneous problem. Vectors that rows hardly see may be polynomials
    of a cut patch that are small in its inner part, which are not meant."""
    vectors, residuals = system.free()
    return all(
        residual > UNSEEN * _size(local, local.coefficients([each[:, [i]] for each in vectors]), placed, weights)
        for i, residual in enumerate(residuals)
    )


def _fresh(cover: AnyCover, seed: int) -> Placed:
    """Points in each patch that were not fitted."""
    rng, dim = np.random.default_rng(seed), cover.domain.dim
    count = np.where(cover.whole, 1.0, 1 / cover.fraction.clip(0.1)) * FRESH[dim]
    points, patch = cover.interior([rng.random((int(n), dim)) for n in count])
    return Placed(points, np.zeros_like(points), patch)


def _size(local: LocalProblem, coefficients: Coefficients, placed: Placed, weights: np.ndarray) -> float:
    """The size of the solution, in the units of the indicator."""
    which = [(0,) * placed.points.shape[1]]
    values = local.patches.expand_all(placed.patch, placed.points, which, coefficients)[0]
    return max(float(np.max(np.abs(values * weights[placed.patch]), initial=0.0)), 1e-300)


def _add_jumps(
    local: LocalProblem, coefficients: Coefficients, weights: np.ndarray, size: float, seen: np.ndarray
) -> None:
    """Raise what is seen of patches to the jumps to their neighbours."""
    seams = [seam for seam in local.seams if local.seam_rows(seam)]
    if not seams:
        return
    counts = [len(seam.points) for seam in seams]
    sides = []
    for side in (0, 1):
        owner = np.repeat([(seam.first, seam.second)[side] for seam in seams], counts)
        points = np.concatenate([seam.points + side * seam.shift for seam in seams])
        sides.append(local.patches.expand_all(owner, points, local.seam_derivatives, coefficients))
    jumps = np.split(np.abs(sides[0] - sides[1]), np.cumsum(counts)[:-1], axis=1)
    for seam, jump in zip(seams, jumps, strict=True):
        scale = local.seam_scale(seam, weights)
        found = max(
            float(jump[local.seam_derivative(seam.axis, j), :, c].max()) * factor
            for (c, j), factor in zip(local.seam_rows(seam), scale, strict=True)
        )
        for patch in (seam.first, seam.second):
            seen[patch] = max(seen[patch], found / size)


def _decay(
    local: LocalProblem, coefficients: Coefficients, weights: np.ndarray
) -> tuple[Float[np.ndarray, "P d"], Float[np.ndarray, "P d"]]:
    """How fast the coefficients of each patch fall along each axis, per degree, and how large the last ones are."""
    patches = local.patches
    dim = patches.degrees.shape[1]
    slopes, tails = np.zeros((len(patches), dim)), np.zeros((len(patches), dim))
    for patch in range(len(patches)):
        shape, own = tuple(k + 1 for k in patches.shape(patch)), coefficients[patches.polynomials(patch)]
        if len(own) == 0:
            continue
        sizes = np.abs(own * weights[patch]).max(axis=1).reshape(shape)
        for axis in range(dim):
            along = sizes.max(axis=tuple(i for i in range(dim) if i != axis))
            falling = np.maximum.accumulate(along[::-1])[::-1]
            upper = np.arange(shape[axis] // 3, shape[axis])
            tails[patch, axis] = falling[-2:].max()
            if len(upper) > 1:
                slopes[patch, axis] = -np.polyfit(upper, np.log(falling[upper] + 1e-300), 1)[0]
    return slopes, tails


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def distance(first: BoxFit, second: BoxFit, singular: Sequence[Vector]) -> float:
    """The relative L2 distance of two solutions, by points in each patch of the second; of the component that differs
    most. The closest surroundings of singular points are left out: a pressure is not bounded there."""
    placed, cover = second.fresh, second.cover
    weights = _shares(cover, placed.patch)[:, None]
    for point in singular:
        near = np.linalg.norm(placed.points - point, axis=1) < SURROUNDINGS * cover.domain.size
        weights[near] = 0.0
    old, new = (weights * evaluate(*each.iterate, placed.points) for each in (first, second))
    sizes = np.maximum(np.linalg.norm(new, axis=0), 1e-6 * np.linalg.norm(new))
    return float(np.max(np.linalg.norm(old - new, axis=0) / np.where(sizes == 0, 1.0, sizes)))
