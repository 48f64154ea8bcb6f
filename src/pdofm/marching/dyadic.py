"""Intervals that follow a function: halved where its tail is large, joined where one polynomial suffices."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from pdofm.features.spectral import table
from pdofm.marching.arrays import Mask, Vector

COARSER = 0.1
"""Two intervals are joined if the tail of their common polynomial is this fraction of what is allowed: with less to
spare they would be halved again soon."""

Box = tuple[int, int]
"""A level and a number: the part `number` of 2^level equal ones."""

Boxes = tuple[Box, ...]

Polynomials = Float[np.ndarray, "... _ C m"]
"""Chebyshev coefficients of functions in b intervals, for each of C components."""


@lru_cache(maxsize=64)
def chebyshev_fit(degree: int) -> tuple[Vector, Float[np.ndarray, "m m"]]:
    """Chebyshev points of [-1, 1], and the matrix from values there to coefficients."""
    nodes = np.cos((np.arange(degree + 1) + 0.5) * np.pi / (degree + 1))
    return nodes, np.linalg.inv(table([nodes], degree)[0].T)


@lru_cache(maxsize=64)
def halving(degree: int) -> Float[np.ndarray, "2 m m"]:
    """Matrices that map Chebyshev coefficients on an interval to those on its lower and its upper half."""
    nodes, fit = chebyshev_fit(degree)
    return np.stack([fit @ table([(nodes + side) / 2], degree)[0].T for side in (-1, 1)])


def local_sizes(functions: Polynomials, scale: Vector, floor: float) -> Float[np.ndarray, "... _ C"]:
    """The sizes of functions in each interval, relative to a scale, between `floor` and 1: what is small is then judged
    relative to its own size."""
    return np.clip(np.sqrt(np.sum(functions**2, axis=-1)) / scale, floor, 1.0)


def halved(boxes: Boxes, which: Mask, functions: list[Polynomials]) -> tuple[Boxes, list[Polynomials]]:
    """Halve intervals; the functions do not change."""
    found: list[Box] = []
    source, halves = [], []
    for number, ((level, place), is_cut) in enumerate(zip(boxes, which.tolist(), strict=True)):
        found += [(level + 1, 2 * place), (level + 1, 2 * place + 1)] if is_cut else [(level, place)]
        source += [number, number] if is_cut else [number]
        halves += [0, 1] if is_cut else [2]
    m = functions[0].shape[-1]
    maps = np.concatenate([halving(m - 1), np.eye(m)[None]])[halves]
    return tuple(found), [np.einsum("bij,...bcj->...bci", maps, of[..., source, :, :]) for of in functions]


def joined(
    boxes: Boxes, share: Vector, functions: list[Polynomials], scales: list[Vector], tol: float, floor: float = 1.0
) -> tuple[Boxes, list[Polynomials]]:
    """Join pairs of halves where one polynomial represents all functions to a fraction of `tol`.

    Args:
        boxes, share: the intervals in ascending order, and their widths as a part of the whole.
        functions: in these intervals.
        scales: for each function the sizes of its components.
        tol: relative to the scales.
        floor: see `local_sizes`.
    """
    at = np.array(
        [
            i
            for i, (first, second) in enumerate(pairwise(boxes))
            if first[1] % 2 == 0 and second == (first[0], first[1] + 1)
        ],
        dtype=int,
    )
    if len(at) == 0:
        return boxes, functions
    both_halves = np.concatenate(halving(functions[0].shape[-1] - 1))
    fit = np.linalg.pinv(both_halves)
    suffices, common = np.ones(len(at), dtype=bool), []
    for of, scale in zip(functions, scales, strict=True):
        both = np.concatenate([of[at], of[at + 1]], axis=-1)
        one = both @ fit.T
        off = one @ both_halves.T - both
        tail = np.sqrt(np.sum(one[..., -2:] ** 2, axis=-1) / 2) + np.sqrt(np.sum(off**2, axis=-1))
        allowed = COARSER * tol / np.sqrt(len(boxes)) * scale * local_sizes(one, scale, floor)
        suffices &= np.all(tail * np.sqrt(2 * share[at])[:, None] <= allowed, axis=1)
        common.append(one)
    if not suffices.any():
        return boxes, functions
    first = at[suffices]
    kept = np.delete(np.arange(len(boxes)), first + 1)
    new = list(boxes)
    for i in first.tolist():
        new[i] = (boxes[i][0] - 1, boxes[i][1] // 2)
    found = []
    for of, one in zip(functions, common, strict=True):
        copy = of.copy()
        copy[first] = one[suffices]
        found.append(copy[kept])
    return tuple(new[i] for i in kept.tolist()), found
