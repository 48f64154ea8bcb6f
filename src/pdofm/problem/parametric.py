"""Problems that depend on parameters: terms whose left sides and data receive the parameters at run time.

The functions of ``make(mu)`` are new ones for every mu, and would be compiled anew. Here `make` is traced instead, with
mu as an argument: a compiled function serves all parameters. To everything that collocates and assembles, the
parameters look like further entries of the normal: a block holds the normals and the parameters side by side.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Float

from pdofm.calculus.terms import Difference, Layout, Term, joined
from pdofm.problem.data import Given, Varying
from pdofm.problem.example import form, like
from pdofm.problem.problem import Problem

Parameters = Float[np.ndarray, " parameters"]
"""Parameters as a vector."""

Make = Callable[[Any], Problem]
"""From parameters to the problem that belongs to them."""


@dataclass(frozen=True, eq=False)
class Parametric:
    """A problem as a function of parameters of a `shape`; `example` is the problem of some of them, already checked."""

    make: Make
    example: Problem
    shape: tuple[int, ...]

    def __post_init__(self):
        form(self.example)  # known from here on, as it cannot be computed while something is traced

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def space_dim(self) -> int:
        """The number of entries of a normal."""
        return self.example.domain.dim - self.example.layout.has_time

    def problem(self, mu: Any) -> Problem:
        """The problem of other parameters, numbers or traced ones, without the checks that the example has passed."""
        with like(self.example):
            return self.make(jnp.reshape(mu, self.shape) if isinstance(mu, Tracer) else mu)

    def term(self, name: str, mu: Any) -> tuple[Problem, Term]:
        """The problem of parameters, and one of its terms."""
        problem = self.problem(mu)
        return problem, next(term for term in problem.terms if term.name == name)

    def split(self, normal: Array) -> tuple[Array, Array]:
        """The normal and the parameters from both side by side."""
        return normal[: self.space_dim], normal[self.space_dim :]

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the example with left sides that expect normal and parameters side by side."""
        return tuple(replace(term, lhs=self._left(term)) for term in self.example.terms)

    def _left(self, term: Term) -> Any:
        if isinstance(term.lhs, Difference):
            return Difference(Left(self, term.name), term.lhs.shifts)
        return Left(self, term.name)

    @cached_property
    def data(self) -> dict[str, "Data"]:
        """The right sides of the terms, by name."""
        return {term.name: Data(self, term.name) for term in self.example.terms}


@dataclass(frozen=True)
class Left:
    """The left side of a term, with the parameters behind the normal."""

    of: Parametric
    name: str

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        normal, mu = self.of.split(normal)
        _, term = self.of.term(self.name, mu)
        lhs = term.lhs.lhs if isinstance(term.lhs, Difference) else term.lhs
        return lhs(u, w, args, normal)


@dataclass(frozen=True)
class Data(Varying):
    """The right side of a term, with the parameters behind the normal."""

    of: Parametric
    name: str

    def __call__(self, layout: Layout, args: tuple[Array, ...], normal: Array) -> Array:
        normal, mu = self.of.split(normal)
        problem, term = self.of.term(self.name, mu)
        if callable(term.rhs):
            return Given(term.rhs)(layout, args, normal)
        if term.rhs is None and problem.exact is not None:
            return problem.manufactured(term)(layout, args, normal)
        value = joined(0.0 if term.rhs is None else term.rhs)
        if layout.is_complex:
            value = jnp.concatenate([jnp.real(value), jnp.imag(value)])
        return value.astype(jnp.result_type(float))
