"""What runs on a worker around every task."""

import os
import socket
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pdofm.cluster.packing import Packed


def run_task(
    function: Callable[..., Any],
    prepare: Packed | None,
    topic: str | None,
    number: int,
    home: str,
    *arguments: Any,
) -> Any:
    """``function(*arguments)`` with packed values unpacked. Its end is an event of the `topic`; `home` is the process
    that the client lives in."""
    settle(home)
    if prepare is not None:
        _prepare(prepare.content)
    found = function(*(each.value if isinstance(each, Packed) else each for each in arguments))
    if topic is not None:
        from distributed import get_worker

        get_worker().log_event(topic, number)
    return found


def this_process() -> str:
    """A name of this process that no other one has, here or on another machine."""
    return f"{socket.gethostname()}:{os.getpid()}"


@lru_cache(maxsize=1)
def settle(home: str) -> None:
    """Let this process use one thread of BLAS per task, as a worker has a task for each of its threads. More would wait
    for each other, and sums would depend on their number. The process of the user's session is left alone."""
    if this_process() == home:
        return
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="blas")
    # Read when JAX starts, which is before the first task.
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"


@lru_cache(maxsize=8)
def _prepare(content: bytes) -> None:
    Packed(content).value()


def received(value: Packed) -> Packed:
    """A value that was sent, as the result of a task: if the worker that has it is lost, it is sent again."""
    return value
