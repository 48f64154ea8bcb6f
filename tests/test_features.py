"""Every family of features against the properties that solving relies on.

To test a new family, add a line to FEATURES, which a test demands. A family that does not draw random numbers also goes
into FIXED, one whose space is not dense (odd functions only, say) into NOT_DENSE, and one without frequencies to
multiply into WITHOUT_SCALE.
"""

import dataclasses
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.calculus.jets import up_to
from pdofm.discrete.evaluate import evaluate, evaluate_all
from pdofm.errors import FeaturesError, UnknownNameError
from pdofm.features import Features, Mirrored, SectorFunctions, Slabs
from pdofm.features.base import families, polynomial_degree
from pdofm.features.declared import Declared
from pdofm.features.regions import RegionPolynomials
from pdofm.features.wrapper import Wrapper

Build = Callable[[pf.Domain, int, int | jax.Array], Features]


def local_random(size: int) -> Callable[[pf.Box, int], Features]:
    return lambda box, key: pf.RandomFeatures(box, size, key=key, initialisation="uniform", scale=4.0)


def local_polynomials(size: int) -> Callable[[pf.Box, int], Features]:
    return lambda box, key: pf.Chebyshev(box, size)


def halves(domain: pf.Domain) -> tuple[int, ...]:
    """Two subdomains, along the first axis."""
    return (2,) + (1,) * (domain.dim - 1)


