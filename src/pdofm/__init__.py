"""Partial differential equations without a mesh, to near machine precision."""

import jax

jax.config.update(
    "jax_enable_x64", True
)  # before any array is made: least squares in float32 loses everything gained here

from typing import TYPE_CHECKING  # noqa: E402

from pdofm import errors, metrics, zoo  # noqa: E402
from pdofm.adaptive.entry import solve  # noqa: E402
from pdofm.adaptive.policy import default_policy  # noqa: E402
from pdofm.adaptive.search import Search  # noqa: E402
from pdofm.calculus.operators import div, dt, grad, hessian, laplacian, normal_derivative, partial  # noqa: E402
from pdofm.discrete.defaults import default_features  # noqa: E402
from pdofm.domain import Annulus, Ball, Box, Disk, Domain, Interval, Part, Polygon, Shell, SpaceTime  # noqa: E402
from pdofm.features import (  # noqa: E402
    BoxPolynomials,
    Chebyshev,
    Concatenate,
    CornerFunctions,
    Features,
    Fourier,
    Functions,
    HardDirichlet,
    NetworkFeatures,
    PartitionOfUnity,
    RandomFeatures,
    StretchedPolynomials,
    TransNet,
    load,
    save,
)
from pdofm.numerics.lstsq import QR, SVD  # noqa: E402
from pdofm.output import plot  # noqa: E402
from pdofm.problem.conditions import Condition, Dirichlet, Initial, Neumann, Periodic, Robin  # noqa: E402
from pdofm.problem.integral import Mean  # noqa: E402
from pdofm.problem.problem import Problem  # noqa: E402
from pdofm.questions.eigenvalues import eigs  # noqa: E402
from pdofm.questions.modes import Mode, Modes  # noqa: E402
from pdofm.solving.factored import Solver, factor  # noqa: E402
from pdofm.solving.methods import Linear, Newton, Picard  # noqa: E402
from pdofm.solving.solution import Errors, Solution, Solutions, Stats  # noqa: E402
from pdofm.solving.verdict import Status, Verdict  # noqa: E402
from pdofm.training import losses  # noqa: E402
from pdofm.training.pretraining import Trained, pretrain  # noqa: E402
from pdofm.training.tuning import tune_scale  # noqa: E402
from pdofm.version import __version__  # noqa: E402

__all__ = [
    "QR",
    "SVD",
    "Annulus",
    "Ball",
    "Box",
    "BoxPolynomials",
    "Chebyshev",
    "Concatenate",
    "Condition",
    "CornerFunctions",
    "Dirichlet",
    "Disk",
    "Domain",
    "Errors",
    "Features",
    "Fourier",
    "Functions",
    "HardDirichlet",
    "Initial",
    "Interval",
    "Linear",
    "Mean",
    "Mode",
    "Modes",
    "NetworkFeatures",
    "Neumann",
    "Newton",
    "Part",
    "PartitionOfUnity",
    "Periodic",
    "Picard",
    "Polygon",
    "Problem",
    "RandomFeatures",
    "Robin",
    "Search",
    "Shell",
    "Solution",
    "Solutions",
    "Solver",
    "SpaceTime",
    "Stats",
    "Status",
    "StretchedPolynomials",
    "Trained",
    "TransNet",
    "Verdict",
    "__version__",
    "default_features",
    "default_policy",
    "div",
    "dt",
    "eigs",
    "errors",
    "factor",
    "grad",
    "hessian",
    "laplacian",
    "load",
    "losses",
    "metrics",
    "normal_derivative",
    "partial",
    "plot",
    "pretrain",
    "save",
    "solve",
    "tune_scale",
    "zoo",
]


_OTHER_WORDS = {
    "Circle": "Disk",
    "Cube": "Box",
    "Rectangle": "Box",
    "Sphere": "Ball",
    "Square": "Box",
    "divergence": "div",
    "gradient": "grad",
    "laplace": "laplacian",
    "time_derivative": "dt",
}
"""What other packages call some names of this one."""


if not TYPE_CHECKING:  # a checker of types would take every name for an existing one

    def __getattr__(name: str):
        """Raise the error for a name that does not exist, which offers the most similar one."""
        known = () if name.startswith("_") else __all__
        raise AttributeError(errors.misspelled("module 'pdofm'", name, known, _OTHER_WORDS))
