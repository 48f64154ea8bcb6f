"""A smooth function whose zeros bound a domain: values, gradients, and the nearest zero along the gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm._types import Points, Vector
from pdofm.errors import DomainError

_STEPS = 60
"""The most steps towards a zero; Newton's method takes about five."""

_CHUNKS = (2**9, 2**13)
"""Points at which the function is evaluated at once, few or many; shorter arrays are padded, so that it is compiled for
these two sizes only."""


class LevelFunction:
    """A function of a point, written with `jax.numpy`, on a box: negative inside of a domain.

    Args:
        function: takes a point `(d,)` and returns a number.
        lower, upper: the corners of the box.
    """

    def __init__(self, function: Callable[[Any], Any], lower: Vector, upper: Vector):
        import jax
        import jax.numpy as jnp

        self.function, self.lower, self.upper = function, lower, upper
        self.size = float(np.max(upper - lower))
        try:
            found = jax.eval_shape(function, jax.ShapeDtypeStruct(lower.shape, jnp.float64))
        except (TypeError, ValueError, IndexError, jax.errors.JAXTypeError) as error:
            raise DomainError(
                f"The function of Implicit cannot be evaluated at a point: {error} It is called with a point of "
                f"{len(lower)} coordinates; write it with jax.numpy."
            ) from error
        if getattr(found, "shape", None) != ():
            raise DomainError(f"The function of Implicit returned {found}; expected one number at a point.")
        self._values = jax.jit(jax.vmap(function))
        self._both = jax.jit(jax.vmap(jax.value_and_grad(lambda x: jnp.asarray(function(x), jnp.float64))))

    def values(self, points: Points) -> Vector:
        """The function at points `(n, d)`."""
        return self._in_chunks(lambda x: (self._values(x),), points)[0]

    def with_gradients(self, points: Points) -> tuple[Vector, Float[np.ndarray, "n d"]]:
        """The function and its gradients at points."""
        values, gradients = self._in_chunks(self._both, points)
        return values, gradients

    def projected(self, points: Points) -> Points:
        """The zeros next to points, along the gradient; accurate up to rounding."""
        x = points
        limit = 1e-15 * self.size + 4 * np.spacing(np.abs(points).max(initial=0.0))
        for _ in range(_STEPS):
            values, gradients = self.with_gradients(x)
            squares = np.sum(gradients**2, axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.where(squares > 0, values / squares, np.inf)[:, None] * gradients
            length = np.linalg.norm(step, axis=1)
            if not np.isfinite(length).all():
                break
            far = np.minimum(1.0, 0.05 * self.size / np.maximum(length, 1e-300))
            x = x - far[:, None] * step
            if length.max(initial=0.0) <= limit:
                return x
        values, gradients = self.with_gradients(x)
        if not np.all(np.abs(values) <= 1e-12 * self.size * np.linalg.norm(gradients, axis=1)):
            raise DomainError(
                "The function of Implicit has no zero with a gradient other than 0 near some points of the boundary; "
                "expected a smooth function that changes its sign there. Combine smooth ones by a | b, a - b and a & b "
                "where the boundary has corners."
            )
        return x

    def _in_chunks(self, compiled: Callable[..., Any], points: Points) -> list[np.ndarray]:
        found = []
        chunk = _CHUNKS[0] if len(points) <= _CHUNKS[0] else _CHUNKS[1]
        for start in range(0, max(len(points), 1), chunk):
            some = points[start : start + chunk]
            filled = np.concatenate([some, np.broadcast_to(self.lower, (chunk - len(some), len(self.lower)))])
            found.append([np.asarray(each)[: len(some)] for each in compiled(filled)])
        return [np.concatenate(each) for each in zip(*found, strict=True)]
