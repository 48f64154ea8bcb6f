"""dask.distributed as an executor: named tasks on the workers of a cluster that the user has started."""

import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pdofm.cluster.packing import pack
from pdofm.cluster.progress import Progress
from pdofm.cluster.tasks import received, run_task, this_process
from pdofm.errors import ClusterError
from pdofm.numerics.executor import Executor

NEEDED = "Clusters need dask.distributed. Install it with: pip install 'pdofm[cluster]'"

SLOTS_KNOWN = 2.0
"""Seconds for which the list of workers is taken to be current."""

LOOKED = 5.0
"""Seconds after which the workers are looked at while a task is waited for."""


def connect(address: str, timeout: float = 30.0) -> Any:
    """A client of the scheduler at an address such as ``tcp://host:8786``."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError(NEEDED) from error
    try:
        return Client(address, timeout=timeout)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No scheduler answers at {address!r}: {error}. Start one with 'dask scheduler', workers with 'dask worker "
            "ADDRESS --nthreads 1', and give the address that the scheduler prints, such as tcp://host:8786."
        ) from error


class Dask(Executor):
    """The workers of a dask cluster.

    Args:
        client: a `dask.distributed.Client`.
        shares: into how many shares rows of equations are divided. The result depends on it by rounding, and by it
            alone. By default it follows from the numbers of rows and features.
        progress: whether to show how many tasks are done; by default if standard error is a terminal.
        prepare: called in every process before its first task.
        patience: seconds to wait without any worker before giving up.
    """

    def __init__(
        self,
        client: Any,
        *,
        shares: int | None = None,
        progress: bool | None = None,
        prepare: Callable[[], None] | None = None,
        patience: float = 600.0,
    ):
        _check_client(client)
        if shares is not None and shares < 1:
            raise ClusterError(f"shares is {shares}; expected at least 1.")
        self.client, self.shares, self.patience = client, shares, patience
        self._prepare = None if prepare is None else pack(prepare, "prepare")
        self._token, self._submitted = uuid.uuid4().hex, 0
        self._slots: tuple[float, list[str]] = (-SLOTS_KNOWN, [])
        shown = sys.stderr.isatty() if progress is None else progress
        self._progress = Progress(client, f"pdofm-{self._token}") if shown else None

    def send(self, value: Any, what: str) -> Any:
        packed = pack(value, what)
        with warnings.catch_warnings(), self._explained(what):
            warnings.filterwarnings("ignore", message="Sending large graph")  # it is sent once, whatever its size
            return self.client.submit(received, packed, key=self._key("pdofm-send"), pure=False)

    def submit(self, function: Callable[..., Any], *arguments: Any, name: str, place: float | None = 0.0) -> Any:
        slots = [] if place is None else self._workers()
        with self._explained(name):
            key, number = self._key(name), self._submitted
            if self._progress is not None:
                self._progress.expect(number)
            return self.client.submit(
                run_task,
                function,
                self._prepare,
                None if self._progress is None else self._progress.topic,
                number,
                this_process(),
                *arguments,
                key=key,
                pure=False,
                # Earlier tasks first, so that results are combined before others are begun.
                priority=-number,
                workers=[slots[int((place or 0.0) * len(slots))]] if slots else None,
                allow_other_workers=bool(slots),
            )

    def result(self, handle: Any) -> Any:
        with self._explained(str(handle.key[0])), self._shown():
            try:
                return self._awaited(handle)
            except BaseException:
                self._cancel([handle])
                raise

    def _awaited(self, handle: Any) -> Any:
        """The result of a task, as long as there are workers that may find it."""
        from distributed import TimeoutError as NotYet

        seen = time.monotonic()
        while True:
            try:
                return handle.result(timeout=LOOKED)
            except NotYet:
                if handle.status != "pending":  # it has just ended, or raised such an error itself
                    return handle.result()
            if self.client.scheduler_info()["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen > self.patience:
                raise ClusterError(
                    f"The scheduler at {self.client.scheduler.address} has had no workers for {self.patience:g} s. "
                    "Start some, and repeat the call. A LocalCluster drops workers that need more than 15 s to start "
                    "again, unless 'distributed.deploy.lost-worker-timeout' is longer in the configuration of dask."
                )

    def each(self, function: Callable[[Any], Any], items: Sequence[Any], *, name: str) -> Iterator[tuple[int, Any]]:
        from distributed import as_completed

        packed = self.send(function, f"the function of {name!r}")
        handles = {
            self.submit(_call, packed, pack(item, f"item {i}"), name=name, place=None): i
            for i, item in enumerate(items)
        }
        try:
            with self._explained(name), self._shown():
                for handle in as_completed(list(handles)):
                    yield handles[handle], handle.result()
        finally:
            self._cancel([handle for handle in handles if handle.status == "pending"])

    def _key(self, name: str) -> tuple[str, int]:
        """A key that the dashboard shows as `name`, all tasks of one kind in one group."""
        self._submitted += 1
        return (f"{name}-{self._token}", self._submitted)

    def _workers(self) -> list[str]:
        """The address of the worker of each task slot."""
        now = time.monotonic()
        if now - self._slots[0] > SLOTS_KNOWN:
            with self._explained("the list of workers"):
                known = self.client.scheduler_info()["workers"]
            self._slots = now, [address for address in sorted(known) for _ in range(known[address]["nthreads"])]
        return self._slots[1]

    def _cancel(self, handles: Sequence[Any]) -> None:
        """Let go of tasks that are not needed any more."""
        if handles and self.client.status == "running":
            self.client.cancel(list(handles), force=True)

    @contextmanager
    def _shown(self) -> Iterator[None]:
        if self._progress is None:
            yield
        else:
            with self._progress:
                yield

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Errors of the cluster in words; those of the tasks themselves pass."""
        from distributed import CancelledError, KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            raise ClusterError(
                f"The task {what!r} was on several workers when these died, one after the other: {error}. Most often "
                "they ran out of memory: give workers more, or fewer threads each, and see their logs."
            ) from error
        except (CancelledError, CommClosedError, ClosedClientError) as error:
            address = getattr(self.client.scheduler, "address", "an unknown address")
            raise ClusterError(
                f"The scheduler at {address} was lost, or cancelled the task {what!r}, before the result was there "
                f"({type(error).__name__}). To resume, start a scheduler and workers again, make a new Client, and "
                "repeat the call: with the same shares it finds the same numbers. 'pdofm reproduce' with the same "
                "--out goes on where it stopped."
            ) from error


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _check_client(client: Any) -> None:
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError(NEEDED) from error
    if not isinstance(client, Client):
        kind = type(client).__name__
        hint = ""
        if isinstance(client, str):
            hint = f" Write cluster=dask.distributed.Client({client!r})."
        elif hasattr(client, "scheduler_address"):
            hint = f" Write cluster=dask.distributed.Client(cluster), as a {kind} has several clients."
        raise ClusterError(f"cluster= takes a dask.distributed.Client; got {kind}.{hint}")
    if client.asynchronous:
        raise ClusterError("cluster= takes a Client with asynchronous=False: pdofm waits for its results.")
    if client.status != "running":
        raise ClusterError(f"The Client is {client.status}. Make a new one.")
