"""How spaces grow in a search: the first size, the ratio of sizes, and how long growth pays."""

from collections.abc import Iterator

FIRST_SIZES = {1: 32, 2: 120, 3: 220}
"""Features of the smallest space that is tried, by dimension; in more dimensions as in three."""

GROWTH = 1.8
"""Ratio of the sizes of consecutive spaces. In two dimensions it raises the degree of polynomials by a third."""

PAYS = 20.0
"""Growth pays as long as two consecutive steps divide the estimate by this at least."""


def first_size(dim: int) -> int:
    """Features of the smallest space that is tried in `dim` dimensions."""
    return FIRST_SIZES.get(dim, FIRST_SIZES[3])


def sizes(dim: int, largest: int, growth: float = GROWTH) -> Iterator[int]:
    """Growing numbers of features; the last one is `largest`, the budget."""
    first = size = float(first_size(dim))
    while (size if size == first else 1.2 * size) < largest:  # no size just below the budget
        yield round(size)
        size *= growth
    yield largest


def pays(estimates: list[float], tol: float) -> bool:
    """Whether the estimates of one space after another fall fast enough to go on."""
    return len(estimates) < 3 or estimates[-1] <= max(tol, estimates[-3] / PAYS)


def ends_soon(estimates: list[float], tol: float) -> bool:
    """Whether growth ends within a step: for the first three spaces, and if the estimates, falling on as in the last
    step, are expected to reach the tolerance in the fourth."""
    if len(estimates) == 3:
        return estimates[-1] * min(estimates[-1] / estimates[-2], 1.0) <= tol
    return len(estimates) < 3


def arrives(estimates: list[float], tol: float) -> bool:
    """Whether the estimates, falling on as in the last step, are expected to reach the tolerance within two more."""
    return len(estimates) < 3 or estimates[-1] * min(estimates[-1] / estimates[-2], 1.0) ** 2 <= tol
