"""Least squares by blocks, in parts: groups of leaves are eliminated by tasks of an executor, and what is left of them
here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdofm._types import Vector
from pdofm.numerics.blocks import BlockQR, Front
from pdofm.numerics.executor import Executor
from pdofm.numerics.sized import Sized
from pdofm.numerics.steps import Matrix


class Part(BlockQR):
    """Some of the leaves, eliminated and merged as far as their links lead to each other."""

    def _finish(self) -> None:
        """Nothing: the links to other parts are not known yet."""

    def projected(self, rights: Sequence[Matrix]) -> "Projections":
        """Other right sides, one array per leaf, as far as the part knows what to do with them."""
        tops, remains = self._projected(rights, {})
        return Projections(tops, [remains[number] for number in self._unmerged])

    def completed(self, found: "Projections", links: dict[int, Matrix]) -> list[Matrix]:
        """The unknowns of the leaves for other right sides, from the values of the links to other parts."""
        return self._substituted(found.tops, self._dependent, dict(links))

    def substituted(self, links: dict[int, Matrix]) -> list[Matrix]:
        """The unknowns of the leaves, from the values of the links to other parts."""
        return self._substituted(self._tops, self._dependent, dict(links))

    def homogeneous(self, links: dict[int, Matrix], count: int) -> list[Matrix]:
        """The same with right sides of zero, for `count` sets of values."""
        nothing = [np.zeros((len(node.triangle), count)) for node in self._nodes]
        return self._substituted(nothing, self._dependent, dict(links))


@dataclass(frozen=True, eq=False)
class Projections(Sized):
    """What of right sides belongs to the steps of a part, and what is left of them at its fronts."""

    tops: list[Matrix]
    rests: list[Matrix]


def rests_of(found: Projections) -> list[Matrix]:
    """What is left at the fronts."""
    return found.rests


@dataclass(frozen=True, eq=False)
class Summary(Sized):
    """What is known of a part where it is not."""

    leaves: int
    fronts: list[Front]
    rank: int
    columns: int
    condition: float
    largest_front: int
    nbytes: int


def summary(part: Part) -> Summary:
    """What is to be known of a part elsewhere."""
    return Summary(part.leaves, part.fronts, part.rank, part.columns, part.condition, part.largest_front, part.nbytes)


class SharedQR(BlockQR):
    """A block least-squares problem whose leaves are in `parts`, handles of an executor."""

    def __init__(self, executor: Executor, parts: Sequence[Any], links: Sequence[int], *, keep: bool = False):
        self._executor, self._parts = executor, parts
        known = [self._each(summary, number, "pdofm-front") for number in range(len(parts))]
        self._summaries: list[Summary] = [executor.result(each) for each in known]
        super().__init__([], links, keep=keep, fronts=[front for each in self._summaries for front in each.fronts])
        self.rank += sum(each.rank for each in self._summaries)
        self.columns += sum(each.columns for each in self._summaries)
        self.condition = max([self.condition, *(each.condition for each in self._summaries)])
        self.largest_front = max([self.largest_front, *(each.largest_front for each in self._summaries)])

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(each.nbytes for each in self._summaries)

    def _each(self, function: Any, number: int, name: str, *arguments: Any) -> Any:
        place = number / len(self._parts)
        return self._executor.submit(function, self._parts[number], *arguments, name=name, place=place)

    def _around(self, number: int, links: dict[int, Matrix]) -> dict[int, Matrix]:
        """The values of the links that a part has to others."""
        own = {link for front in self._summaries[number].fronts for link in front.links}
        return {link: links[link] for link in sorted(own & links.keys())}

    def _finish(self) -> None:
        links: dict[int, Matrix] = {}
        self._substituted(self._tops, self._dependent, links)
        self._tops, self.fronts = [], []
        found = [
            self._each(Part.substituted, number, "pdofm-substitute", self._around(number, links))
            for number in range(len(self._parts))
        ]
        self.solution = [leaf for each in found for leaf in self._executor.result(each)]

    def free(self, links: dict[int, Matrix] | None = None) -> tuple[list[Matrix], Vector]:
        numbers, links = range(len(self._parts)), {} if links is None else links
        within = [self._executor.result(self._each(Part.free, k, "pdofm-free")) for k in numbers]
        _, own = super().free(links)
        across = [
            self._executor.result(self._each(Part.homogeneous, k, "pdofm-free", self._around(k, links), len(own)))
            for k in numbers
        ]
        columns = []
        for k in numbers:
            for leaf, mine in enumerate(across[k]):
                empty = [np.zeros((len(mine), len(residuals))) for _, residuals in within]
                empty[k] = within[k][0][leaf]
                columns.append(np.concatenate([mine, *empty], axis=1))
        return columns, np.concatenate([own, *(residuals for _, residuals in within)])

    def solve(self, rights: Sequence[Matrix]) -> list[Matrix]:
        numbers, ends = range(len(self._parts)), np.cumsum([each.leaves for each in self._summaries]).tolist()
        given = [list(rights[end - each.leaves : end]) for end, each in zip(ends, self._summaries, strict=True)]
        found = [self._each(Part.projected, k, "pdofm-project", given[k]) for k in numbers]
        rests = [self._executor.submit(rests_of, each, name="pdofm-project", place=0.0) for each in found]
        remains = dict(enumerate(rest for each in rests for rest in self._executor.result(each)))
        tops, _ = self._projected([], remains)
        links: dict[int, Matrix] = {}
        self._substituted(tops, self._dependent, links)
        done = [self._each(Part.completed, k, "pdofm-substitute", found[k], self._around(k, links)) for k in numbers]
        return [leaf for each in done for leaf in self._executor.result(each)]
