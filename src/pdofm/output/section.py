"""Plane sections of domains: the points at which a map is evaluated, and the outline that it is clipped to."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from pdofm._types import Points, Vector
from pdofm.domain import Domain, SpaceTime, outline
from pdofm.errors import DomainError

MAP_RESOLUTION, SLICE_RESOLUTION = 300, 200
"""Default number of points along the longest side, of a single map and of each of several maps."""

Along = Float[np.ndarray, " nx"]
Across = Float[np.ndarray, " ny"]
Image = Float[np.ndarray, "ny nx"]
Limits = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Section:
    """The intersection of a domain and a plane: the two coordinates `axes` vary, the others are those of `through`.

    `points` `(n, dim)` are the points of a fine grid of the plane that lie in the domain; panels take one value for
    each of them. By default the plane passes through the center of the bounding box.
    """

    domain: Domain
    axes: tuple[int, int] = (0, 1)
    through: Vector | None = None
    resolution: int = MAP_RESOLUTION
    title: str = ""

    @cached_property
    def points(self) -> Points:
        """The points of the grid that lie in the domain, `(n, dim)`."""
        return self.lifted(*self.coordinates)[self.inside.ravel()]

    @cached_property
    def inside(self) -> Bool[np.ndarray, "ny nx"]:
        """Which points of the grid `(y, x)` lie in the domain."""
        return self._level(*self.coordinates) > 0

    @cached_property
    def coordinates(self) -> tuple[Along, Across]:
        """The coordinates of the grid: the middles of pixels, because on the sides of the box the level may be 0."""
        sides = np.array([high - low for low, high in self.bounds])
        share = sides / sides.max() if self.equal_aspect else np.ones(2)
        x, y = (
            low + (high - low) * (np.arange(count) + 0.5) / count
            for (low, high), count in zip(self.bounds, np.ceil(self.resolution * share), strict=True)
        )
        return x, y

    @property
    def bounds(self) -> tuple[Limits, Limits]:
        """The least and the largest coordinate along both axes."""
        lower, upper = self.domain.lower, self.domain.upper
        x, y = ((float(lower[axis]), float(upper[axis])) for axis in self.axes)
        return x, y

    @property
    def equal_aspect(self) -> bool:
        """Whether both axes are lengths, and neither is time."""
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
        # No piece of the boundary is a curve in this plane; the outline is where the level vanishes. One more row of
        # points on each side of the grid closes it.
        x, y = (np.concatenate([[2 * s[0] - s[1]], s, [2 * s[-1] - s[-2]]]) for s in self.coordinates)
        return [np.asarray(line) for line in contour_generator(x, y, self._level(x, y)).lines(0.0)]

    @cached_property
    def regions(self) -> "list[Section]":
        """The sections of the regions that the plane meets, if the domain consists of several."""
        if self.domain.materials is None:
            return []
        center = 0.5 * (self.domain.lower + self.domain.upper) if self.through is None else self.through
        each = [replace(self, domain=region, through=center) for region in self.domain.materials.by_name.values()]
        return [section for section in each if section.inside.any()]

    def image(self, values: Vector) -> Image:
        """Values at `points` as an image `(y, x)`; pixels outside the domain have the value of the nearest one inside.

        They are clipped by the outline later, but without them the pixels that the boundary crosses would stay empty.
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
        """The points of a grid of the plane, with all coordinates, `(n, dim)`."""
        center = 0.5 * (self.domain.lower + self.domain.upper) if self.through is None else self.through
        points = np.tile(center, (len(x) * len(y), 1))
        points[:, self.axes] = np.stack([each.ravel() for each in np.meshgrid(x, y)], axis=1)
        return points

    def _level(self, x: Along, y: Across) -> Image:
        points = self.lifted(x, y)
        # At the first and the last time the level of a space-time is 0 everywhere; that of the space is wanted.
        if isinstance(self.domain, SpaceTime) and self.equal_aspect:
            return self.domain.space.level(points[:, :-1]).reshape(len(y), len(x))
        return self.domain.level(points).reshape(len(y), len(x))


def sections(domain: Domain, resolution: int | None = None) -> list[Section]:
    """The sections that show a domain of two or more dimensions.

    A domain with two coordinates is shown as it is, also if one of them is time. A plane domain with time is shown at
    the first, the middle and the last time, and a domain of three dimensions at 1/4, 1/2 and 3/4 of its height. Others
    are shown in the plane of the first two axes through the center of the bounding box.
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
        raise DomainError(f"None of the default planes meets {domain!r}. Draw a Section(domain, through=…) instead.")
    return shown


def axis_names(domain: Domain) -> list[str]:
    """The names of the axes: x, y, z and t, or x_0, x_1, … if space has more than three dimensions."""
    space = domain.dim - domain.has_time
    names = ["x", "y", "z"][:space] if space <= 3 else [f"x_{{{axis}}}" for axis in range(space)]
    return [*names, "t"] if domain.has_time else names
