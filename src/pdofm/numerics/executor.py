"""Where work is done: in this process, in others, or on a cluster.

A computation states what its tasks are and on which results of each other they depend. An executor runs them. The
tasks, and the order in which their results are combined, never depend on the executor or on the number of its workers,
so that all executors find the same numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Share:
    """One of `count` equal parts of some work."""

    number: int
    count: int

    def of(self, n: int) -> slice:
        """Which of n things belong to this share. The shares of all numbers contain every one of them once."""
        return slice(n * self.number // self.count, min(n * (self.number + 1) // self.count, n))

    def size(self, n: int) -> int:
        """How many of n things belong to this share."""
        which = self.of(n)
        return which.stop - which.start

    def among(self, most: int) -> "Share":
        """The same share where only the first `most` have anything, at least one of them; nothing for the others."""
        count = min(self.count, max(most, 1))
        return Share(min(self.number, count), count)


WHOLE = Share(0, 1)
"""All of it."""


class Pool(ABC):
    """Runs independent tasks."""

    @abstractmethod
    def each(self, function: Callable[[Any], Any], items: Sequence[Any], *, name: str) -> Iterator[tuple[int, Any]]:
        """``function(item)`` of each item, with the number of the item, as the results come in; `name` is what such a
        task is called where tasks are shown."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], *, name: str = "pdofm-map") -> list[Any]:
        """``function(item)`` of each item, in the order of the items."""
        found = dict(self.each(function, items, name=name))
        return [found[i] for i in range(len(items))]


class Executor(Pool):
    """Runs tasks that depend on results of each other.

    What `send` and `submit` return stands for a value that may be elsewhere. It can be an argument of other tasks, and
    `result` brings the value here. A value is kept as long as something refers to what stands for it.

    Attributes:
        shares: into how many shares rows of equations are divided; None leaves it to `shares_for`.
    """

    shares: int | None = None

    @abstractmethod
    def send(self, value: Any, what: str) -> Any:
        """A value that many tasks take as an argument, sent once to where it is needed; `what` names it in errors."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any, name: str, place: float = 0.0) -> Any:
        """``function(*arguments)``. Tasks whose `place`, in [0, 1), is near run on the same worker if possible: that
        saves sending results from one to the other."""

    @abstractmethod
    def result(self, handle: Any) -> Any:
        """The value that a handle stands for, when it is known."""

    def tree(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        combine: Callable[[Any, Any], Any],
        count: int,
        *,
        name: str,
    ) -> Any:
        """``function(*arguments, share)`` of `count` shares, combined two by two: neighbours, then neighbouring pairs,
        and so on. Returns a handle."""

        # Depth first: results are combined as soon as possible, so that few of them exist at the same time.
        def build(first: int, end: int) -> Any:
            place = first / count
            if end - first == 1:
                return self.submit(function, *arguments, Share(first, count), name=name, place=place)
            middle = (first + end) // 2
            halves = build(first, middle), build(middle, end)
            return self.submit(combine, *halves, name=f"{name}-combine", place=place)

        return build(0, count)


class Serial(Executor):
    """Runs everything in this process, one task after the other."""

    def __init__(self, *, shares: int | None = None):
        self.shares = shares

    def each(self, function: Callable[[Any], Any], items: Sequence[Any], *, name: str) -> Iterator[tuple[int, Any]]:
        return enumerate(map(function, items))

    def send(self, value: Any, what: str) -> Any:
        return value

    def submit(self, function: Callable[..., Any], *arguments: Any, name: str, place: float = 0.0) -> Any:
        return function(*arguments)

    def result(self, handle: Any) -> Any:
        return handle


def executor_of(cluster: Any, **options: Any) -> Executor:
    """The executor that a user means by `cluster`: a client of dask.distributed, or an executor itself."""
    if isinstance(cluster, Executor):
        return cluster
    from pdofm.cluster.client import Dask  # dask is imported only by those who use it

    return Dask(cluster, **options)


ROWS_PER_COLUMN = 16
"""Rows of a share, per column of the matrix. A share is then reduced with 32 m³ operations, and two shares are combined
with 2/3 m³: the tree costs a few percent."""


def shares_for(rows: int, columns: int) -> int:
    """The number of shares of a system with so many rows: as many as have enough rows to be worth a task."""
    return max(1, rows // (ROWS_PER_COLUMN * (columns + 1)))
