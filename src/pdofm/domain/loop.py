"""One smooth closed curve in the plane, as a Fourier series: points at equal arc lengths, normals, signed distances."""

from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Complex, Float, Int

from pdofm._types import Normals, Points, Vector
from pdofm.domain.boundary import Chart
from pdofm.errors import DomainError
from pdofm.numerics.quantiles import Quantiles
from pdofm.numerics.sampling import UnitPoints

SAMPLES_PER_MODE, FEWEST_SAMPLES = 16, 512
"""Points of the curve at which a search for the nearest one begins: so many for each Fourier mode, and at least so many
in all."""

NEAR = 4.0
"""Points closer to the curve than this many distances of samples get a distance that is exact up to rounding. Farther
away, a Taylor polynomial at the nearest sample gives it to about ten digits."""

CONDITION = 1e-6
"""The least speed of a curve, relative to the mean speed; a slower one has a corner or a cusp."""

BATCH = 2**22
"""The most complex numbers that an evaluation holds at once."""

Jet = Complex[np.ndarray, "order n"]
Plane = Complex[np.ndarray, " n"]


class Loop:
    """A closed curve z(t) = Σ cₖ exp(2πikt) in the complex plane, 0 ≤ t ≤ 1, for k from -m to m; turned around if it
    runs clockwise.

    Args:
        modes: the coefficients.
        what: what errors call it.
    """

    def __init__(self, modes: Complex[np.ndarray, " modes"], what: str):
        k = np.arange(len(modes)) - len(modes) // 2
        # Green's theorem: the area is half the integral of Im(conj(z) z').
        area = float(np.pi * np.sum(k * np.abs(modes) ** 2))
        self.modes = modes if area > 0 else modes[::-1]
        self.area = abs(area)
        self._rates = 2j * np.pi * k
        self._check(what)
        self._quantiles = Quantiles(lambda t: np.abs(self.jet(t, 1)[1]), what)
        self.length = self._quantiles.total

    def jet(self, t: Vector, order: int) -> Jet:
        """The curve and its derivatives up to `order`, at parameters."""
        scaled = self.modes * self._rates ** np.arange(order + 1)[:, None]
        found = np.empty((order + 1, len(t)), dtype=complex)
        step = max(1, BATCH // len(self.modes))
        for start in range(0, len(t), step):
            found[:, start : start + step] = scaled @ np.exp(np.multiply.outer(self._rates, t[start : start + step]))
        return found

    def chart(self, sign: float) -> Chart:
        """Points at fractions of the length, with outward normals, or inward ones if the sign is -1."""

        def chart(u: UnitPoints) -> tuple[Points, Normals]:
            t = self._quantiles(u[:, 0] - np.floor(u[:, 0]))
            z, velocity = self.jet(t, 1)
            normal = -1j * sign * velocity / np.abs(velocity)
            normals = _plane(normal)
            return _plane(z), normals / np.linalg.norm(normals, axis=1, keepdims=True)

        return chart

    @cached_property
    def bounds(self) -> tuple[Vector, Vector]:
        """The corners of the bounding box."""
        extremes = [[self._extreme(turn * sign) * sign for turn in (1.0, -1j)] for sign in (-1.0, 1.0)]
        return np.array(extremes[0]), np.array(extremes[1])

    def _extreme(self, direction: complex | float) -> float:
        """The largest coordinate Re(direction · z)."""
        t = self._samples[0][np.argmax((direction * self._samples[1][0]).real)]
        for _ in range(8):
            _, slope, bend = (direction * self.jet(np.array([t]), 2)[:, 0]).real
            t -= slope / bend if bend < 0 else 0.0
        best = max((direction * self.jet(np.array([t]), 0)[0, 0]).real, (direction * self._samples[1][0]).real.max())
        return float(best + np.spacing(abs(best)))

    def level(self, x: Points) -> Vector:
        """The signed distance of points `(n, 2)`, positive inside."""
        z = x[:, 0] + 1j * x[:, 1]
        parameters, jets, spacing = self._samples
        nearest: Int[np.ndarray, " n"] = self._tree.query(x)[1]
        t, level = _nearest_on_taylor(z, jets[:, nearest])
        t += parameters[nearest]
        close = np.flatnonzero(np.abs(level) < NEAR * spacing)
        level[close] = self._polished(z[close], t[close])
        return level

    def _polished(self, z: Plane, t: Vector) -> Vector:
        """The signed distance, from parameters near that of the nearest point, by Newton's method."""
        for _ in range(2):
            at, velocity, bend = self.jet(t, 2)
            t = t + _newton_step(at - z, velocity, bend)
        at, velocity = self.jet(t, 1)
        return ((at - z) * np.conj(-1j * velocity / np.abs(velocity))).real

    @cached_property
    def _samples(self) -> tuple[Vector, Jet, float]:
        """Parameters, the curve there with three derivatives, and the largest distance between neighbours."""
        count = max(FEWEST_SAMPLES, SAMPLES_PER_MODE * len(self.modes))
        t = np.arange(count) / count
        # At equispaced parameters the series are Fourier transforms.
        padded, middle = np.zeros((4, count), dtype=complex), len(self.modes) // 2
        scaled = self.modes * self._rates ** np.arange(4)[:, None]
        padded[:, : len(self.modes) - middle] = scaled[:, middle:]
        padded[:, count - middle :] = scaled[:, :middle]
        jets = np.fft.ifft(padded, axis=1) * count
        return t, jets, float(np.abs(np.diff(jets[0], append=jets[0, :1])).max())

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(_plane(self._samples[1][0]))

    def _check(self, what: str) -> None:
        """Raise unless the curve is regular and does not cross itself."""
        import shapely

        _, jets, _ = self._samples
        speed = np.abs(jets[1])
        if not speed.min() > CONDITION * speed.mean():
            raise DomainError(f"{what} stands still or has a cusp; expected a curve that moves on everywhere.")
        if not shapely.LinearRing(_plane(jets[0])).is_simple:
            raise DomainError(f"{what} crosses itself; expected a simple closed curve. Give more points along it.")


def _nearest_on_taylor(z: Plane, jets: Jet) -> tuple[Vector, Vector]:
    """The parameter of the point nearest to z on the Taylor polynomial of a curve, and the signed distance of z."""
    at, velocity, bend, third = jets
    t = np.zeros(len(z))
    for _ in range(2):
        point = at + t * (velocity + t * (bend / 2 + t * third / 6))
        slope = velocity + t * (bend + t * third / 2)
        t += _newton_step(point - z, slope, bend + t * third)
    point = at + t * (velocity + t * (bend / 2 + t * third / 6))
    slope = velocity + t * (bend + t * third / 2)
    return t, ((point - z) * np.conj(-1j * slope / np.abs(slope))).real


def _newton_step(away: Plane, velocity: Plane, bend: Plane) -> Vector:
    """A step towards Re(away · conj(velocity)) = 0. Beyond the centre of curvature, where the second derivative of the
    distance is not positive, it is that of a straight line."""
    slope, straight = np.real(away * np.conj(velocity)), np.abs(velocity) ** 2
    curved = straight + np.real(away * np.conj(bend))
    return -slope / np.where(curved > 0.1 * straight, curved, straight)


def _plane(z: Plane) -> Float[np.ndarray, "n 2"]:
    return np.stack([np.real(z), np.imag(z)], axis=1)
