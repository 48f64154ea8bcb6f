"""Solutions: how they are called, what they know about their errors, and what a solve refuses."""

import copy
import re
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ConvergenceWarning, FeaturesError, ProblemError, SolveError, UnknownNameError

SQUARE = pf.Box([0, -1], [1, 1])


def wavy(x):
    return jnp.exp(x[0]) * jnp.cos(2 * x[1])


@cache
def problem(domain: pf.Domain = SQUARE) -> pf.Problem:
    return pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=wavy, name="wavy")


@cache
def scalar() -> pf.Solution:
    return pf.solve(problem(), 100)


@cache
def line() -> pf.Solution:
    return pf.solve(pf.zoo.get("poisson-1d"), 20)


@cache
def space_time() -> pf.Solution:
    heat = pf.Problem(
        pf.SpaceTime(pf.Box([0, 0], [1, 1]), 1),
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=lambda x, t: jnp.exp(-t) * (x[0] + x[1] ** 2),
    )
    return pf.solve(heat, 80)


@cache
def system() -> pf.Solution:
    stokes = pf.Problem(
        SQUARE,
        lambda u, x: (-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)),
        conditions=[pf.Dirichlet(unknown="v"), pf.Dirichlet(unknown="p", on=[[0.5, 0.0]])],
        unknowns={"v": 2, "p": 1},
        exact={"v": lambda x: jnp.stack([jnp.sin(x[1]), x[0] ** 2]), "p": lambda x: x[0] * x[1]},
    )
    return pf.solve(stokes, 60)


def exact_wavy(points: np.ndarray) -> np.ndarray:
    return np.exp(points[:, 0]) * np.cos(2 * points[:, 1])


# ---- calling


def test_a_point_gives_a_number_and_many_points_an_array():
    u = scalar()
    points = SQUARE.sample(7)
    assert u(points).shape == (7,)
    assert u(points[0]).shape == ()
    assert u([0.25, -0.5]).shape == ()
    np.testing.assert_allclose([u(point) for point in points], u(points), atol=1e-9)
    np.testing.assert_allclose(u(points), exact_wavy(points), atol=1e-6)


@pytest.mark.parametrize("convert", [list, np.asarray, jnp.asarray, lambda a: np.asarray(a, dtype=np.float32)])
def test_points_may_be_lists_or_arrays_of_any_kind(convert):
    points = [[0.25, -0.5], [0.5, 0.75]]
    assert np.array_equal(scalar()(convert(points)), scalar()(points))


def test_no_points_give_no_values():
    assert scalar()(np.zeros((0, 2))).shape == (0,)


def test_on_an_interval_a_bare_number_is_a_point():
    u = line()
    assert u(0.5) == u([0.5]) == u([[0.5]])[0]
    assert u(0.5) == pytest.approx(0.375, rel=1e-12)


def test_in_space_time_over_an_interval_bare_numbers_are_a_point_and_a_time():
    u = pf.solve(pf.zoo.get("heat"), 60)
    assert u(0.5, 0.25) == u([0.5], 0.25) == u([0.5, 0.25])
    assert u(0.5, 0.25) == pytest.approx(np.exp(-(np.pi**2) / 40), rel=1e-4)
    np.testing.assert_allclose(u(0.5, np.array([0.25, 0.5])), [u(0.5, 0.25), u(0.5, 0.5)], rtol=1e-9)


def test_in_space_time_a_solution_takes_x_and_t_or_points_with_the_time_last():
    u = space_time()
    x, t = np.array([[0.25, 0.5], [0.5, 0.125]]), np.array([0.5, 0.75])
    assert np.array_equal(u(x, t), u(np.column_stack([x, t])))
    assert u(x[0], 0.5).shape == ()
    np.testing.assert_allclose(u(x, 0.5), [u(x[0], 0.5), u(x[1], 0.5)], rtol=1e-9)
    np.testing.assert_allclose(u(x[0], t), [u(x[0], 0.5), u(x[0], 0.75)], rtol=1e-9)
    np.testing.assert_allclose(u(x, t), np.exp(-t) * (x[:, 0] + x[:, 1] ** 2), rtol=1e-4)


