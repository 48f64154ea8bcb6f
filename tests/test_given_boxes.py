"""Given boxes: solve() and factor() by block QR, against exact solutions and against each other."""

import jax
import jax.numpy as jnp
import local_problems as problems
import numpy as np
import pytest

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.errors import ConvergenceWarning, FeaturesError, NonlinearError, SolveError
from pdofm.zoo import local

SQUARE = pf.Box([-1, -1], [1, 1])
DISK = pf.Disk([0.1, 0.0], 0.9)


def first(x):
    return jnp.exp(x[0] / 2) * jnp.cos(3 * x[1])


def second(x):
    return jnp.sin(x[0] + 2 * x[1])


def poisson(exact=first, domain=SQUARE, conditions=None):
    conditions = [pf.Dirichlet()] if conditions is None else conditions
    return pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), conditions=conditions, exact=exact)


def heat(exact=lambda x, t: jnp.exp(-t) * jnp.sin(3 * x[0])):
    domain = pf.SpaceTime(pf.Interval(0, 1), 1.0)
    conditions = [pf.Dirichlet(), pf.Initial()]
    return pf.Problem(
        domain, lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t) / 9, conditions=conditions, exact=exact
    )


def shifted(exact=first):
    """An affine operator: its value at zero is not zero."""
    return pf.Problem(
        SQUARE, lambda u, x: u(x) - pf.laplacian(u)(x) + 5.0 + x[0], conditions=[pf.Neumann()], exact=exact
    )


def source_of(exact):
    """-Δ of a function."""
    return lambda x: -pf.laplacian(exact)(x)


@pytest.mark.parametrize("make", [poisson, heat, shifted, lambda: poisson(domain=DISK)])
@pytest.mark.parametrize(("boxes", "degree"), [(3, 11), ((2, 3), (13, 11))])
def test_given_boxes_solve_and_the_estimate_is_near_the_error(make, boxes, degree):
    problem = make()
    u = pf.solve(problem, pf.BoxPolynomials.grid(problem.domain, boxes, degree))
    error = u.errors().relative_l2
    assert u.converged
    assert error < 1e-8
    assert error / 10 < u.error_estimate < 1000 * max(error, 1e-13)
    assert u.stats.rank == u.features.size
    assert u.stats.undetermined < 1e-8


@pytest.mark.parametrize(("boxes", "degree"), [(2, 9), (4, 5), (8, 5)])
def test_the_estimate_knows_that_errors_fall_slowly_at_a_corner(boxes, degree):
    problem = pf.zoo.get("poisson-corner")
    u = pf.solve(problem, pf.BoxPolynomials.grid(problem.domain, boxes, degree), tol=1.0)
    assert 0.2 < u.error_estimate / u.errors().relative_l2 < 10


def test_given_boxes_solve_in_three_dimensions():
    problem = problems.smooth_cube()
    u = pf.solve(problem, pf.BoxPolynomials.grid(problem.domain, (2, 1, 2), (6, 7, 6)))
    assert u.errors().relative_l2 < 1e-5
    assert u.error_estimate < 1e-3


@pytest.mark.parametrize("make", [problems.kovasznay, problems.cubic])
def test_a_nonlinear_problem_is_solved_in_the_boxes_of_its_solution(make):
    problem = make()
    found = solve_in_boxes(problem, 1e-6)
    again = pf.solve(problem, found.features, method=pf.Newton(initial=found))
    assert again.converged, again.reason
    assert again.errors().relative_l2 < 1e-6
    assert len(again.stats.steps) < 4
    with pytest.raises(NonlinearError, match="Use method=Newton"):
        pf.solve(problem, found.features, method=pf.Linear())
    with pytest.raises(NonlinearError, match=r"Use solve\(\) for each right-hand side"):
        pf.factor(problem, found.features)


@pytest.mark.parametrize(("initial", "middle"), [(None, 0.14054), (lambda x: 16 * x[0] * (1 - x[0]), 4.09147)])
def test_the_start_decides_which_solution_an_iteration_in_boxes_finds(initial, middle):
    line = pf.Interval(0, 1)  # Bratu's equation has two solutions
    problem = pf.Problem(line, lambda u, x: pf.laplacian(u)(x) + jnp.exp(u(x)), 0.0, conditions=[pf.Dirichlet(0.0)])
    u = pf.solve(problem, pf.BoxPolynomials.grid(line, 3, 12), method=pf.Newton(initial=initial))
    assert u.converged, u.reason
    assert u([0.5]) == pytest.approx(middle, abs=1e-5)


