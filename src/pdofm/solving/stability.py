"""How much a solution can change with its data, and what the data leave free.

For the rows of the system in physical units (the root mean square over each term) and the features Φ at sample points

    γ = max ‖Φ c‖ / ‖A c‖

is the size of the largest solution that data of size 1 can cause: ‖u - u*‖ ≤ γ ‖A u - f‖. With A = QR it is the largest
singular value of Φ R⁻¹, and as the leading block of R belongs to the leading features, coarser spaces have theirs for
nothing. Where a problem is well-posed γ does not depend on the space; where the data leave a part of the solution free,
or where the problem is ill-posed, it grows with the number of features without bound.

The coarse quarter of the features tells that apart at little cost. Only where γ grows there all of them are looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Points
from pdofm.calculus.symbol import random_jet
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import feature_values
from pdofm.discrete.leftsides import local_sides
from pdofm.discrete.system import System
from pdofm.domain import Domain
from pdofm.features import Features
from pdofm.numerics.lstsq import QR, Factorization
from pdofm.problem.problem import Problem
from pdofm.solving.sizes import row_sizes

COARSE = (1 / 8, 1 / 4)
"""Fractions of the features at which γ is measured first."""

ALL = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Fractions at which it is measured where it grows among the first."""

LOWEST_SIZE = 4
"""Spaces of fewer functions per component say nothing."""

SUSPICIOUS, SAMPLING = 1.5, 2.5
"""Growth from one coarse space to the next from which all of the features are looked at: at the fitted points, and at
held-out ones, which are so few on the boundary that γ is less certain."""

SAMPLED = 256
"""Points at which functions are compared."""

ORDINARY = 1e3
"""If the sizes of the terms of a problem differ by more than this, as they do in a domain of size 1e-3, growth is
measured in units in which they do not: in others one term hides what the others leave free."""

TYPICAL = 64
"""Points at which the size of a term is measured."""

METHOD = QR(rcond=1e-14)

SQUARINGS = 6
"""Squarings of a Gram matrix: a singular value 4 % below the largest one then has a hundredth of its weight."""


@dataclass(frozen=True, eq=False)
class Stability:
    """The stability constant of a problem in a space.

    Attributes:
        constant: γ, the largest over the components.
        growth: by how much γ grew when the features were doubled for the last time; 1 where it does not grow.
        grown: γ relative to that of the coarsest space.
        amplification: γ times the size of the data, relative to the solution.
        bound: γ times the residual at held-out points, relative to the solution.
        function: the largest function of the space for unit data, where γ grows; else None.
    """

    constant: float
    growth: float
    grown: float
    amplification: float
    bound: float
    function: Coefficients | None = None


def measure(
    discretisation: Discretisation, fitted: System | None, held_out: System, points: Points, found: Coefficients
) -> Stability:
    """The stability of a problem, linearised at the solution with the coefficients `found`.

    `held_out` is the system there at points that are not fitted, `points` are those inside the domain; `fitted`
    is the one that was solved, if its rows are still there.
    """
    points, known = points[:SAMPLED], discretisation.held_out_values
    values = feature_values(discretisation.features, points) if known is None else known[: len(points)]
    values = values / len(points) ** 0.5
    systems = discretisation, fitted, held_out
    measured = _measured(*systems, values, found, {})
    sizes = _sizes_of_terms(discretisation)
    if max(sizes.values()) <= ORDINARY * min(sizes.values()):
        return measured
    own = _measured(*systems, values, found, sizes)
    return replace(own, constant=measured.constant, bound=measured.bound)


def _measured(
    discretisation: Discretisation,
    fitted: System | None,
    held_out: System,
    values: Float[np.ndarray, "n m"],
    found: Coefficients,
    sizes: Mapping[str, float],
) -> Stability:
    """The stability with the sides of each term divided by its size, 1 if it has none."""
    features, components = discretisation.features, discretisation.problem.layout.components
    size = max(float(np.linalg.norm(values @ found, axis=0).max()), 1e-300)
    rows = held_out if fitted is None else fitted
    constants = _constants(rows, values, _counts(features, COARSE), components, sizes)[0]
    function = None
    if len(constants) > 1 and np.max(constants[-1] / constants[0]) <= (SAMPLING if fitted is None else SUSPICIOUS):
        growth = grown = 1.0
    else:
        counts = _counts(features, ALL)
        rows = discretisation.system(found, discretisation.blocks) if fitted is None else fitted
        if rows.folded is not None:  # the rows are not kept, and there are fewer at the held-out points
            rows, counts = held_out, [each for each in counts if 2 * each <= features.size] or counts[:1]
        constants, largest = _constants(rows, values, counts, components, sizes)
        growth, grown = (float(np.max(constants[-1] / before)) for before in (constants[-2:][0], constants[0]))
        function = np.zeros_like(found)
        function[: counts[-1]] = largest
    constant, units = float(np.max(constants[-1])), _units(held_out, sizes)
    data, residual = held_out.right * units, (held_out.left - held_out.right) * units
    amplification, bound = (constant * float(np.linalg.norm(each)) / size for each in (data, residual))
    return Stability(constant, growth, grown, amplification, bound, function)


