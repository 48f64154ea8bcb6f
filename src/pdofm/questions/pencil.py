"""The pencil of an eigenvalue problem in a space: operator - σ mass with the conditions, factored for a shift σ.

For a function f the least-squares solution u of

    (operator - σ mass) u = mass f,      homogeneous conditions,

is T f with an operator T whose eigenfunctions are those of the problem, and whose eigenvalues θ tell the wanted ones:
λ = σ + 1 / θ. Eigenvalues near the shift have the largest θ. The rows of operator and mass are computed once; another
shift takes another combination of them and another factorisation, but nothing is compiled again.

Coefficients of p functions have the shape (m, c, p), with c numbers for each feature, which are complex if the problem
is; values of left sides have the shape (n, e, p), with e equations at n points.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Inexact

from pdofm._types import Key, Points
from pdofm.calculus.terms import Term
from pdofm.discrete.assemble import assemble, left_values
from pdofm.discrete.boxed import BoxFactorization, BoxSystem, cover_of
from pdofm.discrete.collocate import Block
from pdofm.discrete.discretisation import discretise
from pdofm.discrete.evaluate import evaluate_all, feature_values
from pdofm.discrete.leftsides import entries
from pdofm.discrete.local import LocalProblem
from pdofm.discrete.localterm import LocalTerm
from pdofm.features import Features, InBoxes
from pdofm.numerics.cod import LeftAndRight
from pdofm.problem.problem import Problem

Functions = Inexact[np.ndarray, "_ _ _"]
Values = Inexact[np.ndarray, "_ _ _"]
Rows = Inexact[np.ndarray, "_ _"]
"""Vectors of all rows of a system, a column for each."""

POINTS_PER_FEATURE, FEWEST_POINTS = 2.0, 100
"""Collocation points in the domain per feature, and at least. There is no noise in a homogeneous problem that more
points would average."""


class Pencil(ABC):
    """Operator and mass of an eigenvalue problem in a space.

    Attributes:
        problem, features: what is solved, and the space.
        points: the collocation points of the equation.
        entries: the number of equations at a point.
    """

    problem: Problem
    features: Features
    points: np.ndarray
    entries: int

    @property
    def is_complex(self) -> bool:
        return self.problem.layout.is_complex

    @abstractmethod
    def factor(self, shift: Any) -> "Shifted":
        """Factor the operator minus `shift` times the mass, with the conditions."""

    @abstractmethod
    def mass(self, functions: Functions) -> Values:
        """The mass of functions at the points."""

    def left_sides(self, term: Term, functions: Functions, points: Points) -> Values:
        """The left sides of a linear term at points of the domain; functions of a real problem may be complex."""
        if not self.is_complex and np.iscomplexobj(functions):
            re = self.left_sides(term, np.real(functions), points)
            return re + 1j * self.left_sides(term, np.imag(functions), points) if np.any(np.imag(functions)) else re
        normals = np.zeros((len(points), points.shape[1] - self.problem.layout.has_time))
        block = Block(term, self.problem.right_side(term), points, normals)
        return self.joined(self._left_sides(block, self.real(functions)))

    def _left_sides(self, block: Block, coefficients: np.ndarray) -> np.ndarray:
        """The left sides of a block, as real numbers, for coefficients (m, c, p)."""
        layout, each = self.problem.layout, np.moveaxis(coefficients, 2, 0)
        return np.stack([left_values(layout, self.features, block, c) for c in each], axis=2)

    def samples(self, functions: Functions) -> np.ndarray:
        """Functions at the points, all components of one function in a column: what they are compared by."""
        values = evaluate_all(self.features, np.moveaxis(self.real(functions), 2, 0), self.points)
        found = self.problem.layout.gathered(values)
        return found.reshape(len(found), -1).T

    def real(self, functions: Functions) -> np.ndarray:
        """Coefficients of complex functions as those of their real and imaginary parts."""
        if not self.is_complex:
            return functions
        return np.concatenate([np.real(functions), np.imag(functions)], axis=1)

    def gathered(self, coefficients: np.ndarray) -> Functions:
        """The inverse of `real`."""
        return np.moveaxis(self.problem.layout.gathered(np.moveaxis(coefficients, 1, 2)), 2, 1)

    def split(self, values: Values) -> np.ndarray:
        """Values of complex left sides as real ones."""
        return np.concatenate([np.real(values), np.imag(values)], axis=1) if self.is_complex else values

    def joined(self, values: np.ndarray) -> Values:
        """The inverse of `split`."""
        k = values.shape[1] // 2
        return values[:, :k] + 1j * values[:, k:] if self.is_complex else values

    def times(self, shift: Any, rows: np.ndarray) -> np.ndarray:
        """Rows of left sides multiplied by a number, which is complex if the problem is."""
        if not self.is_complex:
            return np.real(shift) * rows
        k, a, b = rows.shape[1] // 2, np.real(shift), np.imag(shift)
        re, im = rows[:, :k], rows[:, k:]
        return np.concatenate([a * re - b * im, a * im + b * re], axis=1)


class Shifted(ABC):
    """A pencil that is factored for a shift: ``solve(values)`` applies the inverse of operator - shift · mass."""

    def __init__(self, pencil: Pencil, scales: np.ndarray, rows: int, start: int):
        self.pencil, self._scales, self._rows, self._start = pencil, scales, rows, start

    def solve(self, values: Values) -> Functions:
        """The functions whose left sides are closest to the given values, with homogeneous conditions."""
        pencil, p = self.pencil, values.shape[2]
        b = np.zeros((self._rows, p))
        given = (self._scales[:, :, None] * pencil.split(values)).reshape(-1, p)
        b[self._start : self._start + len(given)] = given
        components = pencil.problem.layout.components
        return pencil.gathered(self._solved(b).reshape(-1, components, p))

    @abstractmethod
    def _solved(self, b: np.ndarray) -> np.ndarray:
        """The least-squares solutions for scaled right-hand sides."""


class DenseShifted(Shifted):
    """A dense pencil, factored, with its matrix F: [operator - shift · mass; conditions], all rows scaled. It can
    also be solved from the left, which gives left eigenvectors."""

    def __init__(self, pencil: "DensePencil", scales: np.ndarray, matrix: np.ndarray):
        super().__init__(pencil, scales, len(matrix), 0)
        self._pencil, self._matrix = pencil, matrix
        self._factors = LeftAndRight(matrix)

    def _solved(self, b: np.ndarray) -> np.ndarray:
        return self._factors.solve(b)

    @property
    def has_full_rank(self) -> bool:
        """Whether the features are independent up to rounding."""
        return self._factors.rank == self._matrix.shape[1]

    def rows_of(self, functions: Functions) -> tuple[Rows, Rows]:
        """The scaled rows of functions: F c, and those of the mass."""
        c = self.pencil.real(functions)
        flat, p = c.reshape(-1, c.shape[2]), c.shape[2]
        mass = np.zeros((self._rows, p))
        given = (self._scales[:, :, None] * self._pencil.mass_rows(flat)).reshape(-1, p)
        mass[: len(given)] = given
        return self._complex(self._matrix @ flat), self._complex(mass)

    def from_left(self, rows: Rows) -> Rows:
        """The adjoint of T, on vectors of rows: multiplied by the mass, then solved with the adjoint of F."""
        return self._complex(self._factors.solve_left(self._pencil.mass_adjoint(self._scales, self._real(rows))))

    def _complex(self, rows: np.ndarray) -> Rows:
        """Rows of a complex problem as complex numbers: real parts of each point, or of each condition, come first."""
        return rows if not self.pencil.is_complex else rows[self._parts[0]] + 1j * rows[self._parts[1]]

    def _real(self, rows: Rows) -> np.ndarray:
        if not self.pencil.is_complex:
            return rows
        found = np.empty((self._rows, rows.shape[1]))
        found[self._parts[0]], found[self._parts[1]] = np.real(rows), np.imag(rows)
        return found

    @property
    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        return self._pencil.parts


class DensePencil(Pencil):
    """A pencil in features with one dense matrix."""

    def __init__(self, problem: Problem, mass: Term, features: Features, sampling: str, key: Key):
        self.problem, self.features = problem, features
        count = max(FEWEST_POINTS, round(POINTS_PER_FEATURE * features.size))
        discretisation = discretise("eigs", problem, features, count, None, sampling, key)
        zero, layout = discretisation.zero(), problem.layout
        equation = discretisation.blocks[0]
        self.points = equation.points
        system = discretisation.system(zero, check=True, fold=False)
        rows = system.rows["equation"]
        n = len(self.points)
        self._operator = (system.A[rows] / system.scales[rows, None]).reshape(n, -1, zero.size)
        self._conditions = np.delete(system.A, np.r_[rows], axis=0)
        self.entries = self._operator.shape[1] // (2 if layout.is_complex else 1)
        block = replace(equation, term=mass, right_side=problem.right_side(mass))
        found = assemble(layout, features, [block], zero, check=False)
        self._mass = (found.A / found.scales[:, None]).reshape(self._operator.shape)
        self._values = feature_values(features, self.points)
        if layout.is_complex:
            shapes = [(len(self.points), self._operator.shape[1])]
            shapes += [(block.equations, entries(layout, block)) for block in discretisation.blocks[1:]]
            self.parts = _real_and_imaginary(shapes)

    def _left_sides(self, block: Block, coefficients: np.ndarray) -> np.ndarray:
        m, components, p = coefficients.shape
        found = assemble(self.problem.layout, self.features, [block], np.zeros((m, components)), check=False)
        return (found.A @ coefficients.reshape(-1, p) / found.scales[:, None]).reshape(len(block.points), -1, p)

    def mass_rows(self, coefficients: np.ndarray) -> np.ndarray:
        """The mass of functions at the points, in real numbers."""
        found = self._mass.reshape(-1, self._mass.shape[2]) @ coefficients
        return found.reshape(*self._mass.shape[:2], -1)

    def mass_adjoint(self, scales: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The transpose of the mass, with its rows scaled, times vectors of all rows."""
        weighted = scales.reshape(-1, 1) * rows[: scales.size]
        return self._mass.reshape(-1, self._mass.shape[2]).T @ weighted

    def mass(self, functions: Functions) -> Values:
        c = self.real(functions)
        return self.joined(self.mass_rows(c.reshape(-1, c.shape[2])))

    def samples(self, functions: Functions) -> np.ndarray:
        m, _, p = functions.shape
        return (self._values @ functions.reshape(m, -1)).reshape(-1, p)

    def factor(self, shift: Any) -> DenseShifted:
        rows = self._operator - self.times(shift, self._mass)
        norms = np.linalg.norm(rows, axis=2)
        scales = 1 / np.where(norms == 0, 1.0, norms)
        scaled = (rows * scales[:, :, None]).reshape(-1, rows.shape[2])
        return DenseShifted(self, scales, np.concatenate([scaled, self._conditions]))


