"""The rows of a problem in patches: each patch has rows of its own, and shares numbers with its neighbours."""

from collections.abc import Callable, Iterator, Sequence
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
from pdofm.discrete.localterm import Joint, LocalTerm, joints
from pdofm.discrete.materials import AnyCover, MaterialCover, jet_at
from pdofm.discrete.right import right_values
from pdofm.discrete.skeleton import Placed, Seam, at_points, on_part, seams
from pdofm.discrete.weighted import Weighted
from pdofm.domain import Part
from pdofm.errors import SolveError
from pdofm.features import Features
from pdofm.features.patches import tensor_indices
from pdofm.features.spectral import products, tables
from pdofm.numerics.blocks import BlockQR, Leaf
from pdofm.numerics.nodes import tensor_chebyshev
from pdofm.problem.conditions import CONDITION_WEIGHT, Periodic
from pdofm.problem.problem import Problem

REGULAR = 1e-14
"""In a cut patch, weight of the rows that keep coefficients small which its inner part does not see."""

RANDOM = 4
"""Random data that are tried: the chance that all of them miss what is hardly determined is small."""

NOTHING = 1e-20
"""Coefficients below this fraction of the largest are zero."""

Iterate = tuple[Features, Float[np.ndarray, "_ _"]]
"""The function that nonlinear terms are linearised at."""


