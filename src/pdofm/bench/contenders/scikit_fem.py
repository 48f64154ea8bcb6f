"""scikit-fem: quadrilaterals of order 4 to 10, and hexahedra of order 2, the highest that it has.

The annulus is solved in polar coordinates on a periodic rectangle, since curved meshes have order 2 at most. The flow
is assembled component by component, since most products of pairs of vector functions are zero.
"""

import importlib
from functools import partial
from math import pi
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Float
from numpy import ndarray

from pdofm.bench.contenders import (
    LAST_STEP,
    NEWTON_STEPS,
    VISCOSITY,
    Evaluate,
    Level,
    coordinates,
    kovasznay_velocity,
)

PACKAGES: tuple[str, ...] = ("scikit-fem", "scipy")
ENVIRONMENT: dict[str, str] = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}


def levels(problem: str) -> list[Level]:
    """Orders and meshes, from cheap to accurate."""
    if problem == "poisson-square":
        return [Level(f"5 x 5, order {order}", partial(_square, order)) for order in (4, 5, 6, 7, 8, 10)]
    if problem == "poisson-lshape":
        return [Level(f"12 cells, order {order}", partial(_lshape, order)) for order in (4, 5, 6, 7, 8, 9, 10)]
    if problem == "poisson-annulus":
        return [Level(f"2 x 20, order {order}", partial(_annulus, order)) for order in (4, 5, 6, 7, 8, 9)]
    if problem == "poisson-cube":
        # With more cells, the evaluation takes gigabytes.
        return [Level(f"{n} cells per axis", partial(_cube, n)) for n in (2, 4, 8, 12)]
    if problem == "kovasznay":
        return [Level(f"3 x 6, order {order}", partial(_kovasznay, order)) for order in (5, 6, 7, 8, 9, 10)]
    return []


def _square(order: int) -> Evaluate:
    fem: Any = importlib.import_module("skfem")
    knots = np.linspace(-1, 1, 6)
    return _poisson(fem, fem.MeshQuad.init_tensor(knots, knots), order)


def _lshape(order: int) -> Evaluate:
    fem: Any = importlib.import_module("skfem")
    knots = np.linspace(-1, 1, 5)
    square = fem.MeshQuad.init_tensor(knots, knots)
    return _poisson(fem, square.remove_elements(square.elements_satisfying(lambda x: (x[0] > 0) & (x[1] > 0))), order)


def _poisson(fem: Any, mesh: Any, order: int) -> Evaluate:
    basis = fem.Basis(mesh, fem.ElementQuadP(order), intorder=2 * order)
    stiffness = fem.BilinearForm(lambda u, v, _: u.grad[0] * v.grad[0] + u.grad[1] * v.grad[1]).assemble(basis)
    load = fem.LinearForm(lambda v, w: 2 * pi**2 * np.sin(pi * w.x[0]) * np.sin(pi * w.x[1]) * v).assemble(basis)
    solution = fem.solve(*fem.condense(stiffness, load, D=basis.get_dofs()))
    return lambda points: basis.probes(points.T) @ solution


def _cube(cells: int) -> Evaluate:
    fem: Any = importlib.import_module("skfem")
    knots = np.linspace(0, 1, cells + 1)
    basis = fem.Basis(fem.MeshHex.init_tensor(knots, knots, knots), fem.ElementHex2(), intorder=4)

    def gradients(u: Any, v: Any, _: Any) -> ndarray:
        return u.grad[0] * v.grad[0] + u.grad[1] * v.grad[1] + u.grad[2] * v.grad[2]

    def source(v: Any, w: Any) -> ndarray:
        return 3 * pi**2 * np.sin(pi * w.x[0]) * np.sin(pi * w.x[1]) * np.sin(pi * w.x[2]) * v

    stiffness, load = fem.BilinearForm(gradients).assemble(basis), fem.LinearForm(source).assemble(basis)
    # In three dimensions the direct solver is far slower than conjugate gradients.
    system = fem.condense(stiffness, load, D=basis.get_dofs())
    solution = fem.solve(*system, solver=fem.solver_iter_pcg(rtol=1e-10))
    return lambda points: basis.probes(points.T) @ solution


