"""A term of a problem, evaluated at fixed points of space and several times at once."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from pdofm.calculus.jets import Index
from pdofm.calculus.symbol import Linearisation, Symbol, random_jet, symbol_of
from pdofm.calculus.terms import Term
from pdofm.errors import SolveError
from pdofm.marching.arrays import Points, Vector
from pdofm.problem.data import values_at
from pdofm.problem.problem import Problem

NOISE = 1e-12
"""Coefficients below this fraction of the largest count as rounding errors of terms that cancel, where they would raise
the order of the equation."""

SAME = 1e-10
"""Coefficients that differ by less than this fraction of their own are the same, as are the terms with them: rounding.
"""

JetOf = Callable[[Index], Float[np.ndarray, "p n C"]]
"""A derivative of the solution, in space and time, at points of space and p times."""


Matrix = Float[np.ndarray, "k C"]

NONE: Mapping[Index, Matrix] = {}


class Overlooked(Exception):
    """A term depends on derivatives that it did not depend on where `TermAt.used` looked."""


class Unsuitable(Exception):
    """A space does not suit the problem, as turned out late; there may be others."""


class TermAt:
    """A term of a problem at fixed points of space, to be evaluated at any times.

    Which derivatives the left side depends on is judged at some times. Wherever it is evaluated later, the others are
    checked; if there is one more, it is remembered in `more`, which all places of a term share, and `Overlooked` is
    raised. `highest` are the orders of the equation along each coordinate, which none may exceed.
    """

    def __init__(
        self, problem: Problem, term: Term, points: Points, normals: Points, more: set[Index], highest: Index | None
    ):
        layout = problem.layout
        self._more, self._highest = more, highest
        self.name, self.layout, self.points, self.normals = term.name, layout, points, normals
        self.symbol: Symbol = symbol_of(term.lhs, layout, problem.domain.dim, problem.domain.dim - 1)
        self.right_side = problem.right_side(term)
        self.entries = self.symbol.entries
        self._known: dict[bytes, np.ndarray] = {}

    def used(self, times: Vector) -> tuple[Index, ...]:
        """The derivatives that the left side depends on, judged at the points and some times."""
        z, normals = self.at(times)
        symbol = self.symbol
        if symbol.is_small:
            jet = random_jet(len(symbol.indices(z, normals)), len(z), self.layout.components)
            found = symbol.linearise(z, normals, None if symbol.is_affine else jet)
            if found is not None:
                present = np.any(found.coefficients != 0, axis=(0, 1, 3))
                known = {index for index, is_used in zip(found.indices, present, strict=True) if is_used} | self._more
                return tuple(index for index in found.indices if index in known)
        raise SolveError(
            f"The term {self.name!r} depends on u at other points too, or has too many derivatives; march needs local "
            "equations. Use solve(problem, features), which solves for all times at once."
        )

    def residual(
        self, times: Vector, jet_of: JetOf, used: Sequence[Index], constant: Mapping[Index, Matrix] = NONE
    ) -> Float[np.ndarray, "p n k"]:
        """Left minus right side at all points and times, of a function with these derivatives, without the terms with
        constant coefficients (k, C), by derivative. `Unsuitable` if these coefficients are found to vary."""
        z, normals = self.at(times)
        symbol, n = self.symbol, len(self.points)
        if symbol.is_affine:
            left, coefficients = self._affine(z, normals, used)
            here = [a for a, index in enumerate(used) if index not in constant]
            for a in set(range(len(used))) - set(here):
                own = constant[used[a]]
                if np.any(np.abs(coefficients[:, :, a] - own) > SAME * np.abs(own)):
                    raise Unsuitable
            if here:
                jet = np.stack([jet_of(used[a]).reshape(len(z), -1) for a in here])
                left = left + np.einsum("nkac,anc->nk", coefficients[:, :, here], jet)
        else:
            given = tuple(index for index in used if index not in constant)
            indices = given if constant else symbol.indices(z, normals)
            jet = np.zeros((len(indices), len(z), self.layout.components))
            for index in given:
                jet[indices.index(index)] = jet_of(index).reshape(len(z), -1)
            left = symbol.values(z, normals, jet, given if constant else None)
            if z[::n, -1].tobytes() not in self._known:
                self._check_others(z, normals, dict(zip(indices, jet, strict=True)), used, constant)
        return (left - self._right(z, normals)).reshape(len(times), n, self.entries)

    def coefficients(self, time: float, jet_of: JetOf, used: Sequence[Index]) -> Float[np.ndarray, "n k a C"]:
        """The derivative of the left side at one time with respect to the derivatives `used` of a function."""
        z, normals = self.at(np.array([time]))
        symbol = self.symbol
        if symbol.is_affine:
            return self._affine(z, normals, used)[1]
        indices = symbol.indices(z, normals)
        jet = np.zeros((len(indices), len(z), self.layout.components))
        for row, index in zip(jet, indices, strict=True):
            if index in used:
                row[...] = jet_of(index)[0]
        found = symbol.linearise(z, normals, jet)
        assert found is not None, "used() has found the term to be local"
        self._check(found, used)
        return found.coefficients[:, :, [indices.index(index) for index in used]]

    def _affine(self, z: Points, normals: Points, used: Sequence[Index]) -> tuple[np.ndarray, np.ndarray]:
        found = self.symbol.linearise(z, normals)
        assert found is not None, "used() has found the term to be local"
        self._check(found, used)
        return found.left, found.coefficients[:, :, [found.indices.index(index) for index in used]]

    def _check(self, found: Linearisation, used: Sequence[Index]) -> None:
        """Raise `Overlooked` if coefficients of derivatives that are not in `used` are not zero."""
        rest = [] if found.is_constant else [i for i, index in enumerate(found.indices) if index not in used]
        if not rest or not found.coefficients[:, :, rest].any():
            return
        sizes = np.max(np.abs(np.nan_to_num(found.coefficients, nan=0.0, posinf=0.0)), axis=(0, 1, 3))
        new = set()
        for i in rest:
            index = found.indices[i]
            if self._highest is None or all(k <= most for k, most in zip(index, self._highest, strict=True)):
                new |= {index} if sizes[i] > 0 else set()
            elif sizes[i] > NOISE * sizes.max():
                raise SolveError(
                    f"The term {self.name!r} is of order {index} in its coordinates at some points and times only; "
                    "march needs an equation of the same order everywhere. Use solve(problem, features), which solves "
                    "for all times at once."
                )
        if new:
            self._more |= new
            raise Overlooked

    def _check_others(
        self,
        z: Points,
        normals: Points,
        given: dict[Index, np.ndarray],
        used: Sequence[Index],
        constant: Mapping[Index, Matrix],
    ) -> None:
        """The same for a nonlinear term: where random values of the other derivatives change its values. Those of
        derivatives with constant coefficients must change them as these say."""
        indices = self.symbol.indices(z, normals)
        jet = np.stack([given.get(index, np.zeros((len(z), self.layout.components))) for index in indices])
        rest, other = [i for i, index in enumerate(indices) if index not in used or index in constant], jet.copy()
        other[rest] = random_jet(len(rest), len(z), self.layout.components)
        expected = np.zeros((len(z), self.entries))
        for i in rest:
            expected += other[i] @ constant[indices[i]].T if indices[i] in constant else 0.0
        with np.errstate(invalid="ignore"):
            left, changed = (self.symbol.values(z, normals, each) for each in (jet, other))
            slack = SAME * (np.abs(left) + np.abs(expected)) if constant else 0.0
            differ = np.flatnonzero(np.any(np.abs(changed - left - expected) > slack, axis=1))
        if len(differ):
            found = self.symbol.linearise(z[differ], normals[differ], other[:, differ])
            assert found is not None, "used() has found the term to be local"
            self._check(found, used)
            if constant:
                raise Unsuitable

    def _right(self, z: Points, normals: Points) -> Float[np.ndarray, "n k"]:
        """The right side, remembered for the times of the last call: iterations on a slab ask for it again."""
        key = z[:: len(self.points), -1].tobytes()
        if key not in self._known:
            self._known = {key: values_at(self.right_side, self.layout, z, normals)}
        return self._known[key]

    def at(self, times: Vector) -> tuple[Points, Points]:
        """All points at all times, time by time, and their normals."""
        n, p = len(self.points), len(times)
        z = np.concatenate([np.tile(self.points, (p, 1)), np.repeat(times, n)[:, None]], axis=1)
        return z, np.tile(self.normals, (p, 1))
