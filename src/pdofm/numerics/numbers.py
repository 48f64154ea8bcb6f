"""Numbers that users give, as arrays."""

from typing import Any

import numpy as np

from pdofm.errors import PdofmError


def as_numbers(value: Any, what: str, error: type[PdofmError]) -> np.ndarray:
    """An array of real numbers; an error that names it if it is something else."""
    try:
        found = np.asarray(value)
        if found.dtype.kind in "biuf":
            return found.astype(np.float64, copy=False)
    except (TypeError, ValueError):  # a list of lists of different lengths
        pass
    raise error(f"{what} must be an array of real numbers; got {value!r:.80}. Give lists of numbers, or a NumPy array.")
