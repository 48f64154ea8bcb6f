"""Features that are the last hidden layer of a network, untrained or trained."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pdofm._types import FeatureValues, Key, Point, Points
from pdofm.calculus.jets import Index, Jet, closure, composition, highest_order, unit
from pdofm.errors import unknown_name
from pdofm.features.activations import activation_of, derivatives
from pdofm.features.base import Corner, Features, HasBox, Jets, box_of, check_count, polynomial_degree
from pdofm.numerics.batches import batch_size, batches, padded
from pdofm.numerics.sampling import generator

COLUMNS = 1024
"""Columns that a product of matrices needs at least to be fast: the points of a batch times the entries of the jet."""

INITIALISATIONS = ("default", "xavier", "kaiming", "uniform")


def resolving_scale(size: int, dim: int, activation: str = "sin") -> float:
    """The first-layer scale at which a residual network of that width and depth two just uses all of its features.

    Too small a scale makes the features numerically dependent (the rank stays below m), too large a scale makes them
    rough. In both cases digits are lost, and the best scale is where the numerical rank reaches m. Measured on the unit
    cube in one, two and three dimensions, that point depends only on the degree k of the polynomials of the same
    dimension: s ≈ 4.4 (k / 99)^1.43 for sines and cosines, s ≈ 2 (k / 99)^1.7 for tanh and tanh³.
    """
    at_99, power = (4.4, 1.43) if activation in ("sin", "cos") else (2.0, 1.7)
    return at_99 * (polynomial_degree(size, dim) / 99.0) ** power


class NetworkFeatures(Features):
    """The m = `width` units of the last hidden layer of a network.

    With ``residual=True`` (default) h ← W₀x + b₀, then `depth` times h ← σ(W h + b) + h; with ``residual=False`` a
    plain fully connected network, h ← σ(W h + b) in each of its `depth` hidden layers, the first of them acting on x.

    Initialisations:

    - ``"default"``: W₀ ~ N(0, scale²) and b₀ such that the zero line of each unit passes through a random point of the
      box; hidden weights N(0, 1/width), hidden biases N(0, 0.2²). `scale` defaults to `resolving_scale`. Untrained
      features of this kind solve to many digits, and with the default activation, the sine, to one or two more than
      with tanh³ (the paper's): a residual network of sines is an entire function, that of tanh has poles near the box.
    - ``"xavier"``, ``"kaiming"``: normal weights of variance 2/(in + out) and 2/in, zero biases. With zero biases every
      feature of a residual network is an odd function about the centre of the box: train before solving.
    - ``"uniform"``: weights and biases U(-1, 1) in the first layer, U(-1, 1)/√width in the others.

    `scale` multiplies the first layer of the last three (1 if omitted).
    """

    trained: ClassVar[tuple[str, ...]] = ("first", "first_bias", "hidden", "hidden_bias")

    first: Float[Array, "m d"]
    first_bias: Float[Array, " m"]
    hidden: Float[Array, "blocks m m"]
    hidden_bias: Float[Array, "blocks m"]
    lower: Corner
    upper: Corner
    activation: str = eqx.field(static=True)
    residual: bool = eqx.field(static=True)

    def __init__(
        self,
        domain: HasBox,
        width: int = 500,
        depth: int = 2,
        *,
        key: Key = 0,
        activation: str = "sin",
        residual: bool = True,
        initialisation: str = "default",
        scale: float | None = None,
    ):
        activation_of(activation)
        if initialisation not in INITIALISATIONS:
            raise unknown_name("initialisation", initialisation, INITIALISATIONS)
        self.lower, self.upper = box_of(domain)
        m, d = check_count("width", width), self.dim
        blocks = check_count("depth", depth) - (0 if residual else 1)
        rng = generator(key)
        first, through = rng.standard_normal((m, d)), rng.uniform(-1, 1, (m, d))
        hidden, hidden_bias = rng.standard_normal((blocks, m, m)), rng.standard_normal((blocks, m))
        if initialisation == "default":
            first *= resolving_scale(m, d, activation) if scale is None else scale
            first_bias = -np.sum(first * through, axis=1)
            hidden, hidden_bias = hidden / np.sqrt(m), 0.2 * hidden_bias
        else:
            first_bias, hidden_bias = np.zeros(m), np.zeros((blocks, m))
            if initialisation == "xavier":
                first, hidden = first * np.sqrt(2 / (m + d)), hidden / np.sqrt(m)
            elif initialisation == "kaiming":
                first, hidden = first * np.sqrt(2 / d), hidden * np.sqrt(2 / m)
            else:
                first, first_bias = rng.uniform(-1, 1, (m, d)), rng.uniform(-1, 1, m)
                hidden, hidden_bias = (rng.uniform(-1, 1, a.shape) / np.sqrt(m) for a in (hidden, hidden_bias))
            factor = 1.0 if scale is None else scale
            first, first_bias = factor * first, factor * first_bias
        self.first, self.first_bias, self.hidden, self.hidden_bias = jax.device_put(
            (first, first_bias, hidden, hidden_bias)
        )
        self.activation, self.residual = activation, residual

    @property
    def size(self) -> int:
        return self.first.shape[0]

    def rescaled(self, factor: float) -> "NetworkFeatures":
        first, bias = factor * self.first, factor * self.first_bias
        return eqx.tree_at(lambda f: (f.first, f.first_bias), self, (first, bias))

    def values(self, y: Point) -> FeatureValues:
        sigma = activation_of(self.activation)
        # Points times weights, not weights times points: over many points nothing is transposed, and the compiler sees
        # that products which several derivatives need are the same.
        h = y @ self.first.T + self.first_bias
        if not self.residual:
            h = sigma(h)
        for weight, bias in zip(self.hidden, self.hidden_bias, strict=True):
            new = sigma(h @ weight.T + bias)
            h = new + h if self.residual else new
        return h

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        found = np.empty((len(which), self.size, len(points)))
        below = len(closure(tuple(which)))
        if below == 0:
            return np.swapaxes(found, 1, 2)
        on_cube, slopes = self.to_cube(points)
        hidden, hidden_bias = (jax.device_put(tuple(np.asarray(each))) for each in (self.hidden, self.hidden_bias))
        fewest = min(256, 2 ** (COLUMNS // below).bit_length())
        computed: list[tuple[slice, Array]] = []
        for here, size in batches(len(points), max(fewest, batch_size(8 * below * self.size))):
            values = _forward(
                *(self.first, self.first_bias, hidden, hidden_bias, padded(on_cube[here], size), slopes),
                which=tuple(which),
                activation=self.activation,
                residual=self.residual,
            )
            computed.append((here, values))
            if len(computed) > 1:  # while this batch is computed, the one before is copied
                _store(found, *computed.pop(0))
        for here, values in computed:
            _store(found, here, values)
        return np.swapaxes(found, 1, 2)


def _store(found: Float[np.ndarray, "a m n"], here: slice, values: Float[Array, "a m size"]) -> None:
    found[:, :, here] = np.asarray(values)[:, :, : here.stop - here.start]


@partial(jax.jit, static_argnames=("which", "activation", "residual"))
def _forward(
    first: Float[Array, "m d"],
    first_bias: Float[Array, " m"],
    hidden: tuple[Float[Array, "m m"], ...],
    hidden_bias: tuple[Float[Array, " m"], ...],
    points: Float[Array, "n d"],
    slopes: Float[Array, " d"],
    *,
    which: tuple[Index, ...],
    activation: str,
    residual: bool,
) -> Float[Array, "a m n"]:
    """The derivatives `which` of the last hidden layer at points of the cube, in coordinates xᵢ with dyᵢ/dxᵢ = slopes.

    A jet passes through the layers. Its entries have shape (m, n), or (m, 1) if they are the same at all points; those
    that are zero are missing.
    """
    (n, dim), needed = points.shape, closure(which)
    value, orders = (0,) * dim, range(highest_order(which) + 1)

    def activated(inner: Jet) -> dict[Index, Array]:
        sigma = derivatives(activation, inner[value], orders)
        return composition([sigma[order] for order in orders], inner, needed)

    jet = {value: first @ points.T + first_bias[:, None]}
    for axis in range(dim):
        jet[unit(dim, axis)] = first[:, axis, None] * slopes[axis]
    if not residual:
        jet = activated(jet)
    for weight, bias in zip(hidden, hidden_bias, strict=True):
        inner = _times(weight, jet, n)
        inner[value] = inner[value] + bias[:, None]
        new = activated(inner)
        jet = {index: new[index] + jet[index] if residual and index in jet else new[index] for index in new}
    return jnp.stack([jet[index] for index in which])


def _times(weight: Float[Array, "m m"], jet: Jet, n: int) -> dict[Index, Array]:
    """A matrix times all entries of a jet: those that differ from point to point side by side, in one product."""
    many = [index for index, entry in jet.items() if entry.shape[1] == n]
    side_by_side = jnp.stack([jet[index] for index in many], axis=1)
    product = (weight @ side_by_side.reshape(len(weight), -1)).reshape(side_by_side.shape)
    found = {index: weight @ entry for index, entry in jet.items() if index not in many}
    return found | {index: product[:, i] for i, index in enumerate(many)}
