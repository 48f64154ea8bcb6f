"""Domains: shapes with boundaries of named pieces and outward normals, and points inside and on the boundary."""

from pdofm.domain.ball import Annulus, Ball, Disk, Shell
from pdofm.domain.base import Domain
from pdofm.domain.boundary import Part, Piece
from pdofm.domain.box import Box, Interval
from pdofm.domain.csg import Difference, Intersection, Union
from pdofm.domain.curve import Curve, Ellipse
from pdofm.domain.holes import RoundHole, round_holes
from pdofm.domain.implicit import Implicit
from pdofm.domain.imported import read_geojson, read_svg
from pdofm.domain.mesh import Mesh
from pdofm.domain.moved import Moved
from pdofm.domain.outline import PlaneCorner, corners, outline
from pdofm.domain.polygon import Polygon
from pdofm.domain.regions import Regions
from pdofm.domain.solid import Cone, Cylinder, Extrusion, Revolution, Torus
from pdofm.domain.spacetime import SpaceTime
from pdofm.domain.trim import trim

__all__ = [
    "Annulus",
    "Ball",
    "Box",
    "Cone",
    "Curve",
    "Cylinder",
    "Difference",
    "Disk",
    "Domain",
    "Ellipse",
    "Extrusion",
    "Implicit",
    "Intersection",
    "Interval",
    "Mesh",
    "Moved",
    "Part",
    "Piece",
    "PlaneCorner",
    "Polygon",
    "Regions",
    "Revolution",
    "RoundHole",
    "Shell",
    "SpaceTime",
    "Torus",
    "Union",
    "corners",
    "outline",
    "read_geojson",
    "read_svg",
    "round_holes",
    "trim",
]
