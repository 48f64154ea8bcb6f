"""Derivatives of features: the rules that combine them, and every family against differentiation by JAX.

To test a new family, add a line to FAMILIES; one that needs JAX to be evaluated also goes into COMPILED.
"""

import math
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import compilations

import pdofm as pf
from pdofm.calculus.jets import closure, composition, highest_order, product, unit, up_to
from pdofm.discrete.evaluate import derivatives, evaluate, evaluate_all
from pdofm.features import Features
from pdofm.features.activations import ACTIVATIONS, activation_derivatives, activation_of
from pdofm.features.base import differentiated
from pdofm.features.windows import WINDOWS, window_derivatives

INTERVAL = pf.Interval(0, 2)
BOX = pf.Box([-1, 0], [1, 3])
CUBE = pf.Box([0, 0, 0], [1, 2, 3])
SQUARE = pf.Box([-1, -1], [1, 1])
LSHAPE = SQUARE - pf.Box([0, 0], [1, 1])
SPACE_TIME = pf.SpaceTime(pf.Disk(), 2)
CENTERS = np.array([[x, y] for x in (-0.8, 0.1, 0.7) for y in (-0.5, 0.6)])

Case = tuple[pf.Domain, Callable[[pf.Domain], Features]]


def local(box: pf.Box, key: int) -> Features:
    return pf.RandomFeatures(box, 3, key=key, initialisation="uniform", scale=2.0)


def local_network(box: pf.Box, key: int) -> Features:
    return pf.NetworkFeatures(box, 4, key=key)


def local_polynomials(box: pf.Box, key: int) -> Features:
    return pf.Concatenate(pf.Chebyshev(box, degree=1), pf.RandomFeatures(box, 2, key=key))


def partition(inner=local, **options) -> Callable[[pf.Domain], Features]:
    return lambda domain: pf.PartitionOfUnity(inner, domain, **options)


@cache
def waves() -> tuple[Callable[[jax.Array], jax.Array], ...]:
    return lambda x: jnp.sin(x[0] - 2 * x[1]), lambda x: jnp.exp(x[0] * x[1] / 3)


