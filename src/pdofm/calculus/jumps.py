"""Jumps that automatic differentiation does not see.

The derivative of ``jnp.where(x < 0.5, 1.0, 10.0)`` is zero to automatic differentiation, although the function jumps.
So ``div(a grad u)`` with such an a becomes a Δu: the condition that the flux is continuous is lost, and a wrong
solution satisfies all that is left. Outside of derivatives, as in a(x) Δu, or in a source, a jump is legitimate.

The symbol of a term tells where its coefficients jump: along a line the change stays however near two points are. If
the operator, with difference quotients instead of derivatives, grows there like one over their step, a derivative of
the jump is part of it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm._types import Mask, Points
from pdofm.calculus.operators import differences
from pdofm.calculus.symbol import Symbol, random_jet
from pdofm.domain import Domain
from pdofm.numerics.sampling import spread

LINES, ALONG = 16, 257
"""Lines through the domain that are looked at, and points on each: fine enough for a small jump of a coefficient that
varies much."""

SUSPECTS = 8
"""Places along the lines that are looked at more closely."""

PAIRS, SEGMENTS = 4096, 1024
"""Pairs of points all over the domain that are compared, and how many of them, those with the largest differences, are
searched for a jump: a region of a thousandth of the domain lies at the end of some of them."""

EXAMINED = 32
"""Jumps of which it is found out whether they are inside a derivative."""

SMALLEST_JUMP = 1e-6
"""Jumps below this fraction of the largest coefficient are not looked for."""

GROWTH = 3.0
"""A difference quotient over a jump grows eightfold from step to step, one of a smooth function not at all."""


class Jump(NamedTuple):
    """A point where a coefficient jumps inside a derivative; or, if it is not certain, may do so: derivatives are taken
    by other means than the operators of this package."""

    point: Float[np.ndarray, " d"]
    is_certain: bool


@lru_cache(maxsize=256)
def hidden_jump(symbol: Symbol, domain: Domain) -> Jump | None:
    """A jump that differentiation does not see; None if none is found."""
    if not symbol.decides or not symbol.is_small:
        return None
    jumps = _jumps(symbol, domain)
    if len(jumps) == 0:
        return None
    differentiated, is_foreign = _are_differentiated(symbol, jumps, float(domain.size))
    if differentiated.any():
        return Jump(jumps[differentiated][0], True)
    return Jump(jumps[0], False) if is_foreign else None


def _coefficients(symbol: Symbol, points: Points) -> Float[np.ndarray, "n f"]:
    """All coefficients of the symbol at points, at one and the same jet."""
    which = symbol.indices(points, np.zeros((len(points), symbol.space_dim)))
    jet = random_jet(len(which), 1, symbol.layout.components)
    found = symbol.coefficients(points, np.broadcast_to(jet, (len(jet), len(points), jet.shape[2])))
    return np.nan_to_num(found.coefficients.reshape(len(points), -1), posinf=0.0, neginf=0.0)


def _jumps(symbol: Symbol, domain: Domain) -> Points:
    """Points of the domain at which coefficients jump, to the last digits."""
    size = np.max(np.abs(_coefficients(symbol, domain.sample(PAIRS, "random", key=1))), axis=0)
    size = np.maximum(size, np.finfo(float).tiny)

    def value(points: Points) -> Float[np.ndarray, "n f"]:
        return _coefficients(symbol, points) / size

    segments = [_bends(value, domain), _differences(value, domain)]
    low, high = (np.concatenate(ends) for ends in zip(*segments, strict=True))
    if len(low) == 0:
        return low
    below, above = value(low), value(high)
    for _ in range(60):  # halve, and keep the half with the larger change
        middle = (low + high) / 2
        there = value(middle)
        left, right = (np.max(np.abs(change), axis=1) for change in (there - below, above - there))
        is_left = (left >= right)[:, None]
        high, above = np.where(is_left, middle, high), np.where(is_left, there, above)
        low, below = np.where(is_left, low, middle), np.where(is_left, below, there)
    found = low[(np.max(np.abs(above - below), axis=1) > SMALLEST_JUMP) & domain.contains(low)]
    return found[spread(len(found), EXAMINED)]


Segments = tuple[Points, Points]
"""Where segments begin and end."""


def _bends(value: Callable[[Points], np.ndarray], domain: Domain) -> Segments:
    """Places along some lines through the domain where the second difference is largest: for smooth coefficients it is
    small, over a jump it is the jump."""
    ends, t = domain.sample(2 * LINES, "random", key=0), np.linspace(0, 1, ALONG)[:, None]
    points = ends[:LINES, None] + t * (ends[LINES : 2 * LINES] - ends[:LINES])[:, None]
    inside = domain.contains(points.reshape(-1, domain.dim)).reshape(LINES, ALONG)
    G = value(points.reshape(-1, domain.dim)).reshape(LINES, ALONG, -1)
    bends = np.max(np.abs(G[:, 2:] - 2 * G[:, 1:-1] + G[:, :-2]), axis=2)
    bends[~(inside[:, 2:] & inside[:, 1:-1] & inside[:, :-2])] = 0.0
    line, at = np.unravel_index(np.argsort(-bends, axis=None)[:SUSPECTS], bends.shape)
    kept = bends[line, at] > SMALLEST_JUMP
    return points[line[kept], at[kept]], points[line[kept], at[kept] + 2]


def _differences(value: Callable[[Points], np.ndarray], domain: Domain) -> Segments:
    """Pairs of points of the domain whose coefficients differ most."""
    points = domain.sample(2 * PAIRS, "random", key=2)
    starts, ends = points[:PAIRS], points[PAIRS : 2 * PAIRS]
    changes = np.max(np.abs(value(ends) - value(starts)), axis=1)
    most = np.argsort(-changes, kind="stable")[:SEGMENTS]
    most = most[changes[most] > SMALLEST_JUMP]
    return starts[most], ends[most]


def _are_differentiated(symbol: Symbol, points: Points, size: float) -> tuple[Mask, bool]:
    """Whether the left side of a smooth function grows at points if derivatives become difference quotients of smaller
    and smaller steps, and whether derivatives of u are taken by other means than the operators of this package."""
    layout, is_foreign = symbol.layout, False

    @jax.custom_jvp
    def smooth(y: Array) -> Array:
        rates = jnp.arange(1.0, y.size + 1.0) / (y.size * size)
        return 1.5 + jnp.sin(rates @ y + jnp.arange(1.0, layout.components + 1.0))

    @smooth.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        nonlocal is_foreign
        is_foreign = True
        return smooth(*primals), jnp.zeros(layout.components)

    def left(z: Array, step: Array) -> Array:
        with differences(step):
            u = layout.fields(smooth)
            return symbol.lhs(u, u, layout.arguments(z), jnp.zeros(symbol.space_dim))

    # Below the smallest step rounding would drown the quotients of the highest order.
    smallest = size * max(2.0**-12, 1e-12 ** (1 / max(symbol.order, 1)))
    steps = smallest * np.array([64.0, 8.0, 1.0])
    values = np.asarray(jax.jit(jax.vmap(jax.vmap(left, (None, 0)), (0, None)))(points, steps))  # (n, steps, k)
    first, second = np.moveaxis(np.abs(np.diff(values, axis=1)), 1, 0)
    largest = np.max(np.abs(values), axis=1)
    return np.any((second > GROWTH * first) & (second > 1e-3 * largest), axis=1), is_foreign
