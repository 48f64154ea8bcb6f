"""The statistics of fitted numbers and fields: intervals, what the data leave free, and whether they fit at all."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pdofm._types import Vector
from pdofm.problem.unknown import Number

LEVEL = 0.95
"""The probability with which an interval contains the truth."""

COLLINEAR = 1e-8
"""Below this ratio of singular values, with columns of unit norm, the derivatives of the data with respect to the
numbers are dependent up to the errors of the solution."""

FREE = 10.0
"""A combination of numbers whose standard deviation is this many times their size is not determined."""

OUTLIERS = 0.5
"""A robust loss forgives outliers as long as they are no more than this part of the data."""

FREE_FIELD = 1.0
"""A field whose standard deviation, in the mean over the domain, is this many times its size is not determined."""

NOTABLE = 0.05
"""Numbers with a smaller part in a combination are not named."""


NEGLIGIBLE = 1e-6
"""A number that changes the data by less than this, relatively, is measured against one that changes them by that."""


FACTOR = math.e
"""By which factor a positive number changes at most in a step."""

FAR, NEAREST = 1000.0, 0.01
"""How far from their start numbers are looked for: so many times as large or small, and the distance of the nearest,
of its logarithm, relative to that of the farthest."""


class Numbers:
    """Unknown numbers, and the coordinates in which they are searched for. Behind them in a vector are the coefficients
    of fields, which are their own coordinates.

    Attributes:
        names: of the numbers.
        fields: the names of the fields, with how many coefficients each has.
    """

    def __init__(self, numbers: Mapping[str, Number], fields: Mapping[str, int]):
        self.names, self.fields = list(numbers), dict(fields)
        self._numbers = [*numbers.values()] + [Number(0.0)] * sum(fields.values())

    @property
    def owners(self) -> list[str]:
        """The name of the number or the field to which each parameter belongs."""
        return self.names + [name for name, count in self.fields.items() for _ in range(count)]

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of the coordinates."""
        pairs = np.array([number.bounds for number in self._numbers])
        return pairs[:, 0], pairs[:, 1]

    def inward(self, vector: Float[np.ndarray, " p"]) -> np.ndarray:
        """The coordinates of values."""
        return np.array([number.inward(value) for number, value in zip(self._numbers, vector, strict=True)])

    def inside(self, vector: Float[np.ndarray, " p"]) -> np.ndarray:
        """The coordinates of values, moved off the bounds."""
        lower, upper = self.bounds
        room = np.where(np.isfinite(upper - lower), 1e-3 * (upper - lower), 1e-3 * (1 + np.abs(self.inward(vector))))
        return np.clip(self.inward(vector), lower + room, upper - room)

    @property
    def longest(self) -> np.ndarray:
        """How far the coordinates may move at once: positive numbers by `FACTOR`."""
        return np.array([math.log(FACTOR) if number.positive else np.inf for number in self._numbers])

    def elsewhere(self, q: Vector, count: int) -> np.ndarray:
        """Coordinates of other numbers, that many, the nearest first: up to finite bounds, else up to `FAR` times as
        large or small, with both signs if numbers need not be positive. Coefficients of fields stay."""
        found = np.tile(q, (count, 1))
        directions = 2 * spread_evenly(count, len(self.names)) - 1
        directions /= np.max(np.abs(directions), axis=1, keepdims=True)
        distances = NEAREST + (1 - NEAREST) * np.linspace(0.0, 1.0, count) ** 2
        for i, number in enumerate(self._numbers[: len(self.names)]):
            (lower, upper), away = number.bounds, distances * directions[:, i]
            if np.isfinite(upper - lower):
                ends = np.where(away > 0, upper - q[i], q[i] - lower)
                found[:, i] = q[i] + away * ends
            elif number.positive:
                found[:, i] = q[i] + away * math.log(FAR)
            else:
                found[:, i] = q[i] + (abs(q[i]) or 1.0) * np.sinh(away * math.asinh(FAR))
            found[:, i] = np.clip(found[:, i], lower, upper)
        return found

    def outward(self, coordinates: Float[np.ndarray, " p"]) -> np.ndarray:
        """The values at coordinates."""
        return np.array([number.outward(q) for number, q in zip(self._numbers, coordinates, strict=True)])

    def outward_at(self, index: int, coordinate: float) -> float:
        """The value of one parameter at its coordinate."""
        return float(self._numbers[index].outward(coordinate))

    def slopes(self, vector: Float[np.ndarray, " p"]) -> np.ndarray:
        """The derivatives of the values with respect to their coordinates."""
        return np.array([number.slope(value) for number, value in zip(self._numbers, vector, strict=True)])

    def shown(self, vector: Float[np.ndarray, " p"]) -> str:
        return ", ".join(f"{name} = {value:g}" for name, value in zip(self.names, vector, strict=False))


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is known about numbers that were fitted to data.

    Attributes:
        vector: the numbers.
        sizes: what changes of the numbers are compared with.
        intervals: for each of them an interval that contains it with 95 % probability.
        covariance: of their coordinates.
        noise: the standard deviation of the scaled residuals, from their size.
        free: the combination of numbers that the data do not determine; empty if there is none.
        misfit: how probable a misfit as large as this one is; None if the noise is not known.
        pseudo_inverse: of the derivatives of the residuals with respect to the coordinates.
    """

    numbers: Numbers
    vector: Float[np.ndarray, " p"]
    sizes: Float[np.ndarray, " p"]
    intervals: dict[str, tuple[float, float]]
    covariance: Float[np.ndarray, "p p"]
    noise: float
    free: str
    misfit: float | None
    pseudo_inverse: Float[np.ndarray, "p r"]

    @classmethod
    def of(
        cls,
        numbers: Numbers,
        vector: Float[np.ndarray, " p"],
        residual: Float[np.ndarray, " r"],
        jacobian: Float[np.ndarray, "r p"],
        thresholds: Float[np.ndarray, " t"],
        noise_is_unknown: bool,
        size: float,
        prior: Float[np.ndarray, "s p"],
        field_sizes: Mapping[str, float],
    ) -> "Fitted":
        """The statistics of a fit from its residuals and their derivatives with respect to the parameters; `size` is
        that of the data, scaled like the residuals, and `prior` the rows of the smoothness of fields."""
        from scipy.special import chdtrc, ndtri, stdtrit

        J, n = jacobian * numbers.slopes(vector), len(residual)
        stacked = np.vstack([J, prior])
        norms = np.linalg.norm(stacked, axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        left, singular, right = np.linalg.svd(stacked / scale, full_matrices=False)
        kept = np.maximum(singular, COLLINEAR * singular[0] * 1e-8)
        inverse = ((right.T / kept) @ left.T / scale[:, None])[:, :n]
        used = float(np.sum(left[:n] ** 2)) if len(prior) else float(len(vector))  # as many parameters are fitted
        freedom = n - used
        robust = bool(len(thresholds)) and bool(np.isfinite(thresholds).any())
        square, factor = float(np.sum(residual**2)), 1.0
        noise = (square / freedom) ** 0.5 if freedom > 0 else np.inf
        if noise_is_unknown:
            factor, quantile = noise, float(stdtrit(freedom, (1 + LEVEL) / 2)) if freedom > 0 else np.inf
        else:
            quantile = float(ndtri((1 + LEVEL) / 2))
            factor = _spread(residual, thresholds, used) if robust else 1.0
        root = factor * (right.T / kept) / scale[:, None]
        covariance = root @ root.T
        q = numbers.inward(vector)
        half = quantile * np.sqrt(np.diag(covariance))
        lower, upper = numbers.bounds
        ends = [numbers.outward(np.clip(q + sign * half, lower, upper)) for sign in (-1, 1)]
        intervals = {n: (float(a), float(b)) for n, a, b in zip(numbers.names, *ends, strict=False)}
        loss = float(np.sum(robust_loss(residual**2, thresholds)[0])) if robust else square
        forgiven = robust and np.mean(np.abs(residual) > np.abs(thresholds)) <= OUTLIERS
        misfit = None if noise_is_unknown or forgiven or freedom < 1 else float(chdtrc(freedom, loss))
        smallest = NEGLIGIBLE * size * np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        sizes = np.maximum(np.abs(vector), smallest * numbers.slopes(vector))
        sizes[len(numbers.names) :] = [field_sizes[name] for name in numbers.owners[len(numbers.names) :]]
        seen = np.linalg.norm(J, axis=0)
        free = _free_combination(numbers, sizes, (singular, right, scale), factor * numbers.slopes(vector), seen)
        free = free or _uncertain_fields(numbers, covariance, field_sizes)
        return cls(numbers, vector, sizes, intervals, covariance, noise, free, misfit, inverse)

    @property
    def is_vague(self) -> bool:
        """Whether a number is as uncertain as it is large."""
        first = len(self.numbers.names)
        deviations = np.sqrt(np.diag(self.covariance)) * self.numbers.slopes(self.vector)
        return bool(self.free) or bool((deviations[:first] > self.sizes[:first]).any())

    def moved_by(self, change: Float[np.ndarray, " d"]) -> np.ndarray:
        """How far the coordinates move if the residuals change by that much."""
        return -self.pseudo_inverse @ change

    def relative(self, change: Float[np.ndarray, " d"]) -> float:
        """The largest change of a number, relative to its size or to its interval, whichever is larger; of a field
        relative to its size."""
        first = len(self.numbers.names)
        widths = np.array([self.intervals[name][1] for name in self.numbers.names]) - self.vector[:first]
        moved = np.abs(change * self.numbers.slopes(self.vector))
        relative = moved / np.concatenate([np.maximum(self.sizes[:first], widths), self.sizes[first:]])
        return float(max(_by_owner(self.numbers, relative).values(), default=0.0))


def spread_evenly(count: int, dim: int) -> Float[np.ndarray, "n d"]:
    """Points that fill the unit cube evenly: multiples, modulo 1, of powers of the root of x^(d+1) = x + 1."""
    root = 1.0
    for _ in range(100):
        root = (1 + root) ** (1 / (dim + 1))
    return (0.5 + np.arange(1, count + 1)[:, None] * root ** -np.arange(1.0, dim + 1)) % 1.0


def _spread(residual: Float[np.ndarray, " r"], thresholds: Float[np.ndarray, " t"], count: float) -> float:
    """The factor of the standard deviations of a robust fit: Huber's formula, from the influence ψ of the residuals."""
    rho = robust_loss(residual**2, thresholds)
    influence, slope = rho[1] * residual, rho[1] + 2 * rho[2] * residual**2
    n = len(residual)
    return float((np.sum(influence**2) / max(n - count, 1)) ** 0.5 / np.mean(slope))


