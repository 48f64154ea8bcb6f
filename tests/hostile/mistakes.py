"""What a user may get wrong: correct calls, and values that do not belong where an argument stands.

Every argument of every call is replaced by every value of the kinds that it is not. All of these must be refused by an
error of pdofm, before anything is computed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

import pdofm as pf

SQUARE, LINE, DISK = pf.Box([0, 0], [1, 1]), pf.Interval(0, 1), pf.Disk([0, 0], 1.0)
ROD = pf.SpaceTime(LINE, 1.0)


def minus_laplacian(u, x):
    return -pf.laplacian(u)(x)


def poisson(**changes: Any) -> pf.Problem:
    return pf.Problem(**{"domain": SQUARE, "operator": minus_laplacian, "source": 1.0, "conditions": WALLS} | changes)


WALLS = [pf.Dirichlet(0.0)]
POISSON = poisson()
HEAT = pf.Problem(
    ROD, lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t), 0.0, [pf.Initial(1.0), pf.Dirichlet(0.0)]
)
SPACE = pf.Chebyshev(SQUARE, 20)

WRONG: dict[str, tuple[Any, ...]] = {
    "number": ("a", None, [1.0, 2.0], float("nan"), float("inf"), 1j, int, object()),
    "positive": ("a", [1.0, 2.0], float("nan"), float("inf"), 0.0, -1.0, int),
    "count": ("a", [3], 2.5, -1, 0, 10**13, float("nan"), int),
    "time": ("a", None, float("nan"), float("inf"), 0.0, -1.0, [1.0, 0.0], [0.0, 1.0, 2.0], int),
    "degree": ("a", [3.5], 2.5, -1, 10**13, float("nan"), int),
    "seconds": ("a", [1.0], -1.0, float("nan"), int),
    "candidates": ("a", 3, SPACE, [3], object(), int),
    "steps": ("a", [3], 2.5, -1, 0, float("nan"), int),
    "tolerance": ("a", [1.0], -1.0, float("nan"), float("inf"), int),
    "exact": (1.0, "x", pf.laplacian, lambda: 1.0, lambda u, x: "a", lambda x: "a", lambda x: None, lambda x: x[5]),
    "corner": ("ab", None, 3.0, [0.0, "a"], [float("nan"), 0.0], [[0.0, 0.0]], [], pf.Box, [0.0, 1.0, 2.0]),
    "point": ("ab", None, [0.0, "a"], [float("nan"), 0.0], [], pf.Box),
    "domain": ("square", None, 3.0, pf.Box, [0, 1], POISSON),
    "part": ("left", 3.0, pf.Box, SQUARE, [[0.0, "a"]], [[float("nan"), 0.0]], [[3.0, 3.0]], [[0.0]]),
    "problem": ("poisson", None, pf.Problem, SQUARE, minus_laplacian),
    "features": ("chebyshev", -3, 0, 2.5, pf.Chebyshev, SQUARE, POISSON, np.zeros(3)),
    "operator": (None, 1.0, "u_xx", pf.laplacian, lambda u: u, lambda x: x, lambda u, x: "a", lambda u, x: None),
    "data": ("one", object(), lambda: 1.0, lambda x: "a", lambda x: None, lambda x: jnp.ones(3), float("nan"), 1j),
    "conditions": (None, (), "dirichlet", [pf.Dirichlet], [0.0], 3.0),
    "tol": ("1e-8", 0.0, -1e-8, 2.0, float("nan"), [1e-8], int),
    "word": (3, None, "nonsense", ["a"]),
    "sampling": (3, "nonsense", ["a"]),
    "method": ("newton", pf.Newton, 3, lambda u: u),
    "points": ("all", None, "x", [[0.0, "a"]], [[0.0, 1.0, 2.0]], object()),
    "path": (3, None, ["a"]),
}
"""What is refused, by the kind of an argument."""


@dataclass(frozen=True)
class Call:
    """A correct call: the function, its arguments, and the kinds of those that are replaced."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    kinds: dict[str, str]


@cache
def solution() -> pf.Solution:
    """A solution to ask for values."""
    return pf.solve(POISSON, SPACE)


def values_of(points: Any) -> Any:
    return solution()(points)


def part_of(name: Any) -> pf.Part:
    return SQUARE.part(name)


