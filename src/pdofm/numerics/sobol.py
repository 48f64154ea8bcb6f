"""Scrambled Sobol' points in few dimensions, without importing scipy.stats, which takes a second.

Direction numbers: S. Joe and F. Y. Kuo, SIAM J. Sci. Comput. 30 (2008) 2635. Scrambling: J. Matoušek, J. Complexity 14
(1998) 527, a random linear map of the digits and a digital shift. For the same generator, the points are those of
scipy.stats.qmc.Sobol.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float, UInt32

BITS = 30
"""Binary digits of each coordinate, as in SciPy; there are 2**30 points."""

_POLYNOMIALS = (
    (0b11, (1,)),
    (0b111, (1, 3)),
    (0b1011, (1, 3, 1)),
    (0b1101, (1, 1, 1)),
    (0b10011, (1, 1, 3, 3)),
    (0b11001, (1, 3, 5, 13)),
    (0b100101, (1, 1, 5, 5, 17)),
    (0b101001, (1, 1, 5, 5, 5)),
    (0b101111, (1, 1, 7, 11, 19)),
)
"""For each dimension from the second on, a primitive polynomial over the integers modulo 2, given by its coefficients
as binary digits, and the first direction numbers."""

MOST_DIMENSIONS = 1 + len(_POLYNOMIALS)
"""The largest dimension that the table covers."""


@lru_cache(maxsize=MOST_DIMENSIONS)
def _directions(dim: int) -> UInt32[np.ndarray, "d bits"]:
    """The direction number of each binary digit of an index, for each axis, as 30 binary digits after the point."""
    found = np.ones((dim, BITS), dtype=np.uint32)
    for axis in range(1, dim):
        polynomial, first = _POLYNOMIALS[axis - 1]
        degree = len(first)
        found[axis, :degree] = first
        for j in range(degree, BITS):
            new = int(found[axis, j - degree]) << degree ^ int(found[axis, j - degree])
            for k in range(1, degree):
                if polynomial >> (degree - k) & 1:
                    new ^= int(found[axis, j - k]) << k
            found[axis, j] = new
    return found << np.arange(BITS - 1, -1, -1, dtype=np.uint32)


@lru_cache(maxsize=MOST_DIMENSIONS)
def _digits(dim: int) -> UInt32[np.ndarray, "d bits bits"]:
    """The binary digits of the direction numbers, from the first one after the point."""
    return _directions(dim)[:, :, None] >> np.arange(BITS - 1, -1, -1, dtype=np.uint32) & np.uint32(1)


@lru_cache(maxsize=256)
def _scrambled(
    dim: int, entropy: int | tuple[int, ...], spawn_key: tuple[int, ...]
) -> tuple[UInt32[np.ndarray, "d bits"], UInt32[np.ndarray, " d"]]:
    """The direction numbers after a random linear map, and a random shift. They are cached because most points are
    drawn with the same few seeds."""
    rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=spawn_key))
    places = np.arange(BITS, dtype=np.uint32)
    shift = rng.integers(2, size=(dim, BITS), dtype=np.uint32) @ (np.uint32(1) << places)
    maps = np.tril(rng.integers(2, size=(dim, BITS, BITS), dtype=np.uint32))
    maps[:, places, places] = 1
    mapped = np.einsum("apk,ajk->ajp", maps, _digits(dim)) & np.uint32(1)
    numbers = mapped @ (np.uint32(1) << places[::-1])
    for array in (numbers, shift):
        array.setflags(write=False)
    return numbers, shift


class Sobol:
    """A scrambled sequence in up to `MOST_DIMENSIONS` dimensions."""

    def __init__(self, dim: int, rng: np.random.Generator):
        seeds: Any = rng.bit_generator.seed_seq  # NumPy declares an interface without `spawn`
        (own,) = seeds.spawn(1)
        entropy = own.entropy if isinstance(own.entropy, int) else tuple(own.entropy)
        self._numbers, self._shift = _scrambled(dim, entropy, own.spawn_key)
        self._next = 0

    def __call__(self, n: int) -> Float[np.ndarray, "n d"]:
        """The next n points, whose coordinates are multiples of 2^-30 in [0, 1). n must be a power of two that divides
        the number of points drawn before."""
        start, self._next = self._next, self._next + n
        if n < 1 or n & (n - 1) or start % n or self._next > 2**BITS:
            raise ValueError(
                f"{n} points after {start} are not a block of a sequence of {2**BITS}. Draw the same power of two each "
                "time, or as many points as were drawn before."
            )
        # In the order of Gray's code, in which neighbours differ in one digit, the second half of a block is the first
        # half in reverse, with one more digit set.
        points = np.zeros((n, len(self._shift)), dtype=np.uint32)
        for j in range(n.bit_length() - 1):
            points[1 << j : 2 << j] = points[: 1 << j][::-1] ^ self._numbers[:, j]
        gray, offset = start ^ start >> 1, self._shift
        for j in range(gray.bit_length()):
            if gray >> j & 1:
                offset = offset ^ self._numbers[:, j]
        return (points ^ offset) * 2.0**-BITS
