"""Formulas as people type them: text becomes a tree, and nothing but the names that are listed here has a meaning.

    expression = ["+" | "-"] product {("+" | "-") product}
    product    = signed {("*" | "/") signed}
    signed     = ("+" | "-") signed | power
    power      = atom [("^" | "**") signed]
    atom       = number | name | function "(" expression {"," expression} ")" | "(" expression ")"

The text is never run. A formula that is too long or too deep, or has an unknown name, is refused with its place.
"""

import difflib
import keyword
import math
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pdofm.errors import PdofmError

LONGEST, DEEPEST = 1000, 25
"""Characters of a formula, and levels of parentheses, powers and signs, at most."""

FUNCTIONS = {
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"), 1),
    **dict.fromkeys(("exp", "log", "sqrt", "abs"), 1),
    **dict.fromkeys(("atan2", "min", "max"), 2),
}
"""Functions and the numbers of their arguments."""

DERIVATIVES = {"dx": "x", "dy": "y", "dt": "t", "lap": "lap"}
"""What differentiates a whole expression, as in ``dx(k*u_x)``."""

CONSTANTS = {"pi": math.pi, "e": math.e}

RESERVED = {*FUNCTIONS, *DERIVATIVES, *CONSTANTS, "x", "y", "t", "nx", "ny", "n", "normal", "pf", "jnp"}
RESERVED |= {"domain", "problem", "solution", "print", "float"}  # of the script that the page writes

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*(?:_[xyt]+)?)|(?P<sign>\*\*|[-+*/^(),]))",
    re.ASCII,
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,19}", re.ASCII)


class FormulaError(PdofmError):
    """A text is not a formula, or a statement that was drawn or typed is not complete."""


@dataclass(frozen=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True)
class Name:
    """A coordinate, a component of the normal, a constant, a parameter or an unknown."""

    name: str


@dataclass(frozen=True)
class Derivative:
    """The derivatives of an expression along ``axes``, such as ("x", "x"); ("lap",) is the Laplacian."""

    of: "Node"
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A function of one or two expressions."""

    function: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True)
class Negative:
    """The negative of an expression."""

    of: "Node"


@dataclass(frozen=True)
class Power:
    """A base and an exponent."""

    base: "Node"
    exponent: "Node"


@dataclass(frozen=True)
class Chain:
    """A sum of terms or a product of factors, from left to right: the first one, then pairs of a sign and a term."""

    first: "Node"
    rest: tuple[tuple[str, "Node"], ...]


Node = Number | Name | Derivative | Call | Negative | Power | Chain


def parse(text: Any, names: Collection[str], unknowns: Collection[str] = (), axes: str = "xy") -> Node:
    """The tree of a formula.

    Args:
        text: what was typed.
        names: coordinates, parameters and components of the normal that it may contain.
        unknowns: functions that it may contain, with their derivatives ``u_x``, ``u_xy``, …
        axes: the coordinates that can be differentiated along.
    """
    if not isinstance(text, str):
        raise FormulaError(f"A formula is a text, such as 'sin(pi*x)'; got {type(text).__name__}.")
    if len(text) > LONGEST:
        raise FormulaError(f"The formula has {len(text)} characters; at most {LONGEST} are read.")
    return _Parser(text, {*names, *CONSTANTS}, set(unknowns), axes).whole()


def names_in(node: Node) -> set[str]:
    """All names in a formula."""
    return {each.name for each in walk(node) if isinstance(each, Name)}


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    match node:
        case Power(base, exponent):
            below: tuple[Node, ...] = (base, exponent)
        case Chain(first, rest):
            below = (first, *(term for _, term in rest))
        case Call(_, arguments):
            below = arguments
        case Negative(of) | Derivative(of, _):
            below = (of,)
        case _:
            below = ()
    for each in below:
        yield from walk(each)


def check_name(name: Any, taken: Collection[str] = ()) -> str:
    """A name for a parameter or an unknown, if it is a short word that means nothing else."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FormulaError(f"The name {str(name)[:40]!r} is not a word of at most 20 letters and digits, such as 'k'.")
    if name in RESERVED or keyword.iskeyword(name):
        raise FormulaError(f"The name {name!r} has a meaning of its own; choose another one.")
    if name in taken:
        raise FormulaError(f"The name {name!r} is used twice; choose another one.")
    return name


