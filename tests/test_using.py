"""Solutions as functions, data at points, and problems of which a part is replaced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import DomainError, ProblemError
from pdofm.numerics.sampling import check_request


def harmonic(x):
    return jnp.exp(x[0]) * jnp.cos(x[1])


def laplace(conditions, **fields):
    fields = {"source": 0.0, "exact": harmonic, **fields}
    return pf.Problem(pf.Disk(), lambda u, x: -pf.laplacian(u)(x), conditions=conditions, **fields)


@pytest.fixture(scope="module")
def disk():
    return pf.solve(laplace([pf.Dirichlet()]), pf.Chebyshev(pf.Disk(), degree=14))


@pytest.fixture(scope="module")
def heat():
    problem = pf.zoo.get("heat")
    return pf.solve(problem, pf.Chebyshev(problem.domain, degree=14))


POINTS = pf.Disk().sample(20)


# ---- functions ----


def test_a_solution_works_under_jit_at_one_point_and_at_many(disk):
    np.testing.assert_allclose(jax.jit(disk)(jnp.asarray(POINTS)), disk(POINTS), rtol=1e-13)
    np.testing.assert_allclose(jax.jit(disk)(jnp.asarray(POINTS[0])), disk(POINTS[0]), rtol=1e-13)
    np.testing.assert_allclose(jax.vmap(jax.grad(disk))(jnp.asarray(POINTS)), disk.gradient(POINTS), atol=1e-11)
    with pytest.raises(ProblemError, match=r"points of shape \(n, 2\); got shapes"):
        jax.jit(disk)(jnp.zeros((4, 3)))


def test_the_derivative_in_time_is_that_of_the_operator(heat, disk):
    points = heat.problem.domain.sample(10)
    expected = [pf.dt(heat)(jnp.asarray(z[:-1]), jnp.asarray(z[-1])) for z in points]
    np.testing.assert_allclose(heat.dt(points), expected, rtol=1e-9)
    np.testing.assert_allclose(heat.dt(points[0, :-1], points[0, -1]), expected[0], rtol=1e-9)
    with pytest.raises(ProblemError, match="has no time"):
        disk.dt(POINTS)


def test_sums_and_differences_of_solutions_are_functions(disk):
    other = pf.solve(laplace([pf.Dirichlet()]), pf.Chebyshev(pf.Disk(), degree=7))
    difference = disk - other
    np.testing.assert_allclose(difference(POINTS), disk(POINTS) - other(POINTS), rtol=1e-15)
    np.testing.assert_allclose(difference.gradient(POINTS), disk.gradient(POINTS) - other.gradient(POINTS))
    combined = 1 - (2 * disk - other / 4) + disk
    np.testing.assert_allclose(combined(POINTS), 1 - disk(POINTS) + other(POINTS) / 4, rtol=1e-13)
    assert float(pf.laplacian(-disk)(jnp.array([0.1, 0.2]))) == pytest.approx(0.0, abs=1e-8)
    assert "problem" in repr(combined)


def test_differences_are_drawn(disk, tmp_path):
    target = tmp_path / "the difference.png"
    (disk - 0.5 * disk).plot(target)
    assert target.stat().st_size > 1000


def test_unknowns_of_a_sum_have_their_names():
    problem = pf.zoo.get("elasticity")
    u = pf.solve(problem, 60)
    name = next(iter(problem.layout.offsets))
    points = problem.domain.sample(5)
    np.testing.assert_allclose(getattr(2 * u, name)(points), 2 * getattr(u, name)(points))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = (2 * u).nothing


def test_only_functions_of_the_same_variables_are_added(disk, heat):
    with pytest.raises(ProblemError, match="unknowns or dimensions differ"):
        _ = disk - heat
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = disk + "one"


# ---- data ----


def test_values_at_points_are_data_of_a_condition():
    points, _ = pf.Disk().boundary.sample(200, "grid")
    values = np.exp(points[:, 0]) * np.cos(points[:, 1])
    u = pf.solve(laplace([pf.Dirichlet(values, on=points)]), pf.Chebyshev(pf.Disk(), degree=14))
    assert u.errors().relative_l2 < 1e-12
    assert "<200 values>" in repr(u.problem)


def test_values_of_a_system_have_a_row_for_each_point():
    points, _ = pf.Disk().boundary.sample(60, "grid")

    def operator(u, x):
        return pf.laplacian(u.a)(x), pf.laplacian(u.b)(x)

    values = np.stack([points[:, 0], points[:, 0] * points[:, 1]], axis=1)
    problem = pf.Problem(
        pf.Disk(), operator, source=0.0, unknowns={"a": 1, "b": 1}, conditions=[pf.Dirichlet(values, on=points)]
    )
    u = pf.solve(problem, pf.Chebyshev(pf.Disk(), degree=4))
    np.testing.assert_allclose(u(POINTS), np.stack([POINTS[:, 0], POINTS[:, 0] * POINTS[:, 1]], axis=1), atol=1e-13)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (lambda: pf.Dirichlet(np.zeros(4), on=POINTS), r"values of shape \(4,\) at 20 points; expected \(20,\)"),
        (lambda: pf.Dirichlet(np.zeros(4)), r"has 4 entries at a point.*Dirichlet\(values, on=points\)"),
        (lambda: pf.Dirichlet(np.full(20, np.nan), on=POINTS), "infinite or NaN. Leave these points out"),
        (lambda: pf.Robin([1.0], 1.0), "alpha and beta must be numbers or functions"),
    ],
)
def test_mistakes_in_data_are_explained(condition, message):
    with pytest.raises(ProblemError, match=message):
        laplace([condition()])


def test_sources_given_as_arrays_are_told_to_be_functions():
    with pytest.raises(ProblemError, match=r"100 entries at a point.*become a function by Table"):
        laplace([pf.Dirichlet()], source=np.zeros((10, 10)))


def test_the_coefficients_of_a_robin_condition_may_vary():
    condition = pf.Robin(lambda x: 2 + x[0], lambda x, normal: 1 + normal[1] ** 2)
    assert pf.solve(laplace([condition]), pf.Chebyshev(pf.Disk(), degree=14)).errors().relative_l2 < 1e-11


def test_an_array_instead_of_a_number_of_points_is_not_printed():
    with pytest.raises(DomainError, match=r"is an array of shape \(3, 2\); expected an integer") as caught:
        check_request(np.full((3, 2), 0.123456), "sobol")  # pyright: ignore[reportArgumentType]
    assert "0.123" not in str(caught.value)


def test_contradicting_fluxes_are_called_so():
    with pytest.warns(pf.errors.ConvergenceWarning, match="the data contradict each other.*∫f"):
        pf.solve(laplace([pf.Neumann(0.0)], exact=None, source=1.0), pf.Chebyshev(pf.Disk(), degree=8))


# ---- replacing ----


def test_an_exact_solution_stays_as_long_as_it_is_one():
    problem = laplace([pf.Dirichlet()])
    assert problem.replace(source=lambda x: 0 * x[0]).exact is harmonic
    assert problem.replace(conditions=[pf.Neumann(on=pf.Disk().boundary), pf.Dirichlet()]).exact is harmonic
    assert problem.replace(operator=lambda u, x: -2 * pf.laplacian(u)(x)).exact is harmonic
    assert problem.replace(domain=pf.Disk(radius=0.5)).exact is harmonic


def test_an_exact_solution_that_is_none_any_more_is_dropped_and_its_data_stay():
    changed = laplace([pf.Dirichlet()]).replace(source=1.0)
    assert changed.exact is None
    u = pf.solve(changed, pf.Chebyshev(pf.Disk(), degree=14))
    squares = np.sum(POINTS**2, axis=1)
    expected = np.exp(POINTS[:, 0]) * np.cos(POINTS[:, 1]) + (1 - squares) / 4
    np.testing.assert_allclose(u(POINTS), expected, rtol=1e-12)


def test_a_source_that_came_from_the_exact_solution_stays_with_other_conditions():
    def square(x):
        return x[0] ** 2

    problem = laplace([pf.Neumann(on=pf.Disk().boundary), pf.Dirichlet()], source=None, exact=square)
    changed = problem.replace(conditions=[pf.Dirichlet(0.0)])
    assert changed.exact is None
    u = pf.solve(changed, pf.Chebyshev(pf.Disk(), degree=6))  # -Δu = -2
    np.testing.assert_allclose(u(POINTS), (np.sum(POINTS**2, axis=1) - 1) / 2, atol=1e-12)


def test_complex_solutions_are_multiplied_by_complex_numbers_and_real_ones_are_not():
    line = pf.Interval(0, 1)
    problem = pf.Problem(
        line,
        operator=lambda u, x: pf.partial(u, 0)(x) - 5j * u(x),
        source=0.0,
        conditions=[pf.Dirichlet(1.0, on=[[0.0]])],
        dtype=complex,
    )
    u = pf.solve(problem, pf.Chebyshev(line, 25))
    x = line.sample(5)
    np.testing.assert_allclose((1j * u)(x), 1j * np.exp(5j * x[:, 0]), atol=1e-12)
    np.testing.assert_allclose((u / 2j - 1j)(x), np.exp(5j * x[:, 0]) / 2j - 1j, atol=1e-12)
    assert "(0+1j) (problem)" in repr(1j * u)
    real = pf.solve(problem.replace(operator=lambda u, x: pf.partial(u, 0)(x), dtype=float), pf.Chebyshev(line, 5))
    with pytest.raises(pf.errors.ProblemError, match=r"unknowns are real. Give dtype=complex"):
        1j * real
