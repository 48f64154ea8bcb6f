"""Functions on slabs of time: in each slab, a space of functions of x times polynomials in t."""

from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from pdofm._types import Coefficients, FeatureValues, Point, Points
from pdofm.calculus.jets import Index
from pdofm.errors import FeaturesError
from pdofm.features.base import Features, Jets, Unmapped, check_count
from pdofm.features.box import Corner
from pdofm.features.patches import grouped
from pdofm.features.spectral import polynomials, table

BEYOND = 1e-9
"""How far beyond the last slab a time may be, as a part of all time: rounding."""


class Slabs(Unmapped):
    """Products φⱼ(x) Tₖ(t) in slabs of time, zero outside of their own slab; ``march`` finds such slabs.

    Feature ``start + j * (degree + 1) + k`` of a slab is function j of its space times the Chebyshev polynomial of
    degree k on the slab. Functions of this space may jump in time, and have no value after the last slab.

    Args:
        times: the ends of the slabs, ascending.
        spaces: features in space, without time.
        numbers: for each slab the space that it uses.
        degree: of the polynomials in time.
    """

    tied_to: ClassVar[str] = "its slabs of time. March on the other domain to find others"

    times: Float[np.ndarray, " n"]
    spaces: tuple[Features, ...]
    numbers: tuple[int, ...] = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    lower: Corner
    upper: Corner

    def __init__(self, times: Sequence[float], spaces: Sequence[Features], numbers: Sequence[int], degree: int):
        self.times, self.numbers = np.asarray(times, dtype=np.float64), tuple(int(number) for number in numbers)
        self.spaces, self.degree = tuple(spaces), check_count("degree", degree, least=0)
        self.lower = np.append(np.min([np.asarray(space.lower) for space in self.spaces], axis=0), self.times[0])
        self.upper = np.append(np.max([np.asarray(space.upper) for space in self.spaces], axis=0), self.times[-1])

    def __check_init__(self) -> None:
        """Refuse what does not fit together; a file may hold anything."""
        count = len(self.numbers)
        if count == 0 or self.times.shape != (count + 1,) or not np.all(np.diff(self.times) > 0):
            raise FeaturesError("Slabs need ascending times, one more than slabs.")
        if min(self.numbers) < 0 or max(self.numbers) >= len(self.spaces):
            raise FeaturesError(f"Slabs refer to {len(self.spaces)} spaces; got numbers that are not among them.")

    @property
    def starts(self) -> Int[np.ndarray, " n"]:
        """The first feature of each slab; one more at the end."""
        sizes = np.array([space.size for space in self.spaces])[list(self.numbers)] * (self.degree + 1)
        return np.concatenate([[0], np.cumsum(sizes)])

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    @property
    def most_at_a_point(self) -> int:
        return max(space.most_at_a_point for space in self.spaces)

    def locate(self, times: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The slab of each time; times before the first or after the last belong to these."""
        return np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.numbers) - 1)

    def expand(self, points: Points, which: Sequence[Index], coefficients: Coefficients) -> Float[np.ndarray, "a n C"]:
        starts, m, components = self.starts, self.degree + 1, coefficients.shape[1]
        found = np.empty((len(which), len(points), components))
        in_space = list(dict.fromkeys(index[:-1] for index in which))
        for slab, at in grouped(self.locate(points[:, -1])):
            own = coefficients[starts[slab] : starts[slab + 1]].reshape(-1, m * components)
            values = self.spaces[self.numbers[slab]].expand(points[at, :-1], in_space, own)
            values = values.reshape(len(in_space), len(at), m, components)
            in_time = self._table(slab, points[at, -1], max(index[-1] for index in which))
            for out, index in zip(found, which, strict=True):
                out[at] = np.einsum("kn,nkc->nc", in_time[index[-1]], values[in_space.index(index[:-1])])
        late = points[:, -1] > self.times[-1] + BEYOND * (self.times[-1] - self.times[0])
        found[:, late] = np.nan
        return found

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        starts, found = self.starts, np.zeros((len(which), self.size, len(points)))
        for slab, at in grouped(self.locate(points[:, -1])):
            values = self.spaces[self.numbers[slab]].jets(points[at, :-1], [index[:-1] for index in which])
            in_time = self._table(slab, points[at, -1], max(index[-1] for index in which))
            for a, index in enumerate(which):
                products = np.einsum("nj,kn->jkn", values[a], in_time[index[-1]])
                found[a, starts[slab] : starts[slab + 1], at] = products.reshape(-1, len(at)).T
        return np.swapaxes(found, 1, 2)

    def _table(self, slab: int, times: Float[np.ndarray, " n"], orders: int) -> np.ndarray:
        start, end = self.times[slab : slab + 2]
        slope = 2 / (end - start)
        return table([(times - (start + end) / 2) * slope, slope, *[0.0] * orders][: orders + 1], self.degree)

    def __call__(self, x: Point) -> FeatureValues:
        """All features at one point, by differentiable operations: for the few uses that need them all."""
        times = jnp.asarray(self.times)
        here = jnp.clip(jnp.searchsorted(times, jax.lax.stop_gradient(x[-1]), side="right") - 1, 0, len(times) - 2)
        y = (2 * x[-1] - times[here] - times[here + 1]) / (times[here + 1] - times[here])
        in_time = polynomials(y[None], np.arange(self.degree + 1)[:, None])
        in_space = [jnp.outer(space(x[:-1]), in_time).reshape(-1) for space in self.spaces]
        values = jnp.concatenate([in_space[number] for number in self.numbers])
        owner = np.repeat(np.arange(len(self.numbers)), np.diff(self.starts))
        return jnp.where(here.astype(jnp.int64) == owner, values, 0.0)
