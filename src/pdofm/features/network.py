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
from pdofm.deprecation import renamed
from pdofm.features.activations import activation_derivatives, activation_of
from pdofm.features.base import Features, Jets, check_count, polynomial_degree
from pdofm.features.box import Corner, HasBox, box_of
from pdofm.features.initialisation import check_choices
from pdofm.numerics.batches import FEWEST_POINTS, batch_size, in_batches, two_sizes
from pdofm.numerics.sampling import generator

COLUMNS = 1024
"""Columns that a product of matrices should have to be fast. The entries of the jet at all points of a batch are the
columns of one product, so that short jets need more points."""

MOST_POINTS_FOR_COLUMNS = 256
"""The largest batch that is chosen for the sake of `COLUMNS`: more points would not fit into the cache."""


def resolving_scale(size: int, dim: int, activation: str = "sin") -> float:
    """The smallest first-layer scale at which the features of a residual network of that width and of depth two are
    numerically independent.

    A smaller scale makes the features numerically dependent (the rank stays below m), a larger one makes them rough.
    Both lose digits; the best scale is where the numerical rank reaches m. Measured on the unit cube in one, two and
    three dimensions, it depends only on the degree k at which the polynomials have dimension m: s ≈ 4.4 (k / 99)^1.43
    for sines and cosines, s ≈ 2 (k / 99)^1.7 for tanh and tanh³.
    """
    at_99, power = (4.4, 1.43) if activation in ("sin", "cos") else (2.0, 1.7)
    return at_99 * (polynomial_degree(size, dim) / 99.0) ** power


class NetworkFeatures(Features):
    """The m = `size` units of the last hidden layer of a network.

    With ``residual=True`` (default), h ← W₀x + b₀ and then `depth` times h ← σ(W h + b) + h. With ``residual=False``, a
    plain fully connected network: h ← σ(W h + b) in each of its `depth` hidden layers, the first of which acts on x.

    Initialisations:

    - ``"default"``: W₀ ~ N(0, scale²) and b₀ such that the zero line of each unit passes through a random point of the
      box; hidden weights N(0, 1/m), hidden biases N(0, 0.2²). `scale` defaults to `resolving_scale`. Such features
      solve to many digits without training. The default activation, the sine, gains one or two digits over tanh³ (the
      paper's): a residual network of sines is an entire function, whereas one of tanh has poles near the box.
    - ``"xavier"``, ``"kaiming"``: normal weights of variance 2/(in + out) and 2/in, zero biases. With zero biases every
      feature of a residual network is an odd function about the centre of the box: train before solving.
    - ``"uniform"``: weights and biases U(-1, 1) in the first layer, U(-1, 1)/√m in the others.

    In the last three, `scale` multiplies the first layer (1 if omitted).
    """

    trained: ClassVar[tuple[str, ...]] = ("first", "first_bias", "hidden", "hidden_bias")
    scaled: ClassVar[tuple[str, ...]] = ("first", "first_bias")

    first: Float[Array, "m d"]
    first_bias: Float[Array, " m"]
    hidden: Float[Array, "blocks m m"]
    hidden_bias: Float[Array, "blocks m"]
    lower: Corner
    upper: Corner
    activation: str = eqx.field(static=True)
    residual: bool = eqx.field(static=True)

    @renamed(width="size")
    def __init__(
        self,
        domain: HasBox,
        size: int = 500,
        depth: int = 2,
        *,
        key: Key = 0,
        activation: str = "sin",
        residual: bool = True,
        initialisation: str = "default",
        scale: float | None = None,
    ):
        check_choices(activation, initialisation)
        self.lower, self.upper = box_of(domain)
        m, d = check_count("size", size), self.dim
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

    def values(self, y: Point) -> FeatureValues:
        sigma = activation_of(self.activation)
        # Points times weights, rather than weights times points: a batch of points is not transposed, and the compiler
        # recognises the products that several derivatives share.
        h = y @ self.first.T + self.first_bias
        if not self.residual:
            h = sigma(h)
        for weight, bias in zip(self.hidden, self.hidden_bias, strict=True):
            new = sigma(h @ weight.T + bias)
            h = new + h if self.residual else new
        return h

    def jets(self, points: Points, which: Sequence[Index]) -> Jets:
        below = len(closure(tuple(which)))
        if below == 0:
            return np.empty((0, len(points), self.size))
        on_cube, slopes = self.to_cube(points)
        hidden, hidden_bias = (jax.device_put(tuple(np.asarray(each))) for each in (self.hidden, self.hidden_bias))
        least = max(FEWEST_POINTS, min(MOST_POINTS_FOR_COLUMNS, 2 ** (COLUMNS // below).bit_length()))
        forward = partial(
            _forward,
            *(self.first, self.first_bias, hidden, hidden_bias, slopes),
            which=tuple(which),
            activation=self.activation,
            residual=self.residual,
        )
        sizes = two_sizes(batch_size(8 * below * self.size, least))
        return np.swapaxes(in_batches(forward, (on_cube,), sizes, axis=-1), 1, 2)


@partial(jax.jit, static_argnames=("which", "activation", "residual"))
def _forward(
    first: Float[Array, "m d"],
    first_bias: Float[Array, " m"],
    hidden: tuple[Float[Array, "m m"], ...],
    hidden_bias: tuple[Float[Array, " m"], ...],
    slopes: Float[Array, " d"],
    points: Float[Array, "n d"],
    *,
    which: tuple[Index, ...],
    activation: str,
    residual: bool,
) -> Float[Array, "a m n"]:
    """The derivatives `which` of the last hidden layer at points y of the cube, with respect to coordinates xᵢ with
    dyᵢ/dxᵢ = slopeᵢ.

    The jet of a layer is computed from that of the layer before. Its entries have shape (m, n), or (m, 1) if they are
    the same at all points; those that are zero are missing.
    """
    (n, dim), needed = points.shape, closure(which)
    value, orders = (0,) * dim, range(highest_order(which) + 1)

    def activated(inner: Jet) -> dict[Index, Array]:
        sigma = activation_derivatives(activation, inner[value], orders)
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
    """A matrix times all entries of a jet. The entries that differ between points are multiplied in one product."""
    many = [index for index, entry in jet.items() if entry.shape[1] == n]
    side_by_side = jnp.stack([jet[index] for index in many], axis=1)
    product = (weight @ side_by_side.reshape(len(weight), -1)).reshape(side_by_side.shape)
    found = {index: weight @ entry for index, entry in jet.items() if index not in many}
    return found | {index: product[:, i] for i, index in enumerate(many)}
