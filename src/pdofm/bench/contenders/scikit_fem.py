"""scikit-fem: quadrilaterals of order 4 to 10, and quadratic hexahedra, its highest order there.

The annulus is solved in polar coordinates, on a periodic rectangle: its curved meshes have order 2 at most.
"""

import importlib
from functools import partial
from math import pi
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pdofm.bench.contenders import Evaluate, Level, coordinates

PACKAGES: tuple[str, ...] = ("scikit-fem", "scipy")
ENVIRONMENT: dict[str, str] = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}


def levels(problem: str) -> list[Level]:
    """From cheap to accurate."""
    if problem == "poisson-square":
        return [Level(f"5 x 5, order {order}", partial(_square, order)) for order in (4, 5, 6, 7, 8, 10)]
    if problem == "poisson-lshape":
        return [Level(f"12 cells, order {order}", partial(_lshape, order)) for order in (4, 5, 6, 7, 8, 9, 10)]
    if problem == "poisson-annulus":
        return [Level(f"2 x 20, order {order}", partial(_annulus, order)) for order in (4, 5, 6, 7, 8, 9)]
    if problem == "poisson-cube":
        return [
            Level(f"{n} cells per axis", partial(_cube, n)) for n in (2, 4, 8, 12)
        ]  # more take gigabytes to evaluate
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
    # In three dimensions its direct solver is far slower than conjugate gradients.
    system = fem.condense(stiffness, load, D=basis.get_dofs())
    solution = fem.solve(*system, solver=fem.solver_iter_pcg(rtol=1e-10))
    return lambda points: basis.probes(points.T) @ solution


def _annulus(order: int) -> Evaluate:
    """In polar coordinates, ∫ r u_r v_r + u_φ v_φ / r = ∫ r f v."""
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
        # Points are not found in a periodic mesh, so the solution is copied to the mesh that is not.
        flat = fem.Basis(rectangle, fem.ElementQuadP(order), intorder=1)
        copied = np.zeros(flat.N)
        copied[flat.element_dofs] = solution[basis.element_dofs]
        return flat.probes(polar) @ copied

    return evaluate


def _polar_sines(radius: ndarray | float, angle: ndarray) -> ndarray:
    return np.sin(pi * radius * np.cos(angle)) * np.sin(pi * radius * np.sin(angle))


def _boundary_values(fem: Any, basis: Any, angles: ndarray, order: int) -> tuple[ndarray, ndarray]:
    """Coefficients on both circles: the values at the corners, and between them by projection in one dimension.

    It has no projection onto the boundary of a periodic mesh.
    """
    line = fem.Basis(fem.MeshLine(angles), fem.ElementLinePp(order), intorder=2 * order)
    mass = fem.BilinearForm(lambda u, v, _: u * v).assemble(line)
    radii, first_angles = basis.mapping.F(np.zeros((2, 1)))[..., 0]
    interval = np.rint(first_angles / angles[1]).astype(int)
    on_edge = order - 1
    values, dofs = np.zeros(basis.N), []
    # On the first ring a cell's side 0 between its corners 0 and 1, on the last its side 2 between 3 and 2.
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
