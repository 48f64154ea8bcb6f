"""The answer: a function, with what is known about how wrong it is."""

import operator
from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Bool, Float

from pdofm._types import Coefficients
from pdofm.calculus.jets import unit
from pdofm.deprecation import renamed_attribute
from pdofm.discrete.evaluate import derivatives, evaluate, evaluate_all
from pdofm.errors import ProblemError
from pdofm.features import Features
from pdofm.numerics.distance import relative_sizes
from pdofm.problem.problem import Problem
from pdofm.solving.integral import Integral, integrate
from pdofm.solving.verdict import Verdict

TEST_POINTS = {1: 2000, 2: 2500, 3: 2744}


@dataclass(frozen=True)
class Residual:
    """Root mean square of ``lhs(u) - rhs`` of one term, in its own units, at the fitted points and at points never used
    in the fit."""

    fitted: float
    held_out: float


@dataclass(frozen=True)
class Errors:
    """Errors against the exact solution over uniformly spaced points; in a system the largest over the components."""

    relative_l2: float
    max: float
    components: dict[str, "Errors"] = field(default_factory=dict)


@dataclass(frozen=True)
class Stats:
    """How the solution was found.

    `held_out_residual` is the root mean square of all scaled residuals at points that were not fitted.
    `features` counts per component, `rank` and `condition` are those of the (scaled) least-squares matrix, `residuals`
    has an entry per term, `seconds` one per phase, `steps` one per iteration of a nonlinear method. `undetermined` is
    the part of a random function that has no effect on the equation and the conditions, or none above rounding: tiny,
    if the solution is unique.
    """

    rows: int
    features: int
    components: int
    rank: int
    condition: float
    residuals: dict[str, Residual]
    held_out_residual: float
    seconds: dict[str, float]
    steps: list[dict[str, float]]
    undetermined: float = 0.0

    held_out = renamed_attribute("held_out", "held_out_residual")


@dataclass(frozen=True)
class Attempt:
    """One of the spaces that were tried for a tolerance.

    `change` is the distance to the attempt before, relative to the solution; NaN for the first one. An attempt that
    failed has an infinite estimate, and `why` says what happened.
    """

    space: str
    why: str
    features: int
    rows: int
    seconds: float
    estimate: float
    change: float


@dataclass(frozen=True, eq=False)
class Expansion(ABC):
    """A function in the space of some features, Σ cⱼ φⱼ, for the unknowns of a problem.

    It can be used in the functions of another problem, and the operators of `pdofm` can be applied to it.
    """

    problem: Problem
    features: Features
    coefficients: Coefficients

    def __call__(self, *points: Any) -> Any:
        if any(isinstance(each, Tracer) for each in points):
            return self._traced(points)
        z, single = points_of(self.problem, points)
        values = self.problem.layout.gathered(evaluate(self.features, self.coefficients, z))
        if self.problem.layout.unknowns is None:
            values = values[:, 0]
        return values[0] if single else values

    def _traced(self, points: tuple[Any, ...]) -> Array:
        """The value at one point, inside a function that JAX traces."""
        layout, dim = self.problem.layout, self.problem.domain.dim
        args = tuple(jnp.asarray(each, jnp.float64) for each in points)
        z = layout.point(args) if len(args) == 1 + layout.has_time else args[0]
        if len(args) > 1 + layout.has_time or z.shape != (dim,):
            expected = "u(x, t) or u(point)" if layout.has_time else "u(x)"
            raise ProblemError(
                f"A solution in the function of a problem is called at one point, as {expected} with {dim} coordinates "
                f"in all; got shapes {[each.shape for each in args]}."
            )
        values = layout.gathered(self.features.combine(z, jnp.asarray(self.coefficients)))
        return values[0] if layout.unknowns is None else values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        offsets = self.problem.layout.offsets
        if name not in offsets:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}; unknowns: "
                f"{list(offsets) or 'one scalar, call u(x)'}. Its derivatives are u.gradient(points) and, at a point, "
                "those of the operators, as in laplacian(u)(x)."
            )
        start, size = offsets[name]
        at = start if size == 1 else slice(start, start + size)
        return lambda *points: self(*points)[..., at]

    def gradient(self, *points: Any) -> np.ndarray:
        """The gradient in space: (d,) at a point, (n, d) at many; in a system (…, C, d)."""
        z, single = points_of(self.problem, points)
        layout, dim = self.problem.layout, self.problem.domain.dim
        which = [unit(dim, axis) for axis in range(dim - layout.has_time)]
        found = layout.gathered(derivatives(self.features, self.coefficients, z, which))
        found = np.moveaxis(found, 0, -1)
        values = found[:, 0] if layout.unknowns is None else found
        return values[0] if single else values

    def integral(self, of: Any = None, on: Any = None) -> Integral:
        """The integral over the domain, or over a part of its boundary, as a number with an `error_estimate`.

        Args:
            of: what is integrated, a function ``of(u, x)``, or ``of(u, x, t)``, or on a part also ``of(u, x, normal)``;
                by default u, and in a system the vector of all components.
            on: a part of the boundary, or ``domain.at(t)`` in space-time; the whole domain if omitted.
        """
        error = getattr(self, "error_estimate", 0.0)
        return integrate(self.problem, self.features, self.coefficients, of, on, error)


