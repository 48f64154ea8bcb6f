"""Domains: where a problem lives, its boundary in named pieces with outward normals, and points in both."""

from pdofm.domain.ball import Annulus, Ball, Disk, Shell
from pdofm.domain.base import Domain, Part, Piece
from pdofm.domain.box import Box, Interval
from pdofm.domain.csg import Difference, Intersection, Union, trim
from pdofm.domain.outline import PlaneCorner, corners, outline
from pdofm.domain.polygon import Polygon
from pdofm.domain.spacetime import SpaceTime

__all__ = [
    "Annulus",
    "Ball",
    "Box",
    "Difference",
    "Disk",
    "Domain",
    "Intersection",
    "Interval",
    "Part",
    "Piece",
    "PlaneCorner",
    "Polygon",
    "Shell",
    "SpaceTime",
    "Union",
    "corners",
    "outline",
    "trim",
]