def test_unknowns_of_a_system_are_attributes():
    u = system()
    points = SQUARE.sample(5)
    assert u(points).shape == (5, 3)
    assert u.v(points).shape == (5, 2)
    assert u.p(points).shape == (5,)
    assert u.v(points[0]).shape == (2,)
    assert u.p(points[0]).shape == ()
    assert np.array_equal(np.column_stack([u.v(points), u.p(points)]), u(points))
    np.testing.assert_allclose(u.p(points), points[:, 0] * points[:, 1], atol=1e-4)


def test_an_attribute_that_does_not_exist_is_named_with_the_unknowns():
    with pytest.raises(AttributeError, match=r"no attribute 'w'; unknowns: \['v', 'p'\]"):
        system().w([0.0, 0.0])
    with pytest.raises(AttributeError, match=r"no attribute 'w'; unknowns: one scalar, call u\(x\)"):
        scalar().w([0.0, 0.0])
    assert not hasattr(scalar(), "__array__")


def test_a_solution_can_be_copied():
    assert copy.deepcopy(line())(0.5) == copy.copy(line())(0.5) == line()(0.5)


WRONG_CALLS = {
    "three coordinates": (scalar, ([0.1, 0.2, 0.3],), r"shape \(3,\); expected \(2,\) for one point or \(n, 2\)"),
    "a bare number": (scalar, (0.1,), r"shape \(\); expected \(2,\)"),
    "many points of one coordinate": (
        scalar,
        ([[0.1], [0.2]],),
        r"shape \(2, 1\); expected .*\(n, 2\) for many in Box",
    ),
    "a grid": (scalar, (np.zeros((4, 4, 2)),), r"shape \(4, 4, 2\)"),
    "two coordinates on an interval": (
        line,
        ([[0.1, 0.2]],),
        r"shape \(1, 2\); expected \(1,\).*or \(n, 1\) or \(n,\) for many",
    ),
    "two arguments in space": (scalar, (0.1, 0.2), r"called as u\(points\); got 2 arguments"),
    "no argument": (space_time, (), r"called as u\(points\) or \(x, t\); got 0 arguments"),
    "three arguments": (space_time, (0.1, 0.2, 0.3), r"called as u\(points\) or \(x, t\); got 3 arguments"),
    "no time": (space_time, ([0.5, 0.5],), r"shape \(2,\); expected \(3,\)"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_points_of_the_wrong_dimension_are_refused_by_value_and_gradient(name):
    solution, args, message = WRONG_CALLS[name]
    for function in (solution(), solution().gradient):
        with pytest.raises(ProblemError, match=message):
            function(*args)


def test_errors_at_points_of_the_wrong_dimension_are_refused():
    with pytest.raises(ProblemError, match=r"shape \(1, 3\); expected \(2,\)"):
        scalar().errors([[0.1, 0.2, 0.3]])


# ---- gradient


def test_the_gradient_is_that_of_the_exact_solution():
    points = SQUARE.sample(9)
    slope = np.column_stack([exact_wavy(points), -2 * np.exp(points[:, 0]) * np.sin(2 * points[:, 1])])
    found = scalar().gradient(points)
    assert found.shape == (9, 2)
    np.testing.assert_allclose(found, slope, atol=1e-5)
    np.testing.assert_allclose(scalar().gradient(points[0]), found[0], atol=1e-7)


def test_the_gradient_on_an_interval():
    np.testing.assert_allclose(line().gradient([[0.5], [-0.25]]), [[-0.5], [0.25]], rtol=1e-11)
    assert line().gradient(0.5).shape == (1,)


def test_the_gradient_in_space_time_is_that_in_space():
    z = space_time().problem.domain.sample(4)
    found = space_time().gradient(z)
    assert found.shape == (4, 2)
    expected = np.exp(-z[:, 2:]) * np.column_stack([np.ones(4), 2 * z[:, 1]])
    np.testing.assert_allclose(found, expected, atol=1e-3)
    np.testing.assert_allclose(space_time().gradient(z[0, :2], z[0, 2]), found[0], atol=1e-7)


def test_the_gradient_of_a_system_has_a_row_per_component():
    x = np.array([[0.3, 0.4]])
    found = system().gradient(x)
    assert found.shape == (1, 3, 2)
    assert system().gradient(x[0]).shape == (3, 2)
    np.testing.assert_allclose(found[0], [[0.0, np.cos(0.4)], [0.6, 0.0], [0.4, 0.3]], atol=1e-3)


# ---- errors


def test_errors_are_the_formulas():
    points = SQUARE.sample(50, "random")
    found, truth = scalar()(points), exact_wavy(points)
    errors = scalar().errors(points)
    assert errors.relative_l2 == pytest.approx(np.sqrt(np.sum((found - truth) ** 2) / np.sum(truth**2)), rel=1e-6)
    assert errors.max == pytest.approx(np.abs(found - truth).max(), rel=1e-6)


@pytest.mark.parametrize(("solution", "count"), [(line, 2000), (scalar, 2500), (space_time, 2744)])
def test_by_default_errors_are_over_a_uniform_grid(solution, count):
    domain = solution().problem.domain
    grid = domain.sample(count, "grid")
    assert count <= len(grid) <= 1.2 * count
    assert solution().errors() == solution().errors(grid)


def test_errors_of_a_system_are_the_largest_over_its_components():
    errors = system().errors()
    assert list(errors.components) == ["v[0]", "v[1]", "p"]
    assert errors.relative_l2 == max(e.relative_l2 for e in errors.components.values())
    assert errors.max == max(e.max for e in errors.components.values())
    points = SQUARE.sample(2500, "grid")
    truth = points[:, 0] * points[:, 1]
    expected = np.linalg.norm(system().p(points) - truth) / np.linalg.norm(truth)
    assert errors.components["p"].relative_l2 == pytest.approx(expected, rel=1e-6)


def test_errors_need_an_exact_solution():
    u = pf.solve(problem().replace(exact=None, source=1.0, conditions=[pf.Dirichlet(0.0)]), 60)
    with pytest.raises(ProblemError, match=r"no exact solution: give Problem\(exact=…\), or use error_estimate"):
        u.errors()
    assert 0 < u.error_estimate < 1


# ---- stats, residuals, repr


def test_stats_tell_rows_features_rank_and_condition():
    stats = scalar().stats
    assert (stats.features, stats.components) == (100, 1)
    assert stats.rows >= 4 * 100
    assert 0 < stats.rank <= 100
    assert stats.condition > 1
    assert stats.steps == []
    assert stats.seconds["assemble"] > 0
    assert stats.seconds["solve"] > 0


def test_stats_of_a_system_count_features_per_component_and_rows_per_equation():
    stats = system().stats
    assert (stats.features, stats.components) == (60, 3)
    assert stats.rows > 3 * 4 * 60
    assert stats.rank <= 180


def test_residuals_are_root_mean_squares_in_the_units_of_each_term():
    """On the boundary the residual of u = g is the error there, which other points must show in about the same size."""
    u = scalar()
    assert list(u.stats.residuals) == ["equation", "dirichlet"]
    points, _ = SQUARE.boundary.sample(400, "random", key=5)
    expected = np.sqrt(np.mean((u(points) - exact_wavy(points)) ** 2))
    held_out = u.stats.residuals["dirichlet"].held_out
    assert expected / 3 <= held_out <= 3 * expected
    for residual in u.stats.residuals.values():
        assert 0 < residual.fitted <= 10 * residual.held_out


def test_a_source_in_other_units_scales_residuals_but_not_relative_errors():
    scaled = problem().replace(exact=lambda x: 1e6 * wavy(x))
    u, v = scalar(), pf.solve(scaled, 100)
    for name, residual in u.stats.residuals.items():
        assert v.stats.residuals[name].fitted == pytest.approx(1e6 * residual.fitted, rel=1e-3)
    assert v.errors().relative_l2 == pytest.approx(u.errors().relative_l2, rel=1e-3)
    assert v.error_estimate == pytest.approx(u.error_estimate, rel=1e-3)


def test_the_repr_tells_the_name_the_sizes_the_estimate_and_the_residuals():
    text = repr(scalar())
    assert "Solution of 'wavy': 100 features" in text
    assert re.search(r"estimated relative error \d\.\de-\d\d, converged", text)
    assert "residual of dirichlet" in text
    assert "NOT CONVERGED" not in text
    assert "60 features x 3 components" in repr(system())


# ---- tolerances


def test_a_tolerance_that_is_met_changes_nothing():
    u = pf.solve(problem(), 100, tol=1e-3)
    assert u.converged
    assert np.array_equal(u.coefficients, scalar().coefficients)


def test_a_tolerance_that_is_missed_warns_and_the_solution_says_so():
    with pytest.warns(ConvergenceWarning, match=r"'wavy' has not converged: .*above 1e-14; use more features"):
        u = pf.solve(problem(), 100, tol=1e-14)
    assert not u.converged
    assert "above 1e-14" in u.reason
    assert re.search(r"NOT CONVERGED: the estimated relative error .* is above 1e-14", repr(u))


def test_a_solution_without_two_digits_never_looks_converged():
    rough = pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.sin(300 * x[0]),
    )
    with pytest.warns(ConvergenceWarning, match=r"estimated relative error .* is above 0.01; use more features"):
        u = pf.solve(rough, 20)
    assert u.errors().relative_l2 > 0.1
    assert not u.converged


@pytest.mark.parametrize("name", ["helmholtz-1d", "poisson-1d", "poisson-square", "heat", "burgers"])
@pytest.mark.parametrize("size", [1, 2])
def test_one_or_two_features_never_look_converged(name, size):
    """There is hardly a coarser space to compare with, which must not pass for agreement with it."""
    with pytest.warns(ConvergenceWarning, match="has not converged"):
        u = pf.solve(pf.zoo.get(name), size)
    assert not u.converged
    assert u.error_estimate > 0.05


# ---- reproducible, and independent of units and position


def test_the_same_key_gives_the_same_solution_and_another_key_another():
    first, again, other = (pf.solve(problem(), 100, key=key) for key in (3, 3, 4))
    assert np.array_equal(first.coefficients, again.coefficients)
    assert not np.array_equal(first.coefficients, other.coefficients)
    assert first.error_estimate == again.error_estimate


@pytest.mark.parametrize(("shift", "size"), [(0.0, 1e-4), (50.0, 1.0), (-7.0, 1e5)])
def test_a_shifted_and_scaled_square_is_solved_as_well(shift, size):
    """-Δu = f for u(x) = wavy((x - shift) / size): the same problem in other coordinates."""
    moved = pf.Problem(
        pf.Box(size * SQUARE.lower + shift, size * SQUARE.upper + shift),
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: wavy((x - shift) / size),
    )
    error = pf.solve(moved, 100).errors().relative_l2
    expected = scalar().errors().relative_l2
    assert expected / 10 <= error <= 10 * expected


@pytest.mark.parametrize("sampling", ["sobol", "random", "grid", "clustered"])
def test_every_sampling_solves(sampling):
    assert pf.solve(problem(), 100, sampling=sampling).errors().relative_l2 < 1e-6


# ---- domains that features were not made on


def test_features_of_a_larger_box_solve_on_a_part_of_it():
    features = pf.NetworkFeatures(SQUARE, 100)
    u = pf.solve(problem(pf.Disk([0.5, 0], 0.5)), features)
    assert u.features is features
    assert u.errors().relative_l2 < 1e-6


def test_features_on_a_box_that_does_not_cover_the_domain_are_refused():
    features = pf.NetworkFeatures(pf.Box([0, 0], [1, 1]), 10)
    message = r"Box\(\[0, -1\], \[1, 1\]\) reaches outside the box of the features, \[0\.0, 0\.0\] to \[1\.0, 1\.0\]"
    with pytest.raises(FeaturesError, match=message):
        pf.solve(problem(), features)


def test_features_of_another_dimension_are_refused():
    features = pf.NetworkFeatures(pf.Interval(0, 1), 10)
    with pytest.raises(FeaturesError, match=r"features are defined in 1 dimensions, the domain Box.* has 2"):
        pf.solve(problem(), features)


# ---- bad requests


@pytest.mark.parametrize("solve", [lambda: scalar().problem, lambda: system().problem], ids=["scalar", "system"])
def test_fewer_rows_than_features_are_refused_before_any_work(solve):
    message = r"Fewer rows than features: \d+ points for 100 features. Use more points \(points=, boundary_points=\)"
    with pytest.raises(SolveError, match=message):
        pf.solve(solve(), 100, points=20, boundary_points=20)


@pytest.mark.parametrize("size", [0, -5])
def test_a_number_of_features_below_one_is_refused(size):
    with pytest.raises(FeaturesError, match=rf"features must be an integer of at least 1; got {size}"):
        pf.solve(problem(), size)


@pytest.mark.parametrize("count", [0, -3])
def test_a_number_of_points_below_one_is_refused(count):
    with pytest.raises(SolveError, match=rf"points must be an integer from 1 to 100000000; got {count}\."):
        pf.solve(problem(), 10, points=count)


def test_an_unknown_sampling_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Unknown sampling 'sobl'. Did you mean 'sobol'"):
        pf.solve(problem(), 10, sampling="sobl")


def test_a_nonlinear_problem_with_zero_data_is_not_taken_for_unresolved():
    """Bratu's problem u'' + eᵘ = 0, u(0) = u(1) = 0, has data in its operator only; its solution is known in closed
    form, u = 2 log(cosh(θ/4) / cosh((x - 1/2) θ/2)) with θ = √2 cosh(θ/4)."""
    theta = 1.5171645990507543
    bratu = pf.Problem(
        pf.Interval(0, 1),
        operator=lambda u, x: pf.laplacian(u)(x) + jnp.exp(u(x)),
        source=0.0,
        conditions=[pf.Dirichlet(0.0)],
        exact=lambda x: 2 * jnp.log(jnp.cosh(theta / 4) / jnp.cosh((x[0] - 0.5) * theta / 2)),
    )
    assert abs(theta - np.sqrt(2) * np.cosh(theta / 4)) < 1e-12
    u = pf.solve(bratu, 30)
    assert u.converged
    assert u.errors().relative_l2 < 1e-9
    assert u.error_estimate < 1e-8


def test_a_component_that_vanishes_is_estimated_against_the_others():
    """Flow between plates, v = (1 - y², 0), p = -2x."""
    channel = pf.Box([0, -1], [1, 1])
    velocity = lambda x: jnp.stack([1 - x[1] ** 2, 0.0 * x[0]])
    stokes = pf.Problem(
        channel,
        operator=lambda u, x: (pf.grad(u.p)(x) - pf.laplacian(u.v)(x), pf.div(u.v)(x)),
        source=0.0,
        conditions=[
            pf.Dirichlet(velocity, unknown="v"),
            pf.Condition(lambda u, x: u.p(x), on=jnp.array([[0.0, 0.0]]), name="pressure"),
        ],
        unknowns={"v": 2, "p": 1},
        exact={"v": velocity, "p": lambda x: -2 * x[0]},
    )
    u = pf.solve(stokes, 60)
    assert u.converged
    assert u.error_estimate < 1e-3


def test_with_few_points_the_advice_is_more_points():
    problem = pf.zoo.get("poisson-square")
    with pytest.warns(
        ConvergenceWarning, match="use more points: 40 inside the domain are few for 50 features, 200 are usual"
    ):
        pf.solve(problem, 50, points=40, boundary_points=20, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="use more features"):
        pf.solve(problem, 50, tol=1e-12)


def test_data_that_do_not_balance_are_named():
    neumann = pf.Problem(
        pf.Box([0, 0], [1, 1]), lambda u, x: -pf.laplacian(u)(x), 1.0, [pf.Neumann(0.0)], name="incompatible"
    )
    with pytest.warns(ConvergenceWarning, match="the data contradict each other.*100 % of the data"):
        pf.solve(neumann, 60)


BOTH = pf.Box([-1, -1], [1, 1])
NOT_UNIQUE = {
    "constant": (lambda u, x: -pf.laplacian(u)(x), lambda x: jnp.sin(jnp.pi * x[0] / 2), pf.Neumann(0.0)),
    "eigenfunction": (
        lambda u, x: -pf.laplacian(u)(x) - jnp.pi**2 / 2 * u(x),
        lambda x: jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]),
        pf.Dirichlet(0.0),
    ),
}