_known_sizes: "WeakKeyDictionary[Problem, dict[str, float]]" = WeakKeyDictionary()


def _sizes_of_terms(discretisation: Discretisation) -> dict[str, float]:
    """The left side of each term for a function of size 1 that varies over the size L of the domain, Σ_α |G_α| / L^|α|;
    1 where it is not known."""
    problem = discretisation.problem
    found, length = _known_sizes.setdefault(problem, {}), float(problem.domain.size)
    for block in discretisation.blocks:
        if block.term.name in found:
            continue
        sizes = []
        for side in local_sides(problem.layout, block.part(slice(TYPICAL))):
            symbol, at = side.symbol, (side.points, side.normals)
            if symbol.is_computable:
                which = symbol.indices(*at)
                jet = None if symbol.is_affine else random_jet(len(which), len(side.points), symbol.layout.components)
                linear = symbol.linearise(*at, jet)
                if linear is not None:
                    one = np.ones(linear.coefficients.shape[3])
                    sizes.append(float(row_sizes(linear.coefficients, linear.indices, length, one).max()))
        found[block.term.name] = max(sizes, default=1.0) or 1.0
    return found


def _constants(
    rows: System, values: np.ndarray, counts: list[int], components: int, sizes: Mapping[str, float]
) -> tuple[list[np.ndarray], np.ndarray]:
    """γ of the leading features, for several numbers of them, and the largest function of the last space."""
    if not counts:
        return [], np.zeros((0, components))
    factored = METHOD.factor(np.asfortranarray(_physical(rows, _units(rows, sizes), counts[-1] * components)))
    each = [_largest(values, factored, count, components) for count in counts]
    return [constant for constant, _ in each], each[-1][1]


def _counts(features: Features, fractions: tuple[float, ...]) -> list[int]:
    """Numbers of leading features, increasing. Features of one rank belong together."""
    ranks, size = features.ranks, features.size
    counts = {int(np.searchsorted(ranks, ranks[int(each * size)])) if each < 1 else size for each in fractions}
    return sorted(each for each in counts if each >= LOWEST_SIZE) or ([size] if 1.0 in fractions else [])


def _units(system: System, sizes: Mapping[str, float]) -> Float[np.ndarray, " n"]:
    """What a left or right side is multiplied by, so that the sum of squares is that of the mean squares of terms, each
    relative to its size."""
    found = np.empty(len(system.right))
    for name, rows in system.rows.items():
        found[rows] = (rows.stop - rows.start) ** -0.5 / sizes.get(name, 1.0)
    return found


def _physical(system: System, units: np.ndarray, columns: int) -> Float[np.ndarray, "n columns"]:
    """The leading columns of the matrix in physical units."""
    return system.A[:, :columns] * (units / system.scales)[:, None]


def _largest(
    values: Float[np.ndarray, "n m"], factored: Factorization, size: int, components: int
) -> tuple[Float[np.ndarray, " C"], Float[np.ndarray, "k C"]]:
    """γ of the leading `size` features for each component, and the function that is largest."""
    columns = size * components
    inverse = factored.coarse(np.eye(len(factored.scale), columns), columns)[:columns].reshape(size, components, -1)
    found, functions = np.zeros(components), []
    for c in range(components):
        found[c], vector = _largest_singular(values[:, :size] @ inverse[:, c])
        functions.append(inverse @ vector)
    return found, functions[int(np.argmax(found))]


def _largest_singular(matrix: Float[np.ndarray, "n k"]) -> tuple[float, Float[np.ndarray, " k"]]:
    """The largest singular value of a matrix, to a few percent, and its right vector: power iteration with the Gram
    matrix of the shorter side, whose powers come from repeated squaring."""
    is_tall = matrix.shape[0] >= matrix.shape[1]
    power = matrix.T @ matrix if is_tall else matrix @ matrix.T
    for _ in range(SQUARINGS):
        power /= max(float(np.abs(power).max()), 1e-300)
        power = power @ power
    vector = power[:, np.argmax(np.diagonal(power))]
    vector = vector if is_tall else matrix.T @ vector
    vector = vector / max(float(np.linalg.norm(vector)), 1e-300)
    return float(np.linalg.norm(matrix @ vector)), vector


def place_of(domain: Domain, features: Features, function: Coefficients) -> str:
    """Where a function is largest, in words."""
    inside = domain.sample(SAMPLED)
    points, names = [inside], ["inside"] * len(inside)
    for piece in domain.pieces:
        found = piece.sample(SAMPLED, "sobol", np.random.default_rng(0))[0]
        points.append(found)
        names += [f"on {piece.name!r}"] * len(found)
    if domain.has_time:
        moments = [domain.lower[-1], domain.upper[-1]]
        for moment in moments:
            points.append(np.concatenate([inside[:, :-1], np.full((len(inside), 1), moment)], axis=1))
            names += [f"at the time {moment:g}"] * len(inside)
    together = np.concatenate(points)
    sizes = np.abs(feature_values(features, together) @ function).max(axis=1)
    at = int(np.argmax(sizes))
    return f"{names[at]}, near {np.round(together[at], 6).tolist()}"
