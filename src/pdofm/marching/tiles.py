"""Space in two and three dimensions: polynomials in the boxes of a tree that fill the domain.

The equation is tested with the polynomials themselves. Jumps between boxes and violated conditions vanish at points of
their own; these rows B act on the equation through multipliers, so that a slab satisfies

    [ M  Bᵀ ] [c]   [f]
    [ B  0  ] [μ] = [g],

which is Galerkin's method in the space of all functions without jumps that satisfy the conditions.
"""

from functools import cached_property

import numpy as np
from jaxtyping import Bool, Complex, Float
from scipy.sparse import coo_array, csc_array

from pdofm.calculus.jets import Index
from pdofm.discrete.cover import Cover, Inside
from pdofm.domain import Domain, Part
from pdofm.domain.tree import BoxTree
from pdofm.features.boxes import InBoxes
from pdofm.features.patches import Patches
from pdofm.marching.arrays import Points, Vector
from pdofm.marching.joints import Joints
from pdofm.marching.saddle import Saddle
from pdofm.marching.spaces import FactorsByRate, States, forget
from pdofm.marching.spots import known_spots
from pdofm.marching.statement import Statement
from pdofm.marching.trees import first_tree, merged_tree, numbers_of, parents, split_tree, tree_of
from pdofm.numerics.nodes import tensor, tensor_chebyshev

COARSER = 0.05
"""Boxes are joined if the tail of their common polynomial is this fraction of what is allowed."""

SMALLEST = 1e-9
"""The width of the smallest box, relative to the domain."""

FEWEST_PATCHES = 4
"""With so few patches nothing is joined."""

PROBES = 64
"""Points on each piece of the boundary that tell whether it passes through a box."""

ON_FACE = 1e-9
"""The distance to the face of a box, relative to the domain, below which a point of the boundary lies on it."""

State = Float[np.ndarray, "... _"]


