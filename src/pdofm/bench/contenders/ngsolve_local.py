"""NGSolve on problems with local solutions: meshes that are made for each of them.

The meshes know where the peak and the front are. Elements are small there and of high order, larger and of lower order
elsewhere; at holes they are curved.
"""

import importlib
from math import pi
from typing import Any

import numpy as np

from pdofm.bench.contenders import Evaluate
from pdofm.bench.contenders.local import CENTERS, FRONT, PEAK_CENTER, PEAK_WIDTH, RADIUS, WELLS
from pdofm.bench.contenders.ngsolve_tools import evaluator, grid, mesh_of, ngsolve, poisson, set_orders

OUTER_ORDER = 2
"""Order of the elements that the peak does not reach."""

REACH = 4.9
"""A peak is below 1e-10 at so many times its width."""


def holes(maxh: int, order: int) -> Evaluate:
    """Triangles of size `maxh` percent, curved at the holes."""
    ng = ngsolve()
    geometry = importlib.import_module("netgen.geom2d").SplineGeometry()
    geometry.AddRectangle((-0.5, -0.5), (0.5, 0.5), leftdomain=1, rightdomain=0)
    for center in CENTERS:
        geometry.AddCircle(center, RADIUS, leftdomain=0, rightdomain=1)
    with ng.TaskManager():
        mesh = ng.Mesh(geometry.GenerateMesh(maxh=maxh / 100, curvaturesafety=1.0, grading=0.8))
        mesh.Curve(order)
        exact = ng.x**2 - ng.y**2
        for i, (a, b) in enumerate(WELLS):
            exact += (0.5 + 0.15 * i) * ng.log((ng.x - a) ** 2 + (ng.y - b) ** 2)
        solution = poisson(ng.H1(mesh, order=order, dirichlet=".*"), boundary=exact)
    return evaluator(mesh, solution)


def peak(cells: int, order: int) -> Evaluate:
    """Squares around the peak, so many along each axis, and long rectangles of low order beyond."""
    ng = ngsolve()
    reach = REACH * PEAK_WIDTH
    knots = [np.concatenate([[0.0], np.linspace(c - reach, c + reach, cells + 1), [1.0]]) for c in PEAK_CENTER]
    with ng.TaskManager():
        mesh = mesh_of(*grid(*knots))
        square = sum((s - c) ** 2 for s, c in zip((ng.x, ng.y), PEAK_CENTER, strict=True)) / PEAK_WIDTH**2
        exact = ng.exp(-square)
        space = ng.H1(mesh, order=order, dirichlet=".*", order_policy=ng.ORDER_POLICY.VARIABLE)
        inner = lambda i: 1 <= i % (cells + 2) <= cells and 1 <= i // (cells + 2) <= cells
        set_orders(space, lambda i: order if inner(i) else OUTER_ORDER, range((cells + 2) ** 2))
        source = (4 / PEAK_WIDTH**2) * (1 - square) * exact
        solution = poisson(space, source, exact)
    return evaluator(mesh, solution)


def front(maxh: int, order: int) -> Evaluate:
    """Triangles of a size of `maxh` thousandths at the front that grow with the distance from it."""
    ng = ngsolve()
    netgen: Any = importlib.import_module("netgen.meshing")
    steepness, center, radius = FRONT
    geometry = importlib.import_module("netgen.geom2d").SplineGeometry()
    geometry.AddRectangle((0, 0), (1, 1))
    parameters = netgen.MeshingParameters(maxh=0.5, grading=0.2)
    for angle in np.linspace(0, pi / 2, 200):
        x, y = (center + radius * float(f(angle)) for f in (np.cos, np.sin))
        if min(x, y) >= 0:
            parameters.RestrictH(x=x, y=y, z=0, h=maxh / 1000)
    with ng.TaskManager():
        mesh = ng.Mesh(geometry.GenerateMesh(parameters))
        r = ng.sqrt((ng.x - center) ** 2 + (ng.y - center) ** 2)
        s = steepness * (r - radius)
        source = 2 * steepness**2 * s / (1 + s**2) ** 2 - steepness / (1 + s**2) / r
        solution = poisson(ng.H1(mesh, order=order, dirichlet=".*"), source, ng.atan(s))
    return evaluator(mesh, solution)