@pytest.mark.parametrize("domain", [SQUARE, DISK, SQUARE - pf.Box([0, 0], [1, 1])])
def test_sources_and_boundary_values_are_solved_from_one_factorisation(domain):
    solver = pf.factor(poisson(domain=domain), pf.BoxPolynomials.grid(domain, 4, 10))
    exacts = [first, second, lambda x: x[0] ** 3 * x[1]]
    many = solver.solve([source_of(exact) for exact in exacts], exacts)
    points = domain.sample(500, "random", key=3)
    truth = np.stack([np.asarray(jax.vmap(exact)(jnp.asarray(points))) for exact in exacts], axis=1)
    np.testing.assert_allclose(many(points), truth, atol=1e-7)
    assert many.converged.all()
    assert many.is_held_out
    assert many.residuals.max() < 1e-5


def test_many_tabulated_sources_are_the_same_as_functions():
    solver = pf.factor(poisson(), pf.BoxPolynomials.grid(SQUARE, 3, 8))
    frequencies = np.random.default_rng(0).uniform(-3, 3, (70, 2))
    points = solver.points["equation"]
    wave = lambda x, k: np.sin(x @ k.T)
    table = wave(points, frequencies) * (frequencies**2).sum(axis=1)
    tabulated = solver.solve(table, {"dirichlet": wave(solver.points["dirichlet"], frequencies)})
    at = SQUARE.sample(200, "random", key=1)
    np.testing.assert_allclose(tabulated(at), wave(at, frequencies), atol=2e-5)
    assert not tabulated.is_held_out
    k = jnp.asarray(frequencies[:2])
    functions = [(lambda x, a=a: jnp.sin(a @ x)) for a in k]
    same = solver.solve([source_of(f) for f in functions], functions)
    np.testing.assert_allclose(same(at), tabulated(at)[:, :2], atol=1e-12)


def test_the_problem_s_own_data_give_the_solution_of_solve():
    problem = shifted()
    features = pf.BoxPolynomials.grid(SQUARE, (2, 3), 10)
    u, many = pf.solve(problem, features), pf.factor(problem, features).solve()
    np.testing.assert_allclose(many.coefficients[:, :, 0], u.coefficients, atol=1e-11)


def test_systems_are_factored_in_boxes():
    problem = problems.stokes_smooth()
    found = solve_in_boxes(problem, 1e-8)
    many = pf.factor(problem, found.features).solve()
    points = problem.domain.sample(300, "random")
    np.testing.assert_allclose(many(points)[..., 0], problem.exact_values(points), atol=1e-8)


def test_boxes_of_a_peak_serve_other_peaks_there():
    """The boxes that one source needs, for another one that is narrow at the same place."""
    found = solve_in_boxes(local.peak(0.05), 1e-8)
    exact = lambda x: x[0] * jnp.exp(-jnp.sum((x - 0.5) ** 2) / 0.06**2)
    many = pf.factor(found.problem, found.features).solve([source_of(exact)], [exact])
    points = np.random.default_rng(0).uniform(0.3, 0.7, (300, 2))
    np.testing.assert_allclose(many(points)[:, 0], jax.vmap(exact)(jnp.asarray(points)), atol=1e-6)


def test_what_the_boxes_cannot_resolve_is_said():
    solver = pf.factor(poisson(), pf.BoxPolynomials.grid(SQUARE, 2, 5))
    exact = lambda x: jnp.sin(40 * x[0])
    with pytest.warns(ConvergenceWarning, match=r"1 of 2 .*use smaller boxes or higher degrees"):
        many = solver.solve([source_of(exact), 0.0], [exact, lambda x: x[0]])
    assert many.converged.tolist() == [False, True]


def test_a_solution_that_is_not_unique_is_said():
    """Normal derivatives leave a constant free."""
    problem = poisson(conditions=[pf.Neumann()])
    features = pf.BoxPolynomials.grid(SQUARE, 2, 8)
    with pytest.warns(ConvergenceWarning, match=r"does not determine its solutions: the solution is not unique.*add a"):
        solver = pf.factor(problem, features)
    assert solver.stats.undetermined > 1e-3
    with pytest.warns(ConvergenceWarning, match=r"not unique.*add a condition"):
        assert not pf.solve(problem, features).converged