@pytest.mark.parametrize("name", NOT_UNIQUE)
@pytest.mark.parametrize("tol", [None, 1e-6])
def test_a_solution_that_is_not_unique_has_not_converged(name, tol):
    operator, source, condition = NOT_UNIQUE[name]
    problem = pf.Problem(BOTH, operator, source, [condition], name=name)
    with pytest.warns(ConvergenceWarning, match="the solution is not unique: .*; add a condition"):
        u = pf.solve(problem, pf.Chebyshev(BOTH, degree=24) if tol is None else None, tol=tol)
    assert not u.converged
    assert u.error_estimate >= 1
    assert u.stats.undetermined > 1e-3


def test_factored_it_has_not_converged_either():
    operator, source, condition = NOT_UNIQUE["constant"]
    problem = pf.Problem(BOTH, operator, source, [condition], name="constant")
    message = "'constant' does not determine its solutions: the solution is not unique: .*; add a condition"
    with pytest.warns(ConvergenceWarning, match=message):
        solver = pf.factor(problem, pf.Chebyshev(BOTH, degree=16))
    assert not solver.solve([source]).converged.any()


def test_a_free_constant_is_noticed_in_features_that_do_not_contain_it():
    operator, source, condition = NOT_UNIQUE["constant"]
    problem = pf.Problem(BOTH, operator, source, [condition], name="constant")
    with pytest.warns(ConvergenceWarning, match="the solution is not unique"):
        assert pf.solve(problem).verdict.status is pf.Status.UNDETERMINED
    with pytest.warns(ConvergenceWarning, match="'constant' does not determine its solutions"):
        assert not pf.factor(problem).solve([source]).converged.any()


