"""How rows are scaled, so that they weigh alike whatever the size of a patch, the degree of its polynomials and the
coefficients of the equation.

A polynomial of degree p in a box of side h has derivatives up to about p / h times its size, so a left side with the
symbol G is at most about

    S = Σ_α |G_α| Π (p / h)^α

times as large as the unknown: a residual divided by S is an error of the unknown. In a system the unknowns themselves
are measured so that the equations see them alike: the pressure of a flow counts h / (ν p) times its size.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Float

from pdofm.discrete.localterm import LocalTerm
from pdofm.discrete.materials import AnyCover, MaterialCover
from pdofm.discrete.stiffness import amplifications
from pdofm.problem.problem import Problem

SMALLEST_SHARE = 2.0**-6
"""Rows of the equation weigh 1 / r times more in a patch whose side is r times that of the domain, as in the L2 norm of
a residual in the plane, down to this r. Without it a solution that violates the equation a little in many small patches
would win; with it in the deepest patches at a corner, the others would hardly count."""

CUT_POINTS = 2.0
"""Points of the equation per polynomial in a patch that is cut by the boundary."""

FEATURE_POINTS = 2.0
"""Points of the equation per feature in a whole patch; polynomials alone have as many points as there are of them."""

USUAL_DEGREE = 10.0
"""Degree at which rows of the equation weigh alike with one region and with several."""


class Weighted:
    """The scales of the rows of a problem in the patches of a cover."""

    def __init__(self, problem: Problem, cover: AnyCover):
        self.problem, self.cover, self.patches = problem, cover, cover.patches
        self.layout = problem.layout
        self.rates = self.patches.degrees.clip(1) / (self.patches.upper - self.patches.lower)

    @property
    def components(self) -> int:
        """Number of scalar components of all unknowns together."""
        return self.layout.components

    def weights(self, terms: Sequence[LocalTerm]) -> Float[np.ndarray, "P C"]:
        """How much each unknown counts in each patch: as much as the equations see of it, beside the others."""
        found = np.zeros((len(self.patches), self.components))
        if self.components == 1:
            return found + 1.0
        for equation in terms:
            if equation.term.on is None:
                (sizes,) = equation.amplitudes(self.rates)
                shares = sizes / np.maximum(sizes.sum(axis=2, keepdims=True), 1e-300)
                np.maximum.at(found, equation.placed.patch, shares.max(axis=1))
        return np.where(found > 0, found, 1.0)

    def scales(self, term: LocalTerm, weights: Float[np.ndarray, "P C"]) -> Float[np.ndarray, "e k"]:
        """What makes a residual of a term an error of the unknowns; on an interface of those on the side that it sees
        most of."""
        amplitudes = list(zip(term.amplitudes(self.rates), term.sides(), strict=True))
        each = [np.sum(sizes / weights[patch][:, None], axis=2) for sizes, (patch, _) in amplitudes]
        sizes = term.averaged(np.max(each, axis=0))
        sizes = np.where(sizes > 0, sizes, 1.0)
        if term.term.on is None or term.is_flux:
            gains = [
                self.amplification[patch][:, None] * one for one, (patch, _) in zip(each, term.sides(), strict=True)
            ]
            return np.max(gains, axis=0) / sizes**2
        return 1 / sizes

    def row_scales(
        self, terms: Sequence[LocalTerm], weights: Float[np.ndarray, "P C"]
    ) -> list[Float[np.ndarray, "_ _"]]:
        """What the rows of terms are multiplied by."""
        return [
            term.term.weight
            * self.scales(term, weights)
            * (self._emphasised(term) if term.term.on is None else np.ones(len(term.target)))[:, None]
            for term in terms
        ]

    def _emphasised(self, equation: LocalTerm) -> Float[np.ndarray, " n"]:
        """What the rows of an equation are multiplied by because of the size of their patches.

        With several regions it follows the area that a point stands for. Then residuals are orthogonal, in the integral
        over a region, to what the solution can still do about them; so fluxes through its boundary add up, on which the
        values in a region of large conductivity depend.
        """
        patch = equation.placed.patch
        found = self.emphasis[patch]
        if not isinstance(self.cover, MaterialCover):
            return found
        lower, upper, degrees = (each[patch] for each in (self.patches.lower, self.patches.upper, self.patches.degrees))
        sines = np.sqrt(np.maximum(1 - ((2 * equation.placed.points - lower - upper) / (upper - lower)) ** 2, 0.0))
        areas = np.prod(sines * np.pi / 2 * degrees / USUAL_DEGREE / self.more[patch][:, None], axis=1)
        return found * np.sqrt(areas)

    @cached_property
    def more(self) -> Float[np.ndarray, " P"]:
        """Points of the equation along each axis of a patch, relative to those of a whole patch."""
        fraction = np.maximum(self.cover.fraction, 0.05)
        whole = np.where(self.patches.are_polynomials, 1.0, FEATURE_POINTS)
        return np.where(self.cover.whole, whole, CUT_POINTS / fraction) ** (1 / self.patches.degrees.shape[1])

    @cached_property
    def amplification(self) -> Float[np.ndarray, " P"]:
        """By how much residuals of the equation are amplified in each patch."""
        if not isinstance(self.cover, MaterialCover):
            return np.ones(len(self.patches))
        return amplifications(self.problem)[self.cover.region_of]

    @cached_property
    def shares(self) -> Float[np.ndarray, "P d"]:
        """The sides of patches relative to those of the domain."""
        domain = self.problem.domain
        return (self.patches.upper - self.patches.lower) / (domain.upper - domain.lower)

    @cached_property
    def importance(self) -> Float[np.ndarray, " P"]:
        """The sizes of patches relative to that of the domain, as far as errors in small patches matter less. With
        several regions they do not: around a point where regions meet, the smallest patches may act like a source."""
        if isinstance(self.cover, MaterialCover):
            return np.ones(len(self.patches))
        return np.exp(np.mean(np.log(self.shares), axis=1))

    @cached_property
    def emphasis(self) -> Float[np.ndarray, " P"]:
        """How much more the equation weighs in small patches; alike in all of them if it evolves in time."""
        if self.layout.has_time:
            return np.ones(len(self.patches))
        return 1 / np.maximum(np.exp(np.mean(np.log(self.shares), axis=1)), SMALLEST_SHARE)
