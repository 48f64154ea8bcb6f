"""Trial evaluation: the user's functions are traced at one point, before any real work, to find and explain errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pdofm.calculus.terms import Layout, Term, check_real, joined
from pdofm.domain import Domain
from pdofm.errors import PdofmError, ProblemError
from pdofm.problem.conditions import takes_normal
from pdofm.problem.data import RightSide


@dataclass(frozen=True, eq=False)
class Trial:
    """Traces functions at a point of the domain. Nothing is computed, but every error of a shape shows."""

    domain: Domain
    layout: Layout

    @cached_property
    def _point(self) -> np.ndarray:
        return self.domain.sample(1)[0]

    def check_exact(self, exact: Any, fields: Any) -> None:
        """Raise unless `exact` gives a value for every component; `fields` is the same as user functions see it."""
        names = None if self.layout.unknowns is None else [name for name, _ in self.layout.unknowns]
        given = list(exact) if isinstance(exact, Mapping) else None
        if given is not None and names is not None:  # values of parameters may be among them
            given = [name for name in given if name in names or callable(exact[name])]
        if (names is None and not callable(exact)) or (names is not None and sorted(given or []) != sorted(names)):
            expected = (
                "a function of the point" if names is None else f"a dictionary with a function for each of {names}"
            )
            raise ProblemError(f"exact must be {expected}; got {given or type(exact).__name__}.")
        for function in exact.values() if isinstance(exact, Mapping) else (exact,):
            self._check_indices("exact solution", function)
        found = self._size(
            lambda z, normal: joined(fields(*self.layout.arguments(z))), "exact solution", "", self.layout.is_complex
        )
        if found != self.layout.numbers:
            raise ProblemError(
                f"exact has {found} values at a point; expected {self.layout.numbers}, one per component of the "
                "unknowns."
            )

    def check_term(self, term: Term, right_side: RightSide) -> None:
        """Raise unless the left side and the data of a term can be evaluated and have matching shapes."""

        def left(z: Array, normal: Array) -> Array:
            u = self.layout.fields(lambda y: jnp.sum(y) * jnp.ones(self.layout.components))
            return term.lhs(u, u, self.layout.arguments(z), normal)

        is_equation = term.on is None
        where = "" if term.region is None else f" of the region {term.region!r}"
        function = f"operator{where}" if is_equation else f"condition {term.name!r}"
        rows = self._size(left, function, "u, ")
        self._check_indices(function, getattr(term.lhs, "function", None), with_unknown=True)
        if is_equation and self.layout.unknowns is None and rows != self.layout.components:
            raise ProblemError(
                f"The operator returned {rows} values at a point; expected a scalar for one unknown. "
                "Index the vector, or name the unknowns of a system with unknowns={'v': 2, …}."
            )
        self.check_data(
            term, right_side, rows, f"source{where}" if is_equation else f"value of condition {term.name!r}"
        )

    def check_data(self, term: Term, right_side: RightSide, rows: int, data: str) -> None:
        """Raise unless the right side has one value at a point per row of the left side, or is one number for all of
        them; messages call it `data`."""

        def right(z: Array, normal: Array) -> Array:
            return right_side(self.layout, self.layout.arguments(z), normal)

        found = self._size(right, data, "")
        if right_side.numbers is not None and not np.isfinite(right_side.numbers).all():
            raise ProblemError(f"The {data} is {list(right_side.numbers)}; expected finite numbers.")
        self._check_indices(data, term.rhs)
        if found != rows and right_side.numbers is not None and found != 1:
            raise ProblemError(
                f"The {data} has {found} entries at a point; expected {rows}, as many as the left side has, or one "
                "number. Values on a grid or at points become a function by Table(points, values); a condition at "
                "points takes them as they are: Dirichlet(values, on=points)."
            )
        if found != rows and right_side.numbers is None:
            raise ProblemError(
                f"The {data} has {found} {'entry' if found == 1 else 'entries'} at a point; expected {rows}, as many "
                "as the left side has. Return a vector, as in jnp.stack([…]), or give one number if all entries are "
                "that number."
            )

    def _size(self, function: Callable[..., Array], what: str, first: str, is_complex: bool = False) -> int:
        """Number of values that a function returns at a point; an error inside it is explained."""
        dim, has_time = self.domain.dim, self.layout.has_time
        point, space = (jax.ShapeDtypeStruct((n,), jnp.float64) for n in (dim, dim - has_time))
        try:
            value = jax.eval_shape(function, point, space)
            if not is_complex:
                check_real(value)
            return value.shape[0]
        except PdofmError:
            raise
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            if has_time and isinstance(error, TypeError) and "positional argument" in reason:
                inside = ", with u(x, t), dt(u)(x, t), laplacian(u)(x, t) inside" if first else ""
                raise ProblemError(
                    f"The {what} does not take the time. Add t: lambda {first}x, t: …{inside} ({reason})."
                ) from error
            raise ProblemError(
                f"The {what} cannot be evaluated at a point: {reason}. It is called as "
                f"({first}x{', t' if has_time else ''}) with x of shape ({dim - has_time},) and must return numbers; "
                "on a boundary, an argument that is called `normal` is the outward normal. Use jax.numpy (jnp) "
                "instead of numpy and math, jnp.where instead of if, and apply operators to a point: laplacian(u)(x)."
            ) from error

    def _check_indices(self, what: str, function: Any, with_unknown: bool = False) -> None:
        """Raise if a function uses a coordinate that the point does not have.

        JAX clamps an index that is out of range, but NumPy raises: the function is traced with a NumPy point.
        """
        if not callable(function):
            return
        z = self._point
        args: tuple[Any, ...] = (z[:-1], z[-1]) if self.layout.has_time else (z,)
        extra = {"normal": np.zeros(len(args[0]))} if takes_normal(function) else {}

        def traced(values: Array) -> Any:
            unknown = (self.layout.fields(lambda y: values),) if with_unknown else ()
            return function(*unknown, *args, **extra)

        try:
            with np.errstate(all="ignore"):
                jax.eval_shape(traced, jax.ShapeDtypeStruct((self.layout.components,), jnp.float64))
        except IndexError as error:
            raise ProblemError(
                f"The {what} uses a coordinate that does not exist: {error}. x has {len(args[0])} coordinates."
            ) from error
        except Exception:  # noqa: BLE001 (every other error also occurs, and is explained, in `_size`)
            pass
