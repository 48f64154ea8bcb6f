"""Boxes that carry polynomials, and at singular points other functions beside them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int

from pdofm._types import Points
from pdofm.calculus.jets import Index
from pdofm.features.base import Features, Jets
from pdofm.features.spectral import contracted, products, table, tables
from pdofm.numerics.batches import slices

MANY_POINTS = 64
"""With more points than this in each patch, functions are evaluated patch by patch."""

SPECIAL = 0.5
"""Of functions that are no polynomials, such as the singular ones of a corner, so many are different on a face."""

CHUNK_BYTES = 2**22
"""Size of the coefficients that are copied to points at once."""


@lru_cache(maxsize=256)
def tensor_indices(degrees: tuple[int, ...]) -> Int[np.ndarray, "m d"]:
    """All multi-indices up to a degree per axis; the last axis runs fastest."""
    return np.stack(np.meshgrid(*(np.arange(k + 1) for k in degrees), indexing="ij"), axis=-1).reshape(-1, len(degrees))


class Patches:
    """Boxes that carry polynomials: corners (P, d), and degrees (P, d).

    A patch is a box on which one polynomial lives; it may belong to several leaves of a tree. Patches at singular
    points may have `singular` functions beside the polynomials, by the number of the patch.
    """

    def __init__(
        self,
        lower: Points,
        upper: Points,
        degrees: Int[np.ndarray, "P d"],
        singular: Mapping[int, Features] | None = None,
    ):
        self.lower, self.upper, self.degrees, self.singular = lower, upper, degrees, dict(singular or {})

    def __len__(self) -> int:
        return len(self.lower)

    @cached_property
    def along(self) -> Int[np.ndarray, "P d"]:
        """The degrees of polynomials that resolve as much along a line: they tell how many points faces need."""
        return self.degrees + (SPECIAL * self.more).astype(int)[:, None]

    @cached_property
    def more(self) -> Int[np.ndarray, " P"]:
        """Number of singular functions in each patch."""
        return np.array([self.singular[i].size if i in self.singular else 0 for i in range(len(self))], dtype=int)

    @cached_property
    def sizes(self) -> Int[np.ndarray, " P"]:
        """Number of functions in each patch: polynomials, then singular functions."""
        return np.prod(self.degrees + 1, axis=1) + self.more

    @cached_property
    def are_polynomials(self) -> Bool[np.ndarray, " P"]:
        """Whether a patch has the tensor products of Chebyshev polynomials up to its degrees, which are independent,
        and nothing else."""
        return self.more == 0

    @cached_property
    def starts(self) -> Int[np.ndarray, " P"]:
        """The first function of each patch, in the order of all of them; one more at the end."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def of(self, patch: int) -> slice:
        """The functions of a patch."""
        return slice(int(self.starts[patch]), int(self.starts[patch + 1]))

    def polynomials(self, patch: int) -> slice:
        """The polynomials of a patch."""
        return slice(int(self.starts[patch]), int(self.starts[patch + 1] - self.more[patch]))

    def shape(self, patch: int) -> tuple[int, ...]:
        """The degrees of a patch."""
        return tuple(self.degrees[patch].tolist())

    def jets(self, patch: int, points: Points, which: Sequence[Index]) -> Jets:
        """The derivatives of the functions of a patch at points."""
        degrees = self.shape(patch)
        along = tables(points, self.lower[patch], self.upper[patch], degrees, which)
        smooth = products(along, tensor_indices(degrees), which)
        if patch not in self.singular:
            return smooth
        return np.concatenate([smooth, self.singular[patch].jets(points, which)], axis=2)

    def expand(
        self, patch: int, points: Points, which: Sequence[Index], coefficients: Float[np.ndarray, "m C"]
    ) -> Float[np.ndarray, "a n C"]:
        """The derivatives at points of functions on a patch."""
        degrees = self.shape(patch)
        along = tables(points, self.lower[patch], self.upper[patch], degrees, which)
        count = len(coefficients) - int(self.more[patch])
        smooth = contracted(along, tensor_indices(degrees), which, coefficients[:count])
        if patch not in self.singular:
            return smooth
        return smooth + self.singular[patch].expand(points, which, coefficients[count:])

    def expand_all(
        self,
        owner: Int[np.ndarray, " n"],
        points: Points,
        which: Sequence[Index],
        coefficients: Float[np.ndarray, "m C"],
    ) -> Float[np.ndarray, "a n C"]:
        """The derivatives at points of functions on all patches, of each point in the patch that owns it."""
        found = np.zeros((len(which), len(points), coefficients.shape[1]))
        if len(points) > MANY_POINTS * len(np.unique(owner)):
            for patch, at in grouped(owner):
                found[:, at] = self.expand(patch, points[at], which, coefficients[self.of(patch)])
            return found
        # Few points in each of many patches: all patches of one shape at once.
        shapes, kind = np.unique(self.degrees, axis=0, return_inverse=True)
        for number, at in grouped(kind.reshape(-1)[owner]):
            degrees = tuple(shapes[number].tolist())
            size = int(np.prod(shapes[number] + 1)) * coefficients.shape[1]
            for here in slices(len(at), max(64, CHUNK_BYTES // (8 * size))):
                some = at[here]
                found[:, some] = self._gathered(owner[some], points[some], which, coefficients, degrees)
        for patch, singular in self.singular.items():
            at = np.flatnonzero(owner == patch)
            own = coefficients[self.polynomials(patch).stop : self.of(patch).stop]
            if len(at):
                found[:, at] += singular.expand(points[at], which, own)
        return found

    def _gathered(
        self,
        owner: Int[np.ndarray, " n"],
        points: Points,
        which: Sequence[Index],
        coefficients: Float[np.ndarray, "m C"],
        degrees: tuple[int, ...],
    ) -> Float[np.ndarray, "a n C"]:
        """The same for patches of one shape, with the coefficients copied to every point."""
        slopes = 2 / (self.upper - self.lower)[owner]
        y = (points - (self.upper + self.lower)[owner] / 2) * slopes
        orders = [max(index[axis] for index in which) for axis in range(len(degrees))]
        along = [
            table([y[:, i], slopes[:, i], *[0.0] * (order - 1)][: order + 1], k)
            for i, (order, k) in enumerate(zip(orders, degrees, strict=True))
        ]
        count = int(np.prod([k + 1 for k in degrees]))
        copied = coefficients[self.starts[owner][:, None] + np.arange(count)]
        grid = copied.reshape(len(points), *(k + 1 for k in degrees), -1)
        found = np.empty((len(which), len(points), coefficients.shape[1]))
        first: dict[int, np.ndarray] = {}
        for out, (order, *others) in zip(found, which, strict=True):
            if order not in first:
                first[order] = np.einsum("kn,nk...->n...", along[0][order], grid)
            value = first[order]
            for each, more in zip(along[1:], others, strict=True):
                value = np.einsum("kn,nk...->n...", each[more], value)
            out[...] = value
        return found


def grouped(numbers: Int[np.ndarray, " n"]) -> Iterator[tuple[int, Int[np.ndarray, " k"]]]:
    """The positions of each number, number by number."""
    order = np.argsort(numbers, kind="stable")
    unique, first = np.unique(numbers[order], return_index=True)
    return zip(unique.tolist(), np.split(order, first[1:]), strict=True)
