"""A progress bar with the time that is reached."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pdofm.domain import SpaceTime


@dataclass(frozen=True)
class Progress:
    """Shows how far a march has come, if that is wanted and standard error is a terminal."""

    wanted: bool

    @contextmanager
    def run(self, number: int, domain: SpaceTime) -> Iterator[Callable[[float], None]]:
        """A bar for one run; the function that it yields takes the time reached."""
        if not (self.wanted and sys.stderr.isatty()):
            yield lambda time: None
            return
        from rich.console import Console
        from rich.progress import Progress as Bars

        with Bars(console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(f"run {number + 1}", total=domain.t1 - domain.t0)

            def show(time: float) -> None:
                bars.update(task, completed=time - domain.t0, description=f"run {number + 1}, t = {time:.4g}")

            yield show