def test_arguments_without_a_use_in_boxes_are_refused():
    features = pf.BoxPolynomials.grid(SQUARE, 2, 4)
    for call in (pf.solve, pf.factor):
        with pytest.raises(SolveError, match=r"places the points of features in boxes by itself\. Leave out"):
            call(poisson(), features, points=100)
        with pytest.raises(SolveError, match=r"solved by a block QR.*without lstsq="):
            call(poisson(), features, method=pf.Linear(lstsq=pf.SVD()))
    with pytest.raises(SolveError, match=r"solved by a block QR"):
        pf.solve(poisson(), features, method=pf.Picard())
    with pytest.raises(FeaturesError, match=r"initial= has coefficients of shape \(3, 1\)"):
        pf.solve(poisson(), features, method=pf.Newton(initial=np.zeros((3, 1))))
    with pytest.raises(FeaturesError, match="boxes must be one number, or one for each of 2 axes"):
        pf.BoxPolynomials.grid(SQUARE, (1, 2, 3), 4)
    with pytest.raises(FeaturesError, match="degree must be an integer of at least 0"):
        pf.BoxPolynomials.grid(SQUARE, 2, -1)


def test_a_solution_in_boxes_is_saved_plotted_and_exported(tmp_path):
    found = solve_in_boxes(local.annulus_log(0.3).replace(name="annulus"), 1e-6)
    pf.save(tmp_path / "boxes.safetensors", found.features)
    features = pf.load(tmp_path / "boxes.safetensors")
    again = pf.solve(found.problem, features)
    points = found.problem.domain.sample(300, "random")
    np.testing.assert_allclose(again(points), found(points), atol=1e-10)
    values = jax.vmap(features)(jnp.asarray(points)) @ found.coefficients
    np.testing.assert_allclose(values[:, 0], found(points), atol=1e-11)
    for solution in (found, again):
        solution.plot(tmp_path / "solution.png")
        solution.to_vtk(tmp_path / "solution.vtu")
        assert "annulus" in repr(solution)
    found.plot_search(tmp_path / "search.png")
    assert {"solution.png", "solution.vtu", "search.png"} <= {path.name for path in tmp_path.iterdir()}


def jump_of_flux(*more, k=7.0, jump=2.0):
    """Two regions whose solutions and fluxes differ by given jumps on their interface."""
    halves = pf.Regions(left=pf.Box([0, 0], [0.4, 1]), right=pf.Box([0.4, 0], [1, 1]))
    exact = {
        "left": lambda x: jnp.exp(x[0]) * jnp.cos(x[1]) + jump,
        "right": lambda x: jnp.exp(x[0]) * jnp.cos(x[1]),
    }
    factors = {"left": 1.0, "right": k}
    between = pf.Interface(
        flux={n: lambda u, x, normal, a=a: a * pf.normal_derivative(u, normal)(x) for n, a in factors.items()},
        jump=jump,
        flux_jump=lambda x: (1 - k) * jnp.exp(x[0]) * jnp.cos(x[1]),
    )
    operators = {n: lambda u, x, a=a: -a * pf.laplacian(u)(x) for n, a in factors.items()}
    return pf.Problem(halves, operators, 0.0, [pf.Dirichlet(), between, *more], exact=exact)


@pytest.mark.parametrize(
    ("problem", "reachable"),
    [(jump_of_flux(), 1e-10), (pf.zoo.get("interface-corner"), 1e-5)],
    ids=["given jumps", "singular functions"],
)
def test_boxes_of_several_regions_serve_again_also_from_a_file(problem, reachable, tmp_path):
    found = solve_in_boxes(problem, reachable)
    u = pf.solve(problem, found.features)
    error = u.errors().relative_l2
    assert error < 3 * reachable
    assert error < 10 * u.error_estimate
    pf.save(tmp_path / "u.pdofm", u)
    again = pf.solve(problem, pf.load(tmp_path / "u.pdofm").features)
    assert again.errors().relative_l2 == pytest.approx(error, rel=1e-3)


def test_boxes_of_several_regions_are_refused_where_they_do_not_belong():
    problem = jump_of_flux()
    features = solve_in_boxes(problem, 1e-4).features
    with pytest.raises(FeaturesError, match=r"made for Regions.*the problem is on"):
        pf.solve(pf.zoo.get("interface-corner"), features)
    with pytest.raises(FeaturesError, match=r"factor\(\) cannot use boxes of several regions"):
        pf.factor(problem, features)
    with pytest.raises(FeaturesError, match="a mean, which boxes of several regions cannot satisfy"):
        pf.solve(jump_of_flux(pf.Mean(2.0)), features)
