"""The data of many right-hand sides: what a user gives for a source and the conditions, checked and evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float

from pdofm.discrete.boxed import BoxSystem
from pdofm.discrete.collocate import Block
from pdofm.discrete.leftsides import entries
from pdofm.discrete.right import check_finite, data_name, right_values
from pdofm.discrete.system import System
from pdofm.errors import ProblemError, unknown_name
from pdofm.problem.interface import of_region
from pdofm.problem.problem import Problem

Sides = Float[np.ndarray, "rows sides"]


class RightHandSides:
    """The data of k right-hand sides: for each term functions, an array, or one number for all of them; terms that are
    not mentioned keep their own data.

    Attributes:
        count: k.
        is_tabulated: whether some data are known at the fitted points only.
    """

    def __init__(self, problem: Problem, own: Mapping[str, Block], sources: Any, boundary: Any):
        self._own = own
        given = {**_sources(problem, sources), **_by_name(problem, own, boundary)}
        self._data = {
            name: _read(problem, own[name], value)
            for name, value in given.items()
            if value is not None and not _is_number(value)
        }
        self._numbers = {name: float(value) for name, value in given.items() if _is_number(value)}
        for name, value in self._numbers.items():
            if not np.isfinite(value):
                raise ProblemError(f"The {data_name(own[name].term)} is {value}; expected a finite number.")
        counts = {name: data.count for name, data in self._data.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{count} for {name!r}" for name, count in counts.items())
            raise ProblemError(
                f"The numbers of right-hand sides differ: {found}; expected the same for all. "
                "Leave out, or give as one number, what does not change."
            )
        self.count = max(counts.values(), default=1)
        self.is_tabulated = any(isinstance(data, _Tabulated) for data in self._data.values())

    def scaled(self, blocks: Sequence[Block], system: System | BoxSystem, which: slice) -> Sides:
        """The scaled right-hand sides with the numbers `which`: all terms stacked, as in the system; zero in rows of no
        block."""
        b = np.zeros((len(system.scales), which.stop - which.start))
        for block in blocks:
            name = block.term.name
            at = system.rows[name]
            if name in self._data:
                self._data[name].fill(b[at], block, which)
            else:
                b[at] = self._numbers.get(name, system.right[at, None])
            if system.left[at].any():
                b[at] -= system.left[at, None]
        b *= system.scales[:, None]
        if not np.isfinite(np.sum(b)):
            for name in self._data.keys() & system.rows.keys():
                self._data[name].check(self._own[name], which)
        return b


def _sources(problem: Problem, sources: Any) -> dict[str, Any]:
    """The sources by the name of their equation; with several regions there is one for each."""
    if problem.regions is None:
        return {"equation": sources}
    names = problem.regions.names
    if isinstance(sources, np.ndarray | Array):
        raise ProblemError(
            f"The sources are an array, but {problem.name!r} has several regions; expected a dictionary of arrays, "
            f"with values at the points solver.points['equation {names[0]}'] for {names[0]!r} and so on."
        )
    if isinstance(sources, Mapping):
        for name in sources:
            if name not in names:
                raise unknown_name("region", name, names)
        return {f"equation {name}": sources.get(name) for name in names}
    if isinstance(sources, list | tuple):
        each = {name: [of_region(one, name, "A source") for one in sources] for name in names}
        return {f"equation {name}": of_it for name, of_it in each.items()}
    return {f"equation {name}": sources for name in names}


def own_blocks(problem: Problem, blocks: Sequence[Block]) -> dict[str, Block]:
    """The blocks that have data of the user's, by name: not those that the features add."""
    names = {term.name for term in problem.terms}
    return {block.term.name: block for block in blocks if block.term.name in names}


def _by_name(problem: Problem, own: Mapping[str, Block], boundary: Any) -> dict[str, Any]:
    """The data of conditions by name; with a single condition the name may be left out."""
    conditions = [name for name, block in own.items() if block.term.on is not None]
    if boundary is None:
        return {}
    if not isinstance(boundary, Mapping):
        if len(conditions) != 1:
            raise ProblemError(
                f"boundary is {_described(boundary)}; expected a dictionary from names to data, as "
                f"{problem.name!r} has {len(conditions)} conditions: {conditions}."
            )
        return {conditions[0]: boundary}
    for name in boundary:
        if name not in conditions:
            if any(name == term.name for term in problem.terms[1:]):
                raise ProblemError(
                    f"The features impose {name!r} by construction: its data cannot change. Use the inner features."
                )
            raise unknown_name(f"condition of {problem.name!r}", name, conditions)
    return dict(boundary)


