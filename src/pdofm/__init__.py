"""Partial differential equations without a mesh, to near machine precision."""

import jax

jax.config.update(
    "jax_enable_x64", True
)  # before any array is made: least squares in float32 loses everything gained here

from pdofm import errors, metrics, zoo  # noqa: E402
from pdofm.conditions import Condition, Dirichlet, Initial, Neumann, Periodic, Robin  # noqa: E402
from pdofm.domain import Annulus, Ball, Box, Disk, Domain, Interval, Polygon, Shell, SpaceTime  # noqa: E402
from pdofm.features import Features, NetworkFeatures, RandomFeatures  # noqa: E402
from pdofm.lstsq import QR, SVD  # noqa: E402
from pdofm.methods import Linear, Newton, Picard  # noqa: E402
from pdofm.operators import div, dt, grad, hessian, laplacian, normal_derivative, partial  # noqa: E402
from pdofm.problem import Problem  # noqa: E402
from pdofm.solution import Solution  # noqa: E402
from pdofm.solve import solve  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "QR",
    "SVD",
    "Annulus",
    "Ball",
    "Box",
    "Condition",
    "Dirichlet",
    "Disk",
    "Domain",
    "Features",
    "Initial",
    "Interval",
    "Linear",
    "NetworkFeatures",
    "Neumann",
    "Newton",
    "Periodic",
    "Picard",
    "Polygon",
    "Problem",
    "RandomFeatures",
    "Robin",
    "Shell",
    "Solution",
    "SpaceTime",
    "div",
    "dt",
    "errors",
    "grad",
    "hessian",
    "laplacian",
    "metrics",
    "normal_derivative",
    "partial",
    "solve",
    "zoo",
]
