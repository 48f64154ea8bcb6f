"""First boxes along curved interfaces.

Around a round hole or inclusion of radius ρ, a solution continues analytically only to some depth into it, at most ρ:
the field of an inclusion has poles at its centre. Polynomials in boxes that are much larger than ρ converge slowly
there.
"""

import numpy as np

from pdofm._types import Points, Vector
from pdofm.domain import Domain
from pdofm.domain.tree import Forest
from pdofm.numerics.nodes import midpoints

ALONG = {1: 64, 2: 12}
"""Points along each parameter of a piece of boundary at which its curvature is looked at, by the number of
parameters."""

STEP = 1e-4
"""Distance of the parameters between which normals are compared."""

RADII = 1.0
"""First boxes around a hole are at most so many times as large as its radius of curvature."""


def split_around_holes(tree: Forest, domain: Domain) -> None:
    """Split boxes of regions that surround others until none is much larger than the radius of what it surrounds."""
    assert domain.materials is not None
    for number, region in enumerate(domain.materials.by_name.values()):
        points, radii = _hollows(region)
        waiting = tree.of_tree(number).tolist() if len(points) else []
        while waiting:
            node = waiting.pop()
            lower, upper = tree.box(node)
            held = np.all((points >= lower) & (points <= upper), axis=1)
            sides = (upper - lower)[: region.dim - region.has_time]
            if held.any() and np.max(sides) > (1 + 1e-9) * RADII * np.min(radii[held]):
                pieces = [node]
                for axis in np.flatnonzero(sides > 0.6 * np.max(sides)).tolist():
                    pieces = [half for piece in pieces for half in tree.split(piece, axis)]
                waiting += pieces


def _hollows(region: Domain) -> tuple[Points, Vector]:
    """Points of the boundary that curve around what lies outside, and the radii of curvature there."""
    found = [(np.zeros((0, region.dim)), np.zeros(0))]
    for piece in region.pieces:
        if piece.dim not in ALONG:
            continue
        u = midpoints(ALONG[piece.dim], piece.dim)
        points, normals = piece.chart(u)
        bends = []
        for axis in range(piece.dim):
            beside, turned = piece.chart(u + STEP * np.eye(piece.dim)[axis])
            moved = beside - points
            bends.append(np.sum((turned - normals) * moved, axis=1) / np.maximum(np.sum(moved**2, axis=1), 1e-300))
        bend = np.min(bends, axis=0)
        hollow = bend * region.size < -1e-3
        found.append((points[hollow], -1 / bend[hollow]))
    points, radii = zip(*found, strict=True)
    return np.concatenate(points), np.concatenate(radii)
