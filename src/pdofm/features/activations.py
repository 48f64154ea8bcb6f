"""Activation functions with their derivatives of any order, for NumPy and for JAX arrays."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.errors import unknown_name
from pdofm.features.trigonometry import cos, sin
from pdofm.numerics.batches import padded, slices

ACTIVATIONS = {
    "tanh": jnp.tanh,
    "tanh3": lambda z: jnp.tanh(z) ** 3,
    "sin": sin,
    "cos": cos,
}

POWERS = {"tanh": 1, "tanh3": 3}

PHASES = {"sin": 0, "cos": 1}


def activation_of(name: str) -> Callable[[Array], Array]:
    """The activation function of that name."""
    if name not in ACTIVATIONS:
        raise unknown_name("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]


def derivatives(name: str, z: Any, orders: Sequence[int]) -> dict[int, Any]:
    """The derivatives of these orders of an activation function at z, elementwise; order 0 is the function itself."""
    if name in PHASES:
        return _trigonometric(z, [(order, (order + PHASES[name]) % 4) for order in orders])
    t = np.tanh(z) if isinstance(z, np.ndarray) else jnp.tanh(z)
    square = t * t
    found = {}
    for order in orders:
        if order == 0:
            found[order] = t if POWERS[name] == 1 else t * square
            continue
        lowest, coefficients = _quotient(POWERS[name], order)
        value: Any = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            value = value * square + coefficient
        # (1 - t)(1 + t), not 1 - t²: the tails keep their digits.
        found[order] = value * (1.0, t, square)[lowest] * ((1 - t) * (1 + t))
    return found


@cache
def _quotient(power: int, order: int) -> tuple[int, tuple[float, ...]]:
    """The derivative of t^power, t = tanh z, of this order over 1 - t²: t^lowest times a polynomial in t², given by its
    coefficients. (Each derivative is a polynomial in t, because t′ = 1 - t², and even or odd.)"""
    t = np.polynomial.Polynomial([0.0, 1.0])
    found = power * t ** (power - 1)
    for _ in range(order - 1):
        found = (1 - t**2) * found.deriv() - 2 * t * found
    coefficients = found.coef.tolist()
    lowest = next(k for k, coefficient in enumerate(coefficients) if coefficient != 0)
    return lowest, tuple(coefficients[lowest::2])


def _trigonometric(z: Any, quarters: Sequence[tuple[int, int]]) -> dict[int, Any]:
    """sin(z + k π/2) for the given k, by order."""
    sine, cosine = (_sines, _cosines) if isinstance(z, np.ndarray) else (sin, cos)
    both = {odd: (cosine if odd else sine)(z) for odd in {quarter % 2 for _, quarter in quarters}}
    return {order: both[quarter % 2] if quarter < 2 else -both[quarter % 2] for order, quarter in quarters}


FEW, MANY = 2**13, 2**15
"""From `FEW` numbers on, those compiled functions are faster than NumPy's; they take `MANY` numbers at once."""

_COMPILED = {np.sin: jax.jit(sin), np.cos: jax.jit(cos)}


def _sines(z: np.ndarray) -> np.ndarray:
    return _elementwise(np.sin, z)


def _cosines(z: np.ndarray) -> np.ndarray:
    return _elementwise(np.cos, z)


def _elementwise(function: np.ufunc, z: np.ndarray) -> np.ndarray:
    """Sine or cosine of an array, by a function that is compiled once for all sizes if there are many numbers."""
    if z.size < FEW:
        return function(z)
    flat, found = z.reshape(-1), np.empty(z.size)
    for here in slices(z.size, MANY):
        found[here] = np.asarray(_COMPILED[function](padded(flat[here], MANY)))[: here.stop - here.start]
    return found.reshape(z.shape)
