"""The rows of a problem in patches: each patch has rows of its own, and shares numbers with its neighbours.

Rows are scaled so that they weigh alike whatever the size of a patch, the degree of its polynomials and the
coefficients of the equation. A polynomial of degree p in a box of side h has derivatives up to about p / h times its
size, so a left side with the symbol G is at most about

    S = Σ_α |G_α| Π (p / h)^α

times as large as the unknown: a residual divided by S is an error of the unknown. In a system the unknowns themselves
are measured so that the equations see them alike: the pressure of a flow counts h / (ν p) times its size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Coefficients
from pdofm.calculus.jets import Index, unit
from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Average, Difference, Term
from pdofm.discrete.averages import Averages, averaged
from pdofm.discrete.collocate import Block
from pdofm.discrete.cover import Cover, by_patch
from pdofm.discrete.localterm import LocalTerm
from pdofm.discrete.right import right_values
from pdofm.discrete.skeleton import Placed, Seam, at_points, on_part, seams
from pdofm.domain import Part
from pdofm.errors import SolveError
from pdofm.features import Features
from pdofm.features.boxes import tensor_indices
from pdofm.features.spectral import products, tables
from pdofm.numerics.blocks import BlockQR, Leaf
from pdofm.numerics.nodes import tensor_chebyshev
from pdofm.problem.conditions import CONDITION_WEIGHT, Periodic
from pdofm.problem.problem import Problem

SMALLEST_SHARE = 2.0**-6
"""Rows of the equation weigh 1 / r times more in a patch whose side is r times that of the domain, as in the L2 norm of
a residual in the plane, down to this r. Without it a solution that violates the equation a little in many small patches
would win; with it in the deepest patches at a corner, the others would hardly count."""

CUT_POINTS = 2.0
"""Points of the equation per polynomial in a patch that is cut by the boundary."""

REGULAR = 1e-14
"""In a cut patch, weight of the rows that keep coefficients small which its inner part does not see."""

NOTHING = 1e-20
"""Coefficients below this fraction of the largest are zero."""

Iterate = tuple[Features, Float[np.ndarray, "_ _"]]
"""The function that nonlinear terms are linearised at."""


class LocalProblem:
    """A problem in the patches of a cover."""

    def __init__(self, problem: Problem, cover: Cover):
        self.problem, self.cover, self.patches = problem, cover, cover.patches
        self.layout, dim = problem.layout, problem.domain.dim
        self.space_dim = dim - self.layout.has_time
        self.rates = self.patches.degrees.clip(1) / (self.patches.upper - self.patches.lower)
        self.orders = _orders(problem)
        periodic = [condition.axis for condition in problem.stated if isinstance(condition, Periodic)]
        self.seams = seams(cover, periodic)

    @property
    def components(self) -> int:
        return self.layout.components

    def places(self, more: int = 0) -> list[tuple[Term, Placed]]:
        """The terms with their points, on the boundary with `more` of them; terms that join patches are seams
        instead."""
        found = []
        for term in self.problem.terms:
            if term.on is None:
                found.append((term, self._inside()))
            elif isinstance(term.lhs, Difference):
                continue
            elif isinstance(term.on, Average):
                found.append((term, averaged(self.cover, term.on.over, more)))
            elif isinstance(term.on, Part):
                found.append((term, on_part(self.cover, term.on, more)))
            else:
                found.append((term, at_points(self.cover, self.problem.given_points(term))))
        return found

    def _inside(self) -> Placed:
        """Points of the equation: in a whole patch as many as it has polynomials, in a cut one some more."""
        nodes = []
        for whole, fraction, degrees in zip(self.cover.whole, self.cover.fraction, self.patches.degrees, strict=True):
            more = 1.0 if whole else (CUT_POINTS / max(fraction, 0.05)) ** (1 / len(degrees))
            nodes.append(tensor_chebyshev(tuple(np.ceil(more * (degrees + 1)).astype(int).tolist())))
        points, patch = self.cover.interior(nodes)
        return Placed(points, np.zeros_like(points), patch)

    def linearised(self, term: Term, placed: Placed, iterate: Iterate | None) -> LocalTerm:
        """A term at points, linearised at a function."""
        points, normals = placed.points, placed.normals[:, : self.space_dim]
        symbol = symbol_of(term.lhs, self.layout, points.shape[1], self.space_dim)
        jet, found = None, None
        if symbol.is_computable:
            if not symbol.is_affine and iterate is not None:
                jet = iterate[0].expand(points, symbol.indices(points, normals), iterate[1])
            found = symbol.linearise(points, normals, jet)
        if found is None:
            raise SolveError(
                f"The left side of {term.name!r} looks at the unknown at other points than its own, which polynomials "
                "in boxes cannot do. Give features that cover the whole domain."
            )
        block = Block(term, self.problem.right_side(term), points, normals)
        target = right_values(self.layout, block, symbol.entries) - found.left
        if jet is not None:
            target = target + np.einsum("nkac,anc->nk", found.coefficients, jet)
        sizes = np.abs(found.coefficients[: 1 if found.is_constant else None])
        used = np.flatnonzero(np.any(sizes > 0, axis=(0, 1, 3)))
        which = tuple(found.indices[i] for i in used)
        left = np.broadcast_to(found.left, target.shape)
        local = LocalTerm(term, placed, which, found.coefficients[:, :, used], target, left)
        return replace(local, target=local.averaged(target), left=local.averaged(left))

    def left(self, term: LocalTerm, coefficients: Coefficients) -> Float[np.ndarray, "e k"]:
        """The linearised left side of a function of the patches: its target is met where this equals it."""
        jet = self.patches.expand_all(term.placed.patch, term.placed.points, term.which, coefficients)
        return term.averaged(np.einsum("nkac,anc->nk", term.coefficients, jet))

    def weights(self, equation: LocalTerm) -> Float[np.ndarray, "P C"]:
        """How much each unknown counts in each patch: as much as the equations see of it, beside the others."""
        found = np.zeros((len(self.patches), self.components))
        if self.components == 1:
            return found + 1.0
        sizes = equation.amplitudes(self.rates)
        shares = sizes / np.maximum(sizes.sum(axis=2, keepdims=True), 1e-300)
        np.maximum.at(found, equation.placed.patch, shares.max(axis=1))
        return np.where(found > 0, found, 1.0)

    def scales(self, term: LocalTerm, weights: Float[np.ndarray, "P C"]) -> Float[np.ndarray, "e k"]:
        """What makes a residual of a term an error of the unknowns."""
        sizes = np.sum(term.amplitudes(self.rates) / weights[term.placed.patch][:, None], axis=2)
        sizes = term.averaged(sizes)
        return 1 / np.where(sizes > 0, sizes, 1.0)

    def row_scales(
        self, terms: Sequence[LocalTerm], weights: Float[np.ndarray, "P C"]
    ) -> list[Float[np.ndarray, "_ _"]]:
        """What the rows of terms are multiplied by."""
        return [
            term.term.weight
            * self.scales(term, weights)
            * (self.emphasis[term.placed.patch] if term.term.on is None else np.ones(len(term.target)))[:, None]
            for term in terms
        ]

    @cached_property
    def shares(self) -> Float[np.ndarray, "P d"]:
        """The sides of patches relative to those of the domain."""
        domain = self.problem.domain
        return (self.patches.upper - self.patches.lower) / (domain.upper - domain.lower)

    @cached_property
    def emphasis(self) -> Float[np.ndarray, " P"]:
        """How much more the equation weighs in small patches; alike in all of them if it evolves in time."""
        if self.layout.has_time:
            return np.ones(len(self.patches))
        return 1 / np.maximum(np.exp(np.mean(np.log(self.shares), axis=1)), SMALLEST_SHARE)

    def seam_rows(self, seam: Seam) -> list[tuple[int, int]]:
        """The unknowns and derivatives that agree across a seam, as (component, order)."""
        return [(c, j) for c, order in enumerate(self.orders[:, seam.axis]) for j in range(order)]

    def seam_scale(self, seam: Seam, weights: Float[np.ndarray, "P C"]) -> Float[np.ndarray, " r"]:
        """What makes a jump of each of these an error of the unknowns: one number for both sides."""
        sides = [seam.first, seam.second]
        rate, weight = self.rates[sides, seam.axis].max(), weights[sides].max(axis=0)
        return np.array([weight[c] / rate**j for c, j in self.seam_rows(seam)])

    def system(self, terms: Sequence[LocalTerm], *, keep: bool = False, probe: Coefficients | None = None) -> BlockQR:
        """Eliminate all patches. A second column of the solution belongs to the data of the function `probe`."""
        sizes = [len(seam.points) * len(self.seam_rows(seam)) for seam in self.seams]
        leaves = self._leaves([term for term in terms if not term.is_average], probe)
        means = [term for term in terms if term.is_average]
        if not means:
            return BlockQR(leaves, sizes, keep=keep)
        averages = self._averages(means, self.weights(terms[0]), probe)
        return BlockQR(averages.extended(leaves), [*sizes, *averages.links], keep=keep)

    def _averages(
        self, terms: Sequence[LocalTerm], weights: Float[np.ndarray, "P C"], probe: Coefficients | None
    ) -> Averages:
        """The rows of terms that hold on average, patch by patch."""
        scales, count = self.row_scales(terms, weights), len(self.patches)
        rows: list[list[np.ndarray]] = [[] for _ in range(count)]
        for term, scale in zip(terms, scales, strict=True):
            assert term.placed.weights is not None
            each = term.placed.weights[:, None] * scale
            for patch, here in enumerate(by_patch(term.placed.patch, count)):
                found = self._rows(term, patch, here, each[here])
                rows[patch].append(found.reshape(scale.shape[1], len(here), found.shape[1]).sum(axis=1))
        stacked = [np.concatenate(each) for each in rows]
        right = [np.concatenate([(s * t.target).reshape(-1) for t, s in zip(terms, scales, strict=True)])]
        if probe is not None:
            parts = [probe[self.patches.of(patch)].T.reshape(-1) for patch in range(count)]
            right.append(np.sum([row @ part for row, part in zip(stacked, parts, strict=True)], axis=0))
        sizes = (self.patches.sizes * self.components).tolist()
        return Averages(self.seams, sizes, stacked, np.stack(right, axis=1))

    def _leaves(self, terms: Sequence[LocalTerm], probe: Coefficients | None) -> Iterator[Leaf]:
        weights = self.weights(terms[0])
        count = len(self.patches)
        at = [by_patch(term.placed.patch, count) for term in terms]
        row_weights = self.row_scales(terms, weights)
        around: list[list[int]] = [[] for _ in range(count)]
        for number, seam in enumerate(self.seams):
            for side in {seam.first, seam.second}:
                around[side].append(number)
        for patch in range(count):
            parts, rights = [], []
            for term, where, scale in zip(terms, at, row_weights, strict=True):
                here = where[patch]
                if len(here) == 0:
                    continue
                parts.append(self._rows(term, patch, here, scale[here]))
                rights.append((scale[here] * term.target[here]).T.reshape(-1))
            seen = [part @ probe[self.patches.of(patch)].T.reshape(-1) for part in parts if probe is not None]
            links, own = self._links(patch, around[patch], weights)
            size = int(self.patches.sizes[patch]) * self.components
            if not self.cover.whole[patch]:
                largest = max((float(np.abs(part).max()) for part in parts), default=1.0)
                own.append(REGULAR * largest * np.eye(size))
            parts += own
            nothing = [np.zeros(len(each)) for each in own]
            columns = [np.concatenate([*each, *nothing]) for each in (rights, seen) if each]
            yield Leaf(np.concatenate(parts), np.stack(columns, axis=1), links)

    def _rows(
        self, term: LocalTerm, patch: int, here: Int[np.ndarray, " n"], scale: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "r q"]:
        """The scaled rows of a term in a patch: entries one after the other, columns component by component."""
        points = term.placed.points[here]
        G = term.coefficients[here] * scale[:, :, None, None]
        if term.term.on is None and self.cover.whole[patch]:
            # Patches of one shape share a table.
            slopes = 2 / (self.patches.upper[patch] - self.patches.lower[patch])
            jets = _reference_jets(self.patches.shape(patch), term.which)
            G *= np.prod(slopes ** np.array(term.which), axis=1)[:, None]
        else:
            jets = self.patches.jets(patch, points, term.which)
        n, m, k = len(here), int(self.patches.sizes[patch]), scale.shape[1]
        found = np.zeros((n * k, m * self.components), order="F")
        for entry in range(k):
            for c in range(self.components):
                out = found[entry * n : (entry + 1) * n, c * m : (c + 1) * m]
                for each, factor in zip(jets, G[:, entry, :, c].T, strict=True):
                    if factor.any():
                        out += each * factor[:, None]
        return found

    def _links(
        self, patch: int, numbers: Sequence[int], weights: Float[np.ndarray, "P C"]
    ) -> tuple[list[tuple[int, np.ndarray]], list[np.ndarray]]:
        """What the patch shares with its neighbours; and, for a patch that meets itself across a period, rows."""
        sides = [
            (number, side)
            for number in numbers
            for side in (0, 1)
            if patch == (self.seams[number].first, self.seams[number].second)[side]
        ]
        if not sides:
            return [], []
        points = [self.seams[number].points + side * self.seams[number].shift for number, side in sides]
        jets = self.patches.jets(patch, np.concatenate(points), self.seam_derivatives)
        ends = np.cumsum([len(each) for each in points])
        links: dict[int, np.ndarray] = {}
        own = []
        for (number, _), part in zip(sides, np.split(jets, ends[:-1], axis=1), strict=True):
            scale = CONDITION_WEIGHT * self.seam_scale(self.seams[number], weights)
            trace = self._trace(self.seams[number], part, scale)
            if number in links:
                own.append(links.pop(number) - trace)
            else:
                links[number] = trace
        return list(links.items()), own

    @cached_property
    def seam_derivatives(self) -> tuple[Index, ...]:
        """The derivatives that seams compare: the function itself, then along each axis those of each order."""
        dim, highest = self.orders.shape[1], int(self.orders.max()) - 1
        along = (tuple(j * e for e in unit(dim, axis)) for axis in range(dim) for j in range(1, highest + 1))
        return ((0,) * dim, *along)

    def seam_derivative(self, axis: int, order: int) -> int:
        """Where a derivative across a seam is among these."""
        return 0 if order == 0 else axis * (int(self.orders.max()) - 1) + order

    def _trace(
        self, seam: Seam, jets: Float[np.ndarray, "a n m"], scale: Float[np.ndarray, " r"]
    ) -> Float[np.ndarray, "s q"]:
        """The scaled values and derivatives of the polynomials of a patch on a seam."""
        rows, (_, n, m) = self.seam_rows(seam), jets.shape
        found = np.zeros((n * len(rows), m * self.components), order="F")
        for row, ((c, j), factor) in enumerate(zip(rows, scale, strict=True)):
            found[row * n : (row + 1) * n, c * m : (c + 1) * m] = factor * jets[self.seam_derivative(seam.axis, j)]
        return found

    def coefficients(self, solution: Sequence[np.ndarray], column: int = 0) -> Coefficients:
        """The coefficients of the features from the unknowns of each patch."""
        return np.concatenate(
            [self.own(i, each)[:, column].reshape(self.components, -1).T for i, each in enumerate(solution)]
        )

    def own(self, patch: int, solution: np.ndarray) -> np.ndarray:
        """The unknowns of a patch without the sums that it passes on."""
        return solution[: int(self.patches.sizes[patch]) * self.components]


def _orders(problem: Problem) -> Int[np.ndarray, "C d"]:
    """The differential order of the equation in each component along each axis. Small coefficients count: they are what
    makes layers."""
    dim, layout = problem.domain.dim, problem.layout
    symbol = symbol_of(problem.terms[0].lhs, layout, dim, dim - layout.has_time)
    found = symbol.coefficients(problem.domain.sample(5))
    sizes = np.abs(found.coefficients).max(axis=(0, 1))
    present = sizes > NOTHING * np.max(sizes, axis=0, initial=0.0)
    powers = np.array(found.indices, dtype=int).reshape(-1, dim)
    return np.max(present.T[:, :, None] * powers[None], axis=1, initial=0)


@lru_cache(maxsize=512)
def _reference_jets(degrees: tuple[int, ...], which: tuple[Index, ...]) -> np.ndarray:
    """The derivatives of polynomials at as many Chebyshev points, in the cube [-1, 1]^d."""
    dim = len(degrees)
    points = 2 * tensor_chebyshev(tuple(k + 1 for k in degrees)) - 1
    along = tables(points, -np.ones(dim), np.ones(dim), degrees, which)
    return products(along, tensor_indices(degrees), which)
