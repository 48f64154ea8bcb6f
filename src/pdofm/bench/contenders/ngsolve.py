"""NGSolve: few large finite elements of high order, with static condensation and direct solvers.

Meshes of few elements are built by hand. The task manager is used only where there are enough elements for more than
one thread.
"""

import importlib
from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pdofm.bench.contenders import (
    LAST_STEP,
    NEWTON_STEPS,
    RATE,
    VISCOSITY,
    Evaluate,
    Level,
    Sources,
    coordinates,
    ngsolve_local,
    ngsolve_materials,
)
from pdofm.bench.contenders.ngsolve_tools import Cells, evaluator, grid, mesh_of, ngsolve, poisson, set_orders

PACKAGES: tuple[str, ...] = ("ngsolve", "netgen-mesher")
ENVIRONMENT: dict[str, str] = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def levels(problem: str) -> list[Level]:
    """Orders and meshes, from cheap to accurate."""
    if problem == "poisson-square":
        return [_level(_square, cells=2, order=order) for order in (4, 6, 8, 10, 12, 14)]
    if problem == "poisson-lshape":
        return [_level(_lshape, order=order) for order in (4, 6, 8, 10, 12, 14)]
    if problem == "poisson-annulus":
        return [_level(_annulus, order=order) for order in (4, 6, 8, 10, 11, 12, 14)]
    if problem == "poisson-cube":
        return [_level(_cube, order=order) for order in (4, 6, 8, 10, 12)]
    if problem == "kovasznay":
        return [_level(_kovasznay, order=order) for order in (8, 10, 11, 12, 13, 14)]
    if problem in ("poisson-corner", "corner-in-boxes"):
        ladder = [(4, 5), (7, 7), (9, 9), (12, 10), (15, 11), (16, 12), (18, 14)]
        return [_level(_corner, layers=layers, order=order) for layers, order in ladder]
    if problem == "four-holes":
        ladder = [(25, 8), (18, 8), (18, 10), (18, 11), (15, 11), (15, 12), (12, 12)]
        return [_level(ngsolve_local.holes, maxh=maxh, order=order) for maxh, order in ladder]
    if problem == "peak":
        ladder = [(3, 10), (4, 12), (5, 12), (5, 14), (6, 13), (6, 14), (6, 15)]
        return [_level(ngsolve_local.peak, cells=cells, order=order) for cells, order in ladder]
    if problem == "front":
        ladder = [(50, 10), (35, 12), (25, 12), (25, 14), (20, 14), (25, 16), (20, 16)]
        return [_level(ngsolve_local.front, maxh=maxh, order=order) for maxh, order in ladder]
    if problem in ("round-inclusion", "elliptic-inclusion"):
        shape = ngsolve_materials.disk if problem == "round-inclusion" else ngsolve_materials.ellipse
        ladder = [(200, 6), (200, 8), (100, 8), (60, 8), (60, 10), (60, 12), (40, 12), (30, 12), (25, 14)]
        return [_level(shape, maxh=maxh, order=order) for maxh, order in ladder]
    if problem == "interface-corner":
        ladder = [(4, 5), (6, 7), (8, 9), (10, 10), (12, 12), (14, 13), (16, 14)]
        return [_level(ngsolve_materials.corner, layers=layers, order=order) for layers, order in ladder]
    return []


def sources() -> Sources:
    """Solve for many sources on the square; everything that does not depend on them is prepared."""
    ng = ngsolve()
    # All degrees of freedom of a single element are interior, so a solve is one product with a dense inverse.
    space = ng.H1(mesh_of(*grid([-1, 1], [-1, 1])), order=14, dirichlet=".*")
    u, v = space.TnT()
    stiffness = ng.BilinearForm(ng.grad(u) * ng.grad(v) * ng.dx, symmetric=True, condense=True).Assemble()
    a, b = ng.Parameter(0.0), ng.Parameter(0.0)
    p, q = 1 - ng.x**2, 1 - ng.y**2
    growth = ng.exp(a * ng.x + b * ng.y)
    source = (2 * p + 2 * q + 4 * a * ng.x * q + 4 * b * ng.y * p - (a * a + b * b) * p * q) * growth
    load = ng.LinearForm(source.Compile() * v * ng.dx)
    solution = ng.GridFunction(space)

    def solve(frequencies: Float[ndarray, "k 2"]) -> Evaluate:
        with ng.TaskManager():
            for first, second in frequencies:
                a.Set(first)
                b.Set(second)
                load.Assemble()
                solution.vec.data = stiffness.inner_solve * load.vec
        return evaluator(space.mesh, solution)

    return solve


def _level(solve: Callable[..., Evaluate], **parameters: int) -> Level:
    name = ", ".join(f"{name} {value}" for name, value in parameters.items())
    return Level(name, partial(solve, **parameters))


def _sines(ng: Any, dimension: int) -> Any:
    product = ng.sin(pi * ng.x) * ng.sin(pi * ng.y)
    return product * ng.sin(pi * ng.z) if dimension == 3 else product


def _square(cells: int, order: int) -> Evaluate:
    ng = ngsolve()
    knots = np.linspace(-1, 1, cells + 1)
    mesh = mesh_of(*grid(knots, knots))
    source = 2 * pi**2 * _sines(ng, 2)
    return evaluator(mesh, poisson(ng.H1(mesh, order=order, dirichlet=".*"), source))


def _lshape(order: int) -> Evaluate:
    ng = ngsolve()
    corners, cells = grid([-1, 0, 1], [-1, 0, 1])
    mesh = mesh_of(corners[:-1], cells[:-1])
    source = 2 * pi**2 * _sines(ng, 2)
    return evaluator(mesh, poisson(ng.H1(mesh, order=order, dirichlet=".*"), source))


