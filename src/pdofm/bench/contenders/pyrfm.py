"""pyRFM: random features and least squares by QR, on a single subdomain.

Cosines do better here than tanh, which is the default, and so does a wider range of weights than the default (-1, 1).
The flow is computed by a Newton iteration with the QR of pyRFM, since its own Newton method factors a matrix and
searches along the step in every iteration.
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

from pdofm.bench.contenders import LAST_STEP, NEWTON_STEPS, VISCOSITY, Evaluate, Level, kovasznay_velocity

PACKAGES: tuple[str, ...] = ("pyrfm", "torch")
ENVIRONMENT: dict[str, str] = {"OMP_NUM_THREADS": "2"}

_DOMAINS: dict[str, Callable[[Any], Any]] = {
    "poisson-square": lambda rfm: rfm.Square2D([0.0, 0.0], [1.0, 1.0]),
    "poisson-lshape": lambda rfm: rfm.Square2D([0.0, 0.0], [1.0, 1.0]) - rfm.Square2D([0.5, 0.5], [0.5, 0.5]),
    "poisson-annulus": lambda rfm: rfm.Circle2D([0.0, 0.0], 1.0) - rfm.Circle2D([0.0, 0.0], 0.25),
    "poisson-cube": lambda rfm: rfm.Cube3D([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
}


def levels(problem: str) -> list[Level]:
    """Numbers of features, from cheap to accurate."""
    if problem == "kovasznay":
        return [Level(f"{n} features", partial(_kovasznay, n)) for n in (100, 150, 200, 250, 280, 320, 400)]
    if problem not in _DOMAINS:
        return []
    cube = problem == "poisson-cube"
    solve = partial(_solve, problem, spread=2.5) if cube else partial(_solve, problem, spread=4.0)
    sizes = (150, 300, 600, 800, 1000, 1500) if cube else (60, 100, 150, 200, 250, 300, 400)
    return [Level(f"{features} features", partial(solve, features)) for features in sizes]


def _model(rfm: Any, domain: Any, features: int, *spreads: float) -> Any:
    """A model whose weights are uniform in (-spread, spread), with a spread for all axes or one for each; coordinates
    are scaled to (-1, 1). Biases have the smallest spread."""
    torch: Any = importlib.import_module("torch")
    model = rfm.RFMBase(dim=domain.dim, n_hidden=features, domain=domain, n_subdomains=1, rf=rfm.RFCos)
    for submodel in model.submodels.flat_data:
        submodel.weights *= torch.tensor(spreads)[:, None]
        submodel.biases *= min(spreads)
    return model


def _solve(problem: str, features: int, spread: float) -> Evaluate:
    rfm: Any = importlib.import_module("pyrfm")
    torch: Any = importlib.import_module("torch")
    domain = _DOMAINS[problem](rfm)
    axes = range(domain.dim)
    with redirect_stdout(io.StringIO()):  # it prints the residual
        model = _model(rfm, domain, features, spread)
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


def _kovasznay(features: int) -> Evaluate:
    """Newton with 80 features, then with all features and a single factorisation."""
    torch: Any = importlib.import_module("torch")
    with redirect_stdout(io.StringIO()):  # it prints the residual
        model = _navier_stokes(features, start=_navier_stokes(80))
    return lambda points: np.asarray(model(torch.as_tensor(points)))


def _navier_stokes(features: int, start: Any = None) -> Any:
    """A model of both components of the velocity and of the pressure."""
    rfm: Any = importlib.import_module("pyrfm")
    torch: Any = importlib.import_module("torch")
    domain = rfm.Square2D([0.0, 0.0], [1.0, 1.0])
    model = _model(rfm, domain, features, 3.0, 8.0)
    inside, boundary = domain.in_sample(2 * features, with_boundary=False), domain.on_sample(features // 2)
    terms = value, dx, dy = _values_and_slopes(model, inside)
    diffusion = VISCOSITY * sum(model.features_second_derivative(inside, axis, axis).cat(dim=1) for axis in range(2))
    on_wall, at_origin = (model.features(points).cat(dim=1) for points in (boundary, torch.zeros(1, 2)))
    none, none_on_wall, none_at_origin = (torch.zeros_like(each) for each in (value, on_wall, at_origin))
    wall = [[torch.as_tensor(component)[:, None]] for component in kovasznay_velocity(*boundary.numpy().T)]
    if start is None:
        flow = [torch.zeros(len(inside), 2)] * 3
    else:
        flow = [each @ start.W[:, :2] for each in _values_and_slopes(start, inside)]
    around = flow
    for iteration in range(NEWTON_STEPS):
        if iteration == 0 or start is None:
            around = flow
            (u, v), (u_x, v_x), (u_y, v_y) = (each.T[..., None] for each in around)
            transport = u * dx + v * dy - diffusion
            blocks = [
                [transport + u_x * value, u_y * value, dx],
                [v_x * value, transport + v_y * value, dy],
                [dx, dy, none],
                [on_wall, none_on_wall, none_on_wall],
                [none_on_wall, on_wall, none_on_wall],
                [none_at_origin, none_at_origin, at_origin],
            ]
            model.compute(rfm.concat_blocks(blocks), verbose=False)
        # The Jacobian times the flow, minus the residual.
        momentum = _along(around, flow) + _along(flow, around) - _along(flow, flow)
        model.solve(
            rfm.concat_blocks([[momentum[:, :1]], [momentum[:, 1:]], [none[:, :1]], *wall, [torch.zeros(1, 1)]])
        )
        before, flow = flow, [each @ model.W[:, :2] for each in terms]
        step = (flow[0] - before[0]).norm() / flow[0].norm()
        if step < (1e-2 if start is None else LAST_STEP):
            break
    return model


def _values_and_slopes(model: Any, points: Any) -> list[Any]:
    return [
        model.features(points).cat(dim=1),
        *(model.features_derivative(points, axis).cat(dim=1) for axis in range(2)),
    ]


def _along(flow: list[Any], field: list[Any]) -> Any:
    return flow[0][:, :1] * field[1] + flow[0][:, 1:] * field[2]