def calls() -> dict[str, Call]:
    """The calls by name."""
    box = {"lower": [0, 0], "upper": [1, 1]}
    sized = {"domain": SQUARE, "size": 20}
    at = {"domain": "domain", "size": "count"}
    return {
        "Box": Call(pf.Box, box, {"lower": "corner", "upper": "corner"}),
        "Interval": Call(pf.Interval, {"a": 0.0, "b": 1.0}, {"a": "number", "b": "number"}),
        "Disk": Call(pf.Disk, {"center": [0, 0], "radius": 1.0}, {"center": "point", "radius": "positive"}),
        "Ball": Call(pf.Ball, {"center": [0, 0, 0], "radius": 1.0}, {"center": "point", "radius": "positive"}),
        "Annulus": Call(
            pf.Annulus,
            {"center": [0, 0], "inner": 0.5, "outer": 1.0},
            {"center": "point", "inner": "positive", "outer": "positive"},
        ),
        "Polygon": Call(pf.Polygon, {"vertices": [[0, 0], [1, 0], [0, 1]]}, {"vertices": "points"}),
        "SpaceTime": Call(pf.SpaceTime, {"space": LINE, "T": 1.0}, {"space": "domain", "T": "time"}),
        "sample": Call(SQUARE.sample, {"n": 10, "sampling": "sobol"}, {"n": "count", "sampling": "word"}),
        "contains": Call(SQUARE.contains, {"x": [[0.5, 0.5]]}, {"x": "points"}),
        "scaled": Call(SQUARE.scaled, {"factor": 2.0}, {"factor": "positive"}),
        "translated": Call(SQUARE.translated, {"by": [1.0, 0.0]}, {"by": "corner"}),
        "part": Call(part_of, {"name": "x0=lower"}, {"name": "word"}),
        "face": Call(SQUARE.face, {"axis": 0, "side": 1}, {"axis": "word", "side": "word"}),
        "Chebyshev": Call(pf.Chebyshev, sized, at),
        "Chebyshev-degree": Call(
            pf.Chebyshev, {"domain": SQUARE, "degree": 5, "kind": "total"}, {"degree": "degree", "kind": "word"}
        ),
        "Fourier": Call(pf.Fourier, sized | {"extension": 1.0}, at | {"extension": "positive"}),
        "RandomFeatures": Call(
            pf.RandomFeatures, sized | {"activation": "tanh", "key": 0}, at | {"activation": "word", "key": "tol"}
        ),
        "NetworkFeatures": Call(pf.NetworkFeatures, sized, at),
        "TransNet": Call(pf.TransNet, sized | {"shape": 2.0}, at | {"shape": "positive"}),
        "SparsePolynomials": Call(pf.SparsePolynomials, sized | {"variables": 2}, at | {"variables": "count"}),
        "Concatenate": Call(lambda part: pf.Concatenate(SPACE, part), {"part": SPACE}, {"part": "features"}),
        "Problem": Call(
            pf.Problem,
            {"domain": SQUARE, "operator": minus_laplacian, "source": 1.0, "conditions": WALLS},
            {"domain": "domain", "operator": "operator", "source": "data", "conditions": "conditions"},
        ),
        "Dirichlet": Call(
            lambda value, on: poisson(conditions=[pf.Dirichlet(value, on=on), pf.Dirichlet(0.0)]),
            {"value": 0.0, "on": SQUARE.face(0, 0)},
            {"value": "data", "on": "part"},
        ),
        "Neumann": Call(
            lambda value, on: poisson(conditions=[pf.Dirichlet(0.0), pf.Neumann(value, on=on)]),
            {"value": 0.0, "on": SQUARE.face(0, 0)},
            {"value": "data", "on": "part"},
        ),
        "Robin": Call(
            lambda alpha, beta: poisson(conditions=[pf.Robin(alpha, beta, 0.0)]),
            {"alpha": 1.0, "beta": 1.0},
            {"alpha": "number", "beta": "number"},
        ),
        "Periodic": Call(
            lambda axis: poisson(conditions=[pf.Periodic(axis), pf.Dirichlet(0.0, on=SQUARE.face(1, 0))]),
            {"axis": 0},
            {"axis": "word"},
        ),
        "weight": Call(
            lambda weight: poisson(conditions=[pf.Dirichlet(0.0, weight=weight)]),
            {"weight": 1.0},
            {"weight": "positive"},
        ),
        "exact": Call(lambda exact: poisson(source=None, exact=exact), {"exact": lambda x: x[0]}, {"exact": "exact"}),
        "solve": Call(
            pf.solve,
            {"problem": POISSON, "features": 20, "points": 200, "boundary_points": 100, "sampling": "sobol"},
            {
                "problem": "problem",
                "features": "features",
                "points": "count",
                "boundary_points": "count",
                "sampling": "sampling",
            },
        ),
        "solve-method": Call(pf.solve, {"problem": POISSON, "features": SPACE, "method": None}, {"method": "method"}),
        "search": Call(
            pf.solve,
            {"problem": POISSON, "tol": 1e-2, "max_features": 200, "max_seconds": 1.0, "candidates": []},
            {
                "problem": "problem",
                "tol": "tol",
                "max_features": "steps",
                "max_seconds": "seconds",
                "candidates": "candidates",
            },
        ),
        "march": Call(pf.march, {"problem": HEAT, "tol": 1e-2}, {"problem": "problem", "tol": "tol"}),
        "factor": Call(
            pf.factor, {"problem": POISSON, "features": SPACE}, {"problem": "problem", "features": "features"}
        ),
        "eigs": Call(pf.eigs, {"problem": poisson(source=0.0), "k": 2}, {"problem": "problem", "k": "count"}),
        "u": Call(values_of, {"points": [[0.5, 0.5]]}, {"points": "points"}),
        "gradient": Call(lambda points: solution().gradient(points), {"points": [[0.5, 0.5]]}, {"points": "points"}),
        "integral": Call(lambda on: solution().integral(on=on), {"on": SQUARE.face(0, 0)}, {"on": "part"}),
        "save": Call(pf.save, {"path": "x", "what": SPACE}, {"path": "path", "what": "problem"}),
        "load": Call(pf.load, {"path": "x"}, {"path": "path"}),
        "zoo": Call(pf.zoo.get, {"name": "poisson-square"}, {"name": "word"}),
        "Newton": Call(
            lambda **given: pf.solve(POISSON, SPACE, method=pf.Newton(**given)),
            {"max_steps": 3, "tol": 1e-8},
            {"max_steps": "steps", "tol": "tolerance"},
        ),
    }


CALLS = calls()


def names() -> Iterator[str]:
    """Every mistake by name, such as "Box, lower, 2": the call, the argument, and the number of the wrong value."""
    for name, call in CALLS.items():
        for argument, kind in call.kinds.items():
            yield from (f"{name}, {argument}, {i}" for i in range(len(WRONG[kind])))


def value_of(name: str) -> Any:
    """The wrong value."""
    of, argument, number = name.split(", ")
    return WRONG[CALLS[of].kinds[argument]][int(number)]


def make(name: str) -> Any:
    """Make a mistake."""
    of, argument, _ = name.split(", ")
    call = CALLS[of]
    return call.function(**call.arguments | {argument: value_of(name)})
