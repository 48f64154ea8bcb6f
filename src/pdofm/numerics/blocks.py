"""Least squares by blocks: many small groups of unknowns, coupled to their neighbours alone.

Every leaf has unknowns of its own, rows that concern only these, and *links*. A link states that some linear functions
of the unknowns of a leaf equal numbers λ that it shares with one other leaf:

    A c ≈ f,      E c - λ ≈ 0.

The two leaves of a link agree in the least-squares sense: the best λ is the mean of both sides, and what remains is
half of the squared jump. The unknowns of a leaf are eliminated by QR, which leaves rows in its λ; then neighbours are
merged, the pair with the smallest resulting front first, and the λ between them are eliminated in turn. Nothing is ever
squared, so the condition number is that of the whole matrix.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from pdofm._types import Vector
from pdofm.errors import SolveError
from pdofm.numerics.cod import LeftAndRight
from pdofm.numerics.sized import Sized
from pdofm.numerics.steps import LeafStep, Matrix, MergeStep

DEPENDENT = 1e-14
"""A column whose part that is independent of those before is below this fraction of it counts as dependent: its unknown
is set to zero."""

FREE, MOST_FREE = 1e-10, 8
"""A column below this fraction may belong to a function that no row sees; so many columns are followed."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """The rows of a group of unknowns: ``own @ c ≈ right``, and for each link, by its number, ``E @ c ≈ λ``, or
    ``E @ c ≈ λ + s`` where `shifts` gives the s of all links, one after the other. If the columns may be `dependent`,
    the directions that the rows of the leaf do not see are left out."""

    own: Matrix
    right: Matrix
    links: Sequence[tuple[int, Matrix]]
    shifts: Matrix | None = None
    dependent: bool = False


@dataclass(frozen=True, eq=False)
class Front(Sized):
    """What is left of groups of unknowns that were eliminated: rows in the λ of some links, and their right side."""

    links: tuple[int, ...]
    rows: Matrix
    right: Matrix


@dataclass
class _Node(Sized):
    """A step of the elimination: unknowns `at` (a leaf, or links) depend on the links `kept`. `inputs` are the nodes
    whose remaining rows it takes, none for a leaf. If a leaf has a `basis`, its unknowns are combinations of that."""

    step: Any
    at: int | tuple[int, ...]
    kept: tuple[int, ...]
    triangle: Matrix
    coupling: Matrix
    inputs: tuple[int, ...] = ()
    basis: Matrix | None = None


class BlockQR(Sized):
    """A block least-squares problem, factored.

    Args:
        leaves: the groups of unknowns; they may come one after the other, so that their rows need not all exist at
            once. A link that only one leaf has is no restriction and is ignored.
        links: the number of λ of each link.
        keep: whether `solve` will be asked for other right sides: it takes about twice the memory.
        fronts: what is left of groups that were eliminated elsewhere.

    Attributes:
        leaves: how many groups of unknowns there are.
        solution: the unknowns of each leaf for the right sides that came with them.
        rank: the number of independent columns, λ included; `columns` is how many there are.
        condition: the largest ratio of a column to its part that is independent of the columns before: a lower bound
            of the condition number with columns scaled to unit norm.
        largest_front: columns of the largest matrix that was factored.
    """

    def __init__(
        self, leaves: Iterable[Leaf], links: Sequence[int], *, keep: bool = False, fronts: Sequence[Front] = ()
    ):
        self._sizes, self._keep = list(links), keep
        self._dropped, self._worst = 0, 1.0  # directions that leaves left out, and the condition of what they kept
        self._nodes: list[_Node] = []
        self._remains: dict[int, tuple[tuple[int, ...], Matrix, Matrix]] = {}  # of fronts: links, rows, right sides
        self._tops: list[Matrix] = []
        self.largest_front = 0
        for number, leaf in enumerate(leaves):
            self._add_leaf(number, leaf)
        self.leaves = len(self._nodes)
        for front in fronts:
            nothing = np.zeros((0, front.rows.shape[1])), np.zeros((0, front.right.shape[1]))
            node = _Node(None, (), front.links, np.zeros((0, 0)), nothing[0])
            self._note(node, nothing[1], front.links, front.rows, front.right)
        self._merge_all()
        self.fronts = [Front(*each) for each in self._remains.values()]
        self._unmerged = list(self._remains)  # the steps that left them
        self._remains.clear()
        diagonals = [(np.abs(np.diagonal(n.triangle)), np.linalg.norm(n.triangle, axis=0)) for n in self._nodes]
        self._ratios = [diagonal / np.where(norms > 0, norms, 1.0) for diagonal, norms in diagonals]
        self._dependent = [ratio <= DEPENDENT for ratio in self._ratios]
        self.rank = sum(int((~each).sum()) for each in self._dependent)
        self.columns = sum(len(node.triangle) for node in self._nodes) + self._dropped
        both = zip(diagonals, self._dependent, strict=True)
        ratios = (float(np.max(n[~bad] / d[~bad], initial=1.0)) for (d, n), bad in both)
        self.condition = max((self._worst, *ratios))
        for top, dependent in zip(self._tops, self._dependent, strict=True):
            top[dependent] = 0.0
        self._finish()

    def _finish(self) -> None:
        """Compute the unknowns of the leaves."""
        self.solution = self._substituted(self._tops, self._dependent)
        self._tops, self.fronts = [], []

    @property
    def nbytes(self) -> int:
        """Bytes of the triangles, couplings and bases."""
        bases = sum(node.basis.nbytes for node in self._nodes if node.basis is not None)
        return bases + sum(node.triangle.nbytes + node.coupling.nbytes for node in self._nodes)

    def solve(self, rights: Sequence[Matrix]) -> list[Matrix]:
        """The unknowns of each leaf for other right sides, k at once: one array of k columns per leaf. Zeros at the end
        of a right side may be left out."""
        tops, _ = self._projected(rights, {})
        return self._substituted(tops, self._dependent)

    def _projected(
        self, rights: Sequence[Matrix], remains: dict[int, Matrix]
    ) -> tuple[list[Matrix], dict[int, Matrix]]:
        """What of right sides belongs to the unknowns of each step, and what is left of them that no step has taken, by
        the number of the step that left it; `remains` has what is left of groups that were eliminated elsewhere."""
        if not self._keep:
            raise SolveError(
                "The reflections were not kept. Make BlockQR(…, keep=True) to solve for other right sides."
            )
        tops, remains = [], dict(remains)
        for number, node in enumerate(self._nodes):
            if isinstance(node.at, int):
                top, remains[number] = node.step.apply(rights[node.at], self._width(node.kept))
            elif node.inputs:
                top, remains[number] = node.step.apply(np.concatenate([remains.pop(i) for i in node.inputs]))
            else:
                top = np.zeros((0, remains[number].shape[1]))
            top[self._dependent[number]] = 0.0
            tops.append(top)
        return tops, remains

    def free(self, links: dict[int, Matrix] | None = None) -> tuple[list[Matrix], Vector]:
        """Vectors that rows hardly see: the unknowns of each leaf, a column per vector, and the norms of the residuals
        that these leave. None come from within leaves that have neighbours. The values of links join `links`."""
        found = [
            (float(self._ratios[i][j]), i, int(j))
            for i, node in enumerate(self._nodes)
            if not isinstance(node.at, int) or not node.kept
            for j in np.flatnonzero(self._ratios[i] < FREE)
        ]
        chosen = sorted(found)[:MOST_FREE]
        tops = [np.zeros((len(node.triangle), len(chosen))) for node in self._nodes]
        fixed = [each.copy() for each in self._dependent]
        for column, (_, i, j) in enumerate(chosen):
            tops[i][j, column] = 1.0
            fixed[i][j] = True
        residuals = np.array([abs(float(self._nodes[i].triangle[j, j])) for _, i, j in chosen])
        return self._substituted(tops, fixed, links), residuals

    def _width(self, links: Iterable[int]) -> int:
        return sum(self._sizes[link] for link in links)

    def _add_leaf(self, number: int, leaf: Leaf) -> None:
        kept = tuple(link for link, _ in leaf.links)
        own, basis, columns = leaf.own, None, leaf.own.shape[1]
        links = np.concatenate([rows for _, rows in leaf.links]) if leaf.links else np.zeros((0, columns))
        if leaf.dependent:
            own, links, basis = self._independent(own, links)
        step = LeafStep(own, links)
        coupling, rest = step.coupling(len(links))
        top, right = step.apply(leaf.right, len(links), leaf.shifts)
        self._note(_Node(step, number, kept, step.triangle, coupling, basis=basis), top, kept, rest, right)

    def _independent(self, own: Matrix, links: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """The rows of a leaf in unknowns of which they see all alike, and the old unknowns in terms of these."""
        short = max(0, own.shape[1] - len(own) - len(links))
        found = LeftAndRight(np.concatenate([own, links, np.zeros((short, own.shape[1]))]), DEPENDENT)
        self._dropped += own.shape[1] - found.rank
        self._worst = max(self._worst, found.condition)
        rows = found.range
        return rows[: len(own)], rows[len(own) : len(own) + len(links)], found.preimages

    def _note(self, node: _Node, top: Matrix, kept: tuple[int, ...], rest: Matrix, right: Matrix) -> None:
        if not self._keep:
            node.step = None
        self._remains[len(self._nodes)] = kept, rest, right
        self._nodes.append(node)
        self._tops.append(top)

    def _merge_all(self) -> None:
        """Merge neighbours until no links are left, the smallest resulting front first."""
        owners: dict[int, list[int]] = {}
        for front, (links, _, _) in self._remains.items():
            for link in links:
                owners.setdefault(link, []).append(front)

        def neighbours(front: int) -> set[int]:
            return {other for link in self._remains[front][0] for other in owners[link] if other != front}

        def cost(a: int, b: int) -> float:
            first, second = set(self._remains[a][0]), set(self._remains[b][0])
            return self._width(first ^ second) + 0.5 * self._width(first & second)

        heap = [(cost(a, b), a, b) for a in self._remains for b in neighbours(a) if a < b]
        heapq.heapify(heap)
        while heap:
            _, a, b = heapq.heappop(heap)
            if a not in self._remains or b not in self._remains:
                continue
            new = len(self._nodes)
            self._merge(a, b)
            for link in self._remains[new][0]:
                owners[link] = [new if each in (a, b) else each for each in owners[link]]
            for other in neighbours(new):
                heapq.heappush(heap, (cost(other, new), other, new))

    def _merge(self, a: int, b: int) -> None:
        """Join two fronts and eliminate the links between them."""
        parts = [self._remains.pop(a), self._remains.pop(b)]
        both = [set(links) for links, _, _ in parts]
        gone = tuple(link for link in parts[0][0] if link in both[1])
        kept = tuple(link for links, _, _ in parts for link in links if not (link in both[0] and link in both[1]))
        starts, total = {}, 0
        for link in (*gone, *kept):
            starts[link] = total
            total += self._sizes[link]
        front = np.zeros((sum(len(rows) for _, rows, _ in parts), total), order="F")
        row = 0
        for links, rows, _ in parts:
            at = np.concatenate([np.arange(starts[link], starts[link] + self._sizes[link]) for link in links])
            front[row : row + len(rows), at] = rows
            row += len(rows)
        self.largest_front = max(self.largest_front, total)
        step = MergeStep(front, self._width(gone))
        top, right = step.apply(np.concatenate([right for _, _, right in parts]))
        self._note(_Node(step, gone, kept, step.triangle, step.top, (a, b)), top, kept, step.rest, right)

    def _substituted(
        self, tops: Sequence[Matrix], fixed: Sequence[np.ndarray], links: dict[int, Matrix] | None = None
    ) -> list[Matrix]:
        """Back-substitution, the last step first. Unknowns that are `fixed` have the values on the right side. The
        values of all links join those in `links` that are known."""
        links = {} if links is None else links
        found: list[Matrix] = [np.zeros((0, 0))] * self.leaves
        for node, top, given in zip(reversed(self._nodes), reversed(tops), reversed(fixed), strict=True):
            known = [links.get(link, np.zeros((self._sizes[link], top.shape[1]))) for link in node.kept]
            right = top - node.coupling @ np.concatenate(known) if known else np.array(top)
            triangle = node.triangle
            if given.any():
                triangle = np.where(given[:, None], np.eye(len(triangle)), triangle)
                right[given] = top[given]
            values = solve_triangular(triangle, right, check_finite=False) if len(triangle) else right
            if isinstance(node.at, int):
                found[node.at] = values if node.basis is None else node.basis @ values
            elif node.at:
                ends = np.cumsum([self._sizes[link] for link in node.at])
                links.update(zip(node.at, np.split(values, ends[:-1]), strict=True))
        return found
