"""Detection of jumps that automatic differentiation does not see.

To automatic differentiation, the derivative of ``jnp.where(x < 0.5, 1.0, 10.0)`` is zero, although the function jumps.
With such a coefficient a, ``div(a grad u)`` becomes a Δu: the condition that the flux is continuous is lost, and a
wrong solution satisfies the equations that remain. Outside of derivatives, as in a(x) Δu or in a source, a jump is
legitimate.

The search has two steps. The symbol of the term shows where its coefficients jump: there, the change between two points
remains, however close they are. Then the derivatives in the operator are replaced by difference quotients. If the
operator grows at a jump like one over their step, it contains a derivative of the jump.
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

LINES, POINTS_PER_LINE = 16, 257
"""Number of lines through the domain along which coefficients are evaluated, and of points on each line: dense enough
to tell a small jump from the variation of a smooth coefficient."""

BENDS = 8
"""Number of places along the lines, those with the largest second differences, that are searched for a jump."""

PAIRS, SEGMENTS = 4096, 1024
"""Number of random pairs of points whose coefficients are compared, and of those with the largest differences that are
searched for a jump in between. With so many pairs, some have an end in a region of a thousandth of the domain."""

BISECTIONS = 60
"""Number of times a segment is halved around a jump: more than a double has bits."""

TESTED_JUMPS = 32
"""Largest number of jumps for which the operator is evaluated with difference quotients."""

SMALLEST_JUMP = 1e-6
"""The smallest jump that is detected, as a fraction of the largest coefficient. Rounding errors stay far below it."""

STEP_RATIO = 8.0
"""Ratio of successive steps of difference quotients."""

GROWTH = 3.0
"""The smallest growth, per reduction of the step, that counts as a jump. A difference quotient across a jump grows by
`STEP_RATIO`, and that of a smooth function does not grow; the value lies between the two on a logarithmic scale."""

SMALLEST_GROWTH = 1e-3
"""The smallest change between steps that counts, as a fraction of the largest value: rounding errors grow, too, but
stay below it."""


class Jump(NamedTuple):
    """A point where a coefficient jumps inside a derivative.

    It is not certain if the left side differentiates u by other means than the operators of this package, which cannot
    be replaced by difference quotients.
    """

    point: Float[np.ndarray, " d"]
    is_certain: bool


@lru_cache(maxsize=256)
def hidden_jump(symbol: Symbol, domain: Domain) -> Jump | None:
    """A jump inside a derivative of a left side; None if none is found."""
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
    """All coefficients of the symbol at points, for the same jet at each point."""
    which = symbol.indices(points, np.zeros((len(points), symbol.space_dim)))
    jet = random_jet(len(which), 1, symbol.layout.components)
    found = symbol.coefficients(points, np.broadcast_to(jet, (len(jet), len(points), jet.shape[2])))
    return np.nan_to_num(found.coefficients.reshape(len(points), -1), posinf=0.0, neginf=0.0)


def _jumps(symbol: Symbol, domain: Domain) -> Points:
    """Points of the domain at which coefficients jump, located to the last digits."""
    size = np.max(np.abs(_coefficients(symbol, domain.sample(PAIRS, "random", key=1))), axis=0)
    size = np.maximum(size, np.finfo(float).tiny)

    def value(points: Points) -> Float[np.ndarray, "n f"]:
        return _coefficients(symbol, points) / size

    segments = [_bends(value, domain), _differences(value, domain)]
    low, high = (np.concatenate(ends) for ends in zip(*segments, strict=True))
    if len(low) == 0:
        return low
    below, above = value(low), value(high)
    for _ in range(BISECTIONS):  # keep the half with the larger change
        middle = (low + high) / 2
        there = value(middle)
        left, right = (np.max(np.abs(change), axis=1) for change in (there - below, above - there))
        is_left = (left >= right)[:, None]
        high, above = np.where(is_left, middle, high), np.where(is_left, there, above)
        low, below = np.where(is_left, low, middle), np.where(is_left, below, there)
    found = low[(np.max(np.abs(above - below), axis=1) > SMALLEST_JUMP) & domain.contains(low)]
    return found[spread(len(found), TESTED_JUMPS)]


Segments = tuple[Points, Points]
"""The two ends of each segment."""


def _bends(value: Callable[[Points], np.ndarray], domain: Domain) -> Segments:
    """Segments of random lines through the domain where the second difference is largest: across a jump it is as large
    as the jump, elsewhere it is small."""
    ends, t = domain.sample(2 * LINES, "random", key=0), np.linspace(0, 1, POINTS_PER_LINE)[:, None]
    points = ends[:LINES, None] + t * (ends[LINES : 2 * LINES] - ends[:LINES])[:, None]
    inside = domain.contains(points.reshape(-1, domain.dim)).reshape(LINES, POINTS_PER_LINE)
    G = value(points.reshape(-1, domain.dim)).reshape(LINES, POINTS_PER_LINE, -1)
    bends = np.max(np.abs(G[:, 2:] - 2 * G[:, 1:-1] + G[:, :-2]), axis=2)
    bends[~(inside[:, 2:] & inside[:, 1:-1] & inside[:, :-2])] = 0.0
    line, at = np.unravel_index(np.argsort(-bends, axis=None)[:BENDS], bends.shape)
    kept = bends[line, at] > SMALLEST_JUMP
    return points[line[kept], at[kept]], points[line[kept], at[kept] + 2]


def _differences(value: Callable[[Points], np.ndarray], domain: Domain) -> Segments:
    """Random pairs of points of the domain, those whose coefficients differ most."""
    points = domain.sample(2 * PAIRS, "random", key=2)
    starts, ends = points[:PAIRS], points[PAIRS : 2 * PAIRS]
    changes = np.max(np.abs(value(ends) - value(starts)), axis=1)
    most = np.argsort(-changes, kind="stable")[:SEGMENTS]
    most = most[changes[most] > SMALLEST_JUMP]
    return starts[most], ends[most]


def _are_differentiated(symbol: Symbol, points: Points, size: float) -> tuple[Mask, bool]:
    """Whether the left side of a smooth function grows at points as derivatives are replaced by difference quotients of
    decreasing step; and whether it differentiates u by other means than the operators of this package."""
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

    # With a smaller step, rounding errors would dominate the quotients of the highest order.
    smallest = size * max(2.0**-12, 1e-12 ** (1 / max(symbol.order, 1)))
    steps = smallest * np.array([STEP_RATIO**2, STEP_RATIO, 1.0])
    values = np.asarray(jax.jit(jax.vmap(jax.vmap(left, (None, 0)), (0, None)))(points, steps))  # (n, steps, k)
    first, second = np.moveaxis(np.abs(np.diff(values, axis=1)), 1, 0)
    largest = np.max(np.abs(values), axis=1)
    return np.any((second > GROWTH * first) & (second > SMALLEST_GROWTH * largest), axis=1), is_foreign