FAMILIES: dict[str, Case] = {
    **{f"random {name}": (BOX, lambda d, a=name: pf.RandomFeatures(d, 12, activation=a)) for name in ACTIVATIONS},
    "random on an interval": (INTERVAL, lambda d: pf.RandomFeatures(d, 5, scale=3.0)),
    "random in a cube": (CUBE, lambda d: pf.RandomFeatures(d, 7)),
    "transnet": (BOX, lambda d: pf.TransNet(d, 8)),
    "transnet of sines": (SPACE_TIME, lambda d: pf.TransNet(d, 8, activation="sin")),
    **{f"network {name}": (BOX, lambda d, a=name: pf.NetworkFeatures(d, 8, activation=a)) for name in ACTIVATIONS},
    "network on an interval": (INTERVAL, lambda d: pf.NetworkFeatures(d, 8)),
    "network in a cube": (CUBE, lambda d: pf.NetworkFeatures(d, 8, depth=1)),
    "network in space-time": (SPACE_TIME, lambda d: pf.NetworkFeatures(d, 8)),
    "plain network": (BOX, lambda d: pf.NetworkFeatures(d, 8, depth=3, residual=False, activation="tanh")),
    "plain network of one layer": (BOX, lambda d: pf.NetworkFeatures(d, 8, depth=1, residual=False)),
    "polynomials": (BOX, lambda d: pf.Chebyshev(d, degree=4)),
    "polynomials on an interval": (INTERVAL, lambda d: pf.Chebyshev(d, degree=6)),
    "polynomials in a cube": (CUBE, lambda d: pf.Chebyshev(d, degree=2, kind="tensor")),
    "waves": (BOX, lambda d: pf.Fourier(d, degree=2)),
    "waves on an interval": (INTERVAL, lambda d: pf.Fourier(d, degree=7, extension=1.5)),
    "waves in a cube": (CUBE, lambda d: pf.Fourier(d, degree=1, kind="tensor")),
    "a constant": (BOX, lambda d: pf.Fourier(d, degree=0)),
    "stretched": (BOX, lambda d: pf.StretchedPolynomials(d, 12, direction=[3, 4], center=0.7, width=0.3)),
    "stretched along an axis": (BOX, lambda d: pf.StretchedPolynomials(d, 12, direction=[0, 1], center=1.0, width=0.1)),
    "stretched along a curve": (
        BOX,
        lambda d: pf.StretchedPolynomials(d, 12, direction=[3, 4], center=[0.7, 0.2, -0.1, 0.05], width=0.3),
    ),
    "stretched on an interval": (
        INTERVAL,
        lambda d: pf.StretchedPolynomials(d, 9, direction=[1], center=1.0, width=0.1),
    ),
    "stretched in a cube": (CUBE, lambda d: pf.StretchedPolynomials(d, 9, direction=[1, 2, 3], center=1.0, width=0.5)),
    "corner": (LSHAPE, lambda d: pf.CornerFunctions(d, highest=2.0, degree=1)),
    "radial corner": (LSHAPE, lambda d: pf.CornerFunctions(d, highest=3.0, degree=4, radial=True)),
    "corners": (LSHAPE, lambda d: pf.CornerFunctions(d, highest=2.0, degree=0, convex=True, mixed=True)),
    "polygon": (
        pf.Polygon([[0, 0], [2, 0], [2, 1], [1, 0.5], [0, 1]]),
        lambda d: pf.CornerFunctions(d, highest=2.0, degree=2, mixed=True),
    ),
    "functions": (BOX, lambda d: pf.Functions(d, waves())),
    "concatenation": (BOX, lambda d: pf.Concatenate(pf.Chebyshev(d, 10), pf.RandomFeatures(d, 9))),
    "concatenation of all kinds": (
        BOX,
        lambda d: pf.Concatenate(pf.NetworkFeatures(d, 4), pf.Functions(d, waves()), partition(subdomains=2)(d)),
    ),
    "hard on an interval": (INTERVAL, lambda d: pf.HardDirichlet(pf.Chebyshev(d, 6), d)),
    "hard in a box": (BOX, lambda d: pf.HardDirichlet(pf.Chebyshev(d, 6), d)),
    "hard in a disk": (pf.Disk((1, 2), 0.5), lambda d: pf.HardDirichlet(pf.RandomFeatures(d, 6), d)),
    "hard in an annulus": (pf.Annulus((0, 1), 0.5, 2), lambda d: pf.HardDirichlet(pf.Fourier(d, 6), d)),
    "hard in a ball": (pf.Ball((0, 0, 1), 2), lambda d: pf.HardDirichlet(pf.RandomFeatures(d, 6), d)),
    "hard in space-time": (SPACE_TIME, lambda d: pf.HardDirichlet(pf.RandomFeatures(d, 6), d)),
    "hard in space-time over an interval": (
        pf.SpaceTime(pf.Interval(0, 1), 2),
        lambda d: pf.HardDirichlet(pf.Chebyshev(d, 6), d),
    ),
    "hard concatenation": (
        BOX,
        lambda d: pf.HardDirichlet(pf.Concatenate(pf.NetworkFeatures(d, 6), pf.Chebyshev(d, 6)), d),
    ),
    "hard partition": (BOX, lambda d: pf.HardDirichlet(partition(subdomains=2)(d), d)),
    "partition": (SQUARE, partition(subdomains=(3, 2))),
    "partition of an interval": (INTERVAL, partition(subdomains=4)),
    "partition of a cube": (CUBE, partition(subdomains=(2, 1, 2))),
    "partition of space-time": (pf.SpaceTime(pf.Interval(0, 1), 2), partition(subdomains=(2, 3))),
    "plain partition": (SQUARE, partition(subdomains=(2, 3), normalise=False)),
    "smooth partition": (SQUARE, partition(subdomains=(3, 2), window="smooth")),
    "indicators": (SQUARE, partition(subdomains=(3, 2), window="a")),
    "partition with dropped cells": (LSHAPE, partition(subdomains=4)),
    "indicators with dropped cells": (LSHAPE, partition(subdomains=4, window="a")),
    "partition by centers": (SQUARE, partition(centers=CENTERS, radii=np.full(6, 0.6))),
    "smooth partition by centers": (
        SQUARE,
        partition(centers=CENTERS, radii=np.tile([0.5, 0.7], (6, 1)), window="smooth"),
    ),
    "partition of networks": (SQUARE, partition(local_network, subdomains=2)),
    "partition of concatenations": (SQUARE, partition(local_polynomials, subdomains=2)),
}
COMPILED = {name for name in FAMILIES if "network" in name} | {
    *("functions", "concatenation of all kinds", "hard concatenation"),
}


@cache
def made(name: str) -> Features:
    domain, build = FAMILIES[name]
    return build(domain)


def points_of(name: str, count: int = 25) -> np.ndarray:
    """Random points; windows are smooth at all of them, as their kinks have measure zero."""
    return FAMILIES[name][0].sample(count, "random", key=3)


