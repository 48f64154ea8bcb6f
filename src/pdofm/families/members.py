"""The members of a family: how they are solved, in spaces that they share where that is possible."""

import warnings
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jax.core import Tracer

from pdofm._types import Key
from pdofm.adaptive.entry import solve
from pdofm.discrete.checks import check_problem
from pdofm.discrete.discretisation import Discretisation, discretise
from pdofm.errors import ConvergenceWarning, PdofmError, ProblemError, SolveError
from pdofm.families import moving
from pdofm.families.member import FamilySolution, shown
from pdofm.families.space import Space, is_traceable
from pdofm.families.tangent import FEW_PARAMETERS, Tangent, factored, traced
from pdofm.features import BoxPolynomials
from pdofm.problem.parametric import Make, Parametric
from pdofm.problem.problem import Problem
from pdofm.solving.clock import Clock
from pdofm.solving.fit import fit_at
from pdofm.solving.methods import Method, Newton, Outcome
from pdofm.solving.solution import Solution

REMEMBERED = 16
"""Members whose solutions and factored matrices are kept: gradients are wanted where one has just solved."""

RESOLVED, WARNED = 1e-6, 1e-4
"""Relative residuals of the equation for the derivative: above the first another space is tried, above the second there
is a warning. The relative error of the derivative is about a tenth of the residual, or less."""

DETOUR = 0.1
"""Relative change of the parameters at which a space that also resolves the derivative is looked for."""

CHECKED = 4
"""Directions along which the derivative is checked, if there are many parameters."""

SAMPLINGS = ("clustered", "sobol")
"""How points are placed in a space that a search has found, in the order in which they are tried."""


@dataclass(eq=False)
class State:
    """A member that was solved; without a discretisation, where the space is one of boxes.

    Attributes:
        drawn: how the points on the boundary were placed, if they move with the parameters.
    """

    solution: FamilySolution
    discretisation: Discretisation | None = None
    outcome: Outcome | None = None
    space: Space | None = None
    drawn: Any = None
    tangent: Tangent | None = None


class Form:
    """What members with parameters of one shape have in common; `why_not` says why their terms cannot be traced."""

    def __init__(self, parametric: Parametric, why_not: str | None):
        self.parametric, self.why_not = parametric, why_not
        self.spaces: list[Space] = []

    @property
    def example(self) -> Problem:
        return self.parametric.example


