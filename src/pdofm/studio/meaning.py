"""What a formula means: its value at points, and the same as Python.

`value` computes with arrays of NumPy or of JAX. Unknowns are functions of a point, which the operators of `pdofm`
differentiate; `python` writes the expression that a user would have written by hand.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from pdofm.calculus.operators import dt, laplacian, partial
from pdofm.studio.formula import CONSTANTS, Call, Chain, Derivative, Name, Negative, Node, Number, Power

LARGEST_POWER = 64
"""The largest integer exponent that is multiplied out, which can be differentiated everywhere."""

_NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
_NUMPY_NAMES |= {"min": "minimum", "max": "maximum"}
_AXES = {"x": 0, "y": 1}
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@dataclass(frozen=True)
class Scope:
    """What the names of a formula stand for.

    Attributes:
        numbers: parameters.
        point: the arguments of functions of the problem, (x,) or (x, t); each of x[0], x[1] and t a number or an array.
        normal: the outward normal, where there is one.
        unknowns: functions of the point.
        arrays: the module that computes, NumPy or jax.numpy.
    """

    numbers: Mapping[str, float]
    point: tuple[Any, ...]
    normal: Any = None
    unknowns: Mapping[str, Callable[..., Any]] | None = None
    arrays: Any = jnp

    def look_up(self, name: str) -> Any:
        """The value of a name."""
        if self.unknowns and name in self.unknowns:
            return self.unknowns[name](*self.point)
        if name in ("x", "y"):
            return self.point[0][_AXES[name]]
        if name == "t":
            return self.point[1]
        if name in ("nx", "ny"):
            return self.normal[_AXES[name[1]]]
        return self.arrays.asarray(CONSTANTS.get(name, self.numbers.get(name)))


def value(node: Node, scope: Scope) -> Any:
    """The value of a formula; numbers that are too large become infinite."""
    arrays = scope.arrays
    match node:
        case Number(number):
            return arrays.asarray(number)  # of weak type in JAX: features are trained in float32
        case Name(name):
            return scope.look_up(name)
        case Negative(of):
            return -value(of, scope)
        case Call(function, arguments):
            return getattr(arrays, _NUMPY_NAMES.get(function, function))(*(value(each, scope) for each in arguments))
        case Power(base, exponent):
            whole = _integer(exponent)
            return value(base, scope) ** (value(exponent, scope) if whole is None else whole)
        case Chain(first, rest):
            found = value(first, scope)
            for sign, term in rest:
                found = _SIGNS[sign](found, value(term, scope))
            return found
        case Derivative(of, axes):
            return _differentiated(of, axes, scope)(*scope.point)


def _differentiated(of: Node, axes: tuple[str, ...], scope: Scope) -> Callable[..., Any]:
    def function(*point: Any) -> Any:
        return value(of, replace(scope, point=point))

    if axes == ("lap",):
        return laplacian(function)
    found: Callable[..., Any] = partial(function, *(_AXES[axis] for axis in axes if axis != "t"))
    for _ in range(axes.count("t")):
        found = dt(found)
    return found


def numbers_at(node: Node, scope: Scope, count: int) -> np.ndarray:
    """The values at many points as numbers (count,); without warnings where they are not finite."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(value(node, replace(scope, arrays=np)), dtype=np.float64), (count,))


def python(node: Node, unknowns: Mapping[str, str], has_time: bool) -> str:
    """A formula as Python.

    Args:
        node: the formula.
        unknowns: what each unknown is called in Python, such as ``u`` or ``w.u``.
        has_time: whether functions take (x, t).
    """
    return _Writer(unknowns, "x, t" if has_time else "x").text(node)


@dataclass(frozen=True)
class _Writer:
    unknowns: Mapping[str, str]
    point: str

    def text(self, node: Node, least: int = 0) -> str:
        """The text, in parentheses if what it does binds less than `least`: sums 1, products 2, signs 3, powers 4."""
        match node:
            case Number(number):
                return repr(int_or(number))
            case Name(name):
                return self._name(name)
            case Call(function, arguments):
                inner = ", ".join(map(self.text, arguments))
                return f"jnp.{_NUMPY_NAMES.get(function, function)}({inner})"
            case Derivative():
                return f"{self._function(node)}({self.point})"
            case Negative(of):
                found, strength = "-" + self.text(of, 3), 3
            case Power(base, exponent):
                found, strength = f"{self.text(base, 5)} ** {self.text(exponent, 3)}", 4
            case Chain(first, rest):
                strength = 1 if rest[0][0] in "+-" else 2
                terms = (f" {sign} {self.text(term, strength + 1)}" for sign, term in rest)
                found = self.text(first, strength) + "".join(terms)
        return f"({found})" if strength < least else found

    def _name(self, name: str) -> str:
        if name in self.unknowns:
            return f"{self.unknowns[name]}({self.point})"
        places = {"x": "x[0]", "y": "x[1]", "nx": "normal[0]", "ny": "normal[1]", "pi": "jnp.pi", "e": "jnp.e"}
        return places.get(name, name)

    def _function(self, node: Node) -> str:
        """A formula as a function of the point."""
        if isinstance(node, Name) and node.name in self.unknowns:
            return self.unknowns[node.name]
        if not isinstance(node, Derivative):
            return f"lambda {self.point}: {self.text(node)}"
        if node.axes == ("lap",):
            return f"pf.laplacian({self._function(node.of)})"
        space = [str(_AXES[axis]) for axis in node.axes if axis != "t"]
        found = self._function(node.of)
        if space:
            found = f"pf.partial({', '.join([found, *space])})"
        for _ in range(node.axes.count("t")):
            found = f"pf.dt({found})"
        return found


def int_or(number: float) -> float | int:
    """A whole number as an integer, if it is small; any other as it is."""
    return int(number) if abs(number) < 1e15 and number == int(number) else number


def _integer(node: Node) -> int | None:
    """The value of a small integer exponent."""
    sign, inner = (-1, node.of) if isinstance(node, Negative) else (1, node)
    if isinstance(inner, Number) and isinstance(int_or(inner.value), int) and inner.value <= LARGEST_POWER:
        return sign * int(inner.value)
    return None
