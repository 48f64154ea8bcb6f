"""The zeros of a function in the plane, as smooth closed curves."""

import numpy as np
from jaxtyping import Complex, Float

from pdofm._types import Points, Vector
from pdofm.domain.curve import modes_of_function
from pdofm.domain.level import LevelFunction
from pdofm.domain.loop import Loop
from pdofm.errors import DomainError

GRID = 256
"""Cells along each side of the box in which the curves are first seen; what is narrower is not."""

FIRST_MODES, MOST_MODES = 8, 512
"""The number of Fourier modes of a rough curve along which the zeros are parameterised, at first and at most."""

ROUGH = 0.02
"""The largest distance of the rough curve from the zeros, in sizes of the curve."""


def loops_of(function: LevelFunction) -> tuple[Loop, ...]:
    """The closed curves on which a function vanishes, those of the largest area first."""
    from contourpy import contour_generator

    x, y = (np.linspace(a, b, GRID + 1) for a, b in zip(function.lower, function.upper, strict=True))
    grid = np.stack([each.ravel() for each in np.meshgrid(x, y)], axis=1)
    values = function.values(grid).reshape(len(y), len(x))
    check_values(values)
    lines = [np.asarray(line) for line in contour_generator(x, y, values).lines(0.0)]
    closed = [line for line in lines if len(line) > 3 and (line[0] == line[-1]).all()]
    found = sorted((_smooth(function, line[:-1]) for line in closed), key=lambda loop: -loop.area)
    return tuple(found)


def check_values(values: Float[np.ndarray, "..."]) -> None:
    """Raise unless a function on a grid is finite, negative somewhere, and positive on the sides of the box."""
    if not np.isfinite(values).all():
        raise DomainError("The function of Implicit is infinite or NaN somewhere in its box; expected finite values.")
    if not (values < 0).any():
        raise DomainError(
            f"The function of Implicit is nowhere negative on a grid of {values.size} points; expected it to be "
            "negative inside the domain. Check its sign, and lower and upper."
        )
    for axis in range(values.ndim):
        if (np.take(values, [0, -1], axis=axis) <= 0).any():
            raise DomainError(
                "The function of Implicit is negative on a side of its box; expected a domain inside the box. Enlarge "
                "lower and upper, or cut the domain by an intersection with a Box afterwards."
            )


def _smooth(function: LevelFunction, line: Points) -> Loop:
    """The smooth curve of zeros along a closed polyline.

    A rough curve of few Fourier modes runs along the polyline. Its points, moved to the nearest zeros along the
    gradient, are a smooth function of its parameter, which Fourier modes resolve up to rounding.
    """
    zeros = function.projected(_spread(function, function.projected(line), 2 * MOST_MODES + 1))
    exact = np.fft.fft(zeros @ np.array([1, 1j])) / len(zeros)
    size, modes = float(np.ptp(zeros, axis=0).max()), FIRST_MODES
    while True:
        rough = np.fft.fftshift(exact)[MOST_MODES - modes : MOST_MODES + modes + 1]
        along = _series(rough, np.arange(len(zeros)) / len(zeros))
        if np.abs(along - zeros @ np.array([1, 1j])).max() <= ROUGH * size or modes == MOST_MODES:
            break
        modes *= 2

    def sampled(t: Vector) -> Points:
        z = _series(rough, t)
        return function.projected(np.stack([np.real(z), np.imag(z)], axis=1))

    return Loop(modes_of_function(sampled), "The boundary of Implicit")


def _series(modes: Complex[np.ndarray, " modes"], t: Vector) -> Complex[np.ndarray, " n"]:
    k = np.arange(len(modes)) - len(modes) // 2
    return np.exp(2j * np.pi * np.multiply.outer(t, k)) @ modes


def _spread(function: LevelFunction, line: Points, count: int) -> Float[np.ndarray, "count 2"]:
    """Points along a closed polyline of zeros. Between neighbours, the fraction of its length plus the fraction of all
    turns of the normal is the same: where the curve bends, points are denser, and fewer modes resolve it."""
    closed = np.concatenate([line, line[:1]])
    gradients = function.with_gradients(closed)[1] @ np.array([1, 1j])
    lengths = np.linalg.norm(np.diff(closed, axis=0), axis=1)
    turns = np.abs(np.angle(gradients[1:] * np.conj(gradients[:-1])))
    at = np.concatenate([[0.0], np.cumsum(lengths / lengths.sum() + turns / turns.sum())])
    wanted = np.arange(count) / count * at[-1]
    return np.stack([np.interp(wanted, at, closed[:, i]) for i in (0, 1)], axis=1)
