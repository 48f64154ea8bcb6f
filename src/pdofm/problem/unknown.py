"""Unknown numbers and fields, and the data from which they are found."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from pdofm.calculus.parameters import FieldValues, Parameters
from pdofm.calculus.terms import Term, Where
from pdofm.errors import ProblemError
from pdofm.problem.conditions import BaseCondition, Context, Residual, Value

THRESHOLDS = {"huber": 1.345, "cauchy": 2.385}
"""Residuals beyond this many standard deviations weigh less in a robust loss. With these thresholds estimates from
normally distributed errors lose 5 % of their efficiency."""


@dataclass(frozen=True)
class Number:
    """An unknown number, as in ``unknowns={"u": 1, "k": pf.Number(1.0)}``: in the operator and in residuals ``u.k`` is
    the number, and ``u.u(x)`` the function.

    Args:
        start: where the search for it begins.
        lower, upper: bounds.
        positive: it is positive; the search then is one for its logarithm.
    """

    start: float = 1.0
    _: KW_ONLY
    lower: float = -np.inf
    upper: float = np.inf
    positive: bool = False

    def __post_init__(self):
        numbers = (self.start, self.lower, self.upper)
        if not all(isinstance(n, int | float | np.number) and not np.isnan(n) for n in numbers):
            raise ProblemError(
                f"Number takes numbers; got start={self.start!r}, bounds {self.lower!r}, {self.upper!r}."
            )
        least = max(self.lower, 0.0) if self.positive else self.lower
        if not (np.isfinite(self.start) and least <= self.start <= self.upper and self.lower < self.upper):
            raise ProblemError(
                f"The start of a Number is {self.start:g}; expected a number between its bounds, {least:g} and "
                f"{self.upper:g}."
            )
        if self.positive and self.start <= 0:
            raise ProblemError(f"A positive Number must start above 0; got {self.start:g}.")

    @property
    def coordinate(self) -> float:
        """The coordinate in which it is searched for, at the start."""
        return float(self.inward(self.start))

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of the coordinate."""
        least = max(self.lower, 0.0) if self.positive else self.lower
        with np.errstate(divide="ignore"):
            return float(self.inward(least)), float(self.inward(self.upper))

    def inward(self, value: Any) -> Any:
        """The coordinate of a value."""
        return np.log(value) if self.positive else value

    def outward(self, coordinate: Any) -> Any:
        """The value at a coordinate."""
        with np.errstate(over="ignore"):
            return np.exp(coordinate) if self.positive else coordinate

    def slope(self, value: float) -> float:
        """The derivative of the value with respect to the coordinate."""
        return value if self.positive else 1.0


@dataclass(frozen=True, eq=False)
class Field:
    """An unknown coefficient, as in ``unknowns={"u": 1, "k": pf.Field(1.0, positive=True)}``: in the operator, and in
    residuals, ``u.k(x)`` is its value, which can be differentiated, and ``u.u(x)`` the function that is solved for.

    It is found from `Data`, as smooth as they allow: its second derivatives are kept small, with a weight that the data
    choose.

    Args:
        start: where the search begins, a positive number or any function of the point if the field is positive, else
            any. What is kept smooth is the field divided by a positive start, or less any other start.
        positive: it is positive; the search then is one for its logarithm.
        features: how many polynomials it consists of at most, or features; by default enough for the data.
    """

    start: Any = 1.0
    _: KW_ONLY
    positive: bool = False
    features: Any = None

    def __post_init__(self):
        if callable(self.start):
            return
        if not isinstance(self.start, int | float | np.number) or not np.isfinite(self.start):
            raise ProblemError(f"Field starts at a number or a function of the point; got start={self.start!r}.")
        if self.positive and self.start <= 0:
            raise ProblemError(f"A positive Field must start above 0; got {self.start:g}.")