def _annulus(order: int) -> Evaluate:
    """The weak form in polar coordinates is ∫ r u_r v_r + u_φ v_φ / r = ∫ r f v."""
    fem: Any = importlib.import_module("skfem")
    angles = np.linspace(0, 2 * pi, 21)
    rectangle = fem.MeshQuad.init_tensor(np.linspace(0.25, 1, 3), angles)
    start = rectangle.nodes_satisfying(lambda x: x[1] == angles[0])
    end = rectangle.nodes_satisfying(lambda x: x[1] == angles[-1])
    basis = fem.Basis(fem.MeshQuad1DG.periodic(rectangle, end, start), fem.ElementQuadP(order), intorder=2 * order)

    def gradients(u: Any, v: Any, w: Any) -> ndarray:
        return w.x[0] * u.grad[0] * v.grad[0] + u.grad[1] * v.grad[1] / w.x[0]

    stiffness = fem.BilinearForm(gradients).assemble(basis)
    load = fem.LinearForm(lambda v, w: 2 * pi**2 * w.x[0] * _polar_sines(*w.x) * v).assemble(basis)
    values, dofs = _boundary_values(fem, basis, angles, order)
    solution = fem.solve(*fem.condense(stiffness, load, x=values, D=dofs))

    def evaluate(points: Float[ndarray, "n 2"]) -> Float[ndarray, " n"]:
        x, y = coordinates(points)
        polar = np.stack([np.hypot(x, y), np.mod(np.arctan2(y, x), 2 * pi)])
        # Points cannot be located in a periodic mesh, so the solution is copied to one that is not periodic.
        flat = fem.Basis(rectangle, fem.ElementQuadP(order), intorder=1)
        copied = np.zeros(flat.N)
        copied[flat.element_dofs] = solution[basis.element_dofs]
        return flat.probes(polar) @ copied

    return evaluate


def _polar_sines(radius: ndarray | float, angle: ndarray) -> ndarray:
    return np.sin(pi * radius * np.cos(angle)) * np.sin(pi * radius * np.sin(angle))


def _boundary_values(fem: Any, basis: Any, angles: ndarray, order: int) -> tuple[ndarray, ndarray]:
    """The coefficients on both circles: the values at the corners, and a projection in one dimension between them.

    scikit-fem has no projection onto the boundary of a periodic mesh.
    """
    line = fem.Basis(fem.MeshLine(angles), fem.ElementLinePp(order), intorder=2 * order)
    mass = fem.BilinearForm(lambda u, v, _: u * v).assemble(line)
    radii, first_angles = basis.mapping.F(np.zeros((2, 1)))[..., 0]
    interval = np.rint(first_angles / angles[1]).astype(int)
    on_edge = order - 1
    values, dofs = np.zeros(basis.N), []
    # A cell of the first ring has its side 0, from corner 0 to 1, on a circle; one of the last ring its side 2, from
    # corner 3 to 2.
    for radius, corners, side in ((0.25, (0, 1), 0), (1.0, (3, 2), 2)):
        cells = np.flatnonzero(radii == (radii.min() if side == 0 else radii.max()))
        moments = fem.LinearForm(lambda v, w, radius=radius: _polar_sines(radius, w.x[0]) * v).assemble(line)
        knots = np.zeros(line.N)
        knots[line.nodal_dofs[0]] = _polar_sines(radius, angles)
        coefficients = fem.solve(*fem.condense(mass, moments, x=knots, D=line.nodal_dofs[0]))
        rows = [*corners, *range(4 + side * on_edge, 4 + (side + 1) * on_edge)]
        on_circle = basis.element_dofs[rows][:, cells]
        values[on_circle] = coefficients[line.element_dofs[:, interval[cells]]]
        dofs.append(on_circle.ravel())
    return values, np.unique(np.concatenate(dofs))


def _kovasznay(order: int) -> Evaluate:
    """Taylor-Hood elements: Newton at order 4, then at the full order with a single factorisation."""
    fem: Any = importlib.import_module("skfem")
    mesh = fem.MeshQuad.init_tensor(np.linspace(-1, 1, 4), np.linspace(-1, 1, 7))
    (velocity, u), (_, v), (pressure, p) = _navier_stokes(fem, mesh, order, start=_navier_stokes(fem, mesh, 4))

    def evaluate(points: Float[ndarray, "n 2"]) -> Float[ndarray, "n 3"]:
        # The exact pressure is zero at the origin.
        shifted = pressure.probes(points.T) @ p - pressure.probes(np.zeros((2, 1))) @ p
        probes = velocity.probes(points.T)
        return np.column_stack([probes @ u, probes @ v, shifted])

    return evaluate


