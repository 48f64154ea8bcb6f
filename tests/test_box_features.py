"""Features of any family in boxes: the block solve against exact solutions, dense least squares and itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import lstsq

import pdofm as pf
from pdofm.discrete.boxed import BoxSystem, cover_of
from pdofm.discrete.local import LocalProblem
from pdofm.errors import ConvergenceWarning, FeaturesError, SolveError
from pdofm.numerics.blocks import BlockQR, Leaf

SQUARE = pf.Box([-1, -1], [1, 1])


def first(x):
    return jnp.exp(x[0] / 2) * jnp.cos(3 * x[1])


def second(x):
    return jnp.sin(x[0] + 2 * x[1])


def poisson(domain: pf.Domain = SQUARE, exact=first, conditions=None):
    conditions = [pf.Dirichlet()] if conditions is None else conditions
    return pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), conditions=conditions, exact=exact)


def random(size, scale=0.7):
    return lambda box, key: pf.RandomFeatures(box, size, key=key, initialisation="uniform", scale=scale)


def columns(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of two leaves and of their link, for a well-conditioned problem."""
    rng = np.random.default_rng(seed)
    return (*rng.standard_normal((2, 9, 5)), *rng.standard_normal((2, 3, 5)))


def test_dependent_columns_of_a_leaf_are_left_out_and_counted(seed):
    """Columns that repeat others change neither the residual nor the function, and the rank says how many they are."""
    own_a, own_b, link_a, link_b = columns(seed)
    right = np.random.default_rng(seed + 1).standard_normal((2, 9, 1))
    mix = np.random.default_rng(seed + 2).standard_normal((5, 8))

    def solved(a: np.ndarray, dependent: bool) -> BlockQR:
        leaves = [
            Leaf(own_a @ a, right[0], [(0, link_a @ a)], dependent=dependent),
            Leaf(own_b, right[1], [(0, link_b)]),
        ]
        return BlockQR(leaves, [3], keep=True)

    plain, found = solved(np.eye(5), False), solved(mix, True)
    assert (found.columns, found.rank) == (plain.columns + 3, plain.rank)
    np.testing.assert_allclose(mix @ found.solution[0], plain.solution[0], atol=1e-10)
    np.testing.assert_allclose(found.solution[1], plain.solution[1], atol=1e-10)
    again = found.solve([2 * right[0], 2 * right[1]])
    np.testing.assert_allclose(again[0], 2 * found.solution[0], atol=1e-10)


def test_the_error_falls_with_the_features_in_each_box_and_the_estimate_follows():
    errors = []
    for size in (25, 50, 100, 200):
        u = pf.solve(poisson(), pf.BoxFeatures(random(size), SQUARE, 2), tol=1.0)
        errors.append(u.errors().relative_l2)
        assert errors[-1] / 3 < u.error_estimate < 30 * errors[-1]
        assert u.stats.undetermined < 1e-8
    assert (np.array(errors[1:]) < 0.05 * np.array(errors[:-1])).all()
    assert errors[-1] < 1e-10
    assert u.stats.rank < u.stats.features == 800
    assert u.stats.condition > 1e12


@pytest.mark.parametrize("size", [40, 120])
def test_the_block_solve_has_the_residual_of_dense_least_squares(size):
    """With independent features (40) and with dependent ones (120)."""
    problem, features = poisson(), pf.BoxFeatures(random(size, scale=0.4), SQUARE, 2)
    local = LocalProblem(problem, cover_of(SQUARE, features))
    terms = [local.linearised(*each, None) for each in local.places()]
    system = BoxSystem(local, terms, local.weights(terms))
    dense, right = system.A @ np.eye(features.size), system.scales * (system.right - system.left)
    # The two sides of a link meet in the middle, which leaves half of the squared jump.
    jumps = slice(max(rows.stop for rows in system.rows.values()), None)
    dense[jumps] /= 2**0.5
    best = right - dense @ lstsq(dense, right, cond=1e-14, lapack_driver="gelsd")[0]
    found = right - dense @ local.coefficients(local.system(terms).solution)[:, 0]
    assert np.linalg.norm(found) < 1.5 * np.linalg.norm(best) + 1e-10 * np.linalg.norm(right)


def test_families_and_sizes_may_differ_from_box_to_box():
    """On a disk, where boxes are cut and merged."""
    disk = pf.Disk([0.1, 0.0], 0.9)

    def inner(box, key):
        right = box.lower[0] > 0
        return pf.NetworkFeatures(box, 80, key=key) if right else random(100)(box, key)

    u = pf.solve(poisson(disk), pf.BoxFeatures(inner, disk, (4, 3)))
    assert u.errors().relative_l2 < 1e-6
    assert u.converged


