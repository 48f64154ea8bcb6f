"""pyRFM: random features and least squares by QR, on one subdomain that covers the domain.

Its cosines do better here than its default, tanh, and a wider range of their weights than the default of (-1, 1).
"""

import importlib
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from math import pi
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pdofm.bench.contenders import Evaluate, Level

PACKAGES: tuple[str, ...] = ("pyrfm", "torch")
ENVIRONMENT: dict[str, str] = {"OMP_NUM_THREADS": "2"}

_DOMAINS: dict[str, Callable[[Any], Any]] = {
    "poisson-square": lambda rfm: rfm.Square2D([0.0, 0.0], [1.0, 1.0]),
    "poisson-lshape": lambda rfm: rfm.Square2D([0.0, 0.0], [1.0, 1.0]) - rfm.Square2D([0.5, 0.5], [0.5, 0.5]),
    "poisson-annulus": lambda rfm: rfm.Circle2D([0.0, 0.0], 1.0) - rfm.Circle2D([0.0, 0.0], 0.25),
    "poisson-cube": lambda rfm: rfm.Cube3D([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
}


def levels(problem: str) -> list[Level]:
    """From cheap to accurate."""
    if problem not in _DOMAINS:
        return []
    cube = problem == "poisson-cube"
    solve = partial(_solve, problem, spread=2.5) if cube else partial(_solve, problem, spread=4.0)
    sizes = (150, 300, 600, 800, 1000, 1500) if cube else (60, 100, 150, 200, 250, 300, 400)
    return [Level(f"{features} features", partial(solve, features)) for features in sizes]


def _solve(problem: str, features: int, spread: float) -> Evaluate:
    """Weights and biases are uniform in (-spread, spread), with the coordinates scaled to (-1, 1)."""
    rfm: Any = importlib.import_module("pyrfm")
    torch: Any = importlib.import_module("torch")
    domain = _DOMAINS[problem](rfm)
    axes = range(domain.dim)
    with redirect_stdout(io.StringIO()):  # it prints the residual
        model = rfm.RFMBase(dim=domain.dim, n_hidden=features, domain=domain, n_subdomains=1, rf=rfm.RFCos)
        for submodel in model.submodels.flat_data:
            submodel.weights *= spread
            submodel.biases *= spread
        inside = domain.in_sample((5 if domain.dim == 2 else 2) * features, with_boundary=False)
        boundary = domain.on_sample(3 * features // 2)
        laplacian = sum(model.features_second_derivative(inside, axis1=axis, axis2=axis).cat(dim=1) for axis in axes)
        matrix = rfm.concat_blocks([[-laplacian], [model.features(boundary).cat(dim=1)]])
        right_side = rfm.concat_blocks([[len(axes) * pi**2 * _sines(torch, inside)], [_sines(torch, boundary)]])
        model.compute(matrix, verbose=False).solve(right_side)

    def evaluate(points: Float[ndarray, "n d"]) -> Float[ndarray, " n"]:
        return np.asarray(model(torch.as_tensor(points)))[:, 0]

    return evaluate


def _sines(torch: Any, x: Any) -> Any:
    return torch.prod(torch.sin(pi * x), 1, keepdim=True)
