"""Places where a coefficient of an equation changes steeply, though smoothly.

A coefficient that changes by a factor over a thousandth of the domain may do so between all collocation points. In
``div(a grad u)`` the flux across such a place is then lost, as it is at a jump (see `jumps`), and a wrong solution
satisfies the equation at the points. The places are known before anything is solved: the symbol shows them.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.calculus.symbol import Symbol, random_jet
from pdofm.domain import Domain
from pdofm.numerics.sampling import spread

PAIRS, SEGMENTS = 1024, 64
"""Number of random pairs of points whose coefficients are compared, and of those with the largest differences that are
searched for a steep change in between."""

GENTLE = 6
"""Number of halvings after which a gentle change has fallen to a small part: a change that is still half as large is
steeper than a 2^-6th of the segment."""

HALVINGS = 44
"""Number of halvings after which a change that is still as large is a jump: a few thousand roundings are left."""

SMALLEST_CHANGE = 1e-2
"""The smallest change that is searched for, as a fraction of the largest coefficient."""

NEGLIGIBLE = 1e-6
"""A coefficient below this fraction of the largest one is not looked at."""

PLACES = 16
"""Largest number of places that are returned: enough for a few fronts, and cheap to look at for every solution."""


class Transition(NamedTuple):
    """A place where a coefficient changes steeply: a point, the direction of the change, and the length over which it
    takes place."""

    point: Float[np.ndarray, " d"]
    direction: Float[np.ndarray, " d"]
    width: float


@lru_cache(maxsize=256)
def transitions(symbol: Symbol, domain: Domain) -> tuple[Transition, ...]:
    """The places where coefficients of a left side change steeply; none if they do not depend on the point, or if the
    derivatives are too many for a symbol."""
    if not symbol.is_small or symbol.has_constant_coefficients:
        return ()
    points = domain.sample(2 * PAIRS, "random", key=3)
    low, high = points[:PAIRS], points[PAIRS : 2 * PAIRS]
    values = _coefficients(symbol, points, float(domain.size))
    relative = np.abs(values[PAIRS:] - values[:PAIRS]) / _sizes(values)
    watched, whole = np.argmax(relative, axis=1), np.max(relative, axis=1)  # which coefficient, and how it changes
    most = np.argsort(-whole, kind="stable")[:SEGMENTS]
    most = most[whole[most] > SMALLEST_CHANGE]
    if len(most) == 0:
        return ()
    low, high, watched = low[most], high[most], watched[most]

    def value(points: Points) -> Float[np.ndarray, " n"]:
        return np.take_along_axis(_coefficients(symbol, points, float(domain.size)), watched[:, None], axis=1)[:, 0]

    below, above = value(low), value(high)
    whole = np.abs(above - below)
    found: list[tuple[Float[np.ndarray, " d"], float, int]] = []
    for halving in range(HALVINGS):
        if len(low) == 0:
            break
        middle = (low + high) / 2
        there = value(middle)
        left, right = np.abs(there - below), np.abs(above - there)
        is_steep = np.maximum(left, right) >= whole / 2
        if halving >= GENTLE:
            ended = np.flatnonzero(~is_steep & domain.contains(middle))
            lengths = np.linalg.norm(high - low, axis=1)
            found += [(middle[i], float(lengths[i]), int(watched[i])) for i in ended]
        is_left = left >= right
        high, above = np.where(is_left[:, None], middle, high), np.where(is_left, there, above)
        low, below = np.where(is_left[:, None], low, middle), np.where(is_left, below, there)
        low, high, below, above, whole, watched = (each[is_steep] for each in (low, high, below, above, whole, watched))
    kept = [found[i] for i in spread(len(found), PLACES)]
    return tuple(
        each
        for middle, length, which in kept
        for each in _transition(symbol, middle, length, which, float(domain.size))
    )


def _coefficients(symbol: Symbol, points: Points, length: float) -> Float[np.ndarray, "n f"]:
    """All coefficients of the symbol at points, for the same jet at each point; that of a derivative of order k is
    divided by length^k, which makes them comparable."""
    which = symbol.indices(points, np.zeros((len(points), symbol.space_dim)))
    jet = random_jet(len(which), 1, symbol.layout.components)
    found = symbol.coefficients(points, np.broadcast_to(jet, (len(jet), len(points), jet.shape[2]))).coefficients
    units = length ** -np.sum(which, axis=1, dtype=float)
    return np.nan_to_num((found * units[:, None]).reshape(len(points), -1), posinf=0.0, neginf=0.0)


def _sizes(values: Float[np.ndarray, "n f"]) -> Float[np.ndarray, " f"]:
    """The largest value of each coefficient; infinite where it is negligible. The tail of a derivative, far from the
    place where it is large, would otherwise pass for a change of its own."""
    sizes = np.max(np.abs(values), axis=0)
    return np.where(sizes > NEGLIGIBLE * np.max(sizes), sizes, np.inf)


def _transition(
    symbol: Symbol, point: Float[np.ndarray, " d"], length: float, watched: int, size: float
) -> list[Transition]:
    """The transition at a point where a coefficient changes over about `length`; the direction is that of its
    gradient."""
    steps = length / 4 * np.eye(len(point))
    ahead, behind = (_coefficients(symbol, point + sign * steps, size)[:, watched] for sign in (1, -1))
    steepness = float(np.linalg.norm(ahead - behind))
    return [Transition(point, (ahead - behind) / steepness, length)] if steepness > 0 else []
