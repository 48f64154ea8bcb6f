"""The start of an iteration: what a user gives as `initial`, at points."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pdofm._types import Points
from pdofm.calculus.terms import Fields, Layout, joined
from pdofm.errors import SolveError


def start_values(initial: Any, layout: Layout, points: Points) -> Float[np.ndarray, "n C"]:
    """A function, functions by name, or a number at points; all components."""
    if isinstance(initial, Mapping):
        if initial.keys() != layout.offsets.keys():
            raise SolveError(
                f"initial has functions for {list(initial)}; expected one for each of {[*layout.offsets]}."
            )
        initial = Fields({name: initial[name] for name in layout.offsets})
    if not callable(initial):
        if isinstance(initial, str) or np.asarray(initial).dtype.kind not in "biufc":
            raise SolveError(f"initial is {initial!r:.80}; expected a solution, a number, or a function of the point.")
        number = np.full(layout.numbers, initial, dtype=np.complex128 if layout.is_complex else np.float64)
        return np.tile(np.asarray(layout.realified(jnp.asarray(number))), (len(points), 1))
    values = np.asarray(jax.vmap(lambda z: layout.realified(joined(initial(*layout.arguments(z)))))(points))
    if values.shape[1] != layout.components:
        raise SolveError(
            f"initial has {values.shape[1] // (1 + layout.is_complex)} values at a point; expected {layout.numbers}, "
            f"one for each of {', '.join(layout.names)}."
        )
    if not np.isfinite(values).all():
        raise SolveError("initial is not finite at some collocation points. Check the function there.")
    return values