def quadrature_of(count: int, dim: int) -> tuple[Points, Vector]:
    """Gauss points in the unit cube, and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    products = np.prod(tensor([weights / 2] * dim), axis=1)
    return tensor([(nodes + 1) / 2] * dim), products


def fills_boxes(statement: Statement) -> bool:
    """Whether the domain consists of boxes with sides along the axes. In boxes that the boundary cuts, evolutions were
    found to be unstable."""
    return Tiles.first(statement, 1).fills(statement.domain.space)


class Tiles:
    """Polynomials of one degree along each axis, in the patches of a tree of boxes."""

    kind = "polynomials in boxes"

    def __init__(self, statement: Statement, degree: int, tree: BoxTree, known: dict[int, Inside]):
        self.statement, self.degree, self.tree = statement, degree, tree
        domain, space = statement.domain, statement.domain.space
        self.dim = space.dim
        leaves = tree.leaves.tolist()
        self.cover = Cover(space, tree, dict.fromkeys(leaves, (degree,) * self.dim), known)
        self.patches = self.cover.patches
        self.count = len(self.patches)
        self.q = (degree + 1) ** self.dim
        self.shape = (self.count, statement.components, self.q)
        self.size = int(np.prod(self.shape))
        self._times = domain.t0 + (domain.t1 - domain.t0) * np.array([0.0, 0.3819, 1.0])
        free = np.array([order == 0 for order in statement.time_orders])
        self.algebraic = np.broadcast_to(free[:, None], self.shape).reshape(-1)
        self._place()

    @classmethod
    def first(cls, statement: Statement, degree: int) -> "Tiles":
        """The boxes to begin with."""
        return cls(statement, degree, first_tree(statement.domain.space), {})

    def fills(self, space: Domain) -> bool:
        """Whether the patches fill the domain, and the boundary passes through none of them."""
        slack = ON_FACE * space.size
        lower, upper = self.patches.lower + slack, self.patches.upper - slack
        for piece in space.boundary.pieces:
            points = Part((piece,)).sample(PROBES)[0][:, None]
            if np.any(np.all((points > lower) & (points < upper), axis=2)):
                return False
        return bool(self.cover.whole.all())

    def _place(self) -> None:
        """Points of the equation in each patch, and their weights."""
        unit, weights = quadrature_of(self.degree + 2, self.dim)
        widths = self.patches.upper - self.patches.lower
        self._points = self.patches.lower[:, None] + unit * widths[:, None]
        self._weights = weights * np.prod(widths, axis=1)[:, None]
        self._weights = self._weights / self._weights.sum()
        self._equation = self.statement.placed(self.statement.equation, self._points.reshape(-1, self.dim))
        probes = self.statement.placed(
            self.statement.equation, self._points[:, :: max(1, len(unit) // 4)].reshape(-1, self.dim)
        )
        self._used = probes.used(self._times)

    @cached_property
    def _tables(self) -> dict[Index, Float[np.ndarray, "P n q"]]:
        """The derivatives of the polynomials at the points of the equation."""
        in_space = list(dict.fromkeys([(0,) * self.dim, *(index[:-1] for index in self._used)]))
        return dict(zip(in_space, self._jets(self._points, in_space), strict=True))

    def forget(self) -> None:
        """Free the memory of tables."""
        forget(self, "_tables", "_joints")

    def _jets(self, points: Float[np.ndarray, "P n d"], which: list[Index]) -> Float[np.ndarray, "a P n q"]:
        return np.stack([self.patches.jets(patch, points[patch], which) for patch in range(self.count)], axis=1)

    @cached_property
    def _joints(self) -> Joints:
        return Joints(self.statement, self.cover, self.degree, self._times)

    # Functions

    def _jet(self, states: States, index: Index) -> Float[np.ndarray, "p n C"]:
        of = states[index[-1]].reshape(-1, *self.shape)
        found = np.einsum("bgq,pbcq->pbgc", self._tables[index[:-1]], of, optimize=True)
        return found.reshape(len(of), -1, self.shape[1])

    def quadrature(self) -> tuple[Points, Vector]:
        """The points of the equation and their weights."""
        return self._points.reshape(-1, self.dim), self._weights.reshape(-1)

    def norms(self, state: State) -> Float[np.ndarray, "... C"]:
        """The root mean square of each component over space."""
        of = state.reshape(-1, *self.shape)
        values = np.einsum("bgq,pbcq->pbgc", self._tables[(0,) * self.dim], of, optimize=True)
        return np.sqrt(np.einsum("pbgc,bg->pc", values**2, self._weights)).reshape(*state.shape[:-1], -1)

    @cached_property
    def share(self) -> Vector:
        """The part of space that each patch has."""
        return self._weights.sum(axis=1)

    def tails(self, state: State, scale: Vector) -> Float[np.ndarray, "P d"]:
        """What the last polynomials along each axis of each patch contribute to the norm; the largest over components
        and times."""
        grid = (self.degree + 1,) * self.dim
        squares = (state.reshape(-1, *self.shape) / scale[:, None]) ** 2
        squares = squares.reshape(*squares.shape[:3], *grid).max(axis=(0, 2))
        found = [
            np.sqrt(np.take(squares, [-2, -1], axis=1 + axis).reshape(self.count, -1).sum(axis=1) / 2)
            for axis in range(self.dim)
        ]
        return np.stack(found, axis=1) * np.sqrt(self.share)[:, None]

    # Rows

    def residual(self, states: States, times: Vector) -> Float[np.ndarray, "p _"]:
        """The equation, tested, and all conditions, at several times."""
        p = len(times)
        found = self._equation.residual(times, lambda index: self._jet(states, index), self._used)
        weighted = found.reshape(p, self.count, -1, self.shape[1]) * (self._weights / self.share[:, None])[..., None]
        tested = np.einsum("bgq,pbgk->pbkq", self._tables[(0,) * self.dim], weighted, optimize=True)
        by_component = np.empty_like(tested)
        by_component[:, :, list(self.statement.matched)] = tested
        return np.concatenate([by_component.reshape(p, -1), self._joints.residual(states, times)], axis=1)

    def linearise(self, states: States, time: float) -> dict[int, tuple[csc_array, csc_array]]:
        """The tested equation and the conditions, linearised, by power of the time derivative."""
        G = self._equation.coefficients(time, lambda index: self._jet(states, index), self._used)
        G = G.reshape(self.count, -1, self.shape[1], len(self._used), self.shape[1])
        values = self._tables[(0,) * self.dim] * (self._weights / self.share[:, None])[..., None]
        found: dict[int, tuple[csc_array, csc_array]] = {}
        for power in range(self.statement.order + 1):
            blocks = np.zeros((self.count, self.shape[1], self.q, self.shape[1], self.q))
            for a, index in enumerate(self._used):
                if index[-1] != power:
                    continue
                for k, own in enumerate(self.statement.matched):
                    for c in range(self.shape[1]):
                        factor = G[:, :, k, a, c]
                        if factor.any():
                            table = self._tables[index[:-1]] * factor[..., None]
                            blocks[:, own, :, c] += np.swapaxes(values, 1, 2) @ table
            inside = self.shape[1] * self.q
            each = np.arange(self.size).reshape(self.count, inside)
            rows, columns = np.broadcast_arrays(each[:, :, None], each[:, None, :])
            square = coo_array(
                (blocks.reshape(-1), (rows.reshape(-1), columns.reshape(-1))), shape=(self.size, self.size)
            )
            found[power] = csc_array(square), self._joints.matrix(states, time, power)
        return found

    def factor(self, linear: dict[int, tuple[csc_array, csc_array]], rates: Complex[np.ndarray, " k"]) -> FactorsByRate:
        """Factor the matrix with multipliers for functions that grow as exp(rate t)."""
        found = []
        for rate in rates.tolist():
            own = rate.real if rate.imag == 0 else rate
            square, conditions = linear[0]
            for power in range(1, len(linear)):
                square = square + own**power * linear[power][0]
                conditions = conditions + own**power * linear[power][1]
            found.append(Saddle(csc_array(square), csc_array(conditions)))
        return FactorsByRate(tuple(found))

    # The answer

    @property
    def features(self) -> InBoxes:
        """The space of these polynomials."""
        return self.cover.features

    def coefficients(self, state: Float[np.ndarray, "q _"]) -> Float[np.ndarray, "q m C"]:
        """The coefficients of functions in `features`."""
        return np.swapaxes(state.reshape(-1, *self.shape), 2, 3).reshape(len(state), -1, self.shape[1])

    @cached_property
    def _nodes(self) -> Float[np.ndarray, "P q d"]:
        """Chebyshev points of each patch."""
        unit = tensor_chebyshev((self.degree + 1,) * self.dim)
        return self.patches.lower[:, None] + unit * (self.patches.upper - self.patches.lower)[:, None]

    @cached_property
    def _fit(self) -> Float[np.ndarray, "q q"]:
        """The matrix from values at Chebyshev points to coefficients."""
        return np.linalg.inv(self.patches.jets(0, self._nodes[0], [(0,) * self.dim])[0])

    def fitted(self) -> States:
        """The state at the start, interpolated at Chebyshev points."""
        values = self.statement.start(self._nodes.reshape(-1, self.dim))
        by_patch = values.reshape(len(values), self.count, self.q, -1)
        return list(np.einsum("ij,objc->obci", self._fit, by_patch).reshape(len(values), -1))

    @property
    def _corners(self) -> list[tuple[float, ...]]:
        """The corners of each patch."""
        return list(map(tuple, np.concatenate([self.patches.lower, self.patches.upper], axis=1).tolist()))

    def _moved(self, states: States, other: "Tiles") -> States:
        """The same functions in another tree: interpolated, or copied where a patch has stayed the same."""
        own = {corners: i for i, corners in enumerate(self._corners)}
        same = np.array([own.get(corners, -1) for corners in other._corners])
        new = np.flatnonzero(same < 0)
        found = []
        for state in states:
            of = state.reshape(self.shape)
            moved = np.empty(other.shape)
            moved[same >= 0] = of[same[same >= 0]]
            if len(new):
                at = other._nodes[new].reshape(-1, self.dim)
                coefficients = self.coefficients(state[None])[0]
                values = self.features.expand(at, [(0,) * self.dim], coefficients)[0].reshape(len(new), self.q, -1)
                moved[new] = np.einsum("ij,bjc->bci", self._fit, values)
            found.append(moved.reshape(-1))
        return found

    # Refinement

    def marked(self, tails: Float[np.ndarray, "P d"], tol: float) -> Bool[np.ndarray, "P d"] | None:
        """The patches to halve, along which axes; together the others contribute less than `tol`."""
        widths = (self.patches.upper - self.patches.lower) / (self.tree.box(0)[1] - self.tree.box(0)[0])
        found = (tails > tol / np.sqrt(self.count)) & (widths > SMALLEST)
        return found if found.any() else None

    def refined(self, marks: Bool[np.ndarray, "P d"], states: States) -> "tuple[Tiles, States]":
        """Halve boxes."""
        cuts = {leaf: marks[patch] for patch, members in enumerate(self.cover.members) for leaf in members}
        tree = split_tree(self.tree, {leaf: axes for leaf, axes in cuts.items() if axes.any()})
        other = Tiles(self.statement, self.degree, tree, dict(self.cover.known))
        return other, self._moved(states, other)

    def _meets_spot(self, node: int) -> bool:
        """Whether data vary in a small place in a box: no points are given up there."""
        lower, upper = (np.asarray(each)[None] for each in self.tree.box(node))
        return any(spot.meets(lower, upper)[0] for spot in known_spots(self.statement))

    def coarsened(self, states: States, scales: list[Vector], tol: float) -> "tuple[Tiles, States]":
        """Join pairs of boxes that were cut last, where one polynomial suffices; this space if there are none."""
        pairs = [
            (node, a, b)
            for node, a, b in parents(self.tree).tolist()
            if a in self.cover.numbers and b in self.cover.numbers and not self._meets_spot(node)
        ]
        if not pairs or self.count <= FEWEST_PATCHES:
            return self, states
        allowed = [COARSER * tol / np.sqrt(self.count) * scale for scale in scales]
        joined = {node for node, a, b in pairs if self._suffices(node, (a, b), states, allowed)}
        if not joined:
            return self, states
        other = Tiles(self.statement, self.degree, merged_tree(self.tree, joined), {})
        return other, self._moved(states, other)

    def _suffices(self, node: int, halves: tuple[int, int], states: States, allowed: list[Vector]) -> bool:
        """Whether one polynomial on a box represents the functions on its halves."""
        lower, upper = self.tree.box(node)
        points = lower + tensor_chebyshev((self.degree + 1,) * self.dim) * (upper - lower)
        share = np.sqrt(sum(self.share[self.cover.numbers[n]] for n in halves))
        grid = (self.degree + 1,) * self.dim
        check = np.concatenate([self._points[self.cover.numbers[n]] for n in halves])
        patch = Patches(lower[None], upper[None], np.array([[self.degree] * self.dim]))
        for state, most in zip(states, allowed, strict=True):
            coefficients = self.coefficients(state[None])[0]
            values, true = (self.features.expand(z, [(0,) * self.dim], coefficients)[0] for z in (points, check))
            one = self._fit @ values
            off = np.abs(patch.jets(0, check, [(0,) * self.dim])[0] @ one - true).max(axis=0)
            last = [np.take(one.reshape(*grid, -1), [-2, -1], axis=a).reshape(-1, len(most)) for a in range(self.dim)]
            tail = np.max([np.sqrt(np.sum(each**2, axis=0)) for each in last], axis=0)
            if np.any((tail + off) * share > most):
                return False
        return True

    @property
    def description(self) -> list[float]:
        """The cuts of the tree."""
        return numbers_of(self.tree)

    def described(self, description: list[float]) -> "Tiles":
        """The boxes with this description, with the same degree."""
        return Tiles(self.statement, self.degree, tree_of(self.statement.domain.space, description), {})
