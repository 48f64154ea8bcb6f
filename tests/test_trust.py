"""What is refused before solving, and what the stability constant says of what is solved."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

import pdofm as pf
from pdofm.discrete.details import details_of
from pdofm.problem.contradictions import find_contradiction
from pdofm.problem.coverage import find_gap

SQUARE, DISK, LINE = pf.Box([0, 0], [1, 1]), pf.Disk([0, 0], 1.0), pf.Interval(0, 1)
ROD = pf.SpaceTime(LINE, 0.5)


def minus_laplacian(u, x):
    return -pf.laplacian(u)(x)


def bilaplacian(u, x):
    return pf.laplacian(pf.laplacian(u))(x)


def diffusion(sign):
    return lambda u, x, t: pf.dt(u)(x, t) - sign * pf.laplacian(u)(x, t)


def stokes(u, x):
    return (-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x))


def on_the_right(domain, at):
    return domain.boundary.where(lambda x: x[0] > at)


LACKING = {
    "half of a circle": (DISK, minus_laplacian, [pf.Dirichlet(0.0, on=on_the_right(DISK, 0.0))], "'circle'"),
    "a hundredth of a circle": (DISK, minus_laplacian, [pf.Dirichlet(0.0, on=on_the_right(DISK, -0.999))], "'circle'"),
    "a face": (SQUARE, minus_laplacian, [pf.Dirichlet(0.0, on=SQUARE.part("x0=lower"))], "no condition on"),
    "a plate": (SQUARE, bilaplacian, [pf.Dirichlet(0.0)], "1 of 2 conditions"),
    "an end": (LINE, minus_laplacian, [pf.Dirichlet(0.0, on=LINE.face(0, 0))], "of order 2, and has 1 condition"),
    "an end of a rod": (
        ROD,
        diffusion(1.0),
        [pf.Initial(0.0), pf.Dirichlet(0.0, on=ROD.face(0, 0))],
        "parabolic, of order 2 in space, and there is no condition on 'x0=upper'",
    ),
    "backwards": (ROD, diffusion(-1.0), [pf.Initial(0.0), pf.Dirichlet(0.0)], "the condition is at the first time"),
    "elliptic in time": (
        ROD,
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) + pf.laplacian(u)(x, t),
        [pf.Initial(0.0, 0.0), pf.Dirichlet(0.0)],
        "elliptic in space and time",
    ),
}


@pytest.mark.parametrize("name", LACKING)
def test_a_boundary_that_lacks_conditions_is_named_before_anything_is_solved(name):
    domain, operator, conditions, message = LACKING[name]
    problem = pf.Problem(domain, operator, 1.0, conditions)
    with pytest.raises(pf.errors.ProblemError, match=message):
        pf.solve(problem)


@pytest.mark.parametrize(
    "problem",
    [
        pf.Problem(
            SQUARE,
            minus_laplacian,
            1.0,
            [pf.Dirichlet(0.0, on=SQUARE.part("x0=lower")), pf.Neumann(0.0, on=on_the_right(SQUARE, 1e-9))],
        ),
        pf.Problem(
            LINE, minus_laplacian, 1.0, [pf.Dirichlet(0.0, on=LINE.face(0, 0)), pf.Neumann(0.0, on=LINE.face(0, 0))]
        ),
        pf.Problem(
            pf.SpaceTime(LINE, 0.5), diffusion(-1.0), 0.0, [pf.Dirichlet(0.0), pf.Dirichlet(0.0, on=ROD.at(0.5))]
        ),
        pf.Problem(SQUARE, lambda u, x: pf.partial(u, 0)(x), 1.0, [pf.Dirichlet(0.0, on=SQUARE.face(0, 0))]),
        # The coefficient vanishes at an end, where a regular solution needs no condition.
        pf.Problem(
            LINE,
            lambda u, x: -x[0] * pf.laplacian(u)(x) - pf.partial(u, 0)(x),
            1.0,
            [pf.Dirichlet(0.0, on=LINE.face(0, 1))],
        ),
        pf.Problem(
            SQUARE,
            stokes,
            0.0,
            [pf.Dirichlet(0.0, unknown="v"), pf.Dirichlet(0.0, on=[[0.5, 0.5]], unknown="p")],
            unknowns={"v": 2, "p": 1},
        ),
    ],
    ids=["mixed", "both at one end", "final value", "transport", "degenerate", "stokes"],
)
def test_statements_with_enough_conditions_pass(problem):
    assert find_gap(problem) is None


def test_the_pressure_of_stokes_needs_no_condition_on_the_boundary_but_the_velocity_does():
    here = SQUARE.part("x0=lower")
    problem = pf.Problem(SQUARE, stokes, 0.0, [pf.Dirichlet(0.0, unknown="v", on=here)], unknowns={"v": 2, "p": 1})
    gap = find_gap(problem)
    assert gap is not None
    assert "no condition" in gap.why


@pytest.mark.parametrize("gap", [1.0, 1e-6])
@pytest.mark.parametrize("on", [LINE.face(0, 0), [[0.0]]], ids=["part", "point"])
def test_two_values_at_one_place_are_refused(gap, on):
    problem = pf.Problem(LINE, minus_laplacian, 1.0, [pf.Dirichlet(0.0), pf.Dirichlet(gap, on=on)])
    with pytest.raises(pf.errors.ProblemError, match="contradict each other"):
        pf.solve(problem)


def test_equal_values_at_one_place_and_values_that_meet_at_a_point_are_allowed():
    left, right = DISK.boundary.where(lambda x: x[0] < 0), DISK.boundary.where(lambda x: x[0] >= 0)
    for conditions in (
        [pf.Dirichlet(lambda x: x[0]), pf.Dirichlet(lambda x: x[0], on=right)],
        [pf.Dirichlet(0.0, on=left), pf.Dirichlet(1.0, on=right)],
    ):
        assert find_contradiction(pf.Problem(DISK, minus_laplacian, 1.0, conditions)) is None


def test_errors_against_an_exact_solution_that_solves_another_problem_are_refused():
    problem = pf.Problem(LINE, minus_laplacian, 1.0, [pf.Dirichlet(0.0)], exact=lambda x: x[0] * (1 - x[0]))
    with pytest.raises(pf.errors.ProblemError, match="exact= does not satisfy the equation with source="):
        pf.solve(problem, pf.Chebyshev(LINE, 20)).errors()


def polynomials(problem, size=120):
    return pf.solve(problem, pf.Chebyshev(problem.domain, size), sampling="clustered")


def test_gamma_of_poissons_equation_is_the_constant_of_the_maximum_principle():
    # |u| <= max |g| + |f| / 4 on the unit disk, and constants attain the first part.
    u = polynomials(pf.Problem(DISK, minus_laplacian, 1.0, [pf.Dirichlet(0.0)]))
    assert u.stats.stability == pytest.approx(1.0, abs=0.25)
    assert u.stats.stability_growth == 1.0


def test_gamma_of_a_growing_solution_is_that_of_its_growth():
    # u' = u + f, u(0) = g: data of size 1 cause solutions of size about exp(4) / sqrt(8) in the mean square.
    line = pf.Interval(0, 4)
    u = polynomials(
        pf.Problem(line, lambda u, x: pf.partial(u, 0)(x) - u(x), 0.0, [pf.Dirichlet(1.0, on=line.face(0, 0))]), 40
    )
    assert u.converged
    assert u.stats.stability is not None
    assert 10 < u.stats.stability < 60


def test_the_error_is_below_gamma_times_the_residual():
    def exact(x):
        return jnp.sin(6 * x[0] + x[1]) * jnp.exp(x[1])

    for size in (30, 60, 120):
        problem = pf.Problem(SQUARE, minus_laplacian, conditions=[pf.Dirichlet()], exact=exact)
        with warnings.catch_warnings(action="ignore"):  # the coarse ones have not converged
            u = polynomials(problem, size)
        assert u.stats.error_bound is not None
        assert u.errors().relative_l2 < u.stats.error_bound


@pytest.fixture(scope="module")
def from_one_side():
    """Cauchy data for Laplace's equation: the solution is unique, but a change of the data grows without bound."""
    below, sides = SQUARE.face(1, 0), SQUARE.part("x0=lower", "x0=upper")
    problem = pf.Problem(
        SQUARE,
        minus_laplacian,
        conditions=[pf.Dirichlet(on=below), pf.Neumann(on=below), pf.Dirichlet(on=sides)],
        exact=lambda x: jnp.exp(x[0]) * jnp.cos(x[1]),
    )
    with pytest.warns(pf.errors.ConvergenceWarning, match="the data do not determine the solution"):
        return polynomials(problem, 300)


