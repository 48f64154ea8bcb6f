"""Perfectly matched layers: coordinates that become complex outside of a box or a ball, where waves decay."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus import operators
from pdofm.domain import Ball, Box, Disk, Domain, Interval
from pdofm.errors import ProblemError

SMOOTHNESS = 3
"""The power of the depth with which the imaginary part of the coordinates grows: coefficients have no jumps."""


class PML:
    """A perfectly matched layer (Berenger, 1994) of a certain width around a box, an interval, a disk or a ball.

    A wave that leaves a bounded region, such as exp(ikr), also solves the equation in complex coordinates
    x + i S(x), where it decays like exp(-k S). In the layer S grows from 0, so that a wave that leaves is not reflected
    where the layer begins, and zero values may be given where it ends. Use the operators of the layer instead of those
    of the package: ``layer.laplacian(u)(x) + k**2 * u(x)`` with ``dtype=complex``, on a domain that reaches as far as
    the layer.

    Args:
        inside: the region without layer.
        width: how thick the layer is; half a wave length is enough, more is easier to resolve.
        wave_number: k of waves exp(ikr) that leave, positive; negative if exp(-ikr) leaves.
        reflection: how large a wave returns from the end of the layer, if it hits the layer at a right angle.
    """

    def __init__(self, inside: Domain, width: float, wave_number: float, *, reflection: float = 1e-12):
        is_round = isinstance(inside, Disk | Ball)
        if not is_round and not isinstance(inside, Box | Interval):
            raise ProblemError(
                f"A PML surrounds a Box, an Interval, a Disk or a Ball; got {inside!r}. Give the box or the disk where "
                "the layer begins."
            )
        if not (np.isfinite(width) and width > 0):
            raise ProblemError(f"The width of a PML must be positive; got {width!r}.")
        if not (np.isfinite(wave_number) and wave_number != 0):
            raise ProblemError(f"The wave number of a PML must be a number other than 0; got {wave_number!r}.")
        if not 0 < reflection < 1:
            raise ProblemError(f"The reflection of a PML must lie between 0 and 1; got {reflection!r}.")
        self.inside, self.width, self.wave_number = inside, float(width), float(wave_number)
        self.depth = -math.log(reflection) / (2 * self.wave_number)
        """S where the layer ends."""
        self._inverse = self._round_inverse if is_round else self._box_inverse

    @property
    def domain(self) -> Domain:
        """The region together with its layer."""
        inside = self.inside
        if isinstance(inside, Disk | Ball):
            return type(inside)(np.asarray(inside.center), float(inside.outer) + self.width)
        lower, upper = inside.lower - self.width, inside.upper + self.width
        return Interval(float(lower[0]), float(upper[0])) if inside.dim == 1 else Box(lower, upper)

    def grad(self, u: Callable[..., Any]) -> Callable[..., Array]:
        """The gradient of a scalar u with respect to the complex coordinates."""

        def gradient(x: Any, *rest: Any) -> Array:
            inverse = self._inverse(jnp.asarray(x))
            return operators.grad(u)(x, *rest).astype(inverse.dtype) @ inverse

        return gradient

    def div(self, u: Callable[..., Any]) -> Callable[..., Array]:
        """The divergence of a vector function with respect to the complex coordinates."""

        def divergence(x: Any, *rest: Any) -> Array:
            inverse = self._inverse(jnp.asarray(x))
            return jnp.sum(operators.grad(u)(x, *rest).astype(inverse.dtype) * inverse.T)

        return divergence

    def laplacian(self, u: Callable[..., Any]) -> Callable[..., Array]:
        """The Laplacian of a scalar u with respect to the complex coordinates."""
        return self.div(self.grad(u))

    def _box_inverse(self, x: Array) -> Array:
        """The inverse of the Jacobian matrix of the coordinates: diagonal, since each depends on one alone."""
        outside = jnp.maximum(self.inside.lower - x, 0.0) + jnp.maximum(x - self.inside.upper, 0.0)
        slope = self.depth * SMOOTHNESS / self.width * (outside / self.width) ** (SMOOTHNESS - 1)
        return jnp.diag(1 / _complex(slope))

    def _round_inverse(self, x: Array) -> Array:
        """The same for y a(r), with y = x - c and a = 1 + i S(r) / r: the Jacobian is a I + (a' / r) y yᵀ."""
        inside: Any = self.inside
        y = x - jnp.asarray(inside.center)
        radius = float(inside.outer)
        r = jnp.sqrt(jnp.maximum(y @ y, radius**2))
        depth = (r - radius) / self.width
        added = self.depth * depth**SMOOTHNESS / r
        slope = self.depth * SMOOTHNESS / self.width * depth ** (SMOOTHNESS - 1)
        a, whole = _complex(added), _complex(slope)  # dr̃/dr is a + a' r
        return (
            jnp.eye(len(y), dtype=a.dtype)
            - (whole - a) / whole / (r**2).astype(a.dtype) * jnp.outer(y, y).astype(a.dtype)
        ) / a


def _complex(imaginary: Array) -> Array:
    """1 + i s, without mixing real and complex arrays."""
    return jax.lax.complex(jnp.ones_like(imaginary), imaginary)
