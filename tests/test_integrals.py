"""Quadrature over domains, conditions on means, and integrals of solutions, against values that are known."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jv

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.domain.quadrature import Quadrature, over_part
from pdofm.errors import DomainError, ProblemError

SQUARE = pf.Box([-1, -1], [1, 1])
HOLE = SQUARE - pf.Disk([0.1, 0.2], 0.3)
LSHAPE = SQUARE - pf.Box([0, 0], [1, 1])
TRIANGLE = pf.Polygon([[0, 0], [2, 0], [0, 1]])


def waves(points: np.ndarray, k: tuple[float, float] = (1.3, -0.7)) -> np.ndarray:
    """A plane wave, whose integral over a disk of radius r around z is 2π r J₁(|k| r) / |k| cos(k·z)."""
    return np.cos(points @ np.array(k))


def wave_over_disk(center: tuple[float, float], radius: float, k: tuple[float, float] = (1.3, -0.7)) -> float:
    size = np.hypot(*k)
    return float(2 * np.pi * radius * jv(1, size * radius) / size * np.cos(np.dot(k, center)))


def wave_over_box(
    lower: tuple[float, float], upper: tuple[float, float], k: tuple[float, float] = (1.3, -0.7)
) -> float:
    return float(
        np.prod(
            [(np.exp(1j * w * b) - np.exp(1j * w * a)) / (1j * w) for w, a, b in zip(k, lower, upper, strict=True)]
        ).real
    )


@pytest.mark.parametrize(
    ("domain", "exact"),
    [
        (SQUARE, wave_over_box((-1, -1), (1, 1))),
        (pf.Disk([0.3, 0.1], 0.8), wave_over_disk((0.3, 0.1), 0.8)),
        (pf.Annulus([0.3, 0.1], 0.2, 0.8), wave_over_disk((0.3, 0.1), 0.8) - wave_over_disk((0.3, 0.1), 0.2)),
        (HOLE, wave_over_box((-1, -1), (1, 1)) - wave_over_disk((0.1, 0.2), 0.3)),
        (LSHAPE, wave_over_box((-1, -1), (1, 1)) - wave_over_box((0, 0), (1, 1))),
        (
            pf.Disk([-0.9, 0], 0.5) | pf.Disk([0.9, 0.1], 0.6),
            wave_over_disk((-0.9, 0), 0.5) + wave_over_disk((0.9, 0.1), 0.6),
        ),
    ],
    ids=repr,
)
def test_a_rule_integrates_a_wave_over_a_plane_domain_up_to_rounding(domain, exact):
    rule = Quadrature(domain).whole(32)
    assert domain.contains(rule.points, tol=1e-12).all()
    assert rule.weights @ waves(rule.points) == pytest.approx(exact, rel=1e-13)


def test_around_a_circle_polynomials_are_integrated_as_exactly_as_along_a_line():
    """The integral of x^2k over the unit disk is that of r^(2k+1), times 2π (2k)! / (2^k k!)²."""
    order = 10
    rule = Quadrature(pf.Disk([0, 0], 1.0)).whole(order)
    for k in range(order - 1):
        mean = math.factorial(2 * k) / (2**k * math.factorial(k)) ** 2
        assert rule.weights @ rule.points[:, 0] ** (2 * k) == pytest.approx(2 * math.pi * mean / (2 * k + 2), rel=1e-13)


def test_rules_for_the_boxes_of_a_grid_add_up_to_that_of_the_domain():
    quadrature, total, cuts = Quadrature(HOLE), 0.0, np.linspace(-1, 1, 6)
    for a, b in itertools.pairwise(cuts):
        for c, d in itertools.pairwise(cuts):
            rule = quadrature.in_box(np.array([a, c]), np.array([b, d]), 12)
            total += rule.weights @ waves(rule.points)
    assert total == pytest.approx(wave_over_box((-1, -1), (1, 1)) - wave_over_disk((0.1, 0.2), 0.3), rel=1e-12)


def test_polynomials_on_triangles_balls_and_shells_are_integrated_exactly():
    triangle = Quadrature(TRIANGLE).whole(8)  # ∫ x² y = 2³ / 60
    assert triangle.weights @ (triangle.points[:, 0] ** 2 * triangle.points[:, 1]) == pytest.approx(8 / 60, rel=1e-14)
    for domain, inner in ((pf.Ball(), 0.0), (pf.Shell([0, 0, 0], 0.5, 1.0), 0.5)):
        rule = Quadrature(domain).whole(10)  # ∫ x² z² = 4π (R⁷ - r⁷) / 105
        exact = 4 * np.pi * (1 - inner**7) / 105
        assert rule.weights @ (rule.points[:, 0] ** 2 * rule.points[:, 2] ** 2) == pytest.approx(exact, rel=1e-13)


def test_a_cube_with_a_ball_cut_out_is_measured_to_four_digits():
    rule = Quadrature(pf.Box([0, 0, 0], [1, 1, 1]) - pf.Ball([0, 0, 0], 0.5)).whole(12)
    assert rule.weights.sum() == pytest.approx(1 - np.pi / 48, rel=1e-4)


def test_two_rules_for_a_solid_differ_by_about_as_much_as_they_are_wrong():
    lens = pf.Ball([0, 0, 0], 1) & pf.Ball([1, 0, 0], 1)
    first, second = (float(Quadrature(lens).whole(order).weights.sum()) for order in (12, 18))
    assert abs(second - 5 * np.pi / 12) < 3 * abs(second - first)


def test_boundaries_and_moments_of_time_have_their_measures():
    spacetime = pf.SpaceTime(pf.Disk(), 2.0)
    for part, measure in (
        (HOLE.boundary, 8 + 0.6 * np.pi),
        (pf.Ball().boundary, 4 * np.pi),
        (spacetime.boundary, 4 * np.pi),
        (spacetime.at(1.0), np.pi),
        (pf.Interval(0, 3).boundary, 2.0),
    ):
        assert over_part(part, 12).weights.sum() == pytest.approx(measure, rel=1e-13)


def test_a_trimmed_moment_of_time_is_a_part_of_it():
    half = pf.SpaceTime(pf.Disk(), 2.0).at(1.0).where(lambda x, t: x[0] > 0.3)
    rule = over_part(half, 96)
    assert (rule.points[:, 0] > 0.3).all()
    assert rule.weights.sum() == pytest.approx(np.arccos(0.3) - 0.3 * np.sqrt(1 - 0.3**2), rel=1e-2)


def test_too_many_dimensions_are_refused():
    with pytest.raises(DomainError, match="at most 5 dimensions"):
        Quadrature(pf.Box([0] * 6, [1] * 6)).whole(8)


def cosines(x):
    return jnp.cos(jnp.pi * x[0]) * jnp.cos(2 * jnp.pi * x[1]) + 0.25


def pure_neumann(domain, mean=None) -> pf.Problem:
    return pf.Problem(
        domain,
        operator=lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Neumann(), pf.Mean(mean)],
        exact=cosines,
        name="neumann",
    )


@pytest.mark.parametrize("domain", [SQUARE, HOLE, LSHAPE], ids=["square", "hole", "l-shape"])
def test_pure_neumann_with_a_mean_is_as_accurate_as_was_asked_for(domain):
    u = pf.solve(pure_neumann(domain), tol=1e-8)
    assert u.converged
    assert u.errors().relative_l2 < 1e-8


def test_a_mean_over_all_boxes_determines_the_constant():
    u = solve_in_boxes(pure_neumann(HOLE), 1e-9)
    assert u.converged
    assert len(u.features.patches) > 8
    assert u.errors().relative_l2 < 1e-9


def test_a_mean_over_a_part_is_met_in_boxes_and_in_polynomials():
    wall = SQUARE.part("x0=upper")
    stated = pf.Problem(
        SQUARE,
        operator=lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Neumann(), pf.Mean(of=lambda u, x: x[1] ** 2 * u(x), on=wall)],
        exact=cosines,
    )
    for features in (pf.Chebyshev(SQUARE, 700), pf.BoxPolynomials.grid(SQUARE, 3, 14)):
        assert pf.solve(stated, features).errors().relative_l2 < 1e-9


def test_without_the_mean_the_solution_is_not_unique():
    free = pure_neumann(SQUARE).replace(conditions=[pf.Neumann()])
    with pytest.warns(pf.errors.ConvergenceWarning, match="not unique"):
        pf.solve(free)


def test_data_that_no_solution_can_have_are_reported():
    """With -Δu = 1 and no flux across the boundary, nothing balances the source."""
    wrong = pf.Problem(
        SQUARE, operator=lambda u, x: -pf.laplacian(u)(x), source=1.0, conditions=[pf.Neumann(0.0), pf.Mean(0.0)]
    )
    with pytest.warns(pf.errors.ConvergenceWarning):
        assert not pf.solve(wrong).converged


def test_a_mean_may_be_nonlinear_in_the_unknown():
    """u'' = 0 with u(0) = 0 and the mean of u² equal to 1 / 3: u = ±x."""
    line = pf.Interval(0, 1)
    problem = pf.Problem(
        line,
        operator=lambda u, x: pf.laplacian(u)(x),
        source=0.0,
        conditions=[
            pf.Dirichlet(0.0, on=line.part("x0=lower")),
            pf.Mean(1 / 3, of=lambda u, x: u(x) ** 2),
        ],
    )
    for features in (pf.Chebyshev(line, 8), pf.BoxPolynomials.grid(line, 3, 6)):
        start = pf.solve(problem.replace(conditions=[pf.Dirichlet(lambda x: 0.5 * x[0])]), features)
        u = pf.solve(problem, features, method=pf.Newton(initial=start))
        assert u([0.7]) == pytest.approx(0.7, abs=1e-10)


def test_a_factored_problem_takes_other_means():
    for features in (pf.Chebyshev(SQUARE, 700), pf.BoxPolynomials.grid(SQUARE, 3, 14)):
        solver = pf.factor(pure_neumann(SQUARE, 0.25), features)
        source = lambda x: 5 * jnp.pi**2 * (cosines(x) - 0.25)
        shifted = solver.solve([source, source], boundary={"mean": [0.0, 2.0]})
        np.testing.assert_allclose(
            shifted([0.2, 0.3]), float(cosines(jnp.array([0.2, 0.3]))) + np.array([-0.25, 1.75]), atol=1e-9
        )


@pytest.mark.parametrize(
    ("mean", "message"),
    [
        (pf.Mean(lambda x: x[0]), "one number, not a function"),
        (pf.Mean(), "has no value"),
        (pf.Mean(0.0, on=[[0.1, 0.2]]), "on= must be a part"),
        (pf.Mean(0.0, of=lambda u, x, normal: u(x)), "takes a normal"),
        (pf.Mean(0.0, of=lambda u, x: x[5] * u(x)), "does not exist"),
        (pf.Mean(0.0, unknown="p"), "names the unknown 'p'"),
    ],
)
def test_a_mean_that_makes_no_sense_is_refused(mean, message):
    with pytest.raises(ProblemError, match=message):
        pf.Problem(SQUARE, operator=lambda u, x: -pf.laplacian(u)(x), source=0.0, conditions=[pf.Neumann(0.0), mean])


@pytest.fixture(scope="module")
def solutions() -> list[pf.Solution]:
    problem = pf.Problem(
        pf.Disk(), operator=lambda u, x: -pf.laplacian(u)(x), source=1.0, conditions=[pf.Dirichlet(0.0)]
    )
    return [pf.solve(problem, pf.Chebyshev(pf.Disk(), 60)), solve_in_boxes(problem, 1e-10)]


def test_integrals_of_a_solution_agree_with_the_exact_ones_within_their_estimates(solutions):
    """u = (1 - r²) / 4 has ∫ u = π/8, ∫ u² = π/48, ∫ |∇u|² = π/8, and ∮ ∂u/∂n = -π."""
    for u in solutions:
        for found, exact in (
            (u.integral(), np.pi / 8),
            (u.integral(of=lambda u, x: u(x) ** 2), np.pi / 48),
            (u.integral(of=lambda u, x: jnp.sum(pf.grad(u)(x) ** 2)), np.pi / 8),
            (
                u.integral(of=lambda u, x, normal: pf.normal_derivative(u, normal)(x), on=u.problem.domain.boundary),
                -np.pi,
            ),
        ):
            assert abs(found - exact) < max(3 * found.error_estimate, 1e-13)
            assert found.error_estimate < 1e-7


def test_the_flux_of_a_harmonic_function_through_a_closed_boundary_is_zero(solutions):
    problem = pf.Problem(
        HOLE,
        operator=lambda u, x: pf.laplacian(u)(x),
        source=0.0,
        exact=lambda x: jnp.exp(x[0]) * jnp.cos(x[1]),
        conditions=[pf.Dirichlet()],
    )
    u = pf.solve(problem, pf.Chebyshev(HOLE, 250))
    found = u.flux(HOLE.boundary)
    assert abs(found) < max(3 * found.error_estimate, 1e-11)
    assert abs(u.flux(HOLE.part("x0=upper"))) > 1
    assert float(solutions[1].flux(pf.Disk().boundary)) == pytest.approx(-np.pi, abs=1e-8)


def test_the_flux_of_a_logarithm_through_a_circle_is_two_pi():
    ring = pf.Annulus([0, 0], 0.5, 1.0)
    problem = pf.Problem(
        ring,
        operator=lambda u, x: pf.laplacian(u)(x),
        source=0.0,
        exact=lambda x: 0.5 * jnp.log(x @ x),
        conditions=[pf.Dirichlet()],
    )
    with_logarithm = pf.Concatenate(pf.Chebyshev(ring, 60), pf.HoleFunctions(ring, 4))
    for features, accuracy in ((pf.BoxPolynomials.grid(ring, 4, 14), 1e-6), (with_logarithm, 1e-11)):
        u = pf.solve(problem, features)
        for name, exact in (("outer", 2 * np.pi), ("inner", -2 * np.pi)):
            assert float(u.flux(ring.part(name))) == pytest.approx(exact, rel=accuracy)


def test_fluxes_in_space_time_are_integrated_over_time():
    """u = x² t on (0, 1) x (0, 2): ∂u/∂n is 2 t at x = 1, and 0 at x = 0."""
    domain = pf.SpaceTime(pf.Interval(0, 1), 2.0)
    problem = pf.Problem(
        domain,
        operator=lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        exact=lambda x, t: x[0] ** 2 * t,
        conditions=[pf.Dirichlet(), pf.Initial()],
    )
    u = pf.solve(problem, pf.Chebyshev(domain, 40))
    assert float(u.flux(domain.boundary)) == pytest.approx(4.0, abs=1e-11)


def test_a_mean_over_several_regions_fixes_a_constant():
    # k u'' = x - 1, which has the mean 0, without flux at the ends.
    k, regions = {"left": 1.0, "right": 5.0}, pf.Regions(left=pf.Interval(0, 1), right=pf.Interval(1, 2))
    fluxes = {name: lambda u, x, normal, k=k[name]: k * pf.normal_derivative(u, normal)(x) for name in k}
    operators = {name: lambda u, x, k=k[name]: k * pf.laplacian(u)(x) for name in k}
    conditions = [pf.Neumann(0.0), pf.Interface(flux=fluxes), pf.Mean(3.0)]
    u = pf.solve(pf.Problem(regions, operators, lambda x: x[0] - 1, conditions), tol=1e-10)
    assert u.converged
    found = u.integral()
    assert float(found) == pytest.approx(6.0, abs=1e-12)
    assert found.error_estimate < 1e-8
    # ∫ k u'² = -∫ f u by parts, region by region.
    energy = float(u.integral(of=lambda u, x: u(x) * (x[0] - 1)))
    inside = float(u.integral(of=lambda u, x: jnp.where(x[0] < 1, 1.0, 5.0) * pf.grad(u)(x)[0] ** 2))
    assert inside == pytest.approx(-energy, rel=1e-10)


def test_the_exact_solution_stays_if_it_has_a_new_mean():
    problem = pure_neumann(SQUARE)
    assert problem.replace(conditions=[pf.Neumann(), pf.Mean(0.25)]).exact is not None
    assert problem.replace(conditions=[pf.Neumann(), pf.Mean(0.5)]).exact is None


def test_an_integral_is_a_number_and_shows_its_error(solutions):
    found = solutions[0].integral()
    assert f"{found:.3f}" == "0.393"
    assert isinstance(found + 1.0, float)
    assert repr(found).startswith("Integral(0.3926990")
    assert "error_estimate" in repr(found)


def test_the_integral_of_a_kink_says_that_it_is_not_accurate(solutions):
    found = solutions[0].integral(of=lambda u, x: jnp.abs(x[0] - 0.1234))
    assert found.error_estimate > 1e-8


def test_a_system_is_integrated_component_by_component():
    problem = pf.Problem(
        pf.Interval(0, 1),
        unknowns={"a": 1, "b": 1},
        operator=lambda u, x: (pf.laplacian(u.a)(x), pf.laplacian(u.b)(x)),
        exact={"a": lambda x: x[0], "b": lambda x: x[0] ** 2},
        conditions=[pf.Dirichlet()],
    )
    u = pf.solve(problem, pf.Chebyshev(problem.domain, 10))
    np.testing.assert_allclose(u.integral(), [1 / 2, 1 / 3], atol=1e-12)
    assert float(u.integral(of=lambda u, x: u.a(x) * u.b(x))) == pytest.approx(1 / 4, abs=1e-12)


def test_integrals_of_what_cannot_be_integrated_are_refused(solutions):
    u = solutions[0]
    with pytest.raises(ProblemError, match="of= must be a function"):
        u.integral(of=3.0)
    with pytest.raises(ProblemError, match="on= must be a part"):
        u.integral(on=u.problem.domain)
    with pytest.raises(ProblemError, match="takes a normal"):
        u.integral(of=lambda u, x, normal: u(x))
    with pytest.raises(ProblemError, match="does not exist"):
        u.integral(of=lambda u, x: x[7])


@pytest.mark.parametrize("count", [36, 66, 105])
def test_the_error_of_a_flux_is_not_underestimated(count):
    """u = exp(2x) cos 3y: nothing flows through y = 0, and 2 e² sin(3) / 3 through x = 1."""
    square = pf.Box([0, 0], [1, 1])
    insulated = square.part("x1=lower")
    problem = pf.Problem(
        square,
        operator=lambda u, x: -pf.laplacian(u)(x),
        conditions=[
            pf.Dirichlet(on=square.boundary.where(lambda x: x[..., 1] > 0)),
            pf.Neumann(0.0, on=insulated),
        ],
        exact=lambda x: jnp.exp(2 * x[0]) * jnp.cos(3 * x[1]),
    )
    u = pf.solve(problem, pf.Chebyshev(square, count))
    nothing, through = u.flux(insulated), u.flux(square.part("x0=upper"))
    exact = 2 * np.exp(2) * np.sin(3) / 3
    assert abs(nothing) <= 3 * nothing.error_estimate
    assert abs(through - exact) <= 3 * through.error_estimate
    assert through.error_estimate <= 1e3 * u.error_estimate * exact


def test_the_lift_of_a_cylinder_is_about_as_accurate_as_its_estimate_says():
    """0.010618948146 is what spectral methods find: 500 times less than the drag."""
    problem = pf.zoo.get("cylinder-flow")
    u = solve_in_boxes(problem, 1e-3)
    force = u.integral(
        of=lambda u, x, normal: pf.zoo.published.cylinder_stress(u, x, normal)[1], on=problem.domain.part("circle")
    )
    error = abs(-500 * float(force) - 0.010618948146)
    assert error <= 3 * 500 * force.error_estimate
    assert 500 * force.error_estimate <= 30 * error
