"""Jets, the derivatives of a function at points, and the rules that combine them.

A multi-index α counts derivatives per coordinate, ∂^α f = ∂₀^α₀ ∂₁^α₁ … f. A jet maps multi-indices to arrays of such
derivatives; an index that is missing stands for a derivative that is zero everywhere. The rules apply to NumPy arrays
and to JAX arrays.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product as combinations
from typing import Any

Index = tuple[int, ...]
"""A multi-index: the number of derivatives along each coordinate."""

Jet = Mapping[Index, Any]
"""From multi-indices to the derivatives at points."""


@lru_cache(maxsize=64)
def up_to(dim: int, order: int) -> tuple[Index, ...]:
    """All multi-indices up to an order, in ascending order."""
    found: list[Index] = [()]
    for _ in range(dim):  # axis by axis, so that no index above the order is ever listed
        found = [(*head, k) for head in found for k in range(order - sum(head) + 1)]
    return tuple(sorted(found, key=lambda index: (sum(index), index[::-1])))


@lru_cache(maxsize=256)
def closure(which: tuple[Index, ...]) -> tuple[Index, ...]:
    """All multi-indices that the derivatives `which` of a product or a composition depend on: those that are in no
    entry larger."""
    found = {below for index in which for below in combinations(*(range(k + 1) for k in index))}
    return tuple(sorted(found, key=lambda index: (sum(index), index[::-1])))


def highest_order(which: Iterable[Index]) -> int:
    """The largest order of the multi-indices; 0 if there are none."""
    return max((sum(index) for index in which), default=0)


def unit(dim: int, axis: int) -> Index:
    """The multi-index of the first derivative along an axis."""
    return tuple(int(i == axis) for i in range(dim))


@lru_cache(maxsize=4096)
def _splits(index: Index) -> tuple[tuple[int, Index, Index], ...]:
    """The terms of Leibniz' rule for ∂^α: all (binomial coefficient, β, α - β) with β ≤ α."""
    return tuple(
        (
            math.prod(math.comb(k, b) for k, b in zip(index, below, strict=True)),
            below,
            tuple(k - b for k, b in zip(index, below, strict=True)),
        )
        for below in combinations(*(range(k + 1) for k in index))
    )


def _sum_of_products(terms: Iterator[tuple[int, Any, Any]]) -> Any:
    """Σ n f g over the terms in which neither factor is missing; None if there is no such term."""
    total = None
    for count, f, g in terms:
        if f is None or g is None:
            continue
        each = f * g
        if count > 1:
            each *= count
        if total is None:
            total = each
        else:
            total += each
    return total


def product(f: Jet, g: Jet, which: Sequence[Index]) -> dict[Index, Any]:
    """The derivatives `which` of f g, by Leibniz' rule. The jets of f and g must cover the closure of `which`."""
    found = {}
    for index in which:
        total = _sum_of_products((count, f.get(below), g.get(rest)) for count, below, rest in _splits(index))
        if total is not None:
            found[index] = total
    return found


def composition(outer: Sequence[Any], inner: Jet, which: Sequence[Index]) -> dict[Index, Any]:
    """The derivatives `which` of f(g): `outer` holds f, f′, f″, … at the values of g, `inner` the jet of g.

    One derivative is carried out at a time, ∂^(β+eᵢ) f(g) = ∂^β [f′(g) ∂ᵢ g], and the product is expanded by Leibniz'
    rule, which leaves derivatives of f′(g) of lower order.
    """
    known: dict[tuple[int, Index], Any] = {}

    def derivative(depth: int, index: Index) -> Any:
        """∂^index of the derivative of f of order `depth`, at g."""
        if not any(index):
            return outer[depth]
        if (depth, index) not in known:
            axis = next(i for i, k in enumerate(index) if k > 0)
            rest = tuple(k - (i == axis) for i, k in enumerate(index))
            known[depth, index] = _sum_of_products(
                (count, derivative(depth + 1, below), inner.get(tuple(k + (i == axis) for i, k in enumerate(others))))
                for count, below, others in _splits(rest)
            )
        return known[depth, index]

    found = {index: derivative(0, index) for index in which}
    return {index: value for index, value in found.items() if value is not None}
