"""What all uses of NGSolve share: meshes by hand, and Poisson's equation with static condensation."""

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from pdofm.bench.contenders import Evaluate, coordinates

Corners = list[tuple[float, float]]
Cells = list[tuple[int, ...]]


def ngsolve() -> Any:
    ng: Any = importlib.import_module("ngsolve")
    ng.SetNumThreads(2)
    return ng


def grid(xs: Sequence[float] | ndarray, ys: Sequence[float] | ndarray) -> tuple[Corners, Cells]:
    corners = [(float(x), float(y)) for y in ys for x in xs]
    n = len(xs)
    first = [j * n + i for j in range(len(ys) - 1) for i in range(n - 1)]
    return corners, [(i, i + 1, i + n + 1, i + n) for i in first]


def mesh_of(corners: Corners, cells: Cells) -> Any:
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


def set_orders(space: Any, order: Callable[[int], int], cells: range) -> None:
    """Set the order of every cell; an edge between two orders gets the higher one."""
    ng: Any = importlib.import_module("ngsolve")
    for i in sorted(cells, key=order):
        space.SetOrder(ng.NodeId(ng.ELEMENT, i), order(i))
        for edge in space.mesh[ng.ElementId(ng.VOL, i)].edges:
            space.SetOrder(edge, order(i))
    space.UpdateDofTables()


def poisson(space: Any, source: Any = None, boundary: Any = None, conductivity: Any = 1.0) -> Any:
    """The solution of -div(k grad u) = source with u = boundary; both are zero if omitted, and k is 1."""
    ng: Any = importlib.import_module("ngsolve")
    u, v = space.TnT()
    stiffness = ng.BilinearForm(
        conductivity * ng.grad(u) * ng.grad(v) * ng.dx, symmetric=True, condense=True
    ).Assemble()
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


def evaluator(mesh: Any, solution: Any) -> Evaluate:
    return lambda points: np.asarray(solution(mesh(*coordinates(points)))).reshape(len(points))
