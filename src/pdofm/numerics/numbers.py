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


def as_number(
    value: Any, what: str, error: type[PdofmError], *, above: float = -np.inf, least: float = -np.inf
) -> float:
    """A finite number, larger than `above` and not below `least`; an error that names it if it is something else."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if is_number and value > above and value >= least and abs(value) < np.inf:  # no comparison with NaN holds
        return float(value)
    bound = "a number" if above == least else f"above {above:g}" if above > least else f"at least {least:g}"
    raise error(f"{what} must be {bound}, and finite; got {value!r:.80}.")


def as_count(value: Any, what: str, error: type[PdofmError], *, most: int = 10**8) -> int:
    """An integer from 1 to `most`; an error that names it if it is something else."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and 1 <= value <= most:
        return int(value)
    raise error(f"{what} must be an integer from 1 to {most}; got {value!r:.80}.")
