"""A family of problems: a function from parameters to problems, solved and differentiated with all that they share."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from pdofm._types import Key
from pdofm.calculus.jets import Index
from pdofm.discrete.evaluate import derivatives
from pdofm.errors import ConvergenceWarning, ProblemError, SolveError
from pdofm.families.derivative import At, Differentiable, evaluated
from pdofm.families.member import FamilySolution, shown
from pdofm.families.members import Members, State, parameters
from pdofm.families.reduced import ReducedFamily
from pdofm.families.reduction import reduce
from pdofm.families.sweep import Sweep, swept
from pdofm.features import Features
from pdofm.problem.parametric import Make, Parameters
from pdofm.problem.problem import Problem
from pdofm.solving.called import points_of
from pdofm.solving.methods import Method


class Family:
    """Problems that depend on parameters: ``Family(lambda mu: Problem(…))``.

    ``family(mu)`` solves the problem with parameters mu, a vector (or a number, or an array of any fixed shape);
    ``family.values(mu, points)`` is a function that JAX differentiates in mu; ``family.reduce(mus)`` learns functions
    with which a new mu takes next to no time.

    Args:
        make_problem: from mu to a `Problem`. Where it is written with `jax.numpy`, and the domain does not depend on
            mu, it is compiled once for all mu; else every member is stated and compiled by itself.
        features: the space to solve in, with several regions a dictionary of features by region. By default a search
            finds one in which the estimated error is below `tol`, and later members are solved in it, too, as long as
            it suffices.
        tol: the relative error that is required of every member.
        method: as in `solve`.
        key: seed of points and features.
    """

    def __init__(
        self,
        make_problem: Any,
        features: Any = None,
        *,
        tol: Any = 1e-10,
        method: Method | None = None,
        key: Key = 0,
    ):
        if not callable(make_problem):
            raise ProblemError(
                f"Family() takes a function from parameters to a Problem, such as lambda mu: Problem(…); got "
                f"{type(make_problem).__name__}."
            )
        if features is not None and not isinstance(features, Features | Mapping):
            raise ProblemError(
                f"features must be Features, or with several regions a dictionary of them, or left out; got "
                f"{type(features).__name__}."
            )
        if not (isinstance(tol, int | float) and 0 < tol < 1):
            raise SolveError(f"tol is a relative error between 0 and 1; got {tol!r}.")
        self.members = Members(self, cast("Make", make_problem), features, float(tol), method, key)

    def __repr__(self) -> str:
        spaces = sum(len(form.spaces) for form in self.members.forms.values())
        return f"Family of problems, {spaces} space{'s' if spaces != 1 else ''} in use, tol={self.members.tol:g}"

    def __call__(self, mu: Any) -> FamilySolution:
        """The solution with parameters mu, with a warning if it has not converged."""
        solution = self._solved(mu)
        if not solution.converged:
            warnings.warn(
                f"The solution of {solution.problem.name!r} at mu = {shown(mu)} has not converged: {solution.reason}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return solution

    def values(self, mu: Any, points: Any) -> Array:
        """The solution with parameters mu at points, as an array of JAX, differentiable in mu.

        ``points`` of shape (n, d) give (n,), in a system (n, C); a single point (d,) gives a number, or (C,).
        `jax.grad`, `jax.jacrev`, `jax.jvp` and `jax.vmap` apply; a gradient takes one solve with the transposed
        factors, whatever the number of parameters.
        """
        z, single, _ = self._points(mu, points)
        found = self.derivatives(mu, z, [(0,) * z.shape[1]])[0]
        return found[0] if single else found

    def derivatives(self, mu: Any, points: Any, which: Sequence[Index]) -> Array:
        """The derivatives `which` in space, multi-indices, at points (n, d), differentiable in mu: (a, n), in a system
        (a, n, C)."""
        z, _, example = self._points(mu, points)
        layout = example.layout
        mu = jnp.asarray(mu, jnp.float64)
        at = At(z, tuple(tuple(index) for index in which), layout.components)
        form = tuple(mu.shape)
        found = layout.gathered(evaluated(_Shaped(self, form), mu.reshape(-1), at))
        return found[..., 0] if layout.unknowns is None else found

    def sweep(
        self, mus: Any, of: Callable[[FamilySolution], Any], *, progress: bool = True, cluster: Any = None
    ) -> Sweep:
        """A quantity ``of(u)``, a number or an array, of the members with parameters `mus`.

        With a `cluster`, a client of dask.distributed, its workers solve the members, some in each task. A family
        without given features then looks for spaces in every task: give it features where that takes long.
        """
        known = self.members
        fresh = _Fresh(known.make_problem, known.features, known.tol, known.method, known.key)
        return swept(self._solved, mus, of, progress, fresh, cluster)

    def reduce(
        self,
        mus: Any,
        tol: float = 1e-8,
        *,
        size: int | None = None,
        target: str = "worst",
        progress: bool = True,
    ) -> ReducedFamily:
        """Learn the family from its members with parameters `mus`, of shape (k, …): few orthonormal functions in which
        a new member takes microseconds.

        A linear equation whose matrix and right side are combinations of few is solved in these functions, with an
        error estimate from its residual; any other family is interpolated in its parameters, and the estimate comes
        from members that were left out. Take many more mus than there are functions.

        Args:
            tol: the relative error of a new member that is wanted.
            size: how many functions are learned at most; by default as many as `tol` needs.
            target: "worst" keeps the largest error over the members small, "mean" the typical one.
            progress: show a progress bar if standard error is a terminal.
        """
        return reduce(self.members, mus, tol, size, target, progress)

    def _solved(self, mu: Any) -> FamilySolution:
        return self.members.state(parameters(mu)).solution

    def _points(self, mu: Any, points: Any) -> tuple[np.ndarray, bool, Problem]:
        if isinstance(points, Tracer):
            raise ProblemError(
                "family.values(mu, points) is differentiated and vectorised in mu; the points must be numbers. Leave "
                "them out of the arguments of jax.jit, jax.grad and jax.vmap."
            )
        example = self.members.form(tuple(jnp.shape(mu)), mu).example
        z, single = points_of(example, (points,))
        return z, single, example


@dataclass(frozen=True, eq=False)
class _Fresh:
    """Makes the solutions of a family that has solved nothing yet. What was compiled for it is used again."""

    make_problem: Any
    features: Any
    tol: float
    method: Any
    key: Any

    @cached_property
    def _family(self) -> Family:
        return Family(self.make_problem, self.features, tol=self.tol, method=self.method, key=self.key)

    def __call__(self) -> Callable[[Any], FamilySolution]:
        self._family.members.forget()
        return self._family._solved


@dataclass(frozen=True)
class _Shaped(Differentiable):
    """The family with parameters of one shape, for the operations of JAX, which see them as vectors."""

    family: Family
    shape: tuple[int, ...]

    def numbers(self, mu: Parameters, at: At) -> np.ndarray:
        solution = self.family.members.state(mu.reshape(self.shape)).solution
        return derivatives(solution.features, solution.coefficients, at.points, at.which)

    def forward(self, mu: Parameters, at: At, changes: np.ndarray) -> np.ndarray:
        state = self.family.members.state(mu.reshape(self.shape))
        tangent = self.family.members.tangent(state)  # may change the space
        c = tangent.forward(changes).reshape(len(changes), -1, at.components)
        return np.einsum("anm,kmc->kanc", self._jets(state, at), c, optimize=True)

    def transposed(self, mu: Parameters, at: At, wanted: np.ndarray) -> np.ndarray:
        state = self.family.members.state(mu.reshape(self.shape))
        tangent = self.family.members.tangent(state)  # may change the space
        of_c = np.einsum("anm,kanc->kmc", self._jets(state, at), wanted, optimize=True)
        return tangent.transposed(of_c.reshape(len(wanted), -1))

    def _jets(self, state: State, at: At) -> np.ndarray:
        return state.solution.features.jets(at.points, at.which)
