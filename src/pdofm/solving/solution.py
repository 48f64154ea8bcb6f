"""The answer: a function, with what is known about how wrong it is."""

import operator
from abc import ABC
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Bool, Float

from pdofm._types import Coefficients, Points
from pdofm.calculus.jets import unit
from pdofm.calculus.operators import normal_derivative
from pdofm.deprecation import renamed_attribute
from pdofm.discrete.evaluate import derivatives, evaluate, evaluate_all
from pdofm.domain import Domain, Part
from pdofm.errors import ProblemError
from pdofm.features import Features, RegionFeatures
from pdofm.features.regions import RegionPolynomials
from pdofm.numerics.distance import relative_sizes
from pdofm.problem.contradictions import check_exact
from pdofm.problem.problem import Problem
from pdofm.shown import Shown
from pdofm.solving.arithmetic import Arithmetic
from pdofm.solving.called import points_of
from pdofm.solving.drawn import Drawn
from pdofm.solving.integral import Integral, integrate
from pdofm.solving.stats import Attempt, Errors, Record, Stats
from pdofm.solving.verdict import Verdict

TEST_POINTS = {1: 2000, 2: 2500, 3: 2744}

MOST_GRIDDED = 6
"""In more dimensions than these a grid has two or three points along an axis, and Sobol' points take its place."""


def comparison_points(domain: Domain) -> Points:
    """The points at which solutions are compared: of a uniform grid inside the domain."""
    return domain.sample(TEST_POINTS.get(domain.dim, 4096), "grid" if domain.dim <= MOST_GRIDDED else "sobol")