def robust_loss(squares: Float[np.ndarray, " r"], thresholds: Float[np.ndarray, " t"]) -> Float[np.ndarray, "3 r"]:
    """The losses of squared residuals with their first two derivatives: squares where the threshold is infinite, else
    Huber's, or Cauchy's for a negative threshold."""
    limit = np.abs(thresholds)
    z = squares / np.where(np.isfinite(limit), limit, 1.0) ** 2
    far = (thresholds > 0) & (squares > limit**2)
    root = np.sqrt(np.where(far, z, 1.0))
    huber = np.where(far, [2 * root - 1, 1 / root, -0.5 / root**3], [z, np.ones_like(z), np.zeros_like(z)])
    cauchy = np.stack([np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])
    found = np.where(thresholds < 0, cauchy, huber)
    size = np.where(np.isfinite(limit), limit, 1.0) ** 2
    return found * np.stack([size, np.ones_like(size), 1 / size])


def _by_owner(numbers: Numbers, values: Float[np.ndarray, " p"]) -> dict[str, float]:
    """The size of a change for each number and field: the norm of the values that belong to it."""
    found: dict[str, float] = {}
    for name, value in zip(numbers.owners, values, strict=True):
        found[name] = math.hypot(found.get(name, 0.0), float(value))
    return found


