"""How a family is reduced: members are solved, and the few functions that represent all of them are kept."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import qr

from pdofm.discrete.assemble import all_left_values
from pdofm.discrete.discretisation import Discretisation
from pdofm.discrete.evaluate import feature_values
from pdofm.discrete.leftsides import entries
from pdofm.discrete.orthonormal import exact_order
from pdofm.discrete.right import right_values
from pdofm.domain.quadrature import quadrature_of
from pdofm.errors import SolveError
from pdofm.families.basis import principal
from pdofm.families.members import Form, Members, parameters
from pdofm.families.polynomial import interpolated
from pdofm.families.projection import Projection, combined, compressed
from pdofm.families.reduced import ReducedFamily
from pdofm.families.space import Space
from pdofm.families.sweep import bar
from pdofm.numerics.lstsq import QR
from pdofm.solving.files import without_equation

FEWEST = 5
"""The smallest number of members that a family is reduced from."""

SHARE = 0.1
"""How much smaller than the tolerance the part of a member outside of the learned functions must be."""

Many = Float[np.ndarray, "k m C"]


def reduce(members: Members, mus: Any, tol: float, size: int | None, target: str, progress: bool) -> ReducedFamily:
    """Learn a family from its members with parameters `mus`."""
    many = parameters(mus)
    if many.ndim < 1 or len(many) < FEWEST:
        raise SolveError(f"mus are the parameters of at least {FEWEST} members, one after the other; got {many.shape}.")
    if not 0 < tol < 1:
        raise SolveError(f"tol is a relative error between 0 and 1; got {tol!r}.")
    form = members.form(many.shape[1:], many[0])
    if form.why_not is not None:
        raise SolveError(
            f"The family cannot be reduced, because its members share no points: {form.why_not}. Write it with "
            "jax.numpy, on a domain that does not depend on mu (map the domain to a fixed one in the operator)."
        )
    space, coefficients, truth = _snapshots(members, form, many, progress)
    learning = _Learning(space, many.reshape(len(many), -1), coefficients)
    weights, coordinates = learning.basis(tol, size, target)
    engine = learning.projection(weights, tol) if learning.fixed.is_affine else None
    if engine is None:
        engine = interpolated(learning.mus, coordinates, SHARE * tol)
    example = form.example
    unknowns = None if example.layout.unknowns is None else dict(example.layout.unknowns)
    problem = without_equation(example.domain, unknowns, example.name, example.layout.is_complex)
    ends = learning.mus.min(axis=0), learning.mus.max(axis=0)
    return ReducedFamily(problem, space.features, weights, *ends, many.shape[1:], engine, truth, tol)


def _snapshots(members: Members, form: Form, mus: np.ndarray, progress: bool) -> tuple[Space, Many, float]:
    """The coefficients of all members in one space, the last one that was needed; and their largest error estimate."""
    with bar("solving members", len(mus), progress) as done:
        found = []
        for i, mu in enumerate(mus):
            found.append(members.state(np.asarray(mu)))
            done(i + 1)
    if any(state.space is None for state in found):
        raise SolveError(
            "Some members are solved by polynomials in boxes, which cannot be reduced. Give the family features: "
            "Family(make_problem, features)."
        )
    space = form.spaces[-1]
    for i, state in enumerate(found):
        if state.space is not space:
            found[i] = members.solved_in(space, np.asarray(mus[i]))
    solutions = [state.solution for state in found]
    failed = sum(not solution.converged for solution in solutions)
    if failed:
        raise SolveError(
            f"{failed} of {len(mus)} members have not converged, so that there is nothing to learn from: "
            f"{next(s.reason for s in solutions if not s.converged)}. Ask the family for less, Family(make_problem, "
            "tol=…), or give it features."
        )
    return space, np.stack([s.coefficients for s in solutions]), max(s.error_estimate for s in solutions)


@dataclass(eq=False)
class _Learning:
    """Members in one space, with the norms in which they are measured."""

    space: Space
    mus: Float[np.ndarray, "k p"]
    snapshots: Many

    def __post_init__(self):
        features, layout = self.space.features, self.space.parametric.example.layout
        domain = self.space.parametric.example.domain
        rule = quadrature_of(domain).whole(exact_order(features, domain))
        values = feature_values(features, rule.points) * np.sqrt(rule.weights)[:, None]
        self._triangle = qr(values, mode="r", overwrite_a=True, check_finite=False)[0][: features.size]
        raw = np.einsum("ij,kjc->kic", self._triangle, self.snapshots, optimize=True)
        self._sizes = np.sqrt(np.mean(np.sum(raw**2, axis=1), axis=0)) + np.finfo(float).tiny
        self._layout = layout
        # The member in the middle is the one that others are compared with.
        self.middle = int(np.argmin(np.linalg.norm(self.mus - np.median(self.mus, axis=0), axis=1)))
        self.fixed = self.at(self.mus[self.middle])
        system = self.fixed.system(self.snapshots[self.middle], self.fixed.blocks, fold=False)
        self._scales, self._rows = system.scales, system.A

    def at(self, mu: np.ndarray) -> Discretisation:
        """The discretisation of a member."""
        return self.space.at(mu)

    def measured(self, columns: Float[np.ndarray, "columns k"]) -> Float[np.ndarray, "columns k"]:
        """Coefficients, as columns, in coordinates whose Euclidean norm is the L² norm; each component counts as much
        as it varies."""
        m, components = self.snapshots.shape[1:]
        shaped = columns.reshape(m, components, -1)
        return (np.einsum("ij,jck->ick", self._triangle, shaped) / self._sizes[:, None]).reshape(columns.shape)

    def basis(self, tol: float, size: int | None, target: str) -> tuple[np.ndarray, Float[np.ndarray, "k r"]]:
        """The learned functions, orthonormal in L², and the coordinates of all members in them."""
        k = len(self.snapshots)
        columns = self.snapshots.reshape(k, -1).T
        norms = np.linalg.norm(self._rows @ columns, axis=0)
        norms[norms == 0] = 1.0
        found, _ = principal(self._rows @ (columns / norms), k if size is None else size, target)
        functions = (columns / norms) @ found
        orthonormal, triangle = qr(self.measured(functions), mode="economic", check_finite=False)
        given = self.measured(columns)
        coordinates = orthonormal.T @ given
        left = given.copy()
        r, total = 0, np.linalg.norm(given, axis=0)
        while r < len(triangle) and np.max(np.linalg.norm(left, axis=0) / total) > SHARE * tol:
            left -= np.outer(orthonormal[:, r], orthonormal[:, r] @ left)
            r += 1
        weights = np.linalg.solve(triangle[:r, :r].T, functions[:, :r].T).T
        return np.ascontiguousarray(weights).reshape(*self.snapshots.shape[1:], r), coordinates[:r].T

    def projection(self, weights: np.ndarray, tol: float) -> Projection | None:
        """The equation in the learned functions; None if its matrices are no combinations of few."""
        r = weights.shape[2]
        functions = weights.reshape(-1, r)
        rng = np.random.default_rng(0)
        probes = functions @ rng.standard_normal((r, 2)) / np.sqrt(r)
        samples = [self._sampled(mu, probes) for mu in self.mus]
        of_left = combined(self.mus, np.stack([left for left, _ in samples]), tol)
        of_right = combined(self.mus, np.stack([right for _, right in samples]), tol)
        if max(of_left[1].error, of_right[1].error) > tol:
            return None
        inverse = QR(rcond=1e-14).factor(self._rows)
        lefts = []
        for i in of_left[0]:
            discretisation = self.at(self.mus[i])
            system = discretisation.system(discretisation.zero(), discretisation.blocks, fold=False)
            own = (self._scales / system.scales)[:, None] * (system.A @ functions)
            lefts.append(self.measured(inverse.solve(own)))
        rights = self.measured(inverse.solve(np.stack([samples[i][1] for i in of_right[0]], axis=1))).T
        left, right = compressed(np.stack(lefts), rights)
        found = Projection(left, right, of_left[1], of_right[1], 1.0)
        typical = float(np.median([found.solve(mu)[2] for mu in self.mus]))
        return Projection(left, right, of_left[1], of_right[1], typical)

    def _sampled(self, mu: np.ndarray, probes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a member's matrix makes of some functions, and its right side, in the rows of the fixed member."""
        found, layout, features = self.at(mu), self._layout, self.space.features
        shape = self.snapshots.shape[1:]

        def left(c: np.ndarray) -> np.ndarray:
            return all_left_values(layout, features, found.blocks, c.reshape(shape), found.memory)

        zero = left(np.zeros(shape))
        right = [right_values(layout, b, entries(layout, b)) for b in found.blocks]
        data = np.concatenate([b.averaged(each).reshape(-1) for b, each in zip(found.blocks, right, strict=True)])
        rows = np.concatenate([self._scales * (left(probe) - zero) for probe in probes.T])
        return rows, self._scales * (data - zero)