STRIP = pf.SpaceTime(pf.Interval(0, 1), 1)
START = pf.Initial(lambda x, t: jnp.sin(jnp.pi * x[0]))
AT_REST = pf.Initial(lambda x, t: jnp.sin(jnp.pi * x[0]), velocity=0.0)
EVOLUTIONS = {
    "heat": (lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t) / 10, START),
    "wave": (lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t), AT_REST),
}


@pytest.mark.parametrize("name", EVOLUTIONS)
def test_an_evolution_without_conditions_on_all_sides_is_not_unique(name):
    operator, start = EVOLUTIONS[name]
    left, both = pf.Dirichlet(0.0, on=STRIP.face(0, 0)), pf.Dirichlet(0.0)
    for conditions in ([start], [start, left]):
        problem = pf.Problem(STRIP, operator, 0.0, conditions)
        if name == "heat":  # parabolic: known before anything is solved
            with pytest.raises(ProblemError, match=r"parabolic, .* no condition on"):
                pf.solve(problem)
            continue
        with pytest.warns(ConvergenceWarning, match="the solution is not unique: .*; add a condition"):
            assert pf.solve(problem).error_estimate >= 1
    u = pf.solve(pf.Problem(STRIP, operator, 0.0, [start, both]))
    assert u.converged
    assert u.stats.undetermined < 1e-11


