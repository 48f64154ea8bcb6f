"""The steps of least squares by blocks: the elimination of a leaf, and that of the first columns of a front."""

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack

Matrix = Float[np.ndarray, "_ _"]
"""A matrix of any shape: those of one function differ."""

BLOCK = 64
"""Columns that LAPACK reflects at once."""

COMPRESSED = 1.3
"""Rows that remain of a merge are compressed to a triangle if they are so many times more than the columns."""


class Reflections:
    """The QR factorisation of a matrix."""

    def __init__(self, matrix: Matrix):
        rows, columns = matrix.shape
        self.size = min(rows, columns)
        self._qr, self._tau = matrix, np.zeros(0)
        if self.size > 0:
            found = lapack.dgeqrf(np.asfortranarray(matrix), lwork=BLOCK * columns, overwrite_a=1)
            self._qr, self._tau = found[:2]

    @property
    def triangle(self) -> Matrix:
        return np.triu(self._qr[: self.size])

    def apply(self, matrix: Matrix) -> Matrix:
        """Qᵀ times a matrix."""
        if matrix.shape[1] == 0 or self.size == 0:
            return matrix
        lwork = BLOCK * matrix.shape[1]
        return lapack.dormqr("L", "T", self._qr, self._tau, np.asfortranarray(matrix), lwork, overwrite_c=1)[0]


class Extended:
    """The QR factorisation of a triangle above another matrix, which leaves the zeros of the triangle alone."""

    def __init__(self, triangle: Matrix, below: Matrix):
        block = max(1, min(BLOCK // 2, len(triangle)))
        found = lapack.dtpqrt(0, block, np.asfortranarray(triangle), np.asfortranarray(below), overwrite_a=1)
        self._triangle, self._below, self._block, _ = found

    @property
    def triangle(self) -> Matrix:
        return np.triu(self._triangle)

    def apply(self, top: Matrix, bottom: Matrix) -> tuple[Matrix, Matrix]:
        """Qᵀ times a matrix, given as the part beside the triangle and the part below."""
        if top.shape[1] == 0:
            return top, bottom
        top, bottom, _ = lapack.dtpmqrt(
            0, self._below, self._block, np.asfortranarray(top), np.asfortranarray(bottom), trans="T"
        )
        return top, bottom


class LeafStep:
    """The elimination of the unknowns of a leaf."""

    def __init__(self, own: Matrix, links: Matrix):
        self.columns, self._rows = own.shape[1], len(own)
        self._first = Reflections(self._extended(own))
        self._second = Extended(self._first.triangle, links) if len(links) else None

    def _extended(self, matrix: Matrix) -> Matrix:
        """A copy, which LAPACK may overwrite, with rows of zeros if there are fewer rows than unknowns."""
        found = np.zeros((max(self._rows, self.columns), matrix.shape[1]), order="F")
        found[: len(matrix)] = matrix
        return found

    @property
    def triangle(self) -> Matrix:
        return self._first.triangle if self._second is None else self._second.triangle

    def coupling(self, links: int) -> tuple[Matrix, Matrix]:
        """The coupling of the eliminated unknowns to the links, and the rows that remain of these."""
        nothing, minus = np.zeros((self.columns, links)), -np.eye(links)
        return (nothing, minus) if self._second is None else self._second.apply(nothing, minus)

    def apply(self, own: Matrix, links: int, shifts: Matrix | None = None) -> tuple[Matrix, Matrix]:
        """What belongs to the eliminated unknowns, and to the rows that remain, of a right side."""
        top = self._first.apply(self._extended(own))[: self.columns].copy(order="F")
        bottom = np.zeros((links, own.shape[1])) if shifts is None else shifts
        return (top, bottom) if self._second is None else self._second.apply(top, bottom)


class MergeStep:
    """The elimination of the first columns of a front."""

    def __init__(self, front: Matrix, columns: int):
        self.columns = columns
        self._first = Reflections(front[:, :columns])
        rest = self._first.apply(front[:, columns:])
        # Copies: a view would keep all of it in memory.
        self.top, rest = rest[:columns].copy(order="F"), rest[columns:].copy(order="F")
        if rest.shape[1] == 0:
            rest = rest[:0]  # the residual that nothing can remove
        self._second = Reflections(rest) if len(rest) > COMPRESSED * rest.shape[1] else None
        self.rest = rest if self._second is None else self._second.triangle

    @property
    def triangle(self) -> Matrix:
        return self._first.triangle

    def apply(self, right: Matrix) -> tuple[Matrix, Matrix]:
        """What belongs to the eliminated columns, and to the rows that remain, of a right side."""
        found = self._first.apply(right)
        top, rest = found[: self.columns], found[self.columns :]
        return top, (rest if self._second is None else self._second.apply(rest))[: len(self.rest)]
