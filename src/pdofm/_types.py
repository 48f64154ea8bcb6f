"""Array types. Shapes are part of the signatures, and the tests check them at every call."""

import numpy as np
from jax import Array
from jaxtyping import Bool, Float

Point = Float[Array, " d"]
"""One point, as the functions of a problem and of features receive it."""

FeatureValues = Float[Array, " m"]
"""The values of all features at one point."""

Coefficients = Float[np.ndarray, "m C"]
"""The coefficients of a function of a feature space: one per feature and component of the unknowns."""

Points = Float[np.ndarray, "n d"]
"""Many points on the host, one per row."""

Normals = Float[np.ndarray, "n d"]
"""Outward normals at points, one per row."""

SpaceNormals = Float[np.ndarray, "n s"]
"""Normals at points, without a component in time."""

Mask = Bool[np.ndarray, " n"]

Matrix = Float[np.ndarray, "rows cols"]

Vector = Float[np.ndarray, " rows"]

Key = int | np.integer | Array
"""A seed: an integer, or a JAX random key."""
