"""Optimisers of optax, which is imported where it is used: `import pdofm` does not wait for it."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from pdofm.errors import FeaturesError

Optimiser = Any
"""An `optax.GradientTransformation`."""


@cache
def default_optimiser() -> Optimiser:
    """Adam with a step size of 1e-4: one object, so that runs share their compiled steps."""
    import optax

    return optax.adam(1e-4)


def check_optimiser(optimiser: Optimiser, resample: bool) -> None:
    """Refuse what is not an optimiser, and one that compares losses if the points change from step to step."""
    import optax

    if not isinstance(optimiser, optax.GradientTransformation):
        raise FeaturesError(
            f"optimiser must be one of optax, such as optax.adam(1e-3); got {type(optimiser).__name__}."
        )
    if resample and _searches_a_line(optimiser):
        raise FeaturesError(
            "This optimiser searches along a line and compares losses of several steps, which needs the same points in "
            "all of them. Use resample=False."
        )


def _searches_a_line(optimiser: Optimiser) -> bool:
    """Whether the optimiser evaluates the loss by itself."""
    import optax

    if not isinstance(optimiser, optax.GradientTransformationExtraArgs):
        return False
    some = jnp.zeros(1)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes types
        state = optimiser.init(some)
        try:
            optimiser.update(some, state, some)
        except TypeError:  # value, grad or value_fn is missing
            return True
    return False
