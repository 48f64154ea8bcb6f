"""The start of an iteration: what a user gives as `initial`, at points."""

from collections.abc import Mapping
from typing import Any

import jax
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
        return np.full((len(points), layout.components), float(initial))
    values = np.asarray(jax.vmap(lambda z: joined(initial(*layout.arguments(z))))(points))
    if values.shape[1] != layout.components:
        raise SolveError(
            f"initial has {values.shape[1]} values at a point; expected {layout.components}, one for each of "
            f"{', '.join(layout.component_names)}."
        )
    if not np.isfinite(values).all():
        raise SolveError("initial is not finite at some collocation points. Check the function there.")
    return values
