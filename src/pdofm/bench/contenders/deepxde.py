"""DeepXDE: tanh networks with 4 layers of width 50, or 3 of width 20 in the cube; Adam, then mostly L-BFGS."""

import importlib
import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from math import pi
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pdofm.bench.contenders import VISCOSITY, Evaluate, Level, kovasznay_velocity

PACKAGES: tuple[str, ...] = ("deepxde", "torch")
ENVIRONMENT: dict[str, str] = {"DDE_BACKEND": "pytorch", "OMP_NUM_THREADS": "2"}


def levels(problem: str) -> list[Level]:
    """Numbers of training steps, from cheap to accurate."""
    # L-BFGS of DeepXDE runs in blocks of 1000 iterations.
    ladders = {
        "poisson-square": (_square, [(200, 0), (200, 1000), (200, 2000)]),
        "poisson-lshape": (_lshape, [(200, 0), (500, 1000), (500, 2000)]),
        "poisson-annulus": (_annulus, [(200, 0), (200, 1000), (200, 2000)]),
        "poisson-cube": (_cube, [(200, 0), (200, 1000), (200, 4000)]),
        "kovasznay": (_kovasznay, [(200, 0), (500, 1000)]),
    }
    if problem not in ladders:
        return []
    solve, ladder = ladders[problem]
    return [Level(f"{adam} Adam, {lbfgs} L-BFGS", partial(solve, adam, lbfgs), repeats=1) for adam, lbfgs in ladder]


def _deepxde() -> Any:
    dde: Any = importlib.import_module("deepxde")
    with redirect_stdout(io.StringIO()):  # it prints the setting
        dde.config.set_default_float("float64")
    dde.config.set_random_seed(0)
    return dde


def _sines(x: ndarray) -> Float[ndarray, "n 1"]:
    return np.prod(np.sin(pi * x), axis=1, keepdims=True)


def _tensor_sines(dde: Any, x: Any) -> Any:
    return dde.backend.prod(dde.backend.sin(pi * x), 1, keepdims=True)


def _poisson_residual(dde: Any, x: Any, u: Any) -> Any:
    dimension = x.shape[1]
    laplacian = sum(dde.grad.hessian(u, x, i=axis, j=axis) for axis in range(dimension))
    return laplacian + dimension * pi**2 * _tensor_sines(dde, x)


def _square(adam: int, lbfgs: int) -> Evaluate:
    """The network vanishes on the boundary by construction."""
    dde = _deepxde()
    data = _hard_poisson(dde, dde.geometry.Rectangle([-1, -1], [1, 1]), 1000)
    return _train(dde, data, 1, adam, lbfgs, transform=lambda x, u: (1 - x[:, :1] ** 2) * (1 - x[:, 1:] ** 2) * u)


def _cube(adam: int, lbfgs: int) -> Evaluate:
    """The network vanishes on the boundary by construction."""
    dde = _deepxde()
    data = _hard_poisson(dde, dde.geometry.Cuboid([0, 0, 0], [1, 1, 1]), 1000)

    def transform(x: Any, u: Any) -> Any:
        bumps = 4 * x * (1 - x)
        return bumps[:, :1] * bumps[:, 1:2] * bumps[:, 2:] * u

    return _train(dde, data, 1, adam, lbfgs, hidden=(20, 20, 20), transform=transform)


def _annulus(adam: int, lbfgs: int) -> Evaluate:
    """The network has the given values on both circles by construction; between them they are interpolated linearly."""
    dde = _deepxde()
    domain = dde.geometry.Disk([0, 0], 1) - dde.geometry.Disk([0, 0], 0.25)

    def transform(x: Any, u: Any) -> Any:
        square = x[:, :1] ** 2 + x[:, 1:] ** 2
        radius = square**0.5
        inner, outer = (_tensor_sines(dde, at * x / radius) for at in (0.25, 1))
        blended = ((1 - radius) * inner + (radius - 0.25) * outer) / 0.75
        return blended + (1 - square) * (square - 0.0625) * u

    return _train(dde, _hard_poisson(dde, domain, 1000), 1, adam, lbfgs, transform=transform)


def _hard_poisson(dde: Any, domain: Any, points: int) -> Any:
    """Data without boundary conditions, which the network satisfies by construction."""
    residual = partial(_poisson_residual, dde)
    return dde.data.PDE(domain, residual, [], num_domain=points, train_distribution="Hammersley")


def _lshape(adam: int, lbfgs: int) -> Evaluate:
    dde = _deepxde()
    domain = dde.geometry.Polygon([[-1, -1], [1, -1], [1, 0], [0, 0], [0, 1], [-1, 1]])
    boundary = dde.icbc.DirichletBC(domain, _sines, lambda _, on_boundary: on_boundary)
    data = dde.data.PDE(domain, partial(_poisson_residual, dde), boundary, num_domain=800, num_boundary=160)
    return _train(dde, data, 1, adam, lbfgs, loss_weights=[1, 100])


def _kovasznay(adam: int, lbfgs: int) -> Evaluate:
    dde = _deepxde()

    def residuals(x: Any, w: Any) -> list[Any]:
        def first(i: int, j: int) -> Any:
            return dde.grad.jacobian(w, x, i=i, j=j)

        def laplacian(component: int) -> Any:
            return sum(dde.grad.hessian(w, x, component=component, i=axis, j=axis) for axis in range(2))

        u, v = w[:, :1], w[:, 1:2]
        momentum = [u * first(i, 0) + v * first(i, 1) + first(2, i) - VISCOSITY * laplacian(i) for i in range(2)]
        return [*momentum, first(0, 0) + first(1, 1)]

    def wall(component: int, x: ndarray) -> Float[ndarray, "n 1"]:
        return kovasznay_velocity(x[:, :1], x[:, 1:])[component]

    domain = dde.geometry.Rectangle([-1, -1], [1, 1])
    conditions = [
        dde.icbc.DirichletBC(domain, partial(wall, component), lambda _, on_boundary: on_boundary, component=component)
        for component in range(2)
    ]
    conditions.append(dde.icbc.PointSetBC(np.zeros((1, 2)), np.zeros((1, 1)), component=2))
    data = dde.data.PDE(
        domain, residuals, conditions, num_domain=600, num_boundary=120, train_distribution="Hammersley"
    )
    return _train(dde, data, 3, adam, lbfgs, loss_weights=[1, 1, 1, 100, 100, 100])


def _train(
    dde: Any,
    data: Any,
    outputs: int,
    adam: int,
    lbfgs: int,
    *,
    hidden: Sequence[int] = (50, 50, 50, 50),
    transform: Callable[[Any, Any], Any] | None = None,
    loss_weights: Sequence[float] | None = None,
) -> Evaluate:
    net = dde.nn.FNN([data.geom.dim, *hidden, outputs], "tanh", "Glorot normal")
    if transform is not None:
        net.apply_output_transform(transform)
    model = dde.Model(data, net)
    with redirect_stdout(io.StringIO()):
        model.compile("adam", lr=2e-3, loss_weights=loss_weights, verbose=0)
        model.train(iterations=adam, display_every=adam, verbose=0)
        if lbfgs > 0:
            dde.optimizers.set_LBFGS_options(maxcor=100, ftol=0, gtol=0, maxiter=lbfgs)
            model.compile("L-BFGS", loss_weights=loss_weights, verbose=0)
            model.train(display_every=lbfgs, verbose=0)

    def evaluate(points: Float[ndarray, "n 2"]) -> ndarray:
        values = model.predict(points)
        return values[:, 0] if outputs == 1 else values

    return evaluate