def slabs(domain: pf.Domain, size: int) -> Features:
    """Two slabs along the last axis, with polynomials in the others; in one dimension there is no space beside it."""
    if domain.dim == 1:
        return pf.BoxPolynomials.grid(domain, 2, size // 2 - 1)
    low, high = domain.lower, domain.upper
    space = pf.Chebyshev(pf.Box(low[:-1], high[:-1]), degree=size // 4 - 1)
    return Slabs([low[-1], (low[-1] + high[-1]) / 2, high[-1]], [space], [0, 0], 1)


def by_centers(domain: pf.Domain, size: int, key: int | jax.Array) -> Features:
    """Three overlapping balls (of the maximum norm) of different sizes along the first axis."""
    at, radius = np.full((3, domain.dim), 0.5), np.full((3, domain.dim), 0.5)
    at[:, 0], radius[:, 0] = [0.1, 0.4, 0.8], [0.15, 0.25, 0.3]
    sides = domain.upper - domain.lower
    return pf.PartitionOfUnity(
        local_random(size // 3), domain, centers=domain.lower + at * sides, radii=radius * sides, key=key
    )


@cache
def waves(domain: pf.Domain) -> tuple[Callable[[jax.Array], jax.Array], ...]:
    """Functions of the user's own; those of one domain are the same objects, or compiled code would not be shared."""
    center, sides = (domain.lower + domain.upper) / 2, domain.upper - domain.lower
    ones = np.ones(domain.dim)
    return tuple(lambda x, k=k: jnp.cos(k * (x - center) / sides @ ones + k) for k in (0.5, 1.0, 2.0, 3.0))


FEATURES: dict[str, Build] = {
    "network": lambda domain, size, key: pf.NetworkFeatures(domain, size, key=key),
    "network-tanh": lambda domain, size, key: pf.NetworkFeatures(domain, size, key=key, activation="tanh"),
    "network-tanh3": lambda domain, size, key: pf.NetworkFeatures(domain, size, key=key, activation="tanh3"),
    "network-plain": lambda domain, size, key: pf.NetworkFeatures(
        domain, size, key=key, residual=False, activation="tanh"
    ),
    "network-uniform": lambda domain, size, key: pf.NetworkFeatures(
        domain, size, key=key, initialisation="uniform", activation="tanh3"
    ),
    "network-xavier": lambda domain, size, key: pf.NetworkFeatures(domain, size, key=key, initialisation="xavier"),
    "random": lambda domain, size, key: pf.RandomFeatures(domain, size, key=key),
    "random-uniform": lambda domain, size, key: pf.RandomFeatures(
        domain, size, key=key, initialisation="uniform", scale=8.0
    ),
    "random-cos": lambda domain, size, key: pf.RandomFeatures(domain, size, key=key, activation="cos", scale=8.0),
    "partition": lambda domain, size, key: pf.PartitionOfUnity(
        local_random(size // 2), domain, halves(domain), key=key
    ),
    "partition-plain": lambda domain, size, key: pf.PartitionOfUnity(
        local_random(size // 2), domain, halves(domain), normalise=False, key=key
    ),
    "partition-a": lambda domain, size, key: pf.PartitionOfUnity(
        local_random(size // 2), domain, halves(domain), window="a", key=key
    ),
    "partition-polynomials": lambda domain, size, key: pf.PartitionOfUnity(
        local_polynomials(size // 2), domain, halves(domain), key=key
    ),
    "partition-centers": by_centers,
    "transnet": lambda domain, size, key: pf.TransNet(domain, size, shape=6.0, key=key),
    "transnet-sin": lambda domain, size, key: pf.TransNet(domain, size, shape=6.0, activation="sin", key=key),
    "chebyshev": lambda domain, size, key: pf.Chebyshev(domain, size),
    "chebyshev-tensor": lambda domain, size, key: pf.Chebyshev(domain, size, kind="tensor"),
    "sparse": lambda domain, size, key: pf.SparsePolynomials(domain, size, variables=min(2, domain.dim)),
    "fourier": lambda domain, size, key: pf.Fourier(domain, size),
    "fourier-tensor": lambda domain, size, key: pf.Fourier(domain, size, kind="tensor"),
    "fourier-extended": lambda domain, size, key: pf.Fourier(domain, size, extension=1.5),
    "stretched": lambda domain, size, key: pf.StretchedPolynomials(
        domain,
        size,
        direction=np.eye(domain.dim)[0],
        center=(domain.lower[0] + domain.upper[0]) / 2,
        width=0.2 * (domain.upper[0] - domain.lower[0]),
    ),
    "boxes": lambda domain, size, key: pf.BoxPolynomials.grid(
        domain, halves(domain), (size // 2 - 1,) if domain.dim == 1 else (size // 4 - 1, *(1,) * (domain.dim - 1))
    ),
    "box-features": lambda domain, size, key: pf.BoxFeatures(
        lambda box, seed: pf.RandomFeatures(box, size // 2, key=seed, initialisation="uniform", scale=4.0),
        domain,
        halves(domain),
        key=key,
    ),
    "slabs": lambda domain, size, key: slabs(domain, size),
    "corner": lambda domain, size, key: pf.CornerFunctions(domain, highest=2.0, degree=0, convex=True),
    "sector": lambda domain, size, key: SectorFunctions(
        domain, domain.lower - 0.1 * domain.size, np.array([0.6, 0.8]), [0.1, 0.7, 1.9, 2.0], degree=1
    ),
    "mirrored": lambda domain, size, key: Mirrored(
        pf.RandomFeatures(domain, size, key=key), (0,) * domain.dim, (1,) * domain.dim
    ),
    "functions": lambda domain, size, key: pf.Functions(domain, waves(domain)),
    "concatenate": lambda domain, size, key: pf.Concatenate(
        pf.RandomFeatures(domain, size // 2, key=key),
        pf.PartitionOfUnity(local_random(size // 4), domain, halves(domain), key=key),
    ),
    "concatenate-functions": lambda domain, size, key: pf.Concatenate(
        pf.Chebyshev(domain, size - 4), pf.Functions(domain, waves(domain))
    ),
    "hard": lambda domain, size, key: pf.HardDirichlet(pf.NetworkFeatures(domain, size, key=key), domain),
    "hard-polynomials": lambda domain, size, key: pf.HardDirichlet(pf.Chebyshev(domain, size), domain),
}
FIXED = {"chebyshev", "chebyshev-tensor", "sparse", "fourier", "fourier-tensor", "fourier-extended", "functions"} | {
    *(
        "partition-polynomials",
        "concatenate-functions",
        "hard-polynomials",
        "stretched",
        "corner",
        "sector",
        "boxes",
        "slabs",
    ),
}
NOT_DENSE = {
    "network-xavier": "odd about the centre",
    "transnet-sin": "in one dimension all directions are ±1, so that all features have one frequency",
    "functions": "four functions, whatever the size",
    "corner": "two functions per corner, whatever the size",
    "sector": "functions of one point, whatever the size",
    "mirrored": "even about the upper faces",
    "hard": "zero on the boundary",
    "hard-polynomials": "zero on the boundary",
}
WITHOUT_SCALE = FIXED | {"box-features"}
# A plane box has neither holes nor edges, nor several regions; see test_singular_functions.py and test_materials.py.
# A change of basis is in test_moving.py.
ELSEWHERE = {
    pf.HoleFunctions,
    pf.EdgeFunctions,
    pf.BoreFunctions,
    pf.HarmonicPolynomials,
    pf.Combined,
    pf.RegionFeatures,
    RegionPolynomials,
}
WITH_CORNERS = dict.fromkeys(("corner", "sector"), "there are no corners but those of plane domains")
DISCONTINUOUS = {"partition-a": "a sum of its features jumps at the interface, which its own terms forbid"}

BOX = pf.Box([-1, 0], [1, 3])
INTERVAL = pf.Interval(0, 2)


@pytest.fixture(params=FEATURES)
def name(request) -> str:
    return request.param


@cache
def made(name: str, size: int = 24, key: int = 7) -> Features:
    return FEATURES[name](BOX, size, key)


@pytest.fixture
def features(name) -> Features:
    return made(name)


@cache
def points(count: int = 5) -> jax.Array:
    return jnp.asarray(BOX.sample(count, "random", key=4))


@jax.jit
def _values(features: Features, at: jax.Array) -> jax.Array:
    return jax.vmap(features)(at)


def values(features: Features, at: jax.Array) -> np.ndarray:
    """All features at many points, (n, m)."""
    return np.asarray(_values(features, at))


# ---- declarations


def test_every_family_of_the_package_is_tested():
    assert {type(made(name)) for name in FEATURES} | ELSEWHERE == set(families().values())


def test_a_wrapper_passes_on_every_declaration_of_the_features_inside():
    declared = {name for name in vars(Declared) if not name.startswith("_")} - {"trained", "scaled", "unsaved"}
    assert {"imposes", "concentration", "density", "extra_terms"} <= declared
    assert declared <= set(vars(Wrapper))


def test_the_fields_that_a_family_declares_are_its_own(features):
    assert {*features.trained, *features.scaled} <= {field.name for field in dataclasses.fields(features)}


# ---- shapes


def test_a_point_gives_one_finite_value_per_feature(features):
    found = features(points()[0])
    assert found.shape == (features.size,)
    assert found.dtype == jnp.float64
    assert np.isfinite(found).all()
    assert 0 < features.size <= 24


def test_features_know_their_box(features):
    assert features.dim == 2
    np.testing.assert_array_equal(features.lower, BOX.lower)
    np.testing.assert_array_equal(features.upper, BOX.upper)


@pytest.mark.parametrize("family", [name for name in FEATURES if name not in WITH_CORNERS])
@pytest.mark.parametrize(
    "domain", [INTERVAL, pf.Disk(), pf.Ball(), pf.SpaceTime(pf.Disk(), 2), pf.Box([0] * 5, [1] * 5)]
)
def test_features_live_on_the_bounding_box_of_any_domain(family, domain):
    features = FEATURES[family](domain, 10, 0)
    shape = jax.eval_shape(features, jax.ShapeDtypeStruct((domain.dim,), jnp.float64)).shape
    assert shape == (features.size,)


# ---- coarser spaces, and scales


def test_leading_features_are_never_more_dispensable_than_later_ones(features):
    ranks = features.ranks
    assert ranks.shape == (features.size,)
    assert (np.diff(ranks) >= 0).all()
    assert ranks[0] >= 0
    assert ranks[-1] <= 1


def test_a_combination_of_features_is_their_sum_with_coefficients(name):
    """u = lifting + Σ cⱼ φⱼ; the lifting of the registry is zero."""
    features, x = made(name), points()[0]
    c = jnp.asarray(np.random.default_rng(0).standard_normal((features.size, 3)))
    np.testing.assert_allclose(features.combine(x, c), features(x) @ c, rtol=1e-13)


SPACES = {
    "line": lambda: pf.Chebyshev(INTERVAL, degree=9),
    "total": lambda: pf.Chebyshev(BOX, degree=7),
    "per axis": lambda: pf.Chebyshev(BOX, degree=(3, 8)),
    "tensor": lambda: pf.Chebyshev(pf.Box([0, 0, 0], [1, 2, 3]), degree=5, kind="tensor"),
    "too sparse for a grid": lambda: pf.Chebyshev(pf.Box([0] * 5, [1] * 5), degree=4),
    "hard": lambda: pf.HardDirichlet(pf.Chebyshev(BOX, degree=6), BOX),
    "stretched": lambda: pf.StretchedPolynomials(BOX, degree=8, direction=[3, 4], center=0.7, width=0.1),
}


@pytest.mark.parametrize("space", SPACES)
def test_polynomials_have_the_same_derivatives_with_and_without_the_products(space):
    features = SPACES[space]()
    c = np.random.default_rng(0).standard_normal((features.size, 2))
    at = features.lower + np.random.default_rng(1).uniform(0, 1, (7, features.dim)) * (features.upper - features.lower)
    which = up_to(features.dim, 5 if features.dim <= 2 else 2)
    for found, expected in zip(features.expand(at, which, c), features.jets(at, which) @ c, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_polynomials_in_many_dimensions_need_no_grid():
    features = pf.Chebyshev(pf.Box([-1] * 64, [1] * 64), degree=1)
    x = np.linspace(0, 1, 64)[None]
    found = features.expand(x, [(0,) * 64], np.ones((65, 1)))
    np.testing.assert_allclose(found, 1 + x.sum(), rtol=1e-13)


def test_many_functions_of_a_space_are_the_same_as_one_by_one():
    features = pf.HardDirichlet(pf.Chebyshev(BOX, degree=5), BOX, 2.0)
    c = np.random.default_rng(0).standard_normal((20, features.size, 1))
    many = evaluate_all(features, c, np.asarray(points()))
    one_by_one = [evaluate(features, each, np.asarray(points())) for each in c]
    np.testing.assert_allclose(many, one_by_one, rtol=1e-12)


def test_values_are_imposed_once():
    hard = pf.HardDirichlet(pf.Chebyshev(BOX, degree=5), BOX, 2.0)
    with pytest.raises(FeaturesError, match=r"impose values already\. Use their inner features"):
        pf.HardDirichlet(hard, BOX)


@pytest.mark.parametrize("family", [name for name in FEATURES if name not in WITHOUT_SCALE])
def test_rescaling_multiplies_the_frequencies(family):
    """Twice as fine, and back: the factor two is exact in floating point."""
    features = made(family)
    finer = features.rescaled(2.0)
    assert finer.size == features.size
    assert not np.allclose(values(finer, points()), values(features, points()))
    assert np.array_equal(values(finer.rescaled(0.5), points()), values(features, points()))


@pytest.mark.parametrize("family", sorted(WITHOUT_SCALE))
def test_features_without_a_scale_say_so(family):
    with pytest.raises(FeaturesError, match=r"has no scale\. Choose among NetworkFeatures, RandomFeatures, TransNet"):
        made(family).rescaled(2.0)


# ---- derivatives


def test_first_and_second_derivatives_match_finite_differences(features):
    """Central differences of fourth order of the features, and of their first derivatives."""
    along, h = jnp.asarray([0.6, 0.8]), 2e-3
    slope = lambda x: jax.jvp(features, (x,), (along,))[1]
    curvature = lambda x: jax.jvp(slope, (x,), (along,))[1]
    both = jax.jit(jax.vmap(lambda x: (features(x), slope(x), curvature(x))))
    ahead, behind, far_ahead, far_behind = (both(points() + s * h * along[None]) for s in (1, -1, 2, -2))
    found = both(points())
    for order in (0, 1):
        near, far = (np.asarray(a[order] - b[order]) for a, b in ((ahead, behind), (far_ahead, far_behind)))
        expected = (8 * near - far) / (12 * h)
        tolerance = 1e-6 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(np.asarray(found[order + 1]), expected, rtol=1e-6, atol=tolerance)


# ---- pytrees


def test_features_survive_flattening(features):
    leaves, structure = jax.tree.flatten(features)
    again = jax.tree.unflatten(structure, leaves)
    assert np.array_equal(values(again, points()), values(features, points()))
    assert again.size == features.size


def test_features_may_be_closed_over_or_passed_to_jit(features):
    x = points()[0]
    expected = np.asarray(features(x))
    closed = jax.jit(lambda x: 2 * features(x))
    np.testing.assert_allclose(closed(x), 2 * expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(jax.jit(lambda f, x: f(x))(features, x), expected, rtol=1e-12, atol=1e-13)


def test_two_features_of_one_kind_share_one_compiled_function(name):
    count = []

    @jax.jit
    def evaluate(f, x):
        count.append(1)
        return f(x)

    evaluate(made(name), points()[0])
    evaluate(made(name, key=8), points()[0])
    assert len(count) == 1


# ---- position and scale


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e-3), (100.0, 1.0), (-3.0, 1e4)])
def test_position_and_scale_of_the_domain_do_not_matter(name, shift, scale):
    lower, upper = np.array([-1.0, 0.0]), np.array([1.0, 3.0])
    moved = FEATURES[name](pf.Box(scale * lower + shift, scale * upper + shift), 24, 7)
    expected = values(made(name), points())
    found = values(moved, scale * points() + shift)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


# ---- random numbers


def test_the_same_key_gives_the_same_features(name):
    assert np.array_equal(values(FEATURES[name](BOX, 24, 7), points()), values(made(name), points()))


@pytest.mark.parametrize("family", [name for name in FEATURES if name not in FIXED])
def test_another_key_gives_other_features(family):
    first, second = (values(made(family, key=key), points(50)) for key in (7, 8))  # enough to reach every window
    assert (np.abs(first - second) > 1e-3).any(axis=0).mean() > 0.9


@pytest.mark.parametrize("family", [name for name in FEATURES if name not in FIXED])
def test_a_jax_key_is_a_key_too(family):
    first, second = (FEATURES[family](BOX, 5, jax.random.key(seed)) for seed in (0, 1))
    assert not np.array_equal(values(first, points()), values(second, points()))


# ---- what they are for


@pytest.mark.parametrize("family", [name for name in FEATURES if name not in DISCONTINUOUS])
def test_a_function_in_the_span_is_recovered(family):
    """u = f, with f made of the first half of the features, so that the error estimate has a coarser solution too."""
    features = made(family)
    c = np.zeros(features.size)
    c[: features.size // 2] = np.random.default_rng(1).standard_normal(features.size // 2)
    exact = lambda x: features(x) @ jnp.asarray(c)
    problem = pf.Problem(BOX, lambda u, x: u(x), conditions=[pf.Dirichlet()], exact=exact)
    solution = pf.solve(problem, features)
    assert solution.errors().relative_l2 <= 1e-10
    assert solution.errors().max <= 1e-10 * max(1.0, np.abs(values(features, points(50)) @ c).max())


@pytest.mark.parametrize("family", [name for name in FEATURES if name not in NOT_DENSE])
@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_the_error_falls_as_the_number_of_features_doubles(family, helmholtz):
    errors = [
        pf.solve(helmholtz, FEATURES[family](helmholtz.domain, size, 0)).errors().relative_l2 for size in (20, 40)
    ]
    assert errors[1] <= max(errors[0] / 3, 1e-13)  # Fourier's 20 are exact already


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_the_error_of_the_default_features_falls_faster_than_any_fixed_power(square):
    errors = [
        pf.solve(square, FEATURES["network"](square.domain, size, 0)).errors().relative_l2 for size in (50, 100, 200)
    ]
    assert errors[1] <= errors[0] / 10
    assert errors[2] <= errors[1] / 100


@pytest.fixture(scope="module")
def helmholtz() -> pf.Problem:
    return pf.zoo.get("helmholtz-1d")


@pytest.fixture(scope="module")
def square() -> pf.Problem:
    return pf.zoo.get("poisson-square")


# ---- networks: formulas


@pytest.mark.parametrize(("activation", "sigma"), [("sin", np.sin), ("tanh3", lambda z: np.tanh(z) ** 3)])
def test_a_residual_network_is_the_formula(activation, sigma):
    net = pf.NetworkFeatures(BOX, 6, depth=2, key=1, activation=activation)
    x = np.asarray(points()[0])
    y = (x - (BOX.lower + BOX.upper) / 2) * 2 / (BOX.upper - BOX.lower)
    h = net.first @ y + net.first_bias
    for W, b in zip(np.asarray(net.hidden), np.asarray(net.hidden_bias), strict=True):
        h = sigma(W @ h + b) + h
    assert net.hidden.shape == (2, 6, 6)
    np.testing.assert_allclose(net(jnp.asarray(x)), h, rtol=1e-13)


def test_a_plain_network_is_the_formula_and_counts_its_first_layer():
    net = pf.NetworkFeatures(BOX, 6, depth=3, key=1, residual=False, activation="sin")
    x = np.asarray(points()[0])
    y = (x - (BOX.lower + BOX.upper) / 2) * 2 / (BOX.upper - BOX.lower)
    h = np.sin(net.first @ y + net.first_bias)
    for W, b in zip(np.asarray(net.hidden), np.asarray(net.hidden_bias), strict=True):
        h = np.sin(W @ h + b)
    assert net.hidden.shape == (2, 6, 6)
    np.testing.assert_allclose(net(jnp.asarray(x)), h, rtol=1e-13)


def test_random_features_are_the_formula():
    random = pf.RandomFeatures(BOX, 6, key=1)
    y = jnp.array([0.3, -0.8])
    x = (y + 1) * jnp.asarray((BOX.upper - BOX.lower) / 2) + jnp.asarray(BOX.lower)
    np.testing.assert_allclose(random(x), np.tanh(random.weight @ y + random.bias), rtol=1e-13)


# ---- initialisations


@pytest.mark.parametrize("activation", ["tanh", "tanh3", "sin"])
@pytest.mark.parametrize("initialisation", ["xavier", "kaiming"])
def test_without_biases_a_residual_network_is_odd_about_the_centre_of_the_box(activation, initialisation):
    net = pf.NetworkFeatures(BOX, 20, key=3, activation=activation, initialisation=initialisation)
    center = jnp.asarray((BOX.lower + BOX.upper) / 2)
    offset = jnp.array([0.3, -1.1])
    np.testing.assert_allclose(net(center - offset), -net(center + offset), rtol=1e-12, atol=1e-13)


def test_with_the_default_biases_a_network_is_not_odd():
    net = pf.NetworkFeatures(BOX, 20, key=3)
    center = jnp.asarray((BOX.lower + BOX.upper) / 2)
    offset = jnp.array([0.3, -1.1])
    assert np.abs(net(center - offset) + net(center + offset)).max() > 0.1


def is_variance(sample: jax.Array, expected: float, kurtosis: float) -> bool:
    """Whether the mean square of n independent entries agrees with the variance: within five standard deviations,
    σ² sqrt((kurtosis - 1) / n), kurtosis 3 for the normal and 9/5 for the uniform distribution."""
    found = float(jnp.mean(sample**2))
    return abs(found - expected) <= 5 * expected * np.sqrt((kurtosis - 1) / sample.size)


M = 200
HIDDEN = {"default": (1 / M, 3.0), "xavier": (1 / M, 3.0), "kaiming": (2 / M, 3.0), "uniform": (1 / (3 * M), 1.8)}
FIRST = {"xavier": (2 / (M + 2), 3.0), "kaiming": (1.0, 3.0), "uniform": (1 / 3, 1.8)}


@pytest.mark.parametrize("initialisation", HIDDEN)
def test_hidden_weights_have_the_variance_of_their_initialisation(initialisation, seed):
    net = pf.NetworkFeatures(BOX, M, key=seed, initialisation=initialisation)
    assert is_variance(net.hidden, *HIDDEN[initialisation])


@pytest.mark.parametrize("initialisation", FIRST)
@pytest.mark.parametrize("scale", [None, 3.0])
def test_first_weights_have_the_variance_of_their_initialisation_times_the_scale(initialisation, scale, seed):
    variance, kurtosis = FIRST[initialisation]
    variance *= 1 if scale is None else scale**2
    net = pf.NetworkFeatures(BOX, M, key=seed, initialisation=initialisation, scale=scale)
    random = pf.RandomFeatures(BOX, M, key=seed, initialisation=initialisation, scale=scale)
    assert is_variance(net.first, variance, kurtosis)
    assert is_variance(random.weight, variance, kurtosis)


def test_default_weights_have_the_variance_of_the_scale(seed):
    assert is_variance(pf.NetworkFeatures(BOX, M, key=seed, scale=0.7).first, 0.49, 3.0)
    assert is_variance(pf.RandomFeatures(BOX, M, key=seed, scale=0.7).weight, 0.49, 3.0)
    assert is_variance(pf.NetworkFeatures(BOX, M, key=seed).hidden_bias, 0.04, 3.0)


@pytest.mark.parametrize("initialisation", ["xavier", "kaiming"])
def test_xavier_and_kaiming_have_no_biases(initialisation):
    net = pf.NetworkFeatures(BOX, 10, initialisation=initialisation)
    assert not net.first_bias.any()
    assert not net.hidden_bias.any()
    assert not pf.RandomFeatures(BOX, 10, initialisation=initialisation).bias.any()


def test_the_uniform_initialisation_stays_within_its_bounds(seed):
    net = pf.NetworkFeatures(BOX, M, key=seed, initialisation="uniform")
    for array, bound in ((net.first, 1), (net.first_bias, 1), (net.hidden, M**-0.5), (net.hidden_bias, M**-0.5)):
        assert 0.9 * bound <= float(jnp.max(jnp.abs(array))) <= bound


def test_by_default_the_zero_line_of_every_unit_passes_through_the_box(seed):
    """|b| ≤ ‖w‖₁: the hyperplane w·y + b = 0 meets the cube [-1, 1]^d."""
    net, random = pf.NetworkFeatures(BOX, M, key=seed), pf.RandomFeatures(BOX, M, key=seed)
    for weight, bias in ((net.first, net.first_bias), (random.weight, random.bias)):
        assert (np.abs(bias) <= np.abs(weight).sum(axis=1)).all()
        assert np.abs(bias).max() > 0


def test_the_default_scale_grows_with_the_number_of_features():
    spread = lambda m: float(jnp.std(pf.NetworkFeatures(BOX, m).first))
    assert spread(30) < spread(100) < spread(400)


@pytest.mark.parametrize(("degree", "dim", "size"), [(99, 1, 100), (3, 2, 10), (30, 2, 496), (4, 3, 35), (2, 5, 21)])
def test_the_polynomial_degree_inverts_the_dimension_of_the_polynomials(degree, dim, size):
    assert polynomial_degree(size, dim) == pytest.approx(degree, rel=1e-12)


# ---- errors

MAKERS = {"network": pf.NetworkFeatures, "random": pf.RandomFeatures}


@pytest.fixture(params=MAKERS)
def maker(request):
    return MAKERS[request.param]


def test_an_unknown_activation_is_refused_with_the_nearest(maker):
    with pytest.raises(UnknownNameError, match=r"Unknown activation 'tahn'. Did you mean 'tanh'.*Known: .*sin.*tanh3"):
        maker(BOX, 10, activation="tahn")


def test_an_unknown_initialisation_is_refused_with_the_nearest(maker):
    with pytest.raises(
        UnknownNameError, match=r"Unknown initialisation 'xaver'. Did you mean 'xavier'.*Known: .*kaiming"
    ):
        maker(BOX, 10, initialisation="xaver")


@pytest.mark.parametrize("size", [0, -3, True])
def test_a_bad_number_of_features_is_refused(maker, size):
    with pytest.raises(FeaturesError, match=rf"size must be an integer of at least 1; got {size}"):
        maker(BOX, size)


@pytest.mark.parametrize("depth", [0, -1])
def test_a_bad_depth_is_refused(depth):
    with pytest.raises(FeaturesError, match=rf"depth must be an integer of at least 1; got {depth}"):
        pf.NetworkFeatures(BOX, 10, depth)


def test_features_may_take_their_box_from_other_features():
    first = pf.NetworkFeatures(BOX, 5)
    assert np.array_equal(pf.RandomFeatures(first, 5).lower, BOX.lower)
