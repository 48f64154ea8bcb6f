"""Reads statements: every text, number and name of what the page sends is checked before anything is made of it."""

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any

from pdofm.errors import PdofmError
from pdofm.studio.formula import FormulaError, Node, check_name, parse
from pdofm.studio.sketch import Sketch, sketched
from pdofm.studio.statement import Row, Statement

KINDS = ("value", "slope", "formula", "none")
"""What a row of a condition gives: u, its normal derivative, a formula in u and its derivatives, or nothing."""

MOST_UNKNOWNS, MOST_NUMBERS, MOST_CONDITIONS = 4, 30, 60
"""Unknowns, parameters and handles, and conditions, at most."""


class FieldError(FormulaError):
    """An error in one field of the statement, such as ``equations.0.right``."""

    def __init__(self, field: str, message: str):
        super().__init__(message)
        self.field = field


def read(given: Any) -> Statement:
    """The statement that the page sends; a `FieldError` says what is wrong, and where."""
    if not isinstance(given, dict):
        raise FieldError("shapes", "A statement is an object with shapes, equations and conditions.")
    sketch = _at("shapes", lambda: sketched(given.get("shapes")))
    return _Reader(given, sketch).statement()


def handle_numbers(handles: Any) -> dict[str, float]:
    """The coordinates of handles by the names that formulas use: px and py of the handle p."""
    if not isinstance(handles, dict):
        raise FieldError("handles", "Handles are an object from letters to points.")
    found = {}
    for name, point in handles.items():
        if not (isinstance(name, str) and len(name) == 1 and name in "pqrs"):
            raise FieldError("handles", f"A handle is called p, q, r or s; got {str(name)[:20]!r}.")
        if not isinstance(point, list) or len(point) != 2:
            raise FieldError("handles", f"The handle {name} is a point of two numbers.")
        for axis, each in zip("xy", point, strict=True):
            found[name + axis] = _number("handles", each)
    return found