def test_what_is_not_determined_because_of_few_points_needs_points():
    square = pf.zoo.get("poisson-square")
    with pytest.warns(ConvergenceWarning, match="the solution is not unique: .*; use more points: 120 inside"):
        pf.solve(square, pf.Chebyshev(square.domain, degree=20), points=120, boundary_points=160)


@pytest.mark.parametrize("rcond", [1e-4, 1e-6, 1e-8])
def test_what_is_dropped_on_purpose_counts_as_error_only(rcond):
    u = pf.solve(pf.zoo.get("poisson-1d"), 100, method=pf.Linear(lstsq=pf.SVD(rcond=rcond)))
    assert u.converged
    assert u.error_estimate >= u.stats.undetermined > 1e-12


def test_growth_is_not_taken_for_freedom():
    """u' = u, u(0) = 1: what is left free at the start by rounding grows by e¹⁵."""
    growing = pf.Problem(
        pf.Interval(0, 15),
        lambda u, x: pf.partial(u, 0)(x) - u(x),
        0.0,
        [pf.Dirichlet(1.0, on=[[0.0]])],
        exact=lambda x: jnp.exp(x[0]),
    )
    u = pf.solve(growing, pf.Chebyshev(growing.domain, degree=90))
    assert u.converged
    assert u.error_estimate >= u.errors().relative_l2 / 10


