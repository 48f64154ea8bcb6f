"""Assembly against a loop over the features, in chunks, scaled, linearised; and which terms are linear."""

import tracemalloc
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.discrete import assemble as assembly
from pdofm.discrete import system as systems
from pdofm.discrete.assemble import assemble, left_values
from pdofm.discrete.collocate import collocate, thinned, with_equation
from pdofm.discrete.evaluate import evaluate, evaluate_all
from pdofm.discrete.linearity import is_affine, nonlinear_terms
from pdofm.discrete.memory import Memory
from pdofm.features import Features
from pdofm.problem.problem import Problem

# Problems are made once: a new lambda would be compiled anew.
BOX = pf.Box([0, -1], [2, 1])
SYSTEM = {"v": 2, "p": 1}


def network(domain: pf.Domain = BOX, width: int = 6, key: int = 3) -> Features:
    return pf.NetworkFeatures(domain, size=width, depth=2, key=key, scale=1.0)


def system_at(
    problem: Problem,
    features: Features,
    c: np.ndarray | None = None,
    interior: int = 9,
    boundary: int = 8,
):
    blocks = collocate(problem, interior, boundary, key=1)
    if c is None:
        c = np.zeros((features.size, problem.layout.components))
    return blocks, assemble(problem.layout, features, blocks, c)


@cache
def advection_diffusion() -> Problem:
    def operator(u, x):
        return -pf.laplacian(u)(x) + x[0] * pf.partial(u, 1)(x) + jnp.exp(x[1]) * u(x)

    return Problem(BOX, operator, lambda x: x[0], [pf.Dirichlet(lambda x: x[1]), pf.Neumann(2.0, BOX.face(0, 1))])


@cache
def stokes() -> Problem:
    return Problem(
        BOX,
        lambda u, x: (-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)),
        0.0,
        [pf.Dirichlet(1.0, unknown="v"), pf.Condition(lambda u, x: u.p(x) - 2.0, on=[[1.0, 0.0]], name="pressure")],
        SYSTEM,
    )


@cache
def nonlinear() -> Problem:
    return Problem(
        BOX,
        lambda u, x: u(x) * pf.partial(u, 0)(x) - pf.laplacian(u)(x) + u(x) ** 3,
        1.0,
        [pf.Condition(lambda u, x, normal: pf.normal_derivative(u, normal)(x) + u(x) ** 4 - 1.0, name="radiation")],
    )


@cache
def heat() -> Problem:
    domain = pf.SpaceTime(pf.Interval(0, 1), 2)
    conditions = [pf.Dirichlet(0.0), pf.Initial(lambda x, t: x[0])]
    return Problem(domain, lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t), 1.0, conditions)


PROBLEMS = {"scalar": advection_diffusion, "system": stokes, "nonlinear": nonlinear, "space-time": heat}


@pytest.fixture(params=PROBLEMS)
def problem(request) -> Problem:
    return PROBLEMS[request.param]()


