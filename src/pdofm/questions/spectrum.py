"""Eigenvalues in one space, before and after refinement."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pdofm.questions.krylov import Ritz, second_shift, two_sided
from pdofm.questions.pencil import DenseShifted, Pencil, Shifted
from pdofm.questions.spaces import Space


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues that were found in a space, and those of them whose functions satisfy the equation."""

    space: Space
    shifted: Shifted
    shift: Any
    found: Ritz
    ritz: Ritz
    seed: int

    @property
    def pencil(self) -> Pencil:
        return self.shifted.pencil

    @property
    def is_two_sided(self) -> bool:
        """Whether left eigenvectors refine the eigenvalues. Coefficients of dependent features are large, and so are
        rounding errors of what is computed from them."""
        return isinstance(self.shifted, DenseShifted) and self.shifted.has_full_rank

    @cached_property
    def refined(self) -> Ritz:
        """The eigenvalues with fewer rounding errors."""
        if isinstance(self.shifted, DenseShifted) and self.is_two_sided:
            return two_sided(self.shifted, self.shift, self.ritz, self.seed)
        return second_shift(self.pencil, self.ritz)
