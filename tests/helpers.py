"""What several test files need."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of the functions that JAX compiles, or reads from its cache of compiled code, in the meantime."""
    found: list[str] = []

    def listen(event: str, seconds: float, **details) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(details.get("fun_name", "unnamed"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
