"""The reference for heat-nonlinear: ``python tools/references/reaction.py``, some minutes.

Products of sines in space, which all terms of the equation keep: along x those of period 1/2, as the data have no
others. In time an exponential integrator of fourth order. The error is the distance to a computation with three
quarters of the waves and steps of twice the length.
"""

import numpy as np
import scipy.fft as fft
from common import etdrk4, radau, save

END, TIMES, POINTS = 100.0, 12, 384
WAVES, STEP = (96, 384), 1 / 256
HOW = "sines, ETDRK4; error: with three quarters of the waves and steps of twice the length"


def solved(waves: tuple[int, int], step: float, times: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The solution at (times, points)."""
    k, m = (np.arange(1, count) for count in waves)
    x, y = k / (4 * waves[0]), m / waves[1]
    still = 5 * np.outer(np.sin(4 * np.pi * x), np.sin(2 * np.pi * y))
    linear = -0.001 * ((4 * np.pi * k[:, None]) ** 2 + (np.pi * m) ** 2)
    shape = linear.shape
    # The integrator knows no time: it is one more unknown, with derivative one.
    start = np.zeros(shape)
    start[0, 2] = 1.0

    def nonlinear(state: np.ndarray) -> np.ndarray:
        u = fft.idstn(state[:-1].reshape(shape), type=1, norm="forward")
        force = still * (1 + 2 * np.sin(np.pi * state[-1] / 4)) * np.sin(u**2)
        return np.append(fft.dstn(force, type=1, norm="forward").reshape(-1), 1.0)

    # Transforms with this norm give half of the coefficient of a sine along each axis.
    first = np.append(start.reshape(-1) / 4, 0.0)
    states = etdrk4(np.append(linear.reshape(-1), 0.0), nonlinear, first, times, step)
    sines = [np.sin(np.pi * np.outer(points[:, axis], each)) for axis, each in ((0, 4 * k), (1, m))]
    return np.stack([4 * np.einsum("nk,km,nm->n", sines[0], s[:-1].reshape(shape), sines[1]) for s in states])


def main() -> None:
    """Compute the reference and write it."""
    times, time_weights = radau(TIMES, END)
    points = np.random.default_rng(0).random((POINTS, 2))
    each = [
        solved(waves, step, times, points)
        for waves, step in ((WAVES, STEP), (tuple(3 * n // 4 for n in WAVES), 2 * STEP))
    ]
    values, other = (found.reshape(-1, 1) for found in each)
    places = np.concatenate([np.tile(points, (TIMES, 1)), np.repeat(times, POINTS)[:, None]], axis=1)
    weights = np.repeat(time_weights, POINTS) / POINTS
    error = np.sqrt(weights @ (values - other) ** 2 / (weights @ values**2))
    save("heat-nonlinear", places, weights, values, error, HOW)


if __name__ == "__main__":
    main()
