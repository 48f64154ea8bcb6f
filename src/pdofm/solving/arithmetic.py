"""Sums, differences and multiples of solutions, as functions."""

import copy
from dataclasses import dataclass
from numbers import Number, Real
from typing import Any

from pdofm.errors import ProblemError
from pdofm.problem.problem import Problem
from pdofm.solving.drawn import Drawn


class Arithmetic:
    """Addition and subtraction of functions, and multiplication by numbers, for classes with a `problem`."""

    problem: Problem

    def __call__(self, *points: Any) -> Any:
        """The values at points."""
        raise NotImplementedError

    def __add__(self, other: Any) -> "Sum":
        return _sum(self, other, 1.0)

    def __sub__(self, other: Any) -> "Sum":
        return _sum(self, other, -1.0)

    def __radd__(self, other: Any) -> "Sum":
        return _sum(self, other, 1.0)

    def __rsub__(self, other: Any) -> "Sum":
        return _sum(-1.0 * self, other, 1.0)

    def __mul__(self, factor: Any) -> "Sum":
        if not isinstance(factor, Number):
            return NotImplemented
        number = _number(factor, self.problem)
        terms, constant = _terms(self)
        return Sum(tuple((c * number, u) for c, u in terms), constant * number)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> "Sum":
        return self * (1 / _number(factor, self.problem)) if isinstance(factor, Number) else NotImplemented

    def __neg__(self) -> "Sum":
        return -1.0 * self


@dataclass(frozen=True, eq=False)
class Sum(Drawn, Arithmetic):
    """A linear combination of solutions, and a constant: a function that is evaluated, differentiated and drawn like a
    solution. It lives on the domain of its first one."""

    terms: tuple[tuple[float | complex, Any], ...]
    constant: float | complex = 0.0

    @property
    def problem(self) -> Problem:  # type: ignore[override]
        """The problem of the first solution, without its exact solution, under the name of the combination."""
        named = copy.copy(self.terms[0][1].problem)
        object.__setattr__(named, "name", self._name)
        object.__setattr__(named, "exact", None)
        return named

    def __call__(self, *points: Any) -> Any:
        return self.constant + sum(c * u(*points) for c, u in self.terms)

    def gradient(self, *points: Any) -> Any:
        """The gradient in space, as that of a solution."""
        return sum(c * u.gradient(*points) for c, u in self.terms)

    def dt(self, *points: Any) -> Any:
        """The derivative in time, as that of a solution."""
        return sum(c * u.dt(*points) for c, u in self.terms)

    def __getattr__(self, name: str) -> Any:
        offsets = {} if name.startswith("_") else self.terms[0][1].problem.layout.offsets
        if name not in offsets:
            raise AttributeError(f"A sum of solutions has no attribute {name!r}; its unknowns are {list(offsets)}.")
        start, size = offsets[name]
        at = start if size == 1 else slice(start, start + size)
        return lambda *points: self(*points)[..., at]

    @property
    def _name(self) -> str:
        signed = [f"{'-' if _is_negative(c) else '+'} {_factor(c)}({u.problem.name})" for c, u in self.terms]
        return " ".join(signed).removeprefix("+ ") + (f" {self.constant:+g}" if self.constant else "")

    def __repr__(self) -> str:
        return f"Sum({self._name})"


def _is_negative(c: float | complex) -> bool:
    return isinstance(c, float) and c < 0


def _factor(c: float | complex) -> str:
    """A factor without its sign, which is written before it."""
    if isinstance(c, complex):
        return f"({c:g}) "
    return "" if abs(c) == 1 else f"{abs(c):g} "


def _number(factor: Any, problem: Problem) -> float | complex:
    """A real number, or a complex one for complex unknowns."""
    if isinstance(factor, Real):
        return float(factor)
    if not problem.layout.is_complex:
        raise ProblemError(
            f"A solution of {problem.name!r} cannot be multiplied or shifted by {factor!r}: its unknowns are real. "
            "Give dtype=complex to the problem."
        )
    return complex(factor)


def _terms(function: Any) -> tuple[tuple[tuple[float | complex, Any], ...], float | complex]:
    return (function.terms, function.constant) if isinstance(function, Sum) else (((1.0, function),), 0.0)


def _sum(first: Any, second: Any, sign: float) -> Any:
    terms, constant = _terms(first)
    if isinstance(second, Number):
        return Sum(terms, constant + sign * _number(second, first.problem))
    if not isinstance(second, Arithmetic):
        return NotImplemented
    one, other = first.problem, second.problem
    if one.layout != other.layout or one.domain.dim != other.domain.dim:
        raise ProblemError(
            f"Solutions of {one.name!r} and {other.name!r} cannot be added: their unknowns or dimensions differ. "
            "Expected functions of the same variables with the same unknowns."
        )
    more, second_constant = _terms(second)
    return Sum((*terms, *((sign * c, u) for c, u in more)), constant + sign * second_constant)
