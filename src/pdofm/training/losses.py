"""What features are trained for: physics (a residual, an energy, data) and orthogonality, as small objects.

A loss is any function ``loss(features, coefficients, batch) -> scalar``, where `coefficients` (m, C) are those of the
output layer that is trained along, and `batch` holds the points, normals and right sides of every term of the problem.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from pdofm.calculus.terms import CONDITION_WEIGHT, Layout, LeftSide
from pdofm.discrete.direct import row
from pdofm.errors import ProblemError, unknown_name
from pdofm.features import Features


class Samples(NamedTuple):
    """The points of one term in one training step, with normals and the right side there."""

    points: Float[Array, "n d"]
    normals: Float[Array, "n s"]
    right: Float[Array, "n k"]


@dataclass(frozen=True)
class Batch:
    """All terms of a problem in one training step; the first one is the equation."""

    samples: dict[str, Samples]
    left_sides: tuple[tuple[str, LeftSide], ...]
    layout: Layout

    @property
    def interior(self) -> Float[Array, "n d"]:
        """The points of the equation."""
        return self.samples["equation"].points

    def linearised(
        self, name: str, features: Features, coefficients: Float[Array, "m C"]
    ) -> tuple[Float[Array, "n k"], Float[Array, "n k m C"]]:
        """The left sides of a term at its points, and their derivatives with respect to the coefficients."""
        samples, lhs = self.samples[name], dict(self.left_sides)[name]
        at = lambda z, normal: row(lhs, self.layout, features, coefficients.T, z, normal)
        left, gradients = jax.vmap(at)(samples.points, samples.normals)
        return left, jnp.swapaxes(gradients, 2, 3)


jax.tree_util.register_dataclass(Batch, data_fields=["samples"], meta_fields=["left_sides", "layout"])

Loss = Callable[[Features, Float[Array, "m C"], Batch], Float[Array, ""]]


def _unknown(features: Features, coefficients: Array, layout: Layout) -> Any:
    return layout.fields(lambda z: features.combine(z, coefficients))


@dataclass(frozen=True)
class Residual:
    """The strong residual: Σ over terms of weight · mean |lhs(u) - rhs|², the loss of physics-informed networks.

    `weights` maps names of terms ("equation", "dirichlet", …) to weights; 1 where nothing is given.
    """

    weights: tuple[tuple[str, float], ...] = ()

    @classmethod
    def weighted(cls, weights: Mapping[str, float]) -> "Residual":
        """From a dictionary of weights."""
        return cls(tuple(weights.items()))

    def __call__(self, features: Features, coefficients: Array, batch: Batch) -> Array:
        u = _unknown(features, coefficients, batch.layout)
        weights, total = dict(self.weights), jnp.zeros((), dtype=coefficients.dtype)
        for name in weights:
            if name not in dict(batch.left_sides):
                raise unknown_name("term of the problem", name, dict(batch.left_sides))
        for name, samples in batch.samples.items():
            lhs = dict(batch.left_sides)[name]

            def left(z: Array, normal: Array, lhs: LeftSide = lhs) -> Array:
                return lhs(u, u, batch.layout.arguments(z), normal)

            gap = jax.vmap(left)(samples.points, samples.normals) - samples.right
            total += weights.get(name, 1.0) * jnp.mean(jnp.sum(gap**2, axis=1))
        return total


@dataclass(frozen=True)
class Projected:
    """What least squares leaves: ½ log₁₀ of the relative squared residual with the *best* coefficients, for linear
    problems (variable projection of the output layer).

    The coefficients of every step come from a QR factorisation of the rows on its points, each term divided by the size
    of its rows; where they are optimal, the residual does not depend on them to first order, so that they are constants
    for the gradient. The logarithm counts digits: a residual of 1e-8 is improved as eagerly as one of 1e-2. Needs
    ``precision="float64"`` and a few times more points than features.

    `solutions`, a function of a point with values (k,), in a system (k, C), replaces the problem's own data by those of
    k solutions: the features are trained for all of them at once (their mean number of digits). `weight` is that of
    conditions. The scales of the terms are constants for the gradient. `tol` has no meaning for a logarithm and
    is ignored.
    """

    solutions: Callable[..., Array] | None = None
    weight: float = CONDITION_WEIGHT

    def __post_init__(self):
        if self.solutions is not None and not callable(self.solutions):
            raise ProblemError(
                f"Projected(solutions=…) takes one function of a point with values (k,); got "
                f"{type(self.solutions).__name__}. Write lambda x: jnp.stack([f(x), g(x)])."
            )

    def __call__(self, features: Features, coefficients: Array, batch: Batch) -> Array:
        blocks = [self._rows(name, features, coefficients, batch) for name in batch.samples]
        A, b = (jnp.concatenate(parts) for parts in zip(*blocks, strict=True))
        frozen = jax.lax.stop_gradient(A)
        norms = jnp.sqrt(jnp.sum(frozen**2, axis=0))
        norms = jnp.where(norms == 0, 1.0, norms)
        m = frozen.shape[1]
        # A ridge at the level of rounding stands in for pivoting: dependent features get small coefficients.
        ridge = 1e-14 * jnp.sqrt(1.0 * m) * jnp.eye(m, dtype=A.dtype)
        Q, R = jnp.linalg.qr(jnp.concatenate([frozen / norms[None, :], ridge]))
        best = jax.scipy.linalg.solve_triangular(R, Q[: len(A)].T @ b) / norms[:, None]
        squares = jnp.sum((b - A @ jax.lax.stop_gradient(best)) ** 2, axis=0) / jnp.sum(b**2, axis=0)
        return jnp.mean(jnp.log10(squares)) / 2

    def check(self, precision: str, nonlinear: list[str], rows: int, unknowns: int, has_data: bool) -> None:
        """Refuse what variable projection cannot do."""
        if precision != "float64":
            raise ProblemError(f"Projected() solves least squares, which needs precision='float64'; got {precision!r}.")
        if nonlinear:
            raise ProblemError(
                f"Projected() needs a linear problem, but {' and '.join(map(repr, nonlinear))} is not linear in the "
                "unknown. Use physics='residual'."
            )
        if rows < 2 * unknowns:
            raise ProblemError(
                f"Projected() needs more points than features: {rows} rows for {unknowns} coefficients leave no "
                "residual to learn from. Use at least twice as many (points=, boundary_points=), better four times."
            )
        if self.solutions is None and not has_data:
            raise ProblemError(
                "Projected() needs data, but the source and all conditions are zero: so is the residual. Train on "
                "another source, or give Projected(solutions=…)."
            )

    def _rows(self, name: str, features: Features, coefficients: Array, batch: Batch) -> tuple[Array, Array]:
        """Scaled rows (n, m) and right sides (n, k) of one term."""
        samples, lhs, layout = batch.samples[name], dict(batch.left_sides)[name], batch.layout

        def left(function: Callable[[Array], Array], z: Array, normal: Array) -> Array:
            u = layout.fields(function)
            return lhs(u, u, layout.arguments(z), normal)

        at_zero, gradients = batch.linearised(name, features, jnp.zeros_like(coefficients))
        A = gradients.reshape(-1, coefficients.size)
        b = (samples.right - at_zero).reshape(-1, 1)
        if self.solutions is not None:
            family = self.solutions
            shape = jax.eval_shape(lambda z: family(*layout.arguments(z)), samples.points[0]).shape
            if shape[1:] not in ((layout.components,), () if layout.components == 1 else None) or not shape:
                raise ProblemError(
                    f"Projected(solutions=…) returned shape {shape} at a point; expected (k,) for k solutions, in a "
                    "system (k, components)."
                )
            count = shape[0]
            directions = jnp.eye(count, dtype=A.dtype)

            def images(z: Array, normal: Array) -> Array:
                one = lambda e: left(lambda y: jnp.atleast_1d(e @ family(*layout.arguments(y))), z, normal)
                return jax.vmap(one, out_axes=1)(directions)

            b = (jax.vmap(images)(samples.points, samples.normals) - at_zero[:, :, None]).reshape(-1, count)
        # One scale for all rows of a term: row by row, the layer that steep features resolve would weigh least.
        size = jnp.sqrt(jnp.sum(jax.lax.stop_gradient(A) ** 2))
        scale = (1.0 if name == "equation" else self.weight) / jnp.where(size == 0, 1.0, size)
        return A * scale, b * scale


@dataclass(frozen=True)
class Variational:
    """An energy (Deep Ritz): mean of ``energy(u, x)`` inside, plus `boundary` times the mean square of the conditions'
    residuals.

    For -Δu = f: ``Variational(lambda u, x: jnp.sum(grad(u)(x) ** 2) / 2 - f(x) * u(x))``.
    """

    energy: Callable[..., Array]
    boundary: float = 500.0

    def __call__(self, features: Features, coefficients: Array, batch: Batch) -> Array:
        u = _unknown(features, coefficients, batch.layout)
        inside = jax.vmap(lambda z: self.energy(u, *batch.layout.arguments(z)))(batch.interior)
        conditions = {name: s for name, s in batch.samples.items() if name != "equation"}
        penalty = Residual()(features, coefficients, Batch(conditions, batch.left_sides, batch.layout))
        return jnp.mean(inside) + self.boundary * penalty


@dataclass(frozen=True)
class Supervised:
    """Fit a known function: mean |u - function|² at the interior points."""

    function: Callable[..., Array]

    def __call__(self, features: Features, coefficients: Array, batch: Batch) -> Array:
        def gap(z: Array) -> Array:
            target = jnp.atleast_1d(self.function(*batch.layout.arguments(z)))
            return jnp.sum((features.combine(z, coefficients) - target) ** 2)

        return jnp.mean(jax.vmap(gap)(batch.interior))


@dataclass(frozen=True)
class NoPhysics:
    """Nothing: features that are trained for orthogonality alone."""

    def __call__(self, features: Features, coefficients: Array, batch: Batch) -> Array:
        return jnp.zeros((), dtype=coefficients.dtype)


@dataclass(frozen=True)
class Orthogonality:
    """How far the features are from orthonormal on the interior points: ‖UᵀU - I‖ in the Frobenius norm.

    U is the matrix of feature values, one row per point. `squared` takes the square of the norm; with ``mean=True`` the
    Gram matrix is UᵀU / n, an average that does not depend on the number of points.
    """

    squared: bool = False
    mean: bool = False

    def __call__(self, features: Features, coefficients: Array, batch: Batch) -> Array:
        U = jax.vmap(features)(batch.interior)
        gram = U.T @ U
        if self.mean:
            gram = gram / U.shape[0]
        square = jnp.sum((gram - jnp.eye(gram.shape[0], dtype=gram.dtype)) ** 2)
        return square if self.squared else jnp.sqrt(square)


PHYSICS: dict[str, Callable[[], Loss]] = {"residual": Residual, "none": NoPhysics}


def physics_of(given: Any) -> Any:
    """The physics loss that was asked for: a name, or any loss."""
    if isinstance(given, str):
        if given not in PHYSICS:
            raise ProblemError(
                f"physics must be one of {sorted(PHYSICS)} or a loss such as Variational(…); got {given!r}."
            )
        return PHYSICS[given]()
    if isinstance(given, type):
        raise ProblemError(f"physics is the class {given.__name__}; give an object: {given.__name__}(…).")
    if not callable(given):
        raise ProblemError(f"physics must be a name or a function loss(features, coefficients, batch); got {given!r}.")
    return given