@pytest.fixture(params=FAMILIES)
def name(request) -> str:
    return request.param


COMPARED = {
    1: [(0,), (1,), (2,), (4,)],
    2: [(0, 0), (0, 1), (1, 1), (2, 0), (1, 2)],
    3: [(0, 0, 0), (0, 1, 0), (1, 0, 1), (0, 2, 0)],
}
"""Derivatives by dimension: few of them, as their compilation takes long."""


# ---- every family


def test_jets_are_what_differentiation_gives(name):
    features, at = made(name), points_of(name)
    which = COMPARED[features.dim]
    found, expected = features.jets(at, which), differentiated(features, at, which)
    assert found.shape == (len(which), len(at), features.size)
    for index, each, reference in zip(which, found, expected, strict=True):
        size = np.abs(expected[[sum(other) == sum(index) for other in which]]).max()
        np.testing.assert_allclose(each, reference, rtol=0, atol=1e-11 * size, err_msg=str(index))


HIGH = ["random tanh3", "network tanh3", "stretched", "corner", "partition by centers", "hard in an annulus"]


@pytest.mark.parametrize("family", HIGH)
def test_one_mixed_derivative_of_high_order_may_be_asked_for_alone(family):
    features, at = made(family), points_of(family, 9)
    found, expected = (jets(at, [(3, 2)]) for jets in (features.jets, lambda *a: differentiated(features, *a)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_derivatives_do_not_depend_on_what_else_is_asked_for(name):
    features, at = made(name), points_of(name, 5)
    which = up_to(features.dim, 2)
    together = features.jets(at, which)
    for a in (0, 1, len(which) - 1):
        alone = features.jets(at, [which[a]])[0]
        np.testing.assert_allclose(alone, together[a], rtol=1e-12, atol=1e-12 * np.abs(together[a]).max())


def test_in_memory_points_run_fastest(name):
    features = made(name)
    assert np.swapaxes(features.jets(points_of(name), up_to(features.dim, 1)), 1, 2).flags.c_contiguous


@pytest.mark.parametrize("count", [0, 1])
def test_no_point_and_one_point_will_do(name, count):
    features = made(name)
    which, at = up_to(features.dim, 1), points_of(name)[:count]
    assert features.jets(at, which).shape == (len(which), count, features.size)
    assert features.expand(at, which, np.ones((features.size, 2))).shape == (len(which), count, 2)


def test_no_derivatives_at_all_are_an_empty_array(name):
    features, at = made(name), points_of(name)
    assert features.jets(at, []).shape == (0, len(at), features.size)
    assert features.expand(at, [], np.ones((features.size, 2))).shape == (0, len(at), 2)


def test_functions_of_a_space_are_combinations_of_its_features(name, seed):
    features, at = made(name), points_of(name)
    which = up_to(features.dim, 2)
    c = np.random.default_rng(seed).standard_normal((features.size, 3))
    expected = features.jets(at, which) @ c
    found = features.expand(at, which, c)
    for each, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, reference, rtol=0, atol=1e-12 * (1 + np.abs(reference).max()))


def test_the_count_of_compilations_counts():
    with compilations() as compiled:
        jax.jit(lambda x: 2 * x + 17)(np.ones(7))
    assert len(compiled) == 1
    jax.jit(lambda x: 3 * x + 17)(np.ones(7))
    assert len(compiled) == 1


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in COMPILED])
def test_families_with_formulas_compile_nothing(family):
    features, at = made(family), points_of(family)
    which = up_to(features.dim, 2)
    jax.clear_caches()
    with compilations() as compiled:
        features.jets(at, which)
        features.expand(at, which, np.ones((features.size, 1)))
    assert not compiled


def test_networks_of_one_shape_share_what_is_compiled():
    """All subdomains of a partition, and networks of other weights and boxes."""
    at, which = SQUARE.sample(40, "random"), up_to(2, 2)
    pf.NetworkFeatures(SQUARE, 5, key=1).jets(at, which)
    with compilations() as compiled:
        pf.NetworkFeatures(pf.Box([0, 0], [3, 1]), 5, key=2).jets(at, which)
        networks = pf.PartitionOfUnity(lambda box, key: pf.NetworkFeatures(box, 5, key=key), SQUARE, (2, 2))
        compiled.clear()  # its weights are stacked by JAX
        networks.jets(at, which)
    assert not compiled


