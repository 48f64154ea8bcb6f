"""Types of arrays whose lengths have nothing to do with each other."""

import numpy as np
from jaxtyping import Bool, Float

Vector = Float[np.ndarray, " _"]
"""Numbers: times, sizes of components, weights."""

Points = Float[np.ndarray, "_ _"]
"""Points, or normals, one in each row."""

Mask = Bool[np.ndarray, " _"]
"""Which of several things are meant."""
