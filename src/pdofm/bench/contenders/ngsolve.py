"""NGSolve: few large finite elements of high order, with static condensation and direct solvers.

Meshes of few elements are built by hand. The task manager is used only where there are enough elements for more than
one thread.
"""

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import pi
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pdofm.bench.contenders import LAST_STEP, NEWTON_STEPS, RATE, VISCOSITY, Evaluate, Level, Sources, coordinates

PACKAGES: tuple[str, ...] = ("ngsolve", "netgen-mesher")
ENVIRONMENT: dict[str, str] = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

Corners = list[tuple[float, float]]
Cells = list[tuple[int, ...]]


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
    if problem == "poisson-corner":
        ladder = [(4, 5), (7, 7), (9, 9), (12, 10), (15, 11), (16, 12), (18, 14)]
        return [_level(_corner, layers=layers, order=order) for layers, order in ladder]
    return []


def sources() -> Sources:
    """Solve for many sources on the square; everything that does not depend on them is prepared."""
    ng = _ngsolve()
    # All degrees of freedom of a single element are interior, so a solve is one product with a dense inverse.
    space = ng.H1(_mesh(*_grid([-1, 1], [-1, 1])), order=14, dirichlet=".*")
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
        return _evaluate(space.mesh, solution)

    return solve


def _level(solve: Callable[..., Evaluate], **parameters: int) -> Level:
    name = ", ".join(f"{name} {value}" for name, value in parameters.items())
    return Level(name, partial(solve, **parameters))


def _ngsolve() -> Any:
    ng: Any = importlib.import_module("ngsolve")
    ng.SetNumThreads(2)
    return ng


def _grid(xs: Sequence[float] | ndarray, ys: Sequence[float] | ndarray) -> tuple[Corners, Cells]:
    corners = [(float(x), float(y)) for y in ys for x in xs]
    n = len(xs)
    first = [j * n + i for j in range(len(ys) - 1) for i in range(n - 1)]
    return corners, [(i, i + 1, i + n + 1, i + n) for i in first]


def _mesh(corners: Corners, cells: Cells) -> Any:
    """A mesh of cells whose corners are listed counterclockwise."""
    ng: Any = importlib.import_module("ngsolve")
    netgen: Any = importlib.import_module("netgen.meshing")
    mesh = netgen.Mesh(dim=2)
    points = [mesh.Add(netgen.MeshPoint(netgen.Pnt(x, y, 0))) for x, y in corners]
    inside, boundary = mesh.AddRegion("inside", dim=2), mesh.AddRegion("boundary", dim=1)
    for cell in cells:
        mesh.Add(netgen.Element2D(inside, [points[i] for i in cell]))
    edges = [edge for cell in cells for edge in zip(cell, cell[1:] + cell[:1], strict=True)]
    uses = Counter(frozenset(edge) for edge in edges)
    for edge in edges:
        if uses[frozenset(edge)] == 1:
            mesh.Add(netgen.Element1D([points[i] for i in edge], index=boundary))
    return ng.Mesh(mesh)


def _sines(ng: Any, dimension: int) -> Any:
    product = ng.sin(pi * ng.x) * ng.sin(pi * ng.y)
    return product * ng.sin(pi * ng.z) if dimension == 3 else product


def _poisson(space: Any, source: Any = None, boundary: Any = None) -> Any:
    """The solution of -Δu = source with u = boundary; both are zero if omitted."""
    ng: Any = importlib.import_module("ngsolve")
    u, v = space.TnT()
    stiffness = ng.BilinearForm(ng.grad(u) * ng.grad(v) * ng.dx, symmetric=True, condense=True).Assemble()
    solution = ng.GridFunction(space)
    residual = solution.vec.CreateVector()
    residual[:] = 0.0
    if source is not None:
        residual.data += ng.LinearForm(source * v * ng.dx(bonus_intorder=2)).Assemble().vec
    inner = residual.CreateVector()
    inner.data = residual
    residual.data += stiffness.harmonic_extension_trans * inner
    if boundary is not None:
        solution.Set(boundary, ng.BND)
        residual.data -= stiffness.mat * solution.vec
    solution.vec.data += stiffness.mat.Inverse(space.FreeDofs(True), inverse="sparsecholesky") * residual
    solution.vec.data += stiffness.harmonic_extension * solution.vec
    solution.vec.data += stiffness.inner_solve * inner
    return solution


