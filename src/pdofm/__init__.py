"""Partial differential equations without a mesh, to near machine precision."""

import jax

jax.config.update(
    "jax_enable_x64", True
)  # before any array is made: least squares in float32 loses everything gained here

from typing import TYPE_CHECKING  # noqa: E402

from pdofm import cluster, errors, metrics, zoo  # noqa: E402
from pdofm.adaptive.entry import solve  # noqa: E402
from pdofm.adaptive.policy import default_policy  # noqa: E402
from pdofm.adaptive.search import Search  # noqa: E402
from pdofm.arguments import explained  # noqa: E402
from pdofm.calculus.layers import PML  # noqa: E402
from pdofm.calculus.operators import div, dt, grad, hessian, laplacian, normal_derivative, partial  # noqa: E402
from pdofm.discrete.defaults import default_features  # noqa: E402
from pdofm.domain import (  # noqa: E402
    Annulus,
    Ball,
    Box,
    Cone,
    Curve,
    Cylinder,
    Disk,
    Domain,
    Ellipse,
    Extrusion,
    Implicit,
    Interval,
    Mesh,
    Part,
    Polygon,
    Regions,
    Revolution,
    Shell,
    SpaceTime,
    Torus,
    read_geojson,
    read_svg,
)
from pdofm.families.family import Family  # noqa: E402
from pdofm.families.learning import learn  # noqa: E402
from pdofm.features import (  # noqa: E402
    BoreFunctions,
    BoxFeatures,
    BoxPolynomials,
    Chebyshev,
    Combined,
    Concatenate,
    CornerFunctions,
    EdgeFunctions,
    Features,
    Fourier,
    Functions,
    HardDirichlet,
    HarmonicPolynomials,
    HoleFunctions,
    NetworkFeatures,
    PartitionOfUnity,
    RandomFeatures,
    RegionFeatures,
    SparsePolynomials,
    StretchedPolynomials,
    TransNet,
)
from pdofm.marching.evolution import Evolution  # noqa: E402
from pdofm.marching.march import march  # noqa: E402
from pdofm.numerics.lstsq import QR, SVD  # noqa: E402
from pdofm.output import plot  # noqa: E402
from pdofm.problem.conditions import Condition, Dirichlet, Initial, Neumann, Periodic, Robin  # noqa: E402
from pdofm.problem.integral import Mean  # noqa: E402
from pdofm.problem.interface import Interface  # noqa: E402
from pdofm.problem.problem import Problem  # noqa: E402
from pdofm.problem.unknown import Data, Field, Number  # noqa: E402
from pdofm.questions.eigenvalues import eigs  # noqa: E402
from pdofm.questions.modes import Mode, Modes  # noqa: E402
from pdofm.questions.table import Table  # noqa: E402
from pdofm.solving.factored import Solver, factor  # noqa: E402
from pdofm.solving.files import load, save  # noqa: E402
from pdofm.solving.methods import Linear, Newton, Picard  # noqa: E402
from pdofm.solving.solution import Solution, Solutions  # noqa: E402
from pdofm.solving.stats import Errors, Stats  # noqa: E402
from pdofm.solving.verdict import Status, Verdict  # noqa: E402
from pdofm.training import losses  # noqa: E402
from pdofm.training.pretraining import Trained, pretrain  # noqa: E402
from pdofm.training.tuning import tune_scale  # noqa: E402
from pdofm.version import __version__  # noqa: E402

__all__ = [
    "PML",
    "QR",
    "SVD",
    "Annulus",
    "Ball",
    "BoreFunctions",
    "Box",
    "BoxFeatures",
    "BoxPolynomials",
    "Chebyshev",
    "Combined",
    "Concatenate",
    "Condition",
    "Cone",
    "CornerFunctions",
    "Curve",
    "Cylinder",
    "Data",
    "Dirichlet",
    "Disk",
    "Domain",
    "EdgeFunctions",
    "Ellipse",
    "Errors",
    "Evolution",
    "Extrusion",
    "Family",
    "Features",
    "Field",
    "Fourier",
    "Functions",
    "HardDirichlet",
    "HarmonicPolynomials",
    "HoleFunctions",
    "Implicit",
    "Initial",
    "Interface",
    "Interval",
    "Linear",
    "Mean",
    "Mesh",
    "Mode",
    "Modes",
    "NetworkFeatures",
    "Neumann",
    "Newton",
    "Number",
    "Part",
    "PartitionOfUnity",
    "Periodic",
    "Picard",
    "Polygon",
    "Problem",
    "RandomFeatures",
    "RegionFeatures",
    "Regions",
    "Revolution",
    "Robin",
    "Search",
    "Shell",
    "Solution",
    "Solutions",
    "Solver",
    "SpaceTime",
    "SparsePolynomials",
    "Stats",
    "Status",
    "StretchedPolynomials",
    "Table",
    "Torus",
    "Trained",
    "TransNet",
    "Verdict",
    "__version__",
    "cluster",
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
    "learn",
    "load",
    "losses",
    "march",
    "metrics",
    "normal_derivative",
    "partial",
    "plot",
    "pretrain",
    "read_geojson",
    "read_svg",
    "save",
    "solve",
    "tune_scale",
    "zoo",
]


for _each in [globals()[name] for name in __all__]:
    if isinstance(_each, type) and "__init__" in vars(_each) and not issubclass(_each, BaseException):
        explained(_each)


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