class Members:
    """The members of a family that were solved, and the spaces that they were solved in. `owner` is the family."""

    def __init__(self, owner: Any, make_problem: Make, features: Any, tol: float, method: Method | None, key: Key):
        self.owner = owner
        self.make_problem, self.features, self.tol, self.method, self.key = make_problem, features, tol, method, key
        self.forms: dict[tuple[int, ...], Form] = {}
        self._states: OrderedDict[tuple[tuple[int, ...], bytes], State] = OrderedDict()

    def forget(self) -> None:
        """Forget the members that were solved and their spaces, but not what was compiled."""
        self._states.clear()
        for form in self.forms.values():
            form.spaces.clear()

    def problem(self, mu: Any) -> Problem:
        """The problem with parameters mu."""
        mu = parameters(mu)
        found = self.make_problem(given(mu))
        check_problem("Family", found)
        return found

    def form(self, shape: tuple[int, ...], mu: Any) -> "Form":
        """What members with parameters of a shape have in common."""
        if shape not in self.forms:
            if isinstance(mu, Tracer):
                mu = _concrete(mu)
            example = self.problem(mu)
            parametric = Parametric(self.make_problem, example, shape)
            self.forms[shape] = Form(parametric, is_traceable(parametric))
        return self.forms[shape]

    def state(self, mu: np.ndarray) -> State:
        """The member with parameters mu, solved."""
        key = (mu.shape, mu.tobytes())
        if key not in self._states:
            if not np.isfinite(mu).all():
                raise ProblemError(f"The parameters are not finite: mu = {shown(mu)}.")
            form = self.form(mu.shape, mu)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                self._states[key] = self._shared(form, mu) if form.why_not is None else self._alone(mu)
            while len(self._states) > REMEMBERED:
                self._states.popitem(last=False)
        self._states.move_to_end(key)
        return self._states[key]

    def _shared(self, form: "Form", mu: np.ndarray) -> State:
        """Solve in the spaces of the family; if none suffices, look for another one."""
        best: State | None = None
        if self.features is not None and not form.spaces:
            form.spaces.append(Space.of(form.parametric, self.features, "sobol", self.key))
        for space in reversed(form.spaces):
            found = self.solved_in(space, mu)
            if found.solution.converged or self.features is not None:
                return found
            best = _better(best, found)
        searched = solve(self.problem(mu), tol=self.tol, method=self.method, key=self.key)
        if isinstance(searched.features, BoxPolynomials):
            return _better(best, State(self._own(searched, mu)))
        for sampling in SAMPLINGS:
            space = Space.of(form.parametric, searched.features, sampling, self.key)
            found = self.solved_in(space, mu)
            best = _better(best, found)
            if found.solution.converged:
                form.spaces.append(space)
                return found
        return _better(best, State(self._own(searched, mu)))

    def solved_in(self, space: Space, mu: np.ndarray) -> State:
        """Solve in a space; a nonlinear problem from its last solution there, or else from zero."""
        discretisation = space.at(mu.reshape(-1))
        method = self.method
        if method is None and space.last is not None:
            method = Newton(initial=space.last)
        found = None
        if method is not self.method:
            try:
                found = fit_at(discretisation, method, self.tol, Clock())
            except PdofmError:
                found = None
        if found is None or not found[0].verdict.evidence.is_finished:
            found = fit_at(discretisation, self.method, self.tol, Clock())
        solution, outcome = found
        if solution.converged and solution.stats.steps:
            space.last = solution.coefficients
        return State(self._own(solution, mu), discretisation, outcome, space)

    def _alone(self, mu: np.ndarray) -> State:
        """Solve a member that shares nothing with the others but its features."""
        problem, features = self.problem(mu), self.features
        if features is None:
            searched = solve(problem, tol=self.tol, method=self.method, key=self.key)
            features = searched.features
            if isinstance(features, BoxPolynomials) or problem.regions is not None:
                return State(self._own(searched, mu))
        best: State | None = None
        for sampling in SAMPLINGS if self.features is None else ("sobol",):
            found = discretise("Family", problem, features, None, None, sampling, self.key)
            placed, drawn = moving.place(found, sampling)
            placed = placed.with_held_out()
            solution, outcome = fit_at(placed, self.method, self.tol, Clock())
            best = _better(best, State(self._own(solution, mu), placed, outcome, None, drawn))
            if solution.converged:
                break
        assert best is not None
        return best

    def _own(self, solution: Solution, mu: np.ndarray) -> FamilySolution:
        own = {f.name: getattr(solution, f.name) for f in fields(Solution)}
        return FamilySolution(**own, family=self.owner, mu=mu)

    def tangent(self, state: State) -> Tangent:
        """The derivative of the coefficients of a member, in a space that resolves it, if there is one: the solution
        may be smoother than those nearby. May change the space of `state`."""
        if state.tangent is None:
            mu = state.solution.mu
            state.tangent = self._tangent(state)
            missed = state.tangent.missed(_directions(mu.size))
            if np.max(missed) > RESOLVED and self.features is None and state.space is not None:
                near = np.asarray(mu + DETOUR * np.where(mu == 0, 1.0, mu))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    space = self._shared(self.forms[mu.shape], near).space
                other = None if space is None else self.solved_in(space, mu)
                if other is not None and other.solution.converged:
                    other.tangent = self._tangent(other)
                    if np.max(other.tangent.missed(_directions(mu.size))) < np.max(missed):
                        state.__dict__.update(other.__dict__)
                        missed = other.tangent.missed(_directions(mu.size))
            if np.max(missed) > WARNED:
                warnings.warn(
                    f"The derivative of the family at mu = {shown(mu)} is not resolved: its equation is violated by "
                    f"{np.max(missed):.1e} of its right side. Give the family more features, Family(make_problem, "
                    "features).",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        return state.tangent

    def _tangent(self, state: State) -> Tangent:
        discretisation, outcome, mu = state.discretisation, state.outcome, state.solution.mu
        if discretisation is None or outcome is None:
            raise SolveError(
                f"The solution at mu = {shown(mu)} is one of polynomials in boxes, or of regions whose shape depends "
                "on the parameters; its derivative in them is not provided. Give the family features, "
                "Family(make_problem, features), or take differences of family(mu)."
            )
        factorization, scales = factored(discretisation, outcome)
        sensitivity = None
        if state.space is not None:
            sensitivity = traced(state.space.parametric, discretisation, outcome, mu.reshape(-1), scales)
        if sensitivity is None:
            drawn = [None] * len(discretisation.blocks) if state.drawn is None else state.drawn
            make = lambda mu: self.make_problem(given(mu))
            arguments = make, discretisation, outcome.coefficients, mu, scales, drawn
            sensitivity = moving.differenced(*arguments)
        return Tangent(factorization, sensitivity)


def _directions(size: int) -> np.ndarray:
    """Changes of the parameters along which the derivative is checked: all of them, or some random ones."""
    return np.eye(size) if size <= FEW_PARAMETERS else np.random.default_rng(0).standard_normal((CHECKED, size))


def parameters(mu: Any) -> np.ndarray:
    """Parameters as an array of numbers."""
    try:
        return np.array(mu, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"Parameters must be numbers, such as [1.0, 2.0]; got {type(mu).__name__}.") from error


def given(mu: np.ndarray) -> Any:
    """Parameters as the user's function receives them: a single one as a number."""
    return mu if mu.ndim else float(mu)


def _better(one: State | None, other: State) -> State:
    """The state that converged, or else the one with the smaller estimate."""
    if one is None or (other.solution.converged and not one.solution.converged):
        return other
    if one.solution.converged != other.solution.converged:
        return one
    return one if one.solution.error_estimate <= other.solution.error_estimate else other


def _concrete(mu: Tracer) -> np.ndarray:
    """Numbers in place of traced parameters, for an example of the problem."""
    found: Any = mu
    while isinstance(found, Tracer) and hasattr(found, "primal"):
        found = found.primal
    if isinstance(found, Tracer):
        raise ProblemError(
            "The family has met no parameters yet, and here they are traced. Call family(mu) once with numbers before "
            "jax.jit or jax.vmap."
        )
    return np.asarray(found)
