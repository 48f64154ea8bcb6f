"""How much residuals in one region matter elsewhere.

A residual ε in a region of large conductivity k is a source of k ε. If values are given on the boundary of the region
it hardly matters; if not, the source leaves through the neighbours, and through a conductivity k₀ that raises the
solution by ε k / k₀. So residuals in a region count k / k₀ times, with k₀ the smallest conductivity on the best path to
where values are given.
"""

import heapq
from dataclasses import replace
from functools import lru_cache

import numpy as np

from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import Term
from pdofm.domain import Part
from pdofm.problem.interface import FluxJump
from pdofm.problem.problem import Problem

PROBES = 8
"""Points of an interface at which the coefficients of fluxes are looked at."""


def flux_coefficients(problem: Problem, term: Term, points: int = PROBES) -> tuple[float, float]:
    """How large the fluxes on the two sides of an interface are per derivative of the unknowns."""
    assert isinstance(term.on, Part)
    dim, space_dim = problem.domain.dim, problem.domain.dim - problem.layout.has_time
    at, normals = term.on.sample(points)
    symbol = symbol_of(term.lhs, problem.layout_of(term), dim, space_dim)
    found = symbol.linearise(at, normals[:, :space_dim])
    if found is None:
        return 0.0, 0.0
    first = [i for i, index in enumerate(found.indices) if sum(index) == 1]
    sizes = np.mean(np.linalg.norm(found.coefficients[:, :, first], axis=(1, 2)), axis=0)
    one, other = np.split(sizes, 2)
    return float(np.max(one, initial=0.0)), float(np.max(other, initial=0.0))


@lru_cache(maxsize=32)
def amplifications(problem: Problem) -> np.ndarray:
    """By how much residuals in each region are amplified; ones if there is only one region."""
    regions = problem.regions
    if regions is None:
        return np.ones(1)
    conductivity: dict[str, float] = {}
    neighbours: dict[str, set[str]] = {name: set() for name in regions.names}
    for term in problem.terms:
        if term.pair is not None and isinstance(term.lhs, FluxJump):
            for name, other, k in zip(term.pair, term.pair[::-1], flux_coefficients(problem, term), strict=True):
                neighbours[name].add(other)
                conductivity[name] = max(conductivity.get(name, 0.0), k)
    best = _widest(conductivity, neighbours, _pinned(problem))
    return np.array(
        [max(1.0, conductivity[name] / best[name]) if best.get(name, 0.0) > 0 else 1.0 for name in regions.names]
    )


def amplified(problem: Problem, terms: list[Term]) -> list[Term]:
    """Terms with weights for dense rows: the equation of a region, and the flux that leaves it, are amplified."""
    if problem.regions is None:
        return terms
    factors = dict(zip(problem.regions.names, amplifications(problem).tolist(), strict=True))

    def factor(term: Term) -> float:
        if term.pair is not None and isinstance(term.lhs, FluxJump):
            return max(factors[name] for name in term.pair)
        return factors[term.region] if term.region is not None and term.on is None else 1.0

    return [replace(term, weight=factor(term) * term.weight) for term in terms]


def _pinned(problem: Problem) -> set[str]:
    """The regions in which a condition sees the values of the unknowns."""
    dim, space_dim = problem.domain.dim, problem.domain.dim - problem.layout.has_time
    found = set()
    for term in problem.terms:
        if term.region is not None and term.on is not None and term.region not in found:
            at, normals = term.on.sample(PROBES) if isinstance(term.on, Part) else (np.asarray(term.on)[:PROBES], None)
            normals = np.zeros((len(at), space_dim)) if normals is None else normals[:, :space_dim]
            seen = symbol_of(term.lhs, problem.layout, dim, space_dim).linearise(at, normals)
            zeroth = [] if seen is None else [i for i, index in enumerate(seen.indices) if sum(index) == 0]
            if seen is not None and np.any(seen.coefficients[:, :, zeroth] != 0):
                found.add(term.region)
    return found


def _widest(conductivity: dict[str, float], neighbours: dict[str, set[str]], starts: set[str]) -> dict[str, float]:
    """The smallest conductivity on the best path from each region to one of the starts."""
    best: dict[str, float] = {}
    heap = [(-conductivity.get(name, 0.0), name) for name in starts]
    heapq.heapify(heap)
    while heap:
        width, name = heapq.heappop(heap)
        if name in best:
            continue
        best[name] = -width
        for other in neighbours[name]:
            if other not in best:
                heapq.heappush(heap, (-min(-width, conductivity.get(other, 0.0)), other))
    return best
