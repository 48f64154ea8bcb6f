"""Facts about a left side, read from the program that JAX traces: is it affine, what does it decide and depend on?"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from pdofm.calculus.terms import Layout, LeftSide

JUMPING = ("sign", "floor", "ceil", "round", "rem", "atan2")
"""Operations of JAX on real numbers whose values jump."""

CALLS = ("jit", "custom_jvp_call")
"""Operations of JAX that do nothing but run the program inside them."""


def _traced(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> tuple[Callable[..., Array], list[Any], Jaxpr]:
    """A left side as a function of the point, the normal, two coefficients of u and two of the last iterate; the shapes
    of these, and the traced program."""

    def left(z: Array, normal: Array, c: Array, of_last: Array) -> Array:
        u, last = (layout.fields(lambda y, c=c: jnp.sin(jnp.sum(y) + jnp.arange(2.0)) @ c) for c in (c, of_last))
        return lhs(u, last, layout.arguments(z), normal)

    sizes = ((dim,), (space_dim,), (2, layout.components), (2, layout.components))
    shapes = [jax.ShapeDtypeStruct(size, jnp.float64) for size in sizes]
    return left, shapes, jax.make_jaxpr(left)(*shapes).jaxpr


def is_affine(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> bool:
    """Whether a left side is affine in u, and does not look at the last iterate: it consists of operations on real
    numbers that have a transpose."""
    left, (z, normal, c, last), traced = _traced(lhs, layout, dim, space_dim)
    if _decides(traced, traced.invars[2:3]) or any(depends for _, depends in followed(traced, (3,))):
        return False

    def transposed(z: Array, normal: Array, last: Array, side: Array) -> Any:
        return jax.linear_transpose(lambda c: left(z, normal, c, last), c)(side)

    try:
        jax.eval_shape(transposed, z, normal, last, jax.eval_shape(left, z, normal, c, last))
    except (AssertionError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return False  # this is how JAX says that there is no transpose
    return True


def decides_by_point(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> bool:
    """Whether a left side compares, rounds or looks up in a table anything that depends on the point."""
    traced = _traced(lhs, layout, dim, space_dim)[2]
    return _decides(traced, traced.invars[:1])


def _decides(traced: Jaxpr, variables: Sequence[Any]) -> bool:
    """Whether something that depends on these variables becomes a truth value or an integer, or is rounded: neither
    differentiation nor transposition sees that."""
    dependent = {id(variable) for variable in variables}
    for equation in traced.eqns:
        if not any(id(variable) in dependent for variable in equation.invars):
            continue
        dependent |= {id(variable) for variable in equation.outvars}
        # Inside, all real arguments count as dependent: at worst a linear problem is tried once more.
        inner = inner_jaxprs(equation)
        if any(_decides(part, _real(part.invars)) for part in inner):
            return True
        rounds = equation.primitive.name in JUMPING
        if not inner and (rounds or len(_real(equation.outvars)) < len(equation.outvars)):
            return True
    return False


def inner_jaxprs(equation: Any) -> list[Jaxpr]:
    """The programs inside an equation of a traced program: of a loop, a branch, a compiled function."""
    parts = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda part: isinstance(part, ClosedJaxpr))
    return [part for part in (getattr(part, "jaxpr", part) for part in parts) if isinstance(part, Jaxpr)]


def _real(variables: Sequence[Any]) -> list[Any]:
    return [variable for variable in variables if jnp.issubdtype(variable.aval.dtype, jnp.inexact)]


Followed = tuple[Any, bool]
"""How a variable of a traced program is computed, and whether it depends on what is followed."""

AWAY = "_away"
"""The name of the function that asks whether u is evaluated at the point in question; its first arguments are the two
points."""


def followed(jaxpr: Jaxpr, arguments: Sequence[int]) -> list[Followed]:
    """The outputs of a traced program, and whether they depend on those arguments other than by asking whether u is
    evaluated at the point itself, where it is."""
    return _run(jaxpr, [(i, i in arguments) for i in range(len(jaxpr.invars))], [])


def looks_elsewhere(jaxpr: Jaxpr) -> bool:
    """Whether u may be evaluated at another point than the one in question: False is a proof."""
    asked: list[bool] = []
    _run(jaxpr, [(i, False) for i in range(len(jaxpr.invars))], asked)
    return not all(asked)


def _run(jaxpr: Jaxpr, inputs: Sequence[Followed], asked: list[bool]) -> list[Followed]:
    """Follow a program; `asked` takes note of whether u is evaluated at the point itself. Variables that are computed
    in the same way are the same: a point in space-time is taken apart and put together again each time."""
    known: dict[int, Followed] = {id(v): each for v, each in zip(jaxpr.invars, inputs, strict=True)}
    known |= {id(variable): (id(variable), False) for variable in jaxpr.constvars}

    def of(variable: Any) -> Followed:
        return (repr(variable.val), False) if isinstance(variable, Literal) else known[id(variable)]

    for equation in jaxpr.eqns:
        given = [of(variable) for variable in equation.invars]
        how = [each for each, _ in given]
        inner = inner_jaxprs(equation)
        is_here = equation.params.get("name") == AWAY and how[0] == how[1]
        if equation.params.get("name") == AWAY:
            asked.append(is_here)
        if is_here:
            found = [(("here",), False)]
        elif equation.primitive.name in CALLS and len(inner) == 1:
            found = _run(inner[0], given, asked)
        else:
            if any(AWAY in str(part) for part in inner):
                asked.append(False)  # inside a loop or a branch: not followed
            computed = hash((equation.primitive.name, str(equation.params), *how))
            found = [((computed, i), any(d for _, d in given)) for i in range(len(equation.outvars))]
        known |= {id(variable): each for variable, each in zip(equation.outvars, found, strict=True)}
    return [of(variable) for variable in jaxpr.outvars]
