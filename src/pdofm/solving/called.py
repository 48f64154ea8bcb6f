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
    domain, has_time = problem.domain, problem.layout.has_time
    if len(given) == 2 and has_time:
        x, t = (as_numbers(g, what, ProblemError) for g, what in zip(given, ("Points", "Times"), strict=True))
        x = _columns(x, domain.dim - 1)
        _check_shape(problem, x, domain.dim - 1)
        shape = _common_shape(x, t)
        x, t = np.broadcast_to(x, (*shape, x.shape[-1])), np.broadcast_to(t, shape)
        z = np.concatenate([x, t[..., None]], axis=-1)
    elif len(given) == 1:
        z = _columns(as_numbers(given[0], "Points", ProblemError), domain.dim)
    else:
        raise ProblemError(_called(problem, given))
    _check_shape(problem, z, domain.dim)
    return np.atleast_2d(z), z.ndim == 1


def _columns(x: np.ndarray, dim: int) -> np.ndarray:
    """Points on a line as rows: a number is a point, and so is each entry of a longer array."""
    if dim != 1 or x.ndim > 1 or x.shape == (1,):
        return x
    return x[None] if x.ndim == 0 else x[:, None]


def _check_shape(problem: Problem, x: np.ndarray, dim: int) -> None:
    if x.ndim in (1, 2) and x.shape[-1] == dim:
        return
    many = f"(n, {dim})" if dim > 1 else "(n, 1) or (n,)"
    space = "in space " if dim < problem.domain.dim else ""
    raise ProblemError(
        f"Points {space}have shape {x.shape}; expected ({dim},) for one point or {many} for many in {problem.domain!r}."
    )


def _called(problem: Problem, given: tuple[Any, ...]) -> str:
    """How a solution is called, for one that was called with other arguments."""
    expected = "(points) or (x, t)" if problem.layout.has_time else "(points)"
    message = f"A solution is called as u{expected}; got {len(given)} arguments."
    if len(given) != problem.domain.dim or any(np.ndim(each) > 0 for each in given):
        return message
    point = ", ".join(f"{each}" for each in given[: problem.domain.dim - problem.layout.has_time])
    time = f", {given[-1]}" if problem.layout.has_time else ""
    return f"{message} The coordinates of a point are one list: write u([{point}]{time})."
