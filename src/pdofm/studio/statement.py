"""Problems as they are typed: a drawn domain and formulas become a `Problem`, and the Python that states it.

A statement is what the page sends:

    {"shapes": [{"kind": "disk", "cut": false, "numbers": [0, 0, 1]}], "parameters": {"k": 10},
     "handles": {"p": [0.2, 0.1]}, "end": null, "unknowns": ["u"],
     "equations": [{"left": "-lap(u)", "right": "exp(-((x-px)^2 + (y-py)^2))"}],
     "conditions": [{"parts": [], "rows": [{"kind": "value", "left": "", "right": "0"}]}], "initial": []}

A handle p is a point that is dragged; formulas call it px, py. `end` is the last time of an evolution. A condition
without parts holds where no other does; it has a row for each unknown. `reading` reads it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from pdofm._types import Points, SpaceNormals
from pdofm.domain import Domain, SpaceTime
from pdofm.problem.conditions import Condition, Dirichlet, Initial, Neumann
from pdofm.problem.problem import Problem
from pdofm.studio.formula import Node, names_in
from pdofm.studio.meaning import Scope, numbers_at, value
from pdofm.studio.sketch import Sketch


@dataclass(frozen=True)
class Row:
    """One row of a condition: left = right on a part, for one unknown."""

    name: str
    kind: str
    parts: tuple[str, ...]
    unknown: str
    left: Node | None
    right: Node


@dataclass(frozen=True)
class Statement:
    """A statement that has been read.

    Attributes:
        sketch: the domain in space.
        end: the last time, or None.
        numbers: parameters, and the coordinates of the handles.
        unknowns: their names.
        lefts, rights: the two sides of the equations.
        rows: the rows of all conditions.
        initial: for each unknown its value at the first time and, if given, its velocity.
    """

    sketch: Sketch
    end: float | None
    numbers: dict[str, float]
    unknowns: tuple[str, ...]
    lefts: tuple[Node, ...]
    rights: tuple[Node, ...]
    rows: tuple[Row, ...]
    initial: tuple[tuple[Node, Node | None], ...]

    @cached_property
    def domain(self) -> Domain:
        """The domain, with time if there is time."""
        return self.sketch.domain if self.end is None else SpaceTime(self.sketch.domain, self.end)

    @property
    def has_time(self) -> bool:
        return self.end is not None

    def problem(self) -> Problem:
        """The problem that is stated."""
        several = len(self.unknowns) > 1
        return Problem(
            self.domain,
            operator=self._left(*self.lefts),
            source=self._right(*self.rights),
            conditions=[*map(self._condition, self.rows), *self._initial()],
            unknowns=dict.fromkeys(self.unknowns, 1) if several else None,
            name="studio",
        )

    def source_at(self, points: Points, numbers: Mapping[str, float]) -> np.ndarray:
        """The right sides of the equations at points for other numbers: (n, 1), or (n, e, 1) for e equations."""
        scope = self._scope(points.T, numbers=numbers)
        found = [numbers_at(node, scope, len(points)) for node in self.rights]
        return (found[0] if len(found) == 1 else np.stack(found, axis=1))[..., None]

    def data_at(self, row: Row, points: Points, normals: SpaceNormals, numbers: Mapping[str, float]) -> np.ndarray:
        """The data of a row at points for other numbers, (n, 1)."""
        scope = self._scope(points.T, normals.T, numbers=numbers)
        found = numbers_at(row.right, scope, len(points))
        if row.kind == "formula":  # its residual contains the data it was stated with
            found = found - numbers_at(row.right, self._scope(points.T, normals.T), len(points))
        return found[:, None]

    def moves_only_data(self, names: set[str]) -> bool:
        """Whether these numbers occur in right sides only, so that a factored problem serves all their values."""
        lefts = [*self.lefts, *(row.left for row in self.rows if row.left is not None)]
        initial = [node for pair in self.initial for node in pair if node is not None]
        return not any(names_in(node) & names for node in [*lefts, *initial])

    def _scope(self, z: Any, normal: Any = None, numbers: Mapping[str, float] | None = None) -> Scope:
        """Coordinates, first axis: the coordinate; time is the last one."""
        point = (z[:-1], z[-1]) if self.has_time else (z,)
        return Scope(self.numbers if numbers is None else numbers, point, normal, arrays=np)

    def _fields(self, w: Any) -> dict[str, Callable[..., Any]]:
        """The unknowns as functions, from what the operator is given."""
        is_alone = len(self.unknowns) == 1
        return {name: w if is_alone else getattr(w, name) for name in self.unknowns}

    def _left(self, *nodes: Node) -> Callable[..., Any]:
        """Left sides as a function of the unknown, the point and perhaps the normal."""

        def left(w: Any, *point: Any, normal: Any = None) -> Any:
            return _together(value(node, Scope(self.numbers, point, normal, self._fields(w))) for node in nodes)

        return left

    def _right(self, *nodes: Node) -> Callable[..., Any]:
        """Right sides as a function of the point and perhaps the normal."""

        def right(*point: Any, normal: Any = None) -> Any:
            return _together(value(node, Scope(self.numbers, point, normal)) for node in nodes)

        return right

    def _condition(self, row: Row) -> Condition | Dirichlet | Neumann:
        part, right = self.domain.part(*row.parts), self._right(row.right)
        if row.left is not None:
            left = self._left(row.left)
            return Condition(
                lambda w, *point, normal: left(w, *point, normal=normal) - right(*point, normal=normal),
                part,
                name=row.name,
            )
        kind = Dirichlet if row.kind == "value" else Neumann
        return kind(right, part, unknown=row.unknown if len(self.unknowns) > 1 else None, name=row.name)

    def _initial(self) -> Iterator[Initial]:
        for name, (first, velocity) in zip(self.unknowns, self.initial, strict=False):
            yield Initial(
                self._right(first),
                None if velocity is None else self._right(velocity),
                unknown=name if len(self.unknowns) > 1 else None,
                name=f"initial {name}",
            )


def _together(values: Iterator[Any]) -> Any:
    found = [jnp.asarray(each) for each in values]
    return found[0] if len(found) == 1 else jnp.stack(found)