def test_many_points_are_evaluated_in_batches():
    features, at = made("network sin"), BOX.sample(9000, "random")
    few = np.array([0, 4321, 8191, 8999])
    found = features.jets(at, up_to(2, 2))
    np.testing.assert_allclose(found[:, few], features.jets(at[few], up_to(2, 2)), rtol=1e-12, atol=1e-13)


# ---- at special points


SPECIAL = [name for name in FAMILIES if "partition" in name or "indicators" in name]


@pytest.mark.parametrize("family", SPECIAL)
def test_windows_agree_on_edges_of_cells_and_outside_of_the_domain(family):
    """The subdomain that owns a point, or undefined values where no window reaches."""
    features, domain = made(family), FAMILIES[family][0]
    sides = domain.upper - domain.lower
    edges = domain.lower + np.round((domain.sample(40, "grid") - domain.lower) * 4) / 4
    at = np.concatenate([edges, domain.boundary.sample(9)[0], domain.upper + 0.1 * np.arange(6)[:, None] * sides])
    expected = np.asarray(jax.jit(jax.vmap(features))(jnp.asarray(at)))
    found = features.jets(at, [(0,) * features.dim])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    of_space = features.expand(at, [(0,) * features.dim], np.ones((features.size, 1)))[0, :, 0]
    np.testing.assert_array_equal(np.isnan(of_space), np.isnan(expected).any(axis=1))


@pytest.mark.parametrize("family", ["corner", "corners", "polygon"])
def test_singular_functions_agree_on_the_boundary_up_to_the_corner(family):
    features, domain = made(family), FAMILIES[family][0]
    at = np.concatenate([domain.boundary.sample(40)[0], np.asarray(features.apexes)])
    expected = np.asarray(jax.jit(jax.vmap(features))(jnp.asarray(at)))
    np.testing.assert_allclose(features.jets(at, [(0, 0)])[0], expected, rtol=0, atol=1e-13)


# ---- liftings

LIFTINGS = {
    "a number": (BOX, 2.0),
    "a number per component": (BOX, [1.0, -2.0]),
    "a function": (BOX, lambda x: jnp.sin(x[0]) * x[1] ** 2),
    "a vector": (BOX, lambda x: jnp.stack([x[0] * x[1], x[1] ** 3])),
    "a tuple": (BOX, lambda x: (x[0] * x[1], 1.0)),
    "in space-time": (SPACE_TIME, lambda x, t: jnp.sin(x[0]) * t**2),
}


@pytest.mark.parametrize("kind", LIFTINGS)
def test_the_lifting_is_added_with_its_derivatives(kind):
    domain, value = LIFTINGS[kind]
    hard = pf.HardDirichlet(pf.Chebyshev(domain, degree=2), domain, value)
    at, which = domain.sample(300, "random", key=1), up_to(domain.dim, 2)
    c = np.random.default_rng(0).standard_normal((hard.size, 2))

    def derivative(index: tuple[int, ...]) -> np.ndarray:
        axes = [axis for axis, k in enumerate(index) for _ in range(k)]
        function = pf.partial(lambda x: hard.combine(x, jnp.asarray(c)), *axes)
        return np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(at)))

    found = derivatives(hard, c, at, which)
    for index, each in zip(which, found, strict=True):
        expected = derivative(index)
        np.testing.assert_allclose(each, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_several_functions_have_the_same_lifting():
    hard = pf.HardDirichlet(pf.Chebyshev(BOX, degree=2), BOX, [1.0, 2.0])
    at, c = BOX.sample(5, "random"), np.random.default_rng(0).standard_normal((2, hard.size, 2))
    np.testing.assert_allclose(evaluate_all(hard, c, at), [evaluate(hard, each, at) for each in c], rtol=1e-13)


def test_a_lifting_of_another_number_of_components_is_refused():
    hard = pf.HardDirichlet(pf.Chebyshev(BOX, degree=2), BOX, [1.0, 2.0])
    with pytest.raises(pf.errors.FeaturesError, match=r"has 2 components, the unknowns have 3\. Give one number"):
        evaluate(hard, np.ones((hard.size, 3)), BOX.sample(5))


# ---- building blocks


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("of", [np.asarray, jnp.asarray])
def test_derivatives_of_activations_of_any_order(activation, of):
    z, function = np.linspace(-3, 3, 31), activation_of(activation)
    found = activation_derivatives(activation, of(z), range(6))
    for order in range(6):
        expected = np.asarray(jax.vmap(function)(jnp.asarray(z)))
        np.testing.assert_allclose(found[order], expected, rtol=0, atol=1e-13 * np.abs(expected).max())
        function = jax.grad(function)


def test_the_tails_of_tanh_keep_their_digits():
    """tanh′ = 4 e^(-2z) for large z; what is lost is lost in tanh itself, which is rounded."""
    found = activation_derivatives("tanh", np.array([8.0]), [1, 2])
    expected = 1 / math.cosh(8.0) ** 2
    np.testing.assert_allclose(found[1], expected, rtol=1e-8)
    np.testing.assert_allclose(found[2], -2 * math.tanh(8.0) * expected, rtol=1e-8)


@pytest.mark.parametrize("window", WINDOWS)
def test_derivatives_of_windows_of_any_order(window):
    y, function = np.linspace(-1.4, 1.4, 30), WINDOWS[window]
    found = window_derivatives(window, y, 5)
    for order in range(6):
        expected = np.asarray(jax.vmap(function)(jnp.asarray(y)))
        np.testing.assert_allclose(found[order], expected, rtol=0, atol=1e-12 * (1 + np.abs(expected).max()))
        function = jax.grad(function)


# ---- rules


def test_multi_indices_are_listed_by_order():
    assert up_to(2, 2) == ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    assert [len(up_to(d, k)) for d, k in ((1, 4), (2, 3), (3, 2), (5, 1))] == [5, 10, 10, 6]
    assert closure(((2, 1),)) == ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (2, 1))
    assert closure(()) == ()
    assert (highest_order([(2, 1), (0, 1)]), highest_order([])) == (3, 0)
    assert unit(3, 1) == (0, 1, 0)


