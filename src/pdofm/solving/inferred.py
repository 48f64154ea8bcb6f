"""Solutions of problems with unknown numbers and fields."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from pdofm._types import Vector
from pdofm.calculus.parameters import FieldValues
from pdofm.discrete.evaluate import evaluate, evaluate_all, feature_values
from pdofm.features import Features
from pdofm.problem.problem import Problem
from pdofm.solving.called import points_of
from pdofm.solving.solution import Solution
from pdofm.solving.statistics import LEVEL

BAND = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""The half width of a band in standard deviations."""


@dataclass(frozen=True, eq=False)
class Correction:
    """What is added to the start of a field, as a function of one point."""

    features: Features
    coefficients: Vector

    def __call__(self, z: Any) -> Any:
        return self.features(z) @ self.coefficients


@dataclass(frozen=True, eq=False)
class FoundField:
    """A field that was found from data: ``s.k(points)`` are its values, ``s.k.band(points)`` their uncertainty.

    Attributes:
        problem: the problem it belongs to.
        values: the field as a function of one point, which JAX can differentiate.
        features, coefficients: of the correction of its start.
        covariance: of the coefficients.
        weight: that of its second derivatives in what was minimised.
    """

    problem: Problem
    values: FieldValues
    features: Features
    coefficients: Vector
    covariance: Float[np.ndarray, "m m"]
    weight: float

    def __call__(self, *points: Any) -> Any:
        """The values at points, (n,) for points (n, d) and a number for one."""
        if any(isinstance(each, Tracer) for each in points):
            return self.values(*points)
        z, single = points_of(self.problem, points)
        found = self._at(z)
        return found[0] if single else found

    def band(self, *points: Any) -> Any:
        """How far the field may be off at points: with 95 % probability it differs by less, on average over them."""
        z, single = points_of(self.problem, points)
        basis = feature_values(self.features, z)
        variance = np.einsum("nm,mk,nk->n", basis, self.covariance, basis)
        half = BAND * np.abs(self.values.slope(self._at(z))) * np.sqrt(np.maximum(variance, 0.0))
        return half[0] if single else half

    def _at(self, z: Float[np.ndarray, "n d"]) -> Vector:
        added = evaluate(self.features, self.coefficients[:, None], z)[:, 0]
        layout = self.problem.layout

        def value(point: Any, correction: Any) -> Any:
            return self.values.with_correction(layout.arguments(point), correction)

        return np.asarray(jax.vmap(value)(jnp.asarray(z), jnp.asarray(added)))

    def __repr__(self) -> str:
        found = self._at(self.problem.domain.sample(256))
        return f"FoundField({len(self.coefficients)} functions, values between {found.min():.4g} and {found.max():.4g})"


@dataclass(frozen=True, eq=False)
class Inferred(Solution):
    """The solution of a problem with unknown numbers or fields: ``s.k`` is a number or a field, ``s.u(points)`` the
    function.

    Attributes:
        numbers: the numbers by name.
        fields: the fields by name.
        intervals: for each number the ends of an interval that contains the truth with 95 % probability, from the
            linearised problem.
        covariance: of the numbers, of the logarithms of positive ones, and of the coefficients of fields after them.
        noise: the standard deviation of the data as estimated from the residuals, if none was given.
        influence: the derivatives of the coefficients with respect to these parameters, shape (m, C, p).
    """

    numbers: Mapping[str, float] = field(kw_only=True)
    intervals: Mapping[str, tuple[float, float]] = field(kw_only=True)
    covariance: Float[np.ndarray, "p p"] = field(kw_only=True)
    noise: float | None = field(kw_only=True)
    influence: Float[np.ndarray, "m C p"] = field(kw_only=True)
    fields: Mapping[str, FoundField] = field(default_factory=dict, kw_only=True)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.numbers:
            return self.numbers[name]
        if not name.startswith("_") and name in self.fields:
            return self.fields[name]
        return super().__getattr__(name)

    def band(self, *points: Any) -> np.ndarray:
        """How far the solution may be off at points, of the shape of its values: with 95 % probability it differs by
        less at each point. That is the uncertainty of the data; `error_estimate` is that of the solution for these
        numbers."""
        z, single = points_of(self.problem, points)
        slopes = evaluate_all(self.features, np.moveaxis(self.influence, 2, 0), z)
        slopes = slopes - evaluate(self.features, np.zeros_like(self.coefficients), z)
        variance = np.einsum("pnc,pq,qnc->nc", slopes, self.covariance, slopes)
        layout = self.problem.layout
        half = BAND * np.sqrt(np.maximum(variance, 0.0))
        values = layout.gathered(half)
        return values[0] if single else values

    def __repr__(self) -> str:
        shown = [
            f"  {name} = {value:.10g}, with 95 % probability between {low:.8g} and {high:.8g}"
            for (name, value), (low, high) in zip(self.numbers.items(), self.intervals.values(), strict=True)
        ]
        shown += [f"  {name} = {found!r}" for name, found in self.fields.items()]
        first, *rest = super().__repr__().splitlines()
        return "\n".join([first, *shown, *rest])