def _annulus(order: int) -> Evaluate:
    ng = ngsolve()
    geometry = importlib.import_module("netgen.geom2d").SplineGeometry()
    geometry.AddCircle((0, 0), 1.0, leftdomain=1, rightdomain=0)
    geometry.AddCircle((0, 0), 0.25, leftdomain=0, rightdomain=1)
    with ng.TaskManager():
        # The coarsest mesh whose triangles still grow evenly from the inner circle to the outer one.
        mesh = ng.Mesh(geometry.GenerateMesh(maxh=1.0, curvaturesafety=1.0))
        mesh.Curve(order)
        exact = _sines(ng, 2)
        solution = poisson(ng.H1(mesh, order=order, dirichlet=".*"), 2 * pi**2 * exact, exact)
    return evaluator(mesh, solution)


def _cube(order: int) -> Evaluate:
    ng = ngsolve()
    mesh = importlib.import_module("ngsolve.meshes").MakeStructured3DMesh(hexes=True, nx=1, ny=1, nz=1)
    source = 3 * pi**2 * _sines(ng, 3)
    return evaluator(mesh, poisson(ng.H1(mesh, order=order, dirichlet=".*"), source))


def _corner(layers: int, order: int) -> Evaluate:
    """A mesh that is graded towards the corner; the order decreases by 0.7 from layer to layer."""
    ng = ngsolve()
    rim = [(0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0)]
    n, sectors = len(rim), len(rim) - 1
    corners = [(0.35**layer * x, 0.35**layer * y) for layer in range(layers + 1) for x, y in rim]
    outer = [layer * n + i for layer in range(layers) for i in range(sectors)]
    cells: Cells = [(i + n, i, i + 1, i + n + 1) for i in outer]
    cells += [(len(corners), layers * n + i, layers * n + i + 1) for i in range(sectors)]
    with ng.TaskManager():
        mesh = mesh_of([*corners, (0.0, 0.0)], cells)
        space = ng.H1(mesh, order=order, dirichlet=".*", order_policy=ng.ORDER_POLICY.VARIABLE)
        set_orders(space, lambda i: max(2, round(order - 0.7 * (i // sectors))), range(len(cells)))
        angle = ng.atan2(-ng.x, ng.y)  # from the positive y axis, in (-π, π]
        # On the positive y axis, rounding may make the angle slightly negative.
        angle = ng.IfPos(angle + 1e-9, angle, angle + 2 * pi)
        exact = (ng.x**2 + ng.y**2) ** (1 / 3) * ng.sin(2 / 3 * angle)
        solution = poisson(space, boundary=exact)
    return evaluator(mesh, solution)


def _kovasznay(order: int) -> Evaluate:
    """Taylor-Hood elements: Newton at order 7, then at the full order with a single factorisation."""
    ng = ngsolve()
    with ng.TaskManager():
        mesh = mesh_of(*grid([-1, 1], np.linspace(-1, 1, 5)))
        solution = _navier_stokes(mesh, order, start=_navier_stokes(mesh, min(order, 7)))
    velocity, pressure = solution.components

    def evaluate(points: Float[ndarray, "n 2"]) -> Float[ndarray, "n 3"]:
        at = mesh(*coordinates(points))
        # The exact pressure is zero at the origin.
        shifted = np.asarray(pressure(at)).reshape(-1) - pressure(mesh(0.0, 0.0))
        return np.column_stack([np.asarray(velocity(at)), shifted])

    return evaluate


def _navier_stokes(mesh: Any, order: int, start: Any = None) -> Any:
    ng: Any = importlib.import_module("ngsolve")
    space = ng.VectorH1(mesh, order=order, dirichlet=".*") * ng.H1(mesh, order=order - 1)
    free = ng.BitArray(space.FreeDofs(True))
    free[space.Range(1).start] = False  # one value of the pressure is arbitrary
    (u, p), (v, q) = space.TnT()
    solution = ng.GridFunction(space)
    velocity = solution.components[0]
    growth = ng.exp(RATE * ng.x)
    wall = ng.GridFunction(velocity.space)
    wall.Set(
        ng.CF((1 - growth * ng.cos(2 * pi * ng.y), RATE / (2 * pi) * growth * ng.sin(2 * pi * ng.y))),
        ng.BND,
    )
    if start is not None:
        for component, value in zip(solution.components, start.components, strict=True):
            component.Set(value)
        velocity.vec.data = ng.Projector(velocity.space.FreeDofs(), True) * velocity.vec
    velocity.vec.data += wall.vec

    stokes = VISCOSITY * ng.InnerProduct(ng.Grad(u), ng.Grad(v)) - ng.div(v) * p - ng.div(u) * q
    equations = ng.BilinearForm(space)
    equations += (stokes + (ng.Grad(u) * u) * v) * ng.dx
    jacobian = ng.BilinearForm(space, condense=True)
    jacobian += (stokes + (ng.Grad(u) * velocity + ng.Grad(velocity) * u) * v) * ng.dx
    residual, step, inverse = solution.vec.CreateVector(), solution.vec.CreateVector(), None
    for _ in range(NEWTON_STEPS):
        equations.Apply(solution.vec, residual)
        if inverse is None or start is None:
            jacobian.Assemble()
            inverse = jacobian.mat.Inverse(free, inverse="umfpack")
        step.data = residual + jacobian.harmonic_extension_trans * residual
        step.data = inverse * step
        step.data += jacobian.harmonic_extension * step
        step.data += jacobian.inner_solve * residual
        solution.vec.data -= step
        if step.Norm() < (1e-4 if start is None else LAST_STEP) * solution.vec.Norm():
            break
    return solution
