"""Activation functions and their derivatives of any order, for NumPy arrays and for JAX arrays."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.errors import unknown_name
from pdofm.features.trigonometry import cos, sin
from pdofm.numerics.batches import in_batches

ACTIVATIONS = {
    "tanh": jnp.tanh,
    "tanh3": lambda z: jnp.tanh(z) ** 3,
    "sin": sin,
    "cos": cos,
}

TANH_POWERS = {"tanh": 1, "tanh3": 3}
"""The activations that are powers of tanh, and their exponents."""

QUARTER_TURNS = {"sin": 0, "cos": 1}
"""The activations that are sin(z + k π/2), and their k."""


def activation_of(name: str) -> Callable[[Array], Array]:
    """The activation function of that name."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise unknown_name("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]


def activation_derivatives(name: str, z: Any, orders: Sequence[int]) -> dict[int, Any]:
    """The derivatives of an activation function at z, elementwise, by order; order 0 is the function itself."""
    if name in QUARTER_TURNS:
        return _trigonometric(z, [(order, (order + QUARTER_TURNS[name]) % 4) for order in orders])
    t = np.tanh(z) if isinstance(z, np.ndarray) else jnp.tanh(z)
    square = t * t
    found = {}
    for order in orders:
        if order == 0:
            found[order] = t if TANH_POWERS[name] == 1 else t * square
            continue
        lowest, coefficients = _quotient(TANH_POWERS[name], order)
        value: Any = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            value = value * square + coefficient
        # (1 - t)(1 + t) is accurate where t is close to ±1; 1 - t² would cancel there.
        found[order] = value * (1.0, t, square)[lowest] * ((1 - t) * (1 + t))
    return found


@cache
def _quotient(power: int, order: int) -> tuple[int, tuple[float, ...]]:
    """The derivative of that order of t^power, with t = tanh z, divided by 1 - t²: t^lowest times a polynomial in t²,
    given by its coefficients. (Because t′ = 1 - t², each derivative is an even or an odd polynomial in t.)"""
    t = np.polynomial.Polynomial([0.0, 1.0])
    found = power * t ** (power - 1)
    for _ in range(order - 1):
        found = (1 - t**2) * found.deriv() - 2 * t * found
    coefficients = found.coef.tolist()
    lowest = next(k for k, coefficient in enumerate(coefficients) if coefficient != 0)
    return lowest, tuple(coefficients[lowest::2])


def _trigonometric(z: Any, quarters: Sequence[tuple[int, int]]) -> dict[int, Any]:
    """sin(z + k π/2) for each pair (order, k), by order."""
    sine, cosine = (_sines, _cosines) if isinstance(z, np.ndarray) else (sin, cos)
    both = {odd: (cosine if odd else sine)(z) for odd in {quarter % 2 for _, quarter in quarters}}
    return {order: both[quarter % 2] if quarter < 2 else -both[quarter % 2] for order, quarter in quarters}


FEWEST_COMPILED = 2**13
"""The number of entries from which on the compiled sine and cosine are faster than those of NumPy."""

ENTRIES_PER_CALL = 2**15
"""Entries per call of the compiled functions. All calls have this size, so that they are compiled once; the arrays (256
kB each) fit into the cache of a core."""

_COMPILED = {np.sin: jax.jit(sin), np.cos: jax.jit(cos)}


def _sines(z: np.ndarray) -> np.ndarray:
    return _elementwise(np.sin, z)


def _cosines(z: np.ndarray) -> np.ndarray:
    return _elementwise(np.cos, z)


def _elementwise(function: np.ufunc, z: np.ndarray) -> np.ndarray:
    """The sine or the cosine of an array; of a large one by a compiled function."""
    if z.size < FEWEST_COMPILED:
        return function(z)
    return in_batches(_COMPILED[function], (z.reshape(-1),), (ENTRIES_PER_CALL,)).reshape(z.shape)
