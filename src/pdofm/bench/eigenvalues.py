"""Eigenvalues of membranes: `pf.eigs` beside finite elements of high order with a sparse eigensolver.

The finite elements are those of NGSolve, curved at curved boundaries and refined towards re-entrant corners; ARPACK
finds the eigenvalues of their matrices, with a shift of zero and a sparse LU factorisation. The order is raised until
the eigenvalues are as accurate as those of `pf.eigs`, or the best order is reported. Both are timed in processes of
their own, from the statement of the problem to the eigenvalues, without the first run.

``python -m pdofm.bench.eigenvalues WHO CASE`` measures one of them.
"""

import importlib
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from pdofm.bench.process import ask, failed, results
from pdofm.bench.timing import Row
from pdofm.domain import Box, Disk, Domain

TOL = 1e-10
"""The relative error of eigenvalues that is asked for."""

ORDERS = range(4, 17, 2)
"""Orders of finite elements."""

LAYERS, FACTOR = 12, 0.15
"""Refinements towards a re-entrant corner, and by how much each is smaller than the one before."""


@dataclass(frozen=True)
class Membrane:
    """A membrane that is fixed on its boundary, with its exact eigenvalues, and how NGSolve describes it."""

    domain: Callable[[], Domain]
    exact: np.ndarray
    mesh: Callable[[], Any]
    is_curved: bool = False


def _square() -> Any:
    from pdofm.bench.contenders.ngsolve_tools import grid, mesh_of

    knots = np.linspace(0, 1, 3)
    return mesh_of(*grid(knots, knots))


def _disk() -> Any:
    geometry = importlib.import_module("netgen.geom2d").SplineGeometry()
    geometry.AddCircle((0, 0), 1)
    return importlib.import_module("ngsolve").Mesh(geometry.GenerateMesh(maxh=0.7))


def _lshape() -> Any:
    geometry = importlib.import_module("netgen.geom2d").SplineGeometry()
    corners = [(-1, -1), (1, -1), (1, 0), (0, 0), (0, 1), (-1, 1)]
    points = [geometry.AppendPoint(x, y, **({"hpref": 1} if (x, y) == (0, 0) else {})) for x, y in corners]
    for first, second in zip(points, points[1:] + points[:1], strict=True):
        geometry.Append(["line", first, second])
    mesh = importlib.import_module("ngsolve").Mesh(geometry.GenerateMesh(maxh=1.0))
    mesh.RefineHP(LAYERS, FACTOR)
    return mesh


BESSEL = np.array([2.404825557695773, *[3.831705970207512] * 2, *[5.135622301840683] * 2, 5.520078110286311])
"""Zeros of the Bessel functions of order 0, 1, 1, 2, 2 and 0: the roots of the first eigenvalues of the disk."""

CASES = {
    "square": Membrane(lambda: Box([0, 0], [1, 1]), np.pi**2 * np.array([2, 5, 5, 8, 10, 10]), _square),
    "disk": Membrane(
        Disk,
        BESSEL**2,
        _disk,
        True,
    ),
    # Betcke and Trefethen (2005), and Trefethen and Betcke (2006); the third is 2 π².
    "L-shape": Membrane(
        lambda: Box([-1, -1], [1, 1]) - Box([0, 0], [1, 1]),
        np.array([9.6397238440219, 15.197251926454, 2 * np.pi**2, 29.5214811141, 31.9126359571]),
        _lshape,
    ),
}
"""The membranes by name."""


def bench_eigenvalues() -> list[Row]:
    """Seconds for the eigenvalues of each membrane, ours beside those of NGSolve at the same accuracy."""
    rows = []
    for case, membrane in CASES.items():
        ours = ask("-m", __name__, "pdofm", case)
        theirs = ask("-m", __name__, "ngsolve", case) if find_spec("ngsolve") else None
        if ours.failure:
            rows.append(failed("eigenvalues", case, ours.failure))
            continue
        (found,) = ours.lines
        label = f"{case}, {len(membrane.exact)} values to {found['error']:.0e}"
        if theirs is None or not theirs.lines:
            against = "NGSolve is not installed" if theirs is None else theirs.failure
            rows.append(Row("eigenvalues", label, against, found["seconds"], math.nan))
            continue
        best = _comparable(theirs.lines, found["error"])
        against = f"NGSolve, order {best['order']}, {best['error']:.0e}"
        rows.append(Row("eigenvalues", label, against, found["seconds"], best["seconds"]))
    return rows


def _comparable(levels: list[dict[str, Any]], error: float) -> dict[str, Any]:
    """The cheapest level that is as accurate as that, or as was asked for; else the most accurate one."""
    good = [level for level in levels if level["error"] <= max(error, TOL)]
    return min(good, key=lambda each: each["seconds"]) if good else min(levels, key=lambda each: each["error"])


def _ours(case: Membrane) -> np.ndarray:
    import pdofm as pf

    problem = pf.Problem(case.domain(), lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet(0.0)])
    return pf.eigs(problem, len(case.exact), tol=TOL).values


def _theirs(case: Membrane, order: int) -> np.ndarray:
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import eigsh

    ng = importlib.import_module("ngsolve")
    mesh = case.mesh()
    if case.is_curved:
        mesh.Curve(order)
    space = ng.H1(mesh, order=order, dirichlet=".*")
    u, v = space.TnT()
    forms = ng.grad(u) * ng.grad(v) * ng.dx, u * v * ng.dx
    free = np.flatnonzero(np.array([bool(each) for each in space.FreeDofs()]))
    matrices = []
    for form in forms:
        assembled = ng.BilinearForm(form).Assemble()  # it owns the arrays
        values, columns, starts = (np.array(each) for each in assembled.mat.CSR())
        shape = (space.ndof, space.ndof)
        whole = csc_matrix((values, columns, starts), shape=shape)  # it is symmetric
        matrices.append(whole[free][:, free])
    found = eigsh(matrices[0], len(case.exact), matrices[1], sigma=0.0, return_eigenvectors=False, tol=1e-15)
    return np.sort(found)


def main(who: str, name: str) -> None:
    """Measure, and print each level as a line."""
    report, case = results(), CASES[name]
    for order in [0] if who == "pdofm" else ORDERS:
        seconds, values = [], np.zeros(0)
        for _ in range(3):
            start = time.perf_counter()
            values = _ours(case) if who == "pdofm" else _theirs(case, order)
            seconds.append(time.perf_counter() - start)
        error = float(np.max(np.abs(np.sort(values) - case.exact) / case.exact))
        report({"order": order, "seconds": float(np.median(seconds[1:])), "error": error})


if __name__ == "__main__":
    main(*sys.argv[1:])