def test_corner_functions_in_the_boxes_at_a_corner_resolve_its_singularity():
    problem = pf.zoo.get("poisson-corner")
    corner = pf.CornerFunctions(problem.domain)
    apex = np.asarray(corner.apexes[0])

    def inner(box, key):
        smooth = pf.Chebyshev(box, degree=10)
        at_corner = np.all((box.lower <= apex) & (apex <= box.upper))
        return pf.Concatenate(smooth, corner) if at_corner else smooth

    u = pf.solve(problem, pf.BoxFeatures(inner, problem.domain, 4))
    assert u.errors().relative_l2 < 1e-5
    assert pf.solve(problem, pf.BoxPolynomials.grid(problem.domain, 4, 8), tol=1.0).errors().relative_l2 > 1e-4


def test_many_sources_are_solved_from_one_factorisation():
    features = pf.BoxFeatures(random(120), SQUARE, (2, 3), key=5)
    solver = pf.factor(poisson(), features)
    assert solver.stats.rank <= solver.stats.features == features.size
    many = solver.solve([(lambda x, f=f: -pf.laplacian(f)(x)) for f in (first, second)], [first, second])
    points = SQUARE.sample(300, "random", key=3)
    truth = np.stack([np.asarray(jax.vmap(f)(jnp.asarray(points))) for f in (first, second)], axis=1)
    np.testing.assert_allclose(many(points), truth, atol=1e-6)
    assert many.converged.all()
    table = np.random.default_rng(0).standard_normal((len(solver.points["equation"]), 40))
    wall = np.zeros((len(solver.points["dirichlet"]), 40))
    with pytest.warns(ConvergenceWarning, match="cannot represent"):
        noise = solver.solve(table, {"dirichlet": wall})
    assert np.isfinite(noise.coefficients).all()


@pytest.mark.parametrize("size", [50, 100])
def test_a_constant_that_is_free_is_noticed_although_the_features_only_nearly_contain_it(size):
    with pytest.warns(ConvergenceWarning, match="has not converged"):
        u = pf.solve(poisson(conditions=[pf.Neumann()]), pf.BoxFeatures(random(size), SQUARE, 2))
    assert not u.converged
    assert u.error_estimate > 5e-3  # with values on the boundary it is 2e-4 and less


def test_nonlinear_problems_means_and_time_work_as_with_polynomials():
    cubic = pf.Problem(SQUARE, lambda u, x: -pf.laplacian(u)(x) + u(x) ** 3, conditions=[pf.Dirichlet()], exact=second)
    assert pf.solve(cubic, pf.BoxFeatures(random(100), SQUARE, 2)).errors().relative_l2 < 1e-5
    zero_mean = lambda x: jnp.cos(jnp.pi * x[0]) * jnp.cos(jnp.pi * x[1])
    pure = poisson(exact=zero_mean, conditions=[pf.Neumann(), pf.Mean(0.0)])
    assert pf.solve(pure, pf.BoxFeatures(random(100), SQUARE, 2)).errors().relative_l2 < 1e-4
    time = pf.SpaceTime(pf.Interval(0, 1), 1.0)
    heat = pf.Problem(
        time,
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t) / 9,
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=lambda x, t: jnp.exp(-t) * jnp.sin(3 * x[0]),
    )
    assert pf.solve(heat, pf.BoxFeatures(random(100), time, (2, 2))).errors().relative_l2 < 1e-5


def test_the_boxes_of_a_solution_are_taken_over():
    boxes = pf.BoxPolynomials.grid(SQUARE, (2, 3), 3)
    features = pf.BoxFeatures(random(40), SQUARE, boxes)
    assert len(features.patches) == 6
    np.testing.assert_array_equal(features.patches.lower, boxes.patches.lower)


def test_fifty_thousand_unknowns_resolve_a_wave():
    """Seven wavelengths along each axis: dense least squares would need 20 GB for as many random features."""
    wave = lambda x: jnp.sin(22 * x[0]) * jnp.cos(21 * x[1])
    u = pf.solve(poisson(exact=wave), pf.BoxFeatures(random(50), SQUARE, 32))
    assert u.stats.features == 51_200
    error = u.errors().relative_l2
    assert error < 1e-4
    assert error < u.error_estimate < 1e-2


def test_what_boxes_cannot_hold_is_refused():
    with pytest.raises(FeaturesError, match="must build features in 2 dimensions for each box; got None"):
        pf.BoxFeatures(lambda box, key: None, SQUARE, 2)
    with pytest.raises(FeaturesError, match="neither impose conditions nor be in boxes themselves; got HardDirichlet"):
        pf.BoxFeatures(lambda box, key: pf.HardDirichlet(pf.Chebyshev(box, 9), box), SQUARE, 2)
    with pytest.raises(FeaturesError, match="boxes must be an integer of at least 1; got 0"):
        pf.BoxFeatures(random(10), SQUARE, (2, 0))
    with pytest.raises(SolveError, match="places the points of features in boxes by itself"):
        pf.solve(poisson(), pf.BoxFeatures(random(10), SQUARE, 2), points=100)
