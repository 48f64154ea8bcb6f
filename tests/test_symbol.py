"""Symbols and jets against the derivative with respect to the coefficients, for every family and every operator."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import factorial

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import compilations

import pdofm as pf
from pdofm.calculus.jets import up_to
from pdofm.calculus.symbol import Symbol, symbol_of
from pdofm.calculus.terms import Difference, Layout
from pdofm.discrete import direct
from pdofm.discrete.assemble import assemble, left_values
from pdofm.discrete.collocate import Block, collocate, with_equation
from pdofm.features import Features

SCALAR = Layout(None, False)


def symbol(operator: Callable, dim: int = 2, layout: Layout = SCALAR) -> Symbol:
    return Symbol(lambda u, w, args, normal: jnp.atleast_1d(operator(u, *args)), layout, dim, dim - layout.has_time)


def points(n: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.2, 1, (n, dim))


def coefficients_of(operator: Callable, x: np.ndarray, jet: np.ndarray | None = None, layout: Layout = SCALAR) -> dict:
    """The coefficients that are not zero, by multi-index, of one equation and one component."""
    found = symbol(operator, x.shape[1], layout).linearise(x, np.zeros((len(x), x.shape[1] - layout.has_time)), jet)
    assert found is not None
    return {i: c for i, c in zip(found.indices, found.coefficients[:, 0, :, 0].T, strict=True) if c.any()}


# ---- exact symbols


def test_the_symbol_of_a_linear_operator_is_its_list_of_coefficients():
    x = points(7, 2)
    operator = lambda u, x: (
        -pf.div(lambda y: jnp.exp(y[0]) * pf.grad(u)(y))(x) + x[1] * pf.partial(u, 0, 1)(x) + 3 * u(x)
    )
    found = coefficients_of(operator, x)
    assert set(found) == {(0, 0), (1, 0), (2, 0), (0, 2), (1, 1)}
    for index, expected in {
        (0, 0): np.full(7, 3.0),
        (1, 0): -np.exp(x[:, 0]),
        (2, 0): -np.exp(x[:, 0]),
        (0, 2): -np.exp(x[:, 0]),
        (1, 1): x[:, 1],
    }.items():
        np.testing.assert_allclose(found[index], expected, rtol=1e-13)


def test_the_symbol_of_a_nonlinear_operator_is_taken_at_the_jet():
    x = points(5, 1)
    jet = np.random.default_rng(1).standard_normal((3, 5, 1))
    found = coefficients_of(lambda u, x: u(x) * pf.partial(u, 0)(x) - pf.laplacian(u)(x) ** 2, x, jet)
    value, slope, curvature = jet[..., 0]
    np.testing.assert_allclose(found[0,], slope)
    np.testing.assert_allclose(found[1,], value)
    np.testing.assert_allclose(found[2,], -2 * curvature)


def test_time_is_the_last_coordinate():
    layout, x = Layout(None, True), points(4, 2)
    found = coefficients_of(lambda u, x, t: pf.dt(pf.dt(u))(x, t) - t * pf.laplacian(u)(x, t), x, layout=layout)
    assert set(found) == {(2, 0), (0, 2)}
    np.testing.assert_allclose(found[0, 2], 1)
    np.testing.assert_allclose(found[2, 0], -x[:, 1])


def test_a_system_has_a_coefficient_for_each_component_in_each_equation():
    layout = Layout((("v", 2), ("p", 1)), False)
    stokes = lambda u, x: jnp.append(-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x))
    x = points(3, 2)
    found = symbol(stokes, layout=layout).linearise(x, x)
    at = {index: i for i, index in enumerate(found.indices)}
    G = found.coefficients[0]
    expected = np.zeros_like(G)
    for i in range(2):
        expected[i, at[2, 0], i] = expected[i, at[0, 2], i] = -1
        slope = at[(1, 0) if i == 0 else (0, 1)]
        expected[i, slope, 2] = expected[2, slope, i] = 1
    np.testing.assert_array_equal(G, expected)


@pytest.mark.parametrize(
    "operator",
    [
        lambda u, x: jnp.trace(jax.hessian(u)(x)),
        lambda u, x: jnp.trace(jax.jacrev(jax.grad(u))(x)),
        lambda u, x: jnp.sum(jax.vmap(lambda v: jax.jvp(jax.grad(u), (x,), (v,))[1] @ v)(jnp.eye(3))),
        lambda u, x: jax.jit(pf.laplacian(u))(x),
    ],
    ids=["hessian", "reverse over reverse", "vmap of jvp", "jit"],
)
def test_derivatives_may_be_taken_by_any_means_of_jax(operator):
    found = coefficients_of(operator, points(4, 3))
    assert set(found) == {(2, 0, 0), (0, 2, 0), (0, 0, 2)}
    assert all((c == 1).all() for c in found.values())


def test_the_laplacian_of_a_hundred_dimensions_asks_for_a_hundred_derivatives():
    lhs = symbol(lambda u, x: pf.laplacian(u)(x) + u(x) ** 2, 100)
    x = points(10, 100)
    which = lhs.indices(x, x)
    assert len(which) == 101
    assert {sum(index) for index in which} == {0, 2}
    found = lhs.linearise(x, x, np.full((101, 10, 1), 0.5))
    np.testing.assert_allclose(found.left, 50.25, rtol=1e-13)


@pytest.mark.parametrize("dim", [10, 40])
def test_no_derivative_is_left_out_because_it_was_not_there_before(dim):
    """Symbols of many derivatives start with those that they have at the first points; others follow."""
    potential = lambda u, x: pf.laplacian(u)(x) + jnp.where(x[0] > 0.9, 3.0, 0.0) * pf.partial(u, 1, 2)(x)
    penalty = lambda u, x: pf.laplacian(u)(x) + jnp.minimum(u(x), 0.0)
    first, then = points(20, dim) * 0.8, points(30, dim, seed=1)
    then[:5, 0] = 0.95
    mixed = tuple(int(i in (1, 2)) for i in range(dim))
    local = symbol(potential, dim)
    assert mixed not in local.indices(first, first)
    found = local.linearise(then, then)
    np.testing.assert_array_equal(found.coefficients[:, 0, found.indices.index(mixed), 0], 3.0 * (then[:, 0] > 0.9))
    assert (0,) * dim in symbol(penalty, dim).indices(first, first)


def test_conditions_on_two_faces_of_many_dimensions_share_a_symbol_and_keep_their_derivatives():
    dim = 40
    box = pf.Box([0.0] * dim, [1.0] * dim)
    problem = pf.Problem(
        box, lambda u, x: u(x), 0.0, [pf.Neumann(1.0, box.face(0, 0)), pf.Neumann(1.0, box.face(1, 0), name="other")]
    )
    features = pf.RandomFeatures(box, 5, scale=0.3)
    _compare(problem.layout, features, collocate(problem, 4, 8), np.zeros((5, 1)), "Neumann")


def test_a_left_side_may_look_at_the_last_iterate_alone(seed):
    """The operator is linear, but its frozen form must be taken at the last iterate."""
    problem = pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -pf.laplacian(u)(x) + u(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.exp(x[0]) * x[0],
        frozen_operator=lambda u, w, x: -pf.laplacian(u)(x) + w(x),
    )
    features = pf.Chebyshev(problem.domain, degree=12)
    frozen = with_equation(collocate(problem, 20, 2), problem.frozen_terms())
    _compare(problem.layout, features, frozen, np.random.default_rng(seed).standard_normal((13, 1)), "frozen")
    assert pf.solve(problem, features, method=pf.Picard()).errors().relative_l2 < 1e-9


def test_a_jet_that_is_too_large_is_left_to_differentiation():
    lhs = symbol(lambda u, x: pf.laplacian(pf.laplacian(u))(x), 20)
    assert not lhs.is_computable
    assert lhs.orders(points(2, 20)).tolist() == [[4] * 20]


def test_constant_coefficients_are_known_to_be_constant():
    x = points(6, 2)
    for operator, constant in (
        (lambda u, x: -pf.laplacian(u)(x) + 2 * u(x), True),
        (lambda u, x: x[0] * pf.laplacian(u)(x), False),
        (lambda u, x: jnp.where(x[0] > 0.99, 2.0, 1.0) * u(x), False),
        (lambda u, x: pf.laplacian(u)(x) - jnp.sin(x[1]), False),
    ):
        found = symbol(operator).linearise(x, x)
        assert found is not None
        assert found.is_constant == constant
    in_time = symbol(lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t), layout=Layout(None, True))
    assert in_time.linearise(x, x[:, :1]).is_constant


# ---- local or not


NOT_LOCAL = {
    "another point": lambda u, x: u(x) - u(-x),
    "a shift": lambda u, x: pf.laplacian(u)(x) + u(x + 1e-9),
    "an integral": lambda u, x: pf.laplacian(u)(x) - jnp.mean(jax.vmap(u)(jnp.eye(2))),
    "a derivative elsewhere": lambda u, x: pf.laplacian(u)(x) - pf.partial(u, 0)(jnp.zeros(2)),
    "another point, in a corner only": lambda u, x: u(jnp.where(x[0] > 0.9, 0.5 * x, x)),
    "a comparison with a value elsewhere": lambda u, x: jnp.where(u(jnp.zeros(2)) < 0.5, 1.0, 2.0) * u(x),
    "a mean that ignores what is not a number": lambda u, x: u(x) - jnp.nanmean(jax.vmap(u)(jnp.eye(2))),
    "a table looked up by a value elsewhere": lambda u, x: (
        u(x) * jnp.arange(9.0)[jnp.clip(u(jnp.zeros(2)), 0, 8).astype(int)]
    ),
    "in a branch": lambda u, x: jax.lax.cond(x[0] > 0, lambda: u(x / 2), lambda: u(x)),
    "in integers": lambda u, x: u(x) - u(jnp.array([0, 1])),
    "a derivative of a composition": lambda u, x: pf.partial(lambda y: u(2 * y), 0)(x),
}


@pytest.mark.parametrize("name", NOT_LOCAL)
def test_a_left_side_that_looks_elsewhere_is_found_out(name):
    x = np.concatenate([points(5, 2), [[0.95, 0.5]]])
    for jet in (None, np.ones((len(up_to(2, symbol(NOT_LOCAL[name]).order)), 6, 1))):
        assert symbol(NOT_LOCAL[name]).linearise(x, x, jet) is None


@pytest.mark.parametrize(
    "operator",
    [
        lambda u, x: pf.partial(lambda y: u(y) * jnp.sin(y[0]), 1)(x),
        lambda u, x: jax.lax.cond(x[0] > 0.5, lambda: u(x), lambda: 2 * u(x)),
        lambda u, x: u(x * 1.0) + u(jnp.array([x[0], x[1]])),
        lambda u, x: jax.lax.fori_loop(0, 3, lambda _, v: v + u(x), 0.0),
    ],
)
def test_a_left_side_that_looks_at_the_point_only_is_local(operator):
    x = points(5, 2)
    assert symbol(operator).linearise(x, x) is not None


def test_a_value_that_is_not_finite_does_not_make_a_term_look_elsewhere():
    x = np.array([[0.0, 1.0], [1.0, 1.0]])
    found = symbol(lambda u, x: pf.laplacian(u)(x) / x[0] + 1 / x[0]).linearise(x, x)
    assert found is not None
    assert not np.isfinite(found.left[0]).all()
    assert np.isfinite(found.left[1]).all()


# ---- registries: every family, every operator


def families(domain: pf.Domain) -> dict[str, Features]:
    dim = domain.dim
    box = pf.Box(domain.lower, domain.upper)
    made: dict[str, Features] = {
        "chebyshev": pf.Chebyshev(domain, degree=4 if dim < 4 else 2),
        "tensor": pf.Chebyshev(domain, degree=2, kind="tensor"),
        "fourier": pf.Fourier(domain, degree=1, extension=1.5),
        "network": pf.NetworkFeatures(domain, 7, key=1),
        "plain network": pf.NetworkFeatures(domain, 7, residual=False, activation="tanh", key=1),
        "random": pf.RandomFeatures(domain, 9, key=2, scale=1.0),
        "transnet": pf.TransNet(domain, 9, key=3),
        "functions": pf.Functions(domain, [lambda x: jnp.sum(x**2), lambda x: jnp.sin(jnp.sum(x))]),
        "stretched": pf.StretchedPolynomials(
            domain, degree=4, direction=np.arange(1.0, dim + 1), center=0.3, width=0.2
        ),
    }
    made["concatenated"] = pf.Concatenate(made["chebyshev"], made["network"])
    if dim < 4:
        made["partition"] = pf.PartitionOfUnity(
            lambda part, key: pf.RandomFeatures(part, 4, key=key, scale=1.0), box, 2, window="smooth"
        )
    return made


SAME_OPERATOR = {"poisson-1d", "poisson-lshape", "poisson-annulus", "slanted-layer", "two-layers", "poisson-polygon"}
ZOO = [name for name in pf.zoo.names("basic") if name not in SAME_OPERATOR]


@pytest.mark.parametrize("name", ZOO)
def test_the_matrix_is_the_derivative_with_respect_to_the_coefficients(name, seed):
    problem = pf.zoo.get(name)
    made = families(problem.domain)
    if name == "poisson-corner":
        made["corner functions"] = pf.CornerFunctions(problem.domain)
    for family, features in made.items():
        c = np.random.default_rng(seed).standard_normal((features.size, problem.layout.components))
        blocks = collocate(problem, 6, 4, key=seed % 1000)
        _compare(problem.layout, features, blocks, c, family)


def _compare(layout: Layout, features: Features, blocks: list[Block], c: np.ndarray, what: str) -> None:
    system = assemble(layout, features, blocks, c, check=False)
    for block in blocks:
        left, gradient = direct.linearise(block.term.lhs, layout, features, c, block.points, block.normals)
        rows = system.rows[block.term.name]
        expected = np.swapaxes(gradient, 2, 3).reshape(left.size, -1)
        found = system.A[rows] / system.scales[rows, None]
        size = max(np.abs(expected).max(), 1e-300)
        assert np.abs(found - expected).max() <= 1e-12 * size, (what, block.term.name)
        scale = max(np.abs(left).max(), size * np.abs(c).max())
        assert np.abs(system.left[rows] - left.reshape(-1)).max() <= 1e-11 * scale, (what, block.term.name)
        alone = left_values(layout, features, block, c)
        assert np.abs(alone - left).max() <= 1e-11 * scale, (what, block.term.name)


# ---- random operators


def _derivative(u: Callable, index: tuple[int, ...]) -> Callable:
    return pf.partial(u, *[axis for axis, k in enumerate(index) for _ in range(k)])


COEFFICIENTS = [
    lambda x: 1.5,
    lambda x: x[0] ** 2 + 1,
    lambda x: jnp.sin(3 * x[-1]),
    lambda x: jnp.exp(-x[0] * x[-1]),
    lambda x: jnp.where(x[0] > 0.5, 2.0, -1.0),
]
NONLINEARITIES = [lambda v: v, lambda v: v**2, jnp.sin, lambda v: v / (2 + v**2)]


@st.composite
def operators(draw: st.DrawFn) -> tuple[Callable, bool, bool, int]:
    """A random local operator: a sum of products of coefficients with functions of derivatives, some of them under
    another derivative."""
    has_time, is_system = draw(st.booleans()), draw(st.booleans())
    space = draw(st.integers(1, 2))
    term = st.tuples(
        st.integers(0, len(COEFFICIENTS) - 1),
        st.integers(0, len(NONLINEARITIES) - 1),
        st.tuples(*[st.integers(0, 2)] * space).filter(lambda index: sum(index) <= 3),
        st.integers(0, 2),
        st.booleans(),
        st.booleans(),
    )
    equations = draw(st.lists(st.lists(term, min_size=1, max_size=3), min_size=1, max_size=2))

    def component(u, which: int) -> Callable:
        return (lambda *a: u(*a)[which]) if is_system else u

    def operator(u, *args):
        def value(term):
            coefficient, f, index, which, in_time, inside = term
            v = component(u, which)
            v = pf.dt(v) if in_time and has_time else v
            flux = lambda y, *t: COEFFICIENTS[coefficient](y) * NONLINEARITIES[f](_derivative(v, index)(y, *t))
            return pf.partial(flux, 0)(*args) if inside and coefficient != 4 else flux(*args)

        return tuple(sum(value(term) for term in equation) for equation in equations)

    return operator, has_time, is_system, space + has_time


def layout_of(has_time: bool, is_system: bool) -> Layout:
    return Layout((("v", 2), ("p", 1)) if is_system else None, has_time)


@hypothesis.settings(max_examples=12)
@hypothesis.given(operators(), st.integers(0, 2**16))
def test_random_local_operators_are_assembled_as_by_differentiation(made, seed):
    operator, has_time, is_system, dim = made
    layout = layout_of(has_time, is_system)
    lhs = lambda u, w, args, normal: jnp.stack(operator(u, *args))
    rng = np.random.default_rng(seed)
    box = pf.Box([0.0] * dim, [1.0] * dim)
    features = pf.Chebyshev(box, degree=5)
    block = _block(lhs, rng.uniform(0, 1, (4, dim)), dim - layout.has_time)
    c = rng.standard_normal((features.size, layout.components)) / 10
    assert symbol_of(lhs, layout, dim, dim - layout.has_time).linearise(
        block.points, block.normals, rng.standard_normal((len(_indices(lhs, layout, dim)), 4, layout.components))
    )
    _compare(layout, features, [block], c, "random")


@hypothesis.settings(max_examples=12)
@hypothesis.given(operators(), st.sampled_from(["mean", "mirror", "shift"]), st.integers(0, 2**16))
def test_random_operators_that_look_elsewhere_are_assembled_as_by_differentiation(made, how, seed):
    operator, has_time, is_system, dim = made
    layout = layout_of(has_time, is_system)

    def lhs(u, w, args, normal):
        away = {"mean": 0 * args[0], "mirror": 1 - args[0], "shift": args[0] / 2}[how]
        return jnp.stack(operator(u, *args)) + jnp.sum(jnp.atleast_1d(u(away, *args[1:])))

    rng = np.random.default_rng(seed)
    box = pf.Box([0.0] * dim, [1.0] * dim)
    features = pf.Chebyshev(box, degree=4)
    block = _block(lhs, rng.uniform(0, 1, (4, dim)), dim - layout.has_time)
    jet = rng.standard_normal((len(_indices(lhs, layout, dim)), 4, layout.components))
    assert symbol_of(lhs, layout, dim, dim - layout.has_time).linearise(block.points, block.normals, jet) is None
    _compare(layout, features, [block], rng.standard_normal((features.size, layout.components)) / 10, how)


def _indices(lhs: Callable, layout: Layout, dim: int) -> tuple:
    x = np.zeros((1, dim))
    return symbol_of(lhs, layout, dim, dim - layout.has_time).indices(x, x[:, : dim - layout.has_time])


def _block(lhs: Callable, x: np.ndarray, space: int) -> Block:
    problem = _any_problem()
    term = replace(problem.terms[0], lhs=lhs)
    return Block(term, problem.right_side(term), x, np.zeros((len(x), space)))


@cache
def _any_problem() -> pf.Problem:
    return pf.Problem(pf.Interval(0, 1), lambda u, x: u(x), 0.0, [pf.Dirichlet(0.0)])


# ---- two points


def test_a_difference_is_made_of_two_local_left_sides(seed):
    problem = pf.zoo.get("wave-periodic")
    (term,) = (term for term in problem.terms if term.kind == "periodic")
    assert isinstance(term.lhs, Difference)
    features = pf.NetworkFeatures(problem.domain, 8)
    c = np.random.default_rng(seed).standard_normal((8, 1))
    _compare(
        problem.layout, features, [b for b in collocate(problem, 8, 8) if b.term.kind == "periodic"], c, "periodic"
    )


def test_after_a_search_over_polynomials_only_symbols_and_data_are_compiled():
    """Two symbols, two right sides: whatever the number of spaces that were tried."""
    box = pf.Box([0, 0], [1, 1])
    problem = pf.Problem(
        box,
        lambda u, x: -pf.laplacian(u)(x) + jnp.exp(x[0]) * u(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.sin(5 * x[0] + x[1]),
    )
    with compilations() as compiled:
        u = pf.solve(problem, tol=1e-10)
    assert u.converged
    assert len(u.attempts) > 1
    assert len(compiled) <= 4, compiled


def test_the_number_of_derivatives_up_to_an_order_is_a_binomial_coefficient():
    for dim, order in ((1, 3), (2, 2), (3, 4), (5, 2)):
        assert len(up_to(dim, order)) == factorial(dim + order) // factorial(dim) // factorial(order)