def _evaluate(mesh: Any, solution: Any) -> Evaluate:
    return lambda points: np.asarray(solution(mesh(*coordinates(points)))).reshape(len(points))


def _square(cells: int, order: int) -> Evaluate:
    ng = _ngsolve()
    knots = np.linspace(-1, 1, cells + 1)
    mesh = _mesh(*_grid(knots, knots))
    source = 2 * pi**2 * _sines(ng, 2)
    return _evaluate(mesh, _poisson(ng.H1(mesh, order=order, dirichlet=".*"), source))


def _lshape(order: int) -> Evaluate:
    ng = _ngsolve()
    corners, cells = _grid([-1, 0, 1], [-1, 0, 1])
    mesh = _mesh(corners[:-1], cells[:-1])
    source = 2 * pi**2 * _sines(ng, 2)
    return _evaluate(mesh, _poisson(ng.H1(mesh, order=order, dirichlet=".*"), source))


def _annulus(order: int) -> Evaluate:
    ng = _ngsolve()
    geometry = importlib.import_module("netgen.geom2d").SplineGeometry()
    geometry.AddCircle((0, 0), 1.0, leftdomain=1, rightdomain=0)
    geometry.AddCircle((0, 0), 0.25, leftdomain=0, rightdomain=1)
    with ng.TaskManager():
        # The coarsest mesh whose triangles still grow evenly from the inner circle to the outer one.
        mesh = ng.Mesh(geometry.GenerateMesh(maxh=1.0, curvaturesafety=1.0))
        mesh.Curve(order)
        exact = _sines(ng, 2)
        solution = _poisson(ng.H1(mesh, order=order, dirichlet=".*"), 2 * pi**2 * exact, exact)
    return _evaluate(mesh, solution)


def _cube(order: int) -> Evaluate:
    ng = _ngsolve()
    mesh = importlib.import_module("ngsolve.meshes").MakeStructured3DMesh(hexes=True, nx=1, ny=1, nz=1)
    source = 3 * pi**2 * _sines(ng, 3)
    return _evaluate(mesh, _poisson(ng.H1(mesh, order=order, dirichlet=".*"), source))


def _corner(layers: int, order: int) -> Evaluate:
    """A mesh that is graded towards the corner; the order decreases by 0.7 from layer to layer."""
    ng = _ngsolve()
    rim = [(0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0)]
    n, sectors = len(rim), len(rim) - 1
    corners = [(0.35**layer * x, 0.35**layer * y) for layer in range(layers + 1) for x, y in rim]
    outer = [layer * n + i for layer in range(layers) for i in range(sectors)]
    cells: Cells = [(i + n, i, i + 1, i + n + 1) for i in outer]
    cells += [(len(corners), layers * n + i, layers * n + i + 1) for i in range(sectors)]
    with ng.TaskManager():
        mesh = _mesh([*corners, (0.0, 0.0)], cells)
        space = ng.H1(mesh, order=order, dirichlet=".*", order_policy=ng.ORDER_POLICY.VARIABLE)
        # From the inside out, so that an edge between two layers gets the order of the outer one.
        for i in reversed(range(len(cells))):
            cell = mesh[ng.ElementId(ng.VOL, i)]
            layer_order = max(2, round(order - 0.7 * (i // sectors)))
            space.SetOrder(ng.NodeId(ng.ELEMENT, i), layer_order)
            for edge in cell.edges:
                space.SetOrder(edge, layer_order)
        space.UpdateDofTables()
        angle = ng.atan2(-ng.x, ng.y)  # from the positive y axis, in (-π, π]
        # On the positive y axis, rounding may make the angle slightly negative.
        angle = ng.IfPos(angle + 1e-9, angle, angle + 2 * pi)
        exact = (ng.x**2 + ng.y**2) ** (1 / 3) * ng.sin(2 / 3 * angle)
        solution = _poisson(space, boundary=exact)
    return _evaluate(mesh, solution)


def _kovasznay(order: int) -> Evaluate:
    """Taylor-Hood elements: Newton at order 7, then at the full order with a single factorisation."""
    ng = _ngsolve()
    with ng.TaskManager():
        mesh = _mesh(*_grid([-1, 1], np.linspace(-1, 1, 5)))
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