def _navier_stokes(fem: Any, mesh: Any, order: int, start: Any = None) -> list[tuple[Any, ndarray]]:
    """The basis and the coefficients of each unknown."""
    velocity, pressure = (fem.Basis(mesh, fem.ElementQuadP(each), intorder=2 * order) for each in (order, order - 1))
    n = velocity.N
    # Both components are projected at once, as the real and the imaginary part of a function.
    edges = velocity.boundary(intorder=2 * order)
    wall = edges.project(lambda x: np.tensordot([1, 1j], kovasznay_velocity(*x), axes=1), dtype=complex)
    solution = np.concatenate([wall.real, wall.imag, np.zeros(pressure.N)])
    dofs = velocity.get_dofs().flatten()
    fixed = np.concatenate([dofs, n + dofs, [2 * n]])  # one value of the pressure is arbitrary

    def fields(basis: Any, components: list[ndarray]) -> list[Any]:
        return [basis.interpolate(component) for component in components]

    if start is None:
        flow = fields(velocity, [solution[:n], solution[n : 2 * n]])
    else:
        flow = fields(velocity.with_element(start[0][0].elem), [component for _, component in start[:2]])
    divergence = [fem.BilinearForm(lambda u, q, _, i=i: -u.grad[i] * q).assemble(velocity, pressure) for i in range(2)]

    def factored(around: list[Any]) -> tuple[Any, ndarray, ndarray]:
        """The factored Jacobian around a flow, what the fixed values contribute, and the indices of the others."""
        from scipy.sparse.linalg import splu

        jacobian = _jacobian(fem, velocity, divergence, around)
        matrix, shift, _, free = fem.condense(jacobian, np.zeros(len(solution)), x=solution, D=fixed)
        return splu(matrix.tocsc()), shift, free

    around, (factors, shift, free) = flow, factored(flow)
    for iteration in range(NEWTON_STEPS):
        if iteration > 0 and start is None:
            around, (factors, shift, free) = flow, factored(flow)
        # The Jacobian times the flow, minus the residual.
        sources = [
            _along(around, new) + _along(flow, old) - _along(flow, new) for old, new in zip(around, flow, strict=True)
        ]
        loads = [fem.LinearForm(lambda v, _, source=source: source * v).assemble(velocity) for source in sources]
        right_side = np.concatenate([*loads, np.zeros(pressure.N)])
        before = solution[free]
        solution[free] = factors.solve(right_side[free] + shift)
        flow = fields(velocity, [solution[:n], solution[n : 2 * n]])
        step = np.linalg.norm(solution[free] - before) / np.linalg.norm(solution)
        if step < (1e-2 if start is None else LAST_STEP):
            break
    return list(zip((velocity, velocity, pressure), np.split(solution, [n, 2 * n]), strict=True))


def _along(flow: list[Any], field: Any) -> ndarray:
    return flow[0] * field.grad[0] + flow[1] * field.grad[1]


def _jacobian(fem: Any, velocity: Any, divergence: list[Any], flow: list[Any]) -> Any:
    a, b = (np.asarray(component) for component in flow)

    def transport(u: Any, v: Any, _: Any) -> ndarray:
        diffusion = u.grad[0] * v.grad[0] + u.grad[1] * v.grad[1]
        return VISCOSITY * diffusion + (a * u.grad[0] + b * u.grad[1]) * v

    def reaction(component: Any) -> Any:
        """The two components of the increment as real and imaginary parts, in one assembly instead of two."""
        gradient = component.grad[0] + 1j * component.grad[1]
        return fem.BilinearForm(lambda u, v, _: gradient * (u * v), dtype=complex).assemble(velocity)

    main, first, second = fem.BilinearForm(transport).assemble(velocity), reaction(flow[0]), reaction(flow[1])
    blocks = [
        [main + first.real, first.imag, divergence[0].T],
        [second.real, main + second.imag, divergence[1].T],
        [*divergence, None],
    ]
    return scipy.sparse.block_array(blocks, format="csr")
