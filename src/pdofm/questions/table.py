"""Tabulated data as smooth functions: values on a grid or at scattered points."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from pdofm.domain import Box
from pdofm.errors import ProblemError
from pdofm.features import Chebyshev
from pdofm.numerics.lstsq import QR
from pdofm.shown import Shown

DEGREE = 5
"""The degree of splines on grids: four continuous derivatives, one more than an operator of fourth order takes."""

LARGEST = 1200
"""Polynomials that are fitted to scattered points, at most."""

GROWTH = 1.3
"""Ratio of the numbers of polynomials that are tried, one after the other."""

FEWEST = 4
"""Values along an axis, or at scattered points, at least."""


class Table(Shown):
    """A smooth function through values on a grid, or near values at scattered points, with all its derivatives.

    It can be used wherever a problem takes a function of the point: as a source, a value of a condition, or a
    coefficient in an operator. On a grid it is the tensor-product spline of degree 5 that interpolates the values; at
    scattered points the polynomial whose degree makes the leave-one-out error smallest. Outside of the points it goes
    on as a polynomial, which is accurate close to them only.

    Args:
        points: the coordinates along each axis of a grid, a list of d increasing arrays (in space-time the last one is
            the time); or scattered points of shape (n, d).
        values: shape (n_1, …, n_d) on a grid, with the first index along the first axis, and (n,) at scattered points.

    Attributes:
        error_estimate: the relative error that values between the points are expected to have: how many digits of a
            solution the table can carry. On a grid it is the largest distance to the spline of degree 3, which is
            larger than the error of a smooth function; at scattered points the root mean square error of values
            that are left out.
    """

    error_estimate: float

    def __init__(self, points: Any, values: Any):
        given = np.asarray(values)
        if np.iscomplexobj(given):
            raise ProblemError("Table takes real values. Make one of the real and one of the imaginary parts.")
        given = given.astype(np.float64)
        if not np.isfinite(given).all():
            raise ProblemError("Table was given values that are infinite or NaN. Leave these points out.")
        if isinstance(points, list | tuple) and np.ndim(points[0]) == 1 and len(points) == given.ndim:
            self._of = _Spline([np.asarray(axis, dtype=np.float64) for axis in points], given)
        else:
            self._of = _Polynomial(np.asarray(points, dtype=np.float64), given)
        self.dim, self.error_estimate = self._of.dim, self._of.error

    def __call__(self, *args: Any) -> Any:
        """The value at one point, given as problems give it, (x) or (x, t); or at points of shape (n, d)."""
        if len(args) == 1 and np.ndim(args[0]) == 2:
            found = jax.vmap(self._of)(jnp.asarray(args[0], jnp.float64))
            return found if isinstance(args[0], Tracer) else np.asarray(found)
        z = jnp.concatenate([jnp.atleast_1d(jnp.asarray(each, jnp.float64)) for each in args])
        if z.shape != (self.dim,):
            raise ProblemError(
                f"A table in {self.dim} dimensions was called at a point with {z.shape[0]} coordinates. Pass the point "
                "as the problem gives it, source=table, or a part of it: lambda x: table(x[:1])."
            )
        found = self._of(z)
        return found if any(isinstance(each, Tracer) for each in args) else float(found)

    def __repr__(self) -> str:
        return f"Table({self._of!r}, relative error {self.error_estimate:.1e})"


class _Spline:
    """The spline through values on a grid."""

    def __init__(self, axes: Sequence[np.ndarray], values: np.ndarray):
        self.dim = len(axes)
        if values.shape != tuple(map(len, axes)):
            raise ProblemError(
                f"Table has values of shape {values.shape} on a grid with {[len(axis) for axis in axes]} coordinates; "
                f"expected {tuple(map(len, axes))}."
            )
        for i, axis in enumerate(axes):
            if len(axis) < FEWEST or not np.isfinite(axis).all() or not (np.diff(axis) > 0).all():
                raise ProblemError(
                    f"Axis {i} of a Table must be at least {FEWEST} increasing numbers; got {len(axis)}, {axis[:3]}…"
                )
        knots, self._coefficients = _interpolated(axes, values, DEGREE)
        self._bases = [_Basis(each, count) for each, count in zip(knots, values.shape, strict=True)]
        self._shape = values.shape
        middles = [(axis[1:] + axis[:-1]) / 2 for axis in axes]
        fine, coarse = (_on_grid(axes, values, degree, middles) for degree in (DEGREE, 3))
        self.error = float(np.max(np.abs(fine - coarse)) / (np.max(np.abs(values)) or 1.0))

    def __call__(self, z: Array) -> Array:
        starts, weights = zip(*(basis(x) for basis, x in zip(self._bases, z, strict=True)), strict=True)
        found = jax.lax.dynamic_slice(jnp.asarray(self._coefficients), starts, [len(w) for w in weights])
        for each in weights:
            found = jnp.tensordot(each, found, 1)
        return found

    def __repr__(self) -> str:
        return f"{' x '.join(map(str, self._shape))} values on a grid"


def _spline(axis: np.ndarray, values: np.ndarray, degree: int) -> Any:
    """The spline through values along their first axis."""
    from scipy.interpolate import make_interp_spline

    return make_interp_spline(axis, values, degree if len(axis) > degree else 3)


def _interpolated(axes: Sequence[np.ndarray], values: np.ndarray, degree: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The knots along each axis and the coefficients of the spline through values."""
    knots, found = [], values
    for i, axis in enumerate(axes):
        spline = _spline(axis, np.moveaxis(found, i, 0), degree)
        knots.append(spline.t)
        found = np.moveaxis(spline.c, 0, i)
    return knots, found


