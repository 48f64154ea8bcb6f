"""Domains: shapes with boundaries of named pieces and outward normals, and points inside and on the boundary."""

from pdofm.domain.ball import Annulus, Ball, Disk, Shell
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Part, Piece
from pdofm.domain.box import Box, Interval
from pdofm.domain.csg import Difference, Intersection, Union
from pdofm.domain.holes import RoundHole, round_holes
from pdofm.domain.outline import PlaneCorner, corners, outline
from pdofm.domain.polygon import Polygon
from pdofm.domain.regions import Regions
from pdofm.domain.spacetime import SpaceTime
from pdofm.domain.trim import trim

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
    "Regions",
    "RoundHole",
    "Shell",
    "SpaceTime",
    "Union",
    "corners",
    "outline",
    "round_holes",
    "trim",
]