def test_an_ill_posed_problem_is_told_by_the_growth_of_gamma(from_one_side):
    assert from_one_side.verdict.status is pf.Status.UNDETERMINED
    assert from_one_side.verdict.evidence.is_unique
    assert from_one_side.stats.stability > 1e4
    assert from_one_side.stats.stability_growth > 10
    assert "on 'x1=upper'" in from_one_side.reason


def test_the_function_that_the_data_leave_free_is_drawn(from_one_side, tmp_path):
    from_one_side.plot_undetermined(tmp_path / "free.png")
    assert (tmp_path / "free.png").exists()


def test_a_determined_solution_has_nothing_to_draw():
    u = polynomials(pf.Problem(DISK, minus_laplacian, 1.0, [pf.Dirichlet(0.0)]), 40)
    with pytest.raises(pf.errors.SolveError, match="does not grow"):
        u.plot_undetermined()


@pytest.mark.parametrize("small", [1e-5, 1e-9, 1e-14])
def test_components_of_very_different_sizes_keep_their_digits(small):
    problem = pf.Problem(
        SQUARE,
        lambda u, x: (-pf.laplacian(u.a)(x) + u.b(x), -pf.laplacian(u.b)(x) + small * u.a(x)),
        conditions=[pf.Dirichlet()],
        unknowns={"a": 1, "b": 1},
        exact={"a": lambda x: jnp.sin(x[0] + 2 * x[1]), "b": lambda x: small * jnp.cos(2 * x[0] - x[1])},
    )
    u = polynomials(problem, 120)
    assert u.converged
    assert u.errors().relative_l2 < 1e-9  # of the component that is worse, relative to its own size
    assert u.errors().relative_l2 < 10 * u.error_estimate


