"""Processes on this machine, for independent tasks."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from pdofm.numerics.executor import Pool


class Processes(Pool):
    """Processes of one thread each, which end with this one; `prepare` is called in each of them at first."""

    def __init__(self, count: int, prepare: Callable[[], None] | None = None):
        self.count, self.prepare = count, prepare

    def each(self, function: Callable[[Any], Any], items: Sequence[Any], *, name: str) -> Iterator[tuple[int, Any]]:
        fresh = multiprocessing.get_context("spawn")  # the threads of JAX do not survive a fork
        with _one_thread(), ProcessPoolExecutor(self.count, fresh, start_worker, (self.prepare,)) as pool:
            waiting: dict[Future, int] = {pool.submit(function, item): i for i, item in enumerate(items)}
            try:
                for future in as_completed(waiting):
                    yield waiting[future], future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def start_worker(prepare: Callable[[], None] | None) -> None:
    """Prepare a process of the pool, and make it end when its parent process ends, even if that is killed; the pool
    itself does not ensure this."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
    if prepare is not None:
        prepare()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that are started in this context use one thread each; more would wait for each other."""
    settings = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    settings["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