def test_a_value_at_a_point_makes_it_unique():
    operator, source, condition = NOT_UNIQUE["constant"]
    level = pf.Dirichlet(0.0, on=[[0.0, 0.0]], name="level")
    u = pf.solve(pf.Problem(BOTH, operator, source, [condition, level]), pf.Chebyshev(BOTH, degree=24))
    assert u.converged
    assert u.stats.undetermined < 1e-11


def test_a_solution_that_is_zero_as_its_data_are_is_pointed_out():
    forgotten = pf.Problem(
        pf.Interval(0, 1), lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet(0.0)], name="forgotten"
    )
    with pytest.warns(UserWarning, match="'forgotten' is zero, as all of its data are. Was a source"):
        assert pf.solve(forgotten, 10).converged


def test_a_tolerance_below_rounding_is_named():
    problem = pf.zoo.get("poisson-1d")
    with pytest.warns(ConvergenceWarning, match="1e-18 is below the rounding error of float64"):
        pf.solve(problem, 30, tol=1e-18)
    with pytest.raises(SolveError, match="must be a positive number; got -1"):
        pf.solve(problem, 30, tol=-1.0)


@pytest.mark.parametrize("features", [60, pf.Chebyshev(SQUARE, degree=10)], ids=["network", "polynomials"])
def test_operators_differentiate_a_solution(features):
    u, x = pf.solve(problem(), features, tol=1e-3), [0.3, 0.4]
    np.testing.assert_allclose(pf.grad(u)(x), u.gradient(x), rtol=1e-7)
    np.testing.assert_allclose(pf.laplacian(u)(x), 3 * -wavy(np.array(x)), rtol=1e-2)


