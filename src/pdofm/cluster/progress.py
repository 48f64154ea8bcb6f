"""How many tasks of a cluster are done, in the terminal."""

from typing import Any


class Progress:
    """A bar that counts tasks. The workers report the end of each task as an event of a topic."""

    def __init__(self, client: Any, topic: str):
        self.topic = topic
        self._expected: set[int] = set()
        self._done: set[int] = set()  # a set, because a task whose worker is lost is done twice
        self._bar: Any = None
        client.subscribe_topic(topic, self._note)

    def expect(self, number: int) -> None:
        """Take note of a task that was submitted."""
        self._expected.add(number)

    def _note(self, event: tuple[float, Any]) -> None:
        self._done.add(event[1])
        self._update()

    def _update(self) -> None:
        if self._bar is not None:
            self._bar.update(0, completed=len(self._done), total=len(self._expected))

    def __enter__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("tasks on the cluster"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._bar.add_task("tasks")
        self._update()
        self._bar.start()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        self._bar = None
