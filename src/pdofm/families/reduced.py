"""A family in few learned functions: a new member takes microseconds, and comes with an error estimate."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from pdofm.domain.files import describe, restored
from pdofm.errors import FeaturesError, ProblemError
from pdofm.families.polynomial import Polynomial
from pdofm.families.projection import Projection
from pdofm.families.sweep import Sweep, swept
from pdofm.features import Features
from pdofm.features import io as features_io
from pdofm.problem.problem import Problem
from pdofm.solving.files import reader, without_equation
from pdofm.solving.solution import Solution
from pdofm.solving.stats import Stats
from pdofm.solving.verdict import Evidence, Status, Verdict, judge

FORMAT = "pdofm-family-1"
"""The format of a reduced family in a file."""

RESONANT = 0.03
"""A smallest singular value below this fraction of the usual one means that the equation is nearly singular."""

INTERPOLATED = 2.0
"""The error estimate of an interpolation over its largest error at members that were not fitted."""


@dataclass(frozen=True, eq=False, repr=False)
class ReducedFamily:
    """Members of a family as combinations of few functions: ``small(mu)`` is a `Solution`.

    Attributes:
        features: the space of the family.
        weights: the learned functions as combinations of the features, (m, C, r), orthonormal in L².
        lower, upper: the smallest and the largest parameters that were learned.
        engine: a `Projection`, which solves the equation in these functions, or a `Polynomial`, which interpolates.
        truth: the largest error estimate of the members that it was learned from.
        tol: the relative error that was asked for.
    """

    problem: Problem
    features: Features
    weights: Float[np.ndarray, "m C r"]
    lower: Float[np.ndarray, " parameters"]
    upper: Float[np.ndarray, " parameters"]
    shape: tuple[int, ...]
    engine: Projection | Polynomial
    truth: float
    tol: float

    @property
    def size(self) -> int:
        """The number of learned functions."""
        return self.weights.shape[2]

    def __repr__(self) -> str:
        how = "solves the equation in them" if isinstance(self.engine, Projection) else "interpolates in the parameters"
        return (
            f"ReducedFamily of {self.problem.name!r}: {self.size} learned functions, {how}; parameters from "
            f"{self.lower.tolist()} to {self.upper.tolist()}"
        )

    def __call__(self, mu: Any) -> Solution:
        """The member with parameters mu. Its verdict says whether the estimate is below the tolerance, and whether the
        parameters are outside of what was learned or near a resonance, where no estimate can be trusted."""
        y, verdict = self.coordinates(mu)
        m, components, r = self.weights.shape
        stats = Stats(r, r, components, r, np.nan, {}, np.nan, {}, [])
        coefficients = (self.weights.reshape(-1, r) @ y).reshape(m, components)
        estimate = verdict.evidence.estimate
        return Solution(self.problem, self.features, coefficients, estimate or 0.0, verdict, stats)

    def sweep(self, mus: Any, of: Callable[[Solution], Any], *, progress: bool = True) -> Sweep:
        """A quantity ``of(u)``, a number or an array, of the members with parameters `mus`."""
        return swept(self, mus, of, progress)

    def coordinates(self, mu: Any) -> tuple[Float[np.ndarray, " r"], Verdict]:
        """The member in terms of the learned functions, and what is known about its error."""
        given = np.asarray(mu, dtype=np.float64)
        if given.shape != self.shape:
            raise ProblemError(f"The parameters have shape {given.shape}; expected {self.shape}, as was learned.")
        vector, is_resonant = given.reshape(-1), False
        if isinstance(self.engine, Projection):
            y, residual, smallest = self.engine.solve(vector)
            size = float(np.linalg.norm(y))
            estimate = residual / (smallest * size) if smallest * size > 0 else np.inf
            is_resonant = not smallest > RESONANT * self.engine.typical
        else:
            y, estimate = self.engine(vector), INTERPOLATED * self.engine.error
        return y, self._verdict(vector, estimate + self.truth, is_resonant)

    def _verdict(self, mu: Float[np.ndarray, " parameters"], estimate: float, is_resonant: bool) -> Verdict:
        slack = 1e-9 * (self.upper - self.lower)
        outside = np.flatnonzero((mu < self.lower - slack) | (mu > self.upper + slack))
        evidence = Evidence(tol=self.tol, estimate=estimate)
        if len(outside):
            i = int(outside[0])
            message = (
                f"parameter {i} is {mu[i]:g}, outside of what was learned, {self.lower[i]:g} to {self.upper[i]:g}: the "
                "estimate means nothing there"
            )
            return Verdict(Status.UNCONFIRMED, message, "reduce the family for these parameters, too", evidence)
        if is_resonant:
            message = (
                "the equation is nearly singular at these parameters, a resonance: small errors grow, and how far "
                "cannot be known from the learned functions"
            )
            return Verdict(Status.UNCONFIRMED, message, "solve with the family itself", evidence)
        return judge(evidence, "reduce the family with more members, or a smaller tol")

    def content(self) -> bytes:
        """The content of a file."""
        arrays: dict[str, np.ndarray] = {"weights": self.weights, "lower": self.lower, "upper": self.upper}
        tree = features_io.encode(self.features, "features.", arrays)
        engine = self.engine
        about = {
            "name": self.problem.name,
            "unknowns": None if (u := self.problem.layout.unknowns) is None else [list(each) for each in u],
            "is_complex": self.problem.layout.is_complex,
            "domain": describe(self.problem.domain),
            "shape": list(self.shape),
            "truth": self.truth,
            "tol": self.tol,
            "engine": type(engine).__name__,
        }
        if isinstance(engine, Projection):
            arrays |= {"left": engine.left, "right": engine.right}
            about |= {"typical": engine.typical}
            named = {"of_left": engine.of_left, "of_right": engine.of_right}
        else:
            named = {"values": engine}
        for name, each in named.items():
            about[name] = each.error
            for part in ("lower", "upper", "powers", "coefficients"):
                arrays[f"{name}.{part}"] = np.asarray(getattr(each, part), dtype=np.float64)
        kept = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return features_io.serialised(FORMAT, {"features": json.dumps(tree), "family": json.dumps(about)}, kept)


@reader(FORMAT)
def from_file(header: dict[str, str], arrays: dict[str, np.ndarray], what: str) -> ReducedFamily:
    """The reduced family that `ReducedFamily.content` described."""
    try:
        about = json.loads(header["family"])
        own = ("weights", "lower", "upper", "left", "right")
        numbers = {name: arrays.pop(name) for name in list(arrays) if name in own or not name.startswith("features.")}
        if any(array.dtype != np.float64 or not np.isfinite(array).all() for array in numbers.values()):
            raise ValueError("arrays that are not finite numbers")

        def polynomial(name: str) -> Polynomial:
            parts = ("lower", "upper", "powers", "coefficients")
            lower, upper, powers, values = (numbers[f"{name}.{part}"] for part in parts)
            return Polynomial(lower, upper, powers.astype(np.int64), values, float(about[name]))

        if about["engine"] == "Projection":
            functions = polynomial("of_left"), polynomial("of_right")
            engine = Projection(numbers["left"], numbers["right"], *functions, float(about["typical"]))
        else:
            engine = polynomial("values")
        features = features_io.decode(json.loads(header["features"]), arrays)
        features_io.check(features)
        unknowns = None if about["unknowns"] is None else {str(name): int(size) for name, size in about["unknowns"]}
        problem = without_equation(restored(about["domain"]), unknowns, str(about["name"]), about["is_complex"])
        if numbers["weights"].shape[:2] != (features.size, problem.layout.components):
            raise ValueError("weights that do not fit the features")
        ends, shape = (numbers["lower"], numbers["upper"]), tuple(int(n) for n in about["shape"])
        weights, truth, tol = numbers["weights"], float(about["truth"]), float(about["tol"])
        return ReducedFamily(problem, features, weights, *ends, shape, engine, truth, tol)
    except features_io.MALFORMED as error:
        raise FeaturesError(f"{what} does not describe a reduced family of this package: {error!r}.") from error