class _Parser:
    """A parser that reads from left to right, one token ahead."""

    def __init__(self, text: str, names: set[str], unknowns: set[str], axes: str):
        self.text, self.names, self.unknowns, self.axes = text, names, unknowns, axes
        self.depth = self.number = 0
        self.tokens = list(self._split())

    def whole(self) -> Node:
        if not self.tokens:
            raise FormulaError("The formula is empty; write a number such as 0, or an expression.")
        found = self._expression()
        if self.number < len(self.tokens):
            raise self._wrong("expected an operator such as + or * here")
        return found

    def _split(self) -> Iterator[tuple[str, str, int]]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            found = _TOKEN.match(self.text, at)
            if found is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                raise FormulaError(
                    f"Character {at + 1} of the formula, {self.text[at]!r}, has no meaning in a formula."
                )
            kind = found.lastgroup or ""
            yield kind, found[kind], found.start(kind)
            at = found.end()

    def _peek(self) -> str:
        return self.tokens[self.number][1] if self.number < len(self.tokens) else ""

    def _take(self, *signs: str) -> str | None:
        """The next token, if it is one of these signs."""
        if self._peek() in signs and self.number < len(self.tokens):
            self.number += 1
            return self.tokens[self.number - 1][1]
        return None

    def _wrong(self, message: str) -> FormulaError:
        if self.number >= len(self.tokens):
            return FormulaError(f"The formula ends too early: {message}.")
        _, token, at = self.tokens[self.number]
        return FormulaError(f"At {token!r}, character {at + 1} of the formula: {message}.")

    def _expression(self) -> Node:
        return self._row(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._row(("*", "/"), self._signed)

    def _row(self, signs: tuple[str, ...], term: Callable[[], Node]) -> Node:
        """Terms with signs between them, from left to right."""
        first, rest = term(), []
        while sign := self._take(*signs):
            rest.append((sign, term()))
        return Chain(first, tuple(rest)) if rest else first

    def _signed(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._wrong(f"more than {DEEPEST} levels of parentheses, powers and signs; write it in simpler terms")
        sign = self._take("+", "-")
        found = (Negative(self._signed()) if sign == "-" else self._signed()) if sign else self._power()
        self.depth -= 1
        return found

    def _power(self) -> Node:
        base = self._atom()
        return Power(base, self._signed()) if self._take("^", "**") else base

    def _atom(self) -> Node:
        if self._take("("):
            found = self._expression()
            self._close()
            return found
        if self.number >= len(self.tokens) or self.tokens[self.number][0] == "sign":
            raise self._wrong("expected a number, a name or an opening parenthesis")
        kind, token, _ = self.tokens[self.number]
        if kind == "number":
            if math.isinf(float(token)):
                raise self._wrong("a number that is too large")
            self.number += 1
            return Number(float(token))
        is_call = self.number + 1 < len(self.tokens) and self.tokens[self.number + 1][1] == "("
        return self._called(token) if is_call else self._named(token)

    def _close(self) -> None:
        if not self._take(")"):
            raise self._wrong("expected a closing parenthesis")

    def _called(self, name: str) -> Node:
        if name not in FUNCTIONS and not (name in DERIVATIVES and self.unknowns):
            known = [*FUNCTIONS, *(DERIVATIVES if self.unknowns else ())]
            raise self._wrong(f"not a function of formulas, which are {', '.join(known)}")
        if name in DERIVATIVES:
            self._check_axes(DERIVATIVES[name])
        self.number += 2
        arguments = [self._expression()]
        while self._take(","):
            arguments.append(self._expression())
        self._close()
        wanted = FUNCTIONS.get(name, 1)
        if len(arguments) != wanted:
            raise FormulaError(f"{name} takes {wanted} argument{'s' * (wanted > 1)}; it was given {len(arguments)}.")
        if name in DERIVATIVES:
            return Derivative(arguments[0], (DERIVATIVES[name],))
        return Call(name, tuple(arguments))

    def _named(self, token: str) -> Node:
        name, _, axes = token.partition("_")
        if name in self.unknowns:
            self._check_axes(axes)
            self.number += 1
            return Derivative(Name(name), tuple(axes)) if axes else Name(name)
        if token in self.names:
            self.number += 1
            return Name(token)
        known = [*sorted(self.unknowns), *sorted(self.names)]
        near = difflib.get_close_matches(token, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the names here are {', '.join(known)}"
        raise self._wrong(f"not a name that the formula may use; {hint}".rstrip("."))

    def _check_axes(self, axes: str) -> None:
        if axes != "lap" and not set(axes) <= set(self.axes):
            raise self._wrong("there is no time in this problem" if "t" in axes else "no such coordinate")
        if axes != "lap" and len(axes) > 4:
            raise self._wrong("derivatives go up to the fourth order")
