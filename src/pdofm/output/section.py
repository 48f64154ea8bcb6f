"""Plane sections of domains: the points of a map, and the outline that cuts it to the true shape."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from pdofm._types import Points, Vector
from pdofm.domain import Domain, SpaceTime, outline
from pdofm.errors import DomainError

# Points along the longest side: of a map, of each of several slices.
MAP_RESOLUTION, SLICE_RESOLUTION = 300, 200

Along = Float[np.ndarray, " nx"]
Across = Float[np.ndarray, " ny"]
Image = Float[np.ndarray, "ny nx"]
Limits = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Section:
    """The part of a domain in a plane: the coordinates `axes` vary, the others stay as in `through` `(dim,)`.

    `points` `(n, dim)` are those points of a fine grid of the plane that lie in the domain; the panels take one value
    for each of them. By default the plane goes through the center of the bounding box.
    """

    domain: Domain
    axes: tuple[int, int] = (0, 1)
    through: Vector | None = None
    resolution: int = MAP_RESOLUTION
    title: str = ""

    @cached_property
    def points(self) -> Points:
        return self.lifted(*self.coordinates)[self.inside.ravel()]

    @cached_property
    def inside(self) -> Bool[np.ndarray, "ny nx"]:
        """Which points of the grid `(y, x)` lie in the domain."""
        return self._level(*self.coordinates) > 0

    @cached_property
    def coordinates(self) -> tuple[Along, Across]:
        """The coordinates of the grid: middles of pixels, since on the sides of the box a level of 0 can mislead."""
        sides = np.array([high - low for low, high in self.bounds])
        share = sides / sides.max() if self.equal_aspect else np.ones(2)
        x, y = (
            low + (high - low) * (np.arange(count) + 0.5) / count
            for (low, high), count in zip(self.bounds, np.ceil(self.resolution * share), strict=True)
        )
        return x, y

    @property
    def bounds(self) -> tuple[Limits, Limits]:
        lower, upper = self.domain.lower, self.domain.upper
        x, y = ((float(lower[axis]), float(upper[axis])) for axis in self.axes)
        return x, y

    @property
    def equal_aspect(self) -> bool:
        """Whether both axes are lengths; a time has another unit."""
        return not (self.domain.has_time and self.domain.dim - 1 in self.axes)

    @cached_property
    def loops(self) -> list[Float[np.ndarray, "n 2"]]:
        """The outline as closed curves, with the domain on their left."""
        from contourpy import contour_generator  # what matplotlib draws contours with

        plane = self.domain.space if isinstance(self.domain, SpaceTime) else self.domain
        if self.domain.is_box:
            (left, right), (bottom, top) = self.bounds
            return [np.array([(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)])]
        if plane.dim == 2 and self.axes == (0, 1):
            return outline(plane)
        # No piece is a curve in this plane, but the level vanishes on it. A ring around the grid closes them.
        x, y = (np.concatenate([[2 * s[0] - s[1]], s, [2 * s[-1] - s[-2]]]) for s in self.coordinates)
        return [np.asarray(line) for line in contour_generator(x, y, self._level(x, y)).lines(0.0)]

    def image(self, values: Vector) -> Image:
        """Values at `points` as an image `(y, x)`, continued outside by the nearest one.

        The outline cuts that off again; without it, the pixels that the boundary crosses would stay empty.
        """
        from scipy.ndimage import distance_transform_edt

        image = np.full(self.inside.shape, np.nan)
        image[self.inside] = values
        known = np.isfinite(image)
        if not known.any():
            return image
        nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
        return image[tuple(np.asarray(nearest))]

    def lifted(self, x: Along, y: Across) -> Points:
        """The points `(n, dim)` of a grid of the plane."""
        center = 0.5 * (self.domain.lower + self.domain.upper) if self.through is None else self.through
        points = np.tile(center, (len(x) * len(y), 1))
        points[:, self.axes] = np.stack([each.ravel() for each in np.meshgrid(x, y)], axis=1)
        return points

    def _level(self, x: Along, y: Across) -> Image:
        points = self.lifted(x, y)
        # At its first and last time the level of a space-time is 0, but the space there is as good as any.
        if isinstance(self.domain, SpaceTime) and self.equal_aspect:
            return self.domain.space.level(points[:, :-1]).reshape(len(y), len(x))
        return self.domain.level(points).reshape(len(y), len(x))


def sections(domain: Domain, resolution: int | None = None) -> list[Section]:
    """The planes that show a domain of two or more dimensions.

    The domain itself in the plane, and for one dimension and time; the first, middle and last time in space-time; z at
    1/4, 1/2 and 3/4 in three dimensions; beyond that the plane of the first two axes through the center of the box.
    """
    if domain.dim == 2:
        return [Section(domain, resolution=resolution or MAP_RESOLUTION)]
    center, names = 0.5 * (domain.lower + domain.upper), axis_names(domain)
    planes = [center]
    if domain.has_time or domain.dim == 3:
        fractions = (0.0, 0.5, 1.0) if domain.has_time else (0.25, 0.5, 0.75)
        planes = [np.append(center[:-1], domain.lower[-1] * (1 - s) + domain.upper[-1] * s) for s in fractions]
    found = []
    for through in planes:
        title = ", ".join(f"${name} = {value:.3g}$" for name, value in zip(names[2:], through[2:], strict=True))
        points = resolution or (MAP_RESOLUTION if len(planes) == 1 else SLICE_RESOLUTION)
        found.append(Section(domain, through=through, resolution=points, title=title))
    shown = [section for section in found if section.inside.any()]
    if not shown:
        raise DomainError(f"No plane through the middle of {domain!r} meets it; draw a Section(domain, through=…).")
    return shown


def axis_names(domain: Domain) -> list[str]:
    """x, y, z and t; x_0, x_1, … if space has more than three dimensions."""
    space = domain.dim - domain.has_time
    names = ["x", "y", "z"][:space] if space <= 3 else [f"x_{{{axis}}}" for axis in range(space)]
    return [*names, "t"] if domain.has_time else names