def _read(problem: Problem, block: Block, value: Any) -> "_Listed | _Tabulated":
    """The data of a term, checked."""
    rows, what = entries(problem.layout, block), data_name(block.term)
    n = block.equations
    shape = f"(n, k) = ({n}, k)" if rows == 1 else f"(n, e, k) = ({n}, {rows}, k)"
    if isinstance(value, list | tuple):
        return _read_list(problem, block, value, rows, shape)
    if not isinstance(value, np.ndarray | Array):
        raise ProblemError(
            f"The data for the {what} are {_described(value)}; expected a list of functions [f, g, …], an array of "
            f"shape {shape} or one number."
        )
    array = np.asarray(value)
    if problem.layout.is_complex:
        array = (
            np.stack([np.real(array), np.imag(array)], axis=1)
            if array.ndim == 2
            else np.concatenate([np.real(array), np.imag(array)], axis=1)
        )
    if array.dtype.kind not in "fiu":
        raise ProblemError(f"The array for the {what} has the type {array.dtype}; expected real numbers.")
    if array.ndim == 2 and rows == 1:
        array = array[:, None]
    if array.ndim != 3 or len(array) != n or array.shape[1] not in (1, rows) or array.shape[2] == 0:
        raise ProblemError(
            f"The array for the {what} has shape {value.shape}; expected {shape}: a value for each of the points "
            f"solver.points[{block.term.name!r}] and each right-hand side."
        )
    return _Tabulated(array, rows)


def _read_list(problem: Problem, block: Block, value: Sequence[Any], rows: int, shape: str) -> "_Listed":
    """A list of functions or numbers, checked; `shape` is that of an array with the same data."""
    n = block.equations
    if not value:
        raise ProblemError(f"The list for the {data_name(block.term)} is empty; expected at least one function.")
    terms = [replace(block.term, rhs=one) for one in value]
    for j, term in enumerate(terms):
        if term.rhs is None:
            raise ProblemError(f"The {_numbered(block, j)} is None; expected a function or a number.")
        if np.shape(term.rhs)[:1] == (n,) != (rows,):
            raise ProblemError(
                f"The {_numbered(block, j)} in the list is an array, one entry for each of the {n} points; "
                f"expected a function or a number. Give one array {shape}: numpy.stack(values, axis=-1)."
            )
        problem.check_data(term, rows, _numbered(block, j))
    return _Listed(problem, terms, rows)


@dataclass(frozen=True, eq=False)
class _Listed:
    """Functions, one per right-hand side."""

    problem: Problem
    terms: Sequence[Any]
    rows: int

    @property
    def count(self) -> int:
        return len(self.terms)

    def fill(self, out: Sides, block: Block, which: slice) -> None:
        for column, j in enumerate(range(which.start, which.stop)):
            here = replace(block, right_side=self.problem.right_side(self.terms[j]))
            values = right_values(self.problem.layout, here, self.rows, what=_numbered(block, j), compiled=False)
            out[:, column] = block.averaged(values).reshape(-1)

    def check(self, block: Block, which: slice) -> None:
        """Nothing: functions are checked where they are evaluated."""


@dataclass(frozen=True, eq=False)
class _Tabulated:
    """Values at the fitted points, (n, e or 1, k)."""

    values: np.ndarray
    rows: int

    @property
    def count(self) -> int:
        return self.values.shape[2]

    def fill(self, out: Sides, block: Block, which: slice) -> None:
        out.reshape(len(self.values), self.rows, -1)[...] = self.values[:, :, which]

    def check(self, block: Block, which: slice) -> None:
        for j in range(which.start, which.stop):
            check_finite(
                self.values[:, :, j].astype(np.float64), _numbered(block, j), block.points, "Check the array there."
            )


def _numbered(block: Block, j: int) -> str:
    return f"source {j}" if block.term.on is None else f"value {j} of condition {block.term.name!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _described(value: Any) -> str:
    if callable(value):
        return "a function"
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray | Array) else type(value).__name__
