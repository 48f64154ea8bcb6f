"""A linear problem in given boxes: its rows, which only multiply, and their factorisation for many right-hand sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Coefficients, Vector
from pdofm.discrete.collocate import Block
from pdofm.discrete.cover import by_patch
from pdofm.discrete.featured import FeatureCover
from pdofm.discrete.local import RANDOM, LocalProblem
from pdofm.discrete.localterm import LocalTerm
from pdofm.discrete.materials import AnyCover, make_cover, singular_of
from pdofm.discrete.skeleton import Placed
from pdofm.domain import Domain
from pdofm.domain.tree import BoxTree, Forest
from pdofm.errors import FeaturesError
from pdofm.features import BoxFeatures, BoxPolynomials, InBoxes
from pdofm.features.regions import RegionPolynomials
from pdofm.numerics.blocks import BlockQR
from pdofm.numerics.distance import relative_sizes
from pdofm.problem.conditions import CONDITION_WEIGHT, Periodic
from pdofm.problem.problem import Problem

Columns = Float[np.ndarray, "cols sides"]
"""Coefficients of several functions: entry ``f * C + j`` of a column is component j of feature f."""

SIDES = 16
"""Functions whose derivatives are evaluated at once."""

FEWEST_HELD_OUT = 16
"""Points in each patch that are not fitted, at least; otherwise half as many as polynomials."""

PROBE_DEGREE = 3
"""Degree, along each axis, of the random polynomial that a problem should determine."""


FEWER, SHARE = 2, 0.8
"""In a coarser space the degrees of polynomials are lower by the first number (with one less, functions that are even
or odd would not be coarser), and of other features only the second number, a fraction, is used: the leading ones."""


def cover_of(domain: Domain, features: InBoxes, *, coarser: bool = False) -> AnyCover:
    """The boxes of some features over a domain; if `coarser`, with a coarser space in each of them."""
    if domain.dim > 3:
        raise FeaturesError(f"Features in boxes solve in one to three dimensions; {domain!r} has {domain.dim}.")
    if isinstance(features, BoxFeatures):
        return FeatureCover(domain, features, SHARE if coarser else 1.0)
    assert isinstance(features, BoxPolynomials)
    fewer = FEWER if coarser else 0
    regions, singular = domain.materials, {}
    if isinstance(features, RegionPolynomials) and regions is not None:
        tree = Forest.grown([(region.lower, region.upper) for region in regions.by_name.values()], features.tree)
        singular = singular_of(features)
    else:
        tree = BoxTree.of(features.lower, features.upper, features.tree)
    degrees = {
        node: tuple(max(k - fewer, min(k, 1)) for k in features.patch_degrees[features.owners[node]])
        for node in tree.leaves.tolist()
    }
    return make_cover(domain, tree, degrees, {}, singular)


class _Jumps:
    """The jumps of values and derivatives between patches, as rows with scales."""

    def __init__(self, local: LocalProblem, weights: Float[np.ndarray, "P C"]):
        seams = [seam for seam in local.seams if local.seam_rows(seam)]
        counts = [len(seam.points) for seam in seams]
        self._local, self._sides = local, []
        for side in (0, 1) if seams else ():
            owner = np.repeat([(seam.first, seam.second)[side] for seam in seams], counts)
            self._sides.append((owner, np.concatenate([seam.points + side * seam.shift for seam in seams])))
        starts = np.cumsum([0, *counts])
        # For each row the derivative, the point, the component and the scale.
        rows = [
            np.broadcast_arrays(local.seam_derivative(seam.axis, j), np.arange(n) + start, c, factor)
            for seam, n, start in zip(seams, counts, starts[:-1], strict=True)
            for (c, j), factor in zip(local.seam_rows(seam), local.seam_scale(seam, weights), strict=True)
        ]
        stacked = [np.concatenate(each) for each in zip(*rows, strict=True)] if rows else [np.zeros(0, dtype=int)] * 4
        self._at, self.scales = tuple(stacked[:3]), CONDITION_WEIGHT * stacked[3]

    def values(self, c: Float[np.ndarray, "m Ck"]) -> Float[np.ndarray, "r k"]:
        """The jumps of functions, whose coefficients stand side by side."""
        components = self._local.components
        if not self._sides:
            return np.zeros((0, c.shape[1] // components))
        which = self._local.seam_derivatives
        below, above = (self._local.patches.expand_all(owner, at, which, c) for owner, at in self._sides)
        return (below - above).reshape(*below.shape[:2], components, -1)[self._at]


class _Rows:
    """The scaled rows of terms, and of the jumps between patches: ``rows @ c`` for the coefficients of functions."""

    def __init__(self, local: LocalProblem, terms: Sequence[LocalTerm], jumps: _Jumps, scales: Vector):
        self._local, self._terms, self._jumps, self._scales = local, terms, jumps, scales

    def __matmul__(self, c: Columns) -> Float[np.ndarray, "rows sides"]:
        size, components = int(self._local.patches.sizes.sum()), self._local.components
        found = np.empty((len(self._scales), c.shape[1]))
        for start in range(0, c.shape[1], SIDES):
            some = c[:, start : start + SIDES]
            found[:, start : start + SIDES] = self._values(some.reshape(size, -1), components)
        found *= self._scales[:, None]
        return found

    def _values(self, c: Float[np.ndarray, "m Ck"], components: int) -> Float[np.ndarray, "rows k"]:
        patches, parts = self._local.patches, []
        for term in self._terms:
            jet = patches.expand_all(term.placed.patch, term.placed.points, term.which, c)
            jet = jet.reshape(*jet.shape[:2], components, -1)
            values = term.averaged(np.einsum("nkac,ancs->nks", term.coefficients, jet))
            parts.append(values.reshape(-1, jet.shape[3]))
        return np.concatenate([*parts, self._jumps.values(c)])


class BoxSystem:
    """The system of terms in patches, with the names of `System`: rows by term, then those of the jumps between
    patches, whose right sides are zero. The matrix `A` only multiplies."""

    def __init__(self, local: LocalProblem, terms: Sequence[LocalTerm], weights: Float[np.ndarray, "P C"]):
        start, self.rows = 0, {}
        for term in terms:
            self.rows[term.term.name] = slice(start, start + term.target.size)
            start += term.target.size
        jumps = _Jumps(local, weights)
        nothing = np.zeros(len(jumps.scales))
        scales = [each.reshape(-1) for each in local.row_scales(terms, weights)]
        self.scales = np.concatenate([*scales, jumps.scales])
        self.left = np.concatenate([*(term.left.reshape(-1) for term in terms), nothing])
        self.right = np.concatenate([*(term.target.reshape(-1) for term in terms), nothing]) + self.left
        self.A = _Rows(local, terms, jumps, self.scales)


class BoxFactorization:
    """The factored system of a problem in patches, used like a `Factorization`."""

    def __init__(self, local: LocalProblem, terms: Sequence[LocalTerm], system: BoxSystem, qr: BlockQR):
        self._local, self._qr = local, qr
        count = len(local.patches)
        found: list[list[np.ndarray]] = [[] for _ in range(count)]
        sums: list[np.ndarray] = []
        for term in terms:
            numbers = np.arange(term.target.size).reshape(term.target.shape) + system.rows[term.term.name].start
            if term.is_average:
                sums.append(numbers.reshape(-1))
                continue
            for patch, here in enumerate(by_patch(term.placed.patch, count)):
                found[patch].append(numbers[here].T.reshape(-1))
        found[0] = sums + found[0]  # the first patch is where sums over all of them arrive
        self._rows: list[Int[np.ndarray, " r"]] = [np.concatenate(each) for each in found]

    @property
    def rank(self) -> int:
        """Numerical rank: coefficients that the rows determine."""
        size = int(self._local.patches.sizes.sum()) * self._local.components
        return size - (self._qr.columns - self._qr.rank)

    @property
    def condition(self) -> float:
        """A lower bound of the condition number, with columns scaled to unit norm."""
        return self._qr.condition

    def solve(self, b: Float[np.ndarray, "rows sides"]) -> Columns:
        """The least-squares solutions for scaled right sides."""
        found = self._qr.solve([b[rows] for rows in self._rows])
        components, sides = self._local.components, b.shape[1]
        own = [self._local.own(patch, each) for patch, each in enumerate(found)]
        parts = [each.reshape(components, -1, sides).swapaxes(0, 1).reshape(-1, sides) for each in own]
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class BoxDiscretisation:
    """A linear problem in patches: what `Discretisation` is for other features."""

    problem: Problem
    local: LocalProblem
    terms: Sequence[LocalTerm]
    seed: int = 0

    is_affine = True
    remedy = "use smaller boxes or higher degrees, such as those that solve(problem, tol=…) finds for these data"

    @property
    def features(self) -> InBoxes:
        """The features in the boxes, of which those at the boundary may be merged."""
        return self.local.cover.features

    @cached_property
    def weights(self) -> Float[np.ndarray, "P C"]:
        """How much each unknown counts in each patch."""
        return self.local.weights(self.terms)

    @cached_property
    def blocks(self) -> list[Block]:
        """The terms at the fitted points."""
        return [self._block(term) for term in self.terms]

    def _block(self, term: LocalTerm) -> Block:
        placed, right = term.placed, self.problem.right_side(term.term)
        weights = placed.weights if term.is_average else None
        return Block(term.term, right, placed.points, placed.normals[:, : self.local.space_dim], weights)

    def fitted(self) -> BoxSystem:
        """The system at the fitted points."""
        return BoxSystem(self.local, self.terms, self.weights)

    def held_out_system(self, interior: int) -> tuple[list[Block], BoxSystem]:
        """The terms at points that are not fitted; patches determine how many there are."""
        cover, rng = self.local.cover, np.random.default_rng(self.seed)
        counts = np.maximum(FEWEST_HELD_OUT, self.local.patches.sizes // 2) / cover.fraction.clip(0.1)
        points, patch = cover.interior([rng.random((int(n), cover.domain.dim)) for n in counts])
        places = [(self.terms[0].term, Placed(points, np.zeros_like(points), patch))]
        places += [each for each in self.local.places(more=3) if each[0].on is not None]
        terms = [self.local.linearised(*each, None) for each in places]
        return [self._block(term) for term in terms], BoxSystem(self.local, terms, self.weights)


def undetermined(local: LocalProblem, qr: BlockQR, probe: Coefficients, placed: Placed) -> float:
    """The part of a function that the equation and the conditions do not see, as a fraction of its size at points: what
    is lost when it is recovered from its own data, the second column of the solution."""
    which, lost = [(0,) * placed.points.shape[1]], probe - local.coefficients(qr.solution, 1)
    whole, rest = (local.patches.expand_all(placed.patch, placed.points, which, each)[0] for each in (probe, lost))
    return float(np.max(relative_sizes(rest, whole, vanishing=0.0)))


def sensitivity(local: LocalProblem, qr: BlockQR, placed: Placed, weights: Float[np.ndarray, "P C"]) -> float:
    """How large the solution is, at points, for random data that are errors of the unknowns of size 1, on average over
    those that the solution has from its third column on."""
    which, size = [(0,) * placed.points.shape[1]], weights[placed.patch]
    each = (local.coefficients(qr.solution, 2 + i) for i in range(RANDOM))
    moved = [size * local.patches.expand_all(placed.patch, placed.points, which, c)[0] for c in each]
    return float(np.sqrt(np.mean(np.square(moved))))


def random_polynomial(problem: Problem, cover: AnyCover) -> Coefficients:
    """The coefficients in all patches of a product of random polynomials of one coordinate, one for each component;
    constant along axes that are periodic. For features that are no polynomials, random coefficients."""
    rng, patches, domain = np.random.default_rng(0), cover.patches, problem.domain
    if not patches.are_polynomials.all():
        return rng.standard_normal((int(patches.sizes.sum()), problem.layout.components))
    degrees = np.minimum(patches.degrees.min(axis=0), PROBE_DEGREE)
    degrees[[each.axis for each in problem.stated if isinstance(each, Periodic)]] = 0
    components = problem.layout.components
    draws = [[rng.standard_normal(k + 1) for k in degrees] for _ in range(components)]
    center, half = (domain.lower + domain.upper) / 2, (domain.upper - domain.lower) / 2
    nodes, found = np.polynomial.chebyshev.chebpts1(PROBE_DEGREE + 1), []
    for patch in range(len(patches)):
        lower, upper, shape = patches.lower[patch], patches.upper[patch], patches.degrees[patch] + 1
        # The nodes of each axis of the patch, in the coordinates of the domain.
        at = (((lower + upper) / 2)[:, None] + ((upper - lower) / 2)[:, None] * nodes - center[:, None]) / half[:, None]
        for draw in draws:
            product = np.ones(())
            for axis, along in enumerate(draw):
                values = np.polynomial.chebyshev.chebval(at[axis], along)
                short = np.polynomial.chebyshev.chebfit(nodes, values, len(along) - 1)
                product = np.multiply.outer(product, np.pad(short, (0, int(shape[axis]) - len(along))))
            found.append(product.reshape(-1))
    columns = [np.concatenate(found[c::components]) for c in range(components)]
    return np.stack(columns, axis=1)
