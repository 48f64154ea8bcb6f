"""What compiled code asks of a process: it is not kept without bound, and it does not survive a fork."""

import os

import jax

from pdofm.errors import SolveError

MOST_COMPILED = 250
"""Compiled functions after which all are forgotten before the next solve. Each takes about a megabyte and ten memory
maps, of which a process may have 65 530; a solve of a new equation compiles about ten."""

_COMPILED = "/jax/core/compile/backend_compile_duration"


class _Process:
    """The number of functions that were compiled since they were forgotten, and whether that was before a fork."""

    def __init__(self) -> None:
        self.compiled, self.has_compiled, self.is_forked = 0, False, False

    def note(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _COMPILED:
            self.compiled, self.has_compiled = self.compiled + 1, True

    def forked(self) -> None:
        self.is_forked = self.has_compiled


_process = _Process()
jax.monitoring.register_event_duration_secs_listener(_process.note)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)


def check_process() -> None:
    """Refuse to compute in a process that was forked after something was computed, which would wait forever; and forget
    compiled functions if there are very many."""
    if _process.is_forked:
        raise SolveError(
            "This process was forked from one that had solved something. The threads of JAX do not survive a fork, so "
            "that a solve would never end. Start processes afresh: multiprocessing.get_context('spawn'), "
            "ProcessPoolExecutor(mp_context=…), or pdofm.cluster.Processes(2)."
        )
    if _process.compiled > MOST_COMPILED:
        _process.compiled = 0
        jax.clear_caches()
