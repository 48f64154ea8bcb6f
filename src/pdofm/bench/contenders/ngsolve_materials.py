"""NGSolve on problems with several materials: curved elements along interfaces, graded meshes at the corner of one."""

import importlib
from math import cos, pi
from typing import Any

from pdofm.bench.contenders import Evaluate
from pdofm.bench.contenders.local import DISK, ELLIPSE, QUARTER, QUARTER_EXPONENT
from pdofm.bench.contenders.ngsolve_tools import Cells, evaluator, mesh_of, ngsolve, poisson, set_orders

GRADING, SLOPE = 0.25, 1.0
"""The ratio of the sizes of two layers around a corner, and by how much the order decreases from layer to layer."""


def disk(maxh: int, order: int) -> Evaluate:
    """A disk, with triangles of size `maxh` percent."""
    ng = ngsolve()
    radius, inside = DISK
    contrast = (1 - inside) / (1 + inside)
    return _inclusion((radius, radius), inside, ng.x * (1 + contrast * radius**2 / (ng.x**2 + ng.y**2)), maxh, order)


def ellipse(maxh: int, order: int) -> Evaluate:
    """An ellipse, with triangles of size `maxh` percent, smaller where its curvature is large."""
    ng = ngsolve()
    a, b, inside = ELLIPSE
    c, z = (a**2 - b**2) ** 0.5, ng.x + 1j * ng.y
    field = 1 / (1 + b / (a + b) * (inside - 1))
    inverse = (z - ng.sqrt(z - c) * ng.sqrt(z + c)) / c
    return _inclusion((a, b), inside, ng.x + (field - 1) * a * (a + b) / c * inverse.real, maxh, order)


def _inclusion(axes: tuple[float, float], inside: float, exact: Any, maxh: int, order: int) -> Evaluate:
    """An elliptic inclusion in the square of side 2 whose conductivity is 1, with given values on its boundary."""
    ng = ngsolve()
    occ: Any = importlib.import_module("netgen.occ")
    plate, inclusion = occ.WorkPlane().RectangleC(2, 2).Face(), occ.WorkPlane().Ellipse(*axes).Face()
    if axes[0] == axes[1]:
        inclusion = occ.WorkPlane().Circle(axes[0]).Face()
    plate.edges.name, inclusion.faces.name = "outer", "inclusion"
    rest = plate - inclusion
    rest.faces.name = "plate"
    with ng.TaskManager():
        geometry = occ.OCCGeometry(occ.Glue([rest, inclusion]), dim=2)
        mesh = ng.Mesh(geometry.GenerateMesh(maxh=maxh / 100, curvaturesafety=1.0, grading=0.8))
        mesh.Curve(order)
        conductivity = mesh.MaterialCF({"plate": 1.0, "inclusion": inside})
        space = ng.H1(mesh, order=order, dirichlet="outer")
        solution = poisson(space, boundary=exact, conductivity=conductivity)
    return evaluator(mesh, solution)


def corner(layers: int, order: int) -> Evaluate:
    """Layers of quadrilaterals around the corner of an interface; the order decreases towards it."""
    ng = ngsolve()
    rim = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)]
    n = len(rim)
    corners = [(GRADING**layer * x, GRADING**layer * y) for layer in range(layers + 1) for x, y in rim]
    cells: Cells = [
        (layer * n + i, layer * n + (i + 1) % n, (layer + 1) * n + (i + 1) % n, (layer + 1) * n + i)
        for layer in range(layers)
        for i in range(n)
    ]
    cells += [(len(corners), layers * n + i, layers * n + (i + 1) % n) for i in range(n)]
    alpha = QUARTER_EXPONENT
    with ng.TaskManager():
        mesh = mesh_of([*corners, (0.0, 0.0)], cells)
        space = ng.H1(mesh, order=order, dirichlet=".*", order_policy=ng.ORDER_POLICY.VARIABLE)
        set_orders(space, lambda i: max(2, round(order - SLOPE * (i // n))), range(len(cells)))
        in_quarter = ng.IfPos(ng.x, ng.IfPos(ng.y, 1.0, 0.0), 0.0)
        # The angle to the diagonal through the quarter, from 0 to π.
        angle = ng.acos((ng.x + ng.y) / ng.sqrt(2 * (ng.x**2 + ng.y**2)))
        inside = cos(3 * pi / 4 * alpha) * ng.cos(alpha * angle)
        outside = cos(pi / 4 * alpha) * ng.cos(alpha * (pi - angle))
        exact = (ng.x**2 + ng.y**2) ** (alpha / 2) * ng.IfPos(in_quarter, inside, outside)
        solution = poisson(space, boundary=exact, conductivity=1 + (QUARTER - 1) * in_quarter)
    return evaluator(mesh, solution)