def coefficients(problem: Problem, features: Features, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((features.size, problem.layout.components))


# ---- the matrix


def test_the_matrix_is_what_a_loop_over_the_features_gives_with_hessians_in_reverse_mode():
    problem, features = advection_diffusion(), network()
    blocks, system = system_at(problem, features)
    equation, dirichlet, neumann = blocks

    @jax.jit
    def column(j):
        phi = lambda x: features(x)[j]
        operator = lambda x: -jnp.trace(jax.hessian(phi)(x)) + x[0] * jax.grad(phi)(x)[1] + jnp.exp(x[1]) * phi(x)
        rows = [
            jax.vmap(operator)(jnp.asarray(equation.points)),
            jax.vmap(phi)(jnp.asarray(dirichlet.points)),
            jax.vmap(jax.grad(phi))(jnp.asarray(neumann.points))[:, 0],
        ]
        return jnp.concatenate(rows)

    columns = [np.asarray(column(j)) for j in range(features.size)]
    found = system.A / system.scales[:, None]
    np.testing.assert_allclose(found, np.stack(columns, axis=1), rtol=1e-11, atol=1e-12)


def test_rows_are_those_of_the_terms_in_order(problem):
    blocks, system = system_at(problem, network(problem.domain))
    assert list(system.rows) == [term.name for term in problem.terms]
    ends = [0] + [rows.stop for rows in system.rows.values()]
    assert [rows.start for rows in system.rows.values()] == ends[:-1]
    assert len(system.A) == len(system.left) == len(system.right) == len(system.scales) == ends[-1]
    for block, rows in zip(blocks, system.rows.values(), strict=True):
        assert (rows.stop - rows.start) % len(block.points) == 0


def test_every_row_has_the_norm_of_the_weight_of_its_term(problem, seed):
    features = network(problem.domain)
    _, system = system_at(problem, features, coefficients(problem, features, seed))
    for term in problem.terms:
        norms = np.linalg.norm(system.A[system.rows[term.name]], axis=1)
        np.testing.assert_allclose(norms, term.weight, rtol=1e-12)


def test_weights_are_one_for_the_equation_ten_for_conditions_and_what_the_user_says():
    problem = advection_diffusion().replace(conditions=[pf.Dirichlet(0.0), pf.Neumann(0.0, weight=3.0)])
    assert [term.weight for term in problem.terms] == [1.0, 10.0, 3.0]
    _, system = system_at(problem, network())
    assert np.linalg.norm(system.A[system.rows["neumann"]], axis=1) == pytest.approx(3.0, rel=1e-12)


def test_a_row_that_no_coefficient_moves_stays_zero_and_is_not_scaled():
    problem = Problem(BOX, lambda u, x: jnp.where(x[0] > 1, 1.0, 0.0) * u(x), 1.0, [pf.Dirichlet(0.0)])
    blocks, system = system_at(problem, network())
    rows = system.rows["equation"]
    still = blocks[0].points[:, 0] <= 1
    assert still.any()
    assert not system.A[rows][still].any()
    assert (system.scales[rows][still] == 1.0).all()


def test_the_right_hand_side_is_the_scaled_residual_with_the_sign_turned(problem, seed):
    features = network(problem.domain)
    c = coefficients(problem, features, seed)
    blocks, system = system_at(problem, features, c)
    u = problem.layout.fields(lambda z: features(z) @ jnp.asarray(c))
    residual = []
    for block in blocks:

        def at(z, normal, block=block):
            args = problem.layout.arguments(z)
            return block.term.lhs(u, u, args, normal) - block.right_side(problem.layout, args, normal)

        residual.append(
            np.asarray(jax.jit(jax.vmap(at))(jnp.asarray(block.points), jnp.asarray(block.normals))).reshape(-1)
        )
    residual = np.concatenate(residual)
    np.testing.assert_allclose(system.left - system.right, residual, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(system.b, -system.scales * residual, rtol=1e-11, atol=1e-11)


def test_the_matrix_is_the_derivative_of_the_left_side_with_respect_to_the_coefficients(problem, seed):
    features = network(problem.domain)
    c, step = coefficients(problem, features, seed), coefficients(problem, features, seed + 1)
    blocks, system = system_at(problem, features, c)
    h = 1e-5
    sides = [assemble(problem.layout, features, blocks, c + sign * h * step).left for sign in (1, -1)]
    expected = (sides[0] - sides[1]) / (2 * h)
    found = (system.A / system.scales[:, None]) @ step.reshape(-1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_columns_run_over_features_first_and_over_components_within():
    problem, features = stokes(), network()
    blocks, system = system_at(problem, features)
    unscaled = system.A / system.scales[:, None]
    x = jnp.asarray(blocks[0].points)
    slope = np.asarray(jax.vmap(jax.jacrev(features))(x))  # (n, m, d)
    curvature = np.asarray(jax.vmap(pf.laplacian(features))(x))  # (n, m)
    equation = unscaled[system.rows["equation"]].reshape(
        len(x), 3, features.size, 3
    )  # point, equation, feature, unknown
    zero = np.zeros_like(curvature)
    expected = np.stack(
        [
            np.stack([-curvature, zero, slope[..., 0]], axis=-1),
            np.stack([zero, -curvature, slope[..., 1]], axis=-1),
            np.stack([slope[..., 0], slope[..., 1], zero], axis=-1),
        ],
        axis=1,
    )
    np.testing.assert_allclose(equation, expected, rtol=1e-11, atol=1e-12)
    pressure = unscaled[system.rows["pressure"]].reshape(features.size, 3)
    np.testing.assert_allclose(pressure[:, 2], np.asarray(features(jnp.array([1.0, 0.0]))), rtol=1e-12)
    assert not pressure[:, :2].any()


def test_a_frozen_operator_has_no_derivative_through_what_is_frozen():
    problem = pf.zoo.get("burgers")
    features = network(problem.domain)
    c = coefficients(problem, features, 0)
    blocks = collocate(problem, 9, 2)[:1]
    frozen = with_equation(blocks, problem.frozen_terms()[:1])
    system = assemble(problem.layout, features, frozen, c)
    x = jnp.asarray(blocks[0].points)
    values = np.asarray(jax.vmap(features)(x))
    slope = np.asarray(jax.vmap(pf.partial(features, 0))(x))
    curvature = np.asarray(jax.vmap(pf.laplacian(features))(x))
    expected = (values @ c) * slope - 0.1 * curvature
    np.testing.assert_allclose(system.A / system.scales[:, None], expected, rtol=1e-10, atol=1e-11)


# ---- chunks


@pytest.mark.parametrize("name", ["scalar", "system"])
def test_chunks_of_points_give_the_same_system(name, monkeypatch, seed):
    problem = PROBLEMS[name]()
    features = network(problem.domain)
    c = coefficients(problem, features, seed)
    _, whole = system_at(problem, features, c, interior=150, boundary=90)
    monkeypatch.setattr(assembly, "CHUNK_BYTES", 1)
    _, chunked = system_at(problem, features, c, interior=150, boundary=90)
    assert chunked.rows == whole.rows
    for name in ("A", "left", "right", "scales"):
        found, expected = getattr(chunked, name), getattr(whole, name)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["scalar", "system"])
def test_a_folded_system_is_the_same_least_squares_problem(name, monkeypatch, seed):
    problem = PROBLEMS[name]()
    features = network(problem.domain)
    c = coefficients(problem, features, seed)
    blocks, whole = system_at(problem, features, c, interior=500, boundary=300)
    monkeypatch.setattr(systems, "LARGEST_MATRIX", 1)
    folded = assemble(problem.layout, features, blocks, c, fold=True)
    assert folded.A.shape == (c.size + 1, c.size)
    assert len(folded.b) == len(whole.b) > len(folded.target)
    for name in ("left", "right", "scales"):
        np.testing.assert_array_equal(getattr(folded, name), getattr(whole, name))
    for found, expected in (
        (folded.A.T @ folded.A, whole.A.T @ whole.A),
        (folded.A.T @ folded.target, whole.A.T @ whole.b),
        (folded.target @ folded.target, whole.b @ whole.b),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def cubic() -> pf.Problem:
    """-u'' + u³ = f with u = sin 2x: not linear, and well conditioned."""
    return pf.Problem(
        pf.Interval(-1, 1),
        lambda u, x: -pf.laplacian(u)(x) + u(x) ** 3,
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.sin(2 * x[0]),
    )


@pytest.mark.parametrize("make", [lambda: pf.zoo.get("poisson-square"), cubic], ids=["linear", "nonlinear"])
def test_folding_does_not_change_the_solution(make, monkeypatch):
    problem = make()
    features = pf.Chebyshev(problem.domain, 100 if problem.domain.dim == 2 else 15)
    whole = pf.solve(problem, features, points=2500)
    monkeypatch.setattr(systems, "LARGEST_MATRIX", 1)
    folded = pf.solve(problem, features, points=2500)
    points = problem.domain.sample(500)
    np.testing.assert_allclose(folded.coefficients, whole.coefficients, atol=1e-11 * np.abs(whole.coefficients).max())
    np.testing.assert_allclose(folded(points), whole(points), atol=1e-11 * np.abs(whole(points)).max())
    assert folded.stats.rows == whole.stats.rows
    assert folded.error_estimate == pytest.approx(whole.error_estimate, rel=1e-3)
    for name, residual in whole.stats.residuals.items():
        assert folded.stats.residuals[name].fitted == pytest.approx(residual.fitted, rel=1e-3)


def test_with_folding_the_memory_does_not_grow_with_the_rows(monkeypatch):
    """40000 rows of 190 entries take 61 MB; folded, no more than the block that is reduced at once, and vectors."""
    monkeypatch.setattr(systems, "LARGEST_MATRIX", 2**20)
    problem = pf.zoo.get("poisson-square")
    features = pf.Chebyshev(problem.domain, 190)
    pf.solve(problem, features, points=2000)  # what is compiled once does not count
    tracemalloc.start()
    solution = pf.solve(problem, features, points=40000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.stats.rows > 40000
    assert peak < 20e6
    assert solution.errors().relative_l2 < 1e-8


@pytest.mark.parametrize("name", ["kovasznay", "wave-periodic", "elasticity"])
def test_left_sides_alone_are_those_of_the_system(name, seed):
    problem = pf.zoo.get(name)
    features = pf.Chebyshev(problem.domain, 21)
    c = np.random.default_rng(seed).standard_normal((21, problem.layout.components))
    blocks = collocate(problem, 70, 20)
    system = assemble(problem.layout, features, blocks, c)
    for block in blocks:
        left = left_values(problem.layout, features, block, c)
        expected = system.left[system.rows[block.term.name]]
        np.testing.assert_allclose(left.reshape(-1), expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_derivatives_that_are_remembered_give_the_same_system(seed):
    problem, features = pf.zoo.get("kovasznay"), network()
    features = features.on(problem.domain)
    memory = Memory().iterating()
    blocks = collocate(problem, 50, 20)
    for c in np.random.default_rng(seed).standard_normal((2, features.size, 3)):
        found = assemble(problem.layout, features, blocks, c, memory=memory)
        expected = assemble(problem.layout, features, blocks, c)
        for name in ("A", "left", "right", "scales"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_right_sides_are_evaluated_only_at_points_that_are_new(monkeypatch):
    problem = pf.zoo.get("poisson-square")
    evaluated = []
    from pdofm.discrete import right

    original = right.right_values
    monkeypatch.setattr(right, "right_values", lambda *a, **o: evaluated.append(len(a[1].points)) or original(*a, **o))
    memory = right.RightSides()
    for n in (64, 256, 128, 256):
        block = collocate(problem, n, 8, key=3)[0]
        found = memory(problem.layout, block, 1, "fitted")
        np.testing.assert_array_equal(found, original(problem.layout, block, 1))
    assert evaluated == [64, 192]


def test_a_linear_system_moves_from_zero_to_any_coefficients(seed):
    problem = pf.zoo.get("poisson-square")
    features = network(problem.domain)
    blocks, c = collocate(problem, 50, 20), np.random.default_rng(seed).standard_normal((features.size, 1))
    at_zero, there = (assemble(problem.layout, features, blocks, at) for at in (0 * c, c))
    np.testing.assert_allclose(at_zero.moved(c).left, there.left, rtol=1e-12, atol=1e-12)


def test_points_that_are_held_out_are_never_folded(monkeypatch):
    """A condition at given points has all of them among those held out."""
    monkeypatch.setattr(systems, "LARGEST_MATRIX", 1)
    points = np.stack([np.full(2000, 0.0), np.linspace(-1, 1, 2000)], axis=1)
    problem = pf.Problem(
        BOX,
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet(), pf.Dirichlet(on=points, name="given")],
        exact=lambda x: jnp.sin(x[0] + x[1]),
    )
    assert pf.solve(problem, pf.Chebyshev(BOX, degree=12)).errors().relative_l2 < 1e-6


@pytest.mark.parametrize("n", [1, 256, 700])
def test_several_functions_are_evaluated_as_each_of_them_is(n, seed):
    features = network()
    c = np.random.default_rng(seed).standard_normal((4, features.size, 2))
    points = BOX.sample(n, "random")
    found = evaluate_all(features, c, points)
    for each, coefficients in zip(found, c, strict=True):
        np.testing.assert_allclose(each, evaluate(features, coefficients, points), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n", [1, 64, 65, 300])
def test_evaluate_is_the_sum_of_coefficients_times_features(n, monkeypatch, seed):
    monkeypatch.setattr("pdofm.discrete.evaluate.EVALUATION_BYTES", 1)
    features = network()
    c = np.random.default_rng(seed).standard_normal((features.size, 2))
    points = BOX.sample(n, "random")
    expected = np.asarray(jax.jit(jax.vmap(features))(jnp.asarray(points))) @ c
    np.testing.assert_allclose(evaluate(features, c, points), expected, rtol=1e-12, atol=1e-13)


def test_evaluate_of_no_points_is_empty():
    assert evaluate(network(), np.ones((6, 2)), np.zeros((0, 2))).shape == (0, 2)


# ---- points


def test_the_equation_gets_points_inside_and_conditions_points_on_their_parts():
    problem = advection_diffusion()
    equation, dirichlet, neumann = collocate(problem, 50, 40, key=2)
    assert BOX.contains(equation.points).all()
    assert not equation.normals.any()
    assert np.abs(BOX.level(dirichlet.points)).max() < 1e-14
    assert (neumann.points[:, 0] == 2).all()
    assert (neumann.normals == [1.0, 0.0]).all()
    assert len(equation.points) == 50


def test_conditions_share_the_boundary_points_by_measure_but_none_is_left_with_less_than_half_a_share():
    narrow = pf.Box([0, 0], [1, 100])
    ends, sides = narrow.face(1, 0), narrow.face(0, 0) | narrow.face(0, 1)
    problem = Problem(narrow, lambda u, x: u(x), 0.0, [pf.Dirichlet(0.0, ends), pf.Dirichlet(0.0, sides)])
    _, few, many = collocate(problem, 10, 400)
    assert len(few.points) == 100
    assert len(many.points) == pytest.approx(400, abs=3)


def test_points_are_the_same_for_the_same_key_and_others_for_another():
    problem = advection_diffusion()
    first, again, other = (collocate(problem, 20, 20, key=key) for key in (5, 5, 6))
    for a, b, c in zip(first, again, other, strict=True):
        assert np.array_equal(a.points, b.points)
        assert not np.array_equal(a.points, c.points)


def test_a_thinned_block_keeps_points_with_their_normals():
    block = collocate(advection_diffusion(), 5, 40)[1]
    few = thinned(block, 7)
    assert len(few.points) == 7
    where = [block.points.tolist().index(point) for point in few.points.tolist()]
    assert np.array_equal(few.normals, block.normals[where])
    assert len(thinned(block, 10**6).points) == len(block.points)


# ---- which terms are linear


def found_nonlinear(problem: Problem) -> list[str]:
    features = network(problem.domain, width=20)
    return nonlinear_terms(problem.layout, features, collocate(problem, 20, 20))


LINEAR = {
    "laplacian": lambda u, x: -pf.laplacian(u)(x),
    "variable coefficients": lambda u, x: jnp.exp(5 * x[0]) * pf.partial(u, 1)(x) + x[1] ** 2 * u(x),
    "biharmonic": lambda u, x: pf.laplacian(pf.laplacian(u))(x),
    "affine": lambda u, x: u(x) + 1e3 * jnp.sin(x[0]),
    "no unknown at all": lambda u, x: x[0],
    "tiny": lambda u, x: 1e-30 * u(x),
    "huge": lambda u, x: 1e30 * pf.laplacian(u)(x),
    "non-local": lambda u, x: u(x) - u(-x + jnp.array([2.0, 0.0])),
}

NONLINEAR = {
    "square": lambda u, x: u(x) ** 2,
    "cube, whose linearisation at zero vanishes": lambda u, x: u(x) ** 3,
    "convection": lambda u, x: u(x) * pf.partial(u, 0)(x),
    "eikonal": lambda u, x: jnp.sum(pf.grad(u)(x) ** 2),
    "exponential": lambda u, x: -pf.laplacian(u)(x) - jnp.exp(u(x)),
    "minimal surface": lambda u, x: pf.div(lambda y: pf.grad(u)(y) / jnp.sqrt(1 + jnp.sum(pf.grad(u)(y) ** 2)))(x),
    "absolute value": lambda u, x: jnp.abs(u(x)),
    "slightly": lambda u, x: u(x) + 1e-6 * u(x) ** 2,
    "monge-ampere": lambda u, x: jnp.linalg.det(pf.hessian(u)(x)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_operator_is_found_to_be_linear(name):
    assert found_nonlinear(Problem(BOX, LINEAR[name], 0.0, [pf.Dirichlet(1.0)])) == []


@pytest.mark.parametrize("name", NONLINEAR)
def test_a_nonlinear_operator_is_found_to_be_nonlinear(name):
    assert found_nonlinear(Problem(BOX, NONLINEAR[name], 0.0, [pf.Dirichlet(1.0)])) == ["equation"]


@pytest.mark.parametrize(
    ("operator", "affine"),
    [
        (lambda u, x: 3 * u(x) - x[0] * pf.laplacian(u)(x) + jnp.sin(x[0]), True),
        (lambda u, x: jnp.where(x[0] > 0, u(x), pf.partial(u, 1)(x)), True),
        (lambda u, x: pf.grad(u)(x) @ x - 1, True),
        (lambda u, x: jax.lax.fori_loop(0, 3, lambda _, v: v + u(x), 0.0), True),
        (lambda u, x: u(x) ** 2, False),
        (lambda u, x: u(x) * pf.partial(u, 0)(x), False),
        (lambda u, x: jnp.maximum(u(x) - 1e4, 0.0) - pf.laplacian(u)(x), False),
        (lambda u, x: jnp.where(u(x) > 0, u(x), 2 * u(x)), False),
        (lambda u, x: jnp.sign(u(x)) - pf.laplacian(u)(x), False),
        (lambda u, x: u(x) * jax.lax.stop_gradient(u(x)), False),
        (lambda u, x: jax.lax.cond(u(x) > 0, lambda v: v, lambda v: 3 * v, u(x)), False),
        (lambda u, x: (u(x) > 5.0).astype(float) - pf.laplacian(u)(x), False),
        (lambda u, x: u(x).astype(int).astype(float) - pf.laplacian(u)(x), False),
        (lambda u, x: jax.jit(lambda v: (v > 5.0).astype(float))(u(x)) - pf.laplacian(u)(x), False),
        (lambda u, x: (x[0] > 5.0).astype(float) - pf.laplacian(u)(x), True),
    ],
)
def test_an_operator_is_affine_if_it_is_written_so(operator, affine):
    problem = Problem(BOX, operator, 0.0, [pf.Dirichlet(0.0)])
    (block, *_) = collocate(problem, 9, 8)
    assert is_affine(problem.layout, block) == affine


def test_exactly_the_nonlinear_terms_are_named():
    conditions = [
        pf.Dirichlet(1.0, BOX.face(0, 0)),
        pf.Condition(lambda u, x, normal: pf.normal_derivative(u, normal)(x) + u(x) ** 4, BOX.face(0, 1), name="hot"),
        pf.Robin(1.0, 2.0, 3.0, BOX.face(1, 0)),
    ]
    assert found_nonlinear(Problem(BOX, LINEAR["laplacian"], 0.0, conditions)) == ["hot"]
    assert found_nonlinear(nonlinear()) == ["equation", "radiation"]
    assert found_nonlinear(stokes()) == []
