"""Domains bounded by smooth closed curves in the plane: ellipses, and curves given by a function or by points."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Complex

from pdofm._types import Points, Vector
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Piece
from pdofm.domain.loop import Loop
from pdofm.domain.vectors import Numbers, finite_number, finite_vector, show
from pdofm.errors import DomainError

MOST_SAMPLES = 2**13
"""The most samples by which a curve that is given by a function is resolved."""

NEGLIGIBLE = 4e-16
"""Fourier coefficients of a curve smaller than this, relative to its size, are rounding errors."""


class Smooth(Domain):
    """The points of the plane that lie inside of an odd number of smooth closed curves, which do not touch."""

    loops: tuple[Loop, ...]

    def _set_loops(self, loops: tuple[Loop, ...]) -> None:
        self.loops = loops
        lower, upper = np.min([loop.bounds[0] for loop in loops], 0), np.max([loop.bounds[1] for loop in loops], 0)
        self.lower, self.upper = finite_vector(lower, "bounding box"), finite_vector(upper, "bounding box")

    @cached_property
    def bounds_holes(self) -> tuple[bool, ...]:
        """Whether each curve bounds a hole: it lies inside of an odd number of others."""
        starts = [loop.chart(1.0)(np.zeros((1, 1)))[0] for loop in self.loops]
        inside = [
            sum(other is not loop and other.level(start)[0] > 0 for other in self.loops)
            for start, loop in zip(starts, self.loops, strict=True)
        ]
        return tuple(bool(count % 2) for count in inside)

    def _names(self) -> tuple[str, ...]:
        """A name for each loop."""
        raise NotImplementedError

    def _measure(self) -> float:
        return sum(-loop.area if hole else loop.area for loop, hole in zip(self.loops, self.bounds_holes, strict=True))

    def _pieces(self) -> tuple[Piece, ...]:
        return tuple(
            Piece(name, loop.length, (False,), loop.chart(-1.0 if hole else 1.0))
            for name, loop, hole in zip(self._names(), self.loops, self.bounds_holes, strict=True)
        )

    def _level(self, x: Points) -> Vector:
        level = self.loops[0].level(x)
        for loop in self.loops[1:]:
            other = loop.level(x)
            level = np.where((level > 0) == (other > 0), -1.0, 1.0) * np.minimum(np.abs(level), np.abs(other))
        return level


class Ellipse(Smooth):
    """The ellipse with half-axes a and b; `angle` (radians, counterclockwise) turns the axis of length a away from the
    x-axis. Its boundary is named "ellipse"."""

    def __init__(
        self,
        center: Numbers = (0.0, 0.0),
        a: float | int = 1.0,
        b: float | int = 0.5,
        angle: float | int = 0.0,
    ):
        self.center = finite_vector(center, "center of Ellipse", dim=2)
        half_axes = finite_vector([a, b], "half-axes of Ellipse", dim=2)
        if not (half_axes > 0).all():
            raise DomainError(f"The half-axes of Ellipse are a={a!r}, b={b!r}; expected positive numbers.")
        self.a, self.b = half_axes.tolist()
        self.angle = finite_number(angle, "angle of Ellipse")
        turn = np.exp(1j * self.angle)
        modes = np.array([(self.a - self.b) / 2 * turn, complex(*self.center), (self.a + self.b) / 2 * turn])
        self._set_loops((Loop(modes, "The ellipse"),))

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"center": self.center.tolist(), "a": self.a, "b": self.b, "angle": self.angle}

    def _names(self) -> tuple[str, ...]:
        return ("ellipse",)

    def _measure(self) -> float:
        return float(np.pi * self.a * self.b)

    def __repr__(self) -> str:
        turned = f", angle={self.angle:.6g}" if self.angle else ""
        return f"Ellipse({show(self.center)}, {self.a:.6g}, {self.b:.6g}{turned})"


class Curve(Smooth):
    """The inside of a smooth closed curve, whose boundary is named "curve".

    Args:
        curve: a function from s in [0, 1] to a point `(2,)`, periodic and smooth, written with `jax.numpy`; or points
            `(n, 2)` in their order along the curve, about evenly spaced, through which the smoothest trigonometric
            curve is drawn.
        modes: instead of a curve, its Fourier coefficients, pairs `(2 m + 1, 2)` of real and imaginary parts of
            c₋ₘ … cₘ: the point at s is (Re z, Im z) with z = Σ cₖ exp(2πiks).
    """

    def __init__(self, curve: Callable[[Any], Any] | Numbers | None = None, *, modes: Numbers | None = None):
        if (curve is None) == (modes is None):
            raise DomainError("A curve is given by a function or by points, or by modes=; expected one of them.")
        if modes is not None:
            found = _points(modes) @ np.array([1, 1j])
            if len(found) % 2 == 0:
                raise DomainError(f"A curve has {len(found)} modes; expected an odd number, c₋ₘ … cₘ.")
        else:
            points: Any = curve
            found = modes_of_function(_sampled(curve)) if callable(curve) else modes_of_points(_open(_points(points)))
        self._set_loops((Loop(found, "The curve"),))

    @property
    def arguments(self) -> dict[str, Any] | None:
        return {"modes": [[mode.real, mode.imag] for mode in self.modes.tolist()]}

    def _names(self) -> tuple[str, ...]:
        return ("curve",)

    @cached_property
    def modes(self) -> Complex[np.ndarray, " modes"]:
        """The Fourier coefficients c₋ₘ … cₘ of x + i y."""
        return self.loops[0].modes

    def __repr__(self) -> str:
        return f"Curve({len(self.modes)} Fourier modes, from {show(self.lower)} to {show(self.upper)})"


def modes_of_function(sampled: Callable[[Vector], Points]) -> Complex[np.ndarray, " modes"]:
    """The Fourier coefficients of a smooth closed curve, from samples at parameters in [0, 1)."""
    count = 32
    while count <= MOST_SAMPLES:
        points = sampled(np.arange(count) / count)
        modes = np.fft.fftshift(np.fft.fft(points @ np.array([1, 1j])) / count)
        sizes = np.abs(modes)
        largest = sizes[np.arange(count) != count // 2].max()
        # The outer quarter of the modes must be rounding errors.
        tail = max(sizes[: count // 8].max(), sizes[-count // 8 :].max())
        if tail <= 8 * NEGLIGIBLE * max(largest, 1e-3 * np.abs(points).max()):
            kept = np.flatnonzero(sizes > NEGLIGIBLE * largest)
            most = max(1, int(np.abs(kept - count // 2).max()))
            return modes[count // 2 - most : count // 2 + most + 1]
        count *= 2
    raise DomainError(
        f"The curve is not resolved by {MOST_SAMPLES} points; expected a smooth function with period 1. Check that it "
        "closes, curve(0) = curve(1), and that it has no corner; build domains with corners by a | b, a - b and a & b."
    )


def modes_of_points(points: Points) -> Complex[np.ndarray, " modes"]:
    """The Fourier coefficients of the smoothest trigonometric curve through points."""
    count = len(points)
    modes = np.fft.fftshift(np.fft.fft(points @ np.array([1, 1j])) / count)
    if count % 2 == 0:  # the mode at the edge is shared by both sides
        modes = np.append(modes, modes[0] / 2)
        modes[0] /= 2
    return modes


def _sampled(function: Callable[[Any], Any]) -> Callable[[Vector], Points]:
    import jax

    def sampled(s: Vector) -> Points:
        try:
            points = np.asarray(jax.vmap(lambda t: jax.numpy.stack([*function(t)]))(jax.numpy.asarray(s)))
        except (TypeError, ValueError, jax.errors.JAXTypeError) as error:
            raise DomainError(
                f"The function of a curve failed: {error} Expected a function of one number s in [0, 1], written with "
                "jax.numpy, that returns x and y."
            ) from error
        if points.shape != (len(s), 2) or not np.isfinite(points).all():
            raise DomainError(
                f"The function of a curve returned shape {points.shape[1:]} at a number, or values that are not "
                "finite; expected 2 coordinates."
            )
        return points.astype(np.float64)

    return sampled


def _points(points: Numbers) -> Points:
    try:
        found = np.array(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError("The points of a curve are not numbers; expected shape (n, 2).") from error
    if found.ndim != 2 or found.shape[1] != 2 or not np.isfinite(found).all():
        raise DomainError(f"The points of a curve have shape {found.shape}; expected (n, 2), all finite.")
    if len(found) < 3:
        raise DomainError(f"A curve through {len(found)} points encloses nothing; expected at least 3.")
    return found


def _open(points: Points) -> Points:
    """The points without the last one if it repeats the first."""
    return points[:-1] if len(points) > 3 and (points[0] == points[-1]).all() else points
