"""Square systems with entries near the diagonal, factored by LAPACK's banded LU."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Int, Shaped
from scipy.linalg import lapack

from pdofm.errors import SolveError

SINGULAR = "The equation and its conditions do not determine a slab: a matrix is singular. Check the conditions."


class BandPattern:
    """Where the entries of a square matrix are: positions (rows, columns) of a list of entries.

    Rows are reordered by the mean of their first and last column, so that the matrix is as narrow as its coupling.
    """

    def __init__(self, rows: Int[np.ndarray, " e"], columns: Int[np.ndarray, " e"], size: int):
        first, last = np.full(size, size), np.full(size, -1)
        np.minimum.at(first, rows, columns)
        np.maximum.at(last, rows, columns)
        self.size = size
        self.order: Int[np.ndarray, " n"] = np.argsort(first + last, kind="stable")
        place = np.empty(size, dtype=int)
        place[self.order] = np.arange(size)
        offsets = place[rows] - columns
        self.below, self.above = max(int(offsets.max()), 0), max(int(-offsets.min()), 0)
        # Positions in LAPACK's storage, which is read column by column.
        height = 2 * self.below + self.above + 1
        self._at = columns * height + self.below + self.above + offsets
        self._rows, self._height = rows, height

    def factor(self, entries: Shaped[np.ndarray, " e"]) -> "BandLU":
        """Factor the matrix with these entries; those at the same position are added."""
        largest = np.zeros(self.size)
        np.maximum.at(largest, self._rows, np.abs(entries))
        if not np.all(np.isfinite(largest)) or np.any(largest == 0):
            raise SolveError(SINGULAR)
        scale = 1 / largest
        scaled = entries * scale[self._rows]
        length = self._height * self.size
        if np.iscomplexobj(scaled):
            stored = np.bincount(self._at, scaled.real, length) + 1j * np.bincount(self._at, scaled.imag, length)
        else:
            stored = np.bincount(self._at, scaled, length)
        return BandLU(self, stored.reshape(self.size, self._height).T, scale)


class BandLU:
    """The factors of a matrix with a `BandPattern`."""

    def __init__(self, pattern: BandPattern, stored: np.ndarray, scale: np.ndarray):
        self._pattern, self._scale = pattern, scale[pattern.order]
        self._is_complex = is_complex = np.iscomplexobj(stored)
        factor, self._solve = (lapack.zgbtrf, lapack.zgbtrs) if is_complex else (lapack.dgbtrf, lapack.dgbtrs)
        self._lu, self._pivots, info = factor(stored, pattern.below, pattern.above, overwrite_ab=1)
        if info != 0:
            raise SolveError(SINGULAR)

    def solve(self, right: Shaped[np.ndarray, " n"]) -> Shaped[np.ndarray, " n"]:
        """The solution for one right-hand side."""
        pattern = self._pattern
        ordered = (right if self._is_complex else np.real(right))[pattern.order] * self._scale
        return self._solve(self._lu, pattern.below, pattern.above, ordered, self._pivots)[0]


@dataclass(frozen=True, eq=False)
class BandFactors:
    """A factored matrix for each of k rates; `columns` is the column of each coefficient."""

    each: tuple[BandLU, ...]
    columns: Int[np.ndarray, " _"]

    def solve(self, rows: Complex[np.ndarray, "k _"]) -> Complex[np.ndarray, "k _"]:
        """The functions for one right-hand side per rate."""
        return np.stack([lu.solve(row) for lu, row in zip(self.each, rows, strict=True)])[:, self.columns]