@dataclass(frozen=True, eq=False)
class Expansion(Arithmetic, ABC):
    """A function in the space of some features, Σ cⱼ φⱼ, for the unknowns of a problem.

    It can be used in the functions of another problem, and the operators of `pdofm` can be applied to it. Sums,
    differences and multiples of such functions are functions, too: ``(u - v).plot()``.
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
        """The value at one point (or at points of shape (n, d)), inside a function that JAX traces."""
        layout, dim = self.problem.layout, self.problem.domain.dim
        args = tuple(jnp.asarray(each, jnp.float64) for each in points)
        z = layout.point(args) if len(args) == 1 + layout.has_time and args[0].ndim == 1 else args[0]
        if len(args) == 1 and z.ndim == 2 and z.shape[1] == dim:
            return jax.vmap(lambda point: self._traced((point,)))(z)
        if len(args) > 1 + layout.has_time or z.shape != (dim,):
            expected = "u(x, t) or u(point)" if layout.has_time else "u(x)"
            raise ProblemError(
                f"A solution in the function of a problem is called at one point, as {expected} with {dim} coordinates "
                f"in all, or under jax.jit at points of shape (n, {dim}); got shapes {[each.shape for each in args]}."
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

    def side(self, region: str) -> "Side":
        """The solution as a region sees it, which differs from side to side of an interface; meaningless elsewhere."""
        if not isinstance(self.features, RegionPolynomials | RegionFeatures):
            raise ProblemError("The problem has one region. Call the solution itself, or its gradient.")
        return Side(self.problem, self.features.of_region(region), self.coefficients, region)

    def gradient(self, *points: Any) -> np.ndarray:
        """The gradient in space: (d,) at a point, (n, d) at many; in a system (…, C, d)."""
        return self._derivatives(points, range(self.problem.domain.dim - self.problem.layout.has_time))

    def dt(self, *points: Any) -> np.ndarray:
        """The derivative in time, of the same shape as the values."""
        if not self.problem.layout.has_time:
            raise ProblemError(f"{self.problem.domain!r} has no time. Use u.gradient(points) for derivatives in space.")
        return self._derivatives(points, [self.problem.domain.dim - 1])[..., 0]

    def _derivatives(self, points: tuple[Any, ...], axes: Iterable[int]) -> np.ndarray:
        """The first derivatives along axes, which come last."""
        z, single = points_of(self.problem, points)
        layout, which = self.problem.layout, [unit(self.problem.domain.dim, axis) for axis in axes]
        found = layout.gathered(derivatives(self.features, self.coefficients, z, which))
        values = np.moveaxis(found[..., 0] if layout.unknowns is None else found, 0, -1)
        return values[0] if single else values

    def integral(self, of: Any = None, on: Any = None) -> Integral:
        """The integral over the domain, or over a part of its boundary, as a number with an `error_estimate`.

        Args:
            of: what is integrated, a function ``of(u, x)``, or ``of(u, x, t)``, or on a part also ``of(u, x, normal)``;
                by default u, and in a system the vector of all components.
            on: a part of the boundary, or ``domain.at(t)`` in space-time; the whole domain if omitted. On an interface
                between regions u is that of the region which the normals point out of; ``u.side(name).integral(…)``
                chooses another one.
        """
        error = getattr(self, "error_estimate", 0.0)
        return integrate(self.problem, self.features, self.coefficients, of, on, error)

    def flux(self, on: Part) -> Integral:
        """The integral of the normal derivative ∂u/∂n over a part of the boundary, with n the outward normal.

        Its `error_estimate` takes ∂u/∂n to be as accurate, relatively, as u; near a boundary it may be less so.
        """
        return self.integral(of=lambda u, *point, normal: normal_derivative(u, normal)(*point), on=on)


@dataclass(frozen=True, eq=False)
class Side(Expansion):
    """A solution as one region sees it."""

    region: str

    def __repr__(self) -> str:
        return f"Solution of {self.problem.name!r} in the region {self.region!r}"


@dataclass(frozen=True, eq=False)
class Solution(Shown, Drawn, Expansion):
    """The solution of a problem: ``u(x)`` for a point (d,), ``u(points)`` for many (n, d); in space-time also ``u(x,
    t)``.

    In a system ``u.v(points)`` is the unknown of that name, ``u(points)`` all components side by side.

    Attributes:
        error_estimate: estimated relative L2 error, known without an exact solution (see `pdofm.solving.estimate`).
        verdict: whether the solution counts as converged, why or why not, and what to do; `converged` and `reason` are
            views of it.
        space: the name of the space that was found, if a tolerance was asked for without features.
        attempts: the spaces that were tried for it.
        free: the coefficients of the largest function that small data can cause, where they do not determine the
            solution (see `plot_undetermined`).
    """

    error_estimate: float
    verdict: Verdict
    stats: Stats
    space: str = ""
    attempts: tuple[Attempt, ...] = ()
    free: Coefficients | None = None

    @property
    def converged(self) -> bool:
        """Whether the solution is what was asked for."""
        return self.verdict.converged

    @property
    def reason(self) -> str:
        """Why it converged, or why not and what to do."""
        return self.verdict.reason

    @property
    def search(self) -> Record:
        """The attempts as a table."""
        return Record.of(self.attempts)

    def errors(self, points: Any = None) -> Errors:
        """Relative L2 and maximum error against the exact solution.

        ‖e‖ = sqrt(Σ|u - u*|² / Σ|u*|²) and max|u - u*|, over `points` or by default over a uniform grid of about 2000
        (1D), 2500 (2D), 2744 (3D) points inside the domain; in more than six dimensions over 4096 Sobol' points.
        """
        problem, regions = self.problem, self.problem.regions
        z = comparison_points(problem.domain) if points is None else points_of(problem, (points,))[0]
        pair = problem.exact_values(z), evaluate(self.features, self.coefficients, z)
        truth, found = (problem.layout.gathered(each) for each in pair)
        names = problem.layout.names
        errors = _errors(found, truth, names)
        if self.converged:
            check_exact(problem, errors.relative_l2, self.error_estimate)
        if regions is None:
            return errors
        which = regions.which(z)
        inside = {name: which == i for i, name in enumerate(regions.names) if np.any(which == i)}
        each = {name: _errors(found[at], truth[at], names) for name, at in inside.items()}
        return replace(errors, regions=each)

    def plot_search(self, path: str | PathLike | None = None) -> Any:
        """A figure of the attempts: estimated error against features, one line per space."""
        from pdofm.output.plot import plot_search

        return plot_search(self, path)

    def animate(self, path: str | PathLike, **options: Any) -> None:
        """Write an animation (.gif) of a solution in space-time; see `pdofm.output.series.animate`."""
        from pdofm.output.series import animate

        animate(self, path, **options)

    def to_vtk(self, path: str | PathLike, **options: Any) -> None:
        """Write the solution for ParaView: as ``.vtu`` or ``.vtk`` (`pdofm.output.export.write_vtk`), or in space-time
        as a series of times, ``.pvd`` (`pdofm.output.series.write_series`)."""
        if str(path).endswith(".pvd"):
            from pdofm.output.series import write_series as write
        else:
            from pdofm.output.export import write_vtk as write

        write(self, path, **options)

    def __reduce__(self) -> Any:
        """Pickled as in a file: without the equation, which is code."""
        from pdofm.solving.files import content, from_content

        return from_content, (content(self),)

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
class Solutions(Shown):
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


def _errors(found: np.ndarray, truth: np.ndarray, names: list[str]) -> Errors:
    gaps = np.abs(found - truth)
    relative, largest = relative_sizes(gaps, np.abs(truth), vanishing=0.0), np.max(gaps, axis=0)
    each = {name: Errors(float(relative[i]), float(largest[i])) for i, name in enumerate(names)}
    return Errors(max(e.relative_l2 for e in each.values()), max(e.max for e in each.values()), each)