@dataclass(frozen=True, eq=False, repr=False)
class Data(BaseCondition):
    """Measurements, from which unknown numbers and coefficients are found.

    The equation and all other conditions hold exactly; measurements are as uncertain as their noise says.

    Args:
        points: where was measured, shape (n, d), in space-time with the time last.
        values: what was measured, shape (n,), or (n, k) for k values at a point.
        noise: the standard deviation of the measurements, a number or one for each of them. If omitted it is the same
            for all and estimated from how well they are fitted.
        unknown: in a system the unknown that was measured.
        of: what was measured, if it is no unknown itself, a function ``of(u, x)`` such as a flux.
        robust: "huber" or "cauchy" if some measurements may be outliers.
        name: what messages call the data.
    """

    points: Any
    values: Any
    _: KW_ONLY
    noise: Any = None
    unknown: str | None = None
    of: Callable[..., Any] | None = None
    robust: str | None = None
    name: str = "data"
    on: Where = field(default=None, init=False)
    weight: float = field(default=1.0, init=False)

    def __post_init__(self):
        if self.of is not None and (self.unknown is not None or not callable(self.of)):
            raise ProblemError(
                f"Condition {self.name!r}: of= must be a function such as lambda u, x: u.k * grad(u.u)(x)[0], without "
                f"unknown=; got of={self.of!r}, unknown={self.unknown!r}."
            )
        if self.robust is not None and self.robust not in THRESHOLDS:
            raise ProblemError(f"Condition {self.name!r}: robust must be 'huber' or 'cauchy'; got {self.robust!r}.")
        if self.robust is not None and self.noise is None:
            raise ProblemError(
                f"Condition {self.name!r}: a robust loss must know how large residuals usually are. Give noise=."
            )
        if not np.isfinite(self.measured).all():
            raise ProblemError(f"Condition {self.name!r}: some values are infinite or NaN. Leave these points out.")
        if self.noise is not None:
            noise = np.asarray(self.noise, dtype=np.float64)
            if not (np.isfinite(noise).all() and (noise > 0).all()):
                raise ProblemError(
                    f"Condition {self.name!r}: noise is a standard deviation and must be positive; got {self.noise!r}. "
                    "Leave it out for data without known noise."
                )

    def terms(self, problem: Context) -> list[Term]:
        lhs = Value(self.unknown) if self.of is None else Residual(self.of)
        return [Term(self.name, lhs, 0.0, self.points, self.weight, "data")]

    @property
    def measured(self) -> np.ndarray:
        """The values as rows, one for each point."""
        values = np.asarray(self.values)
        if not np.issubdtype(values.dtype, np.number) or values.ndim not in (1, 2):
            raise ProblemError(
                f"Condition {self.name!r}: values must be numbers of shape (n,) or (n, k); got shape {values.shape} of "
                f"type {values.dtype}."
            )
        return values[:, None] if values.ndim == 1 else values

    def rows(self, points: int, entries: int, is_complex: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """The values as real numbers (n, k), and their noise, for a left side with that many real entries."""
        values = self.measured
        if np.iscomplexobj(values) and not is_complex:
            raise ProblemError(
                f"Condition {self.name!r} has complex values, but the unknowns are real. Give dtype=complex."
            )
        if is_complex:
            values = np.concatenate([np.real(values), np.imag(values)], axis=1)
        if values.shape != (points, entries):
            per = entries // 2 if is_complex else entries
            raise ProblemError(
                f"Condition {self.name!r} has values of shape {np.shape(self.values)} at {points} points; expected "
                f"{(points,) if per == 1 else (points, per)}, as many as its left side has."
            )
        if self.noise is None:
            return values.astype(np.float64), None
        noise = np.asarray(self.noise, dtype=np.float64)
        noise = noise[:, None] if noise.ndim == 1 else noise
        try:
            return values.astype(np.float64), np.broadcast_to(noise, values.shape)
        except ValueError as error:
            raise ProblemError(
                f"Condition {self.name!r}: noise has shape {np.shape(self.noise)}; expected a number, or one for each "
                f"of the {points} measurements."
            ) from error


def functions_of(unknowns: Mapping[str, Any] | None) -> dict[str, int] | None:
    """The unknown functions that the equation is solved for, with their sizes; None for one scalar without a name."""
    if unknowns is None:
        return None
    return {name: size for name, size in unknowns.items() if not isinstance(size, Number | Field)}


def parameters_of(unknowns: Mapping[str, Any] | None) -> Parameters:
    """The parameters among the unknowns, at their starts."""
    numbers = {name: each for name, each in (unknowns or {}).items() if isinstance(each, Number)}
    fields = {name: each for name, each in (unknowns or {}).items() if isinstance(each, Field)}
    return Parameters(
        tuple((name, float(number.start)) for name, number in numbers.items()),
        tuple((name, FieldValues(each.start, each.positive)) for name, each in fields.items()),
    )
