"""Objects that know how much memory their arrays take, which schedulers ask for."""

from typing import Any

import numpy as np


class Sized:
    """An object whose size is that of all arrays in it."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(map(size_of, vars(self).values()))


def size_of(value: Any) -> int:
    """Bytes of the arrays in a value."""
    if isinstance(value, np.ndarray | bytes):
        return len(value) if isinstance(value, bytes) else value.nbytes
    if isinstance(value, Sized):
        return value.__sizeof__()
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    return 0
