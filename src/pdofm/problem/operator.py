"""The left side of an equation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jax import Array

from pdofm.calculus.terms import joined


@dataclass(frozen=True)
class Operator:
    """The left side of the equation."""

    function: Callable[..., Any]

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        return joined(self.function(u, *args))


@dataclass(frozen=True)
class FrozenOperator:
    """The left side of the equation in its frozen form, which also takes the last iterate w."""

    function: Callable[..., Any]

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        return joined(self.function(u, w, *args))