class _Reader:
    def __init__(self, given: dict[str, Any], sketch: Sketch):
        self.given, self.sketch = given, sketch
        self.unknowns = self._unknowns()
        self.end = None if given.get("end") is None else _number("end", given["end"])
        if self.end is not None and self.end <= 0:
            raise FieldError("end", f"The last time is {self.end:g}; expected a positive number.")
        self.numbers = self._numbers()
        self.axes = "xy" if self.end is None else "xyt"

    def statement(self) -> Statement:
        equations = self._list("equations", len(self.unknowns), len(self.unknowns))
        if len(equations) != len(self.unknowns):
            raise FieldError(
                "equations", f"{len(self.unknowns)} unknowns need as many equations; got {len(equations)}."
            )
        rights = tuple(self._formula(f"equations.{i}.right", each.get("right")) for i, each in enumerate(equations))
        return Statement(
            self.sketch,
            self.end,
            self.numbers,
            self.unknowns,
            tuple(self._left(f"equations.{i}.left", each.get("left")) for i, each in enumerate(equations)),
            rights,
            tuple(self._rows()),
            tuple(self._initial()) if self.end is not None else (),
        )

    def _unknowns(self) -> tuple[str, ...]:
        names = self.given.get("unknowns")
        if not isinstance(names, list) or not 0 < len(names) <= MOST_UNKNOWNS:
            raise FieldError("unknowns", f"There are 1 to {MOST_UNKNOWNS} unknowns.")
        found: list[str] = []
        for name in names:
            found.append(_at("unknowns", lambda name=name: check_name(name, found)))
        return tuple(found)

    def _numbers(self) -> dict[str, float]:
        parameters, handles = self.given.get("parameters") or {}, handle_numbers(self.given.get("handles") or {})
        if not isinstance(parameters, dict) or len(parameters) + len(handles) > MOST_NUMBERS:
            raise FieldError("parameters", f"Parameters are an object of at most {MOST_NUMBERS} names and numbers.")
        taken = [*self.unknowns, *handles]
        found = {}
        for name, each in parameters.items():
            found[_at("parameters", lambda name=name: check_name(name, taken))] = _number("parameters", each)
        return found | handles

    def _rows(self) -> Iterator[Row]:
        """The rows of all conditions: first those on named parts, then those of the others."""
        conditions = self._list("conditions", 1, MOST_CONDITIONS)
        known = self.sketch.domain.boundary.names
        owner: dict[str, int] = {}
        for i, each in enumerate(conditions):
            parts = each.get("parts")
            if not isinstance(parts, list) or not all(part in known for part in parts):
                raise FieldError(f"conditions.{i}.parts", f"The parts of the boundary are {', '.join(known)}.")
            for part in parts:
                if owner.setdefault(part, i) != i:
                    raise FieldError(f"conditions.{i}.parts", f"The part {part} has two conditions; leave out one.")
        if sum(not each["parts"] for each in conditions) > 1:
            raise FieldError("conditions", "Only one condition can hold on all other parts.")
        rest = [part for part in known if part not in owner]
        for i, each in enumerate(conditions):
            parts = tuple(dict.fromkeys(each["parts"])) or tuple(rest)
            if parts:
                yield from self._rows_of(f"conditions.{i}", each, parts)
        if rest and all(each["parts"] for each in conditions):
            raise FieldError("conditions", f"The part {rest[0]} has no condition; add one for all other parts.")

    def _rows_of(self, field: str, condition: dict[str, Any], parts: tuple[str, ...]) -> Iterator[Row]:
        rows = condition.get("rows")
        if not isinstance(rows, list) or len(rows) != len(self.unknowns) or not all(isinstance(r, dict) for r in rows):
            raise FieldError(field, "A condition has one row for each unknown.")
        for i, (row, unknown) in enumerate(zip(rows, self.unknowns, strict=True)):
            here, kind = f"{field}.rows.{i}", row.get("kind")
            if kind not in KINDS:
                raise FieldError(here, f"The kind of a condition is one of {', '.join(KINDS)}.")
            if kind == "none":
                continue
            left = self._left(f"{here}.left", row.get("left"), ("nx", "ny")) if kind == "formula" else None
            right = self._formula(f"{here}.right", row.get("right"), ("nx", "ny"))
            name = f"{'+'.join(parts)} {unknown}"
            yield Row(name, kind, parts, unknown, left, right)

    def _initial(self) -> Iterator[tuple[Node, Node | None]]:
        for i, each in enumerate(self._list("initial", len(self.unknowns), len(self.unknowns))):
            velocity = each.get("velocity") or None
            yield (
                self._formula(f"initial.{i}.value", each.get("value"), time=False),
                None if velocity is None else self._formula(f"initial.{i}.velocity", velocity, time=False),
            )

    def _list(self, field: str, least: int, most: int) -> list[dict[str, Any]]:
        given = self.given.get(field)
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            raise FieldError(field, f"{field} must be a list of objects.")
        if not least <= len(given) <= most:
            raise FieldError(field, f"There are {len(given)} {field}; expected {least} to {most}.")
        return given

    def _formula(self, field: str, text: Any, more: Collection[str] = (), *, time: bool = True) -> Node:
        names = [*(self.axes if time else "xy"), *self.numbers, *more]
        return _at(field, lambda: parse(text, names))

    def _left(self, field: str, text: Any, more: Collection[str] = ()) -> Node:
        return _at(field, lambda: parse(text, [*self.axes, *self.numbers, *more], self.unknowns, self.axes))


def _at(field: str, make: Callable[[], Any]) -> Any:
    """What `make` returns; its errors become errors of a field."""
    try:
        return make()
    except PdofmError as error:
        raise FieldError(field, str(error)) from None


def _number(field: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise FieldError(field, f"{str(given)[:40]!r} is not a finite number.")
    return float(given)
