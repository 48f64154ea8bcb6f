"""Conditions on two faces of a box that contradict each other at the edge between them.

What a face asks for must satisfy, at its edges, what the other faces there ask for. A value of 1 on one side of an edge
and of 0 on the other, or a slope on one side that is not that of the values on the other, are met by no function.
"""

from itertools import combinations

import numpy as np
from jaxtyping import Float

from pdofm.marching.arrays import Vector
from pdofm.marching.axes import Bounded, Tensor, along

CONTRADICTORY, ROUNDING = 1e-10, 1e-14
"""A contradiction is larger than this fraction of what both sides consist of, and than rounding errors of this size in
each coefficient."""

UNCLEAR, LAST = 10.0, 0.2
"""It is also so many times larger than what the last coefficients of the data, this part of them, contribute. Data that
are not resolved contradict each other by what is left out; they need more polynomials first."""

Asked = dict[tuple[int, int, int], Float[np.ndarray, "p ..."]]
"""What conditions ask for at several times, as coefficients on faces, by component, axis and side."""


def contradictory(asked: Asked, bounded: list[list[Bounded]]) -> bool:
    """Whether conditions on two faces contradict each other at their edge, at any of the times."""
    for one, other in combinations(asked, 2):
        if one[0] == other[0] and one[1] != other[1]:
            first, second = (
                _at_edge(asked[face], bounded[edge[0]][edge[1]].rows[edge[2]], edge[1], len(bounded[edge[0]]))
                for face, edge in ((one, other), (other, one))
            )
            if np.any(np.abs(first[0] - second[0]) > first[1] + second[1]):
                return True
    return False


def _at_edge(of: Tensor, row: Vector, axis: int, dim: int) -> tuple[Tensor, Tensor]:
    """A condition on what a face asks for, at an end of an axis, and how uncertain it is."""
    sizes, is_last = np.abs(of), np.arange(len(row)) >= (1 - LAST) * len(row)
    largest = sizes.max(axis=tuple(range(1, of.ndim)), keepdims=True)
    doubt = along(np.abs(row * (CONTRADICTORY + UNCLEAR * is_last))[None], sizes, axis, dim)
    return along(row[None], of, axis, dim), doubt + ROUNDING * np.abs(row).sum() * largest
