"""The points at which a solution is called."""

from typing import Any

import numpy as np

from pdofm.errors import ProblemError
from pdofm.numerics.numbers import as_numbers
from pdofm.problem.problem import Problem


def _common_shape(x: np.ndarray, t: np.ndarray) -> tuple[int, ...]:
    """The shape of points in space with their times."""
    try:
        return np.broadcast_shapes(x.shape[:-1], t.shape)
    except ValueError as error:
        raise ProblemError(
            f"{x.shape} points do not go with {t.shape} times; expected one time, or one for each point."
        ) from error


def points_of(problem: Problem, given: tuple[Any, ...]) -> tuple[np.ndarray, bool]:
    """Points (n, d) from what the user gave, and whether it was a single one."""
    dim = problem.domain.dim
    if len(given) == 2 and problem.layout.has_time:
        x, t = (as_numbers(g, what, ProblemError) for g, what in zip(given, ("Points", "Times"), strict=True))
        x = x[None] if x.ndim == 0 and dim == 2 else x
        shape = _common_shape(x, t)
        x, t = np.broadcast_to(x, (*shape, x.shape[-1])), np.broadcast_to(t, shape)
        z = np.concatenate([x, t[..., None]], axis=-1)
    elif len(given) == 1:
        z = as_numbers(given[0], "Points", ProblemError)
        z = z[None] if z.ndim == 0 and dim == 1 else z
    else:
        expected = "(points) or (x, t)" if problem.layout.has_time else "(points)"
        raise ProblemError(f"A solution is called as u{expected}; got {len(given)} arguments.")
    if z.ndim not in (1, 2) or z.shape[-1] != dim:
        raise ProblemError(
            f"Points have shape {z.shape}; expected ({dim},) for one point or (n, {dim}) for many in "
            f"{problem.domain!r}."
        )
    return np.atleast_2d(z), z.ndim == 1