def test_a_solution_is_data_of_another_problem():
    first = scalar()
    again = pf.solve(problem().replace(conditions=[pf.Dirichlet(first)]), 100)
    inside = SQUARE.sample(20)
    np.testing.assert_allclose(again(inside), first(inside), atol=10 * first.errors().max + 1e-12)


def test_components_of_a_solution_are_data_too():
    flow = pf.Problem(
        SQUARE,
        lambda u, x: pf.laplacian(u.v)(x),
        0.0,
        [pf.Dirichlet(lambda x: jnp.stack([x[0], x[1]]), unknown="v")],
        unknowns={"v": 2},
    )
    v = pf.solve(flow, 30).v
    carried = pf.Problem(SQUARE, lambda u, x: pf.laplacian(u)(x), pf.div(v), [pf.Dirichlet(0.0)])
    source = pf.Problem(SQUARE, lambda u, x: pf.laplacian(u)(x), 2.0, [pf.Dirichlet(0.0)])
    np.testing.assert_allclose(pf.solve(carried, 50)([0.5, 0.0]), pf.solve(source, 50)([0.5, 0.0]), rtol=1e-5)


def test_in_a_function_a_solution_is_called_at_one_point():
    u = scalar()  # solved here, not while the source is traced
    with pytest.raises(ProblemError, match=r"called at one point, as u\(x\) with 2 coordinates in all, .*got shapes"):
        problem().replace(source=lambda x: u(x[0]))
