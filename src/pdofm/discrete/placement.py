"""Where the points of a problem are, without the points: every share of them can be placed by itself."""

from dataclasses import dataclass, replace

import numpy as np

from pdofm.calculus.terms import Term
from pdofm.discrete.collocate import Block, collocate, joined
from pdofm.features import Features
from pdofm.numerics.executor import Share, shares_for
from pdofm.problem.problem import Problem

HELD_OUT_SHARE = 4096
"""Points of a share of those that are not fitted, at most."""


@dataclass(frozen=True, eq=False)
class Placement:
    """The collocation points of a problem, in shares: which points there are depends on the number of shares only.

    Attributes:
        interior, boundary: how many points inside, and on all parts with conditions together.
        shares: into how many shares they are divided.
        equation: what stands in place of the equation, if anything does.
    """

    problem: Problem
    features: Features
    interior: int
    boundary: int
    sampling: str
    seed: int
    shares: int = 1
    equation: Term | None = None

    def blocks(self, share: Share) -> list[Block]:
        """The terms at the points of a share; the equation comes first."""
        options = {"features": self.features, "sampling": self.sampling, "key": self.seed}
        found = collocate(self.problem, self.interior, self.boundary, share=share, **options)
        return found if self.equation is None else [replace(found[0], term=self.equation), *found[1:]]

    def all_blocks(self) -> list[Block]:
        """The terms at all points."""
        return joined([self.blocks(Share(number, self.shares)) for number in range(self.shares)])

    def few(self, interior: int, boundary: int) -> "Placement":
        """At most so many points, in one share."""
        return replace(
            self,
            interior=min(self.interior, interior),
            boundary=min(self.boundary, boundary),
            sampling="sobol",
            shares=1,
        )


def fitted(
    problem: Problem,
    features: Features,
    counts: tuple[int, int],
    sampling: str,
    seed: int,
    shares: int | None = None,
) -> Placement:
    """The points that are fitted, in a number of shares that follows from the numbers of points and unknowns unless it
    is given."""
    interior, boundary = counts
    components = problem.layout.components
    if shares is None and _is_count(interior) and _is_count(boundary):
        shares = shares_for((interior + boundary) * components, features.size * components)
    shares = min(shares or 1, max(interior, 1)) if _is_count(interior) else 1
    return Placement(problem, features, interior, boundary, sampling, seed, shares)


def held_out(problem: Problem, features: Features, counts: tuple[int, int], seed: int) -> Placement:
    """Points that are not fitted."""
    shares = max(1, sum(counts) // HELD_OUT_SHARE)
    return Placement(problem, features, *counts, "random", seed, min(shares, counts[0]))


def _is_count(value: object) -> bool:
    """Whether a number of points is one; what is not is refused where the points are placed."""
    return isinstance(value, int | np.integer)
