"""What the scripts of this folder share: quadrature in time, exponential integrators, files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.fft as fft
from safetensors.numpy import save_file
from scipy.special import roots_jacobi

import pdofm

DATA = Path(pdofm.__file__).parent / "data" / "references"
"""Where the package looks for references."""

CONTOUR = 64
"""Points on a circle around each eigenvalue at which the coefficients of the integrator are averaged, since their
closed forms lose digits near zero."""


def radau(count: int, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Radau's nodes in (0, end], of which the last is the end, and their weights, whose sum is 1."""
    nodes, weights = roots_jacobi(count - 1, 1, 0)
    nodes, weights = np.append(nodes, 1.0), np.append(weights / (1 - nodes), 2 / count**2)
    return end * (nodes + 1) / 2, weights / 2


def etdrk4(
    linear: np.ndarray,
    nonlinear: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    times: np.ndarray,
    longest: float,
    ramp: int = 0,
) -> list[np.ndarray]:
    """The spectra at some times of u' = L u + N(u), by the fourth-order exponential integrator of Cox and Matthews with
    the contour integrals of Kassam and Trefethen (2005).

    Args:
        linear: the eigenvalues L.
        nonlinear: N, of a spectrum.
        start: the spectrum at time zero.
        times: ascending.
        longest: the longest step.
        ramp: for starts with a kink: until the first time is reached, the time is doubled again and again, from 1e-9
            times the first one, each time in so many steps.
    """
    spectrum, at, found = start, times.dtype.type(0), []
    if ramp:
        at = times[0] / 2**30
        spectrum = _steps(linear, nonlinear, spectrum, at / ramp, ramp)
        while at < times[0] / 2 and at / ramp < longest:
            spectrum = _steps(linear, nonlinear, spectrum, at / ramp, ramp)
            at = 2 * at
    for time in times:
        count = int(np.ceil((time - at) / longest - 1e-9))
        if count > 0:
            spectrum = _steps(linear, nonlinear, spectrum, (time - at) / count, count)
        at = time
        found.append(spectrum)
    return found


def _steps(linear, nonlinear, u: np.ndarray, h, count: int) -> np.ndarray:
    half, whole, q, f1, f2, f3 = _coefficients(linear, h)
    for _ in range(count):
        n = nonlinear(u)
        a = half * u + q * n
        na = nonlinear(a)
        b = half * u + q * na
        nb = nonlinear(b)
        c = half * a + q * (2 * nb - n)
        u = whole * u + f1 * n + 2 * f2 * (na + nb) + f3 * nonlinear(c)
    return u


def _coefficients(linear: np.ndarray, h) -> tuple[np.ndarray, ...]:
    one = linear.real.dtype.type(1)
    angle = 2 * np.arctan2(one * 0, -one) * (np.arange(CONTOUR) + one / 2) / CONTOUR
    z = h * linear[:, None] + (np.cos(angle) + 1j * np.sin(angle))
    e = np.exp(z)

    def mean(values: np.ndarray) -> np.ndarray:
        found = h * values.mean(axis=1)
        return found if np.iscomplexobj(linear) else found.real

    return (
        np.exp(h * linear / 2),
        np.exp(h * linear),
        mean((np.exp(z / 2) - 1) / z),
        mean((-4 - z + e * (4 - 3 * z + z**2)) / z**3),
        mean((2 + z + e * (z - 2)) / z**3),
        mean((-4 - 3 * z - z**2 + e * (4 - z)) / z**3),
    )


def at_points(spectrum: np.ndarray, waves: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The values at x of a real function with these Fourier coefficients (of `fft.rfft` with norm="forward")."""
    twice = np.where(waves == 0, 1.0, 2.0)
    return np.real(np.exp(1j * np.outer(x, waves)) @ (twice * spectrum))


def product(spectra: list[np.ndarray], count: int) -> np.ndarray:
    """The spectrum of a product of functions on a grid of `count` points."""
    values = [fft.irfft(each, count, norm="forward") for each in spectra]
    return fft.rfft(np.prod(values, axis=0), norm="forward")


def stratified(count: int, times: int, lower: float, upper: float) -> np.ndarray:
    """For each time equally spaced points of a period, moved by a fraction of their distance that differs."""
    shift = (0.5 + 0.6180339887498949 * np.arange(times)) % 1
    return lower + (upper - lower) * (np.arange(count) + shift[:, None]) / count


def write(name: str, times, x, time_weights, x_weights, values: np.ndarray, other: np.ndarray, how: str) -> None:
    """Write a reference: values at x (times, points) with weights, and its error, the relative L2 distance of another
    computation."""
    weights = (time_weights[:, None] * np.broadcast_to(x_weights, x.shape)).reshape(-1)
    points = np.stack([x, np.broadcast_to(times[:, None], x.shape)], axis=-1).reshape(-1, 2)
    values, other = (np.asarray(each, dtype=np.float64).reshape(-1, 1) for each in (values, other))
    save(name, points, weights, values, np.sqrt(weights @ (values - other) ** 2 / (weights @ values**2)), how)


def save(name: str, points, weights, values, error, how: str) -> None:
    """Write a reference: values at points with weights, and their relative L2 error."""
    arrays = {"points": points, "weights": weights, "values": values, "error": np.atleast_1d(error)}
    DATA.mkdir(exist_ok=True)
    path = DATA / f"{name}.safetensors"
    save_file({key: np.ascontiguousarray(a, dtype=np.float64) for key, a in arrays.items()}, path, {"how": how})
    print(f"{name}: error {np.max(error):.1e}, {path.stat().st_size / 1024:.0f} KiB", flush=True)