def _on_grid(axes: Sequence[np.ndarray], values: np.ndarray, degree: int, at: Sequence[np.ndarray]) -> np.ndarray:
    """The spline through values at the points of another grid."""
    for i, (axis, where) in enumerate(zip(axes, at, strict=True)):
        values = np.moveaxis(_spline(axis, np.moveaxis(values, i, 0), degree)(where), 0, i)
    return values


class _Basis:
    """The splines along an axis that are not zero in an interval between knots, as polynomials there: entry
    ``[i, p, j]`` is the coefficient of ``(x - knot_i)^(k - p)`` in spline i + j."""

    def __init__(self, knots: np.ndarray, count: int):
        from scipy.interpolate import BSpline

        self.degree = len(knots) - count - 1
        self._knots = knots[self.degree : count + 1]
        spline, orders = BSpline(knots, np.eye(count), self.degree), range(self.degree, -1, -1)
        each = np.stack([spline(self._knots[:-1], nu=p) / math.factorial(p) for p in orders])
        local = np.arange(count - self.degree)[:, None] + np.arange(self.degree + 1)
        self._pieces = np.stack([each[:, i, local[i]] for i in range(len(local))])

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """The first spline that is not zero at x, and the values of all that are not."""
        inside = jnp.asarray(self._knots[1:-1])
        first = jnp.searchsorted(inside, jax.lax.stop_gradient(x), side="right")
        offset = x - jnp.asarray(self._knots)[first]
        powers = [jnp.ones_like(x)]
        for _ in range(self.degree):
            powers.append(powers[-1] * offset)
        return first, jnp.stack(powers[::-1]) @ jnp.asarray(self._pieces)[first]


class _Polynomial:
    """The polynomial near values at scattered points."""

    def __init__(self, points: np.ndarray, values: np.ndarray):
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or values.shape != (len(points),) or len(points) < FEWEST:
            raise ProblemError(
                f"Table has values of shape {values.shape} at points of shape {points.shape}; expected at least "
                f"{FEWEST} points (n, d) with values (n,), or a list of the coordinates along each axis of a grid."
            )
        if not np.isfinite(points).all() or not (np.ptp(points, axis=0) > 0).all():
            raise ProblemError("The points of a Table must be finite and not lie on a line along an axis.")
        self.dim, self._count = points.shape[1], len(points)
        box = Box(points.min(axis=0), points.max(axis=0))
        best, size, last = (np.inf, None, np.zeros(0)), 1.0, 0
        while size <= min(len(points) / 2, LARGEST):
            features = Chebyshev(box, max(int(size), self.dim + 1))
            size = max(size * GROWTH, size + 1)
            if features.size <= last or features.size >= len(points):
                continue
            last, (error, c) = features.size, _left_out(features, points, values)
            if error < best[0]:
                best = error, features, c
        error, self._features, self._coefficients = best
        self.error = float(error / (np.sqrt(np.mean(values**2)) or 1.0))

    def __call__(self, z: Array) -> Array:
        assert self._features is not None
        return self._features.combine(z, jnp.asarray(self._coefficients)[:, None])[0]

    def __repr__(self) -> str:
        assert self._features is not None
        return f"{self._count} values at scattered points by {self._features.size} polynomials"


def _left_out(features: Chebyshev, points: np.ndarray, values: np.ndarray) -> tuple[float, np.ndarray]:
    """The root mean square error of values that are left out, one at a time, and the coefficients that fit all of them.

    With Q an orthonormal basis of the range, the residual without value i is that with it divided by 1 - Σ_j Q_ij².
    """
    A = features.jets(points, [(0,) * features.dim])[0]
    factored = QR().factor(A)
    c = factored.solve(values)
    leverage = np.sum(factored.explicit.basis**2, axis=1)
    residual = (values - A @ c) / np.maximum(1 - leverage, np.finfo(float).eps)
    return float(np.sqrt(np.mean(residual**2))), c