class LocalProblem(Weighted):
    """A problem in the patches of a cover."""

    def __init__(self, problem: Problem, cover: AnyCover):
        super().__init__(problem, cover)
        self.space_dim = problem.domain.dim - self.layout.has_time
        self.orders = _orders(problem)
        periodic = [condition.axis for condition in problem.stated if isinstance(condition, Periodic)]
        self.seams = cover.seams() if isinstance(cover, MaterialCover) else seams(cover, periodic)

    def places(self, more: int = 0, inside: Placed | None = None) -> list[tuple[Term, Placed]]:
        """The terms with their points, on the boundary with `more` of them; terms that join patches are seams instead.
        Points `inside` replace those that the equations are fitted at."""
        inside = self._inside() if inside is None else inside
        return [
            (term, self._placed(term, inside, more))
            for term in self.problem.terms
            if not isinstance(term.lhs, Difference)
        ]

    def _placed(self, term: Term, inside: Placed, more: int) -> Placed:
        if term.pair is not None:
            assert isinstance(self.cover, MaterialCover)
            assert isinstance(term.on, Part)
            return self.cover.on_interface(term.pair, term.on, more)
        if isinstance(term.on, Average):
            assert isinstance(self.cover, Cover)
            return averaged(self.cover, term.on.over, more)
        cover, start = self.cover.of(term.region)
        if term.on is None:
            own = (inside.patch >= start) & (inside.patch < start + len(cover.patches))
            return inside if own.all() else inside.some(own)
        found = (
            on_part(cover, term.on, more)
            if isinstance(term.on, Part)
            else at_points(cover, self.problem.given_points(term))
        )
        return replace(found, patch=found.patch + start)

    def _inside(self) -> Placed:
        """Points of the equation: in a whole patch as many as it has polynomials, in a cut one some more."""
        counts = np.ceil(self.more[:, None] * (self.patches.degrees + 1)).astype(int)
        nodes = [tensor_chebyshev(tuple(each)) for each in counts.tolist()]
        points, patch = self.cover.interior(nodes)
        return Placed(points, np.zeros_like(points), patch)

    def linearised(self, term: Term, placed: Placed, iterate: Iterate | None) -> LocalTerm:
        """A term at points, linearised at a function."""
        points, normals = placed.points, placed.normals[:, : self.space_dim]
        layout = self.problem.layout_of(term)
        symbol = symbol_of(term.lhs, layout, points.shape[1], self.space_dim)
        jet, found = None, None
        if symbol.is_computable:
            if not symbol.is_affine and iterate is not None:
                jet = jet_at(self.cover, placed, symbol.indices(points, normals), iterate)
            found = symbol.linearise(points, normals, jet)
        if found is None:
            raise SolveError(
                f"The left side of {term.name!r} looks at the unknown at other points than its own, which polynomials "
                "in boxes cannot do. Give features that cover the whole domain."
            )
        block = Block(term, self.problem.right_side(term), points, normals)
        target = right_values(layout, block, symbol.entries) - found.left
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
        jets = (self.patches.expand_all(p, term.placed.points, term.which, coefficients) for p, _ in term.sides())
        each = [np.einsum("nkac,anc->nk", G, jet) for (_, G), jet in zip(term.sides(), jets, strict=True)]
        return term.averaged(np.sum(each, axis=0))

    def seam_rows(self, seam: Seam) -> list[tuple[int, int]]:
        """The unknowns and derivatives that agree across a seam, as (component, order)."""
        return [(c, j) for c, order in enumerate(self.orders[:, seam.axis]) for j in range(order)]

    def seam_scale(self, seam: Seam, weights: Float[np.ndarray, "P C"]) -> Float[np.ndarray, " r"]:
        """What makes a jump of each of these an error of the unknowns: one number for both sides."""
        sides = [seam.first, seam.second]
        rate, weight = self.rates[sides, seam.axis].max(), weights[sides].max(axis=0)
        return np.array([weight[c] / rate**j for c, j in self.seam_rows(seam)])

    def system(self, terms: Sequence[LocalTerm], *, keep: bool = False, probe: Coefficients | None = None) -> BlockQR:
        """Eliminate all patches. If a function `probe` is given, a second column of the solution belongs to its data,
        and `RANDOM` others to random data."""
        weights, means = self.weights(terms), [term for term in terms if term.is_average]
        leaves, sizes = self.some([term for term in terms if not term.is_average], probe)
        if not means:
            return BlockQR(leaves, sizes, keep=keep)
        averages = self._averages(means, weights, probe)
        return BlockQR(averages.extended(leaves), [*sizes, *averages.links], keep=keep)

    def some(
        self, terms: Sequence[LocalTerm], probe: Coefficients | None, which: range | None = None
    ) -> tuple[Iterator[Leaf], list[int]]:
        """The leaves of some patches, by default of all, and how many numbers each of all links shares."""
        sizes, across = [len(seam.points) * len(self.seam_rows(seam)) for seam in self.seams], joints(terms)
        sizes += [len(joint.here) * joint.term.target.shape[1] for joint in across]
        return self._leaves(terms, across, probe, range(len(self.patches)) if which is None else which), sizes

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
            right += [np.zeros(len(right[0]))] * RANDOM
        sizes = (self.patches.sizes * self.components).tolist()
        return Averages(self.seams, sizes, stacked, np.stack(right, axis=1))

    def _leaves(
        self, terms: Sequence[LocalTerm], across: Sequence[Joint], probe: Coefficients | None, which: range
    ) -> Iterator[Leaf]:
        weights, count = self.weights(terms), len(self.patches)
        joined = self._joined(across, weights)
        terms = [term for term in terms if term.placed.beyond is None]
        at = [by_patch(term.placed.patch, count) for term in terms]
        row_weights = self.row_scales(terms, weights)
        # Random data that are errors of the unknowns of size 1.
        loud = [each / self.scales(term, weights) for each, term in zip(row_weights, terms, strict=True)]
        around: list[list[int]] = [[] for _ in range(count)]
        for number, seam in enumerate(self.seams):
            for side in {seam.first, seam.second}:
                around[side].append(number)
        for patch in which:
            parts, rights, noise, rng = [], [], [], np.random.default_rng(patch)
            for term, where, scale, size in zip(terms, at, row_weights, loud, strict=True):
                here = where[patch]
                if len(here) == 0:
                    continue
                parts.append(self._rows(term, patch, here, scale[here]))
                rights.append((scale[here] * term.target[here]).T.reshape(-1))
                draws = rng.standard_normal((*size[here].shape, RANDOM))
                noise.append((size[here][..., None] * draws).swapaxes(0, 1).reshape(-1, RANDOM))
            links, own = self._links(patch, around[patch], weights)
            shifts = [np.zeros((len(each), 1)) for _, each in links]
            for number, rows, right in joined(patch):
                links.append((number, rows))
                shifts.append(right)
            size, dependent = int(self.patches.sizes[patch]) * self.components, not self.patches.are_polynomials[patch]
            if not (self.cover.whole[patch] or dependent):
                largest = max((float(np.abs(part).max()) for part in parts), default=1.0)
                own.append(REGULAR * largest * np.eye(size))
            nothing = [np.zeros(len(each)) for each in own]
            parts, columns = [*parts, *own], [np.concatenate([*rights, *nothing])]
            if probe is not None:
                known = probe[self.patches.of(patch)].T.reshape(-1)
                silent = [np.zeros((len(each), RANDOM)) for each in own]
                columns += [np.concatenate([part @ known for part in parts]), *np.concatenate([*noise, *silent]).T]
                shifts = [_random_shift(*link, right, known, rng) for link, right in zip(links, shifts, strict=True)]
            shift = np.concatenate(shifts) if any(each.any() for each in shifts) else None
            yield Leaf(np.concatenate(parts), np.stack(columns, axis=1), links, shift, dependent)

    def _joined(
        self, across: Sequence[Joint], weights: Float[np.ndarray, "P C"]
    ) -> Callable[[int], Iterator[tuple[int, np.ndarray, np.ndarray]]]:
        """For a patch the links to patches of other regions: their numbers, rows and right sides."""
        scales = {id(joint.term): joint.term.term.weight * self.scales(joint.term, weights) for joint in across}
        around: dict[int, list[tuple[int, int]]] = {}
        for number, joint in enumerate(across):
            for side, patch in enumerate(joint.sides):
                around.setdefault(patch, []).append((number, side))

        def of(patch: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
            for number, side in around.get(patch, ()):
                term, here = across[number].term, across[number].here
                scale = scales[id(term)][here]
                rows = (1 - 2 * side) * self._rows(term, patch, here, scale, side)
                right = (1 - side) * (scale * term.target[here]).T.reshape(-1, 1)
                yield len(self.seams) + number, rows, right

        return of

    def _rows(
        self, term: LocalTerm, patch: int, here: Int[np.ndarray, " n"], scale: Float[np.ndarray, "n k"], side: int = 0
    ) -> Float[np.ndarray, "r q"]:
        """The scaled rows of a term in a patch, on an interface those of one side: entries one after the other, columns
        component by component."""
        points = term.placed.points[here]
        G = term.sides()[side][1][here] * scale[:, :, None, None]
        if term.term.on is None and self.cover.whole[patch] and self.patches.are_polynomials[patch]:
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


def _random_shift(
    number: int, rows: np.ndarray, right: Float[np.ndarray, "s 1"], known: np.ndarray, rng: np.random.Generator
) -> Float[np.ndarray, "s sides"]:
    """The right sides of a link: its own, the data of a function, which include its jumps, and random data. The numbers
    that both sides share are random, for zeros would be found even where they are not determined."""
    shared = np.random.default_rng(number).standard_normal(len(rows))
    jumps = CONDITION_WEIGHT * rng.standard_normal((RANDOM, len(rows)))
    return np.stack([right[:, 0], rows @ known - CONDITION_WEIGHT * shared, *jumps], axis=1)


def _orders(problem: Problem) -> Int[np.ndarray, "C d"]:
    """The differential order of the equations in each component along each axis. Small coefficients count: they are
    what makes layers."""
    dim, layout = problem.domain.dim, problem.layout
    highest = []
    for term in problem.equations:
        symbol = symbol_of(term.lhs, layout, dim, dim - layout.has_time)
        found = symbol.coefficients(problem.domain_of(term).sample(5))
        sizes = np.abs(found.coefficients).max(axis=(0, 1))
        present = sizes > NOTHING * np.max(sizes, axis=0, initial=0.0)
        powers = np.array(found.indices, dtype=int).reshape(-1, dim)
        highest.append(np.max(present.T[:, :, None] * powers[None], axis=1, initial=0))
    return np.max(highest, axis=0)


@lru_cache(maxsize=512)
def _reference_jets(degrees: tuple[int, ...], which: tuple[Index, ...]) -> np.ndarray:
    """The derivatives of polynomials at as many Chebyshev points, in the cube [-1, 1]^d."""
    dim = len(degrees)
    points = 2 * tensor_chebyshev(tuple(k + 1 for k in degrees)) - 1
    along = tables(points, -np.ones(dim), np.ones(dim), degrees, which)
    return products(along, tensor_indices(degrees), which)
