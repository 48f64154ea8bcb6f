"""The scaled least-squares system, and the array that it is written into row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from pdofm._types import Coefficients, Matrix, Vector
from pdofm.discrete.collocate import Block
from pdofm.discrete.leftsides import Gradients
from pdofm.errors import ProblemError
from pdofm.numerics.lstsq import Folding

LARGEST_MATRIX = 2**28
"""Bytes of the largest matrix that is kept in memory where the triangle will do."""


@dataclass(frozen=True)
class Sums:
    """Sums of squares over the rows of each term, with the number of rows: what is known of many rows at once."""

    squares: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(values: Vector, rows: Mapping[str, slice]) -> "Sums":
        """The sums of values in rows."""
        parts = {name: values[at] for name, at in rows.items()}
        squares = {name: float(np.sum(part**2)) for name, part in parts.items()}
        return Sums(squares, {name: len(part) for name, part in parts.items()})

    def __add__(self, other: "Sums") -> "Sums":
        names = dict.fromkeys([*self.counts, *other.counts])
        return Sums(
            {name: self.squares.get(name, 0.0) + other.squares.get(name, 0.0) for name in names},
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
        )

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return sum(self.counts.values())

    @property
    def norm(self) -> float:
        """The root of the sum of all squares."""
        return float(np.sqrt(sum(self.squares.values())))

    @property
    def rms(self) -> dict[str, float]:
        """The root mean square of each term."""
        return {name: float(np.sqrt(self.squares[name] / count)) for name, count in self.counts.items()}

    @property
    def mean(self) -> float:
        """The root mean square of all rows."""
        return self.norm / float(np.sqrt(self.rows))


@dataclass(frozen=True, eq=False)
class System:
    """The scaled system A δ ≈ b of all blocks, and what it was made from.

    Row i of A is `scales[i]` times the gradient of the left side with respect to the coefficients, of norm equal to the
    weight of its term (in the units of the components, if their sizes are known); ``b = scales * (right - left)``.
    Columns run over features first: entry ``f * C + j`` is component j of feature f, so that the leading columns are
    the space of the first features.

    Of very many rows only the triangle of [A b] is there, and `folded` has its last column. `held_out` is the system at
    points that are not fitted, if there are any.
    """

    A: Float[np.ndarray, "n columns"]
    left: Vector
    right: Vector
    scales: Vector
    rows: dict[str, slice]
    folded: Float[np.ndarray, " n"] | None = None
    held_out: "System | None" = None

    @property
    def b(self) -> Vector:
        """The scaled right-hand side of all rows: minus the residual."""
        return self.scales * (self.right - self.left)

    @property
    def norm(self) -> float:
        """The norm of the scaled residual."""
        return float(np.linalg.norm(self.b))

    def moved(self, coefficients: Coefficients) -> "System":
        """The system of a linear problem at other coefficients, this one being at zero."""
        return replace(self, left=self.left + (self.A @ coefficients.reshape(-1)) / self.scales)

    @property
    def target(self) -> Float[np.ndarray, " n"]:
        """The right-hand side that belongs to the rows of A: b unless they are folded."""
        return self.b if self.folded is None else self.folded


@runtime_checkable
class Sink(Protocol):
    """Takes rows as they are computed, in place of a matrix that has all of them."""

    def add(self, A: Matrix, b: Vector) -> None:
        """Take rows of A with their right side."""


class Rows:
    """The rows of some blocks, stacked, filled in as they are computed; or, with a `sink`, passed on."""

    def __init__(
        self,
        blocks: Sequence[Block],
        counts: Sequence[int],
        columns: int,
        *,
        fold: bool,
        sink: Sink | None = None,
        sizes: Vector | None = None,
    ):
        total = sum(block.equations * k for block, k in zip(blocks, counts, strict=True))
        worthwhile = 8 * total * columns > LARGEST_MATRIX and total > 2 * Folding.rows_held(columns)
        self._sizes = sizes
        self.columns, self.folding = columns, Folding(columns) if fold and worthwhile else None
        self.sink = sink if self.folding is None else self.folding
        # Fortran order, so that LAPACK factors it in place.
        self.A = np.empty((total if self.sink is None else 0, columns), order="F")
        self.left, self.right, self.scales = (np.empty(total) for _ in range(3))
        self.rows: dict[str, slice] = {}
        start = 0
        for block, k in zip(blocks, counts, strict=True):
            self.rows[block.term.name] = slice(start, start + block.equations * k)
            start += block.equations * k

    def take(
        self, block: Block, here: slice, left: np.ndarray, gradients: Gradients, right: np.ndarray, *, check: bool
    ) -> None:
        """Enter some points of a block."""
        n, k = left.shape
        start = self.rows[block.term.name].start
        at = slice(start + here.start * k, start + here.stop * k)
        norms = gradients.norms(n, self._sizes)
        scales = block.term.weight / np.where(norms == 0, 1.0, norms)
        self.left[at], self.right[at], self.scales[at] = left.reshape(-1), right.reshape(-1), scales.reshape(-1)
        if check:
            _check_rows(block, here, norms.reshape(-1), self.left[at], self.right[at])
        with np.errstate(invalid="ignore"):  # what is not finite is reported by those who use it
            if self.sink is None:
                gradients.write(self.A[at], scales)
            else:
                rows = np.empty((n * k, self.columns), order="F")
                gradients.write(rows, scales)
                self.sink.add(rows, self.scales[at] * (self.right[at] - self.left[at]))

    def system(self) -> System:
        """The assembled system."""
        A, folded = (self.A, None) if self.folding is None else self.folding.reduced()
        return System(A, self.left, self.right, self.scales, self.rows, folded)


def _check_rows(block: Block, here: slice, norm: Vector, left: Vector, right: Vector) -> None:
    """Left sides must be finite; and a row of zeros can only hold if its data happen to be met."""
    name = block.term.name
    if not (np.isfinite(left).all() and np.isfinite(norm).all()):
        raise ProblemError(
            f"The left side of {name!r} is not finite at some of its points. "
            "Check the operator for divisions by zero or roots of negative numbers there."
        )
    failed = (norm == 0) & (np.abs(right - left) > 1e-12 * np.maximum(1.0, np.abs(right)))
    if block.term.on is not None and failed.any():
        points = block.points[here]
        at = points[min(np.flatnonzero(failed)[0] * len(points) // len(failed), len(points) - 1)].tolist()
        raise ProblemError(
            f"Condition {name!r} does not depend on the unknown at {failed.sum()} of {len(failed)} rows, for instance "
            f"at {at}, yet asks for a value. Check its part: a Neumann condition needs a normal in space."
        )
