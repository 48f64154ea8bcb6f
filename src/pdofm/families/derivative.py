"""Values of members as functions that JAX differentiates and vectorises.

Two operations are enough: the values at parameters, and their derivative, a linear map whose transpose is the adjoint
solve. They run as they are outside of compiled functions, and as callbacks inside.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from pdofm.calculus.jets import Index
from pdofm.errors import SolveError


class Differentiable(ABC):
    """What a family computes for numbers."""

    @abstractmethod
    def numbers(self, mu: np.ndarray, at: "At") -> np.ndarray:
        """Derivatives `at.which` at points, (a, n, C)."""

    @abstractmethod
    def forward(self, mu: np.ndarray, at: "At", changes: np.ndarray) -> np.ndarray:
        """How these change, (k, a, n, C), for k changes (k, p) of the parameters."""

    @abstractmethod
    def transposed(self, mu: np.ndarray, at: "At", wanted: np.ndarray) -> np.ndarray:
        """The gradients (k, p) of their sums with k sets of weights (k, a, n, C)."""


@dataclass(frozen=True, eq=False)
class At:
    """Where a solution is evaluated, and which of its derivatives are taken; compared by identity."""

    points: np.ndarray
    which: tuple[Index, ...]
    components: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.which), len(self.points), self.components


def evaluated(family: Differentiable, mu: Any, at: At) -> Array:
    """The derivatives `at.which` of the solution at parameters (p,), of shape (a, n, C)."""
    return _values.bind(jnp.asarray(mu, jnp.float64), family=family, at=at)


_values = Primitive("family_values")
_change = Primitive("family_change")


def _shape_of_change(change: Any, mu: Any, at: At, transpose: bool) -> tuple[int, ...]:
    """The shape of what a change is mapped to, with leading axes for many of them."""
    base = 3 if transpose else 1
    return (*change.shape[: change.ndim - base], *(mu.shape if transpose else at.shape))


def _compute_values(mu: Any, *, family: Differentiable, at: At) -> Array:
    return jnp.asarray(family.numbers(np.asarray(mu), at))


def _compute_change(mu: Any, change: Any, *, family: Differentiable, at: At, transpose: bool) -> Array:
    given, shape = np.asarray(change), _shape_of_change(change, mu, at, transpose)
    many = given.reshape(-1, *given.shape[given.ndim - (3 if transpose else 1) :])
    run = family.transposed if transpose else family.forward
    return jnp.asarray(run(np.asarray(mu), at, many).reshape(shape))


def _abstract_values(mu: Any, *, family: Differentiable, at: At) -> Any:
    return ShapedArray(at.shape, mu.dtype)


def _abstract_change(mu: Any, change: Any, *, family: Differentiable, at: At, transpose: bool) -> Any:
    return ShapedArray(_shape_of_change(change, mu, at, transpose), mu.dtype)


def _called_back(compute: Callable[..., Array], abstract: Callable[..., Any]) -> Callable[..., Array]:
    """The operation inside a compiled function."""

    def run(*args: Array, **options: Any) -> Array:
        found = abstract(*args, **options)
        shape = jax.ShapeDtypeStruct(found.shape, found.dtype)
        return jax.pure_callback(lambda *a: np.asarray(compute(*a, **options)), shape, *args)

    return run


def _values_jvp(primals: Any, tangents: Any, **options: Any) -> tuple[Array, Any]:
    (mu,), (change,) = primals, tangents
    out = _values.bind(mu, **options)
    if isinstance(change, ad.Zero):
        return out, ad.Zero(out.aval.to_tangent_aval())
    return out, _change.bind(mu, change, transpose=False, **options)


def _change_jvp(primals: Any, tangents: Any, **options: Any) -> tuple[Array, Array]:
    of_mu, of_change = tangents
    if not isinstance(of_mu, ad.Zero):
        raise SolveError(
            "Second derivatives of a family are not provided. Take differences of its gradient: "
            "(gradient(mu + h) - gradient(mu - h)) / (2 h)."
        )
    return _change.bind(*primals, **options), _change.bind(primals[0], of_change, **options)


def _change_transpose(cotangent: Any, mu: Any, change: Any, *, transpose: bool, **options: Any) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [None, ad.Zero(change.aval)]
    return [None, _change.bind(mu, cotangent, transpose=not transpose, **options)]


def _values_batched(args: Any, dims: Any, **options: Any) -> tuple[Array, int]:
    (mu,), (axis,) = args, dims
    each = jnp.moveaxis(mu, axis, 0)
    return jnp.stack([_values.bind(one, **options) for one in each]), 0


def _change_batched(args: Any, dims: Any, **options: Any) -> tuple[Array, int]:
    (mu, change), (of_mu, of_change) = args, dims
    if of_mu is None:
        return _change.bind(mu, jnp.moveaxis(change, of_change, 0), **options), 0
    each = jnp.moveaxis(mu, of_mu, 0)
    changes = [change] * len(each) if of_change is None else list(jnp.moveaxis(change, of_change, 0))
    return jnp.stack([_change.bind(one, its, **options) for one, its in zip(each, changes, strict=True)]), 0


_values.def_impl(_compute_values)
_change.def_impl(_compute_change)
_values.def_abstract_eval(_abstract_values)
_change.def_abstract_eval(_abstract_change)
ad.primitive_jvps[_values] = _values_jvp
ad.primitive_jvps[_change] = _change_jvp
ad.primitive_transposes[_change] = _change_transpose
batching.primitive_batchers[_values] = _values_batched
batching.primitive_batchers[_change] = _change_batched
mlir.register_lowering(_values, mlir.lower_fun(_called_back(_compute_values, _abstract_values), multiple_results=False))
mlir.register_lowering(_change, mlir.lower_fun(_called_back(_compute_change, _abstract_change), multiple_results=False))