def _uncertain_fields(numbers: Numbers, covariance: Float[np.ndarray, "p p"], field_sizes: Mapping[str, float]) -> str:
    """The fields whose standard deviation, in the mean over the domain, is as large as themselves."""
    variances = dict.fromkeys(numbers.fields, 0.0)
    for name, value in list(zip(numbers.owners, np.diag(covariance), strict=True))[len(numbers.names) :]:
        variances[name] += float(value)
    return " and ".join(name for name, value in variances.items() if value**0.5 > FREE_FIELD * field_sizes[name])


def _free_combination(
    numbers: Numbers,
    sizes: Float[np.ndarray, " p"],
    decomposed: tuple[np.ndarray, np.ndarray, np.ndarray],
    slopes: Float[np.ndarray, " p"],
    norms: Float[np.ndarray, " p"],
) -> str:
    """The combination of numbers and fields that the data leave free; empty if there is none. `slopes` are the changes
    of parameters with their coordinates, times the standard deviation of the scaled residuals, and `norms` those of the
    derivatives of the residuals."""
    unseen = [name for name, norm in _by_owner(numbers, norms).items() if not norm > 0]
    if unseen:
        return " and ".join(unseen)
    singular, right, scale = decomposed
    relative = right[-1] / scale * slopes / sizes  # the change along the direction that is seen least
    length = float(np.linalg.norm(relative))
    uncertain = length / max(float(singular[-1]), np.finfo(float).tiny)
    if singular[-1] > COLLINEAR * singular[0] and not uncertain > FREE:
        return ""
    if len(numbers.names) + len(numbers.fields) == 1:
        return numbers.owners[0]
    parts = relative / length
    parts = parts * np.sign(parts[np.argmax(np.abs(parts))])
    shares = _by_owner(numbers, parts) | dict(zip(numbers.names, parts.tolist(), strict=False))
    return ", ".join(f"{name} by {part:+.2f}" for name, part in shares.items() if abs(part) > NOTABLE)