def exponential(rates: tuple[float, ...], at: np.ndarray, order: int) -> dict[tuple[int, ...], np.ndarray]:
    """The jet of exp(r·x)."""
    values = np.exp(at @ np.array(rates))
    return {k: math.prod(r**n for r, n in zip(rates, k, strict=True)) * values for k in up_to(len(rates), order)}


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_rule_for_products_is_exact_for_exponentials(dim, seed):
    """exp(a·x) exp(b·x) = exp((a + b)·x)."""
    rng = np.random.default_rng(seed)
    at, (a, b) = rng.uniform(-1, 1, (6, dim)), rng.uniform(-1, 1, (2, dim))
    found = product(exponential(tuple(a), at, 4), exponential(tuple(b), at, 4), up_to(dim, 4))
    expected = exponential(tuple(a + b), at, 4)
    assert found.keys() == expected.keys()
    for index, values in expected.items():
        np.testing.assert_allclose(found[index], values, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_rule_for_compositions_is_exact_for_exponentials(dim, seed):
    """log exp(a·x) = a·x, exp(a·x)² = exp(2a·x) and 1 / exp(a·x) = exp(-a·x)."""
    rng = np.random.default_rng(seed)
    at, a = rng.uniform(-1, 1, (6, dim)), rng.uniform(0.5, 1, dim)
    inner = exponential(tuple(a), at, 4)
    value = inner[(0,) * dim]
    inverse = [(-1) ** k * math.factorial(k) / value ** (k + 1) for k in range(5)]
    logarithm = composition([np.log(value), *inverse[:4]], inner, up_to(dim, 4))
    for index, values in logarithm.items():
        slope = float(a[index.index(1)]) if sum(index) == 1 else 0.0
        np.testing.assert_allclose(values, slope if any(index) else at @ a, atol=1e-12)
    square = composition([value**2, 2 * value, 2 + 0 * value, 0 * value, 0 * value], inner, up_to(dim, 4))
    for found, rates in ((square, 2 * a), (composition(inverse, inner, up_to(dim, 4)), -a)):
        for index, values in exponential(tuple(rates), at, 4).items():
            np.testing.assert_allclose(found[index], values, rtol=1e-11)


def test_what_is_missing_is_zero():
    """x y, with all derivatives that vanish left out."""
    x, y = {(0, 0): np.array([2.0]), (1, 0): np.array([1.0])}, {(0, 0): np.array([3.0]), (0, 1): np.array([1.0])}
    found = product(x, y, up_to(2, 3))
    assert {index: float(values[0]) for index, values in found.items()} == {
        (0, 0): 6.0,
        (1, 0): 3.0,
        (0, 1): 2.0,
        (1, 1): 1.0,
    }
    cubes = composition([np.array([8.0]), np.array([12.0]), np.array([12.0]), np.array([6.0])], x, up_to(2, 3))
    assert {index: float(values[0]) for index, values in cubes.items()} == {
        (0, 0): 8.0,
        (1, 0): 12.0,
        (2, 0): 12.0,
        (3, 0): 6.0,
    }