class _BoxShifted(Shifted):
    def __init__(self, pencil: Pencil, scales: np.ndarray, factorization: BoxFactorization, rows: int):
        super().__init__(pencil, scales, rows, 0)
        self._factorization = factorization

    def _solved(self, b: np.ndarray) -> np.ndarray:
        return self._factorization.solve(b)


class BoxPencil(Pencil):
    """A pencil in polynomials in boxes."""

    def __init__(self, problem: Problem, mass: Term, features: InBoxes):
        self.problem = problem
        self._local = LocalProblem(problem, cover_of(problem.domain, features))
        self.features = self._local.cover.features
        places = self._local.places()
        self._terms = [self._local.linearised(*each, None) for each in places]
        self._mass = self._local.linearised(mass, places[0][1], None)
        self.points = places[0][1].points
        self.entries = self._terms[0].target.shape[1] // (2 if problem.layout.is_complex else 1)

    def mass(self, functions: Functions) -> Values:
        c, placed = self.real(functions), self._mass.placed
        m, components, p = c.shape
        jet = self._local.patches.expand_all(placed.patch, placed.points, self._mass.which, c.reshape(m, -1))
        jet = jet.reshape(*jet.shape[:2], components, p)
        return self.joined(np.einsum("nkac,ancp->nkp", self._mass.coefficients, jet))

    def factor(self, shift: Any) -> Shifted:
        terms = [self._combined(shift), *self._terms[1:]]
        system = BoxSystem(self._local, terms, self._local.weights(terms))
        factorization = BoxFactorization(self._local, terms, system, self._local.system(terms, keep=True))
        scales = system.scales[system.rows["equation"]].reshape(terms[0].target.shape)
        return _BoxShifted(self, scales, factorization, len(system.scales))

    def _combined(self, shift: Any) -> LocalTerm:
        """The operator minus a multiple of the mass."""
        operator, mass = self._terms[0], self._mass
        which = tuple(dict.fromkeys([*operator.which, *mass.which]))
        n, k, _, components = operator.coefficients.shape
        found = np.zeros((n, k, len(which), components))
        found[:, :, [which.index(each) for each in operator.which]] = operator.coefficients
        found[:, :, [which.index(each) for each in mass.which]] -= self.times(shift, mass.coefficients)
        return replace(operator, which=which, coefficients=found)


def _real_and_imaginary(shapes: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows that are real parts, and of their imaginary parts, in blocks of (points, entries), where
    the first half of the entries are real parts."""
    found, start = [], 0
    for n, k in shapes:
        numbers = np.arange(n * k).reshape(n, k) + start
        found.append((numbers[:, : k // 2].reshape(-1), numbers[:, k // 2 :].reshape(-1)))
        start += n * k
    return np.concatenate([re for re, _ in found]), np.concatenate([im for _, im in found])


def pencil_of(problem: Problem, mass: Term, features: Features, sampling: str, key: Key) -> Pencil:
    """The pencil of a problem in a space."""
    if isinstance(features, InBoxes):
        return BoxPencil(problem, mass, features)
    return DensePencil(problem, mass, features, sampling, key)
