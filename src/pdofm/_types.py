"""Array types: shapes are part of the signature and are checked while testing."""

import numpy as np
from jax import Array
from jaxtyping import Bool, Float

Point = Float[Array, " d"]
"""One point, as user functions see it."""

Scalar = Float[Array, ""]

FeatureValues = Float[Array, " m"]

Points = Float[np.ndarray, "n d"]
"""Many points on the host, one a row."""

Normals = Float[np.ndarray, "n d"]

SpaceNormals = Float[np.ndarray, "n s"]
"""Normals at points, without a component in time."""

Mask = Bool[np.ndarray, " n"]

Matrix = Float[np.ndarray, "rows cols"]

Vector = Float[np.ndarray, " rows"]

Key = int | np.integer | Array
"""A seed: an integer, or a JAX random key."""
