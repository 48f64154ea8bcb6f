"""Differential operators as transforms of functions, in forward mode.

An unknown is any callable ``u(x)`` with ``x`` of shape ``(d,)`` (in space-time ``u(x, t)``) that returns a scalar or a
vector. Every operator takes such a function and returns another one with the same arguments, so that operators compose:
``laplacian(laplacian(u))`` is the biharmonic operator. Space operators act on the first argument, `dt` on the second.

Operators use forward mode because a directional derivative of ``features(x) @ c`` is the same derivative of all
features, contracted with ``c``. The derivative of an operator with respect to ``c`` then costs a single forward pass
(see `pdofm.discrete.direct`).
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm.errors import ProblemError

Function = Callable[..., Array]

PointLike = Any
"""A point: an array of shape (d,), or a list of d numbers."""

FEW_AXES = 2
"""The largest number of axes along which derivatives are taken one after the other. That makes no transposed copies,
and lets operators share common subexpressions; with more axes, the traced programs would become long."""


_STEP: ContextVar[Array | None] = ContextVar("step of difference quotients", default=None)


@contextmanager
def differences(step: Array) -> Iterator[None]:
    """A context in which all operators use central difference quotients of that step instead of automatic
    differentiation, which does not see jumps."""
    token = _STEP.set(step)
    try:
        yield
    finally:
        _STEP.reset(token)


def _along(u: Function, direction: Array | np.ndarray, argument: int = 0) -> Function:
    """The derivative of u along a direction of one of its arguments."""

    def derivative(*args: Array) -> Array:
        def of_argument(y: Array) -> Array:
            return u(*args[:argument], y, *args[argument + 1 :])

        at = jnp.asarray(args[argument])
        at = at if jnp.issubdtype(at.dtype, jnp.floating) else at.astype(jnp.result_type(float))
        along, step = jnp.asarray(direction, at.dtype), _STEP.get()
        if step is not None:
            return (of_argument(at + step * along) - of_argument(at - step * along)) / (2 * step)
        return jax.jvp(of_argument, (at,), (along,))[1]

    return derivative


def _point(x: PointLike) -> Array:
    """A point as an array: a user may give a list."""
    return x if hasattr(x, "size") else jnp.asarray(x, jnp.result_type(float))


def _check_function(operator: str, u: Any) -> None:
    if not callable(u):
        raise ProblemError(
            f"{operator}() takes a function; got a value. Differentiate first, then evaluate: "
            f"{operator}(u)(x), not {operator}(u(x))."
        )


def partial(u: Function, *axes: int) -> Function:
    """The partial derivative of u along the given axes of x, in turn: ``partial(u, 0, 1)`` is ∂²u/∂x₀∂x₁."""
    _check_function("partial", u)
    for axis in axes:
        if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
            raise ProblemError(
                f"partial(u, …) takes the numbers of axes, 0 for the first coordinate; got {axis!r}. "
                "Write partial(u, 0)(x) for ∂u/∂x₀, and dt(u)(x, t) for the time derivative."
            )

    def derivative(x: PointLike, *rest: Array) -> Array:
        x, of_u = _point(x), u
        for axis in axes:
            if not -x.size <= axis < x.size:
                raise ProblemError(f"partial(u, {axis}): x has {x.size} coordinates, numbered 0 to {x.size - 1}.")
            of_u = _along(of_u, jnp.eye(x.size, dtype=x.dtype)[axis])
        return of_u(x, *rest)

    return derivative


def grad(u: Function) -> Function:
    """The gradient, of shape ``(d,)``, of a scalar u; the Jacobian, with entries ``[i, j]`` = ∂uᵢ/∂xⱼ, of a vector
    u."""
    _check_function("grad", u)

    def gradient(x: PointLike, *rest: Array) -> Array:
        x = _point(x)
        if x.size <= FEW_AXES:
            return jnp.stack([_along(u, v)(x, *rest) for v in np.eye(x.size)], axis=-1)
        columns = jax.vmap(lambda v: _along(u, v)(x, *rest))(jnp.eye(x.size, dtype=x.dtype))
        return jnp.moveaxis(columns, 0, -1)

    return gradient


def div(u: Function) -> Function:
    """The divergence of a vector function, Σ ∂uᵢ/∂xᵢ; of a matrix function row by row, Σⱼ ∂uᵢⱼ/∂xⱼ."""
    _check_function("div", u)

    def divergence(x: PointLike, *rest: Array) -> Array:
        x = _point(x)
        jacobian = grad(u)(x, *rest)
        if jacobian.ndim < 2 or jacobian.shape[-2] != x.size:
            found = "a scalar" if jacobian.ndim < 2 else f"{jacobian.shape[-2]} entries"
            raise ProblemError(
                f"div() takes a vector function with as many entries as x has coordinates, {x.size}; got {found}. "
                "The divergence of a gradient is div(grad(u))(x), or laplacian(u)(x)."
            )
        return jnp.trace(jacobian, axis1=-2, axis2=-1)

    return divergence


def hessian(u: Function) -> Function:
    """The Hessian, of shape ``(d, d)``; for a vector u these axes follow the axis of u."""
    return grad(grad(u))


def laplacian(u: Function) -> Function:
    """The Laplacian Σ ∂²u/∂xᵢ²; for a vector u, of each component."""
    _check_function("laplacian", u)

    def sum_of_second_derivatives(x: PointLike, *rest: Array) -> Array:
        x = _point(x)

        def second(v: Array | np.ndarray) -> Array:
            return _along(_along(u, v), v)(x, *rest)

        if x.size <= FEW_AXES:
            return functools.reduce(jnp.add, (second(v) for v in np.eye(x.size)))
        return jnp.sum(jax.vmap(second)(jnp.eye(x.size, dtype=x.dtype)), axis=0)

    return sum_of_second_derivatives


def dt(u: Function) -> Function:
    """The time derivative ∂u/∂t of ``u(x, t)``."""
    _check_function("dt", u)
    along = _along(u, jnp.ones(()), argument=1)

    def derivative(*args: Array) -> Array:
        if len(args) < 2:
            raise ProblemError("dt(u)(x) has no time. Make the problem on SpaceTime(domain, T), and write dt(u)(x, t).")
        return along(*args)

    return derivative


def normal_derivative(u: Function, normal: Float[Array, " d"]) -> Function:
    """The derivative of u along ``normal``, ∇u·n."""
    return _along(u, normal)