@dataclass(frozen=True, eq=False)
class Solution(Expansion):
    """The solution of a problem: ``u(x)`` for a point (d,), ``u(points)`` for many (n, d); in space-time also ``u(x,
    t)``.

    In a system ``u.v(points)`` is the unknown of that name, ``u(points)`` all components side by side.

    Attributes:
        error_estimate: estimated relative L2 error, known without an exact solution (see `pdofm.solving.estimate`).
        verdict: whether the solution counts as converged, why or why not, and what to do; `converged` and `reason` are
            views of it.
        space: the name of the space that was found, if a tolerance was asked for without features.
        attempts: the spaces that were tried for it.
    """

    error_estimate: float
    verdict: Verdict
    stats: Stats
    space: str = ""
    attempts: tuple[Attempt, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the solution is what was asked for."""
        return self.verdict.converged

    @property
    def reason(self) -> str:
        """Why it converged, or why not and what to do."""
        return self.verdict.reason

    @property
    def search(self) -> str:
        """The attempts as a table."""
        head = f"{'space':38s} {'features':>8s} {'rows':>6s} {'seconds':>8s} {'estimate':>9s} {'change':>8s}  why"
        lines = [
            f"{a.space:38s} {a.features:8d} {a.rows:6d} {a.seconds:8.2f} {a.estimate:9.1e} {a.change:8.1e}  {a.why}"
            for a in self.attempts
        ]
        return "\n".join([head, *lines])

    def errors(self, points: Any = None) -> Errors:
        """Relative L2 and maximum error against the exact solution.

        ‖e‖ = sqrt(Σ|u - u*|² / Σ|u*|²) and max|u - u*|, over `points` or by default over a uniform grid of about 2000
        (1D), 2500 (2D), 2744 (3D) points inside the domain.
        """
        problem = self.problem
        count = TEST_POINTS.get(problem.domain.dim, 4096)
        z = problem.domain.sample(count, "grid") if points is None else points_of(self.problem, (points,))[0]
        pair = problem.exact_values(z), evaluate(self.features, self.coefficients, z)
        truth, found = (problem.layout.gathered(each) for each in pair)
        gaps, names = np.abs(found - truth), problem.layout.names
        relative = relative_sizes(gaps, np.abs(truth), vanishing=0.0)
        each = {name: Errors(float(relative[i]), float(np.max(gaps[:, i]))) for i, name in enumerate(names)}
        return Errors(max(e.relative_l2 for e in each.values()), max(e.max for e in each.values()), each)

    def plot(self, path: str | PathLike | None = None, **options: Any) -> Any:
        """A figure of the solution (and of its error where the exact solution is known), saved to `path` if given."""
        from pdofm.output.plot import plot_solution

        return plot_solution(self, path, **options)

    def plot_search(self, path: str | PathLike | None = None) -> Any:
        """A figure of the attempts: estimated error against features, one line per space."""
        from pdofm.output.plot import plot_search

        return plot_search(self, path)

    def to_vtk(self, path: str | PathLike, **options: Any) -> None:
        """Write the solution for ParaView, as ``.vtu`` or ``.vtk``; see `pdofm.output.export.write_vtk`."""
        from pdofm.output.export import write_vtk

        write_vtk(self, path, **options)

    def __repr__(self) -> str:
        stats = self.stats
        components = f" x {stats.components} components" if stats.components > 1 else ""
        space = f"{stats.features} features{components}, {stats.rows} rows, rank {stats.rank}"
        verdict = "converged" if self.converged else f"NOT CONVERGED: {self.reason}"
        lines = [
            f"Solution of {self.problem.name!r}: {space}",
            f"  estimated relative error {self.error_estimate:.1e}, {verdict}",
        ]
        for name, residual in stats.residuals.items():
            lines.append(f"  residual of {name}: {residual.fitted:.1e} fitted, {residual.held_out:.1e} held out")
        lines.append("  seconds: " + ", ".join(f"{phase} {s:.2f}" for phase, s in stats.seconds.items()))
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Member(Expansion):
    """One of many solutions: a function like a `Solution`, with its relative residual."""

    residual: float
    converged: bool

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else "NOT CONVERGED"
        return f"Solution of {self.problem.name!r} for other data: relative residual {self.residual:.1e}, {verdict}"


@dataclass(frozen=True, eq=False)
class Solutions:
    """The solutions of one problem for k right-hand sides.

    ``many(points)`` has shape (n, k), in a system (n, C, k), and takes one product for all of them; at a single point
    (k,) and (C, k). ``many[j]`` is one of them, as a function. ``len(many)`` is k.

    Attributes:
        coefficients: shape (m, C, k).
        residuals: for each right-hand side the scaled residual, relative to the scaled data: 1 for the zero function.
        is_held_out: whether the residuals are taken at points that were not fitted, which is so if all data are
            functions. Data in arrays are known at the fitted points only; the residual there is too small if there are
            hardly more rows than features.
        converged: whether the residual is small enough (`pdofm.solving.verdict.ACCEPTABLE`) and the solution unique.
            Where the residual is too large, the features cannot represent the solution.
    """

    problem: Problem
    features: Features
    coefficients: Float[np.ndarray, "m C k"]
    residuals: Float[np.ndarray, " k"]
    is_held_out: bool
    converged: Bool[np.ndarray, " k"]

    held_out = renamed_attribute("held_out", "is_held_out")

    def __len__(self) -> int:
        return len(self.residuals)

    def __call__(self, *points: Any) -> np.ndarray:
        z, single = points_of(self.problem, points)
        found = evaluate_all(self.features, np.moveaxis(self.coefficients, 2, 0), z)
        values = np.moveaxis(self.problem.layout.gathered(found), 0, 2)
        values = values[:, 0] if self.problem.layout.unknowns is None else values
        return values[0] if single else values

    def __getitem__(self, j: int) -> Member:
        j = range(len(self))[operator.index(j)]
        c = np.ascontiguousarray(self.coefficients[:, :, j])
        return Member(self.problem, self.features, c, float(self.residuals[j]), bool(self.converged[j]))

    def __iter__(self) -> Iterator[Member]:
        return (self[j] for j in range(len(self)))

    def __repr__(self) -> str:
        where = "held-out" if self.is_held_out else "fitted"
        median, largest = np.median(self.residuals), np.max(self.residuals)
        return (
            f"{len(self)} solution{'s' if len(self) != 1 else ''} of {self.problem.name!r}: "
            f"{np.count_nonzero(self.converged)} converged, relative {where} residual "
            f"{median:.1e} (median), {largest:.1e} (largest)"
        )


def points_of(problem: Problem, given: tuple[Any, ...]) -> tuple[np.ndarray, bool]:
    """Points (n, d) from what the user gave, and whether it was a single one."""
    dim = problem.domain.dim
    if len(given) == 2 and problem.layout.has_time:
        x, t = (np.asarray(g, dtype=np.float64) for g in given)
        x = x[None] if x.ndim == 0 and dim == 2 else x
        shape = np.broadcast_shapes(x.shape[:-1], t.shape)
        x, t = np.broadcast_to(x, (*shape, x.shape[-1])), np.broadcast_to(t, shape)
        z = np.concatenate([x, t[..., None]], axis=-1)
    elif len(given) == 1:
        z = np.asarray(given[0], dtype=np.float64)
        z = z[None] if z.ndim == 0 and dim == 1 else z
    else:
        expected = "(points) or (x, t)" if problem.layout.has_time else "(points)"
        raise ProblemError(f"A solution is called as u{expected}; got {len(given)} arguments.")
    if z.ndim not in (1, 2) or z.shape[-1] != dim:
        raise ProblemError(
            f"Points have shape {z.shape}; expected ({dim},) for one point or (n, {dim}) for many in "
            f"{problem.domain!r}."
        )
    return np.atleast_2d(z), z.ndim == 1
