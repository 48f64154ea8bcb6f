"""Properties of a left side that follow from the program that JAX traces: whether it is affine in u, whether it makes
decisions that depend on the point, and whether it evaluates u elsewhere."""

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
"""Operations of JAX that only run the program inside them."""


def _traced(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> tuple[Callable[..., Array], list[Any], Jaxpr]:
    """A left side as a function of the point, the normal, and the coefficients of u and of the last iterate in a space
    of two functions; the shapes of these arguments; and the traced program."""

    def left(z: Array, normal: Array, c: Array, of_last: Array) -> Array:
        u, last = (layout.fields(lambda y, c=c: jnp.sin(jnp.sum(y) + jnp.arange(2.0)) @ c) for c in (c, of_last))
        return lhs(u, last, layout.arguments(z), normal)

    sizes = ((dim,), (space_dim,), (2, layout.components), (2, layout.components))
    shapes = [jax.ShapeDtypeStruct(size, jnp.float64) for size in sizes]
    return left, shapes, jax.make_jaxpr(left)(*shapes).jaxpr


def is_affine(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> bool:
    """Whether a left side is affine in u and independent of the last iterate. It is if all its operations on u map real
    numbers to real numbers and have a transpose."""
    left, (z, normal, c, last), traced = _traced(lhs, layout, dim, space_dim)
    if _decides(traced, traced.invars[2:3]) or any(depends for _, depends in followed(traced, (3,))):
        return False

    def transposed(z: Array, normal: Array, last: Array, side: Array) -> Any:
        return jax.linear_transpose(lambda c: left(z, normal, c, last), c)(side)

    try:
        jax.eval_shape(transposed, z, normal, last, jax.eval_shape(left, z, normal, c, last))
    except (AssertionError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return False  # JAX raises one of these if there is no transpose
    return True


def decides_by_point(lhs: LeftSide, layout: Layout, dim: int, space_dim: int) -> bool:
    """Whether a left side makes a decision that depends on the point: a comparison, a rounding, a look-up in a
    table."""
    traced = _traced(lhs, layout, dim, space_dim)[2]
    return _decides(traced, traced.invars[:1])


def _decides(traced: Jaxpr, variables: Sequence[Any]) -> bool:
    """Whether something that depends on these variables is converted to a truth value or an integer, or is rounded.
    Neither differentiation nor transposition notices that."""
    dependent = {id(variable) for variable in variables}
    for equation in traced.eqns:
        if not any(id(variable) in dependent for variable in equation.invars):
            continue
        dependent |= {id(variable) for variable in equation.outvars}
        # All real arguments of an inner program count as dependent. At worst, a linear left side is then tested.
        inner = inner_jaxprs(equation)
        if any(_decides(part, _real(part.invars)) for part in inner):
            return True
        rounds = equation.primitive.name in JUMPING
        if not inner and (rounds or len(_real(equation.outvars)) < len(equation.outvars)):
            return True
    return False


def inner_jaxprs(equation: Any) -> list[Jaxpr]:
    """The programs inside an equation of a traced program, such as those of a loop, a branch or a compiled function."""
    parts = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda part: isinstance(part, ClosedJaxpr))
    return [part for part in (getattr(part, "jaxpr", part) for part in parts) if isinstance(part, Jaxpr)]


def _real(variables: Sequence[Any]) -> list[Any]:
    return [variable for variable in variables if jnp.issubdtype(variable.aval.dtype, jnp.inexact)]


Followed = tuple[Any, bool]
"""How a variable of a traced program is computed, as something that can be compared, and whether it depends on the
arguments that are followed."""

AWAY = "_away"
"""The name of the function of `pdofm.calculus.formal` that compares the point where u is evaluated with the point in
question: its first two arguments."""


def followed(jaxpr: Jaxpr, arguments: Sequence[int]) -> list[Followed]:
    """The outputs of a traced program, and whether they depend on those arguments. Comparisons of a point with itself,
    by the function `AWAY`, do not count."""
    return _run(jaxpr, [(i, i in arguments) for i in range(len(jaxpr.invars))], [])


def looks_elsewhere(jaxpr: Jaxpr) -> bool:
    """Whether u may be evaluated at another point than the one in question; False is a proof that it is not."""
    are_here: list[bool] = []
    _run(jaxpr, [(i, False) for i in range(len(jaxpr.invars))], are_here)
    return not all(are_here)


def _run(jaxpr: Jaxpr, inputs: Sequence[Followed], are_here: list[bool]) -> list[Followed]:
    """Follow a program through its operations, and append to `are_here`, for each evaluation of u, whether it is proved
    to be at the point in question.

    Variables that are computed in the same way count as the same: a point in space-time is taken apart and put together
    again for each evaluation.
    """
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
            are_here.append(is_here)
        if is_here:
            found = [(("here",), False)]
        elif equation.primitive.name in CALLS and len(inner) == 1:
            found = _run(inner[0], given, are_here)
        else:
            if any(AWAY in str(part) for part in inner):
                are_here.append(False)  # loops and branches are not followed
            computed = hash((equation.primitive.name, str(equation.params), *how))
            found = [((computed, i), any(d for _, d in given)) for i in range(len(equation.outvars))]
        known |= {id(variable): each for variable, each in zip(equation.outvars, found, strict=True)}
    return [of(variable) for variable in jaxpr.outvars]
