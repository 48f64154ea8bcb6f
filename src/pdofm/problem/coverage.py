"""Parts of the boundary on which an equation needs more conditions than it has.

The type of an equation follows from the determinant of its symbol, a polynomial in the frequency ξ: if its part of
highest degree d vanishes for no real ξ ≠ 0, the equation is elliptic and needs d / 2 conditions at every point of the
boundary. An equation of first order in time that is elliptic in space needs as many on the lateral boundary. On an
interval an equation of order d needs d conditions in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Complex, Float, Int

from pdofm._types import Points
from pdofm.calculus.symbol import Linearisation, Symbol, random_jet, symbol_of
from pdofm.calculus.terms import Average, Layout, Term
from pdofm.domain import Domain, Part
from pdofm.domain.boundary import Piece
from pdofm.problem.conditions import JUST_INSIDE

if TYPE_CHECKING:
    from pdofm.problem.problem import Problem

POINTS = 12
"""Points inside the domain at which the type of an equation is determined."""

DIRECTIONS = 180
"""Directions ξ in which the symbol is looked at."""

DEGENERATE = 1e-3
"""A leading part that falls below this fraction of its maximum, over directions or towards the boundary, is not counted
as elliptic: nothing is certain then."""

VANISHING = 1e-10
"""A coefficient of the determinant below this fraction of the largest one is rounding."""

SAMPLED = 1500
"""Points of a piece of the boundary that are compared with the parts that have conditions; four times as many are taken
of these."""

FARTHEST = 4.0
"""A point is covered by a part if it has a neighbour among the points of the part within so many of their spacings."""

LEAST_GAP = 3
"""So many sampled points of a piece without conditions are a gap, not an effect of sampling."""

FEW_POINTS = 10
"""Conditions at no more single points than this replace none on a part of the boundary."""

GROWS = "Small changes of the data would change the solution without bound"


@dataclass(frozen=True)
class Gap:
    """What lacks conditions: why, and what to do."""

    why: str
    remedy: str


def find_gap(problem: "Problem") -> Gap | None:
    """Where the boundary certainly lacks conditions; None if it does not, or if that cannot be told: data inside the
    domain may make up for conditions, and regions and unknown numbers are not looked at."""
    if problem.regions is not None or problem.measured or problem.parameters.names:
        return None
    domain, layout = problem.domain, problem.layout
    conditions, space_dim = problem.terms[1:], problem.domain.dim - problem.layout.has_time
    symbol = symbol_of(problem.equations[0].lhs, layout, domain.dim, space_dim)
    if not (symbol.is_small and symbol.entries == layout.components):
        return None
    points, counts = domain.sample(POINTS), _Counts(domain, layout, conditions)
    if layout.has_time:
        return _gap_in_time(symbol, domain, points, counts)
    degree = _degree(symbol, points, domain.dim)
    if degree is None or degree == 0:
        return None
    if domain.dim == 1:
        return _missing_at_ends(symbol, domain, degree, counts)
    return None if degree % 2 else _missing_on_boundary(symbol, domain, degree, domain.dim, counts, "elliptic")


def _gap_in_time(symbol: Symbol, domain: Domain, points: Points, counts: "_Counts") -> Gap | None:
    """What an equation in time lacks, if it is parabolic or, against expectation, elliptic in space and time."""
    degree = _degree(symbol, points, domain.dim)
    start, end = (counts.at_time(float(t)) for t in (domain.lower[-1], domain.upper[-1]))
    if degree is not None and degree > 0 and degree % 2 == 0 and counts.at_points <= FEW_POINTS:
        if start and end:
            return None
        return Gap(
            f"the equation is elliptic in space and time, of order {degree}: it needs {degree // 2} conditions at the "
            f"first time and {degree // 2} at the last one, but has {start} and {end}. {GROWS}",
            "check the sign of the derivatives in time, or give conditions on=domain.at(t) at both times",
        )
    space_dim = domain.dim - 1
    degree = _degree(symbol, points, space_dim)
    is_first_order = symbol.layout.components == 1 and symbol.orders(points)[0, -1] == 1
    if degree is None or degree == 0 or degree % 2 or not is_first_order:
        return None
    forward = _runs_forward(symbol, points, space_dim)
    if forward is None:
        return None
    if (start, end) != (0, 0) and (start, end)[not forward] == 0:
        first, last = ("first", "last") if forward else ("last", "first")
        return Gap(
            f"the equation is parabolic and carries what is given at the {first} time to the {last} one, but the "
            f"condition is at the {last} time. {GROWS}",
            f"check the sign of the derivative in time, or give the condition at the {first} time (on=domain.at(t))",
        )
    return _missing_on_boundary(symbol, domain, degree, space_dim, counts, "parabolic")


def _runs_forward(symbol: Symbol, points: Points, space_dim: int) -> bool | None:
    """Whether a parabolic equation of first order in time damps high frequencies forward in time; None if that changes
    from point to point."""
    found = symbol.coefficients(points)
    leading = _leading(found, 1, space_dim)
    in_time = (*(0,) * space_dim, 1)
    if leading is None or in_time not in found.indices:
        return None
    signs = np.sign(np.real(leading[1]) / found.coefficients[:, 0, found.indices.index(in_time), :1])
    return bool(signs[0, 0] > 0) if np.all(signs == signs[0, 0]) else None


def _missing_on_boundary(
    symbol: Symbol, domain: Domain, degree: int, space_dim: int, counts: "_Counts", kind: str
) -> Gap | None:
    """A place on the boundary with fewer than degree / 2 conditions."""
    needed = degree // 2
    if counts.at_points > FEW_POINTS:
        return None
    pieces = [(piece, *counts.on(piece)) for piece in domain.pieces]
    if any(found.max(initial=0) > needed for *_, found in pieces):
        return None  # more conditions than needed elsewhere may make up for those that are missing
    for piece, points, normals, found in pieces:
        missing = found < needed
        near = (points - JUST_INSIDE * domain.size * normals)[missing]
        if missing.sum() < min(LEAST_GAP, len(found)) or not _is_regular(symbol, domain, near, space_dim):
            continue
        middle = points[missing][np.argmin(np.linalg.norm(points[missing] - points[missing].mean(axis=0), axis=1))]
        where = repr(piece.name) if missing.all() else f"{missing.mean():.1%} of {piece.name!r}"
        given = int(found[missing].min())
        lacking = "no condition" if given == 0 else f"{given} of {needed} conditions"
        return Gap(
            f"the equation is {kind}, of order {degree} in space, and there is {lacking} on {where}, for instance at "
            f"{np.round(middle, 6).tolist()}",
            f"give {needed - given} more there, such as Dirichlet(value, on=domain.part(name)), or leave out on= to "
            "state one on the whole boundary",
        )
    return None


def _missing_at_ends(symbol: Symbol, domain: Domain, degree: int, counts: "_Counts") -> Gap | None:
    """An ordinary differential equation that has fewer conditions than its order."""
    given = counts.at_points + sum(int(counts.on(piece)[2].max()) for piece in domain.pieces) + counts.others
    ends = np.array([domain.lower, domain.upper]) + JUST_INSIDE * domain.size * np.array([[1.0], [-1.0]])
    if given >= degree or not _is_regular(symbol, domain, ends, 1):
        return None
    conditions = "condition" if given == 1 else "conditions"
    return Gap(
        f"the equation is an ordinary one of order {degree}, and has {given} {conditions}",
        f"give {degree - given} more, at one end, on=domain.part(name), or at both",
    )


class _Counts:
    """How many scalar conditions hold at points of the boundary, and elsewhere."""

    def __init__(self, domain: Domain, layout: Layout, conditions: Sequence[Term]):
        self.domain, self.dim = domain, domain.dim
        self.at_points = self.others = 0
        self._times: list[tuple[float, int]] = []
        self._parts: list[tuple[Part, int]] = []
        for term in conditions:
            rows = symbol_of(term.lhs, layout, domain.dim, domain.dim - layout.has_time).entries
            if isinstance(term.on, Average):
                self.others += rows
            elif isinstance(term.on, Part):
                self._parts.append((term.on, rows))
                times = term.on.sample(8)[0][:, -1] if layout.has_time else np.arange(2.0)
                if np.ptp(times) == 0:
                    self._times.append((float(times[0]), rows))
                if term.kind == "periodic":
                    axis = next(i for i, name in enumerate(_faces(self.dim)) if name in term.on.names)
                    self._parts.append((domain.face(axis, 1), rows))
            elif term.on is not None:
                self.at_points += rows * len(np.asarray(term.on))

    def at_time(self, t: float) -> int:
        """How many conditions hold in space at a time."""
        return sum(rows for at, rows in self._times if abs(at - t) <= 1e-9 * self.domain.size)

    def on(self, piece: Piece) -> tuple[Points, Points, Int[np.ndarray, " n"]]:
        """Points of a piece with their normals, and how many conditions hold at each."""
        is_cut = any(each.name == piece.name and each is not piece for part, _ in self._parts for each in part.pieces)
        points, normals = piece.sample(SAMPLED if is_cut else LEAST_GAP, "sobol", np.random.default_rng(0))
        found = np.zeros(len(points), dtype=int)
        for part, rows in self._parts:
            if any(each is piece for each in part.pieces):
                found += rows
            elif piece.name in part.names:
                found[self._near(points, [each for each in part.pieces if each.name == piece.name], piece.dim)] += rows
        return points, normals, found

    def _near(self, points: Points, pieces: Sequence[Piece], dim: int) -> np.ndarray:
        """Which points lie on pieces that were cut from the same one."""
        from scipy.spatial import cKDTree  # slow to import

        if dim > 2:
            return np.ones(len(points), dtype=bool)
        rng, unit = np.random.default_rng(0), np.maximum(self.domain.upper - self.domain.lower, 1e-300)
        covered = np.zeros(len(points), dtype=bool)
        for piece in pieces:
            own = piece.sample(4 * SAMPLED, "sobol", rng)[0] / unit
            tree = cKDTree(own)
            spacing = np.quantile(np.asarray(tree.query(own, k=[2])[0]), 0.99) if len(own) > 1 else 0.0
            covered |= tree.query(points / unit)[0] <= FARTHEST * spacing + 1e-9
        return covered


def _faces(dim: int) -> list[str]:
    return [f"x{axis}=lower" for axis in range(dim)]


def _degree(symbol: Symbol, points: Points, space_dim: int) -> int | None:
    """The degree of the determinant of the symbol in the frequency along space, if it is the same in all directions
    and at all points, and its leading part vanishes nowhere; else None."""
    found = symbol.coefficients(points)
    leading = _leading(found, symbol.layout.components, space_dim)
    if leading is None:
        return None
    degree, values = leading
    if not symbol.is_affine:  # the type may depend on the solution: it must be the same at another one
        other = -random_jet(len(found.indices), len(points), symbol.layout.components)
        leading = _leading(symbol.coefficients(points, other), symbol.layout.components, space_dim)
        if leading is None or leading[0] != degree:
            return None
        values = np.concatenate([values, leading[1]])
    sizes = np.abs(values)
    if not sizes.min() > DEGENERATE * sizes.max():
        return None
    turned = values * 1j**-degree  # real, as the coefficients are
    alike = (turned.real > 0).all() or (turned.real < 0).all()
    return degree if space_dim == 1 or alike else None


def _leading(
    found: Linearisation, components: int, space_dim: int
) -> tuple[int, Complex[np.ndarray, "n directions"]] | None:
    """The degree of the determinant and its leading coefficient at each point in each direction."""
    order = max((sum(index[:space_dim]) for index in found.indices), default=0)
    most = order * components
    directions = _directions(space_dim)
    in_space = [i for i, index in enumerate(found.indices) if not any(index[space_dim:])]
    powers = np.array([found.indices[i][:space_dim] for i in in_space], dtype=int).reshape(len(in_space), space_dim)
    monomials = np.prod(directions[:, None, :] ** powers[None], axis=2)
    # The determinant as a polynomial in the length s of the frequency, by its values at roots of unity.
    s = np.exp(2j * np.pi * np.arange(most + 1) / (most + 1))
    factors = monomials[None] * (1j * s[:, None, None]) ** powers.sum(axis=1)
    matrices = np.einsum("nkac,sda->ndskc", found.coefficients[:, :, in_space], factors)
    if not np.isfinite(matrices).all():
        return None
    polynomial = np.fft.fft(np.linalg.det(matrices), axis=2) / (most + 1)
    sizes = np.abs(polynomial)
    is_there = (sizes > VANISHING * sizes.max(initial=0.0)).all(axis=(0, 1))
    is_anywhere = (sizes > VANISHING * sizes.max(initial=0.0)).any(axis=(0, 1))
    if not is_anywhere.any():
        return None
    degree = int(np.flatnonzero(is_anywhere)[-1])
    return (degree, polynomial[:, :, degree]) if is_there[degree] else None


def _directions(dim: int) -> Float[np.ndarray, "k d"]:
    """Unit vectors, one of each pair of opposite ones, with those along the axes."""
    if dim == 1:
        return np.ones((1, 1))
    if dim == 2:
        angles = np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    some = np.random.default_rng(0).standard_normal((DIRECTIONS, dim))
    return np.concatenate([np.eye(dim), some / np.linalg.norm(some, axis=1, keepdims=True)])


def _is_regular(symbol: Symbol, domain: Domain, points: Points, space_dim: int) -> bool:
    """Whether the coefficients at points near the boundary are like those inside: neither singular nor degenerate."""
    near = symbol.coefficients(points[:: max(1, len(points) // POINTS)][:POINTS])
    inside = symbol.coefficients(domain.sample(POINTS))
    both = [_leading(each, symbol.layout.components, space_dim) for each in (near, inside)]
    if any(each is None for each in both):
        return False
    (degree, there), (usual, here) = both  # type: ignore[misc]
    largest, smallest = np.abs(near.coefficients).max(), np.abs(there).min()
    return bool(
        degree == usual
        and largest <= np.abs(inside.coefficients).max() / DEGENERATE
        and smallest >= DEGENERATE * np.abs(here).max()
    )