def needle(x):
    return 1000.0 * jnp.exp(-(((x[0] - 0.3) / 1e-3) ** 2))


def missed_by(problem):
    with warnings.catch_warnings(action="ignore"):
        return polynomials(problem, 60).verdict.evidence.missed or 0.0


def test_a_needle_of_the_source_or_of_boundary_values_between_the_points_is_a_verdict():
    inside = pf.Problem(LINE, minus_laplacian, lambda x: jnp.sin(3 * x[0]) + needle(x - 0.01), [pf.Dirichlet(0.0)])
    below = SQUARE.face(1, 0)
    walls = [pf.Dirichlet(needle, on=below), pf.Dirichlet(0.0, on=SQUARE.part("x0=lower", "x0=upper", "x1=upper"))]
    assert missed_by(inside) > 0.1
    assert missed_by(pf.Problem(SQUARE, minus_laplacian, 1.0, walls)) > 0.1


def test_a_jump_of_a_source_is_no_needle():
    jump = pf.Problem(LINE, minus_laplacian, lambda x: jnp.where(x[0] < 0.37, 1.0, -1.0), [pf.Dirichlet(0.0)])
    assert missed_by(jump) < 1e-3


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0])
def test_what_a_missed_needle_does_to_the_solution_is_its_integral_times_greens_function(size):
    """The solution is sin(πx) and a needle that no point meets. Green's function at a has the mean square
    a² (1 - a)² / 3."""
    at = 0.31

    def source(x):
        return jnp.pi**2 * jnp.sin(jnp.pi * x[0]) + size * needle(x - at + 0.3) / (jnp.sqrt(jnp.pi))

    problem = pf.Problem(LINE, minus_laplacian, source, [pf.Dirichlet(0.0)])
    with warnings.catch_warnings(action="ignore"):
        u = pf.solve(problem, pf.Chebyshev(LINE, 24), sampling="clustered", points=60)
    effect = size * at * (1 - at) * (2 / 3) ** 0.5
    assert 0.5 * effect < u.verdict.evidence.missed < 2 * effect
    assert u.error_estimate >= u.verdict.evidence.missed


def test_a_needle_in_the_boundary_values_is_found_and_resolved_at_the_tolerance():
    """Its series of sines is the truth; without the needle the error would be ten times the tolerance."""
    below, width, at, size, tol = SQUARE.face(1, 0), 0.01, 0.37, 1e-3, 1e-6

    def value(x):
        return jnp.sin(jnp.pi * x[0]) + size * jnp.exp(-(((x[0] - at) / width) ** 2))

    rest = SQUARE.part("x0=lower", "x0=upper", "x1=upper")
    problem = pf.Problem(SQUARE, minus_laplacian, 0.0, [pf.Dirichlet(value, on=below), pf.Dirichlet(0.0, on=rest)])
    u = pf.solve(problem, tol=tol)
    n, points = np.arange(1, 1200), SQUARE.sample(500)
    weights = size * 2 * width * np.pi**0.5 * np.exp(-((n * np.pi * width / 2) ** 2)) * np.sin(n * np.pi * at)
    weights[0] += 1.0
    y = points[:, 1:]
    falls = np.exp(-n * np.pi * y) * (1 - np.exp(-2 * n * np.pi * (1 - y))) / (1 - np.exp(-2 * n * np.pi))
    true = (np.sin(n * np.pi * points[:, :1]) * falls) @ weights
    assert u.converged
    assert np.linalg.norm(u(points) - true) < tol * np.linalg.norm(true)


