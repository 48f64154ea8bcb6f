"""References for periodic problems: ``python tools/references/fourier.py [NAME…]``, several minutes each.

Fourier's method in space, and in time an exponential integrator of fourth order with small steps, extrapolated from two
lengths of step; the error is the distance to a computation with fewer waves and longer steps.
"""

import sys

import numpy as np
import scipy.fft as fft
from common import at_points, etdrk4, product, radau, stratified, write

TIMES, POINTS = 16, 256
HOW = "Fourier's method, ETDRK4, extrapolated; error: with three quarters of the waves and steps of twice the length"


def extrapolated(solve, step: float) -> list[np.ndarray]:
    """Spectra of fifth order from two of fourth order."""
    coarse, fine = solve(step), solve(step / 2)
    return [b + (b - a) / 15 for a, b in zip(coarse, fine, strict=True)]


def allen_cahn(count: int, step: float, times: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """u_t = 1e-4 u_xx + 5u - 5u³ on (-1, 1), from x² cos πx.

    Continued periodically the start has a kink at ±1, so that its waves, here in closed form, fall as k^-2 only. The
    integral over (-1, 1) of x² cos(ax) is 2 sin(a)/a + 4 cos(a)/a² - 4 sin(a)/a³, and a cosine times a wave is the
    half sum of the waves k - 1 and k + 1.
    """
    number = np.arange(count // 2 + 1)
    waves = np.pi * number

    def moment(k: np.ndarray) -> np.ndarray:
        """∫ x² cos πkx / 2."""
        safe = np.where(k == 0, 1, k)
        return np.where(k == 0, 1 / 3, 2 * (-1.0) ** k / (np.pi * safe) ** 2)

    start = (moment(number - 1) + moment(number + 1)) / 2 + 0j

    def nonlinear(u: np.ndarray) -> np.ndarray:
        return -5 * product([u, u, u], count)

    linear = 5 - 1e-4 * waves**2
    return waves, extrapolated(lambda h: etdrk4(linear, nonlinear, start, times, h, ramp=int(0.02 / h)), step)


def korteweg_de_vries(count: int, step: float, times: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """u_t + u u_x + 0.022² u_xxx = 0 on (-1, 1), from cos πx."""
    waves = np.pi * np.arange(count // 2 + 1)
    start = np.zeros(len(waves), complex)
    start[1] = 0.5
    kept = np.arange(len(waves)) <= count // 3

    def nonlinear(u: np.ndarray) -> np.ndarray:
        return -0.5j * waves * kept * product([u, u], count)

    linear = 1j * 0.022**2 * waves**3 * kept
    return waves, extrapolated(lambda h: etdrk4(linear, nonlinear, start, times, h), step)


def kuramoto_sivashinsky(count: int, step: float, times: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """u_t + 100/16 u u_x + 100/16² u_xx + 100/16⁴ u_xxxx = 0 on (0, 2π), from cos x (1 + sin x).

    Errors grow by many powers of ten, so that this is in extended precision."""
    wide = np.longdouble
    waves = np.arange(count // 2 + 1).astype(wide)
    start = np.zeros(len(waves), np.clongdouble)
    start[1], start[2] = wide(0.5), -1j * wide(0.25)
    kept = waves <= count // 3

    def nonlinear(u: np.ndarray) -> np.ndarray:
        return -1j * (wide(100) / 32) * waves * kept * product([u, u], count)

    linear = waves**2 * wide(100) / 256 - waves**4 * wide(100) / 65536
    return waves, extrapolated(lambda h: etdrk4(linear, nonlinear, start, times.astype(wide), wide(h)), step)


PROBLEMS = {
    "allen-cahn": (allen_cahn, (-1.0, 1.0), 8192, 1 / 4000),
    "korteweg-de-vries": (korteweg_de_vries, (-1.0, 1.0), 1024, 1 / 40000),
    "kuramoto-sivashinsky": (kuramoto_sivashinsky, (0.0, 2 * np.pi), 512, 1 / 24000),
}
"""Each with its period, the number of waves, and the length of a step."""


def make(name: str) -> None:
    """Compute a reference and write it."""
    solve, (lower, upper), count, step = PROBLEMS[name]
    times, weights = radau(TIMES, 1.0)
    x = stratified(POINTS, TIMES, lower, upper)
    values = []
    for points, length in ((count, step), (3 * count // 4, 2 * step)):
        waves, spectra = solve(points, length, times)
        # Waves are centred at zero, where the grid of the transforms begins.
        values.append(
            np.stack([at_points(s.astype(complex), waves.astype(float), at) for s, at in zip(spectra, x, strict=True)])
        )
    write(name, times, x, weights, np.full(POINTS, 1 / POINTS), *values, HOW)


if __name__ == "__main__":
    fft.set_workers(1)
    for chosen in sys.argv[1:] or PROBLEMS:
        make(chosen)