def test_boxes_are_split_towards_a_needle_that_is_small_beside_the_rest_of_the_source():
    """Its integral is 2e-4, and no point of the first boxes meets it."""
    at, width, size, k = 0.6285, 6.6e-4, 2.5e-4, 6.45

    def source(x):
        bump = jnp.exp(-(((x[0] - at) / width) ** 2)) / (width * jnp.pi**0.5)
        return k**2 * jnp.sin(k * x[0]) + size * bump

    def twice(x):
        s = (x - at) / width
        kink = s * erf(s) + np.exp(-(s**2)) / np.pi**0.5
        return np.sin(k * x) - 0.5 * width * size * kink

    u = pf.solve(pf.Problem(LINE, minus_laplacian, source, [pf.Dirichlet(0.0)]), tol=1e-6)
    x = np.linspace(0, 1, 1001)
    true = twice(x) - twice(0.0) * (1 - x) - twice(1.0) * x
    assert u.converged
    assert np.linalg.norm(u(x[:, None]) - true) < 1e-6 * np.linalg.norm(true)


def test_smooth_data_have_no_details():
    problem = pf.Problem(
        SQUARE,
        minus_laplacian,
        lambda x: jnp.sin(10 * x[0]) * jnp.exp(3 * x[1]),
        [pf.Dirichlet(lambda x: jnp.cos(20 * x[0] + x[1]))],
    )
    assert not details_of(problem)


def test_details_of_coefficients_are_found():
    problem = pf.Problem(LINE, lambda u, x: minus_laplacian(u, x) + needle(x) * u(x), 1.0, [pf.Dirichlet(0.0)])
    (found,) = details_of(problem)
    assert np.abs(found.points - 0.3).max() < 0.02


@pytest.mark.parametrize("length", [1e-6, 1e4])
def test_the_units_of_length_do_not_decide_whether_a_problem_is_determined(length):
    box = pf.Box([0, 0], [length, length])
    below, sides = box.face(1, 0), box.part("x0=lower", "x0=upper")

    def exact(x):
        return jnp.exp(x[0] / length) * jnp.cos(x[1] / length)

    well = pf.Problem(box, minus_laplacian, conditions=[pf.Dirichlet()], exact=exact)
    assert polynomials(well, 300).converged
    conditions = [pf.Dirichlet(on=below), pf.Neumann(on=below), pf.Dirichlet(on=sides)]
    with warnings.catch_warnings(action="ignore"):
        ill = polynomials(pf.Problem(box, minus_laplacian, conditions=conditions, exact=exact), 300)
    assert ill.verdict.status is pf.Status.UNDETERMINED


@pytest.mark.parametrize("size", [1e-307, 1e200])
def test_data_that_are_too_large_or_too_small_to_compute_with_are_refused(size):
    problem = pf.Problem(LINE, minus_laplacian, lambda x: size * jnp.sin(x[0]), [pf.Dirichlet(0.0)])
    with pytest.raises(pf.errors.ProblemError, match="other units"):
        pf.solve(problem, pf.Chebyshev(LINE, 20))


def test_a_coordinate_that_does_not_exist_is_found_in_an_exact_solution():
    with pytest.raises(pf.errors.ProblemError, match="exact solution uses a coordinate that does not exist"):
        pf.Problem(LINE, minus_laplacian, conditions=[pf.Dirichlet()], exact=lambda x: x[0] * x[1])


def test_solves_go_on_after_compiled_functions_were_forgotten(monkeypatch):
    monkeypatch.setattr("pdofm.discrete.process.MOST_COMPILED", 0)
    for k in (1.0, 2.0):
        problem = pf.Problem(
            LINE,
            lambda u, x, k=k: -pf.laplacian(u)(x) + k * u(x),
            conditions=[pf.Dirichlet()],
            exact=lambda x: jnp.sin(2 * x[0]),
        )
        assert polynomials(problem, 20).errors().relative_l2 < 1e-10
